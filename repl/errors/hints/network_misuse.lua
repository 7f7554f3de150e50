-- SPDX-License-Identifier: MIT
--
-- network_misuse.lua - errors in networks whose cause is the call:
-- net.forward(x) with a dot, self:fc1(x) with a colon, an input of another
-- dtype than the parameters, names of Torch7's nn.

local expressions = require "nacre.expression_at"
local runtime_errors = require "nacre.runtime_errors"
local unknown_names = require "nacre.unknown_names"

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

-- Makes `text' the whole message: the error names what the call led to.
local function replace(o, text)
  o.message = text
  o.op, o.object, o.hint, o.module = nil, nil, nil, nil
  o.args = {}
  local at = not o.at and o.frames[1]
  if at then
    o.at, o.file, o.line = at, at.file, at.line
    o.source = runtime_errors.line(at.text or "", at.line)
  end
  return true
end

-- net.forward(x), whose self is then x
local function forward_with_dot(o, text, value)
  local before, args = text:match "^(.-)%.forward%s*(%b())"
  local net = before and expressions.ending(before)
  local known = net and value(net)
  if not net then return false end
  if not is_module(known) and
     not o.message:find "%(local 'self'%)$" then return false end
  local first = args:match "^%(%s*([%a_][%w_%.]*)"
  if first and is_module(value(first)) then return false end
  return replace(o, ("forward is a method: %s%s"):format(net, args))
end

-- self:fc1(x), which hands self to the layer fc1 as its input
local function layer_with_colon(o, text, value)
  for path, name, args in
    text:gmatch "([%a_][%w_%.]*):([%a_][%w_]*)%s*(%b())" do
    local owner = value(path)
    if is_module(owner) and is_module(rawget(owner, name)) then
      return replace(o, ("%s is not a method: %s.%s%s"):format(name, path, name,
                                                               args))
    end
  end
  return false
end

-- Explains the error of a call with the wrong one of `.' and `:'; true if it is
-- one.
function network_misuse.explain(o, line, value)
  for _, text in ipairs(lines(o, line)) do
    if forward_with_dot(o, text, value) or
       layer_with_colon(o, text, value) then return true end
  end
  return false
end

-- net:updateOutput(x), nn.Sequential():add(layer): methods of Torch7's nn
function network_misuse.method_hint(o, line, value)
  local name = o.message:match
    "^attempt to call a nil value %(method '([%w_]+)'%)"
  if name == "add" and line:find "%f[%w_]Sequential%s*%b()%s*:%s*add" then
    return "a Sequential takes a further layer by append"
  end
  return name and unknown_names.hint(name, line, value)
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
