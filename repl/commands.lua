-- SPDX-License-Identifier: MIT
--
-- commands.lua - what may follow a colon.  One row each: name, arguments,
-- what it does, the function.  A row with `lua` takes Lua, which may go over
-- several lines, and guards the user's code itself.

local host = require "nacre.host"
local inspect = require "nacre.inspect"
local units = require "nacre.units"

local commands = {}

local function say(...) io.stdout:write(...) end

local function quit(shell) shell.leaving = true end

local function helpon(shell, topic)
  if topic ~= "" then
    local name = topic:match "^:?(.*)$"
    local command = commands.find(name)
    if command and topic:find "^:" then
      return say(commands.usage(command), "\n")
    end
    return require "nacre.help".show(shell, topic)
  end
  for _, command in ipairs(commands.list) do
    local form = (":%s %s"):format(command.name, command.args or "")
    say(("  %-22s %s\n"):format(form, command.doc))
  end
  say("\n",
      "  ?name  name?           what a name stands for\n",
      "  ??word                 operations that have the word in their line\n",
      "  a:sum                  (no parentheses) what the method does\n",
      "  !cmd                   the system's shell\n",
      "  _ __ ___ ans           the last results; a final ; hides one\n",
      "\n",
      "  Tab completes, twice lists; Alt-Enter breaks the line; F1 helps\n")
end

local function names(shell, pattern)
  require "nacre.whos".print(shell.userglobals(), pattern)
end

-- One run between two looks at the counters.
local function measure(shell, unit)
  if not shell.settle() then return end
  local flops, bytes, _, held = nacre._counters()
  local begin = host.clock()
  local results = shell.run(unit) -- waits for the devices
  local wall = host.clock() - begin
  local flops2, bytes2, _, held2 = nacre._counters()
  return results, wall, flops2 - flops, bytes2 - bytes, held2 - held
end

-- Rates only of what took long enough to be one.
local function time(shell, text)
  local unit = text ~= "" and shell.compile(text)
  if not unit then
    return text == "" and shell.fail ":time needs a statement" or nil
  end
  local results, wall, flops, bytes, held = measure(shell, unit)
  if not results then return end
  local parts = {units.seconds(wall)}
  parts[#parts + 1] = units.rate(flops / wall, "FLOP/s")
  parts[#parts + 1] = units.rate(bytes / wall, "B/s")
  if inspect.istensor(results[1]) then
    parts[#parts + 1] = tostring(results[1].device)
  end
  if held > 0 then parts[#parts + 1] = "+" .. units.bytes(held) end
  local out = (host.terminal "stdout" or shell.transcript) and io.stdout or
              io.stderr
  out:write("  ", table.concat(parts, "  "), "\n")
end

local function seed(shell, text)
  local n = math.tointeger(tonumber(text))
  if not n then return shell.fail ":seed needs an integer" end
  nacre.manual_seed(n)
end

-- The first line of an entry, its number before it.
local function entry(i, text)
  local line = text:match "[^\n]*"
  say(("%5d  %s%s\n"):format(i, line, #line < #text and " ..." or ""))
end

local function history(shell, text)
  local list, pattern = host.history(), text:match "^/(.*)/?$"
  if pattern then pattern = pattern:gsub("/$", "") end
  local n = pattern and #list or math.tointeger(tonumber(text)) or
            text == "" and 20
  if not n then return shell.fail ":history takes a number or /pattern/" end
  for i = math.max(1, #list - n + 1), #list do
    if not pattern or list[i]:find(pattern) then entry(i, list[i]) end
  end
end

local function save(shell, text)
  require "nacre.save".run(shell, text)
end

local function clear()
  if host.color "stdout" and host.terminal "stdout" then
    say "\27[H\27[2J\27[3J"
  end
end

-- What tensors hold, on all devices.
local function held()
  local n = 0
  for _, m in ipairs(nacre._devices()) do n = n + m.live end
  return n
end

-- Runs f; says how much memory that released.
local function freed(f, what)
  local before, lua = held(), collectgarbage "count"
  f()
  collectgarbage()
  collectgarbage()
  local after = held()
  local text = units.bytes(math.max(0, before - after))
  local rest = math.max(0, lua - collectgarbage "count")
  say(("%s %s of tensors, %s of Lua\n"):format(what, text,
                                               units.bytes(rest * 1024)))
end

local function gc() freed(function() end, "freed") end

local function reset(shell)
  local list = shell.userglobals()
  freed(function()
    for _, name in ipairs(list) do rawset(_G, name, nil) end
    shell.forget()
  end, ("%d variables removed, freed"):format(#list))
end

local function mem()
  for _, line in ipairs(require "nacre.whos".memory()) do say(line, "\n") end
  say(("lua  %s\n"):format(units.bytes(collectgarbage "count" * 1024 // 1)))
end

-- What there is, beside the default device.
local function devices()
  local cuda = nacre.cuda
  if not cuda.is_available() then return say("cuda  ", cuda.why(), "\n") end
  for i = 0, cuda.device_count() - 1 do
    local free, total = cuda.mem_get_info(i)
    say(("cuda:%d  %s  %s free of %s\n"):format(i, cuda.get_device_name(i),
      units.bytes(free), units.bytes(total)))
  end
end

local function dev(_, name)
  local was = nacre.get_default_device()
  if name == "" then
    say("default device ", was, "\n")
    return devices()
  end
  nacre.set_default_device(name)
  say(("default device %s (was %s)\n"):format(nacre.get_default_device(),
                                              was))
end

local function doctor()
  io.stdout:flush()
  host.doctor()
end

commands.list = {
  {name = "help", args = "[NAME]", run = helpon,
   doc = "this list, or what NAME is"},
  {name = "whos", args = "[PATTERN]", run = names,
   doc = "variables, their memory, who is a view of whom"},
  {name = "time", args = "STAT", run = time, lua = true,
   doc = "run once: wall time and rates"},
  {name = "mem", run = mem, doc = "memory in use"},
  {name = "dev", args = "[DEVICE]", run = dev,
   doc = "the devices, or where new tensors go from now on"},
  {name = "doctor", run = doctor,
   doc = "what the program finds here: devices, libraries, terminal"},
  {name = "gc", run = gc, doc = "collect garbage, say what it gave back"},
  {name = "seed", args = "N", run = seed,
   doc = "start the random numbers again"},
  {name = "history", args = "[N|/TEXT/]", run = history,
   doc = "what was typed"},
  {name = "save", args = "FILE [N-M]", run = save,
   doc = "what succeeded as a script; with --test, all as a test"},
  {name = "clear", run = clear, doc = "clear the screen"},
  {name = "reset", run = reset, doc = "forget all variables"},
  {name = "quit", run = quit, doc = "leave (also Ctrl-D)"},
}

-- Names IPython knows under a percent sign.
local aliases = {timeit = "time", hist = "history", exit = "quit"}

-- By name, alias or an unambiguous beginning.
function commands.find(name)
  local found
  name = aliases[name] or name
  for _, command in ipairs(commands.list) do
    if command.name == name then return command end
    if name ~= "" and command.name:sub(1, #name) == name then
      found = found == nil and command or false
    end
  end
  return found or nil
end

function commands.usage(command)
  return (":%s %s\n  %s"):format(command.name, command.args or "",
                                 command.doc)
end

local function unknown(shell, name)
  local list, starting = {}, {}
  for _, command in ipairs(commands.list) do
    list[#list + 1] = command.name
    if command.name:sub(1, #name) == name then
      starting[#starting + 1] = ":" .. command.name
    end
  end
  if #starting > 1 then
    return shell.fail((":%s may be %s"):format(name,
                                               table.concat(starting, ", ")))
  end
  local close = host.suggest(name, list)
  shell.fail(("no command :%s%s"):format(name,
    close and (", did you mean :%s?"):format(close) or ""))
end

function commands.run(shell, name, rest)
  local command = commands.find(name)
  if not command then return unknown(shell, name) end
  if command.lua then return command.run(shell, rest) end
  shell.protected(command.run, shell, rest)
end

return commands
