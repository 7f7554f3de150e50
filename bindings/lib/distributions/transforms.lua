-- SPDX-License-Identifier: MIT
-- transforms.lua - nacre.distributions.transforms: functions of which the
-- inverse and the logarithm of the derivative are known, and
-- TransformedDistribution.
--
-- A transform t has t(x), t:inv(y), t:log_abs_det_jacobian(x, y), and the
-- dimensions of one value before and after, domain_dim and codomain_dim.
local all = ...
all.require("nacre.vector_distributions")
local fail, C = all.fail, all.constraints
local transforms = all.space "distributions.transforms"
local F = nacre.nn.functional

local Transform = {name = "Transform", domain_dim = 0, codomain_dim = 0,
                   codomain = C.real, sign = 1}
Transform.__index = Transform
Transform.__tostring = function(self) return self.name .. "()" end
Transform.__call = function(self, x)
  if not nacre.is_tensor(x) then
    fail(self.name, "a transform takes a tensor, not a " .. type(x))
  end
  return self:_call(x)
end
local function is_transform(v) return all.is_instance(v, Transform) end

function Transform:inv(y) return self:_inverse(y) end
function Transform:log_abs_det_jacobian(x, y)
  return self:_log_slope(x, y or self(x))
end
-- The shape of results for operands of this shape.
function Transform:forward_shape(shape) return shape end
local TAKES = {inv = "y:tensor", forward_shape = "shape:size",
               log_abs_det_jacobian = "x:tensor, y:tensor=nil"}
all.guard_methods(Transform, is_transform, "transform", TAKES)

-- nacre.distributions.transforms[name]: a transform with the parameters of the
-- signature as its fields.
local function transform(name, signature, doc, class, made)
  local path = "distributions.transforms." .. name
  local s = all.parse(path, (signature ~= "" and signature or "")
                      .. " -> transform")
  class.name, class.__index = name, class
  class.__call, class.__tostring = Transform.__call, Transform.__tostring
  setmetatable(class, {__index = Transform})
  all.guard_methods(class, is_transform, "transform", TAKES)
  local function construct(...)
    local v, self = all.read(name, s, ...), setmetatable({}, class)
    for i, p in ipairs(s.params) do self[p.name] = v[i] end
    if made then made(self) end
    return self
  end
  transforms[name] = construct
  all.describe(path, construct, doc, s)
end

-- Fails unless a parameter is a tensor or a number.
local function check_numbers(self, ...)
  for _, name in ipairs {...} do
    local v = self[name]
    if not nacre.is_tensor(v) and type(v) ~= "number" then
      fail(self.name, ("%s must be a tensor or a number, not a %s")
                      :format(name, type(v)))
    end
  end
end

local function log_of(v)
  return nacre.is_tensor(v) and v:abs():log() or math.log(math.abs(v))
end

transform("AffineTransform", "loc:any, scale:any, event_dim:int=0",
  "loc + scale*x", {
  _call = function(self, x) return self.loc + self.scale * x end,
  _inverse = function(self, y) return (y - self.loc) / self.scale end,
  _log_slope = function(self, x)
    return all.sum_last(nacre.zeros_like(x) + log_of(self.scale),
                        self.event_dim)
  end,
}, function(self)
  check_numbers(self, "loc", "scale")
  self.domain_dim, self.codomain_dim = self.event_dim, self.event_dim
  self.sign = nacre.is_tensor(self.scale) and self.scale:sign() or
              self.scale < 0 and -1 or 1
end)

transform("ExpTransform", "", "exp(x)", {
  codomain = C.positive,
  _call = function(_, x) return x:exp() end,
  _inverse = function(_, y) return y:log() end,
  _log_slope = function(_, x) return x end})

transform("PowerTransform", "exponent:any", "x^exponent, of positive numbers", {
  codomain = C.positive,
  _call = function(self, x) return x:pow(self.exponent) end,
  _inverse = function(self, y) return y:pow(1 / self.exponent) end,
  _log_slope = function(self, x, y)
    return (self.exponent * y / x):abs():log()
  end,
}, function(self) check_numbers(self, "exponent") end)

transform("SigmoidTransform", "", "sigmoid(x)", {
  codomain = C.unit_interval,
  _call = function(_, x)
    local limits = nacre.finfo(x.dtype)
    return x:sigmoid():clamp(limits.tiny, 1 - limits.eps)
  end,
  _inverse = function(_, y)
    local limits = nacre.finfo(y.dtype)
    y = y:clamp(limits.tiny, 1 - limits.eps)
    return y:log() - (-y):log1p()
  end,
  _log_slope = function(_, x) return -F.softplus(-x) - F.softplus(x) end})

transform("TanhTransform", "", "tanh(x)", {
  codomain = C.interval(-1, 1),
  _call = function(_, x) return x:tanh() end,
  _inverse = function(_, y) return y:atanh() end,
  _log_slope = function(_, x)
    return 2 * (math.log(2) - x - F.softplus(-2 * x))
  end})

transform("SoftplusTransform", "", "log(1 + exp(x))", {
  codomain = C.positive,
  _call = function(_, x) return F.softplus(x) end,
  _inverse = function(_, y) return (-(-y):expm1()):log() + y end,
  _log_slope = function(_, x) return -F.softplus(-x) end})

transform("AbsTransform", "", "|x|, which has no inverse: inv gives y", {
  codomain = C.nonnegative,
  _call = function(_, x) return x:abs() end,
  _inverse = function(_, y) return y end})

transform("SoftmaxTransform", "", "softmax of the last dimension", {
  domain_dim = 1, codomain_dim = 1, codomain = C.simplex,
  _call = function(_, x) return x:softmax(-1) end,
  _inverse = function(_, y) return y:log() end})

-- Breaks a stick of length 1 at n places: n numbers give n + 1 lengths.
transform("StickBreakingTransform", "",
  "n numbers as n + 1 positive ones whose sum is 1", {
  domain_dim = 1, codomain_dim = 1, codomain = C.simplex,
  forward_shape = function(_, shape)
    shape = all.joined_shapes(type(shape) == "table" and shape or {shape})
    shape[#shape] = (shape[#shape] or 0) + 1
    return shape
  end,
  _offset = function(_, x)
    local n = x:size(-1)
    return nacre.arange(n, 0, -1, all.like(x)):log()
  end,
  _call = function(self, x)
    local z = (x - self:_offset(x)):sigmoid()
    local rest = (1 - z):cumprod(-1)
    local one = nacre.ones_like(x:narrow(-1, 1, 1))
    return nacre.cat({z, one}, -1) * nacre.cat({one, rest}, -1)
  end,
  _inverse = function(self, y)
    local n = y:size(-1) - 1
    local head = y:narrow(-1, 1, n)
    local rest = (1 - head:cumsum(-1)):clamp {min = nacre.finfo(y.dtype).tiny}
    return head:log() - rest:log() + self:_offset(head)
  end,
  _log_slope = function(self, x, y)
    local t = x - self:_offset(x)
    return (F.logsigmoid(t) - t + y:narrow(-1, 1, x:size(-1)):log()):sum(-1)
  end})

transform("ComposeTransform", "parts:table",
  "the transforms of a list, one after the other", {
  _call = function(self, x)
    for _, part in ipairs(self.parts) do x = part(x) end
    return x
  end,
  _inverse = function(self, y)
    for i = #self.parts, 1, -1 do y = self.parts[i]:inv(y) end
    return y
  end,
  _log_slope = function(self, x)
    local sum, dim = 0, self.domain_dim
    for _, part in ipairs(self.parts) do
      local y = part(x)
      sum = sum + all.sum_last(part:log_abs_det_jacobian(x, y),
                               dim - part.domain_dim)
      x, dim = y, dim + part.codomain_dim - part.domain_dim
    end
    return sum
  end,
  forward_shape = function(self, shape)
    for _, part in ipairs(self.parts) do shape = part:forward_shape(shape) end
    return shape
  end,
}, function(self)
  local need, gives, sign = 0, 0, 1
  for i = #self.parts, 1, -1 do
    local part = self.parts[i]
    if not is_transform(part) then
      fail("ComposeTransform", ("element %d of parts is a %s, not a transform")
                               :format(i, type(part)))
    end
    gives = math.max(gives, part.codomain_dim)
    need = math.max(need + part.domain_dim - part.codomain_dim,
                    part.domain_dim)
    sign = part.sign * sign
    if i == #self.parts then self.codomain = part.codomain end
  end
  self.domain_dim, self.codomain_dim, self.sign = need, gives, sign
end)

--
-- TransformedDistribution
--
local transformed
local function parts_of(op, given)
  local parts = is_transform(given) and {given} or given
  if type(parts) ~= "table" then
    fail(op, "transforms must be a transform or a list of them")
  end
  for i, part in ipairs(parts) do
    if not is_transform(part) then
      fail(op, ("element %d of transforms is a %s, not a transform")
               :format(i, type(part)))
    end
  end
  return parts
end

-- The base of a probability, which a falling transform turns around.
local function turned(self, p)
  local sign = 1
  for _, part in ipairs(self.transforms) do sign = sign * part.sign end
  if not nacre.is_tensor(sign) and sign == 1 then return p end
  return sign * (p - 0.5) + 0.5
end

local _, make = all.composite_distribution("TransformedDistribution",
  "base_distribution:any, transforms:any",
  "the distribution of values of another after one transform, or a list", {
  _draw = function(self, shape)
    local n = #shape - #self.batch_shape - #self.event_shape
    local sample = table.move(shape, 1, n, 1, {})
    local x = self.base_dist:_draw(all.extended_shape(self.base_dist, sample))
    for _, part in ipairs(self.transforms) do x = part(x) end
    return x
  end,
  _log_prob = function(self, y)
    local event, sum = #self.event_shape, 0
    for i = #self.transforms, 1, -1 do
      local part = self.transforms[i]
      local x = part:inv(y)
      event = event + part.domain_dim - part.codomain_dim
      sum = sum - all.sum_last(part:log_abs_det_jacobian(x, y),
                               event - part.domain_dim)
      y = x
    end
    return sum + all.sum_last(self.base_dist:log_prob(y),
                              event - #self.base_dist.event_shape)
  end,
  _cdf = function(self, y)
    for i = #self.transforms, 1, -1 do y = self.transforms[i]:inv(y) end
    return turned(self, self.base_dist:cdf(y))
  end,
  _icdf = function(self, p)
    local x = self.base_dist:icdf(turned(self, p))
    for _, part in ipairs(self.transforms) do x = part(x) end
    return x
  end,
  expand = function(self, shape)
    return transformed(self.base_dist:expand(shape), self.transforms)
  end,
}, {has_rsample = function(self) return self.base_dist.has_rsample end,
    support = function(self)
      local last = self.transforms[#self.transforms]
      local of = last and last.codomain or self.base_dist.support
      local n = #self.event_shape - of.event_dim
      return n > 0 and C.independent(of, n) or of
    end},
function(op, of, given)
  all.check_distribution(op, of, "base_distribution")
  local parts = parts_of(op, given)
  local batch, event = of.batch_shape, of.event_shape
  local shape, dims = all.joined_shapes(batch, event), #event
  for _, part in ipairs(parts) do
    dims = math.max(dims, part.domain_dim) + part.codomain_dim
           - part.domain_dim
    shape = part:forward_shape(shape)
    if part.loc or part.scale then
      for _, v in ipairs {part.loc, part.scale} do
        if nacre.is_tensor(v) then
          shape = all.broadcast_shape(shape, v.shape) or fail(op,
            ("%s does not broadcast with the distribution"):format(part))
        end
      end
    end
  end
  local wanted = table.move(shape, 1, #shape - #event, 1, {})
  if #wanted ~= #batch then of = of:expand(wanted) end
  return {base_dist = of, transforms = parts,
          _batch = table.move(shape, 1, #shape - dims, 1, {}),
          _event = table.move(shape, #shape - dims + 1, #shape, 1, {})}
end)
transformed = make
