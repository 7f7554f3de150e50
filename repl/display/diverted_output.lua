-- SPDX-License-Identifier: MIT
--
-- diverted_output.lua - the output of a function as a text.

local host = require "nacre.host"
local state = require "nacre.state"

local diverted_output = {}

-- Runs f(...); what it and its child processes write to stdout, and the list
-- of the errors and notes that it would have shown. If the output will be
-- `shown`, it is made for the screen. After Ctrl-C only the message handler is
-- sure to be called.
function diverted_output.of(shown, f, ...)
  if not host.divert_stdout(shown) then
    error("the output is diverted already", 0)
  end
  state.held = {}
  local text, held
  local function finish(err)
    if not text then
      text, held = host.diverted_text(), state.held
      state.held = nil
    end
    return err
  end
  local ok, why = host.guard(finish, f, ...)
  finish()
  if not ok then error(why, 0) end
  return text, held
end

return diverted_output
