-- SPDX-License-Identifier: MIT
-- Names that PyTorch's users type: that they are there, as functions, methods
-- and in place, and what the smaller ones among them do.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local is, shape, fails = C.is, C.shape, C.fails
local T, F = nacre.tensor, nacre.nn.functional

-- ---- are they there?

local function words(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = word end
  return list
end

-- function, method, and in place
for _, name in ipairs(words [[
  abs absolute neg negative sign sgn ceil floor trunc fix round frac sqrt rsqrt
  exp expm1 exp2 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh
  asinh acosh atanh arcsin arccos arctan arcsinh arccosh arctanh sigmoid erf
  erfc erfinv square reciprocal relu logical_not bitwise_not nan_to_num logit
  lgamma digamma deg2rad rad2deg add sub subtract mul multiply div divide
  true_divide floor_divide remainder fmod pow atan2 arctan2 eq ne lt le gt ge
  not_equal less less_equal greater greater_equal logical_and logical_or
  logical_xor bitwise_and bitwise_or bitwise_xor clamp clip clamp_min clamp_max
  lerp addcmul addcdiv bitwise_left_shift bitwise_right_shift hypot copysign
  xlogy cumsum cumprod tril triu masked_fill masked_scatter index_add
  index_copy index_fill index_put index_reduce put scatter scatter_add
  scatter_reduce addmm addmv addbmm baddbmm bernoulli gcd lcm i0 sinc heaviside
  nextafter ldexp]]) do
  assert(nacre[name], "no function " .. name)
  assert(nacre._methods[name], "no method " .. name)
  assert(nacre._methods[name .. "_"], "no method " .. name .. "_")
end

-- methods that change in place what is shown
for _, name in ipairs(words [[
  transpose squeeze unsqueeze t swapdims swapaxes as_strided]]) do
  assert(nacre[name] and nacre._methods[name] and nacre._methods[name .. "_"],
         name)
end
for _, name in ipairs(words [[
  resize_ set_ fill_ zero_ copy_ normal_ uniform_ random_ exponential_ cauchy_
  geometric_ log_normal_ fill_diagonal_ detach_ requires_grad_ new_zeros
  new_ones new_full new_empty new_tensor type_as item tolist nelement]]) do
  assert(nacre._methods[name], "no method " .. name)
end
for _, name in ipairs(words [[
  tensor as_tensor zeros ones full empty arange range linspace logspace eye
  rand randn randint randperm zeros_like ones_like full_like empty_like
  rand_like randn_like randint_like cat concat concatenate stack hstack vstack
  dstack column_stack meshgrid cartesian_prod where einsum tensordot cdist
  result_type promote_types can_cast manual_seed searchsorted bucketize
  trapezoid trapz save load]]) do
  assert(nacre[name], "no function " .. name)
end
for _, name in ipairs(words "conv1d conv2d conv3d") do assert(F[name], name) end

-- ---- aliases are the operation itself

is(T({-1.5, 2}):absolute(), "{1.5,2.0}")
is(T({4, 5}):subtract(T {1, 2}), "{3,3}")
local x = T {-1.0, 2}
assert(rawequal(x:clip_(0, 1), x) and x[2] == 1)
assert(nacre._info("multiply").name == "mul")
fails("mul", nacre.multiply, T {1, 2}, T {1, 2, 3})

-- ---- positions

x = T {{0, 5}, {6, 0}}
local at = nacre.where(x:gt(0))
is(at[1], "{1,2}")
is(at[2], "{2,1}")
is(x[at], "{5,6}")
is(x:nonzero {as_tuple = true}[2], "{2,1}")
is(T(7):nonzero {as_tuple = true}[1], "{1}")
assert(#T({0, 0}):nonzero {as_tuple = true} == 1)
fails("self", nacre.where, 5)
is(nacre.repeat_interleave(T {2, 0, 1}), "{1,1,3}")
fails("self must be a vector", nacre.repeat_interleave, x)
is(nacre.range(1, 5):tensor_split(T {2, 4})[2], "{2,3}")
assert(#nacre.range(1, 5):tensor_split(T(2)) == 2)
fails("indices_or_sections", x.tensor_split, x, T {1.5})

-- ---- results to several tensors

do
  local v, i = nacre.zeros(2, 2), nacre.zeros(2, 2, {dtype = "int64"})
  local y = T {{1.0, 3}, {4, 2}}
  local a, b = y:sort(2, true, {out = {v, i}})
  assert(rawequal(a, v) and rawequal(b, i))
  is(v, "{{3.0,1.0},{4.0,2.0}}")
  is(i, "{{2,1},{1,2}}")
  fails("gives 2 results", y.sort, y, 2, {out = v})
  fails("gives 2 results", y.max, y, 2, {out = {v, i, v}})
  fails("out must be a tensor", y.sort, y, 2, {out = {}})
  fails("out must be a tensor", y.exp, y, {out = {v}})
  fails("cannot be written", y.sort, y, 2, {out = {i, i}})
end

-- ---- what a tensor shows, in place

do
  local a = nacre.range(1, 6):reshape(2, 3)
  local view = a[1]
  assert(rawequal(a:transpose_(1, 2), a))
  shape(a, 3, 2)
  is(view, "{1,2,3}")                     -- it goes on seeing what it saw
  shape(a:t_(), 2, 3)
  shape(a:unsqueeze_(1), 1, 2, 3)
  shape(a:squeeze_(), 2, 3)
  is(a:as_strided_({2}, {3}), "{1,4}")
  is(a:resize_(3), "{1,2,3}")
  is(a:resize_(2, 4):flatten():narrow(1, 1, 6), "{1,2,3,4,5,6}")
  is(nacre.ones(1):gt(0):resize_(3):narrow(1, 1, 1), "{true}")
  local b = nacre.zeros(2, {dtype = "int64"})
  b:set_(view)
  assert(C.shares(b, view))
  b:set_(nacre.ones(1))
  assert(b.dtype == "float32" and #b == 1)
  local leaf = nacre.ones(2, 2, {requires_grad = true})
  fails("leaf", leaf.t_, leaf)
  fails("requires a gradient", leaf.resize_, leaf, 1)
  local y = leaf * T {{1, 2}, {3, 4}}
  y:t_()
  y[1]:sum():backward()
  is(leaf.grad, "{{1.0,0.0},{3.0,0.0}}")
end

-- ---- new tensors, limits, sums, dtypes

is(nacre.logspace(0, 2, 3), "{1.0,10.0,100.0}")
is(nacre.logspace(0, 3, 4, 2, {dtype = "int32"}), "{1,2,4,8}")
x = T({1, 2}, {dtype = "int16"})
assert(x:new_zeros(2, 3).dtype == "int16")
assert(x:new_ones({2}).dtype == "int16")
is(x:new_full({2}, 7), "{7,7}")
is(x:new_tensor {1.5}, "{1}")
shape(x:new_empty(0, 4, {dtype = "float64"}), 0, 4)
fails("new_zeros", x.new_zeros, x, -1)
assert(rawequal(nacre.as_tensor(x), x))
assert(nacre.as_tensor({1}).dtype == "int64")
is(T({1, 5}):clamp_min(3), "{3,5}")
is(T({1.0, 5}):clamp_max_(3), "{1.0,3.0}")
is(nacre.ones(2, 3):sum_to_size {1, 3}, "{{2.0,2.0,2.0}}")
is(nacre.ones(2, 3):sum_to_size(3), "{2.0,2.0,2.0}")
fails("does not broadcast", nacre.sum_to_size, nacre.ones(3), {2})
is(nacre.zeros(2, 2):fill_diagonal_(1), "{{1.0,0.0},{0.0,1.0}}")
is(nacre.zeros(5, 2):fill_diagonal_(1, true),
   "{{1.0,0.0},{0.0,1.0},{0.0,0.0},{1.0,0.0},{0.0,1.0}}")
assert(nacre.result_type(T {1}, 2.5) == "float32")
assert(nacre.result_type(T {1}, T(2, {dtype = "int8"})) == "int64")
assert(nacre.promote_types("uint8", "int8") == "int16")
assert(not nacre.can_cast("float32", "int64"))
assert(nacre.can_cast("bool", "int8"))
-- wherever they are
assert(nacre.result_type(T(1.5):double(), T {1}) == "float64")

-- ---- what a dtype holds

for _, d in ipairs(C.floats) do
  local f, one = nacre.finfo(d), T(1, {dtype = d})
  assert((one + f.eps):gt(one):item() and (one + f.eps / 2):eq(one):item(), d)
  assert(T(f.max, {dtype = d}):item() == f.max and f.min == -f.max, d)
  assert((T(f.max, {dtype = d}) * 2):isinf():item(), d)
  assert(T(f.tiny, {dtype = d}):item() == f.tiny, d)
  assert(f.bits == 8 * one:element_size(), d)
end
for _, d in ipairs(C.ints) do
  local f = nacre.iinfo(d)
  local most = T(f.max, {dtype = d})
  assert(most:item() == f.max and (most + 1):item() == f.min, d)
  assert(f.bits == 8 * most:element_size(), d)
end
assert(nacre.finfo().dtype == nacre.get_default_dtype())
assert(not pcall(nacre.finfo, "int8") and not pcall(nacre.iinfo, "bool"))
assert(nacre.equal(T {{{1, 2}}}.mT, T {{{1}, {2}}}))
assert(nacre.equal(T {{{1, 2}}}.mH, T {{{1}, {2}}}))
assert(nacre.equal(T {{1, 2}}.H, T {{1}, {2}}))
assert(T {{1, 2}}.nbytes == 16 and T {{1, 2}}:float().itemsize == 4)
fails("H: self has 3 dimensions, a matrix has 2", "self.mH",
      function() return T {{{1}}}.H end)

-- ---- functions in place, and inference_mode

local x = T {-1.0, 2}
assert(rawequal(F.relu_(x), x) and x == T {0.0, 2})
for name, want in pairs {elu_ = -0.632, leaky_relu_ = -0.01, selu_ = -1.111,
                         celu_ = -0.632, hardtanh_ = -1} do
  local y = T {-1.0}
  assert(rawequal(F[name](y), y) and math.abs(y:item() - want) < 1e-3, name)
end
assert(F.threshold_(T {-1.0}, 0, 7):item() == 7)
assert(nacre.inference_mode(function(a)
  return (a * 2).requires_grad
end, nacre.ones(1):requires_grad_()) == false)
assert(T({1}):is_signed() and not T({true}):is_signed())
assert(T({0.5}):is_nonzero() and not T({false}):is_nonzero())
fails("has 2 elements", nacre.is_nonzero, T {1, 2})
assert(T({1}):is_same_size(T {2}) and not T({1}):is_same_size(T(2)))

-- ---- distances of many rows, by a product; least squares by LAPACK

do
  nacre.manual_seed(5)
  local a = nacre.randn(30, 3, {dtype = "float64"})
  local b = nacre.randn(4, 3, {dtype = "float64"})
  b[1] = a[2]
  local direct = nacre.cdist(a, b, 2, "donot_use_mm_for_euclid_dist")
  assert(nacre.cdist(a, b):allclose(direct, 1e-7, 1e-7))
  local same = T({{1.0, 2}}, {requires_grad = true})
  nacre.cdist(same, same:detach(), 2, "use_mm_for_euclid_dist"):sum()
    :backward()
  is(same.grad, "{{0.0,0.0}}")
  local A = T {{1.0, 1}, {1, 1}, {0, 0}}     -- of rank 1
  local X, _, rank = nacre.linalg.lstsq(A, T {2.0, 2, 5})
  assert(X:allclose(T {1.0, 1}) and rank:item() == 1)
  fails("nan or inf", nacre.linalg.lstsq, A / 0, T {2.0, 2, 5})
end

-- ---- the parts of PyTorch by name, which are made when they are asked for
do
  assert(rawequal(require "torch", nacre))
  assert(require "torch.nn".Linear == nacre.nn.Linear)
  assert(require "torch.nn.functional".relu == nacre.relu)
  assert(require "torch.optim".SGD == nacre.optim.SGD)
  assert(require "torch.optim.lr_scheduler".StepLR ==
         nacre.optim.lr_scheduler.StepLR)
  assert(require "torch.utils.data".DataLoader == nacre.utils.data.DataLoader)
  assert(not pcall(require, "torch.nothing"))
end
print("torch_names: passed")
