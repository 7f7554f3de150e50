-- SPDX-License-Identifier: MIT
-- The law of gradients: every public operation that takes tensors and gives
-- tensors says whether it has a gradient, and it is so. Rows are checked
-- against differences by grad_pointwise.lua and the families that have a
-- gradient by grad_operators.lua, which walk their tables; all others, and what
-- has none, by the calls of grad_public_calls.lua, in float64, once and, along
-- a random direction, once more. An operation without a line fails.
-- Run by: nacre tests/autograd/grad_public.lua [operation]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local reference = require "nacre.reference"
local second_order = dofile(here .. "../lib/second_order.lua")
local grad, methods = nacre.autograd, nacre._methods

local failures = 0

local function check(ok, ...)
  if ok then return end
  failures = failures + 1
  print(select("#", ...) > 1 and (...):format(select(2, ...)) or (...))
end

-- ---- the names that a line can use

-- Inputs are made when a line is evaluated for the first time, and are those
-- given when it is evaluated again.
local given, made, place

local function input(create)
  return function(...)
    place = place + 1
    if not given then made[place] = create({...}) end
    return (given or made)[place]
  end
end

local float64 = {dtype = "float64"}
local function normal(size) return nacre.randn(size, float64) end
local function between(low, high)
  return function(size)
    return (nacre.rand(size, float64) * (high - low) + low):requires_grad_()
  end
end

local x = input(function(size) return normal(size):requires_grad_() end)
local names = {
  F = nacre.nn.functional, x = x, c = input(normal),
  p = input(between(0.5, 2)), q = input(between(0.1, 0.9)),
  s = function(n) local a = x(n, n) return a + a:t() end,
  d = function(n)
    local a = x(n, n)
    return a:mm(a:t()) + nacre.eye(n, float64)
  end,
  select = select, math = math,
}

-- What writes in place gets a result for its self, as only those can be
-- written to.
local function inplace(f)
  return function(self, ...) return f(self * 1, ...) end
end

setmetatable(names, {__index = function(_, name)
  local method = methods[name]
  if name:sub(-1) == "_" then return inplace(method) end
  local f = rawget(nacre._functions, name)
  return type(f) ~= "string" and f or method    -- float is a dtype here
end})

-- ---- evaluating lines

local function tensors(list, v, ...)
  if nacre.is_tensor(v) then
    list[#list + 1] = v
  elseif type(v) == "table" then
    tensors(list, table.unpack(v))
  end
  if select("#", ...) > 0 then return tensors(list, ...) end
  return list
end

-- A function of inputs from a text, and inputs for it: those that are made at
-- the first call.
local function compiled(text)
  local f = assert(load("return " .. text, "=" .. text, "t", names))
  local function call(inputs)
    given, place = inputs, 0
    made = made or {}
    nacre.manual_seed(5)
    return tensors({}, f())
  end
  made = nil
  local ok, first = pcall(call)
  if not ok then return nil, first end
  local inputs = made
  return function(...)
    local results = call({...})
    for i, y in ipairs(results) do
      -- what was written in place is part of a larger graph here
      results[i] = y:is_floating_point() and y.requires_grad and y * 1 or y
    end
    return table.unpack(results)
  end, inputs, first
end

local function anyrequires(list)
  for _, t in ipairs(list) do
    if t.requires_grad then return true end
  end
  return false
end

local function options(text)
  local o = {}
  for key, value in text:gmatch "(%w+)=(%S+)" do o[key] = tonumber(value) end
  return o
end

-- The gradients are those of differences, also those of gradients.
local function differentiable(text, f, inputs, results, with)
  if not anyrequires(results) then
    return check(false, "%s: no result requires a gradient", text)
  end
  local o = options(with)
  local ok, e = pcall(grad.gradcheck, f, inputs, o)
  check(ok, "%s: %s", text, tostring(e))
  if not ok or o.eps then return end  -- too rough for differences of these
  ok, e = pcall(second_order, f, inputs)
  check(ok, "%s, second order: %s", text, tostring(e))
end

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
  function seconds name]]):gmatch "%w+" do
  plain[word] = true
end

local function givestensors(info)
  local word = (info.signature or ""):match "%->%s*(%w+)"
  return word and not plain[word]
end

-- These change what a tensor is, not its value; or need a CUDA device.
local apart = {requires_grad_ = true, resize_ = true,
               resize_as_ = true, set_ = true,
               cuda = true, pin_memory = true}

-- ---- the walk

local wanted = arg and arg[1]
local lines = {}              -- name -> list of { text, options }

local function line(name, text, with)
  name = name:match "([%w_.]+)%(" or name
  lines[name] = lines[name] or {}
  table.insert(lines[name], {text, with})
end

local all = dofile(here .. "grad_public_calls.lua"):gsub("\n  ", " ")
for text in all:gmatch "[^\n]+" do
  local call, with = text:match "^(.-) | (.*)$"
  call, with = call or text, with or ""
  local words, rest = call:match "^{([%w_. ]+)} (.*)$"
  if not text:find "^%-%-" then
    for word in (words or "-"):gmatch "%S+" do
      local one = (rest or call):gsub("%$", word)
      line(one:match "^select%(2, (.*)%)$" or one, one, with)
    end
  end
end

-- The in-place form of what has one, where its result has the shape of self.
local function written(name, list)
  local into, done = methods[name .. "_"], 0
  if not into then return 1 end
  for _, l in ipairs(list) do
    local text = l[1]:gsub("^[%w_.]+%(", name .. "_(", 1)
    local f, inputs, results = compiled(text)
    if f then
      done = done + 1
      differentiable(text, f, inputs, results, l[2])
    end
  end
  return done
end

local function spoken(info, list, claim)
  for _, l in ipairs(list) do
    local f, inputs, results = compiled(l[1])
    if not f then
      check(false, "%s: %s", l[1], tostring(inputs))
    elseif claim then
      differentiable(l[1], f, inputs, results, l[2])
    else
      constant(l[1], inputs, results)
    end
  end
end

local seen, counts = {}, {rows = 0, families = 0, yes = 0, no = 0}

local function operation(f, path)
  local info = f and nacre._info(f) or nacre._info(path)
  if not info or info.inplace then return end
  local name = canonical(info)
  if seen[name] or wanted and wanted ~= name then return end
  seen[name] = true
  if not takestensors(info) or not givestensors(info) or apart[name] then
    return check(not lines[name],
                 "%s: a line, but it takes or gives no tensors", name)
  end
  local claim = claims(info)
  if claim == nil then
    return check(false, "%s: says nothing of its gradient", name)
  end
  if info.class then
    check(claim == info.differentiable, "%s: says otherwise than its row", name)
    counts.rows = counts.rows + 1
  elseif info.kind == "family" and info.differentiable and claim then
    counts.families = counts.families + 1
  elseif not lines[name] then
    check(false, "%s: no line in grad_public_calls.lua", name)
  else
    spoken(info, lines[name], claim)
    check(not claim or written(name, lines[name]) > 0,
          "%s_: no line that it can take", name)
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
    check(seen[name], "%s: a line for what is no operation", name)
  end
end

-- A function that loses its gradient does not pass for one without inputs.
local lost = function(t) return t:detach() * 2 end
local leaf = nacre.ones(2, float64):requires_grad_()
check(not pcall(grad.gradcheck, lost, {leaf}),
      "gradcheck: a gradient that is lost is not found")
-- Nor does one whose second derivative is not that of its first.
local cube = grad.Function {
  forward = function(ctx, t)
    ctx:save_for_backward(t)
    return t ^ 3
  end,
  backward = function(ctx, g)
    local t = ctx.saved_tensors[1]
    return g * 3 * t:detach() * t
  end}
check(pcall(grad.gradcheck, cube, {leaf}) and
      not pcall(second_order, cube, {leaf}),
      "second_order: a wrong second derivative is not found")

assert(failures == 0, failures .. " are not as they say")
print(("grad_public: %d rows, %d families, %d by lines, %d without a gradient")
      :format(counts.rows, counts.families, counts.yes, counts.no))
