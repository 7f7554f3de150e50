-- SPDX-License-Identifier: MIT
-- Copies whose operand is dense in another dimension than the result: of every
-- type, at the edges of tiles, into dense and into strided results.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local checks = 0

-- The elements 0, 1, ... modulo 97 of a tensor with these sizes, its
-- dimensions in the order p: put together in that order by broadcasting.
local function permuted(sizes, p)
  local step, sum = {}, 0
  local n = 1
  for d = #sizes, 1, -1 do step[d], n = n, n * sizes[d] end
  for i, d in ipairs(p) do
    local size = {}
    for k = 1, #sizes do size[k] = k == i and sizes[d] or 1 end
    sum = sum + nacre.arange(sizes[d]):reshape(size) * step[d]
  end
  return sum % 97
end

local function same(got, want, ...)
  checks = checks + 1
  assert(nacre.equal(got, want), ("%s of %s in the order %s: %s")
         :format(got.dtype, ..., table.concat(select(2, ...), ","),
                 select(3, ...)))
end

local function check(dtype, sizes, p)
  local name = table.concat(sizes, "x")
  local order = {}
  for i = 1, #sizes do order[i] = i end
  local x = permuted(sizes, order):to(dtype):contiguous()
  local want = permuted(sizes, p):to(dtype):contiguous()
  local permuted_view = x:permute(p)
  local copy = permuted_view:contiguous()
  assert(copy:is_contiguous())
  same(copy, want, name, p, "contiguous")
  local wide = nacre.zeros(want:size(1), want:size(2) * 2, want:numel() //
                           want:size(1) // want:size(2), {dtype = dtype})
  local half = wide:narrow(2, 1, want:size(2))
  half:copy_(permuted_view:reshape(half:size()))
  same(half, want:reshape(half:size()), name, p, "into a part")
  assert(wide:narrow(2, want:size(2) + 1, want:size(2)):sum():item() == 0)
  local back = nacre.empty(x:size(), {dtype = dtype})
  back:permute(p):copy_(want)
  same(back, x, name, p, "back")
end

for _, dtype in ipairs(C.dtypes) do
  for _, sizes in ipairs {{200, 300}, {257, 129}, {8, 5000},
                          {5000, 9}} do
    check(dtype, sizes, {2, 1})
  end
  for _, p in ipairs {{1, 3, 2}, {3, 2, 1}, {2, 1, 3}, {3, 1, 2},
                      {2, 3, 1}} do
    check(dtype, {33, 65, 34}, p)
  end
end

-- results that go past the cache: whole tiles, and with edges
for _, case in ipairs {{"float32", 2048, 2176}, {"float64", 1040, 2048},
                       {"int16", 2944, 3008}, {"uint8", 4224, 4160},
                       {"float32", 2064, 2100}} do
  local t = nacre.randint(0, 250, {case[2], case[3]}):to(case[1])
  local turned = t:t():contiguous()
  checks = checks + 1
  assert(turned:t():equal(t) and turned:is_contiguous(), case[1])
  assert(turned[{5, 7}] == t[{7, 5}])
end

-- the sign of 0 is kept
local x = nacre.zeros(200, 300):neg_():t():contiguous()
assert((1 / x):max():item() == -math.huge)
print(("transpose_copy: %d checks passed"):format(checks))
