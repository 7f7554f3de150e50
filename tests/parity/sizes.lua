-- SPDX-License-Identifier: MIT
-- Operations on a device and on the CPU, over every number of elements that a
-- device treats in its own way: short slices, long ones that are cut in pieces,
-- tiles, batches; of every dtype, however they lie in memory. parity.lua makes
-- calls of all operations, of few elements.
-- Run by: nacre tests/parity/sizes.lua [seed=N] [only=PATTERN] [device=NAME]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local options = dofile(here .. "../lib/options.lua")(
  {seed = "1", only = "", device = "cuda:0"}, "cuda")
local V = dofile(here .. "variants.lua")
local O = dofile(here .. "../lib/oracle.lua")
local device, random, inf = options.device, math.random, math.huge
nacre.manual_seed(tonumber(options.seed))
math.randomseed(tonumber(options.seed))

local function any(list) return list[random(#list)] end

-- ---- elements

local STRANGE = nacre.tensor {inf, -inf, nacre.nan, 0.0, -0.0}

-- Random elements, many of them equal. Floats are multiples of 1/64, the sums
-- of which are exact in any order; one in `odd' is infinite or nan.
local function elements(size, dtype, odd)
  if dtype == "bool" then return nacre.randint(0, 2, size):bool() end
  if not O.isfloat(dtype) then return nacre.randint(0, 100, size):to(dtype) end
  local t = nacre.randint(-1000, 1001, size) / 64
  if odd then
    local strange = nacre.randint(1, #STRANGE + 1, {t:numel()})
    t = nacre.where(nacre.rand(size):lt(1 / odd),
                    STRANGE:index_select(1, strange):reshape(size), t)
  end
  return t:to(dtype)
end

-- Factors: mostly 1, or odd integers, whose products are exact in any order.
local function factors(size, dtype)
  if not O.isfloat(dtype) then return elements(size, dtype) * 2 + 1 end
  local few = nacre.tensor({2, 0.5, -1})[nacre.randint(1, 4, {90})]
  local t = nacre.ones(size)
  for i = 1, t:numel() > 0 and 90 or 0 do
    t:view(-1)[random(t:numel())] = few[i]
  end
  return t:to(dtype)
end

-- Lengths around those at which a device chooses another kernel.
local LENGTHS = {1, 2, 31, 33, 64, 65, 128, 129, 512, 1000, 1024, 1028, 2048,
                 2049, 4096, 4097, 9001, 16384, 16400, 20001, 40001}

-- Calls f(size, dim) with slices of each of these lengths along dim, as rows
-- and as columns, and with as many small shapes of up to four dimensions.
local function each_size(f, most)
  for _, n in ipairs(LENGTHS) do
    if n <= (most or inf) then
      f({random(3), n}, 2)
      f({n, random(5)}, 1)
      local size = {}
      for d = 1, random(4) do size[d] = random(any {4, 20}) end
      f(size, random(#size))
    end
  end
  f({random(2500, 5000)}, 1)
  f({40, 300}, 2)
end

-- ---- on both devices

local checks = 0
local STEP = {float64 = 1e-13, float32 = 1e-5, float16 = 1e-3, bfloat16 = 8e-3}

-- Fails unless the results are equal, within a relative error of STEP or an
-- absolute one of STEP times `unit'.
local function same(what, want, got, unit)
  assert(got.device == device or want.device ~= "cpu", what)
  assert(got.dtype == want.dtype and
         table.concat(got:size(), "x") == table.concat(want:size(), "x"), what)
  local step, y = STEP[want.dtype] or 0, got:cpu()
  if step == 0 and nacre.equal(y, want) then return end
  local a, b = want:double(), y:double()
  if nacre.allclose(b, a, step, step * (unit or 0), true) then return end
  local off = (a - b):abs():nan_to_num(inf):argmax():item()
  error(("%s of %s: %s, not %s, at %d"):format(what,
    table.concat(want:size(), "x"), b:reshape(-1)[off], a:reshape(-1)[off],
    off))
end

-- f(tensors) on both, where they lie in memory in the same way, by chance.
local function check(what, f, tensors, unit, layout)
  local call, results = {n = #tensors}, {}
  for i, t in ipairs(tensors) do
    call[i] = {tensor = t}
    what = ("%s %s[%s]"):format(what, t.dtype, table.concat(t:size(), "x"))
  end
  local plan = {values = "asis", more = "asis", layout = layout or "any",
                seed = random(1 << 40)}
  for i, where in ipairs {"cpu", device} do
    nacre.set_default_device(where)
    nacre.manual_seed(7)
    local args = V.arguments(call, plan, where)
    results[i] = table.pack(f(table.unpack(args, 1, args.n)))
  end
  nacre.set_default_device "cpu"
  for i, want in ipairs(results[1]) do
    same(what, want, results[2][i], unit)
    checks = checks + 1
  end
  nacre.manual_seed(random(1 << 40))
end

local sections = {}
local function section(name, f) sections[#sections + 1] = {name, f} end

-- Calls f with each of the dtypes in turn.
local function in_turn(dtypes)
  local i = random(#dtypes)
  return function()
    i = i % #dtypes + 1
    return dtypes[i]
  end
end

-- ---- along dimensions

local function takes_dims(dim, size)
  if random(2) == 1 then return dim end
  local dims = {}
  for d = 1, #size do if random(2) == 1 then dims[#dims + 1] = d end end
  return dims
end

section("reductions", function()
  local function reduce(name, dtypes, make, unit, single, option)
    local turn = in_turn(dtypes)
    each_size(function(size, dim)
      local dtype = turn()
      local o = {dim = single and dim or takes_dims(dim, size),
                 keepdim = random(2) == 1}
      for k, v in pairs(option or {}) do o[k] = v end
      local n = 1
      for _, s in ipairs(size) do n = n * s end
      check(name, function(t) return t[name](t, o) end,
            {make(size, dtype, random(2) == 1 and 30 or nil)},
            unit and unit(n, dtype))
    end)
  end
  local small = function() return 1e-3 end
  for _, name in ipairs {"sum", "any", "all", "count_nonzero"} do
    reduce(name, O.dtypes, elements)
  end
  for _, name in ipairs {"amax", "amin"} do reduce(name, O.dtypes, elements) end
  for _, name in ipairs {"argmax", "argmin", "max", "min"} do
    reduce(name, O.dtypes, elements, nil, true)
  end
  reduce("prod", O.dtypes, factors)
  reduce("mean", O.floats, elements, small)
  for p = 0, 3 do
    local function finite(size, dtype) return elements(size, dtype) end
    reduce("norm", O.floats, finite, nil, false, {p = p})
    reduce("var", O.floats, elements, small, false, {correction = p})
    reduce("std", O.floats, elements, small, false, {correction = p})
  end
  -- max + log(sum of exp(x - max)): where it is near 0 these two cancel, and
  -- the error is that of the type that sums
  reduce("logsumexp", O.floats, elements, function(n, dtype)
    return (1 + math.log(n + 1)) * math.min(1, 1e-5 / STEP[dtype])
  end)
  -- a mean far from 0, sums of exponentials that are nearly 1
  check("far var", function(t) return t:var(2) end,
        {nacre.randint(0, 256, {3, 700}) / 128 + 1e5})
  local logs = nacre.randint(0, 64, {50, 100}) / 512 - math.log(100)
  for _, t in ipairs(O.floats) do
    check("logsumexp near 0", function(x) return x:logsumexp(2) end,
          {logs:to(t)}, 6 * math.min(1, 1e-5 / STEP[t]))
  end
  -- equal numbers, whose sum is rounded to one side again and again
  check("long sum", function(t) return t:sum() end,
        {nacre.full({1500000}, 0.1)}, nil, "dense")
  for _, name in ipairs {"sum", "mean", "var", "logsumexp", "amax"} do
    for dim = 1, name == "amax" and 1 or 2 do
      check("empty " .. name, function(t) return t[name](t, dim) end,
            {nacre.zeros(3, 0)})
    end
  end
end)

section("scans", function()
  local odd = in_turn {false, false, false, 40}
  local function scan(name, dtypes, unit, make, most)
    local turn = in_turn(dtypes)
    each_size(function(size, dim)
      check(name, function(t) return t[name](t, dim) end,
            {(make or elements)(size, turn(), odd() or nil)}, unit)
    end, most)
  end
  scan("softmax", O.floats, 1e-6)
  scan("log_softmax", O.floats, 1)
  scan("cumsum", {"int64", table.unpack(O.floats)})
  scan("cumprod", {"int64", table.unpack(O.floats)}, nil, factors)
  scan("logcumsumexp", O.floats, 1)
  scan("cummax", O.dtypes)
  scan("cummin", O.dtypes)
  -- rows in shared memory, of which there must be many; or in registers, too
  local many = nacre.cuda.get_device_properties(device).multi_processor_count
  for _, case in ipairs {{8200, "float64"}, {128256, "bfloat16"}} do
    local x = elements({many // 2 + 1, case[1]}, case[2])
    check("softmax", function(t) return t:softmax(2) end, {x}, 1e-6, "dense")
    check("log_softmax", function(t) return t:log_softmax(2) end, {x}, 1,
          "dense")
  end
  -- integers so many that they are summed one by one; they wrap
  local x = elements({2, 1 << 20}, "int64")
  x[1][3], x[1][5] = 1 << 62, 1 << 62
  check("cumsum", function(t) return t:cumsum(2) end, {x}, nil, "rows")
end)

section("sorts", function()
  local turn = in_turn(O.dtypes)
  each_size(function(size, dim)
    local t, down = elements(size, turn(), any {10, 50}), random(2) == 1
    local n = size[dim]
    local k, rank = random(n), random(n)
    check("sort", function(t) return t:sort(dim, down) end, {t})
    check("topk", function(t) return t:topk(k, dim, down) end, {t})
    check("kthvalue", function(t) return t:kthvalue(rank, dim) end, {t})
    if n > 4000 then          -- of every type
      for _, dtype in ipairs(O.dtypes) do
        check("sort", function(t) return t:sort(dim, down) end,
              {elements(size, dtype)})
      end
    end
  end)
  -- topk of long rows: a sample that is right, and ones that mislead
  for kind, change in pairs {
    random = function(x) return x end,
    sorted = function(x) return (x:sort(2)) end,
    ties = function(x) return x:clamp(-1, 1) end,
    mixed = function(x) x[2]:fill_(1) return x end, -- one row cannot be so
    nans = function(x) x[{1, 1000}] = nacre.nan return x end,
  } do
    for i, n in ipairs {16384, 20001, 65536} do
      local dtype, k = any {"float32", "bfloat16", "float64"}, ({1, 64, 700})[i]
      if kind ~= "nans" and random(4) == 1 then dtype = "int64" end
      local x = change(elements({3, n}, dtype))
      for _, largest in ipairs {true, false} do
        check("topk of " .. kind, function(t) return t:topk(k, 2, largest) end,
              {x}, nil, "dense")
      end
    end
  end
  for shift = 0, 63, 9 do     -- keys that differ in some of their digits only
    check("digits", function(t) return t:sort(1, shift % 2 == 1) end,
          {nacre.randint(0, 200, {30000}) << shift})
  end
  for i = 1, 60 do            -- one sequence for all, or one for each row
    local dtype, rows = any {"int64", "float32", "float64"}, random(3)
    local n = random(300)
    local s = elements(i % 2 == 0 and {n} or {rows, n}, dtype, 9):sort(-1)
    local right = random(2) == 1
    check("searchsorted", function(s, x)
      return nacre.searchsorted(s, x, {right = right})
    end, {s, elements({rows, random(500)}, dtype, 9)})
  end
end)

-- ---- indices

local function positions(n, size)
  local k = nacre.randint(1, size + 1, {n})
  return nacre.where(nacre.rand(n):lt(0.5), k, k - size - 1)
end

section("indices", function()
  for _, n in ipairs {0, 1, 63, 64, 65, 1000, 16384, 40000} do
    for _, one_in in ipairs {1, 2, 500} do
      local mask = nacre.rand(n):lt(1 / one_in)
      local function find(t) return t:nonzero() end
      check("nonzero", find, {mask})
      if n % 8 == 0 then check("nonzero", find, {mask:view(n // 8, 2, 4)}) end
    end
  end
  for i = 1, 200 do
    local size, dtype = {}, any(O.dtypes)
    for d = 1, random(4) do size[d] = random(any {4, 17}) end
    if i % 3 == 0 then size[#size] = 16 * random(4) end
    local dim = random(#size)
    local x = elements(size, dtype, 60)
    local at = positions(random(60), size[dim])
    size[dim] = #at
    local source = elements(size, dtype, 60)
    check("index_select", function(x, at) return x:index_select(dim, at) end,
          {x, at}, nil, i % 2 == 0 and "dense" or "any")
    local how = any {"prod", "amax", "amin"}
    local function add(x, at, y)
      return x:index_add(dim, at, y), x:index_reduce(dim, at, y, how)
    end
    if dtype ~= "bool" then check("index_add", add, {x, at, source},
                                  how == "prod" and 1 or nil, "dense") end
    local each = nacre.randperm(x:size(dim)):narrow(1, 1, 1)
    check("index_copy", function(x, at, y)
      return x:index_copy(dim, at, y)
    end, {x, each, source:narrow(dim, 1, 1)})
  end
  for i = 1, 40 do            -- an index for each element; few or many equal
    local dtype, rows, n = any(O.dtypes), random(40), random(300)
    if i % 3 == 0 then n = n // 16 * 16 + 16 end
    local length = random(2) == 1 and n or random(n)
    local x, y = elements({rows, n}, dtype, 60), elements({rows, length}, dtype)
    local most = random(3) == 1 and math.min(n, 3) or n
    local at = positions(rows * length, most):reshape(rows, length)
    local once = nacre.rand(rows, n):argsort(2)[{{}, {1, length}}]
    check("gather", function(x, at) return x:gather(2, at) end, {x, at})
    check("scatter", function(x, at, y) return x:scatter(2, at, y) end,
          {x, once, y})
    check("scatter_add", function(x, at, y)
      return x:scatter_add(2, at, y), x:t():scatter_add(1, at:t(), y:t())
    end, {x, at, y})
    if dtype ~= "bool" then
      check("scatter of a number", function(x, at)
        return x:scatter(2, at, 2, {reduce = "add"})
      end, {x, at})
    end
    local how = any {"prod", "amax", "amin"}
    check(how, function(x, at, y) return x:scatter_reduce(2, at, y, how) end,
          {x, at, y}, how == "prod" and 1 or nil)
    check("elements of a vector", function(x, at) return x[at] end,
          {x:reshape(-1), positions(random(900), rows * n)})
  end
  -- so many that their offsets are sorted by digits; long runs
  for _, case in ipairs {{3, "float32"}, {4000, "float16"}, {3, "int64"},
                         {3, "int16"}} do
    local x, y = elements({case[1]}, case[2]), elements({9000}, case[2])
    check("index_add", function(x, at, y) return x:index_add(1, at, y) end,
          {x, positions(9000, case[1]), y}, nil, "dense")
  end
  -- of several for one place any one stays, whole
  local x, at = nacre.randn(500), nacre.arange(500) % 4 + 1
  local y = nacre.zeros(4):to(device):index_copy(1, at:to(device), x:to(device))
  for i = 1, 4 do assert(x[at:eq(i)]:eq(y[i]):any():item()) end
  -- a position out of range is told of
  local wide, wrong = nacre.zeros(100, 64), nacre.ones(100, 64):long()
  wrong[{7, 3}] = 65
  wide, wrong = wide:to(device), wrong:to(device)
  for name, call in pairs {
    gather = function() return wide:gather(2, wrong) end,
    scatter = function() return wide:scatter(2, wrong, wide) end,
    scatter_add = function() return wide:scatter_add(2, wrong, wide) end,
    sorted = function()
      return wide:t():scatter_add(1, wrong:t(), wide:t())
    end,
    vector = function() return wide[1][wrong[7]] end,
  } do
    local _, e = O.try(call)
    assert(tostring(e):find "index 65", name)
  end
  -- where positions are wrong, all other elements stay what they were
  for _, n in ipairs {3, 5000} do
    local bad = nacre.arange(n) % 4
    bad = nacre.where(bad:eq(0), 9, nacre.where(bad:eq(2), 0, 1)):to(device)
    for _, name in ipairs {"index_copy_", "index_add_"} do
      local t = nacre.arange(8.0):to(device)
      assert(not pcall(function()
        t[name](t, 1, bad, nacre.randn(n):to(device))
        nacre.synchronize()
      end))
      assert(nacre.equal(t:narrow(1, 2, 7):cpu(), nacre.range(1, 7.0)), name)
    end
  end
end)

-- ---- element by element

section("pointwise", function()
  for _, op in ipairs(O.operations()) do
    for i = 1, op.kind ~= "reduce" and 16 or 0 do
      local size, x, work = {}, {}, any(O.dtypes)
      for d = 1, random(0, 4) do size[d] = any {1, 2, 3, 4, 8, 17, 33} end
      for k = 1, op.arity do
        local own = {}
        for d, s in ipairs(size) do own[d] = random(4) > 1 and s or 1 end
        local dtype = random(3) > 1 and work or any(O.dtypes)
        x[k] = elements(own, dtype, 9)
        if not O.isfloat(dtype) and dtype ~= "bool" then x[k] = x[k] % 9 + 1 end
      end
      if op.kind == "choose" then x[1] = x[1]:bool() end
      local f = nacre[op.name]
      if pcall(f, table.unpack(x)) then check(op.name, f, x, 1) end
    end
  end
end)

section("copies", function()
  for _, from in ipairs(O.dtypes) do
    for _, to in ipairs(O.dtypes) do
      local function copy(t) return t:to(to, {copy = true}):contiguous() end
      for _ = 1, 3 do
        local size = {random(60), random(9), any {2, 16, 33}}
        check("to " .. to, copy, {elements(size, from, 4)})
      end
      local function side() return any {8, 31, 32, 33, 64, 66, 128, 130} end
      check("to " .. to, copy, {elements({random(2), side(), side()}, from)},
            nil, any {"transposed", "rotated"})
    end
  end
  for _ = 1, 30 do            -- of tiles, and of what is not transposed
    local a, b = any {8, 31, 33, 64, 130}, any {8, 32, 66, 128}
    check("add", function(x, y) return x:t() + y end,
          {elements({a, b}, "float32"), elements({b, a}, "float32")}, nil,
          "dense")
  end
end)

-- ---- from nothing

section("made", function()
  for _, n in ipairs {0, 1, 2, 3, 4, 7, 1003, 5001} do
    for _, t in ipairs(O.dtypes) do
      local o = {dtype = t}
      if t ~= "bool" then
        local most = O.isfloat(t) and n or math.min(n, 100)
        check("linspace", function() return nacre.linspace(3.7, 91.3, n, o) end,
              {})
        check("arange", function() return nacre.arange(0, most, 1, o) end, {})
      end
      -- the number of the block goes past 32 bits
      local function draw(f)
        return function()
          nacre.set_rng_state(nacre.tensor {7 << 33, (1 << 32) - 3})
          return f()
        end
      end
      check("randint", draw(function() return nacre.randint(0, 2, {n}, o) end),
            {})
      if O.isfloat(t) then
        check("rand", draw(function() return nacre.rand(n, o) end), {})
        check("randn", draw(function() return nacre.randn(n, o) end), {}, 1)
        check("uniform", draw(function()
          return nacre.zeros(n, o):uniform_(-2, 5)
        end), {}, 1)
      end
    end
    for _, range in ipairs {(1 << 32) - 5, (1 << 62) + 11} do
      check("randint", function() return nacre.randint(-7, range, {n}) end, {})
    end
  end
end)

for _, s in ipairs(sections) do
  if s[1]:find(options.only) then
    collectgarbage()
    local held = nacre.cuda.memory_allocated(device)
    s[2]()
    collectgarbage()
    nacre.synchronize()
    assert(nacre.cuda.memory_allocated(device) == held, s[1] .. " keeps memory")
  end
end
print(("sizes: %d results are the same"):format(checks))
