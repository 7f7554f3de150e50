-- SPDX-License-Identifier: MIT
--
-- watch_expression.lua - :watch evaluates an expression again and again until
-- Ctrl-C. On a terminal each round overwrites the previous one.

local host = require "nacre.host"
local suggestion = require "nacre.suggestion"

local watch_expression = {}

local SECONDS = 2

-- The expression, the seconds and the number of rounds; nil and what is wrong.
local function parse(text)
  local params = require "nacre.commands".params_of "watch"
  local o, rest = require "nacre.command_options".leading(params, text)
  if not o then return nil, rest end
  local seconds, expression = rest:match "^([%d.]+)%s+(.+)$"
  seconds = tonumber(seconds)
  if not seconds then -- a number alone is the seconds
    expression, seconds = tonumber(rest) and "" or rest, SECONDS
  end
  return expression, seconds, o.n
end

-- The escape sequence that moves the cursor back over what was printed.
local function back(lines)
  return lines > 0 and ("\27[%dA\r\27[J"):format(lines) or ""
end

-- One round: the text of the results and its number of screen rows.
local function round(shell, unit, title)
  local got = shell.run(unit)
  if not got then return nil end
  local inspect = require "nacre.styled_output"
  local text = title .. "\n" .. inspect.text(table.unpack(got, 1, got.n))
  if text:sub(-1) ~= "\n" then text = text .. "\n" end
  local rows, columns = 0, host.columns()
  for line in text:gmatch "([^\n]*)\n" do
    line = line:gsub("\27%[[%d;]*m", "")
    local width = utf8.len(line) or #line
    rows = rows + math.max(1, (width + columns - 1) // columns)
  end
  return text, rows
end

local function loop(shell, unit, seconds, count)
  local redraw = host.is_terminal "stdout" and host.has_color "stdout"
  local notebook = shell.notebook
  local rows, text, n = 0, nil, 0
  repeat
    n = n + 1
    local more
    text, more = round(shell, unit,
                       ("every %g s, round %d"):format(seconds, n))
    if not text then return end
    if notebook and n > 1 then notebook.clear(true) end
    io.stdout:write(redraw and back(rows) or "", text)
    io.stdout:flush()
    rows = more
    if n ~= count then host.sleep(seconds) end
  until n == count
end

function watch_expression.run(shell, text)
  local expression, seconds, count = parse(text)
  if not expression then return shell.fail(":watch: " .. seconds) end
  if expression == "" then
    return shell.fail ":watch needs an expression"
  end
  local unit = shell.compile(expression)
  if unit then shell.protected(loop, shell, unit, seconds, count) end
end

-- shell.watch(f[, seconds[, count]])
function watch_expression.call(f, seconds, count)
  suggestion.check_function(f, "watch")
  loop(require "nacre.shell", {f = f}, seconds or SECONDS, count)
end

return watch_expression
