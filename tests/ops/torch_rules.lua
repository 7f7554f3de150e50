-- SPDX-License-Identifier: MIT
-- Rules of PyTorch that once were missed, found by comparing random calls
-- with it: one assert each, with what PyTorch gives.

local inf, nan = math.huge, 0 / 0

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local text, fails = C.text, C.fails

-- The dtype and the elements.
local function is(t, dtype, want)
  assert(t.dtype == dtype, ("%s, not %s"):format(t.dtype, dtype))
  local got = text(t:totable())
  assert(got == want, ("%s, not %s"):format(got, want))
end

local function of(dtype, list) return nacre.tensor(list, {dtype = dtype}) end

do -- out= may have a wider type: the result is first one of its own type
  local f = nacre.zeros(3)
  nacre.abs(of("int64", {-1, 2, -3}), {out = f})
  is(f, "float32", "{1.0,2.0,3.0}")
  nacre.remainder(of("int32", {7, 8, 9}), of("int32", {4, 4, 4}),
                  {out = f})
  is(f, "float32", "{3.0,0.0,1.0}")
  nacre.pow(of("int16", {216, 2, 3}), of("int8", {2, 2, 2}), {out = f})
  is(f, "float32", "{-18880.0,4.0,9.0}")
  nacre.add(of("bool", {true, false, true}), of("bool", {true, true, true}),
            {out = f})
  is(f, "float32", "{1.0,1.0,1.0}")
  local i = nacre.zeros(2, {dtype = "int64"})
  nacre.add(of("int8", {100, 1}), of("int8", {100, 1}), {out = i})
  is(i, "int64", "{-56,2}")
  nacre.sum(of("int32", {1, 2, 3}), {out = f[{{1, 3}}]:select(1, 2)})
  is(f, "float32", "{1.0,6.0,1.0}")
end

do -- a bool from other integers is true or false, not the integer
  local u = of("uint8", {{0, 2, 255}, {4, 0, 0}})
  is(u:to("bool"):sum(), "int64", "3")
  is(u:nonzero(), "int64", "{{1,2},{1,3},{2,1}}")
  is(u:t():to("bool"):to("uint8"), "uint8", "{{0,1},{1,0},{1,0}}")
end

do -- rows of a batch with gaps, a batch of one in between
  local a = nacre.arange(2 * 5 * 7, {dtype = "float64"}):view(2, 1, 5, 7)
  a = a:slice(3, 1, 5, 2)
  local b = nacre.arange(14, {dtype = "float64"}):view(7, 2)
  for _, t in ipairs {"float64", "float32", "int32"} do
    local x, y = a:to("float64"):to(t), b:to(t)
    x = nacre.zeros(2, 1, 5, 7, {dtype = t})
    x:slice(3, 1, 5, 2):copy_(a)
    local rows = x:slice(3, 1, 5, 2)
    assert(rows:matmul(y):equal(rows:clone():matmul(y)), t)
  end
end

do -- a 0-d tensor wraps to the type of the others, as its elements would
  local big = of("int32", 2147483646)
  is(of("int16", {1, -5}):fmin(big), "int16", "{-2,-5}")
  is(of("int8", {1, 7}):maximum(of("int64", 258)), "int8", "{2,7}")
  is(of("int8", {7, 9}):floor_divide(of("int32", 259)), "int8", "{2,3}")
  fails("integer division by zero", nacre.floor_divide, of("int8", {1}),
        of("int32", 256))
end

do -- numbers that no element can be are refused, elements of tensors convert
  local cases = {
    {"uint8", 256}, {"uint8", -256}, {"uint8", -0.5}, {"uint8", 1e3},
    {"int8", 128}, {"int8", -129}, {"int16", 1e10}, {"int16", inf},
    {"int32", 1 << 31}, {"int32", nan}, {"int64", 1e30},
  }
  for _, c in ipairs(cases) do
    local dtype, v = c[1], c[2]
    local t = nacre.zeros(2, {dtype = dtype})
    local message = "does not fit in " .. dtype
    fails(message, nacre.full, {2}, v, {dtype = dtype})
    fails(message, nacre.full_like, t, v)
    fails(message, nacre.tensor, {1, v}, {dtype = dtype})
    fails(message, t.fill_, t, v)
    fails(message, function() t[1] = v end)
    fails(message, function() t[{{1, 2}}] = v end)
    fails(message, function() t[of("bool", {true, false})] = v end)
    is(t, dtype, "{0,0}")
  end
  fails("does not fit in float16", nacre.full, {2}, 1e10,
        {dtype = "float16"})
  fails("does not fit in float32", nacre.full, {2}, 1e300)
  is(nacre.full({2}, inf, {dtype = "float16"}), "float16", "{inf,inf}")
  is(nacre.full({2}, -1, {dtype = "uint8"}), "uint8", "{255,255}")
  is(of("uint8", {-1, 255}), "uint8", "{255,255}")
  is(nacre.full({2}, 2.9, {dtype = "int8"}), "int8", "{2,2}")
  is(nacre.full({}, -128, {dtype = "int8"}), "int8", "-128")
  is(nacre.full({}, math.mininteger, {dtype = "int64"}), "int64",
     tostring(math.mininteger))
end

do -- linspace of integers goes between integers
  is(nacre.linspace(-4.3, 5, 4, {dtype = "int32"}), "int32", "{-4,-1,2,5}")
  is(nacre.linspace(-1, -2.9, 2, {dtype = "int64"}), "int64", "{-1,-2}")
end

do -- nothing is divided by zero where there are no elements
  local none = nacre.zeros(0, 3, {dtype = "int32"})
  is(none:fmod(of("int32", {0, 1, 2})), "int32", "{}")
  is(none // 0, "int32", "{}")
end

do -- a norm of negative order has no value without elements
  fails("no elements along dim 1", nacre.norm, nacre.zeros(0, 2),
        {p = -1, dim = 1})
  is(nacre.zeros(2, 0):norm {p = -1, dim = 1}, "float32", "{}")
end

do -- what has no elements can be viewed in any shape that has none
  local t = nacre.zeros(4, 4, 2, 0):permute(4, 2, 1, 3)
  assert(text(t:slice(2, 1, 4, 2):view(0, 2):size()) == "{0,2}")
end

do -- and is contiguous, whatever its strides
  local t = nacre.zeros(7, 0, 5):transpose(1, 3)
  assert(t:is_contiguous() and t:contiguous() == t)
end

do -- what cannot be written in place is not blamed on the copy
  fails("cumsum_: an int64 result cannot be written to a bool tensor",
        function() nacre.zeros(2, {dtype = "bool"}):cumsum_(1) end)
end
do -- div takes a rounding mode, and then keeps integers
  local t = nacre.tensor {7, -7, 8}
  is(t:div(2), "float32", "{3.5,-3.5,4.0}")
  is(t:div(2, {rounding_mode = "floor"}), "int64", "{3,-4,4}")
  is(t:div(2, {rounding_mode = "trunc"}), "int64", "{3,-3,4}")
  is(t:float():div(2, {rounding_mode = "trunc"}), "float32", "{3.0,-3.0,4.0}")
  fails("div: integer division by zero", t.div, t, 0,
        {rounding_mode = "floor"})
  fails("div: rounding_mode must be one of floor|trunc, not 'flor'", t.div, t,
        2, {rounding_mode = "flor"})
end

do -- a number as condition is true unless it is 0
  local x, y = nacre.tensor {1, 2}, nacre.tensor {3, 4}
  is(nacre.where(256, x, y), "int64", "{1,2}")
  is(nacre.where(0.5, x, y), "int64", "{1,2}")
  is(nacre.where(false, x, y), "int64", "{3,4}")
  is(nacre.where(256, x:half(), y:to("int8")), "float16", "{1.0,2.0}")
  is(nacre.where(true, x:byte(), y:half()), "float16", "{1.0,2.0}")
end

do -- a tensor without dimensions is a number where a number is wanted
  local n, t = nacre.tensor(2), nacre.arange(6)
  is(t:narrow(1, n, n), "int64", "{1,2}")
  is(nacre.full({2}, nacre.tensor(1.5)), "float32", "{1.5,1.5}")
  is(t:add(1, {alpha = n}), "int64", "{2,3,4,5,6,7}")
  is(nacre.zeros(n), "float32", "{0.0,0.0}")
  is(nacre.nn.functional.one_hot(nacre.tensor {1}, n), "int64", "{{1,0}}")
  local wanted = nacre.tensor(2.0):requires_grad_()
  fails("fill_value must be a number, not a tensor", nacre.full, {2}, wanted)
  fails("k must be an integer, not a tensor", t.topk, t, nacre.tensor(2.5))
  fails("k must be an integer, not a tensor", t.topk, t, nacre.tensor {2})
end

do -- tensors one by one are a list of them, one alone is not
  local a, b = nacre.tensor {1, 2}, nacre.tensor {3, 4}
  is(nacre.cat(a, b), "int64", "{1,2,3,4}")
  is(nacre.stack(a, b, 2), "int64", "{{1,3},{2,4}}")
  is(nacre.stack(a, b, {dim = 2}), "int64", "{{1,3},{2,4}}")
  is(nacre.cartesian_prod(a, b), "int64", "{{1,3},{1,4},{2,3},{2,4}}")
  fails("tensors must be a list of tensors, not a tensor", nacre.cat, a)
  fails("tensors must be a list of tensors, not a tensor", nacre.cat, a, 1)
end

do -- sizes may be numbers one by one
  local t = nacre.ones(2, 3)
  is(t:sum_to_size(2, 1), "float32", "{{3.0},{3.0}}")
  is(t:sum_to_size({1, 3}), "float32", "{{2.0,2.0,2.0}}")
  is(t:sum_to_size(1, 3, {out = nacre.zeros(1, 3)}), "float32",
     "{{2.0,2.0,2.0}}")
  fails("size must be an integer or a list of them", t.sum_to_size, t, 1.5)
  fails("argument 3 must be a size, not a string", t.sum_to_size, t, 2, "x")
end

do -- names of operations in messages are whole, and out is only offered where
   -- it is taken
  local F, t = nacre.nn.functional, nacre.ones(2)
  fails("nn.functional.binary_cross_entropy_with_logits: reduction must be",
        F.binary_cross_entropy_with_logits, t, t, {reduction = "x"})
  local _, e = pcall(nacre.equal, t, t, {out = t})
  assert(not tostring(e):find("did you mean", 1, true), tostring(e))
end

do -- integers go between integers in logspace, too
  is(nacre.logspace(0, 1.2, 3, {dtype = "int64"}), "int64", "{1,3,10}")
  is(nacre.logspace(-1.5, 2.7, 3, 2, {dtype = "int32"}), "int32", "{0,1,4}")
end

do -- the outer product of bools stays bool with numbers before it
  local t = nacre.ones(2, {dtype = "bool"})
  is(nacre.addr(nacre.zeros(2, 2, {dtype = "bool"}), t, t,
                {beta = 3, alpha = 2}), "bool", "{{true,true},{true,true}}")
  is(nacre.addr(nacre.ones(2, 2, {dtype = "bool"}), t, t:logical_not(),
                {beta = 0, alpha = 2}), "bool",
     "{{false,false},{false,false}}")
end

do -- weights of cov are promoted with self
  local t = nacre.tensor({1.0, 3.0}, {dtype = "float16"})
  is(t:cov {aweights = nacre.tensor {0.5, 1.5}}, "float32", "2.0")
end

do -- cross products are of three numbers each; one does not stand for three
  fails("dimension -1 has size 1, not 3", nacre.linalg.cross,
        nacre.ones(5, 3), nacre.ones(5, 1))
  is(nacre.tensor {{1, 0, 0}, {0, 1, 0}}:cross(nacre.tensor {0, 1, 0},
                                                   -1),
     "int64", "{{0,0,1},{0,0,0}}")
end

do -- the gradient of a largest singular value is shared by equal ones
  local t = nacre.eye(2):requires_grad_()
  nacre.linalg.norm(t, 2):backward()
  is(t.grad, "float32", "{{0.5,0.0},{0.0,0.5}}")
end

do -- layers and losses
  local F = nacre.nn.functional
  local even = nacre.arange(20):float():reshape(1, 4, 5)
  C.is(F.adaptive_max_pool2d(even, {nil, 1}), "{{{4.0},{9.0},{14.0},{19.0}}}")
  fails("output_size must be 2 numbers above 0", F.adaptive_max_pool2d, even,
        {0, 1})
  fails("output_size must be 1 number above 0", F.adaptive_avg_pool1d, even, 0)
  fails("output_size has 0 numbers, not 1", F.adaptive_avg_pool1d, even, {})
  fails("margin must be above 0, not 0", F.triplet_margin_loss, even, even,
        even, 0)
  C.is(F.adaptive_avg_pool1d(even, {1}):round(),
       "{{{2.0},{7.0},{12.0},{17.0}}}")
  C.shape(F.pixel_shuffle(nacre.ones(1, 0, 2, 2), 2), 1, 0, 4, 4)
  fails("upscale_factor is 0, but must be 1 or more", F.pixel_shuffle,
        nacre.ones(4, 1, 1), 0)
  fails("input has 1 dimension, at least 3 are needed", F.pixel_shuffle,
        nacre.ones(4), 2)
  assert(nacre.allclose(F.cosine_similarity(nacre.ones(1, 2, 3),
                                            nacre.ones(2, 1, 3), -2),
                        nacre.ones(2, 3)))
  -- one variance for each row, though it would broadcast along columns, too
  local zero, rows = nacre.zeros(2, 2), nacre.tensor {1.0, 4.0}
  local loss = F.gaussian_nll_loss(zero, zero, rows, {reduction = "none"})
  assert(nacre.allclose(loss, rows:log():view(2, 1):expand(2, 2) / 2, 1e-6))
  local drawn = nacre.randn(4, 3, 7)
  fails("running_mean must have 3 elements", F.instance_norm, drawn, zero)
end

do -- logit is nan outside of [0, 1], and so is its gradient
  local x = of("float64", {-0.5, 0.5, 1.5}):requires_grad_()
  x:logit():sum():backward()
  is(x.grad:isnan(), "bool", "{true,false,true}")
  x.grad = nil
  x:logit(0.1):sum():backward()
  is(x.grad, "float64", "{0.0,4.0,0.0}")
  -- an eps above 1/2: what is below it becomes eps, all else 1 - eps
  assert(nacre.allclose(of("float64", {0, 0.5, 0.7, 1}):logit(0.6),
                        of("float64", {1, 1, -1, -1}) * math.log(1.5)))
end

do -- index_fill: a slice that is named twice counts once for the value
  local value = of("float64", 2):requires_grad_()
  nacre.zeros(2, 5):double():index_fill(-1, of("int64", {1, 1, 2, 2, 3}), value)
       :sum():backward()
  is(value.grad, "float64", "6.0")
end

do -- group_norm needs samples that have elements, not instance_norm
  local F = nacre.nn.functional
  fails("a sample has no elements", F.group_norm, nacre.ones(1, 2, 0), 1)
  fails("a sample has no elements", F.group_norm, nacre.ones(1, 0, 2), 1)
  assert(F.instance_norm(nacre.ones(1, 0, 2)):numel() == 0)
  assert(F.unfold(nacre.ones(1, 1, 3, 3):bool(), 2).dtype == "bool")
end

do -- grid_sample: bicubic volumes are cubic along each dimension
  local F = nacre.nn.functional
  local x, at = nacre.randn(1, 2, 4, 5, 6):double(), nacre.linspace(-1, 1, 7)
  local function along(x, dim)   -- lines of x at seven places
    local lines = x:movedim(dim, -1)
    local flat = lines:reshape(1, -1, 1, lines:size(-1))
    local grid = nacre.stack({at, at * 0}, -1):double():view(1, 1, 7, 2)
    return F.grid_sample(flat, grid, {mode = "bicubic", align_corners = true,
                                      padding_mode = "border"})
            :reshape(1, 2, lines:size(3), lines:size(4), 7):movedim(-1, dim)
  end
  local z, y, w = table.unpack(nacre.meshgrid {at, at, at})
  local grid = nacre.stack({w, y, z}, -1):double():unsqueeze(1)
  assert(nacre.allclose(F.grid_sample(x, grid, {
    mode = "bicubic", align_corners = true, padding_mode = "border"}),
    along(along(along(x, 3), 4), 5), {rtol = 1e-9, atol = 1e-9}))
end
