-- SPDX-License-Identifier: MIT
-- Every public operation that takes tensors and gives tensors says whether it
-- has a gradient, and that is true. Pointwise operations are checked by
-- grad_pointwise.lua, operators by grad_operators.lua; all others, and those
-- without a gradient, by the calls of grad_public_calls.lua, in float64: first
-- derivatives, and second ones along a random direction. An operation without
-- a line fails.
-- Run by: nacre tests/autograd/grad_public.lua [operation]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local G = dofile(here .. "../lib/gradient_calls.lua")
local reference = require "nacre.reference"
local grad, check = nacre.autograd, G.check

-- Nothing comes back to any input.
local function constant(text, inputs, results)
  local of = {}
  for _, t in ipairs(inputs) do
    if t.requires_grad then of[#of + 1] = t end
  end
  for _, y in ipairs(results) do
    if y.requires_grad then
      check(text:find "^[%w_.]+_%(",
            "%s: the result requires a gradient", text)
      local got = grad._backward({y}, {y:ones_like()}, of, true)
      for i = 1, #of do
        check(not got[i] or got[i]:eq(0):all():item(),
              "%s: a gradient to input %d", text, i)
      end
    end
  end
end

-- ---- what an operation says of itself

local function canonical(info)
  local name = (info.alias or info.name):gsub("^nn%.functional%.", "F.")
  return name .. (info.inplace and "_" or "")
end

-- true or false, or nil if it says nothing
local function claims(info)
  local claim
  for _, fact in ipairs(reference.facts(info)) do
    if fact[1] == "grad" then claim = claim or fact[2] ~= "none" end
  end
  return claim
end

local operand = {tensor = true, operand = true, inplace = true,
                 dimortensor = true, tensors = true}
local taken = {operands = true, matrices = true, data = true}

local function takestensors(info)
  for _, p in ipairs(info.params or {}) do
    if operand[p.type] or p.type == "any" and taken[p.name] then
      return true
    end
  end
  return false
end

-- The first word after the arrow is that of a tensor unless it is one of these.
local plain = {}
for word in ([[boolean integer number text string table sizes strides dtype
  device iterator handle generator stream event milliseconds bytes results
  function seconds name class module optimizer schedule dataset datasets
  loader sampler value]]):gmatch "%w+" do
  plain[word] = true
end

local function givestensors(info)
  local word = (info.results or ""):match "%w+"
  return word and not plain[word]
end

-- These change what a tensor is, not its value; or need a CUDA device. Those
-- of nn.init write to their operand without recording; those of distributed and
-- of Python take the elements elsewhere.
local apart = {requires_grad_ = true, resize_ = true,
               resize_as_ = true, set_ = true,
               cuda = true, pin_memory = true, ["nn.Parameter"] = true,
               ["nn.Buffer"] = true, ["Work:wait"] = true}

-- ---- the walk

local wanted = arg and arg[1]
local lines = G.lines(dofile(here .. "grad_public_calls.lua"))

local function constants(list)
  for _, l in ipairs(list) do
    local f, inputs, results = G.compile(l[1])
    check(f, "%s: %s", l[1], tostring(inputs))
    if f then constant(l[1], inputs, results) end
  end
end

local seen, counts = {}, {pointwise = 0, operators = 0, yes = 0, no = 0}

local function operation(f, path)
  local info = f and nacre._info(f) or nacre._info(path)
  if not info or info.inplace then return end
  local name = canonical(info)
  if seen[name] or wanted and wanted ~= name then return end
  seen[name] = true
  if not takestensors(info) or not givestensors(info) or apart[name] or
     name:find "^nn%.init%." or name:find "^distributed%." or
     name:find "^py%." then
    return check(not lines[name],
                 "%s: a line, but it takes or gives no tensors", name)
  end
  local claim = claims(info)
  if claim == nil then
    return check(false, "%s: says nothing of its gradient", name)
  end
  if info.class then
    check(claim == info.differentiable, "%s: says otherwise than ops.def", name)
    counts.pointwise = counts.pointwise + 1
  elseif info.kind == "operator" and info.differentiable and claim then
    counts.operators = counts.operators + 1
  elseif not lines[name] then
    check(false, "%s: no line in grad_public_calls.lua", name)
  else
    if claim then G.operation(name, lines[name])
    else constants(lines[name]) end
    local of = claim and "yes" or "no"
    counts[of] = counts[of] + 1
  end
end

for _, name in ipairs(nacre._names(true)) do operation(nil, name) end
for _, space in ipairs {"_functions", "_methods", "linalg", "nn.functional",
                        "autograd", "cuda"} do
  local t = nacre
  for word in space:gmatch "[^.]+" do t = t[word] end
  for name, f in next, t do
    if type(name) == "string" and type(f) == "function" and
       not name:find "^_" then
      operation(f, name)
    end
  end
end
if not wanted then
  for name in pairs(lines) do
    check(seen[name], "%s: a line for what is not an operation", name)
  end
end

assert(G.failures == 0, G.failures .. " are not as they say")
print(("grad_public: %d pointwise operations, %d operators, %d by lines, " ..
       "%d without a gradient")
      :format(counts.pointwise, counts.operators, counts.yes, counts.no))
