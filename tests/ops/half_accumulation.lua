-- SPDX-License-Identifier: MIT
-- Halves that are added into an element several times are added in float32, and
-- the sum is rounded once: index_add, scatter_add, index_put, the gradients of
-- embedding, gather and indexing; into small tensors and large ones, with any
-- strides.
-- Run by: nacre tests/ops/half_accumulation.lua, and with a device

local F = nacre.nn.functional
local devices = {"cpu"}
if nacre.cuda.is_available() then devices[2] = "cuda" end
nacre.manual_seed(7)

local function check(what, got, want)
  local same = got:float():cpu():eq(want:float():cpu()):all():item()
  assert(same, ("%s: %s\nnot %s"):format(what, tostring(got), tostring(want)))
end

-- 4096 ones at position 2 of x, in each way.
local function ways(o)
  local n = 4096
  local ones, at = nacre.ones(n, o), nacre.full({n}, 2, {device = o.device})
  local x = nacre.zeros(3, o)
  local leaf = nacre.zeros(3, o):requires_grad_()
  local function grad(y)
    leaf.grad = nil
    y:sum():backward()
    return leaf.grad:flatten()
  end
  return {
    scatter_add = x:scatter_add(1, at, ones),
    ["scatter with reduce"] = x:scatter(1, at, ones, {reduce = "add"}),
    scatter_reduce = x:scatter_reduce(1, at, ones, "sum"),
    index_add = x:index_add(1, at, ones),
    index_put = x:clone():index_put_({at}, ones, {accumulate = true}),
    ["gradient of gather"] = grad(leaf:gather(1, at)),
    ["gradient of an index"] = grad(leaf[at]),
    ["gradient of index_select"] = grad(leaf:index_select(1, at)),
    ["gradient of embedding"] = grad(F.embedding(at, leaf:unsqueeze(2))),
    ["gradient of take"] = grad(nacre.take(leaf, at)),
  }
end

-- Random additions: as in float32, rounded at the end.
local function compare(what, dtype, device, size, count, dim, strided)
  local x = nacre.randn(size):to(dtype)
  local other = {table.unpack(size)}
  other[dim] = count
  local src = nacre.randn(other):mul(8):to(dtype)
  local at = nacre.randint(1, size[dim] // 2 + 2, {count})
  local function place(t)
    t = t:to(device)
    if not strided then return t:clone() end
    return t:transpose(1, -1):clone():contiguous():transpose(1, -1)
  end
  local function want(f) return f(x:float(), src:float()):to(dtype) end
  local ix = at:to(device)
  local added = place(x)
  added:index_add_(dim, ix, place(src))
  check(what .. ", index_add", added, want(function(a, b)
    return a:index_add(dim, at, b)
  end))
  local shape = {}
  for d = 1, #size do shape[d] = d == dim and count or 1 end
  local wide = at:reshape(shape):expand(other):contiguous()
  local scattered = place(x)
  scattered:scatter_add_(dim, wide:to(device), place(src))
  check(what .. ", scatter_add", scattered, want(function(a, b)
    return a:scatter_add(dim, wide, b)
  end))
end

for _, device in ipairs(devices) do
  for _, dtype in ipairs {"float16", "bfloat16"} do
    local what = device .. ", " .. dtype
    for name, y in pairs(ways {dtype = dtype, device = device}) do
      check(what .. ", " .. name, y, nacre.tensor {0.0, 4096, 0})
    end
    for _, strided in ipairs {false, true} do
      compare(what .. ", few", dtype, device, {9}, 300, 1, strided)
      compare(what .. ", many", dtype, device, {5000}, 400, 1, strided)
      compare(what .. ", rows", dtype, device, {40, 13}, 200, 1, strided)
      compare(what .. ", rows of a large one", dtype, device, {3000, 13}, 200,
              1, strided)
      compare(what .. ", columns", dtype, device, {13, 40}, 200, 2, strided)
      compare(what .. ", planes", dtype, device, {4, 300, 5}, 70, 2, strided)
    end
    -- several index tensors, and what is indexed in the middle
    local o = {dtype = dtype, device = device}
    local x = nacre.zeros(3, 2, 4, o)
    local a = nacre.full({3000}, 2, {device = device})
    x:index_put_({nacre.tensor({3}, {device = device}), a, a},
                 nacre.ones(3000, o), {accumulate = true})
    check(what .. ", several", x[{3, 2}], nacre.tensor {
      0.0, dtype == "float16" and 3000 or 3008, 0, 0})
    -- each element once: as before
    local y = nacre.full({4}, 1.0, o):index_add(1, nacre.tensor({4, 2},
              {device = device}), nacre.tensor({0.5, 3}, o))
    check(what .. ", distinct", y, nacre.tensor {1, 4, 1, 1.5})
    -- a position out of range changes nothing
    if device == "cpu" then
      local z = nacre.zeros(50, o)
      local bad = nacre.tensor {1, 1, 51}
      assert(not pcall(z.scatter_add_, z, 1, bad, nacre.ones(3, o)))
      assert(not pcall(z.index_add_, z, 1, bad, nacre.ones(3, o)))
      check(what .. ", out of range", z, nacre.zeros(50))
    end
  end
end
