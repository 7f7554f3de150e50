-- SPDX-License-Identifier: MIT
-- recurrent_cells.lua - one step of a recurrent layer: rnn_tanh_cell,
-- rnn_relu_cell, lstm_cell, gru_cell. Gates and their order are PyTorch's.
--
-- input [n x i] or [i], hx [n x h] or [h], w_ih [g*h x i], w_hh [g*h x h], b_ih
-- and b_hh [g*h], where g is the number of gates.
local all = ...
local define, fail = all.define, all.fail

local WEIGHTS = "w_ih:tensor, w_hh:tensor, b_ih:tensor=nil, b_hh:tensor=nil"

-- Fails unless the shapes fit a cell with g gates.
local function check_cell(op, g, x, h, w_ih, w_hh)
  all.check_dims(op, x, "input", 1, 2)
  all.check_dims(op, w_ih, "w_ih", 2)
  all.check_dims(op, w_hh, "w_hh", 2)
  local n = h:dim() > 0 and h:size(-1) or 0
  if h:dim() ~= x:dim() or x:dim() == 2 and x:size(1) ~= h:size(1) then
    fail(op, "{input} and {hx} must have the same samples", nil, "input", x,
         "hx", h)
  end
  if w_ih:size(1) ~= g * n or w_ih:size(2) ~= x:size(-1) then
    fail(op, ("{w_ih} must be [%dx%d]: %d gate%s of {hx}, features of {input}")
             :format(g * n, x:size(-1), g, g == 1 and "" or "s"), nil,
         "input", x, "hx", h, "w_ih", w_ih)
  end
  if w_hh:size(1) ~= g * n or w_hh:size(2) ~= n then
    fail(op, ("{w_hh} must be [%dx%d]"):format(g * n, n), nil, "hx", h, "w_hh",
         w_hh)
  end
end

local function plain(op, activation)
  define(op, "input:tensor, hx:tensor, " .. WEIGHTS,
         ("%s(w_ih input + b_ih + w_hh hx + b_hh)"):format(activation),
  function(x, h, w_ih, w_hh, b_ih, b_hh)
    check_cell(op, 1, x, h, w_ih, w_hh)
    local linear = nacre.nn.functional.linear
    return nacre[activation](linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh))
  end)
end

plain("rnn_tanh_cell", "tanh")
plain("rnn_relu_cell", "relu")

-- ---- layers of LSTM and GRU

-- One step by operations: the next h, and c, for gx, the products of the input,
-- and the weights w, b of h.
local step = {}

-- Hochreiter and Schmidhuber 1997. The gates are input, forget, cell, output.
function step.lstm(gx, h, c, w, b)
  local gates = gx + nacre.linear(h, w, b)
  local i, f, g, o = table.unpack(gates:chunk(4, 2))
  c = f:sigmoid() * c + i:sigmoid() * g:tanh()
  return o:sigmoid() * c:tanh(), c
end

-- Cho et al. 2014. The gates are reset, update, new.
function step.gru(gx, h, _, w, b)
  local ri, zi, ni = table.unpack(gx:chunk(3, 2))
  local rh, zh, nh = table.unpack(nacre.linear(h, w, b):chunk(3, 2))
  local z = (zi + zh):sigmoid()
  local new = (ni + (ri + rh):sigmoid() * nh):tanh()
  return new + z * (h - new)
end

-- A layer by operations, in the order of the steps or from the last one: the
-- outputs [time x samples x units], 0 beyond the ends of sequences if `ends',
-- of sequence_lengths.lua, is given, and the last h and c.
local function run_by_operations(kind, reverse, ends, x, h, c, w_ih, w_hh, b_ih,
                                 b_hh)
  local steps, out = nacre.linear(x, w_ih, b_ih):unbind(1), {}
  local masks = ends and ends:masks()
  for i = 1, #steps do
    local t = reverse and #steps + 1 - i or i
    local new, new_c = step[kind](steps[t], h, c, w_hh, b_hh)
    out[t] = masks and new:masked_fill(masks[t]:logical_not(), 0) or new
    h = masks and nacre.where(masks[t], new, h) or new
    c = masks and c and nacre.where(masks[t], new_c, c) or new_c
  end
  return nacre.stack(out), h, c
end

-- t with its samples, of dim, in another order, or as they are.
local function ordered(t, dim, order)
  return t and order and t:index_select(dim, order) or t
end

-- The rows of t [time x samples x ..], those that `rows' picks if it is given.
local function rows_of(t, rows)
  t = t:dim() == 3 and t:flatten(1, 2) or t
  return rows and t:index_select(1, rows) or t
end

-- The results: outputs, last h, last c.
local function results(s, reverse, steps, states, cells)
  local last = reverse and 1 or steps + 1
  local out = states:narrow(1, reverse and 1 or 2, steps)
  if s.padding then out = out:masked_fill(s.padding, 0) end
  local h = ordered(states:select(1, last), 1, s.inverse)
  out = ordered(out, 2, s.inverse)
  if not cells then return out, h end
  return out, h, ordered(cells:select(1, last), 1, s.inverse)
end

-- The same by _recurrent, for an autograd.Function. If the gradient is recorded
-- itself, it is that of run_by_operations.
local function forward(ctx, kind, reverse, ends, x, h, c, w_ih, w_hh, b_ih,
                       b_hh)
  local lstm, bias = kind == "lstm", b_ih
  if b_ih and lstm then bias = b_ih + b_hh end
  local s = ends and ends:steps() or {}
  local input = s.rows and rows_of(x, s.rows) or x
  local states, cells, gates =
    nacre._recurrent(nacre.linear(input, w_ih, bias), ordered(h, 1, s.order),
                     ordered(c, 1, s.order), w_hh, not lstm and b_hh or nil,
                     kind, reverse, s.sizes)
  ctx:save_for_backward(x, h, c, w_ih, w_hh, b_ih, b_hh, states, cells, gates)
  ctx.kind, ctx.reverse, ctx.ends = kind, reverse, ends
  return results(s, reverse, x:size(1), states, lstm and cells)
end

local function recorded_gradients(ctx, saved, grads)
  local inputs = table.move(saved, 1, 7, 1, {})
  local outputs = {run_by_operations(ctx.kind, ctx.reverse, ctx.ends,
                                     table.unpack(inputs, 1, 7))}
  local operands, at = {}, {}
  for i = 1, 7 do
    if ctx.needs_input_grad[i + 3] then
      operands[#operands + 1], at[#at + 1] = inputs[i], i
    end
  end
  local found = {nacre.autograd.grad(outputs, operands, {
    grad_outputs = grads, create_graph = true, materialize_grads = true})}
  local all = {}
  for k, i in ipairs(at) do all[i] = found[k] end
  return nil, nil, nil, table.unpack(all, 1, 7)
end

-- The gradient of x from those of its products by w, which are rows.
local function input_gradient(x, products, w, rows)
  local d = products:matmul(w)
  if not rows then return d:view(x:size()) end
  local size = x:size()
  return d:new_zeros(size[1] * size[2], size[3]):index_copy_(1, rows, d)
          :view(size)
end

local function backward(ctx, g_out, g_h, g_c)
  local saved, need = ctx.saved_tensors, ctx.needs_input_grad
  local x, h, c, w_ih, w_hh, b_ih, b_hh, states, cells, gates =
    table.unpack(saved, 1, 10)
  if nacre.is_grad_enabled() then
    return recorded_gradients(ctx, saved, {g_out, g_h, g_c})
  end
  local lstm, reverse = ctx.kind == "lstm", ctx.reverse
  local s = ctx.ends and ctx.ends:steps() or {}
  local grads = {ordered(g_out, 2, s.order), ordered(g_h, 1, s.order),
                 ordered(g_c, 1, s.order)}
  local dx, dh, rest = nacre._recurrent_backward(grads, states, cells, gates,
                                                 w_hh, ctx.kind, reverse,
                                                 s.sizes)
  local rows = rows_of(dx)
  local sums = lstm and rows or rows_of(rest)
  local before = states:narrow(1, reverse and 2 or 1, x:size(1))
  return nil, nil, nil,
         need[4] and input_gradient(x, rows, w_ih, s.rows) or nil,
         ordered(dh, 1, s.inverse), lstm and ordered(rest, 1, s.inverse) or nil,
         need[7] and rows:t():mm(rows_of(x, s.rows)) or nil,
         need[8] and sums:t():mm(rows_of(before, s.sorted)) or nil,
         need[9] and rows:sum(1) or nil, need[10] and sums:sum(1) or nil
end

local Layer = {}

-- A layer of `kind', lstm or gru: x [time x samples x features], h and c
-- [samples x units], and weights as in the cells; `ends', of
-- sequence_lengths.lua, or nil. Returns the outputs and the last h and c.
function all.recurrent_layer(kind, reverse, ends, x, ...)
  if x.dtype ~= "float32" and x.dtype ~= "float64" or x:numel() == 0 or
     ends and nacre._in_dry_run() then
    return run_by_operations(kind, reverse, ends, x, ...)
  end
  Layer[kind] = Layer[kind] or nacre.autograd.Function {
    name = kind, forward = forward, backward = backward,
  }
  return Layer[kind](kind, reverse, ends, x, ...)
end

-- One step: a layer over one.
local function cell(kind, x, h, c, ...)
  local single = x:dim() == 1
  if single then
    x, h, c = x:unsqueeze(1), h:unsqueeze(1), c and c:unsqueeze(1)
  end
  local _
  _, h, c = all.recurrent_layer(kind, false, nil, x:unsqueeze(1), h, c, ...)
  if single then h, c = h:squeeze(1), c and c:squeeze(1) end
  return h, c
end

define("lstm_cell", "input:tensor, hx:tensors, " .. WEIGHTS .. " -> h, c",
       "the next hidden state and cell of an LSTM from hx = {h, c}",
function(x, hx, ...)
  local op = "lstm_cell"
  if #hx ~= 2 then
    fail(op, ("hx has %d tensors, not 2: {h, c}"):format(#hx))
  end
  local h, c = hx[1], hx[2]
  check_cell(op, 4, x, h, ...)
  if not c:is_same_size(h) then
    fail(op, "{h} and {c} must have one shape", nil, "h", h, "c", c)
  end
  return cell("lstm", x, h, c, ...)
end)

define("gru_cell", "input:tensor, hx:tensor, " .. WEIGHTS,
       "the next hidden state of a GRU",
function(x, h, ...)
  check_cell("gru_cell", 3, x, h, ...)
  return (cell("gru", x, h, nil, ...))
end)

all.recurrent_step = step
