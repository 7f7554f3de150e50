-- SPDX-License-Identifier: MIT
--
-- tensor_difference.lua - the difference of two tensors: absolute, relative
-- and in units of the last place (ulp), where it is largest, and how many
-- elements differ by how much. Computed in pieces, so that it needs little
-- memory.

local host = require "nacre.host"
local facts = require "nacre.tensor_facts"

local nacre = package.loaded.nacre

local difference = {}

local PIECE = 1 << 20         -- elements
local EDGES = {0, 1, 2, 4, 16, 64, 1024, 65536}

function difference.number(x)
  if x == 0 then return "0" end
  return ("%.1e"):format(x)
end

--
-- A piece
--
-- |A - B|: 0 where they are the same, nan included; inf where one is nan.
local function absolute_difference(A, B)
  local same = A:eq(B):logical_or(A:isnan():logical_and(B:isnan()))
  local d = (A - B):abs()
  d = nacre.where(d:isnan(), nacre.full_like(d, math.huge), d)
  return nacre.where(same, nacre.zeros_like(d), d)
end

local function ulps(d, A, B, float)
  local bits, least = facts.floats[float].bits, facts.floats[float].least
  local m = nacre.maximum(A:abs(), B:abs())
  m = nacre.where(m:isfinite(), m, nacre.ones_like(m))
  local e = m:clamp(2.0 ^ least):log2():floor()
  return d / (e - bits):exp2()
end

local function largest(s, name, v, first)
  local at = v:argmax():item()
  local x = v[at]
  if x > (s[name] or -1) then s[name], s[name .. "k"] = x, first + at - 1 end
end

local function count(s, u)
  for i, edge in ipairs(EDGES) do
    s.within[i] = s.within[i] + u:le(edge):sum():item()
  end
end

-- |a - b| of 64-bit integers, which float64 may round to the same number. It
-- is wrong only where it exceeds 64 bits, and there float64 is near enough.
local function integer_difference(a, b, d)
  return nacre.where(d:gt(2.0 ^ 62), d, (a - b):double():abs())
end

-- int64 with the same differences.
local function ordered(x)
  return x.dtype == "int64" and x or
         x:view "int64":bitwise_xor(math.mininteger)
end

-- How many differences exceed the tolerances; nan and inf always do.
local function count_beyond(d, B, o)
  local limit = B:abs() * (o.rtol or 0) + (o.atol or 0)
  limit = nacre.where(B:isfinite(), limit, nacre.zeros_like(limit))
  return d:gt(limit):sum():item()
end

local function widest(x)
  return x:to(x:is_complex() and "complex128" or "float64")
end

local function measure_piece(s, a, b, first, o)
  local A, B = widest(a), widest(b)
  local d = absolute_difference(A, B)
  if a.dtype == b.dtype and (a.dtype == "int64" or a.dtype == "uint64") then
    d = integer_difference(ordered(a), ordered(b), d)
  end
  s.beyond = s.beyond + count_beyond(d, B, o)
  s.different = s.different + d:gt(0):sum():item()
  s.nans = s.nans + A:isnan():ne(B:isnan()):sum():item()
  largest(s, "abs", d, first)
  local rel = d / B:abs()
  local known = d:eq(0):logical_or(d:isinf())   -- 0, or beyond all parts
  largest(s, "rel", nacre.where(known, d, rel), first)
  local finite = nacre.where(B:isfinite(), B:abs(), nacre.zeros_like(d))
  s.scale = math.max(s.scale, finite:max():item())
  if not s.dtype then return end
  local u = ulps(d, A, B, s.dtype)
  largest(s, "ulp", u, first)
  s.sum = s.sum + nacre.where(u:isfinite(), u, nacre.zeros_like(u))
    :sum():item()
  count(s, u)
end

-- Measures the difference of a from b, the reference; nil and why if they
-- cannot be compared. ulps are those of `dtype', by default the coarser one.
-- `beyond' counts the elements that differ by more than o.atol + o.rtol * |b|.
function difference.measure(a, b, dtype, o)
  local size = a:size()
  if not facts.same_shape(a, b) then
    return nil, ("shapes are [%s] and [%s]"):format(facts.shape(a),
                                                    facts.shape(b))
  end
  local s = {n = a:numel(), different = 0, nans = 0, scale = 0, sum = 0,
             beyond = 0,
             dtype = dtype or facts.coarser(a.dtype, b.dtype), within = {}}
  for i = 1, #EDGES do s.within[i] = 0 end
  local A, B = a:detach():cpu():reshape(-1), b:detach():cpu():reshape(-1)
  for first = 1, s.n, PIECE do
    local last = math.min(first + PIECE - 1, s.n)
    measure_piece(s, A[{{first, last}}], B[{{first, last}}], first, o or {})
  end
  for _, name in ipairs {"abs", "rel", "ulp"} do
    local k = s[name .. "k"]
    s[name] = s[name] or 0
    s[name .. "at"] = k and facts.index(k, size)
    s[name .. "a"] = k and A[k]
    s[name .. "b"] = k and B[k]
  end
  s.mean = s.n > 0 and s.sum / s.n or 0
  s.dtype = s.dtype or a.dtype
  return s
end

--
-- What is to be expected
--
-- Can the difference be explained by rounding in another order?
function difference.tolerable(d, inner)
  local float = facts.floats[d.dtype]
  if not float then return d.different == 0 end
  return d.abs <= 4 * 2.0 ^ -float.bits * math.sqrt(inner) * d.scale
end

--
-- Pictures, as lines
--
local function bar(part, width)
  return ("#"):rep(math.max(part > 0 and 1 or 0, math.floor(part * width)))
end

-- A histogram of ulps as lines; none if all elements differ by the same
-- amount.
function difference.histogram(s)
  local rows, before, top = {}, 0, 0
  for i, edge in ipairs(EDGES) do
    local label = edge == 0 and "0" or "to " .. edge
    rows[i] = {label, s.within[i] - before}
    before = s.within[i]
  end
  rows[#rows + 1] = {"> " .. EDGES[#EDGES], s.n - before}
  while #rows > 1 and rows[#rows][2] == 0 do rows[#rows] = nil end
  while #rows > 1 and rows[2][2] == 0 do table.remove(rows, 2) end
  if #rows == 1 or #rows == 2 and rows[1][2] == 0 then return {} end
  for _, row in ipairs(rows) do top = math.max(top, row[2]) end
  local lines = {"ulp          elements  (bars: logarithmic)"}
  local room = math.max(8, math.min(40, host.columns() - 26))
  for i, row in ipairs(rows) do
    lines[i + 1] = ("%-9s %11d  %s"):format(row[1], row[2],
      bar(math.log(row[2] + 1) / math.log(top + 1), room))
    lines[i + 1] = lines[i + 1]:gsub("%s+$", "")
  end
  return lines
end

local HIGH, WIDE = 16, 60

-- From..to of the i-th of n parts of a whole.
local function part(i, n, whole)
  return (i - 1) * whole // n + 1, i * whole // n
end

-- How dark a difference is, from 0 to 1: on a logarithmic scale.
local function darkness(x, most)
  if x <= 0 then return 0 end
  if x == math.huge then return 1 end
  return math.min(1, math.max(1e-9, 1 + math.log(x / most, 10) / 4))
end

-- A map of where they differ, rows by columns of the last dimension: a darker
-- mark for about each power of ten.
function difference.map(a, b, most)
  if a:dim() == 0 or a:size(-1) == 0 then return {} end
  local columns = a:size(-1)
  local A, B = a:detach():cpu():reshape(-1, columns),
               b:detach():cpu():reshape(-1, columns)
  local height = math.min(A:size(1), HIGH)
  local width = math.min(columns, WIDE, math.max(8, host.columns() - 6))
  local rows = {}
  for r = 1, height do
    local from, to = part(r, height, A:size(1))
    local x, y = A[{{from, to}}]:double(), B[{{from, to}}]:double()
    rows[r] = absolute_difference(x, y):amax(1)
  end
  return require "nacre.character_image".map(function(c, r)
    local left, right = part(c, width, columns)
    return darkness(rows[r][{{left, right}}]:max():item(), most)
  end, width, height)
end

return difference
