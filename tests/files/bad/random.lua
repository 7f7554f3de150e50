-- SPDX-License-Identifier: MIT
-- Random choices for the makers of bad files, from math.random alone, so that
-- a seed gives the same files again.

local random = math.random
local choose = {}

function choose.from(list) return list[random(#list)] end

-- True once in n times.
function choose.once_in(n) return random(n) == 1 end

-- Integers at which arithmetic on sizes goes wrong.
local EDGES <const> = {0, 1, 2, 3, 7, 8, 16, 63, 64, 127, 128, 255, 256, 4096,
  32767, 32768, 65535, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1,
  1 << 32, 1 << 40, 1 << 60, 1 << 61, 1 << 62, math.maxinteger - 1,
  math.maxinteger, math.mininteger, -1, -2, -8}

-- An integer that is not n: near it, a multiple, or at an edge.
function choose.other_integer(n)
  local kind = random(6)
  if kind == 1 then return n + 1 end
  if kind == 2 then return n - 1 end
  if kind == 3 then return n * 2 end
  if kind == 4 then return n + random(-9, 9) end
  return choose.from(EDGES)
end

-- The same as text; some are beyond 64 bits or no integers.
local NUMBERS <const> = {"-1", "-0", "1e3", "1.5", "NaN", "Infinity", "nan",
  "18446744073709551615", "18446744073709551616", "9223372036854775808",
  "99999999999999999999999999", "00", "0x10", "1L", "+1", "true", "null", "",
  "\"1\"", "1 ", "１"}
function choose.number_text(n)
  if choose.once_in(3) then return choose.from(NUMBERS) end
  return ("%d"):format(choose.other_integer(n))
end

-- Names that are long, no UTF-8, paths, or act on a terminal.
local NAMES <const> = {"", ".", "..", "/", "../../x", "/etc/passwd", "a/b",
  "a\\b", "a\0b", "\27[31m", "\255\254", "\xed\xa0\x80", "\xc0\x80", "é",
  ("n"):rep(2000), ("n"):rep(70000), "arr_0", "arr_1",
  "arr_18446744073709551616", "__metadata__", "__index", "w", "w.npy",
  "data.pkl", "\n", "%s%n", "nil", "~workspace", "nacre"}
function choose.name() return choose.from(NAMES) end

-- Bytes that mean something somewhere.
local BYTES <const> = {"\0", "\255", "\127", "\128", "0", "9", "-", "{", "}",
  "[", "]", "(", ")", ",", ":", '"', "'", "\\", "\n", "\r", " ", "#", "e",
  "PK\1\2", "PK\3\4", "PK\5\6", "\255\255\255\255", "\255\255\255\127",
  "\0\0\0\128", "9223372036854775807", "99999999999999999999", "nan", "tRNS",
  "IDAT", "IEND", "\xef\xbb\xbf", "\\u0000"}

-- The string before and behind the byte i, and the byte.
local function around(s, i) return s:sub(1, i - 1), s:sub(i + 1), s:byte(i) end

local function length() return random(0, 1 << random(0, 6)) end

-- What damages s at i, which is one of its bytes.
local damages = {
  function(s, i) return s:sub(1, i - 1) end,
  function(s, i)                -- another byte
    local before, behind = around(s, i)
    return before .. string.char(random(0, 255)) .. behind
  end,
  function(s, i)                -- another bit
    local before, behind, byte = around(s, i)
    return before .. string.char(byte ~ 1 << random(0, 7)) .. behind
  end,
  function(s, i) return s:sub(1, i - 1) .. choose.from(BYTES) .. s:sub(i) end,
  function(s, i)
    local odd = choose.from(BYTES)
    return s:sub(1, i - 1) .. odd .. s:sub(i + #odd)
  end,
  function(s, i) return s:sub(1, i - 1) .. s:sub(i + length()) end,
  function(s, i)                -- a part is there twice
    return s:sub(1, i) .. s:sub(math.max(1, i - length()))
  end,
  function(s, i)                -- the same, elsewhere
    local to = random(0, #s)
    return s:sub(1, to) .. s:sub(i, i + length()) .. s:sub(to + 1)
  end,
}

-- s with a few bytes changed, cut, doubled or moved, anywhere.
function choose.damage(s)
  if #s == 0 then return choose.from(BYTES) end
  return choose.from(damages)(s, random(#s))
end

-- s damaged up to three times, by `damage' if it is given.
function choose.mutant(s, damage)
  for _ = 1, random(3) do s = (damage or choose.damage)(s) end
  return s
end

-- Cuts s at one of the boundaries, or beside it, or adds to its end.
function choose.cut(s, boundaries)
  if choose.once_in(6) then return s .. choose.from(BYTES) end
  return s:sub(1, math.max(0, choose.from(boundaries) + random(-1, 1)))
end

-- list with an element removed, doubled or moved.
function choose.rearrange(list)
  local copy = table.move(list, 1, #list, 1, {})
  if #copy == 0 then return copy end
  local kind, i = random(3), random(#copy)
  local element = copy[i]
  if kind ~= 2 then table.remove(copy, i) end
  if kind ~= 1 then table.insert(copy, random(#copy + 1), element) end
  return copy
end

local DTYPES <const> = {"bool", "uint8", "int8", "int16", "int32", "int64",
                        "float16", "bfloat16", "float32", "float64"}
local SIZES <const> = {0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 17}

-- A tensor of any of the dtypes, or of this one, and of any shape.
function choose.tensor(dtype)
  local shape = {}
  for d = 1, random(0, 4) do shape[d] = choose.from(SIZES) end
  if choose.once_in(40) then shape = {random(2000)} end
  dtype = dtype or choose.from(DTYPES)
  return (nacre.randn(shape) * 100):to(dtype)
end

choose.dtypes = DTYPES
return choose
