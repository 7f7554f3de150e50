-- SPDX-License-Identifier: MIT
--
-- network_misuse.lua - errors in networks whose cause is the call:
-- net.forward(x) with a dot, self:fc1(x) with a colon, an input of another
-- dtype or on another device than the parameters, names of Torch7's nn.

local expressions = require "nacre.expression_at"
local istensor = require "nacre.tensor_facts".istensor
local frames = require "nacre.stack_frames"
local nil_argument = require "nacre.nil_argument"
local runtime_errors = require "nacre.runtime_errors"
local unknown_names = require "nacre.unknown_names"

local nacre = package.loaded.nacre or _G.nacre

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

-- Has a method of the library got something else than its module?
local function lacks_self(o)
  return o.message:find("a method is called with a colon", 1, true) ~= nil
end

-- The forward of the user's class whose frame is gone: it called through a dot
-- what it returned, return self.fc.forward(x). Sets o to that line; returns it.
local function forward_by_tail_call(o)
  local f = o.tail_of
  if not f or not lacks_self(o) and not o.message:find "'self'" and
     o.cause ~= "method" and o.cause ~= "field" and
     not o.message:find "^attempt to index" then
    return nil
  end
  local info = debug.getinfo(f, "Sf")
  local place = frames.place(f, info.linedefined)
  for n = info.linedefined, info.lastlinedefined do
    local line = runtime_errors.line(place.text or "", n)
    for _, call in ipairs(expressions.calls(line or "", "forward")) do
      if call.mark == "." and (call.owner or ""):find "^self%f[^%w_]" and
         expressions.arguments(call.args)[1] ~= "self" then
        place.line, place.name = n, "forward"
        o.at, o.file, o.line, o.source = place, place.file, n, line
        return ("forward is a method: %s%s"):format(call.owner, call.args)
      end
    end
  end
end

-- net.forward(x), whose self is then x
local function forward_with_dot(o, call, value)
  local net = call.name == "forward" and call.mark == "." and call.owner
  if not net then return false end
  -- net may be a call, whose value is not known here
  local made = net:find "%)$" and
               (lacks_self(o) or o.message:find "%(local 'self'%)$")
  if not made and not is_module(value(net)) then return false end
  local first = expressions.arguments(call.args)[1]
  if first and is_module(value(first)) then return false end
  return replace(o, ("forward is a method: %s%s"):format(net, call.args))
end

-- self:fc1(x), which hands self to the layer fc1 as its input
local function layer_with_colon(o, call, value)
  local path, name = call.mark == ":" and call.owner, call.name
  local owner = path and value(path)
  return is_module(owner) and is_module(rawget(owner, name)) and
         replace(o, ("%s is not a method: %s.%s%s"):format(name, path, name,
                                                           call.args))
end

-- self.encode(x), a method of the user's module, whose self is then x: the
-- error is in encode, at a line that uses self.
local function own_method_with_dot(o, line, value)
  local inner, outer = o.frames[1], o.frames[2]
  if not inner or not outer or inner.tail or not line:find "%f[%w_]self%f[^%w_]"
     or is_module(value "self") or debug.getlocal(inner.func, 1) ~= "self" then
    return false
  end
  local text = runtime_errors.line(outer.text or "", outer.line)
  for _, call in ipairs(expressions.calls(text or "", inner.name)) do
    if call.mark == "." and call.owner then
      o.at, o.file, o.line, o.source = outer, outer.file, outer.line, text
      return replace(o, ("%s is a method: %s:%s%s"):format(
        call.name, call.owner, call.name, call.args))
    end
  end
  return false
end

-- Explains the error of a call with the wrong one of `.' and `:'; true if it is
-- one.
function network_misuse.explain(o, line, value)
  local tail = forward_by_tail_call(o)
  if tail then return replace(o, tail) end
  for _, text in ipairs(lines(o, line)) do
    for _, call in ipairs(expressions.calls(text)) do
      if forward_with_dot(o, call, value) or
         layer_with_colon(o, call, value) then return true end
    end
  end
  return own_method_with_dot(o, line, value)
end

-- The class of a module that the text calls and whose forward returned nothing.
local function without_result(text, value)
  for _, call in ipairs(expressions.calls(text)) do
    local m = value((call.owner or "") .. call.mark .. call.name)
    local forward = is_module(m) and rawget(m, "_silent")
    if forward and rawequal(forward, m.forward) then return m.__name end
  end
end

-- What was last assigned to a variable, in the chunk of the error or in the
-- session.
local function assigned(name, scope)
  local found = scope and nil_argument.assigned(name, scope.text or "",
                                                (scope.line or 0) + 1)
  if found then return found end
  for typed in require "nacre.session_log".recent() do
    found = nil_argument.assigned(name, typed)
    if found then return found end
  end
  return ""
end

-- Explains that a value is nil because a forward has no return.
function network_misuse.explain_nil(o, line, value, scope)
  local lua, name = o.message:match "^attempt to ([%l ]+ a nil value)(.*)$"
  name = name and name:match "'([%w_]+)'"
  if not lua and o.cause ~= "missing" and o.got ~= "nil" then return false end
  local class = without_result(line, value) or
                name and without_result(assigned(name, scope), value)
  if not class then return false end
  if name then o.message = name .. " is nil" end
  o.hint = ("the forward of %s returned nothing"):format(class)
  return true
end

-- net:updateOutput(x), nn.Sequential():add(layer): methods of Torch7's nn
function network_misuse.method_hint(o, line, value)
  local name = o.message:match
    "^attempt to call a nil value %(method '([%w_]+)'%)"
  local call = name == "add" and expressions.calls(line, name)[1]
  if call and (call.owner or ""):find "%f[%w_]Sequential%s*%b()$" then
    return "a Sequential takes a further layer by append"
  end
  return name and unknown_names.hint(name, line, value)
end

-- Calls each(tensor) for the tensors in a table and in the tables in it.
local function each_tensor(t, each, seen)
  seen[t] = true
  for _, v in next, t do
    if istensor(v) then each(v)
    elseif type(v) == "table" and not seen[v] then each_tensor(v, each, seen)
    end
  end
end

-- What hints say of the network in which an error occurred: {name= what the
-- user calls it, layer= what of it failed, there= the set of the dtypes and the
-- devices of its tensors}; the operands that are its own get `own'.
function network_misuse.facts(err, args, name)
  local memory, there = {}, {}
  each_tensor(err.network, function(t)
    memory[nacre._storage_id(t)] = true
    if t:is_floating_point() then there[t.dtype] = true end
    there[t.device] = true
  end, {})
  for i, a in ipairs(args) do
    local t = err.args[i].tensor
    a.own = istensor(t) and memory[nacre._storage_id(t)]
  end
  local dot = err.path:find "^[%a_]" and "." or ""
  return {name = name, layer = name and name .. dot .. err.path, there = there}
end

-- What the user calls that of the network which is to be converted to a dtype
-- or a device: all of it, or the layer if a part of it is there already.
local function to_convert(net, to)
  return net and (net.there[to] and net.layer or net.name)
end

-- "x:to("cpu")", or that in words that begin with a verb
local function converted(verb, a, to)
  return a.name and ('%s:to("%s")'):format(a.name, to) or
         ('%s%s with :to("%s")'):format(verb, a.role, to)
end

local function either(one, other)
  return other and ("%s, or %s"):format(one, other) or one
end

-- The method of a module that converts to each dtype.
local methods = {float16 = "half", bfloat16 = "bfloat16", float32 = "float",
                 float64 = "double"}

-- net(x) after net:half(): the input has another dtype than the parameters.
function network_misuse.dtype_hint(o)
  local role, from, into = o.message:match
    "^dtypes differ: (%w+) is (%w+), weight is (%w+)$"
  if not o.module or not methods[into] then return nil end
  local input = {role = role}
  for _, a in ipairs(o.args) do
    if a.role == role then input = a end
  end
  local text = converted("convert ", input, into)
  local net = methods[from] and to_convert(o.net, from)
  return either(text, net and ("%s:%s()"):format(net, methods[from]))
end

-- net(x:cuda()): the input is on another device than the parameters, which are
-- moved by the module: a moved copy of one would be no parameter.
function network_misuse.device_hint(o)
  local j, there, i, here = (o.hint or ""):match
    '^\2(%d):to%("([^"]+)"%), or \2(%d):to%("([^"]+)"%)$'
  local first, second
  for _, a in ipairs(o.net and j and o.args or {}) do
    if a.fills:find(i, 1, true) then first = a end
    if a.fills:find(j, 1, true) then second = a end
  end
  if not first or not second or not (first.own or second.own) then
    return nil
  end
  if first.own and not second.own then
    first, second, there, here = second, first, here, there
  end
  local net = to_convert(o.net, there)
  local text = net and ('%s:to("%s")'):format(net, there) or
               ('move the module with :to("%s")'):format(there)
  return either(text, not first.own and
                      converted(net and "move " or "", first, here))
end

return network_misuse
