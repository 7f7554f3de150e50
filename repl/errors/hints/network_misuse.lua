-- SPDX-License-Identifier: MIT
--
-- network_misuse.lua - errors in networks whose cause is the call:
-- net.forward(x) with a dot, an input of another dtype than the parameters.

local runtime_errors = require "nacre.runtime_errors"

local network_misuse = {}

local function is_module(v)
  return type(v) == "table" and rawget(v, "_fields") ~= nil
end

-- The lines of the error and of the calls that led there, the innermost first.
local function lines(o, line)
  local list = {line}
  for _, f in ipairs(o.frames) do
    list[#list + 1] = f.text and runtime_errors.line(f.text, f.line) or nil
  end
  return list
end

-- Explains the error of net.forward(x), whose self is then x; true if it is
-- one.
function network_misuse.explain(o, line, value)
  for _, text in ipairs(lines(o, line)) do
    local path, args = text:match "([%a_][%w_%.]*)%.forward%s*(%b())"
    if path and is_module(value(path)) then
      local first = args:match "^%(%s*([%a_][%w_%.]*)"
      if first and is_module(value(first)) then return false end
      o.message = ("forward is a method: %s%s"):format(path, args)
      o.op, o.object, o.hint, o.module = nil, nil, nil, nil
      o.args = {}
      return true
    end
  end
  return false
end

-- The method of a module that converts to each dtype.
local to = {float16 = "half", bfloat16 = "bfloat16", float32 = "float",
            float64 = "double"}

-- The network that the outermost of the lines calls.
local function called_network(list, value)
  for i = #list, 1, -1 do
    for path in list[i]:gmatch "%f[%w_]([%a_][%w_%.]*)%s*%(" do
      if is_module(value(path)) then return path end
    end
  end
end

-- net(x) after net:half(): the input has another dtype than the parameters.
function network_misuse.dtype_hint(o, line, value)
  local role, from, into = o.message:match
    "^dtypes differ: (%w+) is (%w+), weight is (%w+)$"
  if not o.module or not to[into] then return nil end
  local text = ('convert %s with :to("%s")'):format(role, into)
  for _, a in ipairs(o.args) do
    if a.role == role and a.name then
      text = ('%s:to("%s")'):format(a.name, into)
    end
  end
  local net = to[from] and called_network(lines(o, line), value)
  return net and ("%s, or %s:%s()"):format(text, net, to[from]) or text
end

return network_misuse
