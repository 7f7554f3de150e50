-- SPDX-License-Identifier: MIT
--
-- state.lua - what the session knows of itself, for all of the shell to read:
-- flags, the log, and which globals are the user's. A script has the same, with
-- an empty log. It has only data: shell.lua adds the functions of the session,
-- and commands get both as `shell`.
--
--   transcript    errors and notes go to stdout, where a transcript has them
--   failed        did the last input fail?
--   failure       what was wrong, as a text or whatever error raised
--   correction    what was typed as its error corrects it, for the next prompt
--   suggested     what that prompt suggests
--   interrupted   did Ctrl-C end it?
--   leaving       the session ends after this input
--   number        of this input in the history
--   log           the submitted blocks, {text =, failed =, interrupted =,
--                 said = output, width = of the screen, prompt = of a reader,
--                 own = a word of that reader, number = in the history}
--   reader        gets the lines while it is set: {prompt =, submit =, ready =,
--                 leave = the word that ends it, own(text): is that its word?,
--                 alone: does no prompt follow?, candidates(left, right) for
--                 Tab}
--   held          errors and notes wait in this list while the output goes to a
--                 file
--   seed, dtype, device   those at the start
--
-- What other folders register here:
--
--   brought       the global with the files of the command line, which is the
--                 user's (tensor_file.lua)
--   python        was a line of Python corrected? dims_noted: was it said that
--                 dims count from 1? (hints/)
--   options       of the command line, as run_modes.lua got them
--   notebook      the output of a notebook's cell (notebook_output.lua)
--   after_run     called when a block has run (live_plot.lua)

local state = {transcript = false, failed = false, leaving = false,
               log = require "nacre.session_log".entries}

-- The initial globals are not the user's, unless he changes them; nor are the
-- results.
local builtin, RESULT = {}, {}

-- Called when the session starts, before anything of the user's runs.
function state.keep_initial_globals()
  for k, v in next, _G do builtin[k] = v end
  if state.brought then builtin[state.brought] = nil end
  for _, k in ipairs {"_", "__", "___", "ans"} do builtin[k] = RESULT end
end

function state.isbuiltin(name)
  local v = builtin[name]
  return v ~= nil and (v == RESULT or rawequal(v, rawget(_G, name)))
end

-- Is this the name of an initial global, whatever its value is now? Adds one.
function state.is_own_name(name) return builtin[name] ~= nil end
function state.provide(name, value) builtin[name], _G[name] = value, value end

function state.userglobals()
  local names = {}
  for k in next, _G do
    if type(k) == "string" and not state.isbuiltin(k) then
      names[#names + 1] = k
    end
  end
  table.sort(names)
  return names
end

-- Removes the user's variables and gives the initial globals their values back.
-- Returns how many were removed.
function state.remove_variables()
  local names = state.userglobals()
  for _, name in ipairs(names) do rawset(_G, name, nil) end
  for name, v in next, builtin do
    if v ~= RESULT then rawset(_G, name, v) end
  end
  return #names
end

return state
