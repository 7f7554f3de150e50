-- SPDX-License-Identifier: MIT
-- Checks the gradients of calls that are written as lines of text, such as
--   linear(x(2, 3), x(4, 3), x(4))
-- for grad_operators.lua and grad_public.lua. In a line
--   x(sizes)   is a float64 input whose gradient is checked
--   p(sizes)   one from 0.5 to 2
--   q(sizes)   one from 0.1 to 0.9
--   c(sizes)   one whose gradient is not checked
--   s(n), d(n) a symmetric and a positive definite matrix made of an input
--   at(...)    an int64 tensor of positions
--   NAME       a function or a method of nacre; NAME_ gets a copy of self
-- After | come options of gradcheck, where a dtype is too narrow for the
-- defaults. {a b} stands for each of its words, put in for $. A line belongs to
-- the operation that it calls, or to NAME if it begins with "NAME: ". A line
-- that begins with two blanks goes on with the last, one with -- is a comment.
--   local G = dofile(here .. "../lib/gradient_calls.lua")

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local second_order = dofile(here .. "second_order.lua")
local grad = nacre.autograd
local functions, methods = nacre._functions, nacre._methods

local G = {failures = 0}

function G.check(ok, ...)
  if ok then return end
  G.failures = G.failures + 1
  print(select("#", ...) > 1 and (...):format(select(2, ...)) or (...))
end
local check = G.check

-- ---- the names that a line can use

-- Inputs are made when a line is evaluated for the first time. When it is
-- evaluated again they are those given.
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
  at = function(...) return nacre.tensor({...}) end,
  get = function(t, key) return t[key] end,
  set = function(t, key, v)
    local y = t * t
    y[key] = v
    return y * t
  end,
  -- an operation in place on a row, and on a part that another view shows
  in_row = function(t, name)
    local y = t * 2
    local row = y[1]
    row[name](row)
    return y * t, row
  end,
  in_part = function(t, name, u)
    local y = t * 2
    local part, other = y["1:2, 2:3"], y:t()
    part[name](part, u)
    return y * y, other * 2, part * 3
  end,
  select = select, math = math,
}

-- What writes in place gets a result for its self, as only those can be
-- written to. With `reuse' what was written is used again, as is self.
local reuse

local function inplace(f)
  return function(self, ...)
    local y = f(self * 1, ...)
    return reuse and y:is_same_size(self) and y * self or y
  end
end

setmetatable(names, {__index = function(_, name)
  local method = methods[name]
  if name:sub(-1) == "_" then return inplace(method) end
  local f = rawget(functions, name)
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

-- A function of inputs from a text, inputs for it, and the results of its first
-- call; or nil and the error of that call.
function G.compile(text, again)
  local f = assert(load("return " .. text, "=" .. text, "t", names))
  local function call(inputs)
    given, place = inputs, 0
    made = made or {}
    reuse = again
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

-- The lines of a text: operation -> list of {line, options of gradcheck}.
function G.lines(text)
  local lines = {}
  for line in text:gsub("\n  +", " "):gmatch "[^\n]+" do
    local call, with = line:match "^(.-) | (.*)$"
    call = call or line
    local label, unlabelled = call:match "^([^%s(]+): (.*)$"
    call = unlabelled or call
    local words, rest = call:match "^{([%w_.%- ]+)} (.*)$"
    if not line:find "^%-%-" then
      for word in (words or "-"):gmatch "%S+" do
        local one = (rest or call):gsub("%$", word)
        one = one:match "^select%(2, (.*)%)$" or one
        local name = label or one:match "([%w_.]+)%("
        lines[name] = lines[name] or {}
        table.insert(lines[name], {one, with or ""})
      end
    end
  end
  return lines
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

-- The gradients of a call are those of differences, also those of gradients.
-- False if it cannot be called.
function G.differentiable(text, with)
  local f, inputs, results = G.compile(text, true)
  if not f then return false, inputs end
  if not anyrequires(results) then
    check(false, "%s: no result requires a gradient", text)
    return true
  end
  local o = options(with)
  local ok, e = pcall(grad.gradcheck, f, inputs, o)
  check(ok, "%s: %s", text, tostring(e))
  if not ok or o.eps then return true end -- too rough for differences of these
  ok, e = pcall(second_order, f, inputs)
  check(ok, "%s, second order: %s", text, tostring(e))
  return true
end

-- The lines of an operation and, if it has an in-place form, the same calls of
-- that, where its result has the shape of self.
function G.operation(name, list)
  local into, done = methods[name .. "_"], 0
  for _, l in ipairs(list) do
    local ok, e = G.differentiable(l[1], l[2])
    check(ok, "%s: %s", l[1], tostring(e))
    if into and not l[1]:find "^%(" then
      local text = l[1]:gsub("^[%w_.]+%(", name .. "_(", 1)
      if G.differentiable(text, l[2]) then done = done + 1 end
    end
  end
  check(not into or done > 0, "%s_: no line that it can take", name)
end

return G
