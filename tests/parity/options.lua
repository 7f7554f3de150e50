-- SPDX-License-Identifier: MIT
-- For the tests of parity, which need a device: what is told them as NAME=VALUE
-- instead of the given defaults, which are texts.
--   local options = dofile(here .. "options.lua") { seed = "1" }

return function(options)
  for _, text in ipairs(arg) do
    local key, v = text:match "^(%w+)=(.*)$"
    if not options[key or ""] then error("what is " .. text .. "?", 0) end
    options[key] = v
  end
  if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
  io.stdout:setvbuf "line"      -- a long run shows what it finds
  return options
end
