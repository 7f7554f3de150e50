-- SPDX-License-Identifier: MIT
-- For tests that call what the examples of the reference call: plays one, as
-- tests/docs/reference.lua does; what fails there is not compared here.
--   local play = dofile(here .. "play_example.lua")
--   play(entry, each)        each(): after every input

local known = setmetatable({print = function() end}, {__index = _G})

return function(entry, each)
  local env = setmetatable({}, {__index = known})
  for text in ("\n" .. entry.example .. "\n"):gsub("\n>> ", " ")
              :gmatch "\n> ([^\n]*)" do
    local f = load("return " .. text, "=example", "t", env) or
              load(text, "=example", "t", env)
    if f then pcall(f) end
    if each then each() end
  end
end
