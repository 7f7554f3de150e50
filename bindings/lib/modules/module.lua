-- SPDX-License-Identifier: MIT
-- module.lua - nn.Module: classes of networks, and the fields of an instance
-- that hold parameters, buffers and parts (other modules).
--
--   Net = nn.Module "Net"
--   function Net:init(hidden)
--     self.fc1, self.fc2 = nn.Linear(64, hidden), nn.Linear(hidden, 10)
--   end
--   function Net:forward(x) return self.fc2(self.fc1(x):relu()) end
--
-- A module is a plain table; its metatable records the fields that count when
-- they are first assigned:
--   a leaf tensor that requires a gradient, or nn.Parameter(t)   a parameter
--   another leaf tensor                    moved by `to', not in the state
--   a tensor of register_buffer, or nn.Buffer(t)   moved, and in the state
--   a module                               a part
--   a table that has modules or parameters, or tables with them: each counts
-- A name that begins with "_" and any other value do not count.
local all = ...
all.require "nacre.guards"
local fail, nn = all.fail, all.space "nn"

local Module = {__name = "Module"}
nn.Module, all.Module = Module, Module

-- The number of each tensor that nn.Parameter made, in the order of creation.
local declared = setmetatable({}, {__mode = "k"})
-- The kind of field that each tensor of nn.Buffer is.
local buffers = setmetatable({}, {__mode = "k"})
local made = 0                -- modules and parameters created so far

local function number()
  made = made + 1
  return made
end

local function is_module(v)
  return type(v) == "table" and rawget(v, "_fields") ~= nil
end
all.is_module = is_module

local MOST = 1000             -- more elements of a table are data

local function is_parameter(t)
  return declared[t] ~= nil or t.requires_grad and t.is_leaf
end
all.is_parameter = is_parameter

-- Does element v of a table count: a module, a parameter, a buffer?
local function is_element(v)
  return is_module(v) or
         nacre.is_tensor(v) and (buffers[v] ~= nil or is_parameter(v))
end

-- Is v a plain table that has such an element, or a table with one? `seen' has
-- the tables that were looked at.
local function has_elements(v, seen)
  if type(v) ~= "table" or getmetatable(v) ~= nil or seen[v] then
    return false
  end
  seen[v] = true
  local n = 0
  for _, element in next, v do
    if is_element(element) or has_elements(element, seen) then return true end
    n = n + 1
    if n == MOST then break end
  end
  return false
end

-- Marks t as a parameter, whether it requires a gradient or not.
function all.declare(t)
  declared[t] = declared[t] or number()
  return t
end

-- Lets t, or no longer, stand for a parameter: `own' is what this gave before.
function all.lend(t)
  local own = declared[t] or false
  declared[t] = own or number()
  return own
end
function all.take_back(t, own) declared[t] = own or nil end

-- Makes t, a copy, what the original is: a parameter, a buffer.
function all.declare_as(t, original)
  buffers[t] = buffers[original]
  return t.is_leaf and is_parameter(original) and all.declare(t) or t
end

local function counts(k, v)
  return not (type(k) == "string" and k:sub(1, 1) == "_") and
         (nacre.is_tensor(v) or is_module(v) or has_elements(v, {}))
end

-- Records field k of a module. Fields are in the order in which their values
-- were made: in self.a, self.b = A(), B() Lua assigns b first.
local function record(self, k, v, kind)
  if kind == nil and nacre.is_tensor(v) then
    kind = buffers[v] or is_parameter(v) and "parameter" or "plain"
  end
  if kind == "parameter" then all.declare(v) end
  local fields = rawget(self, "_fields")
  for i = 1, #fields do
    if fields[i].key == k then
      fields[i].kind = kind or fields[i].kind
      return
    end
  end
  local n = declared[v] or is_module(v) and v._made or number()
  local at = #fields + 1
  while at > 1 and fields[at - 1].made > n do at = at - 1 end
  table.insert(fields, at, {key = k, made = n, kind = kind or "part"})
end

local function assign(self, k, v)
  all.check_key(self.__name, k)
  rawset(self, k, v)
  if counts(k, v) then record(self, k, v) end
end

-- Records what was assigned to fields that held something else before.
local function record_others(self)
  local known, new = {}, {}
  for _, f in ipairs(self._fields) do known[f.key] = true end
  for k, v in next, self do
    if not known[k] and counts(k, v) then new[#new + 1] = k end
  end
  table.sort(new, function(a, b) return tostring(a) < tostring(b) end)
  for _, k in ipairs(new) do record(self, k, rawget(self, k)) end
end

-- A key as it is written in the names of a state: they count from 0.
local function label(k)
  return math.type(k) == "integer" and tostring(k - 1) or tostring(k)
end
all.label = label

-- The kind of tensor t in a field that was recorded as `kind'; nil if it does
-- not count.
local function kind_of(t, kind)
  if kind == "buffer" then return kind end
  if kind == "parameter" and t.is_leaf or is_parameter(t) then
    return "parameter"
  end
  return t.is_leaf and "plain" or nil
end

-- A key as it is written behind a table in Lua.
local function index_text(k)
  if type(k) ~= "string" then return ("[%s]"):format(k) end
  return k:find "^[%a_][%w_]*$" and "." .. k or ("[%q]"):format(k)
end

-- The same as the first step of a path.
function all.key_path(k) return (index_text(k):gsub("^%.", "")) end

-- The path of a part of the part at `path', as Lua writes it.
function all.join_path(path, below)
  local dot = path ~= "" and below:find "^[%a_]" and "." or ""
  return path .. dot .. below
end

-- The keys of a table of parts: the numbers, then the names in the order in
-- which their modules were made.
local function part_keys(t)
  local list, made = {}, {}
  for k, v in next, t do
    if math.type(k) == "integer" or type(k) == "string" then
      list[#list + 1] = k
      made[k] = math.type(k) == "integer" and k - math.maxinteger or
                is_module(v) and v._made or math.maxinteger
    end
  end
  table.sort(list, function(a, b)
    if made[a] ~= made[b] then return made[a] < made[b] end
    return tostring(a) < tostring(b)
  end)
  return list
end

-- Adds what counts of a plain table and of the tables in it.
local function add_table(add, t, name, path, seen)
  seen[t] = true
  for _, k in ipairs(part_keys(t)) do
    local v, below = t[k], name .. "." .. label(k)
    if is_element(v) then
      local kind = is_module(v) and "part" or buffers[v] or "parameter"
      if kind == "parameter" then all.declare(v) end
      add(below, path .. index_text(k), v, kind, t, k)
    elseif has_elements(v, {}) and not seen[v] then
      add_table(add, v, below, path .. index_text(k), seen)
    end
  end
end

-- Fails for a parameter that was replaced by a tensor without a gradient.
local function fail_lost(self, key)
  fail(self.__name, ("%s was a parameter and cannot become a plain tensor")
                    :format(all.key_path(key)),
       "nacre.nn.Parameter(t) is one; p.data = t writes into the old one")
end

local function check_parameter(self, f, v)
  if f.kind ~= "parameter" or not v.is_leaf then return end
  if is_parameter(v) then all.declare(v)
  else fail_lost(self, f.key) end
end

-- The fields that count, as a list of {name=, path=, value=, kind=, owner=,
-- key=}: the name as in a state, the path as Lua writes it; the kind is
-- "parameter", "buffer", "plain" or "part".
function all.members(self)
  local list = {}
  local function add(name, path, v, kind, owner, key)
    list[#list + 1] = {name = name, path = path, value = v, kind = kind,
                       owner = owner, key = key}
  end
  record_others(self)
  local names = rawget(self, "_names") or {}
  for _, f in ipairs(self._fields) do
    local v, key = rawget(self, f.key), names[f.key] or f.key
    local name, path = label(key), all.key_path(key)
    if nacre.is_tensor(v) then
      f.kind = buffers[v] or f.kind
      check_parameter(self, f, v)
      local kind = kind_of(v, f.kind)
      if kind then add(name, path, v, kind, self, f.key) end
    elseif is_module(v) then add(name, path, v, "part", self, f.key)
    elseif has_elements(v, {}) then add_table(add, v, name, path, {}) end
  end
  return list
end

-- ---- classes and instances

local function is_class(v)
  return type(v) == "table" and type(rawget(v, "__name")) == "string"
end

local function new(class)
  return setmetatable({_fields = {}, _made = number(), training = true}, class)
end

local function construct(class, ...)
  if class == Module then return Module:extend(...) end
  local self = new(class)
  if class.init then class.init(self, ...) end
  return self
end

setmetatable(Module, {__call = construct, __tostring = function()
  return "class Module"
end})

-- The fields of an instance that are no one else's are not shown by pairs.
local INTERNAL = {_fields = true, _made = true, _arguments = true,
                  _hooks = true, _names = true, _computed = true,
                  _silent = true}

local function next_field(self, k)
  local v
  repeat k, v = next(self, k) until not INTERNAL[k]
  return k, v
end

local function fields_of(self) return next_field, self, nil end

-- How many arguments the forward of a layer of the library takes, if not any
-- number; what the user's takes is his.
local limits = setmetatable({}, {__mode = "k"})
all.forward_limits = limits

local function fail_surplus(self, most, got, last)
  local key = type(last) == "table" and getmetatable(last) == nil and next(last)
  local name = self.__name
  fail(name, ("takes %d argument%s, got %d")
             :format(most, most == 1 and "" or "s", got),
       type(key) == "string" and rawget(nn, name) and
       ("options are those of the class: nn.%s({%s = ...})"):format(name, key)
       or nil)
end

local module_call = all.new_module_call(limits, declared, fail_surplus,
                                        fail_lost, all.unguarded)

local function set_class_field(class, key, v)
  all.check_key(class.__name, key)
  all.check_method_name(class.__name, key)
  local is_layer = key == "forward" and rawget(class, "_signature")
  local info = is_layer and debug.getinfo(v, "u")
  if not all.is_loaded and all.is_method(key, v) then
    local function is(self)
      return is_module(self) and all.is_instance(self, class)
    end
    v = all.guard_method(key, v, is, "net", class._takes and class._takes[key])
  end
  if is_layer then
    limits[v] = not info.isvararg and info.nparams - 1 or nil
  end
  rawset(class, key, v)
end

-- A class derived from this one: nn.Module "Net", or Net:extend "Deeper".
function Module:extend(name, base)
  if not is_class(self) then
    fail("extend", "extend is called on a class", 'Net:extend "Deeper"')
  elseif type(name) ~= "string" then
    fail("Module", 'a class has a name: nn.Module "Net"')
  elseif base ~= nil then
    fail("Module", "takes the name alone; a class derives another",
         is_class(base) and ('%s:extend "%s"'):format(base.__name, name) or
         nil)
  end
  local class = {__name = name, __call = module_call,
                 __newindex = rawget(self, "__newindex") or assign,
                 __pairs = rawget(self, "__pairs") or fields_of,
                 __len = rawget(self, "__len"),
                 __brief = function(m) return m:_brief() end,
                 __tostring = function(m) return m:_text() end}
  local function text(c) return "class " .. c.__name end
  class.__index = self._indexer and self._indexer(class) or class
  return setmetatable(class, {__index = self, __call = construct,
                              __newindex = set_class_field,
                       __tostring = text, __brief = text})
end

all.describe("nn.Module", Module,
             "a class of networks; it has init, forward and their parts",
             all.parse("nn.Module", "name:text -> class"))

-- Fails unless parameters can have this dtype.
function all.check_parameter_dtype(op, dtype)
  if dtype and not nacre.empty(0, {dtype = dtype}):is_floating_point() then
    fail(op, ("a module takes the dtype of a floating point number, not %s")
             :format(dtype))
  end
end

-- Sets the default device for the layer `name'.
local function set_device(name, device)
  local ok, err = pcall(nacre.set_default_device, device)
  if ok then return end
  if type(err) == "table" then err.op = name end
  error(err, 0)
end

-- f(...) with this default device and dtype, where they are given.
local function with_defaults(name, device, dtype, f, ...)
  local old_device = nacre.get_default_device()
  local old_dtype = nacre.get_default_dtype()
  all.check_parameter_dtype(name, dtype)
  if device then set_device(name, device) end
  if dtype then nacre.set_default_dtype(dtype) end
  local ok, err = pcall(f, ...)
  if device then nacre.set_default_device(old_device) end
  nacre.set_default_dtype(old_dtype)
  if not ok then error(err, 0) end
end

-- Fails if init was not called for an instance: nn.Linear.init(self, 2, 3).
function all.check_module(class, self)
  if not is_module(self) or not all.is_instance(self, class) then
    fail(class.__name, "init is a method of an instance",
         class.__name .. ".init(self, ...)")
  end
end

-- A class of the library. init(self, ...) gets the arguments of the signature,
-- checked, with defaults; each becomes a field of its name unless init has set
-- one. `more' are options that init does not get.
function all.layer(name, signature, doc, parent, init, more)
  local class = (parent or Module):extend(name)
  local s = all.parse("nn." .. name, signature .. " -> module")
  local all_options = all.parse("nn." .. name, signature .. (more or "")
                                               .. " -> module")
  class._signature = s
  function class.init(self, ...)
    all.check_module(class, self)
    local second = s.params[2]
    if s.params[1] and not (second and second.type == "tensor") and
       nacre.is_tensor((...)) and nacre.is_tensor((select(2, ...))) then
      fail(name, "an instance takes the tensors, the class the options",
           ("nacre.nn.%s()(...)"):format(name))
    end
    local v, n = all.read(name, all_options, ...), #s.params
    local device, dtype = v[n + 1], v[n + 2]
    v[n + 1], v[n + 2] = nil, nil
    rawset(self, "_arguments", v)
    if device or dtype then
      with_defaults(name, device, dtype, init, self, table.unpack(v, 1, n))
    elseif init then init(self, table.unpack(v, 1, n)) end
    for i, p in ipairs(s.params) do
      if rawget(self, p.name) == nil then rawset(self, p.name, v[i]) end
    end
  end
  all.describe("nn." .. name, class, doc, all_options)
  nn[name] = class
  return class
end

-- The same for a layer whose parameters are made on a device, in a dtype.
function all.weight_layer(name, signature, doc, parent, init)
  return all.layer(name, signature, doc, parent, init,
                   (signature == "" and "" or ", ")
                   .. "*, device:any|device=nil, dtype:dtype=nil")
end

-- Is m an instance of this class, or of one derived from it? nn.Linear:is(m)
function Module:is(m) return is_module(m) and all.is_instance(m, self) end

-- ---- calls

-- Fails if the arguments are those of `for part in m do'.
function all.check_no_loop(self, ...)
  if select("#", ...) == 2 and (...) == nil and select(2, ...) == nil then
    fail(self.__name, "a module is not an iterator",
         self._indexer and "for i, part in ipairs(m) do ... end" or
         "for name, part in m:named_children() do ... end")
  end
end

-- nn.Module's forward, for a class that has none.
function Module:forward(...)
  all.check_no_loop(self, ...)
  fail(self.__name, "the class has no forward",
       ("function %s:forward(x) ... end"):format(self.__name))
end

local function replaced(old, ...)
  return select("#", ...) > 0 and (...) ~= nil and table.pack(...) or old
end

-- A call of a module that has hooks; a hook may replace the arguments or the
-- results by what it returns.
function Module:_call_hooked(...)
  local args, hooks, backward = table.pack(...), self._hooks, false
  for _, h in ipairs(hooks) do
    if h.before then args = replaced(args, h.before(self, args)) end
    backward = backward or h.backward or h.before_backward
  end
  local watch = backward and nacre.is_grad_enabled() and
                all.watch_backward(self, hooks, args)
  local out = table.pack(self:forward(table.unpack(args, 1, args.n)))
  for _, h in ipairs(hooks) do
    if h.after then
      out = replaced(out, h.after(self, args, table.unpack(out, 1, out.n)))
    end
  end
  if watch then watch(out) end
  return table.unpack(out, 1, out.n)
end

-- Adds a hook that is called `before' or `after' forward, or in `backward'.
function all.add_hook(self, time, f)
  if type(f) ~= "function" then
    fail(self.__name, "a hook is a function, not a " .. type(f))
  end
  local hooks, hook = rawget(self, "_hooks") or {}, {[time] = f}
  rawset(self, "_hooks", hooks)
  hooks[#hooks + 1] = hook
  return {remove = function()
    for i, h in ipairs(hooks) do
      if h == hook then table.remove(hooks, i) end
    end
    if #hooks == 0 and rawget(self, "_hooks") == hooks then
      rawset(self, "_hooks", nil)
    end
  end}
end

-- f(module, args) before forward.
function Module:register_forward_pre_hook(f)
  return all.add_hook(self, "before", f)
end

-- f(module, args, output, ...) after forward.
function Module:register_forward_hook(f)
  return all.add_hook(self, "after", f)
end

-- ---- fields

-- A leaf that is a parameter of the module whose field it becomes.
all.define("nn.Parameter", "data:tensor, requires_grad:bool=true",
           "a leaf that becomes a parameter of the module it is assigned to",
function(t, requires_grad)
  return all.declare(t:detach():requires_grad_(requires_grad))
end)

-- A tensor that is a buffer of the module whose field it becomes.
all.define("nn.Buffer", "data:tensor, persistent:bool=true",
           "a tensor that becomes a buffer of the module it is assigned to",
function(t, persistent)
  t = t:detach():requires_grad_(t.requires_grad)
  buffers[t] = persistent and "buffer" or "plain"
  return t
end)

-- Fails unless a field of self that is(old) if it is there can be called this.
local function check_field_name(op, self, name, is)
  if type(name) ~= "string" or name == "" or name:find(".", 1, true) then
    fail(op, "a name is a text without dots, not "
             .. (type(name) == "string" and ("%q"):format(name) or type(name)))
  end
  local old = self[name]
  if old ~= nil and old ~= false and not is(old) then
    fail(op, ("%s already has a field '%s'"):format(self.__name, name))
  end
end

function Module:register_buffer(name, t, persistent)
  check_field_name("register_buffer", self, name, nacre.is_tensor)
  rawset(self, name, t)
  if t then record(self, name, t, persistent and "buffer" or "plain") end
end

function Module:register_parameter(name, t)
  check_field_name("register_parameter", self, name, nacre.is_tensor)
  rawset(self, name, t)
  if t then record(self, name, t, "parameter") end
end

-- Fails unless a part of self can be called this.
function all.check_part_name(self, name)
  check_field_name("add_module", self, name, is_module)
end

-- The part m under a name; "0" is the first element, [1].
function Module:add_module(name, m)
  all.check_part_name(self, name)
  if m ~= nil and not is_module(m) then
    fail("add_module", "a module is expected, not a "
                       .. (nacre.is_tensor(m) and "tensor" or type(m)))
  end
  local i = math.tointeger(tonumber(name))
  self[i and i + 1 or name] = m
end
Module.register_module = Module.add_module
