-- SPDX-License-Identifier: MIT
-- nan_reductions.lua - reductions of the elements that are not nan, and
-- percentiles. Names are NumPy's; correction, dims and positions are as in var,
-- amax and argmax. Slices that are all nan give nan.

local all = ...
local define, fail = all.define, all.fail

local function is_plain(x) return not x:is_floating_point() end

-- x with another number where it is nan.
local function filled(x, number)
  return is_plain(x) and x or nacre.where(x:isnan(), number, x)
end

local function reduce(x, method, dim, keepdim)
  if dim == nil then
    local y = x[method](x)
    if not keepdim then return y end
    local ones = {}
    for d = 1, x:dim() do ones[d] = 1 end
    return y:reshape(ones)
  end
  return x[method](x, dim, keepdim)
end

local function extreme(method, number)
  return function(self, dim, keepdim)
    if is_plain(self) then return reduce(self, method, dim, keepdim) end
    local nan = self:isnan()
    local y = reduce(nacre.where(nan, number, self), method, dim, keepdim)
    return nacre.where(reduce(nan, "all", dim, keepdim), 0 / 0, y)
  end
end

-- Any dtype; without dim, of all elements.
define("nanmax", "self, dim:dims=nil, keepdim:bool=false",
       "the largest of the elements that are not nan",
       extreme("amax", -math.huge))
define("nanmin", "self, dim:dims=nil, keepdim:bool=false",
       "the smallest of the elements that are not nan",
       extreme("amin", math.huge))

local function position(name, method, number)
  return function(self, dim, keepdim)
    if is_plain(self) then return self[method](self, dim, keepdim) end
    local nan = self:isnan()
    if self:numel() > 0 and reduce(nan, "all", dim and {dim}):any():item() then
      fail(name, dim and "{self} has a slice that is all nan" or
                         "{self} is all nan", nil, "self", self)
    end
    return nacre.where(nan, number, self)[method](
             nacre.where(nan, number, self), dim, keepdim)
  end
end

-- int64, counted from 1. Fails for a slice that is all nan.
define("nanargmax", "self, dim:dim=nil, keepdim:bool=false",
       "position of the first largest element that is not nan",
       position("nanargmax", "argmax", -math.huge))
define("nanargmin", "self, dim:dim=nil, keepdim:bool=false",
       "position of the first smallest element that is not nan",
       position("nanargmin", "argmin", math.huge))

local function nanvar(self, dim, keepdim, correction)
  if is_plain(self) then
    return self:var {dim = dim, keepdim = keepdim, correction = correction}
  end
  local kept = self:isnan():logical_not()
  local count = reduce(kept:to(self.dtype), "sum", dim, keepdim)
  local middle = self:detach():nanmean(dim, true)
  if dim == nil then middle = self:detach():nanmean() end
  local off = nacre.where(kept, self - middle, 0.0)
  -- around the mean exactly: what rounding left of it goes
  local rest = reduce(off, "sum", dim, keepdim)
  local squares = reduce(off * off, "sum", dim, keepdim)
  local over = count - correction
  squares = squares - rest * rest / count
  return nacre.where(over:gt(0), squares / over, 0 / 0)
end

-- Of floats; nan where there are `correction' elements or fewer.
define("nanvar",
       "self, dim:dims=nil, keepdim:bool=false, *, correction:num=1",
       "variance of the elements that are not nan, over their number - "
       .. "correction", nanvar)
define("nanstd",
       "self, dim:dims=nil, keepdim:bool=false, *, correction:num=1",
       "standard deviation of the elements that are not nan",
function(self, dim, keepdim, correction)
  return nanvar(self, dim, keepdim, correction):sqrt()
end)

-- All nan: 1.
define("nanprod", "self, dim:dim=nil, keepdim:bool=false",
       "product of the elements that are not nan",
function(self, dim, keepdim) return reduce(filled(self, 1.0), "prod", dim,
                                           keepdim) end)

define("nancumsum", "self, dim:dim", "running sum that passes over nan",
       function(self, dim) return filled(self, 0.0):cumsum(dim) end)
define("nancumprod", "self, dim:dim", "running product that passes over nan",
       function(self, dim) return filled(self, 1.0):cumprod(dim) end)

local modes = "interpolation:linear|lower|higher|nearest|midpoint=linear"
for name, of in pairs {percentile = "quantile",
                       nanpercentile = "nanquantile"} do
  local among = of == "quantile" and "; nan if any is nan" or
                ", of those that are not nan"
  define(name, "self, q:operand, dim:dim=nil, keepdim:bool=false, *, " .. modes,
         "the value that q percent of the elements do not exceed" .. among,
  function(self, q, dim, keepdim, interpolation)
    if type(q) == "boolean" then fail(name, "q is a boolean, no number") end
    local float = nacre.is_tensor(q) and q:to(self.dtype) or q
    return nacre[of](self, float / 100, {dim = dim, keepdim = keepdim,
                                         interpolation = interpolation})
  end)
end
