-- SPDX-License-Identifier: MIT
-- Calls whose operands must fit each other more closely than their types say:
-- from a 2x2 tensor the arguments of a small call that succeeds. For
-- small_calls.lua.

local function int(t) return nacre.tensor(t, {dtype = "int64"}) end
local function places() return int {{1, 2}, {2, 1}} end
local function row(t) return t:select(1, 1) end
local function mask(t) return t:gt(2) end

local samples = {
  permute = function(t) return {t, {2, 1}} end,
  unflatten = function(t) return {t, 1, {2, 1}} end,
  diagonal = function(t) return {t, 1, 1, 2} end,
  _view_dtype = function(t) return {t, "uint8"} end,
  imag = function(t) return {t:to "complex64"} end,
  view_as_real = function(t) return {t:to "complex64"} end,
  linspace = function(t) return {t:sum(), t:select(1, 1):sum(), 3} end,
  randint = function() return {1, 9, {2, 2}} end,
  randint_like = function(t) return {t, 1, 9} end,
  uniform_ = function(t) return {t, 0, 1} end,
  -- products
  linear = function(t) return {t, t, row(t)} end,
  bmm = function(t) return {t:reshape(1, 2, 2), t:reshape(1, 2, 2)} end,
  baddbmm = function(t)
    t = t:reshape(1, 2, 2)
    return {t, t, t}
  end,
  addbmm = function(t) return {t, t:reshape(1, 2, 2), t:reshape(1, 2, 2)} end,
  mv = function(t) return {t, row(t)} end,
  addmv = function(t) return {row(t), t, row(t)} end,
  dot = function(t) return {row(t), t:select(1, 2)} end,
  outer = function(t) return {row(t), t:select(1, 2)} end,
  _lapack_lusolve = function(t)
    return {t, nacre.tensor({1, 2}, {dtype = "int32"}), t}
  end,
  _lapack_luinverse = function(t)
    return {t, nacre.tensor({1, 2}, {dtype = "int32"})}
  end,
  _lapack_orgqr = function(t) return {t, row(t)} end,
  _lapack_ormqr = function(t) return {t, row(t), t} end,
  -- images
  _unfold = function(t) return {t:reshape(1, 1, 2, 2), 2, 1, 0, 1} end,
  _fold = function(t) return {t:reshape(1, 4, 1), 2, 2, 1, 0, 1} end,
  _max_pool = function(t) return {t:reshape(1, 1, 2, 2), 2, 1, 0, 1} end,
  _norm = function(t)
    return {t, t:select(1, 1), t:select(1, 2), {2, 1, 1}, 0.1}
  end,
  _max_pool_back = function(t)
    return {t:reshape(1, 1, 2, 2), nacre.ones(1, 1, 2, 2, {dtype = "int64"}),
            {3, 3}, 2, 1, 0, 1}
  end,
  _class_loss = function(t)
    return {t, int {2, 1}, row(t), -100, 0.1, "mean", false}
  end,
  _recurrent = function(t)
    return {nacre.cat({t, t, t, t}, 2):unsqueeze(1), t, t,
            nacre.cat {t, t, t, t}, nil, "lstm", false}
  end,
  _recurrent_backward = function(t)
    local states = nacre.stack {t, t}
    return {{t:unsqueeze(1), t, t}, states, states,
            nacre.cat({t, t, t, t}, 2):unsqueeze(1), nacre.cat {t, t, t, t},
            "lstm", true}
  end,
  _optimizer_step = function(t)
    local numbers = nacre.tensor({1, 0, 1, 0.5, 0, 1, 0, 0, 0, 0, 0, 0, 1,
                                  0, 0, 0, 0, 0},
                                 {dtype = "float64", device = "cpu"})
    return {"sgd", {t}, {nacre.ones_like(t)}, {}, numbers}
  end,
  _list_scale = function(t) return {{t, t:clone()}, t:sum()} end,
  -- picking
  index_select = function(t) return {t, 1, int {2, 1}} end,
  index_add = function(t) return {t, 1, int {2, 1}, t:clone()} end,
  index_copy = function(t) return {t, 1, int {2, 1}, t:clone()} end,
  index_fill = function(t) return {t, 1, int {2}, 7} end,
  index_reduce = function(t)
    return {t, 1, int {2, 1}, t:clone(), "prod"}
  end,
  index_put = function(t) return {t, {int {2, 1}}, t:clone()} end,
  gather = function(t) return {t, 1, places()} end,
  take_along_dim = function(t) return {t, places(), 1} end,
  scatter = function(t) return {t, 1, places(), t:clone()} end,
  scatter_add = function(t) return {t, 1, places(), t:clone()} end,
  scatter_reduce = function(t)
    return {t, 1, places(), t:clone(), "prod"}
  end,
  _scatter = function(t) return {t, 1, places(), t:clone(), 2} end,
  take = function(t) return {t, places()} end,
  put = function(t) return {t, places(), t:clone()} end,
  masked_fill = function(t) return {t, mask(t), 7} end,
  masked_select = function(t) return {t, mask(t)} end,
  masked_scatter = function(t) return {t, mask(t), t:clone()} end,
  repeat_interleave = function(t) return {t, 2, 1} end,
  -- shapes
  flip = function(t) return {t, {1, 2}} end,
  rot90 = function(t) return {t, 1, {1, 2}} end,
  pad = function(t) return {t, {1, 1}} end,
  diag_embed = function(t) return {t, 0, 1, 2} end,
  dsplit = function(t) return {t:reshape(1, 2, 2), 1} end,
  select_scatter = function(t) return {t, row(t):clone(), 1, 1} end,
  slice_scatter = function(t)
    return {t, t:narrow(1, 1, 1):clone(), 1, 1, 1}
  end,
  diagonal_scatter = function(t) return {t, row(t):clone(), 0, 1, 2} end,
  meshgrid = function(t) return {{row(t), row(t)}} end,
  cartesian_prod = function(t) return {{row(t), row(t)}} end,
  combinations = function(t) return {row(t), 2} end,
  vander = function(t) return {row(t), 2} end,
  -- numbers
  bernoulli = function(t) return {t:mul(0.1)} end,
  bernoulli_ = function(t) return {t, 0.5} end,
  geometric_ = function(t) return {t, 0.5} end,
  random_ = function(t) return {t, 1, 9} end,
  normal = function(t) return {t, 1} end,
  bincount = function() return {int {1, 2, 2}} end,
  bucketize = function(t) return {t, row(t):clone()} end,
  histogram = function(t) return {t, (row(t):sort())} end,
  quantile = function(t) return {t, 0.5} end,
  nanquantile = function(t) return {t, 0.5} end,
  polygamma = function(t) return {1, t} end,
  prelu = function(t) return {t, row(t):clone()} end,
}

local function conv(...)
  local sizes = {...}
  return function(t)
    t = t:reshape(1, 1, 2, 2)
    return {t, t, {1, 1, 0, 0, 1, 1, table.unpack(sizes)}, 1}
  end
end
samples._conv = conv(2, 2)
samples._conv_input = conv(3, 3)
samples._conv_weight = conv(1, 1)

function samples.binomial(t) return {t, t / 4} end
function samples._int_mm(t) return {t:to "int8", t:to "int8"} end
function samples._weight_int8pack_mm(t)
  return {t, t:to "int8", nacre.ones(2)}
end

-- what writes in place takes the same
for _, name in ipairs {"index_add", "index_copy", "index_fill", "index_put",
                       "index_reduce", "scatter", "scatter_add",
                       "scatter_reduce", "put", "masked_fill",
                       "masked_scatter"} do
  samples[name .. "_"] = samples[name]
end
return samples
