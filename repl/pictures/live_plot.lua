-- SPDX-License-Identifier: MIT
--
-- live_plot.lua - `:set live EXPR`: a plot of an expression, such as the column
-- of a nacre.history, which is drawn again twice a second while a loop of
-- nacre.progress runs or the history grows.

local host = require "nacre.host"
local state = require "nacre.state"
local below = require "nacre.below_output"

local live = {rows = 0}       -- rows of the plot on the screen
local AGAIN = 0.5             -- seconds between two plots
local due, failed = 0, nil    -- failed: the expression that had no plot

function live:erase()
  if self.rows > 0 then below.write(("\27[%dA\r\27[J"):format(self.rows)) end
  self.rows = 0
end

-- The lines of the plot, or nil and why there is none.
local function lines_of(text)
  local f, why = load("return " .. text, "=live")
  if not f then return nil, why end
  local got = table.pack(pcall(f))
  if not got[1] then return nil, tostring(got[2]) end
  local args = table.pack(table.unpack(got, 2, got.n))
  return require "nacre.picture_commands".chart(args, {}, {text})
end

-- Why an expression can never be plotted; nil if it can, or may be later.
function live.refused(text)
  local got = table.pack(pcall(assert(load("return " .. text, "=live"))))
  if got[1] then
    return require "nacre.picture_commands".refused(
      table.pack(table.unpack(got, 2, got.n)), {text})
  end
  local name = tostring(got[2]):match "there is no column '([^']+)'"
  local log = name and text:match "^%s*(.-)%.[%a_][%w_]*%s*$"
  local v = log and require "nacre.lookup".value(log)
  return v and #v > 0 and ("%s has no column '%s': %s"):format(log, name,
    table.concat(v:names(), ", ")) or nil
end

-- Draws the plot of the expression `text` in place of the last one.
local function draw(text)
  local lines, why = lines_of(text)
  if not lines then
    -- there may be nothing to plot yet: it is told at the end
    failed = why
    return
  end
  failed = nil
  if state.notebook then
    return state.notebook.replace(live, table.concat(lines, "\n"))
  end
  below.erase()
  below.write(table.concat(lines, "\n"), "\n")
  live.rows = #lines
  below.add(live)
end

-- A loop runs, and the setting is `text`.
function live.step(text)
  local now = host.clock()
  local drawn = state.notebook or
                host.is_terminal "stderr" and host.has_color "stderr"
  if now < due or text == "off" or not drawn then return end
  draw(text)
  due = host.clock() + AGAIN
end

-- The loop has ended: draws the plot for the last time, and leaves it.
function live.finish(text)
  if due == 0 then return end
  due = 0
  if text ~= "off" then draw(text) end
  live.rows = 0
  if state.notebook then state.notebook.leave(live) end
  below.remove(live)
  if failed then
    io.stderr:write(("(live: no plot of %s: %s)\n"):format(text, failed))
    failed = nil
  end
end

function state.after_run()
  live.finish(require "nacre.settings".get "live")
end

return live
