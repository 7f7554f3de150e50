-- SPDX-License-Identifier: MIT
-- composed.lua - how an operation is written in Lua over those of the core:
--
--   all.define("linalg.inv", "A:tensor", "the inverse", function(A) ... end)
--
-- The signature is read as families.def has it; the function gets its
-- arguments in that order, checked, with defaults. An operation whose first
-- parameter is called self is a method, too, and "self:inplace" gives name_.
local all, fail = ...

all.functions, all.methods, all.info, all.fail = {}, {}, {}, fail
local spaces = {}

local function kindof(v)
  if nacre.is_tensor(v) then return "a tensor" end
  local t = type(v)
  return t == "nil" and "nothing" or math.type(v) == "integer" and "an integer"
         or "a " .. t
end

-- ---- types of parameters: what they are called, and whether a value fits

local isint = math.tointeger

local function islist(v, of)
  if type(v) ~= "table" then return false end
  for i = 1, rawlen(v) do
    if not of(rawget(v, i)) then return false end
  end
  return true
end

local types = {
  tensor = { "a tensor", nacre.is_tensor },
  operand = { "a tensor or a number", function(v)
    return nacre.is_tensor(v) or type(v) == "number" or type(v) == "boolean"
  end },
  tensors = { "a list of tensors", function(v)
    return islist(v, nacre.is_tensor)
  end },
  int = { "an integer",
          function(v) return type(v) == "number" and isint(v) end },
  ints = { "an integer or a list of them", function(v)
    return type(v) == "number" and isint(v) or
           islist(v, function(x) return type(x) == "number" and isint(x) end)
  end },
  num = { "a number", function(v) return type(v) == "number" end },
  bool = { "true or false", function(v) return type(v) == "boolean" end },
  text = { "a text", function(v) return type(v) == "string" end },
  dtype = { "a dtype", function(v)
    return type(v) == "string" and nacre[v] == v
  end },
  any = { "a value", function() return true end },
}
types.inplace, types.dim, types.dims = types.tensor, types.int, types.ints
types.size = types.ints       -- at the end also as numbers one by one

local function choices(text)
  local set = {}
  for word in text:gmatch "[^|]+" do set[word] = true end
  return { "one of " .. text, function(v) return set[v] == true end }
end

local values = { ["true"] = true, ["false"] = false }

local function default(text)
  if values[text] ~= nil then return values[text] end
  if text == "nil" then return nil end
  return tonumber(text) or text
end

local function parse(signature)
  local s = { params = {}, byname = {}, positional = nil }
  local args, results = signature:match "^(.-)%s*%->%s*(.*)$"
  s.results = results or "tensor"
  for part in (args or signature):gmatch "[^,]+" do
    part = part:match "^%s*(.-)%s*$"
    if part == "*" then s.positional = #s.params
    else
      local name, kind, value = part:match "^([%w_]+):?([%w_|]*)=?(.*)$"
      if kind == "" then kind = "tensor" end
      local known = types[kind] or choices(kind)
      s.params[#s.params + 1] = {
        name = name, type = kind, what = known[1], fits = known[2],
        shown = value,
        optional = value ~= "", default = value ~= "" and default(value),
      }
      if value == "nil" then s.params[#s.params].default = nil end
      s.byname[name] = #s.params
      s.inplace = s.inplace or kind == "inplace"
    end
  end
  s.positional = s.positional or #s.params
  return s
end

local function shown(name, s)
  local parts = {}
  for i, p in ipairs(s.params) do
    if i == s.positional + 1 then parts[#parts + 1] = "*" end
    local value = tonumber(p.shown) or values[p.shown] ~= nil or
                  p.shown == "nil" or p.shown == ""
    parts[#parts + 1] = p.name .. (p.optional and "=" ..
                                   (value and p.shown or
                                       '"' .. p.shown .. '"') or "")
  end
  return ("%s(%s) -> %s"):format(name, table.concat(parts, ", "), s.results)
end

-- A table whose keys are names holds options.
local function isoptions(v)
  return type(v) == "table" and #v == 0 and type(next(v)) == "string"
end

-- f(t, {}): a table at the end that p, which stands there, takes for no list.
local function nooptions(v, p, behind)
  return type(v) == "table" and next(v) == nil and
         (behind or p.optional and not p.fits(v))
end

local function unknown(name, s, key)
  for known in pairs(s.byname) do
    if known:sub(1, 3) == key:sub(1, 3) then
      fail(name, ("no argument '%s', did you mean '%s'?"):format(key, known))
    end
  end
  fail(name, ("no argument '%s'"):format(key))
end

-- A tensor without dimensions is a number where a number is wanted, unless
-- its gradient would be lost.
local function plain(v)
  if nacre.is_tensor(v) and v:dim() == 0 and
     not (v.requires_grad and nacre.is_grad_enabled()) then return v:item() end
  return v
end

-- The arguments in order; and what is to take the result.
local function read(name, s, ...)
  local n, args = select("#", ...), { ... }
  local named = n > 0 and isoptions(args[n]) and args[n] or nil
  if named or n > 0 and nooptions(args[n], s.params[n], n > s.positional) then
    n = n - 1
  end
  local last = s.params[s.positional]
  if last and last.type == "size" and type(args[s.positional]) == "number" then
    args[s.positional] = { table.unpack(args, s.positional, n) }
    n = s.positional
  end
  if n > s.positional then
    fail(name, ("takes at most %d argument%s, got %d")
               :format(s.positional, s.positional == 1 and "" or "s", n))
  end
  local v, out = {}, nil
  for i = 1, n do v[i] = args[i] end
  for key, value in pairs(named or {}) do
    local i = s.byname[key]
    if key == "out" and s.results:sub(1, 6) == "tensor" then
      out = value
      if not nacre.is_tensor(out) then fail(name, "out must be a tensor") end
    elseif not i then unknown(name, s, key)
    elseif v[i] ~= nil then fail(name, key .. " is given twice")
    else v[i] = value end
  end
  for i, p in ipairs(s.params) do
    if v[i] == nil then
      if not p.optional then
        fail(name, ("%s is missing: %s expected"):format(p.name, p.what))
      end
      v[i] = p.default
    elseif not p.fits(v[i]) and p.fits(plain(v[i])) then
      v[i] = plain(v[i])
    elseif not p.fits(v[i]) then
      local got = type(v[i]) == "string" and "'" .. v[i] .. "'" or kindof(v[i])
      fail(name, ("%s must be %s, not %s"):format(p.name, p.what, got))
    end
  end
  return v, out
end

local function into(out, y, ...)
  if not out then return y, ... end
  nacre.clone(y, { out = out })
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
  local short = name:match "[^.]+$"
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
  local info = { name = name, kind = "function", doc = doc,
                 method = method or false,
                 inplace = false, ["function"] = true,
                 signature = shown(name, s), params = s.params,
                 into = s.inplace, out = s.results == "tensor" }
  all.info[name] = info
  all.info[f] = all.info[f] or info
end

function all.define(name, signature, doc, fn)
  local s = parse(signature)
  local f = wrap(name, s, fn)
  register(name, f, doc, s)
  if s.inplace then
    -- What f keeps of self for its gradient is not to be written over.
    local function into(self, ...)
      local kept = self
      if nacre.is_tensor(self) and self.requires_grad and
         nacre.is_grad_enabled() then kept = self:clone() end
      local y = f(kept, ...)
      return nacre.clone(y, { out = self })
    end
    all.methods[name .. "_"] = into
    local info = setmetatable({ inplace = true }, { __index = all.info[name] })
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
