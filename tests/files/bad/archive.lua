-- SPDX-License-Identifier: MIT
-- Zip archives made field by field, so that each may lie.
--   archive.build(members, damaged) -> bytes; members: {{name, contents}, ...}

local choose = dofile(HERE .. "bad/random.lua")
local crc32 = dofile(HERE .. "../lib/crc32.lua")
local deflate = dofile(HERE .. "bad/deflate.lua")
local random = math.random

local function member(m)
  local deflated = m.zeros ~= nil or choose.once_in(3)
  local packed = m.zeros and deflate.zeros(m[2], m.zeros) or
                 deflated and deflate.stored(m[2]) or m[2]
  local whole = m.zeros and m[2] .. ("\0"):rep(m.zeros) or m[2]
  return {name = m[1], packed = packed, version = 20, flags = 0,
          method = deflated and 8 or 0, time = 0, date = 33,
          crc = crc32(whole), csize = #packed, usize = #whole, extra = "",
          comment = "", attributes = 0}
end

local function local_header(f)
  return string.pack("<c4I2I2I2I2I2I4I4I4I2I2", f.signature or "PK\3\4",
    f.version & 0xffff, f.flags & 0xffff, f.method & 0xffff, f.time, f.date,
    f.crc & 0xffffffff, f.csize & 0xffffffff, f.usize & 0xffffffff,
    (f.namesize or #f.name) & 0xffff, #f.extra) .. f.name .. f.extra
end

local function central_header(f)
  return string.pack("<c4I2I2I2I2I2I2I4I4I4I2I2I2I2I2I4I4",
    f.signature or "PK\1\2", 20, f.version & 0xffff, f.flags & 0xffff,
    f.method & 0xffff, f.time, f.date, f.crc & 0xffffffff,
    f.csize & 0xffffffff, f.usize & 0xffffffff,
    (f.namesize or #f.name) & 0xffff, #f.extra, #f.comment,
    (f.disk or 0) & 0xffff, 0,
    f.attributes, f.at & 0xffffffff) .. f.name .. f.extra .. f.comment
end

-- The sizes in an extra field of zip64; some are not those of the member.
local function zip64(f)
  local u, c = f.usize, f.csize
  if choose.once_in(3) then u = choose.other_integer(u) end
  if choose.once_in(3) then c = choose.other_integer(c) end
  f.extra = string.pack("<I2I2i8i8", 1, choose.from {16, 16, 8, 24, 65535}, u,
                        c)
  f.usize, f.csize = -1, -1
end

local FIELDS <const> = {"version", "flags", "method", "crc", "csize", "usize",
                        "namesize", "disk"}
-- Makes a field of a local or central header lie.
local field_changes = {
  function(f)
    local name = choose.from(FIELDS)
    f[name] = choose.other_integer(f[name] or #f.name)
  end,
  function(f) f.flags = choose.from {1, 8, 32, 64, 0x800, 0x2000} end,
  function(f) f.name = choose.name():sub(1, 65000) end,
  function(f) f.signature = choose.from {"PK\1\3", "PK\7\8", "PK\5\6"} end,
  function(f) f.extra = choose.damage(string.pack("<I2s2", 1, "12345678")) end,
  function(f) f.comment = choose.name():sub(1, 65000) end,
  zip64,
}

local function copy(f)
  local c = {}
  for k, v in pairs(f) do c[k] = v end
  return c
end

-- What of the archive is wrong.
local function damages()
  local d = {}
  for _ = 1, random(2) do
    d[choose.from {"local_field", "central_field", "offset", "count", "where",
                   "size", "order", "doubled", "before", "cut", "anywhere",
                   "comment", "packed"}] = true
  end
  return d
end

local function ending(d, n, size, at)
  local count = d.count and choose.other_integer(n) or n
  if d.size then size = choose.other_integer(size) end
  if d.where then at = choose.other_integer(at) end
  local comment = d.comment and choose.name():sub(1, 65000) or ""
  local length = d.comment and choose.once_in(2) and
                 choose.other_integer(#comment) or #comment
  return string.pack("<c4I2I2I2I2I4I4I2", "PK\5\6", 0, 0, count & 0xffff,
    (choose.once_in(9) and d.count and n or count) & 0xffff,
    size & 0xffffffff, at & 0xffffffff, length & 0xffff) .. comment
end

local archive = {}

function archive.build(members, damaged)
  local d = damaged and damages() or {}
  if d.order then members = choose.rearrange(members) end
  local out, directory, bounds = {d.before and "junk" or ""}, {}, {4}
  local at, bad = d.before and choose.from {0, 4} or 0, random(#members + 1)
  for i, m in ipairs(members) do
    local l = member(m)
    if d.packed and i == bad then l.packed = choose.damage(l.packed) end
    local c = copy(l)
    c.at = d.offset and i == bad and choose.other_integer(at) or at
    if d.doubled and i == bad then c.at = 0 end
    if d.local_field and i == bad then choose.from(field_changes)(l) end
    if d.central_field and i == bad then choose.from(field_changes)(c) end
    out[#out + 1] = local_header(l) .. l.packed
    directory[i] = central_header(c)
    if d.doubled and i == bad then directory[i] = directory[i]:rep(2) end
    at = at + #out[#out]
    bounds[i] = at
  end
  local list = table.concat(directory)
  local s = table.concat(out) .. list .. ending(d, #members, #list, at)
  if d.anywhere then s = choose.damage(s) end
  return d.cut and choose.cut(s, {at + #list, #s, table.unpack(bounds)}) or s
end

return archive
