-- SPDX-License-Identifier: MIT
--
-- inspect.lua - values and colours on the shell's two streams.

local host = require "nacre.host"

local inspect = {}

local codes = {dim = "2", red = "31"}

-- Text in a colour, where `stream` ("stdout" or "stderr") takes colours.
function inspect.paint(text, kind, stream)
  if not host.color(stream or "stdout") then return text end
  return "\27[" .. codes[kind] .. "m" .. text .. "\27[0m"
end

function inspect.istensor(v)
  return type(v) == "userdata" and nacre.is_tensor(v)
end

-- "float32[3x4] cpu": what is known without looking at the values.
function inspect.kind(t)
  return ("%s[%s] %s"):format(t.dtype, table.concat(t:size(), "x"),
                              tostring(t.device))
end

local function show(v, options)
  local display = require "nacre.display"
  options.width, options.utf8 = host.columns(), host.utf8()
  options.nameof = display.baseof
  return display.show(v, options)
end

-- In one line where one can: for lists of results and of variables.
function inspect.brief(v)
  if inspect.istensor(v) then return require "nacre.display".brief(v) end
  return show(v, {})
end

-- Are there two tensors or more that say nothing in one line?
local function several(list, n)
  local large = 0
  for i = 1, n do
    if nacre.is_tensor(list[i]) and list[i]:numel() > 1 then
      large = large + 1
    end
  end
  return large > 1
end

-- Prints the results of a block: one whole, several in a line.
function inspect.print(...)
  local n, list = select("#", ...), {...}
  if n == 0 or n == 1 and io.type(list[1]) then return end
  if n == 1 then
    local text = show(list[1], {color = host.color "stdout", stats = true})
    if list[1] == nil then text = inspect.paint(text, "dim") end
    io.stdout:write(text, "\n")
    return
  end
  if several(list, n) then         -- values and positions of t:max(1)
    for i = 1, n do inspect.print(list[i]) end
    return
  end
  for i = 1, n do list[i] = inspect.brief(list[i]) end
  io.stdout:write(table.concat(list, "\t", 1, n), "\n")
end

return inspect
