-- SPDX-License-Identifier: MIT
-- Sorting, ranks and searching: order of nan and zeros, stability, positions
-- from 1 to n, every dtype, long lines, threads, errors, histograms.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local is, shape, fails = C.is, C.shape, C.fails
local inf, nan = math.huge, 0 / 0
local T = nacre.tensor

-- ---- sort: nan last, -0 as 0, stable both ways, positions from 1

local y, at = T {3, 1, 2, 1}:sort()
is(y, "{1,1,2,3}")
is(at, "{2,4,3,1}")
y, at = T {3, 1, 2, 1}:sort(-1, true)
is(y, "{3,2,1,1}")
is(at, "{1,3,2,4}")
y, at = T {1.0, nan, -inf, inf, -1.0}:sort()
is(at, "{3,5,1,4,2}")
assert(y[5] ~= y[5])
is(select(2, T({1.0, nan, -inf, nan}):sort {descending = true}),
   "{2,4,1,3}")
is(select(2, T({0.0, -0.0, 0.0}):sort()), "{1,2,3}")
assert(1 / (T {0.0, -0.0}:sort())[2] == -inf, "-0 stays what it is")
y, at = T(7):sort()
shape(y)
assert(at:item() == 1)

-- ---- every type, lines of many lengths, against table.sort

local function list(t, n, seed)
  local v = {}
  for i = 1, n do
    local k = (i * 7919 + seed * 104729) % 1009
    if t == "bool" then v[i] = k % 2 == 0
    elseif t:find("float") then v[i] = (k - 500) / 8
    elseif t == "uint8" then v[i] = k % 256
    elseif t == "int8" then v[i] = k % 256 - 128
    elseif t == "int64" then v[i] = (k - 500) * (1 << 40)
    else v[i] = k - 500 end
  end
  return v
end

local function key(v) return v == true and 1 or v == false and 0 or v end

for _, t in ipairs(C.dtypes) do
  for _, n in ipairs {0, 1, 2, 15, 16, 17, 100, 129, 700, 800, 3000} do
    local x = n > 0 and T(list(t, n, n), {dtype = t}) or
              nacre.zeros(0, {dtype = t})
    local v = x:totable()
    for _, down in ipairs {false, true} do
      local order = {}
      for i = 1, n do order[i] = i end
      table.sort(order, function(i, j)
        local a, b = key(v[i]), key(v[j])
        if a == b then return i < j end
        if down then return a > b end
        return a < b
      end)
      local s, p = x:sort(1, down)
      assert(s.dtype == t and p.dtype == "int64")
      is(p, C.text(order))
      assert(n == 0 or s == x[p], t .. " " .. n)
      local k = n // 3
      local top, where = x:topk(k, 1, down)
      assert(where == p:narrow(1, 1, k) and top == s:narrow(1, 1, k),
             ("topk %d of %s[%d]"):format(k, t, n))
      if n > 0 and not down then
        for _, r in ipairs {1, n // 2 + 1, n} do
          local kth, i = x:kthvalue(r)
          assert(i:item() == order[r] and kth:item() == v[order[r]],
                 ("kthvalue %d of %s[%d]"):format(r, t, n))
        end
      end
    end
  end
end

-- ---- dimensions and layouts

local x = nacre.tensor(list("float32", 360, 3)):view(5, 8, 9)
for d = 1, 3 do
  local want = x:transpose(d, 3):contiguous():sort(3):transpose(d, 3)
  assert(x:sort(d) == want)
  assert(x:transpose(1, 3):sort(4 - d) == x:sort(d):transpose(1, 3))
  assert(x:slice(2, 1, -1, 2):sort(d) == x:slice(2, 1, -1, 2):clone():sort(d))
end
assert(x:narrow(1, 1, 1):expand(4, 8, 9):sort(2)[4] == x:sort(2)[1])

-- ---- long lines are sorted in chunks; threads do not matter

nacre.manual_seed(1)
local rows = nacre.zeros(1).device == "cpu" and 700 or 70 -- it may be emulated
for _, t in ipairs {"int16", "float32", "int64", "float64"} do
  local n = rows * 1000
  local long = (nacre.randn(n + 1) * 1000):to(t)
  local first, places
  for threads = 1, 3 do
    nacre.set_num_threads(threads)
    local s, p = long:sort()
    assert(s:narrow(1, 1, n):gt(s:narrow(1, 2, n)):any():item() == false)
    assert(long[p] == s)
    first, places = first or s, places or p
    assert(s == first and p == places, "threads differ")
    assert((long:topk(1000)) == long:sort(1, true):narrow(1, 1, 1000))
    local many = long:narrow(1, 1, n):view(rows, 1000)
    assert(many:sort()[rows // 2] == many[rows // 2]:sort())
  end
  local same = places:sort()
  assert(same == nacre.range(1, n + 1), "each position once")
end
nacre.set_num_threads(2)

-- ---- several long lines at a time, many equal; columns; what is made of it

for _, t in ipairs {"bool", "int8", "float16", "int32", "float64"} do
  local v = (nacre.arange(15000) * 7919 % 97):gt(48)
  if t ~= "bool" then v = (nacre.arange(15000) * 7919 % 97):to(t) end
  local lines = v:view(3, 5000)
  for _, down in ipairs {false, true} do
    local s, p = lines:sort(2, down)
    local columns, rows = lines:t():sort(1, down)
    assert(columns == s:t() and rows == p:t())
    for i = 1, 3 do
      local one, at = lines[i]:sort(1, down)
      assert(s[i] == one and p[i] == at and lines[i][at] == one)
    end
    assert(lines:argsort(2, down) == p)
  end
  assert(lines:t():msort() == lines:sort(2):t())
  assert(lines:unique() == lines[1]:unique())
  local top, at = lines:topk(4500, 2)   -- too many to be looked for
  local s, p = lines:sort(2, true)
  assert(top == s:narrow(2, 1, 4500) and at == p:narrow(2, 1, 4500))
  assert(lines:kthvalue(2500, 2) == lines:sort(2):select(2, 2500))
end

-- ---- ranks and sets; opinfo_torch.py compares them with PyTorch

y, at = T({1.0, nan, 0.0}):median(1)
assert(y:item() ~= y:item() and at:item() == 2, "the first nan")
y, at = T({4, 2, 2, 4, 1}):mode()
assert(y:item() == 2 and at:item() == 3)
y, at = T({{1, 1}, {2, 1}}):mode(1, true)
is(y, "{{1,1}}")
is(at, "{{1,2}}")
shape(nacre.rand(2, 3, 4):quantile(T {0.1, 0.2}, 2, true), 2, 2, 1, 4)

assert(nacre.isin(T {nan}, T {nan})[1] == false)

-- ---- places: index 1 and index n+1

local seq = T {1.0, 3, 5}
is(nacre.searchsorted(seq, T {1.0, 5}, {side = "right"}), "{2,4}")
is(nacre.searchsorted(T {5.0, 1, 3}, T {2.0}, {sorter = T {2, 3, 1}}),
   "{2}")
-- Every length of a sequence, and of what is looked for side by side: by the
-- comparisons of one value after the other, also where nan is in between.
local function bisect(row, v, right)
  local low, high = 0, #row
  while low < high do
    local mid = (low + high) // 2
    local e = row[mid + 1]
    if right and not (e > v) or not right and not (e >= v)
    then low = mid + 1 else high = mid end
  end
  return low + 1
end
for n = 1, 70 do
  local dtype = ({"int64", "float32", "float64"})[n % 3 + 1]
  local rows = nacre.randint(0, 40, {2, n}):to(dtype):sort(2)
  local x = nacre.randint(-2, 43, {2, n % 19 + 1}):to(dtype)
  if dtype ~= "int64" then
    x[{1, 1}] = 0 / 0
    if n > 9 then rows[{1, n // 2}], rows[{2, n}] = 0 / 0, 0 / 0 end
  end
  for _, right in ipairs {false, true} do
    local got = nacre.searchsorted(rows, x, {right = right}):tolist()
    for r, row in ipairs(rows:tolist()) do
      for i, v in ipairs(x[r]:tolist()) do
        assert(got[r][i] == bisect(row, v, right), n)
      end
      assert(nacre.searchsorted(rows[r], x[r], {right = right}):equal(
               nacre.tensor(got[r])))
    end
  end
end
fails("0", nacre.searchsorted, seq, seq, {sorter = T {0, 1, 2}})

-- ---- errors

fails("k is 4, but dim 1 has 3 elements", nacre.topk, seq, 4)
fails("k is 0, but dim 1 has 3 elements", nacre.kthvalue, seq, 0)
fails("no elements along dim 1", nacre.kthvalue, nacre.zeros(0), 1)
fails("dim 2 is outside", nacre.sort, seq, 2)
fails("q must lie in [0, 1]", nacre.quantile, seq, 1.5)
fails("needs float32 or float64", "self:to(\"float32\") first",
      nacre.quantile, T {1, 2}, 0.5)
fails("-1 is negative", nacre.bincount, T {-1})
fails("counts integers", nacre.bincount, seq)
fails("max is 1, less than min", nacre.histc, seq, 4, 3, 1)
fails("side is \"left\", but right is true", nacre.searchsorted, seq, 1,
      {side = "left", right = true})
fails("have 2 dimensions", nacre.bucketize, seq, nacre.ones(2, 2))
do -- slices are compared by the other dimensions in their order
  local t = T {{{0, 1}, {1, 0}}, {{1, 0}, {0, 0}}}
  assert(t:unique {dim = 3} == T {{{0, 1}, {1, 0}}, {{1, 0}, {0, 0}}})
  t = T {{{1, 0}, {0, 1}}, {{0, 0}, {0, 0}}}
  assert(t:unique {dim = 3} == T {{{0, 1}, {1, 0}}, {{0, 0}, {0, 0}}})
  t = T {{{0, 0}, {0, 1}}, {{1, 0}, {0, 0}}}
  local _, at = t:unique {dim = 3, return_inverse = true}
  assert(at == T {1, 2})
end
fails("no slices", nacre.unique, T(1), {dim = 1})

do -- of equal elements the gradient goes to the one whose position is given
  local t = T({3.0, 1, 3}, {requires_grad = true})
  t:mode():backward()
  is(t.grad, "{0.0,0.0,1.0}")
end
do -- what is counted in blocks is what is counted at once
  local n = (1 << 18) + 12345
  local x = nacre.arange(n, {dtype = "float32"}) % 1000
  local whole = n // 1000
  assert(x:histc(1000, 0, 1000):sum():item() == n)
  assert(x:histogram(1000)[1] == whole + 1)
  local between = x:histogram(nacre.tensor {0.0, 250, 500, 750, 1000})
  assert(x:histc(4, 0, 1000) == between)
  for _, t in ipairs {"uint8", "int32", "int64"} do
    local c = (x % 200):to(t):bincount()
    assert(#c == 200 and c:sum():item() == n, t)
    assert(c == (x % 200):long():bincount(nacre.ones(n)):long(), t)
  end
end
do -- bins of equal width count what a search between their edges counts
  local function same(x, n, range)
    local counts, edge = x:histogram(n, {range = range})
    assert(counts == x:histogram(edge), ("%s, %d bins"):format(x, n))
  end
  nacre.manual_seed(11)
  for _, t in ipairs {"float32", "float64"} do
    local x = nacre.randn(100003, {dtype = t})
    for _, n in ipairs {1, 2, 3, 10, 49, 1000, 65537} do
      same(x, n)
      same(x, n, {-1, 2})
      same((x * 4):round() / 4, n, {-2, 3})         -- on the edges
      same(select(2, x:histogram(n)), n)            -- the edges themselves
      same(x:abs() ^ 30, n)
    end
    same(x:narrow(1, 1, 99999):reshape(33333, 3):select(2, 2), 100)
    same(nacre.full({5}, 3.5, {dtype = t}), 7)
    same(nacre.tensor({1.0, 1 + 2 ^ -22}, {dtype = t}), 1000)
    same(nacre.zeros(0, {dtype = t}), 3)
    x[5], x[77], x[78] = nan, 1 / 0, -1 / 0
    same(x, 100, {-3, 3})
    assert(x:histogram(10, {range = {5, 6}}):sum():item() < 5)
  end
  same(nacre.tensor({-1.7e308, 0, 1.7e308}, {dtype = "float64"}), 4)
end
do -- histc counts by its rule, in the type of its elements
  local function counts(x, n, from, to)
    local bin = (x - from) * n / (x:new_tensor(to) - from)
    bin = bin:floor():clamp {max = n - 1}
    local inside = x:ge(from):logical_and(x:le(to))
    return bin[inside]:long():bincount(nil, n):to(x.dtype)
  end
  for _, t in ipairs {"float32", "float64"} do
    for _, size in ipairs {0, 1, 511, 513, 70001} do
      local x = nacre.randn(size, {dtype = t})
      if size > 9 then
        for i, v in ipairs {nan, 1 / 0, -1 / 0, -3, 3, 0.1, 0.7, 1e30} do
          x[i] = v
        end
      end
      for _, range in ipairs {{-3, 3}, {0.1, 0.7}, {1e-30, 2e-30},
                              {-1e30, 1e30}, {5, 6}} do
        for _, n in ipairs {1, 3, 10, 1000, 65537} do
          local from, to = range[1], range[2]
          if t == "float32" then
            from, to = ("ff"):unpack(("ff"):pack(from, to))
          end
          assert(x:histc(n, from, to):equal(counts(x, n, from, to)),
                 ("%s %d %g %d"):format(t, size, from, n))
          local rows = nacre.stack({x, x + 1}):t()   -- strided
          assert(rows:histc(n, from, to):equal(
                   counts(rows:reshape(-1), n, from, to)))
        end
      end
    end
  end
  -- 5e-6 * 1000 / 1e-5 is less than 500, 5e-6 / 1e-5 * 1000 is not
  local x = nacre.tensor({5e-6}, {dtype = "float64"})
  assert(x:histc(1000, 0, 1e-5)[500] == 1)
  fails("is not finite", nacre.histogram, T {nan, 1.0}, 3)
end
print("sort: passed")
