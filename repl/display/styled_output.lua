-- SPDX-License-Identifier: MIT
--
-- styled_output.lua - prints values, and text in colours, on stdout and
-- stderr.

local host = require "nacre.host"
local settings = require "nacre.settings"
local facts = require "nacre.tensor_facts"

local styled = {}

local codes = {dim = "2", red = "31", green = "32", cyan = "36"}

-- Text in a colour, where `stream` ("stdout" or "stderr") takes colours.
function styled.paint(text, kind, stream)
  if not host.has_color(stream or "stdout") then return text end
  return "\27[" .. codes[kind] .. "m" .. text .. "\27[0m"
end

-- Text without the sequences that colour it, or make a link of it.
function styled.uncoloured(text)
  return (text:gsub("\27%[[%d;:?]*[ -/]*[@-~]", "")
              :gsub("\27%][^\7\27]*\7", ""):gsub("\27%][^\7\27]*\27\\", ""))
end

local function show(v, options)
  local display = require "nacre.display"
  options.width, options.utf8 = host.columns(), host.has_utf8()
  options.nameof = display.baseof
  for _, name in ipairs {"precision", "edge", "maxlines", "stats"} do
    if options[name] ~= false then options[name] = settings.get(name) end
  end
  local depth = settings.get "depth"
  options.depth = depth ~= "auto" and depth or nil
  local text = display.show(v, options)
  if type(v) ~= "table" and type(v) ~= "function" then return text end
  return require "nacre.wrap_lines".text(text, "stdout", true)
end

-- A value on one line if possible, for lists of results and variables.
function styled.brief(v)
  if facts.istensor(v) then return require "nacre.display".brief(v) end
  return show(v, {})
end

-- All of a value that is not a tensor.
function styled.whole(v) return show(v, {maxlines = false}) .. "\n" end

-- A value on one line of at most `most' characters.
function styled.line(v, most)
  local text = facts.istensor(v) and facts.kind_and_device(v) or styled.brief(v)
  text = text:gsub("{%s*\n%s*", "{"):gsub("%s*\n%s*}", "}")
             :gsub("%s*\n%s*", " ")
  return require "nacre.wrap_lines".cut(text, most)
end

-- Are there two or more tensors that need several lines?
local function several(list, n)
  local large = 0
  for i = 1, n do
    if facts.istensor(list[i]) and list[i]:numel() > 1 then
      large = large + 1
    end
  end
  return large > 1
end

-- The text of a tensor; rows[line] becomes {head =, cells...} for each line of
-- it that has elements.
function styled.tensor(t, rows) return show(t, {rows = rows}) end

-- The results of a block as text: a single one in full, several on one line
-- each.
function styled.text(...)
  local n, list = select("#", ...), {...}
  if n == 0 then return "" end
  if n == 1 then
    local text = show(list[1], {color = host.has_color "stdout"})
    if list[1] == nil then text = styled.paint(text, "dim") end
    return text .. "\n"
  end
  local brief = not several(list, n)
  for i = 1, n do   -- several large tensors, as of t:max(1), are shown in full
    list[i] = (brief and styled.brief or styled.text)(list[i])
  end
  return table.concat(list, brief and "\t" or "", 1, n) ..
         (brief and "\n" or "")
end

-- Is the result of an expression the file that io.write returns?
function styled.is_file_written(source, ...)
  return source:find "[.:]write%f[^%w_]" and select("#", ...) == 1 and
         io.type((...)) ~= nil
end

-- Prints the results of an expression.
function styled.print(source, ...)
  if not styled.is_file_written(source, ...) then
    io.stdout:write((styled.text(...)))
  end
end

return styled
