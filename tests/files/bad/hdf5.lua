-- SPDX-License-Identifier: MIT
-- HDF5 files that the library writes, with the fields behind the signatures of
-- their structures changed.

local choose = dofile(HERE .. "bad/random.lua")
local random = math.random

local SIGNATURES <const> = {"TREE", "HEAP", "SNOD", "GCOL", "OHDR", "FRHP",
                            "FHDB", "BTHD", "BTLF", "\x89HDF\r\n\26\n"}

-- Where in s structures begin.
local function places(s)
  local list = {}
  for _, signature in ipairs(SIGNATURES) do
    local at = 1
    repeat
      at = s:find(signature, at, true)
      list[#list + 1] = at
      at = at and at + 1
    until not at
  end
  return list
end

local function overwrite(s, at, bytes)
  return s:sub(1, at - 1) .. bytes .. s:sub(at + #bytes)
end

-- A field of 1, 2, 4 or 8 bytes in or behind a structure gets another value;
-- it may lead to another structure.
local function change_field(s)
  local list = places(s)
  local at = choose.from(list) + random(0, 120)
  local size = choose.from {1, 2, 4, 8}
  local v = choose.once_in(3) and choose.from(list) - 1 or
            choose.other_integer(random(0, 64))
  if size < 8 then v = v & (1 << 8 * size) - 1 end
  return overwrite(s, at, string.pack("<i8", v):sub(1, size)):sub(1, #s)
end

local function tree()
  local t = {}
  for i = 1, random(1, 3) do t["d" .. i] = choose.tensor() end
  if choose.once_in(2) then t.g = {x = choose.tensor()} end
  return t
end

local maker = {ratio = 1200, format = "h5", varies = true,
               map = true}

function maker.make(damaged)
  local want = tree()
  local s = nacre.serialize(want, {format = "h5",
    compressed = choose.once_in(3),
    metadata = choose.once_in(2) and {title = "a run"} or nil})
  if not damaged then return {{"x.h5", s}}, want end
  for _ = 1, random(2) do
    if #places(s) == 0 or choose.once_in(6) then s = choose.damage(s)
    elseif choose.once_in(8) then s = choose.cut(s, places(s))
    else s = change_field(s) end
  end
  return {{"x.h5", s}}
end

-- Fails if there is no library for such files.
function maker.probe() nacre.serialize({nacre.ones(1)}, {format = "h5"}) end

return maker
