-- SPDX-License-Identifier: MIT
-- .npy files of every dtype, order and version, and what is wrong with them.
--   maker.make() -> {{name, bytes}}, the tensor it holds or nil if damaged
--   maker.bytes(damaged) -> bytes, tensor

local choose = dofile(HERE .. "bad/random.lua")
local random = math.random

local DESCR <const> = {bool = "|b1", uint8 = "|u1", int8 = "|i1", int16 = "i2",
  int32 = "i4", int64 = "i8", float16 = "f2", float32 = "f4", float64 = "f8"}
local OTHER <const> = {"|O", "|O8", "<U3", "|S5", "<c8", "<c16", "<f3", "<f16",
  "<i16", "<i0", "f", "", "<", "=f4", "@f4", "float32", "<u2", ">u4", "<u8",
  "|b2", "<M8[ns]", "|V4", "<i4,<i4", "\\x3cf4", "<f-4", "<f04", "<f4 ",
  "bfloat16"}

-- The elements of t as they are in a file of this byte order.
local function data(t, order, fortran)
  if fortran and t:dim() > 1 then
    local dims = {}
    for d = t:dim(), 1, -1 do dims[#dims + 1] = d end
    t = t:permute(dims):contiguous()
  end
  local bytes, size = t:contiguous():tobytes(), t:element_size()
  if order == "<" then return bytes end
  return (bytes:gsub(("."):rep(size), string.reverse))
end

local function shape_text(shape)
  return ("(%s%s)"):format(table.concat(shape, ", "),
                           #shape == 1 and "," or "")
end

-- The pieces of a valid file, as fields of a table.
local function pieces(t)
  local order, fortran = choose.from {"<", ">"}, choose.once_in(4)
  local code = DESCR[t.dtype]
  if #code == 2 then
    code = (order == "<" and choose.once_in(4) and "=" or order) .. code
  end
  return {magic = "\x93NUMPY", major = random(3), minor = 0, descr = code,
          fortran = fortran and "True" or "False",
          shape = shape_text(t:size()), quote = choose.from {"'", '"'},
          data = data(t, order, fortran)}
end

local function header_text(p)
  local entries = {
    ("%sdescr%s: %s%s%s"):format(p.quote, p.quote, p.quote, p.descr, p.quote),
    "'fortran_order': " .. p.fortran, "'shape': " .. p.shape}
  if p.rearranged then entries = choose.rearrange(entries) end
  local text = "{" .. table.concat(entries, ", ") .. ", }"
  if p.header then text = p.header(text) end
  return text .. (" "):rep(p.blanks or -(#text + 11) % 64) .. "\n"
end

local function assemble(p)
  local text = header_text(p)
  local n = p.length and p.length(#text) or #text
  local length = p.major > 1 and string.pack("<I4", n & 0xffffffff) or
                 string.pack("<I2", n & 0xffff)
  local head = p.magic .. string.char(p.major, p.minor) .. length .. text
  local s = head .. p.data
  return p.cut and choose.cut(s, {6, 8, #head - #text, #head, #s}) or s
end

local function other_shape()
  local list = {}
  for d = 1, choose.from {1, 1, 2, 3, 8, 9, 40} do
    list[d] = choose.number_text(random(0, 5))
  end
  local text = table.concat(list, choose.from {", ", ",", " ", ",,"})
  return choose.from {"(", "[", "", "(("} .. text ..
         choose.from {")", ",)", "]", "", "))"}
end

local changes = {
  function(p) p.magic = choose.from {"\x93NUMPZ", "\x93NUMP", "PK\3\4ab"} end,
  function(p) p.major = random(0, 255) end,
  function(p) p.minor = random(0, 255) end,
  function(p) p.descr = choose.from(OTHER) end,
  function(p) p.descr = choose.name():sub(1, 3000) end,
  function(p) p.fortran = choose.from {"true", "1", "None", "'True'", ""} end,
  function(p) p.shape = other_shape() end,
  function(p) p.rearranged = true end,
  function(p) p.header = choose.damage end,
  function(p) p.length = choose.other_integer end,
  function(p) p.blanks = choose.from {0, 1, 9000, 10000, 65535, 70000} end,
  function(p) p.cut = true end,
  function(p) p.data = choose.damage(p.data) end,
}

local maker = {}

function maker.bytes(damaged)
  local t = choose.tensor()
  while not DESCR[t.dtype] do t = choose.tensor() end
  local p = pieces(t)
  if not damaged then return assemble(p), t end
  for _ = 1, random(2) do choose.from(changes)(p) end
  return assemble(p)
end

function maker.make(damaged)
  local s, t = maker.bytes(damaged)
  if damaged and choose.once_in(8) then -- an array behind another
    s, t = s .. maker.bytes(choose.once_in(2)), nil
  end
  return {{"x.npy", s}}, t
end

maker.format = "npy"
maker.ratio = 8 -- uint16 and uint32 become wider, and big-endian is copied
return maker
