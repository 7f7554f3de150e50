-- SPDX-License-Identifier: MIT
-- Sharded tensors compute what whole ones do; what would move much is refused.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local R = dofile(here .. "ranks.lua")
local fails, dist = C.fails, nacre.distributed
local shard, matmul = dist.shard, dist.matmul
local rank, size = R.rank, R.size

nacre.manual_seed(1)
local function near(what, s, want)
  local got = s
  if not nacre.is_tensor(s) then
    assert(C.text(s:size()) == C.text(want:size()), what .. ": size")
    got = s:gather()
  end
  assert(C.text(got:size()) == C.text(want:size()), what .. ": shape")
  assert(got:allclose(want, 1e-13, 1e-13), what)
end

-- Sizes: more rows than ranks, as many, fewer.
for _, shape in ipairs {{7, 3}, {4, 5, 2}, {1, 6}, {2, 2}} do
  local x, y = nacre.rand(shape) + 0.5, nacre.rand(shape) + 0.5
  for dim = 1, #shape do
    local a, b = shard(x, dim), shard(y, dim)
    near("whole", a, x)
    near("negative dim", shard(x, dim - #shape - 1), x)
    assert(a:size(dim) == shape[dim] and C.text(a.shape) == C.text(shape))
    near("elementwise", (a + b * 2 - a / b) ^ 2 - 1,
         (x + y * 2 - x / y) ^ 2 - 1)
    near("number first", 2 - a, 2 - x)
    near("unary", (-a):exp():sqrt():tanh(), (-x):exp():sqrt():tanh())
    near("maximum", a:maximum(b), x:maximum(y))
    near("map", a:map(function(p) return p * 3 end), x * 3)
    -- beside whole tensors
    near("beside", a * y, x * y)
    near("whole first", y * a, y * x)
    local row = nacre.rand(shape[#shape])
    near("a row", a + row, x + row)
    near("a scalar", a + nacre.tensor(2.0), x + 2)
    near("more dimensions", a + nacre.ones(2, table.unpack(shape)),
         x + nacre.ones(2, table.unpack(shape)))
    -- reductions
    near("sum", a:sum(), x:sum())
    near("prod", a:prod(), x:prod())
    near("max", a:max(), x:amax())
    near("min", a:min(), x:amin())
    for d = 1, #shape do
      for _, keep in ipairs {false, true} do
        near("sum of a dim", a:sum(d, keep), x:sum(d, keep))
        near("max of a dim", a:max(d, keep), x:amax(d, keep))
        near("min of a dim", a:min(-#shape + d - 1, keep), x:amin(d, keep))
      end
    end
    for other = 1, #shape do
      near("redistribute", a:redistribute(other), x)
    end
    if dim == 1 then
      fails("are sharded differently", function() return a + shard(x, 2) end)
    end
  end
end
do
  local x = nacre.arange(1, 6)
  assert(shard(x):max():item() == 5 and shard(x):min():item() == 1)
  assert(shard(x):sum():item() == 15 and shard(x).dtype == "int64")
end
do -- some ranks have none of these
  local x = shard(nacre.tensor{true})
  assert(x:max():item() == true and x:min():item() == true)
end

-- ---- products
local a, b = nacre.rand(7, 5), nacre.rand(5, 6)
near("rows", matmul(shard(a, 1), b), a:matmul(b))
near("columns", matmul(a, shard(b, 2)), a:matmul(b))
near("inner", matmul(shard(a, 2), shard(b, 1)), a:matmul(b))
near("a method", shard(a, 1):matmul(b), a:matmul(b))
near("whole", matmul(a, b), a:matmul(b))
fails("many elements would move",
      "redistribute(dim) or gather() of one of them", matmul, shard(a, 1),
      shard(b, 2))
fails("many elements would move", matmul, shard(a, 2), b)
fails("two matrices", matmul, a, 3)

-- ---- the rest
local s = shard(a)
assert(tostring(s):find("float64[7x5] sharded along dim 1, here 1 to", 1, true)
       or rank > 0)
fails("a sharded tensor has no 'cumsum'",
      "s:gather():cumsum(...), or s:map(f) for the parts",
      function() return s:cumsum(1) end)
fails("does not match [7x5]", function() return s + nacre.ones(6, 1) end)
fails("the size of the part", s.map, s, function() return nacre.ones(99) end)
fails("gradients do not go through", shard, nacre.ones(3):requires_grad_())
fails("no dimension", shard, nacre.tensor(1.0))
if size > 1 then assert(s.part:size(1) < 7) end

R.finish "shards"
