-- SPDX-License-Identifier: MIT
--
-- command_help.lua - :help: the overview of the commands, and what one does,
-- from its row in command_list.lua and its entry in repl/reference.

local commands = require "nacre.commands"
local host = require "nacre.host"
local options = require "nacre.command_options"
local reference = require "nacre.reference"
local wrap = require "nacre.wrap_lines"

local command_help = {}

local function say(...) io.stdout:write(...) end

-- ":bench [OPTIONS] EXPR".
local function form(command)
  local usage = options.usage(commands.params(command), command.trailing)
  return (":" .. command.name .. " " .. usage):match "^.*%S"
end

command_help.form = form

-- The commands in groups, wrapped to the screen.
local function overview()
  local putline = wrap.say
  local group, line
  local function put(text)
    local width = host.columns()
    if line and #line + 2 + #text > width then
      putline(line)
      line = (" "):rep(10)
    end
    line = (line or ("  %-8s"):format(group)) .. "  " .. text
  end
  for _, command in ipairs(commands.list) do
    if command.group then
      if line then putline(line) end
      group, line = command.group, nil
    end
    put(form(command))
  end
  putline(line)
end

-- "head   doc" with the doc from column `margin` on, below a head that is
-- longer.
local function entry_text(head, doc, margin, width)
  doc = reference.wrapped(doc, (" "):rep(margin), width)
  if #head + 2 > margin then return head:match "^.*%S" .. "\n" .. doc end
  return head .. doc:sub(#head + 1)
end

-- Each command with its description.
local function print_all()
  local width = host.columns()
  local margin = width < 60 and 6 or 26
  for _, command in ipairs(commands.list) do
    say(entry_text("  " .. form(command), command.doc, margin, width), "\n")
  end
end

-- The options of a command, a line each.
local function option_lines(command, width, add)
  local margin = width < 60 and 6 or 26
  for _, p in ipairs(commands.params(command)) do
    if p.byname then
      add(entry_text("  " .. options.form(p, true), p.doc or "", margin, width))
    end
  end
end

-- The other names of a command, with what they stand for.
local function alias_lines(command, width, add)
  local list = {}
  for name, target in next, commands.aliases do
    if target:match "^%S+" == command.name then
      local more = target:match " .*"
      list[#list + 1] = ":" .. name .. (more and " (" .. target .. ")" or "")
    end
  end
  table.sort(list)
  if #list > 0 then
    add(reference.wrapped("also  " .. table.concat(list, ", "), "  ", width))
  end
end

-- Everything about a command, without its example: how it is typed, what it
-- does, its options, and the function of the same name.
function command_help.facts(command, width)
  local lines = {}
  local function add(text) lines[#lines + 1] = text end
  add(reference.folded(form(command), width))
  add(reference.wrapped(command.doc, "  ", width))
  local entry = reference.entry(":" .. command.name)
  if entry and entry.fields.about then
    add(reference.wrapped(entry.fields.about, "  ", width))
  end
  option_lines(command, width, add)
  alias_lines(command, width, add)
  local given = command.own and "(text or table) -> results" or command.form or
                command.call and "(...)" or "(text)"
  add(reference.folded(("  shell.%s%s"):format(command.as or command.name,
                                               given), width))
  return table.concat(lines, "\n")
end

-- The same with the example.
function command_help.text(command)
  local entry = reference.entry(":" .. command.name)
  local width = host.columns()
  local text = command_help.facts(command, width)
  return entry and text .. "\n" .. reference.folded(entry.example, width) or
         text
end

-- A function of `shell` that is no command.
function command_help.of_function(row)
  local width = host.columns()
  return reference.folded(("shell.%s%s"):format(row.name, row.form), width) ..
         "\n" .. reference.wrapped(row.doc, "  ", width)
end

local KEYS = {
  "  :help NAME  :help all   what a command does; all commands",
  "  ?name  name?  name??    documentation of a name; how it is computed",
  "  ??word                  operations whose description has the word",
  "  a:sum                   (no parentheses) what the method does",
  "  !cmd                    run a system command",
  "  :whos > FILE            the output of a command in a file; >> adds",
  "  _ __ ___ ans  _17       last results, that of input 17; _ = nil " ..
  "drops them, a final ; hides one",
  "  Tab completes, twice lists; Alt-Enter adds a line; F1 explains",
}

-- :help [NAME]
function command_help.run(shell, topic)
  if topic == "all" then return print_all() end
  if topic ~= "" then
    local name = topic:match "^:?(.*)$"
    local command = commands.find(name)
    local exact = command and (command.name == name or commands.aliases[name])
    if not command or topic:find "^[^:]" and not exact then
      return require "nacre.help".show(shell, topic)
    end
    local target = commands.aliases[name]
    if target and target:find "^!" then
      return wrap.say((":%s is %s"):format(name, target))
    end
    if target and target:find " " then
      wrap.say((":%s is :%s"):format(name, target))
    end
    wrap.say(command_help.text(command))
    local also = require "nacre.help".library(command.name)
    return also and wrap.say(also)
  end
  overview()
  say "\n"
  wrap.say(KEYS)
end

return command_help
