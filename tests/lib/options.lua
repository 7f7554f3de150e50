-- SPDX-License-Identifier: MIT
-- The arguments NAME=VALUE of a test instead of the given defaults, of which
-- numbers stay numbers.
--   local options = dofile(here .. "../lib/options.lua") {seed = 1, only = ""}
-- A test that needs a device says "cuda" behind them.

return function(options, needs)
  if needs == "cuda" then
    if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
    io.stdout:setvbuf "line"    -- a long run shows what it finds
  end
  for _, text in ipairs(arg) do
    local key, v = text:match "^(%w+)=(.*)$"
    local default = options[key or ""]
    if default == nil then error("what is " .. text .. "?", 0) end
    options[key] = type(default) == "number" and tonumber(v) or v
  end
  return options
end
