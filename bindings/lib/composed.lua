-- SPDX-License-Identifier: MIT
-- composed.lua - how an operation is written in Lua over those of the core:
--
--   all.define("linalg.inv", "A:tensor", "the inverse", function(A) ... end)
--
-- The signature is read as operators.def has it; the function gets its
-- arguments in that order, checked, with defaults. An operation whose first
-- parameter is called self is a method, too, and "self:inplace" gives name_.
local all, fail, arguments = ...

all.functions, all.methods, all.info, all.fail = {}, {}, {}, fail
local spaces = {}

local parse, read, shown = arguments.parse, arguments.read, arguments.shown

local function into(out, y, ...)
  if not out then return y, ... end
  nacre.clone(y, {out = out})
  return out, ...
end

-- The tensors among arguments, each behind what it is called.
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

-- A text with what operands are called in a list of others; nil if it speaks
-- of one that is not there.
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

-- How the second of two operands, on different devices, gets to the first.
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

-- What failed in an operation that `name' is made of is a failure of name,
-- with the operands it was given, unless the message speaks of others.
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

-- The table of a name's space: "nn.functional" is nacre.nn.functional.
local function space(path)
  if path == "" then return all.functions end
  if spaces[path] then return spaces[path] end
  local parent, last = path:match "^(.-)%.?([^.]+)$"
  local t = {}
  space(parent)[last] = t
  spaces[path] = t
  return t
end

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

-- How many elements, for messages.
function all.elements(n)
  return ("%d element%s"):format(n, n == 1 and "" or "s")
end

-- Fails if there is no room for a tensor of that size on the device of another:
-- what is put together of parts would find out when it has made many.
function all.room(op, like, size, dtype)
  local ok, t = pcall(nacre.empty, size, {dtype = dtype or like.dtype,
                                          device = like.device})
  if ok then return t:free() end
  if type(t) == "table" then t.op = op end
  error(t, 0)
end

function all.define(name, signature, doc, fn)
  local s = parse(signature)
  local f = wrap(name, s, fn)
  register(name, f, doc, s)
  if s.inplace then
    -- What it keeps of self for its gradient is not to be written over.
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

-- Another name for a function, which may be one of the core's.
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
