-- SPDX-License-Identifier: MIT
--
-- full_screen.lua - the whole window, for the pager and :view: draws, reads
-- keys, asks questions in the last row.
--
-- A view has lines(view, rows, columns), which gives the lines of the window,
-- the columns that are left of it, and the row and column of the cursor;
-- status(view), the text of the last row; and key(view, name), which gives
-- true to leave. It may set `message', shown once in place of the status, and
-- call full_screen.ask.

local host = require "nacre.host"
local settings = require "nacre.settings"

local full_screen = {}

-- Text in an SGR style, unless there is to be none.
function full_screen.styled(text, sgr)
  if settings.get "color" == "never" then return text end
  return ("\27[%sm%s\27[m"):format(sgr, text)
end

-- Asks for a text: answer(text) is called unless the user drops it.
function full_screen.ask(view, prompt, answer)
  view.question = {prompt = prompt, text = "", answer = answer}
end

-- A key while a question is asked.
local function reply(view, key)
  local q = view.question
  if key == "enter" then
    view.question = nil
    q.answer(q.text)
  elseif key == "escape" or key == "interrupt" or
         key == "rubout" and q.text == "" then
    view.question = nil
  elseif key == "rubout" then
    q.text = q.text:sub(1, utf8.offset(q.text, -1) - 1)
  elseif utf8.len(key) == 1 then
    q.text = q.text .. key
  end
end

local function draw(view)
  local rows, columns = host.viewer_size()
  local lines, skip, row, column = view:lines(rows - 1, columns)
  local q = view.question
  for i = #lines + 1, rows - 1 do lines[i] = "" end
  lines[rows] = q and q.prompt .. q.text or
                full_screen.styled(view.message or view:status(columns), "2")
  if q then row, column = rows, #lines[rows] + 1 end
  host.viewer_show(lines, skip or 0, math.min(row or rows, rows),
                   math.min(column or 1, columns))
end

local function loop(view)
  repeat
    draw(view)
    local key, leave = host.viewer_key(), false
    if key == "resize" or key == "redraw" or key == "" then
      -- only drawn again
    elseif view.question then
      reply(view, key)
    else
      view.message = nil
      leave = key == "q" or key == "interrupt" or view:key(key)
    end
  until leave
end

-- Shows a view until the user leaves it; false if there is no window to have.
-- After Ctrl-C only the message handler is sure to be called.
function full_screen.run(view)
  if not host.viewer_open() then return false end
  local function close(err)
    host.viewer_close()
    return err
  end
  local ok, err = host.guard(close, loop, view)
  close()
  if not ok then error(err, 0) end
  return true
end

return full_screen
