-- SPDX-License-Identifier: MIT
-- Positions count from 1: what gives positions gives 1 for the first element
-- and n for the last; what takes positions takes 1 and n, and refuses 0. One
-- line for each form of an operation.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local F, T = nacre.nn.functional, nacre.tensor
local checks = 0

local function text(v)
  return C.text(nacre.is_tensor(v) and v:totable() or v)
end

local function is(what, got, want)
  checks = checks + 1
  got, want = text(got):gsub("%.0", ""), text(want):gsub("%.0", "")
  assert(got == want, ("%s: %s, not %s"):format(what, got, want))
end

-- ---- what gives positions: of n elements, the wanted one being at i

local n = 5

local function with(i, v, rest)           -- rest everywhere, v at i
  local list = {}
  for k = 1, n do list[k] = k == i and v or rest end
  return T(list)
end

local second = function(name, ...)
  local args = table.pack(...)
  return function(x)
    return (select(2, x[name](x, table.unpack(args, 1, args.n))))
  end
end

local gives = {
  {"argmax", 9, 0, function(x) return x:argmax() end},
  {"argmax dim", 9, 0, function(x) return x:argmax(1) end},
  {"argmin", -9, 0, function(x) return x:argmin() end},
  {"argmin dim", -9, 0, function(x) return x:argmin(1) end},
  {"max", 9, 0, second("max", 1)},
  {"min", -9, 0, second("min", 1)},
  {"sort", -9, 0, function(x) return second("sort")(x)[1] end},
  {"argsort", -9, 0, function(x) return x:argsort()[1] end},
  {"topk", 9, 0, function(x) return second("topk", 1)(x)[1] end},
  {"kthvalue", 9, 0, second("kthvalue", n)},
  {"aminmax", 9, 0, function(x)
   return x:eq(select(2, x:aminmax())):nonzero()[1][1]
  end},
  {"cummax", 9, 0, function(x) return second("cummax", 1)(x)[-1] end},
  {"cummin", -9, 0, function(x) return second("cummin", 1)(x)[-1] end},
  {"nonzero", 9, 0, function(x) return x:nonzero()[1][1] end},
  {"nonzero as_tuple", 9, 0,
   function(x) return x:nonzero{as_tuple = true}[1][1] end},
  {"argwhere", 9, 0, function(x) return x:argwhere()[1][1] end},
  {"where", 9, 0, function(x) return nacre.where(x:gt(0))[1][1] end},
}

-- The position of the largest that a pool of d dimensions gives.
for d, size in ipairs {{n}, {1, n}, {n, 1, 1}} do
  for name, window in pairs {max_pool = size,
                             adaptive_max_pool = {1, 1, 1}} do
    name = name .. d .. "d"
    gives[#gives + 1] = {name, 9, 0, function(x)
      x = x:to("float32"):reshape(1, 1, table.unpack(size))
      return select(2, F[name](x, table.move(window, 1, d, 1, {}),
                               {return_indices = true})):item()
    end}
  end
end

for _, row in ipairs(gives) do
  local what, v, rest, f = table.unpack(row)
  for _, i in ipairs {1, 3, n} do
    is(("%s of %d"):format(what, i), f(with(i, v, rest)), i)
  end
end

for _, i in ipairs {1, 3, 5} do         -- the middle one
  local list = {1, 1, 5, 9, 9}
  list[3], list[i] = list[i], 5
  is("median", (select(2, T(list):median(1))), i)
  is("nanmedian", (select(2, T(list):to("float32"):nanmedian(1))), i)
end
is("mode", (select(2, T({7}):mode())), 1)
is("mode", (select(2, T({1, 2, 3, 7, 7}):mode())), 5)

local _, inverse, counts = T({4, 2, 4}):unique(true, true, true)
is("unique", inverse, {2, 1, 2})
is("unique", counts, {1, 2})            -- these are no positions
_, inverse = T({4, 4, 2}):unique_consecutive(true)
is("unique_consecutive", inverse, {1, 1, 2})

local edges = T {1, 3, 5}
is("searchsorted", nacre.searchsorted(edges, T {0, 1, 2, 5, 6}),
   {1, 1, 2, 3, 4})
is("searchsorted right", nacre.searchsorted(edges, T {0, 1, 5},
                                            {right = true}), {1, 2, 4})
is("bucketize", T({0, 1, 6}):bucketize(edges), {1, 1, 4})
is("bincount", T({0, 2}):bincount(), {1, 0, 1})
is("tril_indices", nacre.tril_indices(2, 2), {{1, 2, 2}, {1, 1, 2}})
is("triu_indices", nacre.triu_indices(2, 2), {{1, 1, 2}, {1, 2, 2}})
is("repeat_interleave", nacre.repeat_interleave(T {1, 0, 2}), {1, 3, 3})
is("multinomial", T({0.0, 0, 1}):multinomial(1), {3})
is("multinomial", T({1.0, 0, 0}):multinomial(1), {1})
is("randperm", (nacre.randperm(6):sort()), {1, 2, 3, 4, 5, 6})
is("lu_factor", (select(2, nacre.linalg.lu_factor(T {{2.0, 0}, {0, 1}}))),
   {1, 2})

-- ---- what takes positions: f(1) and f(n), and f(0) is refused

local x = T {10, 20, 30, 40, 50}
local rows = T {{1.0, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}}
local function at(i) return T {i} end
local function class(i)                   -- one sample, which is of class i
  return (nacre.eye(n) * 100):narrow(1, i >= 1 and i <= n and i or 1, 1)
end

local takes = {
  {"[]", function(i) return x[i] end, 10, 50},
  {"[tensor]", function(i) return x[at(i)] end, {10}, {50}},
  {"[]=", function(i)
   local y = x:clone()
   y[i] = 0
   return y
  end, {0, 20, 30, 40, 50}, {10, 20, 30, 40, 0}},
  {"select", function(i) return x:select(1, i) end, 10, 50},
  {"narrow", function(i) return x:narrow(1, i, 1) end, {10}, {50}},
  {"gather", function(i) return x:gather(1, at(i)) end, {10}, {50}},
  {"take", function(i) return x:take(at(i)) end, {10}, {50}},
  {"take_along_dim", function(i) return x:take_along_dim(at(i), 1) end,
   {10}, {50}},
  {"index_select", function(i) return x:index_select(1, at(i)) end,
   {10}, {50}},
  {"index_add", function(i) return x:index_add(1, at(i), at(1)) end,
   {11, 20, 30, 40, 50}, {10, 20, 30, 40, 51}},
  {"index_copy", function(i) return x:index_copy(1, at(i), at(1)) end,
   {1, 20, 30, 40, 50}, {10, 20, 30, 40, 1}},
  {"index_fill", function(i) return x:index_fill(1, at(i), 1) end,
   {1, 20, 30, 40, 50}, {10, 20, 30, 40, 1}},
  {"index_reduce", function(i)
   return x:index_reduce(1, at(i), at(2), "prod")
  end, {20, 20, 30, 40, 50}, {10, 20, 30, 40, 100}},
  {"index_put", function(i) return x:index_put({at(i)}, at(1)) end,
   {1, 20, 30, 40, 50}, {10, 20, 30, 40, 1}},
  {"put", function(i) return x:put(at(i), at(1)) end,
   {1, 20, 30, 40, 50}, {10, 20, 30, 40, 1}},
  {"scatter", function(i) return x:scatter(1, at(i), at(1)) end,
   {1, 20, 30, 40, 50}, {10, 20, 30, 40, 1}},
  {"scatter_add", function(i) return x:scatter_add(1, at(i), at(1)) end,
   {11, 20, 30, 40, 50}, {10, 20, 30, 40, 51}},
  {"scatter_reduce", function(i)
   return x:scatter_reduce(1, at(i), at(99), "amax")
  end, {99, 20, 30, 40, 50}, {10, 20, 30, 40, 99}},
  {"select_scatter", function(i) return x:select_scatter(T(1), 1, i) end,
   {1, 20, 30, 40, 50}, {10, 20, 30, 40, 1}},
  {"tensor_split", function(i) return x:tensor_split({i})[2] end,
   {10, 20, 30, 40, 50}, {50}},
  {"embedding", function(i) return F.embedding(at(i), rows) end,
   {{1, 2}}, {{9, 10}}},
  {"one_hot", function(i) return F.one_hot(at(i), n) end,
   {{1, 0, 0, 0, 0}}, {{0, 0, 0, 0, 1}}},
  {"cross_entropy", function(i)
   return F.cross_entropy(class(i), at(i))
  end, 0, 0},
  {"nll_loss", function(i)
   return F.nll_loss(class(i), at(i))
  end, -100, -100},
  {"kthvalue", function(i) return (x:kthvalue(i)) end, 10, 50},
}

for _, row in ipairs(takes) do
  local what, f, first, last = table.unpack(row)
  is(what .. " of 1", f(1), first)
  is(what .. " of n", f(n), last)
  for _, i in ipairs {0, n + 1} do
    checks = checks + 1
    local beyond = what == "tensor_split" and i > n -- leaves an empty piece
    assert(beyond or not C.works(f, i), ("%s takes %d"):format(what, i))
  end
end

print(("one_based: %d checks passed"):format(checks))
