-- SPDX-License-Identifier: MIT
-- The checksum of zip archives and PNG images.
--   local crc32 = dofile(here .. "crc32.lua")

local table_of = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do c = c & 1 == 1 and c >> 1 ~ 0xedb88320 or c >> 1 end
  table_of[i] = c
end

return function(s)
  local c = 0xffffffff
  for i = 1, #s do c = c >> 8 ~ table_of[(c ~ s:byte(i)) & 255] end
  return c ~ 0xffffffff
end
