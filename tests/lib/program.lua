-- SPDX-License-Identifier: MIT
-- Runs this program again, in a process of its own.
--   local run = dofile(here .. "../lib/program.lua")

local exe = io.popen "readlink /proc/$PPID/exe":read "l"

-- Runs it with these options, this standard input and variables of the
-- environment ("A=1 B=2"), which may be nil. Returns what it prints and its
-- exit status.
return function(options, input, environment)
  local path = os.tmpname()
  local f = assert(io.open(path, "w"))
  f:write(input or "")
  f:close()
  local p = io.popen(("%s '%s' %s < %s 2>&1"):format(environment or "", exe,
                                                     options or "", path))
  local text = p:read "a"
  local _, _, status = p:close()
  os.remove(path)
  return text, status
end
