-- SPDX-License-Identifier: MIT
-- Files without a header, whose shape and place the caller gives.

local choose = dofile(HERE .. "bad/random.lua")
local random = math.random

local maker = {ratio = 8}

function maker.load(path, o)
  local whole = nacre.fromfile(path, o)
  o.mmap = true
  local mapped = nacre.fromfile(path, o)
  assert(mapped:tobytes() == whole:tobytes(), "mmap differs")
  return whole
end

-- What is asked of a file of these bytes.
local function other_options(bytes, o)
  if choose.once_in(2) then o.offset = choose.other_integer(0) end
  if choose.once_in(2) then o.count = choose.other_integer(3) end
  if choose.once_in(2) then
    o.shape = {}
    for d = 1, random(0, 9) do o.shape[d] = choose.other_integer(2) end
  end
  if choose.once_in(3) then o.byteorder = choose.from {"big", "little", "x"} end
  if choose.once_in(3) then
    o.dtype = choose.from {"uint16", "uint32", "uint64", "bool", "float64", "x"}
  end
  return choose.once_in(2) and choose.damage(bytes) or bytes, o
end

function maker.make(damaged)
  local t = choose.tensor()
  local bytes, o = t:tobytes(), {dtype = t.dtype, shape = t:size()}
  if not damaged then return {{"x.bin", bytes}}, t, o end
  bytes, o = other_options(bytes, o)
  return {{"x.bin", bytes}}, nil, o
end

return maker
