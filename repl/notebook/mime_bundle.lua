-- SPDX-License-Identifier: MIT
--
-- mime_bundle.lua - the results of a cell in the forms that a notebook can
-- show: text always, tensors as a table, too, and what shell.show has added.

local styled = require "nacre.styled_output"
local facts = require "nacre.tensor_facts"
local user_displays = require "nacre.user_displays"

local mime = {}

local ESCAPES = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;"}

local function escape(text) return (text:gsub("[&<>]", ESCAPES)) end

local function row(cells)
  local parts = {"<tr>"}
  if cells.head:find "%S" then
    parts[2] = ("<th>%s</th>"):format(escape(cells.head:match "%S.*%S"))
  end
  for _, cell in ipairs(cells) do
    parts[#parts + 1] = ("<td>%s</td>"):format(escape(cell))
  end
  parts[#parts + 1] = "</tr>"
  return table.concat(parts)
end

-- The lines of the text of a tensor, those with elements as rows of tables;
-- rows[line] has their cells.
local function html(text, rows)
  local parts, inside = {}, false
  for line in text:gmatch "[^\n]+" do
    local cells = rows[line]
    if inside ~= (cells ~= nil) then
      parts[#parts + 1] = inside and "</table>" or "<table>"
      inside = not inside
    end
    parts[#parts + 1] = cells and row(cells) or
      ("<div><code>%s</code></div>"):format(escape(line))
  end
  if inside then parts[#parts + 1] = "</table>" end
  return "<div>" .. table.concat(parts, "\n") .. "</div>"
end

-- The results of a block, as styled.text takes them.
function mime.bundle(...)
  local rows = {}
  local single = select("#", ...) == 1 and facts.istensor((...))
  local text = single and styled.tensor((...), rows) or styled.text(...)
  text = text:gsub("\n$", "")
  local data = {["text/plain"] = text}
  if next(rows) then data["text/html"] = html(text, rows) end
  if select("#", ...) == 1 then
    data["text/html"] = user_displays.of((...), "html") or data["text/html"]
    data["image/svg+xml"] = user_displays.of((...), "svg")
  end
  return data
end

return mime
