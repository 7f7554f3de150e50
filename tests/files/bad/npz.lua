-- SPDX-License-Identifier: MIT
-- .npz archives: damaged as archives, or in the arrays they hold.

local choose = dofile(HERE .. "bad/random.lua")
local archive = dofile(HERE .. "bad/archive.lua")
local npy = dofile(HERE .. "bad/npy.lua")
local random = math.random

local ZEROS <const> = 1 + 258 * 40
local function zeros()
  local t = nacre.zeros({ZEROS}, {dtype = "uint8"})
  local head = nacre.serialize(t):sub(1, 128)
  assert(head:sub(-1) == "\n")
  return head, t
end

local maker = {ratio = 1200, format = "npz", compresses = true}

function maker.make(damaged)
  local members, want = {}, {}
  local inside = damaged and choose.once_in(3) -- the archive itself is right
  for i = 1, random(inside and 1 or 0, 3) do
    local name = "w" .. i
    local s, t = npy.bytes(inside and i == 1)
    local n
    if choose.once_in(12) and not (inside and i == 1) then
      s, t = zeros()
      n = ZEROS
    end
    members[i] = {name .. ".npy", s, zeros = n}
    want[name] = t
  end
  if damaged and choose.once_in(6) and members[1] then
    members[1][1] = choose.name():sub(1, 65000)
  end
  return {{"x.npz", archive.build(members, damaged and not inside)}},
         not damaged and want or nil
end

-- Fails if there is no library for such files.
function maker.probe() nacre.serialize({nacre.ones(1)}, {format = "npz"}) end

return maker
