-- SPDX-License-Identifier: MIT
--
-- tour.lua - nacre --tour: the session of tour.nacre, step by step, as if it
-- were typed.

local host = require "nacre.host"
local shell = require "nacre.shell"
local styled = require "nacre.styled_output"

local tour = {}

-- A step is a text and the inputs below it; what they print is not read here.
local function steps()
  local list = {}
  for line in host.tour():gmatch "[^\n]+" do
    local input, more = line:match "^> (.*)", line:match "^>> ?(.*)"
    local step = list[#list]
    if line:find "^%-%- " and not line:find "SPDX" then
      if not step or #step > 0 then
        step = {text = ""}
        list[#list + 1] = step
      end
      step.text = step.text .. line .. "\n"
    elseif input then
      step[#step + 1] = input
    elseif more then
      step[#step] = step[#step] .. "\n" .. more
    end
  end
  return list
end

local function show(step)
  io.write("\n", styled.paint(step.text, "dim"))
  for _, input in ipairs(step) do
    io.write("> ", (input:gsub("\n", "\n>> ")), "\n")
    shell.submit(input)
  end
end

-- Waits for Enter; other lines run. Returns false if nobody wants more.
local function is_wanted()
  while true do
    io.write(styled.paint("-- Enter goes on, q leaves the tour: ", "dim"))
    io.flush()
    local line = io.read()
    if not line or line == "q" then return false end
    if not line:find "%S" then return true end
    shell.submit(line)
  end
end

function tour.run()
  local waits = host.is_terminal "stdin"
  for i, step in ipairs(steps()) do
    if i > 1 and waits and not is_wanted() then return end
    show(step)
  end
end

return tour
