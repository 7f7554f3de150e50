-- SPDX-License-Identifier: MIT
--
-- test_state.lua - what a test of a *_test.lua may change for the whole
-- process is set back after it, so that the tests of a file do not depend on
-- each other. Globals and files stay.

local host = require "nacre.host"

local state = {}

-- Each row gets a value and sets it.
local ROWS = {
  {nacre.get_default_dtype, nacre.set_default_dtype},
  {nacre.get_default_device, nacre.set_default_device},
  {nacre.get_num_threads, nacre.set_num_threads},
  {nacre.is_grad_enabled, nacre.set_grad_enabled},
  {host.working_folder, host.working_folder},
  {function() return package.path end, function(v) package.path = v end},
  {function() return package.cpath end, function(v) package.cpath = v end},
  {io.output, io.output}, {io.input, io.input},
  {function() return getmetatable("").__index end,
   function(v) getmetatable("").__index = v end},
}
for _, category in ipairs {"collate", "ctype", "monetary", "numeric", "time"} do
  ROWS[#ROWS + 1] = {function() return os.setlocale(nil, category) end,
                     function(v) os.setlocale(v, category) end}
end

local CUDA = {nacre.cuda.current_device, nacre.cuda.set_device}

-- A function that sets back what has changed since.
function state.keep(job)
  local rows, was = table.move(ROWS, 1, #ROWS, 1, {}), {}
  if job.device ~= "cpu" then rows[#rows + 1] = CUDA end
  for k, row in ipairs(rows) do was[k] = row[1]() end
  local hooked = debug.gethook()
  return function()
    for k, row in ipairs(rows) do
      if row[1]() ~= was[k] then row[2](was[k]) end
    end
    if not hooked and type(debug.gethook()) == "function" then
      debug.sethook()
    end
    collectgarbage "restart"
  end
end

return state
