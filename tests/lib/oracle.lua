-- SPDX-License-Identifier: MIT
-- What the tests compare with: dtypes, their promotion and rounding, and (in
-- oracle_functions.lua) the words of the texts in core/ops.def. Counts checks.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = {device = nacre.get_default_device()}

-- ---- checks

local done, failed, shown = 0, 0, 0

function O.check(ok, fmt, ...)
  done = done + 1
  if ok then return true end
  failed = failed + 1
  if shown < 40 then
    shown = shown + 1
    print("FAILED: " .. string.format(fmt, ...))
  end
  return false
end

-- pcall; a device may find out later what is wrong.
function O.try(f, ...)
  local r = table.pack(pcall(f, ...))
  local ok, e = pcall(nacre.synchronize)
  if r[1] and not ok then return ok, e end
  return table.unpack(r, 1, r.n)
end

function O.done(name)
  if failed > 0 then
    error(("%s: %d of %d checks failed"):format(name, failed, done), 0)
  end
  print(("%s: %d checks passed"):format(name, done))
end

-- ---- element types

O.dtypes = {"bool", "uint8", "int8", "int16", "int32", "int64", "float16",
            "bfloat16", "float32", "float64"}
O.floats = {"float16", "bfloat16", "float32", "float64"}
local rank, category = {}, {bool = 0}
for i, t in ipairs(O.dtypes) do
  rank[t] = i
  category[t] = i == 1 and 0 or i <= 6 and 1 or 2
end
O.category = category
O.width = {uint8 = 8, int8 = 8, int16 = 16, int32 = 32, int64 = 64}

function O.isfloat(t) return category[t] == 2 end

-- The type to which two types promote.
function O.promote(a, b)
  if a == b then return a end
  if rank[a] > rank[b] then a, b = b, a end
  if a == "uint8" and b == "int8" then return "int16" end
  if a == "float16" and b == "bfloat16" then return "float32" end
  return b
end

-- The type of a number of Lua.
function O.numbertype(v)
  return type(v) == "boolean" and "bool"
         or math.type(v) == "integer" and "int64" or "float32"
end

-- The common type of operands {dtype=, dim=}; dim is nil for a number.
function O.resulttype(operands)
  local kind = {}
  for _, o in ipairs(operands) do
    local k = o.dim == nil and 3 or o.dim == 0 and 2 or 1
    kind[k] = kind[k] and O.promote(kind[k], o.dtype) or o.dtype
  end
  local t
  for k = 1, 3 do
    local low = kind[k]
    if t == nil then t = low
    elseif low and category[low] > category[t] then t = O.promote(t, low) end
  end
  return t
end

-- In which type a class of operations computes operands of type t, or nil if it
-- refuses them; `bools': is an operand bool?
function O.worktype(class, kind, t, bools)
  local c = category[t]
  if class == "NO_BOOL" and bools then return nil end
  local numeric = class == "NUMERIC" or class == "DIVISION" or
                  class == "ROUNDING"
  if numeric and c == 0 then return nil end
  if class == "INT_OR_BOOL" and c == 2 then return nil end
  if class == "INTEGER" and c ~= 1 then return nil end
  if class == "FLOAT_ONLY" and c ~= 2 then return nil end
  if class == "FLOAT" and c ~= 2 then return "float32" end
  if class == "BOOL_AS_INT" and (c == 0 or c == 1 and kind == "reduce") then
    return "int64"
  end
  return t
end

function O.outtype(class, kind, t, work)
  if kind == "test" or kind == "compare" then return "bool" end
  if class == "TO_BOOL" then return t == "uint8" and t or "bool" end
  if class == "COUNT" then return "int64" end
  return work
end

-- ---- rounding

local pack, unpack = string.pack, string.unpack
local digits = {float16 = 11, bfloat16 = 8, float32 = 24, float64 = 53}
local lowexp = {float16 = -14, bfloat16 = -126, float32 = -126,
                float64 = -1022}
local largest = {float16 = 65504.0, bfloat16 = 0x1.fep127,
                 float32 = 0x1.fffffep127, float64 = 0x1.fffffffffffffp1023}
O.digits, O.lowexp, O.largest = digits, lowexp, largest

-- e of |v| = m * 2^e, 1 <= m < 2
local function exponent(v)
  local e = (unpack("<i8", pack("<d", v)) >> 52 & 0x7ff) - 1023
  return e
end

local function exp2i(e)
  if e < -1022 then return 0x1p-1022 * 2.0 ^ (e + 1022) end
  return 2.0 ^ e
end
O.exp2i = exp2i

-- The distance of numbers of type t near v.
function O.ulp(v, t)
  v = v < 0 and -v or v
  if v > largest[t] then v = largest[t] end
  local e = exponent(v)
  if e < lowexp[t] then e = lowexp[t] end
  return exp2i(e - digits[t] + 1)
end

-- v rounded to the float type t, to nearest, ties to even.
function O.round(v, t)
  v = v * 1.0
  if t == "float64" or v ~= v or v == 0 or v - v ~= 0 then return v end
  local u = O.ulp(v, t)
  local r = v / u             -- exact; |r| < 2^24
  r = (r + 0x1.8p52) - 0x1.8p52
  r = r * u
  if r > largest[t] then return 1 / 0 end
  if r < -largest[t] then return -1 / 0 end
  return r == 0 and v < 0 and -0.0 or r
end

-- An integer wrapped to the integer type t.
function O.wrap(v, t)
  local b = O.width[t]
  if b == 64 then return v end
  v = v & (1 << b) - 1
  if t ~= "uint8" and v >> (b - 1) == 1 then v = v - (1 << b) end
  return v
end

-- A float to an integer type: towards zero, saturating, nan to 0.
local function toint(v, t)
  local top = 2.0 ^ (O.width[t] - (t == "uint8" and 0 or 1))
  if v ~= v then return 0 end
  if v >= top then
    return t == "int64" and math.maxinteger or math.tointeger(top - 1)
  end
  if t == "uint8" and v < 0 then return 0 end
  if v < -top then return math.tointeger(-top) end
  return math.tointeger(v < 0 and math.ceil(v) or math.floor(v))
end

-- v, a number or boolean, as the element of type t that a cast makes of it.
function O.cast(v, t)
  if v == true then v = 1 elseif v == false then v = 0 end
  if t == "bool" then return v ~= 0 end
  if O.isfloat(t) then return O.round(v * 1.0, t) end
  return math.type(v) == "float" and toint(v, t) or O.wrap(v, t)
end

assert(loadfile(here .. "oracle_functions.lua"))(O)

-- ---- operations

local kinds = {unary = 1, test = 1, binary = 2, compare = 2, ternary = 3,
               choose = 3, reduce = 1}

-- Every operation of the table, also those whose names begin with "_".
function O.operations()
  local ops = {}
  for name in pairs(nacre) do
    local op = nacre._info(name)
    if op and op.class then
      op.arity = kinds[op.kind]
      ops[#ops + 1] = op
    end
  end
  table.sort(ops, function(a, b) return a.name < b.name end)
  assert(#ops > 50, "where are the operations?")
  return ops
end

-- The parameters p and q of an operation: a list of {name, default}. A choice
-- has the number of its word as default, and `words'.
function O.parameters(op)
  local list = {}
  local usual = op.kind == "reduce" and 4 or op.arity
  for i = usual + 1, #op.params do
    local p = op.params[i]
    local words = p.choices and {}
    for w in (p.choices or ""):gmatch "[^|]+" do words[#words + 1] = w end
    list[#list + 1] = {name = p.name, words = words,
                       default = words and 0 or tonumber(p.default)}
  end
  return list
end

-- ---- operands

-- All of a value as a string: equal for tensors of one dtype and shape with the
-- same bits, except for those of a nan.
function O.bits(t)
  if not nacre.is_tensor(t) then return tostring(t) end
  t = t:detach():cpu()
  local head = t.dtype .. " " .. table.concat(t:size(), "x") .. " "
  if O.isfloat(t.dtype) then
    head = head .. t:isnan():contiguous():tobytes()
    t = t:nan_to_num(0, math.huge, -math.huge)
  end
  return head .. t:contiguous():tobytes()
end

-- Have two tensors the same dtype, sizes and strides?
function O.same_layout(a, b)
  return a.dtype == b.dtype and
         table.concat(a:size(), ",") == table.concat(b:size(), ",") and
         table.concat(a:stride(), ",") == table.concat(b:stride(), ",")
end

local vectors = {}

-- The i-th vector of n elements of type t, the same at each call: about -0.9 to
-- 1, or odd integers.
function O.vector(i, t, n)
  local key = ("%s %d %d"):format(t, i, n)
  if not vectors[key] then
    local list = {}
    for k = 1, n do
      list[k] = ((k * 7919 + i * 104729) % 10007) / 10007 * 1.9 - 0.9
      if t == "bool" then list[k] = list[k] > 0
      elseif not O.isfloat(t) then list[k] = math.floor(list[k] * 100) | 1 end
    end
    vectors[key] = nacre.tensor(list, {dtype = t})
  end
  return vectors[key]
end

return O
