-- SPDX-License-Identifier: MIT
--
-- user_hooks.lua - calls the functions that the user gives the shell by
-- shell.command, shell.on and the others of function_list.lua. What fails in
-- one is said once, with the name of the hook, and ends nothing else.
--
-- Who defines such functions (extensions.lua) sets:
--   handler(err)                    what host.guard calls where an error is
--   report(err, where, interrupted, asked)   says it; asked: did the input ask
--                                   for the function?

local host = require "nacre.host"

local user_hooks = {}

local told = setmetatable({}, {__mode = "k"}) -- functions whose error was said

-- The answer of host.guard, unless it is an error, which is reported: again
-- only when f has been right in between.
local function judged(where, f, asked, ok, ...)
  if ok then
    told[f] = nil
    return true, ...
  end
  local err, interrupted = ...
  if asked or not told[f] then
    told[f] = not interrupted or nil
    user_hooks.report(err, where, interrupted, asked)
  end
  return false
end

-- Calls f(...), which is `where`: 'shell.on "input"'. Returns true and its
-- results, or false.
function user_hooks.call(where, f, ...)
  return judged(where, f, false, host.guard(user_hooks.handler, f, ...))
end

-- The same for what the input asks for: each error is reported, as that of the
-- input.
function user_hooks.run(where, f, ...)
  return judged(where, f, true, host.guard(user_hooks.handler, f, ...))
end

--
-- Events
--

local listeners = {input = {}, result = {}, error = {}, exit = {}}

-- Adds a function for an event; nil removes all of them.
function user_hooks.listen(event, f)
  local list = listeners[event]
  if f == nil then
    listeners[event] = {}
    return
  end
  for _, known in ipairs(list) do
    if known == f then return end
  end
  -- a list of its own: the one that is walked may be this one
  list = table.move(list, 1, #list, 1, {})
  list[#list + 1] = f
  listeners[event] = list
end

function user_hooks.tell(event, ...)
  for _, f in ipairs(listeners[event]) do
    user_hooks.call(('shell.on "%s"'):format(event), f, ...)
  end
end

return user_hooks
