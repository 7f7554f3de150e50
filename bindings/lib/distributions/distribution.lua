-- SPDX-License-Identifier: MIT
-- distribution.lua - what all distributions of nacre.distributions share: their
-- parameters, shapes and checks. Names and values are PyTorch's; categories and
-- dimensions count from 1.
--
--   d = nacre.distributions.Normal(0, 1)
--   x = d:rsample(3)                    -- a gradient goes to the parameters
--   d:log_prob(x), d.mean, d:entropy()
--
-- A value has the shape sample_shape .. batch_shape .. event_shape. A class has
-- methods (_draw, _log_prob, _cdf, _icdf, entropy), and properties, functions
-- that compute a field such as mean when it is read.
local all = ...
all.require("nacre.base_class", "nacre.guards", "nacre.constraints")
local fail, constraints = all.fail, all.constraints
local distributions = all.space "distributions"

local Distribution = {name = "Distribution"}
all.Distribution = Distribution
-- Of each class: the functions that compute fields, those of classes above it
-- behind its own.
local properties_of = setmetatable({}, {__mode = "k"})
properties_of[Distribution] = {}
local function is_distribution(v) return all.is_instance(v, Distribution) end
all.is_distribution = is_distribution

all.base_class(Distribution, "distributions.Distribution",
               "a class of distributions, which has log_prob and sample, and "
               .. "properties such as mean; init calls Distribution.init(self, "
               .. "batch_shape, event_shape)")

-- Fields of instances: what is stored, a property, a method.
local function reader(class)
  local properties = properties_of[class]
  return function(self, key)
    local property = properties[key]
    if property then return property(self) end
    return class[key]
  end
end

-- A class derived from `parent', with its properties.
local function derive(parent, name, methods, properties)
  methods = methods or {}
  local class = all.derive(parent, name, methods)
  properties_of[class] = setmetatable(properties or {},
                                      {__index = properties_of[parent]})
  class.__index = reader(class)
  return class
end

local function derive_own(self, name)
  if type(self) ~= "table" or not properties_of[self] then
    fail("Distribution", "extend is called on a class")
  end
  if type(name) ~= "string" then
    fail("Distribution",
         'a class has a name: nacre.distributions.Distribution "Mine"')
  end
  return derive(self, name)
end
Distribution.extend = derive_own
getmetatable(Distribution).__call = derive_own

--
-- Shapes
--
local function joined(...)
  local out = {}
  for _, list in ipairs {...} do table.move(list, 1, #list, #out + 1, out) end
  return out
end
all.joined_shapes = joined

local function text_of(shape) return "{" .. table.concat(shape, ", ") .. "}" end

-- The shape to which both broadcast, or nil.
local function broadcast(a, b)
  local out, n = {}, math.max(#a, #b)
  for i = 0, n - 1 do
    local x, y = i < #a and a[#a - i] or 1, i < #b and b[#b - i] or 1
    if x ~= y and x ~= 1 and y ~= 1 then return nil end
    out[n - i] = x == 1 and y or x
  end
  return out
end

all.broadcast_shape = broadcast

--
-- Parameters
--
local validate = true

all.define("distributions.set_default_validate_args", "value:bool -> ",
           "whether distributions check their parameters and values, if "
           .. "validate_args is not given", function(value)
  validate = value
end)

-- The tensor v, or the number v as a tensor like others.
local function as_tensor(v, like)
  if nacre.is_tensor(v) then
    return v:is_floating_point() and v or v:to(like and like.dtype or
                                               nacre.get_default_dtype())
  end
  return nacre.tensor(v, {dtype = like and like.dtype or
                                  nacre.get_default_dtype(),
                          device = like and like.device})
end

-- The last `event' sizes of t.
local function own_shape(t, event)
  return table.move(t.shape, t:dim() - event + 1, t:dim(), 1, {})
end

-- The parameters given, tensors or numbers, as tensors; `events' has the number
-- of dimensions of an event in each, 0 if there is none: the others broadcast.
local function parameters(op, given, names, events)
  local like, batch, out = nil, {}, {}
  for _, name in ipairs(names) do
    local v = given[name]
    if v ~= nil and not nacre.is_tensor(v) and type(v) ~= "number" then
      fail(op, ("%s must be a tensor or a number, not a %s")
               :format(name, type(v)))
    end
    if nacre.is_tensor(v) and v:is_floating_point() then like = like or v end
  end
  for _, name in ipairs(names) do
    if given[name] ~= nil then
      local t, event = as_tensor(given[name], like), events[name] or 0
      if t:dim() < event then
        fail(op, ("{%s} has %d dimensions, at least %d are needed")
                 :format(name, t:dim(), event), nil, name, t)
      end
      local shape = table.move(t.shape, 1, t:dim() - event, 1, {})
      local wide = broadcast(batch, shape)
      if not wide then
        fail(op, ("{%s} does not broadcast with the other parameters, whose "
                  .. "shape is %s"):format(name, text_of(batch)), nil, name, t)
      end
      out[name], batch = t, wide
    end
  end
  for _, name in ipairs(names) do
    local t = out[name]
    out[name] = t and t:expand(joined(batch, own_shape(t, events[name] or 0)))
  end
  return out, batch
end

-- Fails unless the constraint holds for all of x.
local function check(op, name, x, constraint)
  local ok = constraint._holds(x:detach())
  if ok:all():item() then return end
  if constraint.event_dim > 0 then
    fail(op, ("{%s} must be %s"):format(name, constraint.text), nil, name, x)
  end
  local v = x:detach()
  if v:dim() > 0 then v = v:expand(ok.shape)[ok:logical_not()][1]
  else v = v:item() end
  fail(op, ("{%s} must be %s, but has %s"):format(name, constraint.text,
           v ~= v and "nan" or ("%g"):format(v)), nil, name, x)
end

-- Fills in an instance of a class of the library.
local function fill_in(self, op, given, validate_args)
  local class = getmetatable(self)
  local params, batch = parameters(op, given, class._names, class._events)
  rawset(self, "validate_args", validate_args)
  rawset(self, "_batch", batch)
  for name, t in pairs(params) do rawset(self, name, t) end
  if validate_args then
    for _, name in ipairs(class._names) do
      if params[name] then check(op, name, params[name],
                                 class._constraints[name]) end
    end
  end
end

-- nacre.distributions[name], a function that makes a distribution. The list
-- parameters_of has {name, constraint, event = dimensions, default = text} for
-- each parameter. `class' has the methods; _choose(op, given) checks which
-- parameters are given, _made(self, op) finishes an instance.
function all.distribution(name, parameters_of, doc, class, properties)
  local words, names, events, kinds = {}, {}, {}, {}
  for i, p in ipairs(parameters_of) do
    names[i], kinds[p[1]], events[p[1]] = p[1], p[2], p.event or p[2].event_dim
    words[i] = p[1] .. ":any" .. (p.default and "=" .. p.default or "")
  end
  local path = "distributions." .. name
  local s = all.parse(path, table.concat(words, ", ") .. ", *, " ..
                      "validate_args:bool=nil -> distribution")
  class = derive(class.parent or Distribution, name, class, properties)
  class._names, class._events, class._constraints = names, events, kinds
  local function construct(...)
    local v, given = all.read(name, s, ...), {}
    for i, p in ipairs(names) do given[p] = v[i] end
    if class._choose then class._choose(name, given) end
    local self = setmetatable({}, class)
    local checks = v[#names + 1]
    if checks == nil then checks = validate end
    fill_in(self, name, given, checks)
    if class._made then class._made(self, name) end
    return self
  end
  class._construct = construct
  distributions[name] = construct
  all.describe(path, construct, doc, s)
  return class
end

-- For classes whose parameters are given as probs or as logits.
function all.probs_or_logits(op, given)
  if (given.probs == nil) == (given.logits == nil) then
    fail(op, "one of probs and logits must be given")
  end
end

--
-- Values
--
function Distribution:init(batch_shape, event_shape, validate_args)
  all.check_instance(Distribution, self)
  rawset(self, "_batch", batch_shape or {})
  rawset(self, "_event", event_shape or {})
  if validate_args == nil then validate_args = validate end
  rawset(self, "validate_args", validate_args)
end

local properties = properties_of[Distribution]
function properties.batch_shape(self) return joined(rawget(self, "_batch")) end
function properties.event_shape(self)
  return joined(rawget(self, "_event") or {})
end
function properties.has_rsample(self) return self._reparametrized == true end
function properties.has_enumerate_support(self)
  return self._enumerate ~= nil
end
function properties.arg_constraints(self) return self._constraints end
function properties.stddev(self) return self.variance:sqrt() end

-- The shape of a draw.
local function extended(self, sample_shape)
  return joined(sample_shape or {}, self.batch_shape, self.event_shape)
end
all.extended_shape = extended

local function no_method(self, name, hint)
  local what = self.name or "Distribution"
  fail(name, ("%s does not have a %s"):format(what, name), hint)
end

-- Draws of the shape, with gradients for the parameters.
function Distribution:rsample(sample_shape)
  if not self.has_rsample then
    no_method(self, "rsample", "d:sample() draws without gradients")
  end
  return self:_draw(extended(self, sample_shape))
end

function Distribution:sample(sample_shape)
  if not self._draw then no_method(self, "sample") end
  return nacre.no_grad(function()
    return self:_draw(extended(self, sample_shape)):detach()
  end)
end

-- The value as a tensor, checked.
local function value_of(self, op, value, event)
  local like = nil
  for _, name in ipairs(self._names or {}) do like = like or self[name] end
  like = nacre.is_tensor(like) and like or nil
  if type(value) == "number" then
    value = nacre.tensor(value, {dtype = like and like.dtype,
                                 device = like and like.device})
  end
  if not nacre.is_tensor(value) then
    fail(op, ("value must be a tensor or a number, not a %s")
             :format(type(value)))
  end
  local shape = joined(self.batch_shape, event)
  local wide = broadcast(shape, value.shape)
  local fits = wide and value:dim() >= #event
  for i = 0, #event - 1 do
    fits = fits and value:size(-1 - i) == event[#event - i]
  end
  if not fits then
    fail(op, ("{value} does not fit batch_shape %s and event_shape %s")
             :format(text_of(self.batch_shape), text_of(event)), nil, "value",
         value)
  end
  return value
end

local function checked(self, op, value)
  value = value_of(self, op, value, self.event_shape)
  if self.validate_args and self.support then
    check(op, "value", value, self.support)
  end
  return value
end

function Distribution:log_prob(value)
  if not self._log_prob then no_method(self, "log_prob") end
  return self:_log_prob(checked(self, "log_prob", value))
end

function Distribution:cdf(value)
  if not self._cdf then no_method(self, "cdf") end
  return self:_cdf(checked(self, "cdf", value))
end

function Distribution:icdf(value)
  if not self._icdf then no_method(self, "icdf") end
  value = value_of(self, "icdf", value, self.event_shape)
  if self.validate_args then
    check("icdf", "value", value, constraints.unit_interval)
  end
  return self:_icdf(value)
end

function Distribution:entropy() no_method(self, "entropy") end
function Distribution:perplexity() return self:entropy():exp() end

-- All values of a discrete distribution along a new first dimension; expand
-- repeats them for the batch.
function Distribution:enumerate_support(expand)
  if not self._enumerate then no_method(self, "enumerate_support") end
  local values = self:_enumerate()
  local n = #self.batch_shape
  local shape = joined({values:size(1)}, nacre.ones(n, {dtype = "int64"})
                       :tolist(), self.event_shape)
  values = values:reshape(shape)
  if expand == false then return values end
  return values:expand(joined({values:size(1)}, self.batch_shape,
                              self.event_shape))
end

-- A distribution with this batch shape, whose parameters are views.
function Distribution:expand(batch_shape)
  local class = getmetatable(self)
  if not class._names then no_method(self, "expand") end
  if not broadcast(batch_shape, self.batch_shape) or
     #batch_shape < #self.batch_shape then
    fail("expand", ("the batch_shape %s does not expand to %s")
                   :format(text_of(self.batch_shape), text_of(batch_shape)))
  end
  local new = setmetatable({validate_args = self.validate_args,
                            _batch = joined(batch_shape)}, class)
  for _, name in ipairs(class._names) do
    local t = rawget(self, name)
    if t then
      rawset(new, name, t:expand(joined(batch_shape, own_shape(
        t, class._events[name]))))
    end
  end
  if class._made then class._made(new, self.name) end
  return new
end

local function show(self)
  local parts = {}
  for _, name in ipairs(self._names or {}) do
    local t = rawget(self, name)
    if nacre.is_tensor(t) then
      parts[#parts + 1] = t:dim() == 0 and ("%s: %s"):format(name, t:item()) or
        ("%s: %s[%s]"):format(name, t.dtype, table.concat(t.shape, "x"))
    elseif t ~= nil then
      parts[#parts + 1] = ("%s: %s"):format(name, t)
    end
  end
  return ("%s(%s)"):format(self.name, table.concat(parts, ", "))
end
Distribution.__tostring = show

Distribution._is, Distribution._object = is_distribution, "d"
Distribution._takes = {
  rsample = "sample_shape:size=nil", sample = "sample_shape:size=nil",
  log_prob = "value:any", cdf = "value:any", icdf = "value:any",
  enumerate_support = "expand:bool=true", expand = "batch_shape:size"}
all.guard_methods(Distribution, is_distribution, "d", Distribution._takes)

-- A class of the user computes the field `name' of an instance by f(self) when
-- it is read.
function Distribution.property(class, name, f)
  if type(class) ~= "table" or not properties_of[class] then
    fail("property", 'a class has properties: Mine:property("mean", f)')
  end
  if type(name) ~= "string" or type(f) ~= "function" then
    fail("property", ("a name and a function are expected, not a %s and a %s")
                     :format(type(name), type(f)))
  end
  properties_of[class][name] = f
end

all.derive_distribution = derive
function all.validates_args() return validate end
