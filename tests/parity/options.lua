-- SPDX-License-Identifier: MIT
-- The arguments of a test of parity, which needs a device; see
-- lib/options.lua.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local options = dofile(here .. "../lib/options.lua")

return function(defaults)
  if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
  io.stdout:setvbuf "line"      -- a long run shows what it finds
  return options(defaults)
end
