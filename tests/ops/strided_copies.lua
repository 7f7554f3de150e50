-- SPDX-License-Identifier: MIT
-- Copies in another order, of tensors of every layout and of up to 120,000
-- elements, or more than fit into a cache: what flip, tril, triu,
-- repeat_interleave, cat, stack and index_put_ give is what indices, masks,
-- assignments and loops in Lua give.
-- Run by: nacre tests/ops/strided_copies.lua [seed]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local seed = tonumber(arg and arg[1]) or 1
nacre.manual_seed(seed)
math.randomseed(seed)

local checks = 0
local function same(what, got, want, ...)
  checks = checks + 1
  assert(got.dtype == want.dtype and C.text(got:size()) == C.text(want:size())
         and nacre.allclose(got:double(), want:double(), 0, 0, true),
         (what .. ": %s, not %s"):format(..., tostring(got), tostring(want)))
end

-- ---- tensors of a shape, however they lie

local ways = {
  function(t) return t end,
  function(t) return t:transpose(1, -1):contiguous():transpose(1, -1) end,
  function(t) return nacre.cat({t, t}, -1):narrow(-1, 1, t:size(-1)) end,
  function(t)                               -- every other one of a line
    return nacre.stack({t, t}, -1):select(-1, 1)
  end,
  function(t) return t:narrow(1, 1, 1):expand(t:size()) end,
}

local function lying(size, dtype)
  local t = nacre.randint(0, 100, size)
  t = dtype == "bool" and t:gt(50) or t:to(dtype)
  return ways[math.random(#ways)](t)
end

local shapes = {{1}, {5}, {70001}, {3, 4}, {4, 1}, {300, 301},
                {2, 3, 4}, {5, 1, 3}, {2, 3, 1, 2}, {40, 50, 60}}

-- ---- flips and triangles

for _, size in ipairs(shapes) do
  for _, dtype in ipairs(C.dtypes) do
    local t = lying(size, dtype)
    local dims, want = {}, t
    for d = 1, #size do
      if math.random(2) == 1 then
        dims[#dims + 1] = d
        want = want:index_select(d, nacre.range(size[d], 1, -1))
      end
    end
    same("flip %s", t:flip(dims), want, C.text(dims))
    if #size > 1 then
      local k = math.random(-size[#size - 1] - 1, size[#size] + 1)
      local off = nacre.range(1, size[#size]) -
                  nacre.range(1, size[#size - 1]):unsqueeze(-1)
      local zero = t:zeros_like()
      same("tril %d", t:tril(k), nacre.where(off:le(k), t, zero), k)
      same("triu %d", t:triu(k), nacre.where(off:ge(k), t, zero), k)
    end
  end
end
local ends = nacre.ones(3, 4)
for _, k in ipairs {math.mininteger, math.maxinteger} do
  local all = k < 0 and ends * 0 or ends
  same("tril %d", ends:tril(k), all, k)
  same("triu %d", ends:triu(k), ends - all, k)
end

-- ---- elements repeated

for _, size in ipairs(shapes) do
  for _, dtype in ipairs(C.dtypes) do
    local t = lying(size, dtype)
    for _, times in ipairs {1, 2, 3, 4, 7, 65} do
      local d = math.random(#size)
      if t:numel() * times < 300000 then
        local at = (nacre.range(0, size[d] * times - 1) / times):floor() + 1
        local got = t:repeat_interleave(times, d)
        same("repeat_interleave %s", got, t:index_select(d, at:long()),
             C.text {times, d})
        assert(not C.shares(got, t))
      end
    end
  end
end
for _, dtype in ipairs {"uint8", "float16", "float32", "float64"} do
  local n = (33 << 20) // nacre.empty(1, {dtype = dtype}):element_size() // 2
  for _, size in ipairs {{n + 5}, {n // 192, 192}, {n // 100, 100}} do
    local t = nacre.arange(size[1] * (size[2] or 1)) % 97
    t = t:to(dtype):reshape(size)
    t = size[2] and nacre.cat({t, t}, 2):narrow(2, 1, size[2]) or t
    local y = t:repeat_interleave(2, -1):reshape(-1, 2)   -- larger than a cache
    local flat = t:reshape(-1)
    assert(y:select(2, 1):equal(flat) and y:select(2, 2):equal(flat))
  end
end

-- ---- joined

local function joined(list, dim, dtype)
  local size, at = list[1]:size(), 1
  size[dim] = 0
  for _, t in ipairs(list) do size[dim] = size[dim] + t:size(dim) end
  local y = nacre.empty(size, {dtype = dtype})
  for _, t in ipairs(list) do
    if t:size(dim) > 0 then y:narrow(dim, at, t:size(dim)):copy_(t) end
    at = at + t:size(dim)
  end
  return y
end

for _, size in ipairs(shapes) do
  for _, dtype in ipairs(C.dtypes) do
    local dim, list, planes = math.random(#size), {}, {}
    for i = 1, math.random(4) do
      local own = {table.unpack(size)}
      own[dim] = math.random(0, 40)
      list[i] = own[dim] == 0 and nacre.empty(own, {dtype = dtype}) or
                lying(own, dtype)
      planes[i] = lying(size, dtype)
    end
    same("cat of %d", nacre.cat(list, dim), joined(list, dim, dtype), #list)
    for i, t in ipairs(planes) do list[i] = t:unsqueeze(dim) end
    same("stack of %d", nacre.stack(planes, dim), joined(list, dim, dtype),
         #list)
  end
end
same("cat of %s types", nacre.cat({nacre.ones(2, 20),
     nacre.ones(2, 20, {dtype = "int32"})}, 2), nacre.ones(2, 40), "two")

-- ---- added at positions, some of which are the same

for _, dtype in ipairs(C.dtypes) do
  local flat, src = lying({30}, dtype), lying({12}, dtype)
  local index = nacre.randint(1, 31, {12})
  local each = flat:clone()
  for i = 1, 12 do
    local own, v = each[index[i]], src[i]
    if dtype == "bool" then each[index[i]] = own or v
    else each[index[i]] = nacre.tensor(own, {dtype = dtype}) +
                          nacre.tensor(v, {dtype = dtype}) end
  end
  same("index_put_ of %s", flat:clone():index_put_({index}, src, true), each,
       dtype)
end

print(("strided_copies: %d checks passed"):format(checks))
