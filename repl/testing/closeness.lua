-- SPDX-License-Identifier: MIT
--
-- closeness.lua - are two numbers or tensors equal within a tolerance? If not:
-- how many elements differ, by how much, and where.

local facts = require "nacre.tensor_facts"
local shortest = require "nacre.number_text".shortest

local closeness = {}

-- The tolerances of PyTorch's tests, and the bits of the fraction, which exact
-- types do not have.
local KINDS = {
  float16 = {rtol = 1e-3, atol = 1e-5},
  bfloat16 = {rtol = 1.6e-2, atol = 1e-5},
  float32 = {rtol = 1.3e-6, atol = 1e-5},
  float64 = {rtol = 1e-7, atol = 1e-7},
}
for name, kind in pairs(KINDS) do
  kind.name, kind.bits = name, facts.floats[name].bits
end
local EXACT = {rtol = 0, atol = 0}

-- The tolerances of a dtype; nil if there is none of that name.
function closeness.kind(name)
  if KINDS[name] then return KINDS[name] end
  return (name == "bool" or name:find "^u?int%d+$") and EXACT or nil
end

-- The kind that decides whether elements of two dtypes are close.
local function kind(a, b)
  return closeness.kind(facts.coarser(a, b) or b)
end

-- How many numbers of this type lie between the two.
local function ulps(x, y, bits)
  local most = math.max(math.abs(x), math.abs(y))
  if most == 0 or most == math.huge then return nil end
  return math.abs(x - y) / 2.0 ^ (math.floor(math.log(most, 2)) - bits)
end

-- Is x within the tolerance of y? nan equals nan unless equal_nan is false.
local function within(x, y, o)
  if x ~= x and y ~= y then return o.equal_nan ~= false end
  if x == y then return true end
  local off = math.abs(x - y)
  return off <= o.atol + o.rtol * math.abs(y) and off < math.huge
end

-- The differences of two lists: how many, the greatest abs and rel and where;
-- how many have a nan, which has no distance to anything.
local function survey(A, B, o)
  local s = {count = 0, nans = 0, abs = -1, rel = -1, off = {}}
  for k = 1, #A do
    if not within(A[k], B[k], o) then
      s.count, s.off[k] = s.count + 1, true
      local off = math.abs(A[k] + 0.0 - B[k])
      local rel = off / math.abs(B[k])
      if off ~= off then s.nans, s.nanat = s.nans + 1, s.nanat or k end
      if off == math.huge then rel = off end
      if off > s.abs then s.abs, s.absat = off, k end
      if rel > s.rel and B[k] ~= 0 then s.rel, s.relat = rel, k end
    end
  end
  return s
end

-- A map of where a matrix differs, at most 16 x 60 cells, darker for more.
local function map(off, rows, columns)
  local height, width = math.min(rows, 16), math.min(columns, 60)
  local cells, most = {}, 0
  for k in pairs(off) do
    local r = (k - 1) // columns * height // rows
    local c = (k - 1) % columns * width // columns
    local cell = r * width + c
    cells[cell] = (cells[cell] or 0) + 1
    most = math.max(most, cells[cell])
  end
  return require "nacre.character_image".map(function(x, y)
    return (cells[(y - 1) * width + x - 1] or 0) / most
  end, width, height)
end

-- The elements in a list: floats as float64, integers exactly, bools as 0 or 1.
local function flat(t)
  t = t:detach():cpu():flatten()
  local kind = KINDS[t.dtype]
  if kind then return t:double():totable() end
  return t.dtype == "bool" and t:to("uint8"):totable() or t:totable()
end

local function allowed(o)
  return ("allowed: rtol %.3g, atol %.3g"):format(o.rtol, o.atol)
end

local function ofulps(x, y, bits)
  local n = bits and ulps(x, y, bits)   -- integers have none
  return n and n < 2.0 ^ 53 and ("  %.0f ulp"):format(n) or ""
end

-- A number of a dtype with few digits as it was typed: 2.01, not 2.00999999.
local function written(x, dtype)
  if x ~= x then return "nan" end
  local few = KINDS[dtype] and dtype ~= "float64"
  return few and math.abs(x) < math.huge and
         shortest(x, dtype):gsub("%.0$", "") or ("%.9g"):format(x)
end

-- The count, the worst places and a map, as lines.
local function described(A, B, size, o, kind)
  local s = survey(A, B, o)
  if s.count == 0 then return nil end
  local function place(k)
    return ("at %s: %s / %s%s"):format(facts.index(k, size),
      written(A[k], kind.name), written(B[k], kind.name),
      ofulps(A[k], B[k], kind.bits))
  end
  local lines = {
    ("%d of %d elements differ (%.3g%%)"):format(s.count, #A,
                                                 100 * s.count / #A)}
  local function add(at, text, ...)
    if at then lines[#lines + 1] = text:format(...) .. place(at) end
  end
  add(s.nanat, "  %d with nan, the first ", s.nans)
  add(s.absat, "  greatest abs %.3g ", s.abs)
  add(s.relat, "  greatest rel %.3g ", s.rel)
  lines[#lines + 1] = "  " .. allowed(o)
  if #size == 2 and #A >= 16 then
    lines[#lines + 1] = "  positions (darker: more of them)"
    for _, line in ipairs(map(s.off, size[1], size[2])) do
      lines[#lines + 1] = "  " .. line
    end
  end
  return table.concat(lines, "\n")
end

local function tensors(a, b, o)
  if not facts.same_shape(a, b) then
    return ("shapes differ: %s and %s"):format(facts.shape(a), facts.shape(b))
  end
  if a.dtype ~= b.dtype then
    return ("dtypes differ: %s and %s"):format(a.dtype, b.dtype)
  end
  local k = kind(a.dtype, b.dtype)
  o = {rtol = o.rtol or k.rtol, atol = o.atol or k.atol,
       equal_nan = o.equal_nan}
  return described(flat(a), flat(b), a:size(), o, k)
end

-- How many elements of two tensors differ, and where most, on one line; "no
-- element outside" if none.
function closeness.worst(a, b, o)
  local k = kind(a.dtype, b.dtype)
  o = {rtol = o.rtol or k.rtol, atol = o.atol or k.atol}
  if not facts.same_shape(a, b) then
    return ("%s instead of %s"):format(facts.shape(a), facts.shape(b))
  end
  local A, B = flat(a), flat(b)
  local s = survey(A, B, o)
  if s.count == 0 then return "no element outside" end
  return ("%d of %d elements outside, worst at %s: %s / %s%s"):format(
    s.count, #A, facts.index(s.absat, a:size()), written(A[s.absat], a.dtype),
    written(B[s.absat], b.dtype),
    (ofulps(A[s.absat], B[s.absat], k.bits):gsub("^  (.*)$", " (%1)")))
end

local function exactly(x)
  return x ~= x and "nan" or math.type(x) == "integer" and tostring(x) or
         ("%.17g"):format(x)
end

local function numbers(a, b, o)
  local kind = KINDS.float64
  o = {rtol = o.rtol or kind.rtol, atol = o.atol or kind.atol,
       equal_nan = o.equal_nan}
  if within(a, b, o) then return nil end
  local text = ("%s and %s differ"):format(exactly(a), exactly(b))
  if a == a and b == b then
    local bits = not (math.type(a) == "integer" and
                      math.type(b) == "integer") and kind.bits
    local rel = b ~= 0 and (", rel %.3g"):format(math.abs((a - b) / b)) or ""
    text = ("%s: abs %.3g%s%s\n  %s"):format(text, math.abs(a - b), rel,
                                             ofulps(a, b, bits), allowed(o))
  end
  return text
end

-- Are all numbers in v, which may hold tables, integers?
local function whole(v)
  if type(v) ~= "table" then return math.type(v) ~= "float" end
  for _, item in ipairs(v) do
    if not whole(item) then return false end
  end
  return true
end

-- Converts a number or a table of numbers to a tensor like t; nil and why if
-- that is impossible.
local function tensorlike(t, v)
  if type(v) ~= "number" and type(v) ~= "table" then return v end
  if not KINDS[t.dtype] and not whole(v) then
    return nil, ("a float cannot be an element of a tensor of %s"):format(
      t.dtype)
  end
  if type(v) == "number" then return nacre.full_like(t, v) end
  local ok, made = pcall(nacre.tensor, v, {dtype = t.dtype})
  if ok then return made end
  return nil, "the table is not a tensor: " .. tostring(made)
end

local function called(v)
  if v == nil then return "nil" end
  return facts.istensor(v) and "a tensor" or "a " .. type(v)
end

-- Nil if a is close to b (what is expected), else the text of why not.
function closeness.compare(a, b, o)
  o = o or {}
  local why
  if facts.istensor(a) then b, why = tensorlike(a, b) end
  if facts.istensor(b) and not why then a, why = tensorlike(b, a) end
  if why then return why end
  if facts.istensor(a) and facts.istensor(b) then return tensors(a, b, o) end
  if math.type(a) and math.type(b) then return numbers(a, b, o) end
  if a ~= nil and rawequal(a, b) then return nil end
  return ("got %s, expected %s: these cannot be close"):format(called(a),
                                                             called(b))
end

return closeness
