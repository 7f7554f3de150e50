-- SPDX-License-Identifier: MIT
--
-- debugger.lua - :debug shows the stack of the last error: its frames, their
-- local variables, and expressions evaluated in them. The stack is kept as it
-- was when the error happened, until another line runs.

local escape_controls = require "nacre.lua_values".escape_controls
local host = require "nacre.host"
local errors = require "nacre.errors"
local styled = require "nacre.styled_output"
local input_block = require "nacre.input_block"

local debugger = {}

local help = [[
  where     the frames, the innermost first; * is the one looked at
  up down   the frame that called this one, and back
  list      the lines around the one where the frame is
  locals    the variables of the frame
  p EXPR    an expression in the frame (or just the expression)
  q         back to the prompt
A command of the shell that takes no Lua, such as :whos, works here, too.
]]

local function say(...)
  require "nacre.wrap_lines".say(table.concat {...})
end

local function title(frame)
  local name = frame.main and frame.file == "stdin" and "the prompt" or
               frame.name
  return ("%s at %s:%d"):format(name, frame.file, frame.line)
end

-- A value in one line that fits.
local function brief(v)
  return styled.line(v, math.min(60, host.columns() - 12))
end

-- Commands of the debugger. Each is called with the state {stack, at, shell}
-- and the rest of the line.
local commands = {}

function commands.where(s)
  for i, frame in ipairs(s.stack) do
    local line = frame.shown and "   " .. frame.shown:match "^%s*(.-)%s*$" or
                 ""
    say(i == s.at and "* " or "  ", title(frame), line,
        frame.tail and "  (by a tail call)" or "", "\n")
    if i == s.stack.gap then
      say(("  ... %d more\n"):format(s.stack.skipped))
    end
  end
end

local function move(s, by, what)
  if not s.stack[s.at + by] then return say("this is the ", what, "\n") end
  s.at = s.at + by
  say(title(s.stack[s.at]), "\n")
end

function commands.up(s) move(s, 1, "outermost frame") end

function commands.down(s) move(s, -1, "innermost frame") end

function commands.locals(s)
  local frame, width = s.stack[s.at], 0
  for _, var in ipairs(frame.variables) do
    width = math.max(width, #var.name)
  end
  for _, var in ipairs(frame.variables) do
    say(("  %-" .. width .. "s  %s%s\n"):format(var.name, brief(var.value),
      var.outer and "  (of the function around it)" or ""))
  end
  if #frame.variables == 0 then say "  no locals\n" end
end

local AROUND <const> = 5     -- lines

function commands.list(s)
  local frame, n = s.stack[s.at], 0
  if not frame.text then return say "  no source\n" end
  for line in (frame.text .. "\n"):gmatch "(.-)\n" do
    n = n + 1
    if math.abs(n - frame.line) <= AROUND and
       not (line == "" and n > frame.line) then
      say(("%s %4d  %s\n"):format(n == frame.line and "*" or " ", n,
                                  escape_controls(line)))
    end
  end
end

-- The globals of an expression: the frame's variables, then the globals of its
-- function. Assignments hold in the debugger only.
local function environment(frame)
  return setmetatable({}, {
    variables = frame.variables,    -- see stack_frames.lua
    __index = function(_, name)
      for _, var in ipairs(frame.variables) do
        if var.name == name then return var.value end
      end
      return frame.globals[name]
    end,
    __newindex = function(_, name, value)
      for _, var in ipairs(frame.variables) do
        if var.name == name then
          var.value = value
          return
        end
      end
      frame.globals[name] = value
    end,
  })
end

function commands.p(s, text)
  if not text:find "%S" then return s.shell.fail "p needs an expression" end
  local unit = s.shell.compile(text)
  if not unit then return end
  unit.locals = nil
  debug.setupvalue(unit.f, 1, environment(s.stack[s.at]))
  local results = s.shell.run(unit)
  if results then s.shell.print(results, text) end
end

function commands.q(s) s.shell.reader = nil end

function commands.help() say(help) end

local short = {u = "up", d = "down", w = "where", bt = "where", l = "locals",
               h = "help", quit = "q", exit = "q", print = "p"}

-- What a debugger of a running program has.
local absent = {["break"] = true, step = true, next = true, continue = true,
                cont = true, finish = true}

local function is_absent()
  say("this is the stack of an error: nothing can continue; help lists the ",
      "commands\n")
end

-- The command of a word, unless a variable of the frame has that name.
local function find(s, word)
  for _, var in ipairs(s.stack[s.at].variables) do
    if var.name == word then return nil end
  end
  if absent[word] and (word == "next" or rawget(_G, word) == nil) then
    return is_absent
  end
  return commands[word] or commands[short[word]]
end

-- A command of the shell, or ?name; nil if the text is neither.
local function run_shell_line(s, text)
  local topic = text:match "^%s*%?+%s*([%w_%.:]+)%s*$"
  if topic then
    require "nacre.help".show(s.shell, topic)
    return true
  end
  if not input_block.command(text) then return nil end
  local commands = require "nacre.commands"
  local row = commands.of(text)
  if row and (row.lua or row.name == "debug") then
    s.shell.fail((":%s is for the prompt: q leaves the debugger")
                 :format(row.name))
  else
    require "nacre.run_command".run(s.shell, commands.parse(text))
  end
  return true
end

-- The debugger's command in a line and its arguments; nil if there is none.
local function own_command(s, text)
  local word, rest = text:match "^%s*:?(%a+)%s*(.-)%s*$"
  local command = find(s, word)
  if command and (rest == "" or command == commands.p or
                  command == is_absent) and
     not (rest:find "^[=(.:%[]") then
    return command, rest
  end
end

local function run_line(s, text)
  local command, rest = own_command(s, text)
  if command then return command(s, rest) end
  if run_shell_line(s, text) then return end
  commands.p(s, (text:gsub("^%s*=", "", 1)))
end

local help_mentioned = false

-- :debug. Without a text it reads lines itself, in place of the prompt, until
-- q.
function debugger.command(shell, text)
  local stack = errors.stack()
  if not stack or #stack == 0 then
    return shell.fail(stack and "the error has no frames of yours" or
      "no error to look at: another line has run, or there was none")
  end
  local s = {stack = stack, at = 1, shell = shell}
  if text ~= "" then return run_line(s, text) end
  say(title(stack[1]), "\n")
  if not help_mentioned then
    help_mentioned = true
    shell.note "help lists the commands, q leaves"
  end
  shell.reader = {
    prompt = "debug> ",
    leave = "q",
    own = function(line) return own_command(s, line) ~= nil end,
    submit = function(line)
      if line:find "%S" then run_line(s, line) end
    end,
    ready = function(line)
      return own_command(s, line) ~= nil or
             input_block.ready(line, function() end)
    end,
  }
end

-- shell.debug(): the frames of the last error as a list of tables.
function debugger.call() return errors.stack() end

return debugger
