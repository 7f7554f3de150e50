-- SPDX-License-Identifier: MIT
-- arguments.lua - reads the arguments of functions written in Lua by a
-- signature in the syntax of operators.def: checks them and returns them in
-- order, with defaults. table_arguments.c loads it; composed.lua and
-- autograd.lua use it. Its rules and messages are those of arguments.c.

local fail, plaintable, odd, parsed = ...

-- A noun phrase for v, used in messages.
local function kindof(v)
  if nacre.is_tensor(v) then return "a tensor" end
  local t = type(v)
  return t == "nil" and "nothing" or math.type(v) == "integer" and "an integer"
         or "a " .. t
end

-- ---- types of parameters: the noun for messages, and whether a value fits

local isint = math.tointeger

local function islist(v, of)
  if type(v) ~= "table" then return false end
  for i = 1, rawlen(v) do
    if not of(rawget(v, i)) then return false end
  end
  return true
end

local function is_callable(v)
  local meta = type(v) == "table" and getmetatable(v)
  return type(v) == "function" or type(meta) == "table" and meta.__call ~= nil
end

local types = {
  tensor = {"a tensor", nacre.is_tensor},
  operand = {"a tensor or a number", function(v)
    return nacre.is_tensor(v) or type(v) == "number" or type(v) == "boolean"
  end},
  tensors = {"a list of tensors", function(v)
    return islist(v, nacre.is_tensor)
  end},
  int = {"an integer",
         function(v) return type(v) == "number" and isint(v) end},
  ints = {"an integer or a list of them", function(v)
    return type(v) == "number" and isint(v) or
          islist(v, function(x) return type(x) == "number" and isint(x) end)
  end},
  num = {"a number", function(v) return type(v) == "number" end},
  nums = {"a number or a list of them", function(v)
    return type(v) == "number" or
          islist(v, function(x) return type(x) == "number" end)
  end},
  bool = {"true or false", function(v) return type(v) == "boolean" end},
  text = {"a string", function(v) return type(v) == "string" end},
  file = {"the name of a file", function(v) return type(v) == "string" end},
  dtype = {"a dtype", function(v)
    return type(v) == "string" and nacre[v] == v
  end},
  fn = {"a function", is_callable},
  functions = {"a function or a list of them", function(v)
    return is_callable(v) or type(v) == "table" and rawlen(v) > 0 and
           islist(v, is_callable)
  end},
  several = {"a tensor or a list of tensors", function(v)
    return nacre.is_tensor(v) or
           type(v) == "table" and rawlen(v) > 0 and islist(v, nacre.is_tensor)
  end},
  parameters = {"a module, a tensor or a list of tensors", function(v)
    return nacre.is_tensor(v) or islist(v, nacre.is_tensor)
  end},
  lengths = {"a tensor or a list of integers", function(v)
    return nacre.is_tensor(v) or islist(v, function(x)
      return type(x) == "number" and isint(x)
    end)
  end},
  gradients = {"a tensor, or a list of tensors with false for none",
               function(v)
    return nacre.is_tensor(v) or islist(v, function(x)
      return x == false or nacre.is_tensor(x)
    end)
  end},
  device = {"a device", function(v)
    return type(v) == "string" or type(v) == "userdata"
  end},
  module = {"a module", function(v)
    return type(v) == "table" and rawget(v, "_fields") ~= nil
  end},
  optimizer = {"an optimizer", function(v)
    local groups = type(v) == "table" and rawget(v, "param_groups")
    return type(groups) == "table" and type(groups[1]) == "table"
  end},
  table = {"a table", function(v) return type(v) == "table" end},
  any = {"a value", function() return true end},
}
local tensorial = {tensor = true, operand = true, several = true,
                   gradients = true}
local whole = {int = true, ints = true, dim = true, dims = true, size = true}
types.dim, types.dims = types.int, types.ints
types.size = types.ints       -- as the last parameter also single numbers

-- The type of "a|b|c": one of these strings.
local function choices(text)
  local set = {}
  for word in text:gmatch "[^|]+" do set[word] = true end
  return {"one of " .. text, function(v) return set[v] == true end}
end

-- The signature of the function `name' as a table: {signature=, params=,
-- positional=, results=, method=, inplace=} of C; byname, the position of each
-- parameter; names, those that a table of arguments may have. A parameter also
-- has what and fits, of its type.
local function parse(name, text)
  local s = parsed(name, text)
  s.byname, s.names = {}, {"out"}
  for i, p in ipairs(s.params) do
    local known = p.choices and not p.open and choices(p.choices) or
                  types[p.type]
    p.what, p.fits = known[1], known[2]
    s.byname[p.name] = i
    s.names[i + 1] = p.name
  end
  return s
end

-- True for a table whose keys are names; an object that can be called, as a
-- module, is a value.
local function isoptions(v, s)
  if type(v) ~= "table" or #v > 0 then return false end
  local meta = getmetatable(v)
  if type(meta) == "table" and rawget(meta, "__call") then return false end
  local key, value = next(v)
  if key == "n" and value == 0 and not s.byname.n then   -- table.pack()
    key = next(v, key)
  end
  return type(key) == "string"
end

-- f(t, {}): an empty table as the last argument that parameter p, at its
-- position, does not accept.
local function nooptions(v, p, behind)
  return type(v) == "table" and next(v) == nil and
         (behind or p.optional and not p.fits(v))
end

-- Raises the error for an unknown named argument.
local function unknown(name, s, key)
  for known in pairs(s.byname) do
    if known:sub(1, 3) == key:sub(1, 3) then
      fail(name, ("no argument '%s', did you mean '%s'?"):format(key, known),
           {cause = "argument", name = key})
    end
  end
  local list = {}
  for i, p in ipairs(s.params) do list[i] = p.name end
  fail(name, ("no argument '%s'"):format(key),
       {cause = "argument", name = key,
        hint = list[1] and "it takes " .. table.concat(list, ", ")})
end

-- The arguments after the positional ones as text, "size=3", if each can be
-- given by name; otherwise nil.
local function pairsof(s, args, n)
  local list, k = {}, s.positional + 1
  for i = s.positional + 1, n do
    while s.params[k] and not s.params[k].fits(args[i]) do k = k + 1 end
    if not s.params[k] or type(args[i]) ~= "number" and
       type(args[i]) ~= "boolean" and type(args[i]) ~= "string" then
      return nil
    end
    list[#list + 1] = s.params[k].name ..
      (type(args[i]) == "string" and "=%q" or "=%s"):format(args[i])
    k = k + 1
  end
  return table.concat(list, ", ")
end

-- Raises the error for surplus arguments, with the messages of
-- extra_arguments.c.
local function toomany(name, s, args, n)
  local given = pairsof(s, args, n)
  if given then
    fail(name, (given:gsub("=[^,]*", ""):gsub(", ", " and ")) ..
         (n > s.positional + 1 and " are" or " is") .. " given by name",
         ("%s(..., {%s})"):format(name, given))
  end
  local self = s.method and 1 or 0
  local most = s.positional - self
  fail(name, ("takes %s argument%s%s, got %d"):format(
    most == 0 and "no" or "at most " .. most, most < 2 and "" or "s",
    self == 1 and " besides self" or "", n - self))
end

-- A 0-d tensor as a number, unless its gradient would be lost; any other value
-- unchanged.
local function plain(v)
  if nacre.is_tensor(v) and v:dim() == 0 and
     not (v.requires_grad and nacre.is_grad_enabled()) then return v:item() end
  return v
end

local lists = {tensors = true, several = true, gradients = true, ints = true,
               dims = true, size = true, nums = true, functions = true,
               parameters = true, lengths = true}

-- For a parameter that takes a list: a plain list made of v. Raises an error
-- for keys that are not elements and for holes.
local function checklist(name, p, v)
  if not lists[p.type] or type(v) ~= "table" then return v end
  v = plaintable(v)
  local what = odd(v)
  if what then fail(name, ("%s: %s"):format(p.name, what)) end
  for i = 1, rawlen(v) do
    if rawget(v, i) == nil then
      fail(name, ("element %d of %s is nil: a list has no holes")
                 :format(i, p.name))
    end
  end
  return v
end

-- A module in the place of a list of tensors is its parameters.
local function parameters_of(p, v)
  if p and (p.type == "tensors" or p.type == "several" or
            p.type == "parameters") and
     type(v) == "table" and rawget(v, "_fields") then
    local list = v:parameters()
    return table.move(list, 1, #list, 1, {})
  end
  return v
end

-- The arguments as `read' gives them if there is nothing to do but to fill in
-- defaults: none is a table, and each fits as it is. Otherwise nil.
local function ready(s, n, ...)
  if n > s.positional then return nil end
  local v = {...}
  for i, p in ipairs(s.params) do
    local a, kind = v[i], p.type
    if a == nil then
      if not p.optional then return nil end
      v[i] = p.default
    elseif type(a) == "table" or kind == "size" or not p.fits(a) or
           whole[kind] and math.type(a) ~= "integer" then
      return nil
    end
  end
  return v
end

-- How many of n arguments are given by place, and the options, if the last one
-- has them. Tables become what their parameter takes.
local function split_options(s, args, n)
  for i = 1, n do args[i] = parameters_of(s.params[i], args[i]) end
  local named
  if type(args[n]) == "table" then
    local p = n <= s.positional and s.params[n]
    local kind = p and p.type
    local is_object = (kind == "module" or kind == "optimizer") and
                      p.fits(args[n])
    if not is_object and kind ~= "any" and kind ~= "fn" and kind ~= "table" then
      args[n] = plaintable(args[n], s.names)
    end
    if not is_object and kind ~= "table" and isoptions(args[n], s) then
      named = args[n]
    end
  end
  if named or n > 0 and nooptions(args[n], s.params[n], n > s.positional) then
    n = n - 1
  end
  return n, named or {}
end

-- The arguments given by place: f(x, 2, 3) for a size is f(x, {2, 3}).
local function by_place(name, s, args, n)
  local last = s.params[s.positional]
  if last and last.type == "size" and type(args[s.positional]) == "number" then
    args[s.positional] = {table.unpack(args, s.positional, n)}
    n = s.positional
  end
  if n == s.positional + 1 and args[n] == nil then
    n = n - 1                 -- options that a caller passes on and has not
  end
  if n > s.positional then toomany(name, s, args, n) end
  return table.move(args, 1, n, 1, {})
end

-- Adds the options to the arguments v; returns the tensor given as out.
local function add_options(name, s, v, options)
  local out
  for key, value in pairs(options) do
    local i = s.byname[key]
    if key == "out" and s.takes_out then
      out = value
      if not nacre.is_tensor(out) then fail(name, "out must be a tensor") end
    elseif not i then unknown(name, s, key)
    elseif v[i] ~= nil then fail(name, key .. " is given twice")
    else v[i] = parameters_of(s.params[i], value) end
  end
  return out
end

local function fail_type(name, p, a)
  local got = type(a) == "string" and "'" .. a .. "'" or kindof(a)
  fail(name, ("%s must be %s, not %s"):format(p.name, p.what, got),
       {cause = tensorial[p.type] and "tensor" or "type", name = p.name,
        got = type(a)})
end

-- What parameter p gets for the argument a.
local function checked(name, p, a)
  if a == false and p.optional and p.type == "tensor" then
    a = nil                   -- linear(x, w, false): without bias
  end
  if a ~= nil then a = checklist(name, p, a) end
  if a == nil then
    if not p.optional then
      fail(name, ("%s is missing: %s expected"):format(p.name, p.what),
           {cause = "missing", name = p.name})
    end
    a = p.default
  elseif not p.fits(a) then
    local given = a
    a = plain(a)
    if not p.fits(a) then fail_type(name, p, given) end
  end
  -- 2.0 counts as an integer and becomes one
  return whole[p.type] and math.type(a) == "float" and isint(a) or a
end

-- Returns the table of arguments in the order of the parameters, and the tensor
-- given as out. Raises an error for wrong arguments.
local function read(name, s, ...)
  local v = ready(s, select("#", ...), ...)
  if v then return v end
  local args = {...}
  local n, options = split_options(s, args, select("#", ...))
  v = by_place(name, s, args, n)
  local out = add_options(name, s, v, options)
  for i, p in ipairs(s.params) do v[i] = checked(name, p, v[i]) end
  return v, out
end

return {parse = parse, read = read}
