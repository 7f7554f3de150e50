-- SPDX-License-Identifier: MIT
-- Reductions of float32 have the range of the CPU's: squares, sums and powers
-- that float32 has no room for give the results that it has. Few elements and
-- many, rows, columns and strides, which other kernels read.
-- Run by: nacre tests/cuda/cuda_range.lua, with a device, or
-- NACRE_CUDA=emulated

if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
local nn, F = nacre.nn, nacre.nn.functional
nacre.manual_seed(8)

local function to(device, v)
  if nacre.is_tensor(v) then return v:to(device) end
  return v
end

-- Compares f of these arguments on both devices, relative to the largest.
local function check(what, f, ...)
  local given, there = {...}, {}
  for i, v in ipairs(given) do there[i] = to("cuda", v) end
  local want, got = f(table.unpack(given)), f(table.unpack(there))
  assert(got.is_cuda, what)
  want, got = want:double(), got:cpu():double()
  local finite = want:isfinite()
  assert(finite:equal(got:isfinite()),
         ("%s: %s, not %s"):format(what, tostring(got), tostring(want)))
  local most = want[finite]:abs():max():item()
  assert(most > 0 and most < math.huge, what .. ": nothing to compare")
  local off = (got - want)[finite]:abs():max():item()
  assert(off <= 2e-5 * most, ("%s: %s, not %s"):format(what, tostring(got),
                                                    tostring(want)))
end

local lengths = {2, 3, 7, 64, 300, 5000}

for _, scale in ipairs {1e20, 1e30, 1e-25, 1e-30} do
  for _, n in ipairs(lengths) do
    local name = ("%g, %d elements"):format(scale, n)
    local x = (nacre.rand(3, n) + 0.5) * scale
    local columns = x:t():contiguous()
    local strided = nacre.stack({x, x * 2}, 3):select(3, 1)
    for _, dtype in ipairs {"float32", "bfloat16"} do
      local t = x:to(dtype)
      check(name .. ", norm", function(a) return a:norm(2, 2) end, t)
      check(name .. ", norm of columns", function(a) return a:norm(2, 1) end,
            columns:to(dtype))
      check(name .. ", norm of all", function(a) return a:norm() end, t)
      check(name .. ", norm of strides", function(a) return a:norm(2, 2) end,
            strided:to(dtype))
      check(name .. ", std", function(a) return a:std(2) end, t)
      check(name .. ", std of columns", function(a) return a:std(1) end,
            columns:to(dtype))
      check(name .. ", std of strides", function(a) return a:std(2) end,
            strided:to(dtype))
      check(name .. ", layer_norm", function(a)
        return F.layer_norm(a, n, nil, nil, 0)
      end, t)
      check(name .. ", rms_norm", function(a)
        return F.rms_norm(a, n, nil, 1e-37)
      end, t * (scale < 1e-20 and 1e6 or 1))
      check(name .. ", normalize", function(a)
        return F.normalize(a, {dim = 2, eps = 0})
      end, t)
    end
    check(name .. ", dist", function(a) return a:dist(a * 3) end, x)
    check(name .. ", cosine", function(a)
      return F.cosine_similarity(a, a + a:flip(2), 2, 0)
    end, x)
  end
end

-- ---- means, whose sum has no room or too few digits

check("mean", function(a) return a:mean() end, nacre.full({4000}, 3e38))
check("mean of rows", function(a) return a:mean(2) end,
      nacre.full({3, 9}, 3e38))
check("mean of columns", function(a) return a:mean(1) end,
      nacre.full({9, 64}, -3e38))
check("prod", function(a) return a:prod() end,
      nacre.tensor {1e30, 2e30, 1e-30, 4e-30})
check("prod of columns", function(a) return a:prod(1) end,
      nacre.tensor({{1e30}, {2e30}, {1e-30}, {1e-25}}):expand(4, 64))
local far = nacre.tensor {1e8, 1e8 + 8, 1e8 + 16}
check("cov", function(a) return a:cov() end, far)
assert(far:cuda():cov():item() == 64)
check("var", function(a) return a:var(2) end,
      nacre.randn(2, 4000) * 1e15 + 1e19)
check("std", function(a) return a:std() end, nacre.randn(2000) * 1e19 + 1e20)
check("batch_norm", function(a)
  return F.batch_norm(a, nil, nil, nil, nil, true)
end, nacre.randn(6, 5, 40) * 1e25)
check("group_norm", function(a) return F.group_norm(a, 2) end,
      nacre.randn(6, 4, 40) * 1e25)
check("instance_norm", function(a) return F.instance_norm(a) end,
      nacre.randn(6, 4, 900) * 1e25)

-- ---- gradients

check("gradient of norm", function(a)
  a = a:detach():requires_grad_()
  a:norm():backward()
  return a.grad
end, nacre.rand(50) * 1e25)
check("clip_grad_norm_", function(a)
  local p = nn.Parameter(a:clone())
  p.grad = a * 1e25
  local total = nn.utils.clip_grad_norm_({p}, 1e22)
  return nacre.cat {p.grad:flatten(), total:reshape(1)}
end, nacre.randn(40, 50))
print "cuda_range: all passed"
