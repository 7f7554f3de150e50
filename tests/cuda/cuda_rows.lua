-- SPDX-License-Identifier: MIT
-- Operations whose kernels choose by the layout: gather and scatter, index_add,
-- extremes with places, topk. Each is compared with the CPU's, bit for bit, for
-- random shapes, types and layouts.
-- Run by: nacre tests/cuda/cuda_rows.lua [ROUNDS [SEED]], with a device or
-- NACRE_CUDA=emulated

if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
local GPU = "cuda:0"
local rounds = tonumber((...) or 16)
math.randomseed(tonumber(select(2, ...) or 7))
nacre.manual_seed(math.random(1000))

local what
local function same(name, a, b)
  a = a:cpu()
  local equal = a:eq(b):logical_or(a:ne(a):logical_and(b:ne(b)))
  assert(equal:all():item(), name .. " of " .. what)
end

local function make(dtype, ...)
  if dtype:find "float" then return nacre.randn(...):to(dtype) end
  return nacre.randint(-50, 50, {...}):to(dtype)
end

-- Positions from 1 to n, some counted from the end, and in some rounds few
-- different ones.
local function positions(n, shape)
  local most = math.random(3) == 1 and math.min(n, 3) or n
  local i = nacre.randint(1, most + 1, shape)
  if math.random(2) == 1 then return i end
  return nacre.where(nacre.rand(shape):lt(0.5), i, i - n - 1)
end

local function compare(name, call, ...)
  local there = {}
  for k, v in ipairs {...} do there[k] = v:to(GPU) end
  same(name, call(table.unpack(there)), call(...))
end

local function gather_and_scatter(t, rows, n, length)
  local x, s = make(t, rows, n), make(t, rows, length)
  local i = positions(n, {rows, length})
  compare("gather", function(x, i) return x:gather(2, i) end, x, i)
  compare("gather of columns", function(x, i)
    return x:t():gather(1, i:t())
  end, x, i)
  compare("scatter_add", function(x, i, s)
    return x:scatter_add(2, i, s)
  end, x, i, s)
  compare("scatter_add to columns", function(x, i, s)
    return x:t():scatter_add(1, i:t(), s:t())
  end, x, i, s)
  compare("scatter_add to every second", function(x, i, s)
    local y = nacre.zeros(rows, 2 * n, {dtype = t, device = x.device})
    y[{{}, {2, -1, 2}}]:scatter_add_(2, i, s)
    return y
  end, x, i, s)
  for _, how in ipairs {"prod", "amax", "amin"} do
    compare(how, function(x, i, s)
      return x:scatter_reduce(2, i, s, how)
    end, x, i, s)
  end
  local once = nacre.rand(rows, n):argsort(2)[{{}, {1, length}}]
  compare("scatter", function(x, i, s) return x:scatter(2, i, s) end, x, once,
          s)
  compare("scatter_add of a number", function(x, i)
    return x:scatter(2, i, 2, {reduce = "add"})
  end, x, i)
end

local function slices(t, rows, n)
  local x = make(t, rows, n)
  local i = positions(rows, {math.random(2 * rows)})
  compare("index_add", function(x, i, s) return x:index_add(1, i, s) end, x, i,
          make(t, i:size(1), n))
  compare("elements of a vector", function(x, i) return x[i] end,
          x:reshape(-1), positions(rows * n, {math.random(900)}))
end

-- With nan and equal elements, from an unaligned address, too.
local function extremes(t, rows, n)
  local x = make(t, rows, n)
  if t:find "float" and math.random(2) == 1 then
    x = nacre.where(nacre.rand(rows, n):lt(0.02), 0 / 0, x:to "float64"):to(t)
  end
  if math.random(2) == 1 then x = nacre.where(x:gt(0), 0, x):to(t) end
  for _, op in ipairs {"argmax", "argmin"} do
    compare(op, function(x) return x[op](x, 2) end, x)
    if n > 3 then
      compare(op .. " from the third on", function(x)
        local part = x[{{}, {3, -1}}]
        return part[op](part, 2)
      end, x)
    end
  end
  compare("max", function(x) return (x:max(2)) end, x)
end

local types = {"float32", "bfloat16", "float64", "int64", "int32", "float16",
               "uint8", "int16", "int8"}
for round = 1, rounds do
  local t = types[round % #types + 1]
  local rows, n = math.random(40), math.random(300)
  if round % 3 == 0 then n = n // 16 * 16 + 16 end
  local length = math.random(2) == 1 and n or math.random(n)
  what = ("%s [%d x %d], %d positions"):format(t, rows, n, length)
  gather_and_scatter(t, rows, n, length)
  slices(t, rows, n)
  extremes(t, rows, n)
end

-- ---- topk of long rows: a sample that is right, and ones that mislead

local kinds = {
  random = function(x) return x end,
  sorted = function(x) return (x:sort(2)) end,
  ties = function(x) return x:clamp(-1, 1) end,
  mixed = function(x) x[2]:fill_(1) return x end, -- one row cannot be done so
  nans = function(x)
    if x.dtype:find "float" then x[{1, 1000}] = 0 / 0 end
    return x
  end,
}
local round = 0
for _, n in ipairs {16384, 20001, 65536} do
  for kind, change in pairs(kinds) do
    local t = ({"float32", "bfloat16", "float64", "int64"})[round % 4 + 1]
    local k = ({1, 64, 700})[round % 3 + 1]
    local x = change(make(t, 3, n))
    round = round + 1
    what = ("%s %s, %d of %d"):format(kind, t, k, n)
    for _, largest in ipairs {true, false} do
      local y, at = x:to(GPU):topk(k, 2, largest)
      local own, place = x:topk(k, 2, largest)
      same("topk", y, own)
      same("places of topk", at, place)
    end
  end
end

-- ---- a position out of range is told of; nothing is written there

local x = nacre.zeros(100, 64):to(GPU)
local i = nacre.ones(100, 64, {dtype = "int64"})
i[{7, 3}] = 65
i = i:to(GPU)
for name, call in pairs {
  gather = function() return x:gather(2, i) end,
  scatter = function() return x:scatter(2, i, x) end,
  scatter_add = function() return x:scatter_add(2, i, x) end,
  sorted = function() return x:t():scatter_add(1, i:t(), x:t()) end,
  vector = function() return x[1][i[7]] end,
} do
  local ok, e = pcall(function()
    call()
    nacre.cuda.synchronize()
  end)
  assert(not ok and e.message:find "65", name)
end
