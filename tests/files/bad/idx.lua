-- SPDX-License-Identifier: MIT
-- .idx files of every dtype, and what is wrong with them.

local choose = dofile(HERE .. "bad/random.lua")
local random = math.random

local CODES <const> = {uint8 = 8, int8 = 9, int16 = 11, int32 = 12,
                       float32 = 13, float64 = 14}

-- The pieces of a valid file.
local function pieces(t)
  local bytes, size = t:tobytes(), t:element_size()
  return {zeros = 0, code = CODES[t.dtype], dims = t:dim(), sizes = t:size(),
          data = bytes:gsub(("."):rep(size), string.reverse)}
end

local function assemble(p)
  local s = string.pack(">I2BB", p.zeros, p.code, p.dims & 255)
  local bounds = {2, 4}
  for _, n in ipairs(p.sizes) do
    s = s .. string.pack(">I4", n & 0xffffffff)
    bounds[#bounds + 1] = #s
  end
  s = s .. p.data
  return p.cut and choose.cut(s, bounds) or s
end

local changes = {
  function(p) p.zeros = random(0, 65535) end,
  function(p) p.code = random(0, 255) end,
  function(p) p.dims = choose.other_integer(p.dims) end,
  function(p)
    local d = #p.sizes
    if d > 0 then p.sizes[d] = choose.other_integer(p.sizes[d]) end
  end,
  function(p) p.sizes = choose.rearrange(p.sizes) end,
  function(p) p.data = choose.damage(p.data) end,
  function(p) p.cut = true end,
}

local maker = {format = "idx", ratio = 8}

function maker.make(damaged)
  local t = choose.tensor()
  while not CODES[t.dtype] or t:dim() == 0 do t = choose.tensor() end
  local p = pieces(t)
  if not damaged then return {{"x.idx", assemble(p)}}, t end
  for _ = 1, random(2) do choose.from(changes)(p) end
  return {{"x.idx", assemble(p)}}
end

return maker
