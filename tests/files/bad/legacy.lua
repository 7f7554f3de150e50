-- SPDX-License-Identifier: MIT
-- Checkpoints of before PyTorch 1.6: five pickles in a row, then the storages.

local choose = dofile(HERE .. "bad/random.lua")
local pt = dofile(HERE .. "bad/pt.lua")
local random = math.random

local MAGIC <const> = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."

-- The pickle of the list of keys.
local function pickle_keys(n)
  local parts = {"\x80\2]("}
  for i = 1, n do
    parts[i + 1] = string.pack("<c1s4", "X", ("%d"):format(i))
  end
  return table.concat(parts) .. "e."
end

-- The parts of a file, and its value.
local function make_parts(damaged)
  local members, want, counts = pt.make_members(damaged)
  local parts = {MAGIC, "\x80\2M\xe9\3.", "\x80\2}.", members[1][2],
                 pickle_keys(#counts)}
  for i, n in ipairs(counts) do
    parts[#parts + 1] = string.pack("<i8", n)
    parts[#parts + 1] = members[3 + i][2]
  end
  return parts, want
end

local changes = {
  function(p) p[2] = choose.from {"\x80\2K\1.", "\x80\2}.", ""} end,
  function(p)
    p[5] = choose.from {"\x80\2].", "\x80\2N.", "\x80\2]K\1a.",
                        pickle_keys(9), pickle_keys(1):gsub("1", "7"), ""}
  end,
  function(p)
    p[6] = string.pack("<i8", choose.other_integer(#p[7]))
  end,
  function(p) p[7] = choose.damage(p[7]) end,
  function(p) p[#p] = p[#p]:sub(1, -2) end,
  function(p) table.remove(p, random(#p)) end,
  function(p)
    local i = random(5)
    p[i] = choose.damage(p[i])
  end,
}

local maker = {ratio = 1200, map = true, format = "pt", nested = true}

function maker.make(damaged)
  local inside = damaged and choose.once_in(2)
  local parts, want = make_parts(inside)
  if damaged and not inside then choose.from(changes)(parts) end
  return {{"x.pt", table.concat(parts)}}, not damaged and want or nil,
         pt.options()
end

function maker.mutant()
  local parts = make_parts()
  if choose.once_in(2) then choose.from(changes)(parts)
  else parts[random(#parts)] = choose.damage(parts[random(#parts)]) end
  return table.concat(parts)
end

function maker.probe() nacre.serialize({nacre.ones(1)}, {format = "pt"}) end

return maker
