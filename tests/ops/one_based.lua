-- SPDX-License-Identifier: MIT
-- Positions count from 1: of whatever gives positions the first is 1 and the
-- last n; what takes them takes 1 and n as the first and the last, and
-- refuses 0. One line a form of an operation.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local F, T = nacre.nn.functional, nacre.tensor
local checks = 0

local function text(v)
  if nacre.is_tensor(v) then v = v:totable() end
  if math.type(v) == "float" and v == v // 1 then v = v // 1 | 0 end
  if type(v) ~= "table" then return tostring(v) end
  local parts = {}
  for i = 1, #v do parts[i] = text(v[i]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function is(what, got, want)
  checks = checks + 1
  assert(text(got) == text(want),
         ("%s: %s, not %s"):format(what, text(got), text(want)))
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
  {"max_pool1d", 9, 0, function(x)
   local _, at = F.max_pool1d(x:to("float32"):reshape(1, 1, n), n,
                               {return_indices = true})
   return at:item()
  end},
  {"max_pool2d", 9, 0, function(x)
   local _, at = F.max_pool2d(x:to("float32"):reshape(1, 1, 1, n), {1, n},
                               {return_indices = true})
   return at:item()
  end},
  {"max_pool3d", 9, 0, function(x)
   local _, at = F.max_pool3d(x:to("float32"):reshape(1, 1, n, 1, 1),
                               {n, 1, 1}, {return_indices = true})
   return at:item()
  end},
  {"adaptive_max_pool1d", 9, 0, function(x)
   local _, at = F.adaptive_max_pool1d(x:to("float32"):reshape(1, 1, n), 1,
                                        {return_indices = true})
   return at:item()
  end},
  {"adaptive_max_pool3d", 9, 0, function(x)
   local _, at = F.adaptive_max_pool3d(x:to("float32")
                                         :reshape(1, 1, 1, n, 1), 1, true)
   return at:item()
  end},
  {"adaptive_max_pool2d", 9, 0, function(x)
   local _, at = F.adaptive_max_pool2d(x:to("float32"):reshape(1, 1, 1, n), 1,
                                        {return_indices = true})
   return at:item()
  end},
}

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

-- Where gradients go, too.
for _, i in ipairs {1, 3, n} do
  local want = with(i, 1, 0)
  for what, f in pairs {
    max = function(t) return (t:max(1)) end,
    sort = function(t) return t:sort():narrow(1, -1, 1) end,
    topk = function(t) return (t:topk(1)) end,
    gather = function(t) return t:gather(1, at(i)) end,
    select = function(t) return t:select(1, i) end,
    cummax = function(t) return t:cummax(1):narrow(1, -1, 1) end,
  } do
    local t = with(i, 9.0, 0.5):requires_grad_()
    f(t):sum():backward()
    is("gradient of " .. what, t.grad, want)
  end
end

print(("indices: %d checks passed"):format(checks))
