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
local state = require "nacre.state"

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

-- What errors say while a line is edited, where nothing can be said, waits for
-- the next input.
local waiting = {}

local SECONDS <const> = 2     -- that a function may take, as Ctrl-C ends none
local STEPS <const> = 100000  -- between two looks at the clock

-- f(...), which fails when it takes long.
local function limited(f, ...)
  local stop = host.clock() + SECONDS
  debug.sethook(function()
    if host.clock() > stop then
      error(("it took more than %d s while the line was edited"):format(
        SECONDS), 0)
    end
  end, "", STEPS)
  return f(...)
end

-- The same while a line is edited.
function user_hooks.call_quietly(where, f, ...)
  local held = state.held
  state.held = waiting
  local got = table.pack(judged(where, f, false,
    host.guard(user_hooks.handler, limited, f, ...))) -- guard drops the hook
  state.held = held
  return table.unpack(got, 1, got.n)
end

-- What waits, a list of texts, once.
function user_hooks.take_waiting()
  local list = waiting
  if list[1] then waiting = {} end
  return list
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

--
-- Hints
--

local hints = {}

-- Adds a function that knows hints; nil removes all of them.
function user_hooks.add_hints(f)
  local list = {f}
  for _, known in ipairs(f and hints or {}) do
    if known ~= f then list[#list + 1] = known end
  end
  hints = list
end

-- The hint for an error, of the function that was added last and has one; nil
-- without one. For errors of these functions none is asked for.
function user_hooks.hint(e)
  local list = hints
  hints = {}
  local text
  for _, f in ipairs(list) do
    local ok, answer = user_hooks.call("shell.hint", f, e)
    if ok and type(answer) == "string" then
      text = answer
      break
    end
  end
  hints = list
  return text
end

-- What shell.complete has given for functions of Lua: by function, then by
-- parameter.
user_hooks.words = setmetatable({}, {__mode = "k"})

-- The functions of shell.key, by the number of the key: {name =, f =}.
user_hooks.keys = {}

function user_hooks.has_hints() return hints[1] ~= nil end

return user_hooks
