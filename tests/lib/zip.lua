-- SPDX-License-Identifier: MIT
-- A zip archive of stored members, with right checksums, for tests of what is
-- in them.
--   local zip = dofile(here .. "../lib/zip.lua")
--   bytes = zip {{"name", "contents"}, ...}

local table_of = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do c = c & 1 == 1 and c >> 1 ~ 0xedb88320 or c >> 1 end
  table_of[i] = c
end

local function crc32(s)
  local c = 0xffffffff
  for i = 1, #s do c = c >> 8 ~ table_of[(c ~ s:byte(i)) & 255] end
  return c ~ 0xffffffff
end

return function(members)
  local out, directory, at = {}, {}, 0
  for i, member in ipairs(members) do
    local name, data = member[1], member[2]
    local common = string.pack("<I2I2I2I2I2I4I4I4I2I2", 20, 0, 0, 0, 33,
                               crc32(data), #data, #data, #name, 0)
    out[i] = "PK\3\4" .. common .. name .. data
    directory[i] = "PK\1\2\20\0" .. common ..
                   string.pack("<I2I2I2I4I4", 0, 0, 0, 0, at) .. name
    at = at + #out[i]
  end
  local list = table.concat(directory)
  return table.concat(out) .. list ..
         "PK\5\6" .. string.pack("<I2I2I2I2I4I4I2", 0, 0, #members, #members,
                                 #list, at, 0)
end
