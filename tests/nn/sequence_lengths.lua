-- SPDX-License-Identifier: MIT
-- Recurrent layers over sequences of several lengths: what each sequence alone
-- gives, whatever is beyond its end. Beside PyTorch in
-- tests/torch/modules_torch.py.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local C = dofile(here .. "../lib/common.lua")
local nn, check, fails = nacre.nn, O.check, C.fails
local device = nacre.cuda.is_available() and "cuda" or "cpu"
local F64 = {dtype = "float64", device = device}
nacre.manual_seed(3)

local function near(a, b, what)
  check(a:is_same_size(b) and (a - b):abs():max():item() < 1e-12, what)
end

-- The sum of all elements with weights, so that no gradient is zero.
local function weighted(list)
  local sum = 0
  for _, t in ipairs(list) do
    local w = nacre.arange(t:numel(), F64):remainder(7):add(-2.5):view(t:size())
    sum = sum + (t * w):sum()
  end
  return sum
end

local function as_list(out, state)
  return nacre.is_tensor(state) and {out, state} or {out, state[1], state[2]}
end

-- The outputs of the layer for each sequence alone, padded and joined.
local function each_alone(layer, x, state, lengths)
  local outs = {}
  for i, n in ipairs(lengths) do
    local s = state and (nacre.is_tensor(state) and state:narrow(2, i, 1) or
              {state[1]:narrow(2, i, 1), state[2]:narrow(2, i, 1)})
    local part = as_list(layer(x:narrow(2, i, 1):narrow(1, 1, n), s))
    local rest = x:size(1) - n
    part[1] = nacre.cat {part[1], part[1]:new_zeros(rest, 1, part[1]:size(3))}
    for k, t in ipairs(part) do
      outs[k] = outs[k] or {}
      outs[k][i] = t
    end
  end
  for k, list in ipairs(outs) do outs[k] = nacre.cat(list, 2) end
  return outs
end

local function gradients(layer, inputs, outs)
  local operands = table.move(inputs, 1, #inputs, 1, {})
  for p in layer:parameters() do operands[#operands + 1] = p end
  return {nacre.autograd.grad({weighted(outs)}, operands)}
end

local function compare(kind, options, lengths, with_state)
  local what = ("%s %s"):format(kind, table.concat(lengths, " "))
  local layer = nn[kind](3, 5, options):double():to(device)
  local both = options.bidirectional and 2 or 1
  local rows, n = both * layer.num_layers, #lengths
  local x = nacre.randn(7, n, 3, F64):requires_grad_()
  local inputs, state = {x}, nil
  if with_state then
    local h = nacre.randn(rows, n, 5, F64):requires_grad_()
    local c = nacre.randn(rows, n, 5, F64):requires_grad_()
    inputs = kind == "LSTM" and {x, h, c} or {x, h}
    state = kind == "LSTM" and {h, c} or h
  end
  local want = each_alone(layer, x, state, lengths)
  local got = as_list(layer(x, state, {lengths = lengths}))
  for k, t in ipairs(want) do near(got[k], t, what .. ": result " .. k) end
  local want_g = gradients(layer, inputs, want)
  for k, g in ipairs(gradients(layer, inputs, got)) do
    near(g, want_g[k], what .. ": gradient " .. k)
  end
  -- what is beyond the end does not count, not even nan
  local dirty = x:detach():clone()
  for i, len in ipairs(lengths) do
    if len < 7 then
      dirty:narrow(2, i, 1):narrow(1, len + 1, 7 - len):fill_(0 / 0)
    end
  end
  dirty:requires_grad_()
  inputs[1] = dirty
  got = as_list(layer(dirty, state, {lengths = lengths}))
  for k, t in ipairs(want) do near(got[k], t, what .. ": nan, result " .. k) end
  for k, g in ipairs(gradients(layer, inputs, got)) do
    near(g, want_g[k], what .. ": nan, gradient " .. k)
  end
end

for _, kind in ipairs {"LSTM", "GRU"} do
  for i, lengths in ipairs {{7, 7, 4, 1}, {7, 7}, {2, 7, 1, 7, 5}, {3, 3}, {5},
                            {1, 1, 1}} do
    compare(kind, {}, lengths, i % 2 == 0)
    compare(kind, {bidirectional = true, num_layers = 2}, lengths, i % 2 == 1)
  end
  compare(kind, {bias = false, bidirectional = true}, {4, 6, 2}, true)
end

-- second derivatives
for _, kind in ipairs {"LSTM", "GRU"} do
  local layer = nn[kind](2, 3):double():to(device)
  local x = nacre.randn(4, 3, 2, F64):requires_grad_()
  check(nacre.autograd.gradgradcheck(function(t)
    return table.unpack(as_list(layer(t, nil, {lengths = {2, 4, 1}})))
  end, {x}), kind .. ": gradgradcheck")
end

-- the operands of the operator are checked
local function sized(sizes, more)
  local o = {x = nacre.zeros(5, 8, F64), h = nacre.zeros(3, 2, F64),
             w = nacre.zeros(8, 2, F64)}
  for k, v in pairs(more or {}) do o[k] = v end
  return nacre._recurrent(o.x, o.h, o.h, o.w, nil, "lstm", false,
                          nacre.is_tensor(sizes) and sizes or
                          nacre.tensor(sizes, {dtype = "int64"}))
end
check(sized({3, 1, 1}):size(1) == 4, "sizes")
for _, sizes in ipairs {{4, 1}, {1, 3, 1}, {3, -1, 3}, {3, 2, -1, 1}} do
  fails("the sizes of the steps must not grow", sized, sizes)
end
for _, sizes in ipairs {{3, 1}, {3, 2, 1}, {0, 0}, {3, 3, 3}} do
  fails("the sizes of the steps do not add up to the rows", sized, sizes)
end
fails("do not match", sized, nacre.ones(3))
fails("do not match", sized, nacre.ones(2, 2, {dtype = "int64"}))
fails("has no steps", sized, nacre.ones(0, {dtype = "int64"}),
      {x = nacre.zeros(0, 8, F64)})
fails("do not match", sized, {3, 2}, {x = nacre.zeros(1, 5, 8, F64)})
do
  local states, cells, gates = sized {3, 2}
  local function back(grads)
    return nacre._recurrent_backward(grads, states, cells, gates,
                                     nacre.zeros(8, 2, F64), "lstm", false,
                                     nacre.tensor {3, 2})
  end
  local g, last = nacre.zeros(2, 3, 2, F64), nacre.zeros(3, 2, F64)
  check(back({g, last, last}):size(1) == 5, "backward")
  fails("there are 2 gradients, not 3", back, {g, last})
  fails("do not match", back, {g, g, last})
  fails("do not match", back, {last, last, last})
  fails("do not match", back, {g, last, nacre.zeros(2, 2, F64)})
end

O.done "sequence_lengths"
