-- SPDX-License-Identifier: MIT
-- For tests that call what the examples of the reference call: plays one, as
-- tests/docs/reference.lua does; what fails there is not compared here.
--   local play = dofile(here .. "play_example.lua")
--   play(entry, each)        each(env, i): after input i, with its globals

local known = setmetatable({print = function() end}, {__index = _G})

return function(entry, each)
  local env, i = setmetatable({}, {__index = known}), 0
  for text in ("\n" .. entry.example .. "\n"):gsub("\n>> ", " ")
              :gmatch "\n> ([^\n]*)" do
    local f = load("return " .. text, "=example", "t", env) or
              load(text, "=example", "t", env)
    if f then pcall(f) end
    i = i + 1
    if each and each(env, i) == false then break end
  end
end
