-- SPDX-License-Identifier: MIT
-- A zip archive of stored members, with right checksums, for tests of what is
-- in them.
--   local zip = dofile(here .. "../lib/zip.lua")
--   bytes = zip {{"name", "contents"}, ...}

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local crc32 = dofile(here .. "crc32.lua")

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
