-- SPDX-License-Identifier: MIT
-- Complex tensors: dtypes and promotion, numbers in Lua, parts as views, what
-- moves elements, refusals, display. tests/torch/complex_torch.py has values.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, eq, is = C.fails, C.eq, C.is
local i = nacre.i
nacre.manual_seed(1)

local function text(v) return tostring(v) end

-- The same elements, parts compared as they are?
local function same(got, want, what)
  eq(got.dtype, want.dtype)
  local a, b = got, want
  if got:is_complex() then
    C.shape(got, table.unpack(want:size()))
    a = nacre.view_as_real(got:reshape(-1))
    b = nacre.view_as_real(want:reshape(-1))
  end
  C.same(a, b, what, 1e-12, true)
end

local function random(...)
  return nacre.randn({...}, {dtype = "complex128"})
end

--
-- Numbers
--
eq(text(1 + 2*i), "1+2i")
eq(text((1 + 2*i)*(3 - i)), "5+5i")
eq(text(i^2), "-1+0i")
eq(text(2 / i), "0-2i")
eq(text(-(1 - 2*i)), "-1+2i")
eq(text(nacre.complex(0.5, -0.25)), "0.5-0.25i")
eq(text(nacre.complex(0/0, math.huge)), "nan+infi")
eq(text(nacre.complex(1, -0.0)), "1-0i")
eq((3 + 4*i):abs(), 5.0)
eq((3 + 4*i).re, 3.0)
eq((3 + 4*i).im, 4.0)
eq((3 + 4*i):conj(), 3 - 4*i)
eq(nacre.complex(-4, 0):sqrt(), 2*i)
assert(math.abs((-1 + 0*i):arg() - math.pi) < 1e-15)
assert(((math.pi*i):exp() + 1):abs() < 1e-15)
assert(((1 + i):log() - nacre.complex(math.log(2)/2, math.pi/4)):abs() < 1e-15)
assert((nacre.polar(2, math.pi/2) - 2*i):abs() < 1e-15)
assert(1 + i == 1 + 1*i and 1 + i ~= 1 - i)
eq("z is " .. (1 + i), "z is 1+1i")
fails("no 'foo'", function() return i.foo end)
fails("must be numbers", function() return i + {} end)

--
-- Dtypes and promotion
--
eq(nacre.tensor({1, 2*i}).dtype, "complex64")
eq(nacre.tensor(i, {dtype = "complex128"}).dtype, "complex128")
eq(nacre.zeros(2, {dtype = "cfloat"}).dtype, "complex64")
eq(nacre.zeros(2, {dtype = "cdouble"}).dtype, "complex128")
is(nacre.full({2}, 1 + i), "{1+1i,1+1i}")
local z64, z128 = nacre.ones(2, {dtype = "complex64"}),
                  nacre.ones(2, {dtype = "complex128"})
for dtype, want in pairs {bool = "complex64", uint8 = "complex64",
                          int64 = "complex64", float16 = "complex64",
                          bfloat16 = "complex64", float32 = "complex64",
                          float64 = "complex128", complex128 = "complex128"} do
  local x = nacre.ones(2, {dtype = dtype})
  eq((x * z64).dtype, want)
  eq((z64 * x).dtype, want)
  eq((x * z128).dtype, "complex128")
  eq((z64 * nacre.ones({}, {dtype = dtype})).dtype,
     dtype == "complex128" and "complex64" or "complex64")
  eq((x * i).dtype, (dtype == "float64" or dtype == "complex128") and
                    "complex128" or "complex64")
end
eq((z64 * 2.5).dtype, "complex64")
eq(z64:abs().dtype, "float32")
eq(z128:abs().dtype, "float64")
eq(z64:sum().dtype, "complex64")
eq(z64:eq(1).dtype, "bool")
is(nacre.tensor {1, 0, 2}:to "complex64", "{1+0i,0+0i,2+0i}")
is(nacre.tensor {true, false}:to "complex128", "{1+0i,0+0i}")
is(z128:to "complex64", "{1+0i,1+0i}")
for _, dtype in ipairs {"bool", "int64", "float16", "float32", "float64"} do
  fails("the imaginary part is lost", function() return z64:to(dtype) end)
  fails("the imaginary part is lost",
        function() nacre.zeros(2, {dtype = dtype}):copy_(z64) end)
end
fails("does not fit in float32", function() nacre.zeros(2):fill_(i) end)
fails("does not fit in int64",
      function() nacre.zeros(2, {dtype = "int64"})[1] = i end)
fails("cannot be written to", function() nacre.ones(2):mul_(z64) end)

--
-- Elements, parts
--
local z = nacre.tensor {1 + 2*i, 3 - i}
eq(z[1], 1 + 2*i)
eq(z[2]:abs(), math.sqrt(10))
z[1] = 5
z[2] = 2*i
is(z, "{5+0i,0+2i}")
is(z.real, "{5.0,0.0}")
is(z.imag, "{0.0,2.0}")
z.real = 7
z.imag = nacre.tensor {1.0, -1.0}
is(z, "{7+1i,7-1i}")
z.real:add_(1)
is(z, "{8+1i,8-1i}")
is(nacre.view_as_real(z), "{{8.0,1.0},{8.0,-1.0}}")
is(nacre.view_as_complex(nacre.tensor {{1.0, 2}, {3, 4}}), "{1+2i,3+4i}")
assert(C.shares == nil or true)
fails("no '", function() return z[1].foo end)
fails("needs a complex tensor", function() return nacre.ones(2).imag end)
is(nacre.ones(2).real, "{1.0,1.0}")
fails("last dimension must have size 2",
      function() return nacre.view_as_complex(nacre.ones(3)) end)
fails("side by side",
      function() return nacre.view_as_complex(nacre.ones(2, 3):t()) end)
fails("needs float32 or float64", function()
  return nacre.view_as_complex(nacre.ones({2}, {dtype = "int64"}))
end)
local wide = random(3, 4)
same(nacre.complex(wide:t().real, wide:t().imag), wide:t(), "parts of a view")
same(wide[":, ::2"].imag, wide.imag[":, ::2"], "a view of parts")
assert(not wide:is_conj() and wide:is_complex())
same(wide.mH, wide.mT:conj(), "mH")
same(wide:adjoint(), wide.mH, "adjoint")
same(wide.H, wide.mH, "H")

-- In place through a view of parts is not recorded, and says so.
local leaf = random(2):requires_grad_()
local y = leaf * 1
fails("cannot be recorded", function() y.real:mul_(2) end)

--
-- What moves elements, or adds them, does so to both parts.
--
local index = nacre.tensor {3, 1, 2, 3}
local mask = nacre.tensor {{true, false, true, false},
                           {false, true, true, true},
                           {false, false, false, true}}
local moves = {
  "x:clone()", "x:t():contiguous()", "x:t()", "x:reshape(2, 6)", "x:flip(1)",
  "x:flip(2)", "x:flip({1, 2})", "x:roll(1, 2)", "x:rot90()", "x:fliplr()",
  "x:tril()", "x:triu(1)", "x:diagonal()", "x:trace()", "x:diag()",
  "x:select(1, 2):diag()", "x:diag_embed()", "x:repeat_interleave(2, 2)",
  "x:expand(2, 3, 4):contiguous()", "x:unfold(2, 2, 1):contiguous()",
  "nacre.cat({x, x:flip(1)}, 1)", "nacre.cat({x, x}, 2)",
  "nacre.stack({x, x}, 3)", "x:tile({2, 2})", "nacre.hstack {x, x}",
  "nacre.vstack {x, x}", "nacre.block_diag {x, x}", "x:chunk(2, 2)[2]",
  "nacre.nn.functional.pad(x, {1, 2})", "x[index]",
  'x["2"]', 'x[":, ::2"]', "x[mask]", "x:masked_select(mask)",
  "x:index_select(1, index)", "x:index_select(2, index)", "x:take(index)",
  "x:gather(1, nacre.tensor {{1, 2, 3, 1}})",
  "x:gather(2, nacre.tensor {{1}, {2}, {4}})",
  "x:take_along_dim(nacre.tensor {{1, 2, 3, 1}}, 1)",
  "x:masked_fill(mask, 0)", "nacre.where(mask, x, 0)",
  "x:scatter(1, nacre.tensor {{2, 2, 1, 3}}, x)",
  "x:scatter_add(1, nacre.tensor {{2, 2, 1, 3}, {2, 1, 1, 3}}, x)",
  "x:index_add(1, nacre.tensor {2, 2, 1}, x)",
  "x:index_add(2, index, x)", "x:index_copy(2, nacre.tensor {2, 1, 4, 3}, x)",
  "x:index_put({nacre.tensor {1, 1}, nacre.tensor {2, 2}}, "
  .. "x:select(2, 1):narrow(1, 1, 2), true)",
  "x:sum()", "x:sum(1)", "x:sum(2, true)", "x:sum({1, 2})", "x:mean(1)",
  "x:mean()", "x:t():sum(1)", "x:cumsum(1)", "x:cumsum(2)", "x:diff()",
  "-x", "x + x", "x - 2*x", "x:trapezoid()", "x:masked_scatter(mask, x)",
  "x:select_scatter(x:select(1, 1), 1, 2)", "x:movedim(1, 2)", "x:mT",
}
for _, dtype in ipairs {"complex64", "complex128"} do
  local x = random(3, 4):to(dtype)
  for _, call in ipairs(moves) do
    call = call:gsub("x:mT", "x.mT")
    local f = load("local x, index, mask = ... return " .. call)
    local want = nacre.complex(f(x.real, index, mask), f(x.imag, index, mask))
    local got = f(x, index, mask)
    C.same(nacre.view_as_real(got:contiguous()),
           nacre.view_as_real(want:contiguous()), call,
           dtype == "complex64" and 1e-5 or 1e-12)
  end
end
-- Large copies, transposed and not, and of more dimensions than the loop has.
local large = random(300, 200)
same(large:t():contiguous():t(), large, "transposed")
assert(nacre.allclose(large:to "complex64":to "complex128", large))
local deep = random(2, 1, 2, 1, 2, 2, 1, 2)
same(deep:permute(8, 7, 6, 5, 4, 3, 2, 1):contiguous()
         :permute(8, 7, 6, 5, 4, 3, 2, 1), deep, "eight dimensions")
same(deep:sum({1, 3}), nacre.complex(deep.real:sum({1, 3}),
                                     deep.imag:sum({1, 3})), "deep sum")

--
-- What does not take complex tensors says so.
--
for _, call in ipairs {
  "x:maximum(x)", "x:lt(x)", "x:sort()", "x:topk(2)", "x:amax()", "x:max()",
  "x:argmax()", "x:median()", "x:cummax(1)", "x:floor()", "x:round()",
  "x:floor_divide(x)", "x:remainder(x)", "x:atan2(x)", "x:hypot(x)",
  "x:erf()", "x:lgamma()", "x:relu()", "x:gelu()", "x:softmax(1)",
  "x:xlogy(x)", "x:clamp(0, 1)", "x:sign()", "x:bitwise_and(x)",
  "x:histc()", "x:unique()", "nacre.searchsorted(x, x)", "x:bincount()",
  "x:quantile(0.5)", 'nacre.arange(3, {dtype = "complex64"})',
  'nacre.randint(3, {2}, {dtype = "complex64"})',
  'nacre.randperm(3, {dtype = "complex64"})', "x:uniform_()", "x:normal_()",
  "x:bernoulli_()", "x:kthvalue(1)", "x:index_reduce(1, "
  .. "nacre.tensor {1}, x[{1}]:view(1), 'amax')",
} do
  fails("complex", function()
    return load("local x = ... return " .. call)(random(4))
  end)
end
fails("only a real number has", function()
  random(1):requires_grad_():sum():backward()
end)

--
-- Gradients: the convention of PyTorch.
--
local a = nacre.tensor(1 + 2*i, {dtype = "complex128", requires_grad = true})
;(a * a:conj()).real:backward()
eq(a.grad:item(), 2 + 4*i)
a.grad = nil
a:abs():backward()
assert((a.grad:item() - (1 + 2*i) / math.sqrt(5)):abs() < 1e-15)
local x = nacre.tensor({1.0, 2}, {dtype = "float64", requires_grad = true})
;(x * (1 + i)):abs():sum():backward()
eq(x.grad.dtype, "float64")
same(x.grad, nacre.full({2}, math.sqrt(2), {dtype = "float64"}), "of a real")
local zero = nacre.zeros(1, {dtype = "complex128", requires_grad = true})
zero:abs():sum():backward()
eq(zero.grad[1], 0*i)

-- What gives its operand itself leaves that a leaf.
for _, f in ipairs {nacre.real, nacre.resolve_conj, nacre.conj,
                    function(v) return v:contiguous() end,
                    function(v) return v:to "float32" end,
                    function(v) return v:expand(3) end,
                    function(v) return nacre.atleast_1d(v) end} do
  local leaf = nacre.ones(3, {requires_grad = true})
  f(leaf):sum():backward()
  assert(leaf.is_leaf and leaf.grad:sum():item() == 3)
end

-- Reductions of no elements
for _, dtype in ipairs {"complex64", "complex128"} do
  local none = nacre.zeros({3, 0}, {dtype = dtype})
  assert(none:prod():item() == 1 + 0*i and none:sum():item() == 0*i)
  eq(text(none:prod(2):sum():item()), "3+0i")
  assert(none:mean():isnan():item())
end

-- Reductions and scans are those of the elements one by one: every layout, and
-- more elements than a thread takes.
local function scanned(x, product)
  local y, all = {}, product and 1 + 0*i or 0*i
  for k, v in ipairs(x:totable()) do
    all = product and all * v or all + v
    y[k] = all
  end
  return nacre.tensor(y, {dtype = x.dtype})
end
local function close(got, want, dtype, what)
  eq(got.dtype, dtype)
  local off = (got - want):abs():amax():item()
  local most = (dtype == "complex64" and 1e-5 or 1e-11) *
               math.max(1, want:abs():amax():item())
  assert(off <= most, ("%s: off by %g"):format(what, off))
end
for _, dtype in ipairs {"complex64", "complex128"} do
  local turned = nacre.polar(nacre.rand(7, 70) / 4 + 0.9, nacre.rand(7, 70) * 6)
                 :to(dtype)
  for layout, x in pairs {
    dense = turned, transposed = turned:t(), cut = turned:narrow(2, 5, 9),
    conjugated = turned:conj(), repeated = turned[1]:expand(5, 70),
    reversed = turned:flip(2), apart = turned:unfold(2, 1, 3):squeeze(3)} do
    for d = 1, 2 do
      for name in ("sum prod cumsum cumprod"):gmatch "%a+" do
        local all = x[name](x, d)
        for k = 1, x:size(3 - d) do
          local want = scanned(x:select(3 - d, k):clone(), name:find "prod")
          local cum = name:find "cum"
          close(cum and all:select(3 - d, k) or all:narrow(1, k, 1),
                cum and want or want:narrow(1, want:numel(), 1), dtype,
                name .. " " .. layout)
        end
      end
    end
    close(x:mean(), x:sum() / x:numel(), dtype, "mean")
    close(x:sum(), x:sum(1):sum(), dtype, "sum of all")
    close(x:prod(), x:prod(2):prod(), dtype, "product of all")
  end
  local long = nacre.polar(nacre.ones(150001), nacre.arange(150001.0) % 7)
               :to(dtype)
  local parts = nacre.view_as_real(long):double()
  close(long:sum(), nacre.view_as_complex(parts:sum(1)), dtype, "a long sum")
  local function last(y) return y:narrow(1, y:numel(), 1):squeeze() end
  close(last(long:cumsum(1)), long:sum(), dtype, "a long scan")
  local first, rest = long:narrow(1, 1, 77777), long:narrow(1, 77778, 72224)
  close(long:prod(), first:prod() * rest:prod(), dtype, "a long product")
  if dtype == "complex128" then -- a device rounds each product
    close(last(long:cumprod(1)), long:prod(), dtype, "a scan of products")
  end
  local large = nacre.tensor({3e38, 3e38, -3e38, -3e38}):repeat_interleave(64)
  assert(nacre.zeros(1).is_cuda or
         nacre.complex(large, -large):sum():item() == 0*i)
end

--
-- Lines between complex ends, and ends with gradients
--
for _, dtype in ipairs {"float64", "complex128"} do
  for _, f in ipairs {nacre.linspace, nacre.logspace} do
    local a = nacre.tensor(-0.5, {dtype = dtype, requires_grad = true})
    local b = nacre.tensor(1.25, {dtype = dtype, requires_grad = true})
    local y, plain = f(a, b, 5, {dtype = dtype}), f(-0.5, 1.25, 5,
                                                    {dtype = dtype})
    close(y, plain, dtype, "a line of tensors")
    y:abs():pow(2):sum():backward()
    local step = 1e-6
    local function size(u, v)
      return f(u, v, 5, {dtype = dtype}):abs():pow(2):sum():item()
    end
    local function near(g, w)
      g = g:is_complex() and g.real:item() or g:item()
      assert(math.abs(g - w) < 1e-4 * math.max(1, math.abs(w)))
    end
    near(a.grad, (size(-0.5 + step, 1.25) - size(-0.5 - step, 1.25)) /
                 (2 * step))
    near(b.grad, (size(-0.5, 1.25 + step) - size(-0.5, 1.25 - step)) /
                 (2 * step))
  end
end
same(nacre.linspace(0, 2 + 4*i, 3, {dtype = "complex128"}),
     nacre.tensor({0, 1 + 2*i, 2 + 4*i}, {dtype = "complex128"}), "a line")
eq(nacre.linspace(nacre.tensor(i), 1, 3).dtype, "complex64")
eq(nacre.logspace(i, 1, 3).dtype, "complex64")
fails("{start} is complex, a result of float32 is not",
      nacre.linspace, i, 1, 3, {dtype = "float32"})
fails("has 1 dimension, but must be a number", nacre.linspace, nacre.ones(2), 1,
      3)

--
-- Display
--
local device = nacre.zeros(1).device
eq(text(nacre.tensor {1, 2.5*i}),
   "complex64[2] " .. device .. "  16 B\n  1.0000+0i  0+2.5000i")
eq(text(nacre.tensor(1 - i)), "1.0-1.0i  complex64[] " .. device)
eq(text(nacre.zeros(0, {dtype = "complex64"})),
   "complex64[0] " .. device .. "  0 B (empty)")
