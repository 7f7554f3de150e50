-- SPDX-License-Identifier: MIT
-- composed.lua - defines operations that are written in Lua over those of the
-- core. composed.c loads it first and passes the table that it fills, the
-- function that raises errors, and the module of arguments.lua:
--
-- all.define("linalg.inv", "A:tensor", "the inverse", function(A) ... end)
--
-- The signature has the syntax of operators.def. The function receives its
-- arguments in that order, checked, with defaults. An operation whose first
-- parameter is called self is also a method; "self:inplace" adds the in-place
-- form name_.
local all, fail, arguments = ...

all.functions, all.methods, all.info, all.fail = {}, {}, {}, fail
local spaces = {}

local parse, read, shown = arguments.parse, arguments.read, arguments.shown

-- Copies the first result to the tensor out, if it is given.
local function into(out, y, ...)
  if not out then return y, ... end
  nacre.clone(y, {out = out})
  return out, ...
end

-- A list of the tensors among the arguments: name, tensor, name, tensor, ...
local function operands(s, v)
  local list = {}
  for i, p in ipairs(s.params) do
    if nacre.is_tensor(v[i]) then
      list[#list + 1] = p.name
      list[#list + 1] = v[i]
    elseif p.type == "tensors" then
      for k, t in ipairs(v[i] or {}) do
        list[#list + 1] = ("%s %d"):format(p.name, k)
        list[#list + 1] = t
      end
    end
  end
  return list
end

-- Replaces the roles of an error's operands in a message by the names in `list'
-- of the same tensors. Returns nil if the message names an operand that is not
-- in the list.
local function reworded(text, args, list)
  for _, a in ipairs(args) do
    local word, given = "%f[%w_]" .. a.role .. "%f[^%w_]", nil
    for i = 2, #list, 2 do
      if rawequal(list[i], a.tensor) then given = given or list[i - 1] end
    end
    if not given and text:find(word) then return nil end
    if given then text = text:gsub(word, given) end
  end
  return text
end

-- A hint for operands on different devices: how to move one to the device of
-- the other.
local function moved(list)
  local function on(i) return list[i].device end
  local function by(i, device)
    return ('%s:to("%s")'):format(list[i - 1], device)
  end
  for i = 4, #list, 2 do
    if on(i) ~= on(2) then
      return by(i, on(2)) .. ", or " .. by(2, on(i))
    end
  end
end

-- Makes an error of an operation that `name' calls an error of `name' itself,
-- with the arguments of the user as operands, unless the message names another
-- tensor.
local function renamed(err, name, s, v)
  local far = type(err) == "table" and err.code == "EDEVICE"
  if type(err) ~= "table" or type(err.args) ~= "table" or
     not (err.args[1] or far) or err.first or err.op == name or
     err.code == "EINTR" then
    return err
  end
  local list = operands(s, v)
  local message = reworded(err.message, err.args, list)
  err.op = name
  if not list[1] or not message then return err end
  local _, own = pcall(fail, name, message, nil, table.unpack(list))
  err.hint = far and moved(list) or
             err.hint and reworded(err.hint, err.args, list)
  err.message, err.args = message, own.args
  return err
end

-- The function that the user calls: reads the arguments, calls fn in a
-- protected call, and converts errors.
local function wrap(name, s, fn)
  local short = name:find "^linalg%." and name or name:match "[^.]+$"
  local function finish(v, out, ok, y, ...)
    if not ok then error(renamed(y, short, s, v), 0) end
    return into(out, y, ...)
  end
  return function(...)
    local v, out = read(name, s, ...)
    return finish(v, out, pcall(fn, table.unpack(v, 1, #s.params)))
  end
end

-- The table for a path: "nn.functional" is nacre.nn.functional.
local function space(path)
  if path == "" then return all.functions end
  if spaces[path] then return spaces[path] end
  local parent, last = path:match "^(.-)%.?([^.]+)$"
  local t = {}
  space(parent)[last] = t
  spaces[path] = t
  return t
end

-- Stores f under its name and its description under its name and under f.
local function register(name, f, doc, s)
  local path, last = name:match "^(.-)%.?([^.]+)$"
  local method = path == "" and s.params[1] and s.params[1].name == "self"
  space(path)[last] = f
  if method then all.methods[last] = f end
  local info = {name = name, kind = "function", doc = doc,
                method = method or false,
                inplace = false, ["function"] = true,
                signature = shown(name, s), params = s.params,
                into = s.inplace, out = s.results == "tensor"}
  all.info[name] = info
  all.info[f] = all.info[f] or info
end

-- "1 element", "2 elements"
function all.elements(n)
  return ("%d element%s"):format(n, n == 1 and "" or "s")
end

-- Raises an error if there is no memory for a tensor of this size on the device
-- of `like'. An operation that builds its result from parts calls it first, so
-- that it fails before it has created many of them.
function all.room(op, like, size, dtype)
  local ok, t = pcall(nacre.empty, size, {dtype = dtype or like.dtype,
                                          device = like.device})
  if ok then return t:free() end
  if type(t) == "table" then t.op = op end
  error(t, 0)
end

-- Defines an operation; returns the function.
function all.define(name, signature, doc, fn)
  local s = parse(signature)
  local f = wrap(name, s, fn)
  register(name, f, doc, s)
  if s.inplace then
    -- in place: fn gets a copy of self if the operation is recorded, because
    -- the tape saves values that clone overwrites
    local g = wrap(name .. "_", s, fn)
    local function into(self, ...)
      local kept = self
      if nacre.is_tensor(self) and self.requires_grad and
         nacre.is_grad_enabled() then kept = self:clone() end
      local y = g(kept, ...)
      return nacre.clone(y, {out = self})
    end
    all.methods[name .. "_"] = into
    local info = setmetatable({inplace = true}, {__index = all.info[name]})
    all.info[into] = info
  end
  return f
end

-- An alias for a function of Lua or of the core.
function all.alias(name, f)
  local path, last = name:match "^(.-)%.?([^.]+)$"
  space(path)[last] = f
  local info = all.info[f]
  if info then
    local copy = {}
    for k, v in pairs(info) do copy[k] = v end
    copy.name, copy.alias = name, info.alias or info.name
    all.info[name] = copy
  end
end
