-- SPDX-License-Identifier: MIT
--
-- assertions.lua - the checks of a *_test.lua, the methods of `t`. A check
-- that fails throws a refusal, {text =, line = of the test, skip =}; so does
-- one that is called in the wrong way.

local closeness = require "nacre.closeness"
local facts = require "nacre.tensor_facts"
local diff = require "nacre.value_diff"
local styled = require "nacre.styled_output"
local assertion_operands = require "nacre.assertion_operands"

local assertions = {}

local Refusal = {}

function Refusal:__tostring() return self.text end

local function refuse(o) error(setmetatable(o, Refusal), 0) end

function assertions.isrefusal(e) return debug.getmetatable(e) == Refusal end

-- The line of the test file that called the check.
local function caller(source)
  for level = 3, 40 do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if info.source == source then return info.currentline end
  end
end

local function callable(f)
  local meta = type(f) == "table" and debug.getmetatable(f)
  return type(f) == "function" or meta and meta.__call ~= nil
end

-- The options of t.close. t.golden has no equal_nan: nan must stay nan.
local TOLERANCES = {rtol = "number", atol = "number"}

-- What is wrong with the options of t.close or t.golden, or nil.
local function badoptions(name, o, equal_nan)
  local takes = "{rtol = number, atol = number" ..
                (equal_nan and ", equal_nan = true or false}" or "}")
  if o ~= nil and type(o) ~= "table" then
    return ("%s(..., %s): the third argument is %s")
           :format(name, takes, styled.brief(o))
  end
  for key, value in pairs(o or {}) do
    local want = TOLERANCES[key] or key == "equal_nan" and equal_nan
    if want ~= type(value) then
      return ("%s takes %s, not %s = %s")
             :format(name, takes, tostring(key), styled.brief(value))
    end
  end
end

-- The checks: each returns why it fails, or nil.
local checks = {}

-- A table of numbers stands for a tensor.
local function tensorial(a, b)
  return facts.istensor(a) or facts.istensor(b)
end

function checks.eq(_, got, expected)
  if tensorial(got, expected) then
    return closeness.compare(got, expected, {rtol = 0, atol = 0})
  end
  return diff.values(got, expected)
end

function checks.close(job, got, expected, o)
  local wrong = badoptions("t.close", o, "boolean")
  if wrong then return wrong end
  o = o or {}
  local within = {rtol = o.rtol or job.rtol, atol = o.atol or job.atol,
                  equal_nan = o.equal_nan}
  if tensorial(got, expected) then
    return closeness.compare(got, expected, within)
  end
  return diff.values(got, expected, function(a, b)
    local says = closeness.compare(a, b, within)
    return says and {says}
  end)
end

function checks.ok(_, v, text)
  if facts.istensor(v) then
    local n = v:numel()
    if n ~= 1 then
      return ("%d elements are neither true nor false: use :all() or :any()")
             :format(n)
    end
    v = v:item()
    v = v and v ~= 0
  end
  local lines = assertion_operands.take()
  if v then return end
  local says = text and tostring(text) or #lines > 0 and "not true" or
               diff.brief(v) .. " is not true"
  return table.concat({says, table.unpack(lines)}, "\n")
end

local ERR = "t.err(text, [{pattern = true},] function, arguments ...): "

function checks.golden(job, x, name, o)
  local wrong = badoptions("t.golden", o)
  if wrong then return wrong end
  return require "nacre.golden".check(job, x, name, o, job.tell)
end

-- Its second argument may be options: {pattern = true}.
local function errarguments(text, o, ...)
  if type(text) ~= "string" then
    return nil, ERR .. "the text of the error comes first, not " ..
                styled.brief(text)
  end
  if type(o) ~= "table" or callable(o) then return {}, nil, o, ... end
  for name, value in pairs(o) do
    if name ~= "pattern" or type(value) ~= "boolean" then
      return nil, ("%sno option %s = %s"):format(ERR, tostring(name),
                                                 styled.brief(value))
    end
  end
  return o, nil, ...
end

-- Does f fail as expected? Returns why not; if it does, its message and what
-- it threw.
local function failing(text, o, wrong, f, ...)
  if wrong then return wrong end
  if not callable(f) then
    return ERR .. "expected a function, not " .. styled.brief(f)
  end
  local ok, err = pcall(f, ...)
  if ok then return "no error; expected: " .. text end
  local message = tostring(err)
  if message:find(text, 1, not o.pattern) then return nil, message, err end
  return ("the error does not %s '%s':\n  %s"):format(
    o.pattern and "match" or "contain", text, (message:gsub("\n", "\n  ")))
end

function checks.err(_, text, ...)
  local function call(o, wrong, ...) return failing(text, o, wrong, ...) end
  return call(errarguments(text, ...))
end

-- The object `t' of a test.
function assertions.new(job, source)
  local t = {device = job.device, seed = job.seed}
  local function finish(says, ...)
    if says then refuse {text = says, line = caller(source)} end
    return ...
  end
  local function dotted(name, first)
    if rawequal(first, t) then
      finish(("call a check with a dot: t.%s(...)"):format(name))
    end
  end
  for name, f in pairs(checks) do
    t[name] = function(...)
      dotted(name, (...))
      job.checked = true
      return finish(f(job, ...))
    end
  end
  function t.skip(why)
    dotted("skip", why)
    refuse {text = why and tostring(why) or "no reason given", skip = true}
  end
  return t
end

return assertions
