-- SPDX-License-Identifier: MIT
-- An index of shards and the .safetensors files that it names.

local choose = dofile(HERE .. "bad/random.lua")
local safetensors = dofile(HERE .. "bad/safetensors.lua")
local random = math.random

local FILES <const> = {"s1.safetensors", "s2.safetensors", "s3.safetensors"}
local ELSEWHERE <const> = {"../s1.safetensors", "/etc/passwd", "", ".",
  "x.index.json", "s1.safetensors\\u0000", "none.safetensors", "\27[31m",
  "sub/s1.safetensors", ("n"):rep(5000)}

local maker = {ratio = 16, map = true, several = true}

-- The files, and the entries of an index of them.
local function shards(want, broken)
  local files, map = {}, {}
  for i = 1, random(1, 3) do
    local list = {}
    for k = 1, random(0, 2) do
      local name = ("w%d.%d"):format(i, k)
      list[k] = {name, choose.tensor()}
      want[name] = list[k][2]
      map[#map + 1] = ('"%s":"%s"'):format(name, FILES[i])
    end
    files[i] = {FILES[i], safetensors.build(list, nil, broken and i == 1)}
  end
  return files, map
end

local changes = {
  function(map) map[#map + 1] = '"w1.1":"s2.safetensors"' end,
  function(map) map[#map + 1] = '"none":"s1.safetensors"' end,
  function(map)
    map[#map + 1] = ('"w":"%s"'):format(choose.from(ELSEWHERE))
  end,
  function(map) map[#map + 1] = '"w":' .. choose.number_text(1) end,
  function(map) map[#map + 1] = choose.damage '"w1.1":"s1.safetensors"' end,
  function(map) table.remove(map) end,
}

function maker.make(damaged)
  local want, kind = {}, damaged and random(3)
  local files, map = shards(want, kind == 1)
  if kind == 2 then choose.from(changes)(map) end
  local text = ('{"metadata": {"total_size": %d}, "weight_map": {%s}}'):format(
    random(1000), table.concat(map, ", "))
  if kind == 3 then
    text = choose.once_in(4) and choose.cut(text, {1, 12, #text}) or
           choose.damage(text)
  end
  if damaged and choose.once_in(20) then table.remove(files) end
  table.insert(files, 1, {"x.safetensors.index.json", text})
  return files, not damaged and want or nil
end

return maker
