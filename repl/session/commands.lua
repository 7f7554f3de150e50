-- SPDX-License-Identifier: MIT
--
-- commands.lua - the commands after a colon, and the functions of the global
-- `shell`, which are the same for programs. One row each:
--
--   name, args, doc   as :help shows them
--   group             begins a group of that name in the overview
--   run               run(shell, text): the command, with its arguments
--   call              call(...): shell.NAME(...), with Lua values. Without it
--                     shell.NAME(text) runs the command, and its failure is an
--                     error
--   as                the name of the function, if it differs from the
--                     command's
--   form              how `call` is called: "(f[, opts]) -> table"
--   module            where `run` and `call` are, unless they are functions:
--                     fields of these names, or of the names given here; `run`
--                     also of the command's name. It is required on first use
--   needs             what the text must contain: "an expression"
--   lua               the text is Lua, possibly of several lines, and `run`
--                     guards the user's code itself
--   files             the text is the name of a file
--   varies            the output differs from session to session
--   about             is about the session: :save leaves it out

local host = require "nacre.host"

local commands = {}

local function say(...) io.stdout:write(...) end

local function quit(shell) shell.leaving = true end

-- Prints the commands in groups, wrapped to the screen.
local function overview()
  local putline = require "nacre.wrap_lines".say
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
    put((":%s %s"):format(command.name, command.args or ""):match "^.*%S")
  end
  putline(line)
end

-- Prints each command with its description, below it on a narrow screen.
local function print_all()
  local wrapped = require "nacre.reference".wrapped
  local width = host.columns()
  local margin = width < 60 and 6 or 26
  for _, command in ipairs(commands.list) do
    local form = (":%s %s"):format(command.name, command.args or "")
    form = ("  %-" .. margin - 4 .. "s"):format(form:match "^.*%S")
    local doc = wrapped(command.doc, (" "):rep(margin), width)
    if #form + 2 > margin then
      say(form, "\n", doc, "\n")
    else
      say(form, doc:sub(#form + 1), "\n")
    end
  end
end

local function print_help(shell, topic)
  if topic == "all" then return print_all() end
  if topic ~= "" then
    local name = topic:match "^:?(.*)$"
    local command = commands.find(name)
    if not command or topic:find "^[^:]" and command.name ~= topic then
      return require "nacre.help".show(shell, topic)
    end
    local putline = require "nacre.wrap_lines".say
    putline(commands.usage(command))
    local also = require "nacre.help".library(command.name)
    return also and putline(also)
  end
  overview()
  say "\n"
  require "nacre.wrap_lines".say {
    "  :help NAME  :help all   what a command does; all commands",
    "  ?name  name?  name??    documentation of a name; how it is computed",
    "  ??word                  operations whose description has the word",
    "  a:sum                   (no parentheses) what the method does",
    "  !cmd                    run a system command",
    "  :whos > FILE            the output of a command in a file; >> adds",
    "  _ __ ___ ans  _17       last results, that of input 17; _ = nil " ..
    "drops them, a final ; hides one",
    "  Tab completes, twice lists; Alt-Enter adds a line; F1 explains"}
end

local function print_variables(shell, pattern)
  require "nacre.variables".print(shell.userglobals(), pattern)
end

commands.list = {
  {group = "session", name = "help", args = "[NAME]", run = print_help,
   about = true,
   doc = "list the commands, or explain NAME; all: a line for each command"},
  {name = "set", args = "[NAME [VALUE]]", module = "nacre.settings",
   form = "(name[, value]) or {name = value, ...}",
   doc = "show or change settings; :set! also writes to the start-up file"},
  {name = "seed", args = "N", module = "nacre.session_commands",
   doc = "seed the random numbers"},
  {name = "dev", args = "[DEVICE]", module = "nacre.session_commands",
   varies = true,
   doc = "list the devices, or create new tensors on DEVICE from now on"},
  {name = "doctor", module = "nacre.session_commands", varies = true,
   doc = "show the devices, libraries, terminal and files that are found"},
  {name = "clear", module = "nacre.session_commands", about = true,
   doc = "clear the screen"},
  {name = "quit", run = quit, about = true, doc = "leave (also Ctrl-D)"},
  {group = "memory", name = "whos", args = "[PATTERN]", run = print_variables,
   doc = "list variables, their memory, and which is a view of which"},
  {name = "mem", module = "nacre.session_commands", call = "callmem",
   varies = true, form = "() -> a table for each device",
   doc = "show the memory in use"},
  {name = "gc", module = "nacre.session_commands", varies = true,
   doc = "collect garbage, show how much memory that freed"},
  {name = "reset", module = "nacre.session_commands", varies = true,
   doc = "remove all variables"},
  {group = "time", name = "time", args = "STAT", module = "nacre.time_once",
   lua = true, needs = "a statement",
   form = "(f or text, ...) -> table, results", varies = true,
   doc = "run once: show wall time and rates"},
  {name = "bench", args = "[OPTIONS] EXPR", module = "nacre.bench", lua = true,
   form = "(f or text[, options]) -> table", varies = true,
   doc = "run many times: median, spread, rates; -n -c cold -s SETUP --save NAME"},
  {name = "compare", args = "A [;; B]", module = "nacre.compare", lua = true,
   form = "(text or texts[, options]) -> results", varies = true,
   doc = "time an expression on every device, or compare several"},
  {name = "sweep", args = "n=16..8192 [-s SETUP] EXPR", module = "nacre.sweep",
   lua = true, form = "(sizes, text or texts[, options]) -> table",
   varies = true,
   doc = "time for each size, and where one expression overtakes another"},
  {name = "peak", args = "[again]", module = "nacre.machine_peak",
   form = "([device]) -> table", varies = true,
   doc = "measure the peak rates of this machine once, and keep them"},
  {name = "diff", args = "A B", module = "nacre.parity", call = "diffcall",
   form = "(a, b) -> table", lua = true,
   doc = "show how much two tensors differ, where, and by how many ulp"},
  {name = "parity", args = "EXPR", module = "nacre.parity", lua = true,
   needs = "an expression",
   doc = "compare the result of every device with float64, in ulp"},
  {name = "repeat", as = "repeated", args = "[N] EXPR",
   module = "nacre.parity", run = "times", call = "again",
   form = "(f, n) -> list", lua = true,
   doc = "check that every run (10 of them) gives the same bits"},
  {name = "timing", args = "on|off|500ms", module = "nacre.settings",
   run = "timing", call = function(v)
     return require "nacre.settings".call("timing", v)
   end, form = "(value)", doc = "show how long lines take, if at least this long"},
  {name = "watch", args = "[SEC] EXPR",
   module = "nacre.watch_expression", lua = true,
   form = "(f[, seconds[, count]])",
   varies = true, doc = "show an expression again and again, until Ctrl-C"},
  {group = "look", name = "debug", module = "nacre.debugger", lua = true,
   run = "command",
   doc = "open the stack of the last error: frames, locals"},
  {name = "trace", args = "STAT", module = "nacre.op_trace", lua = true,
   needs = "a statement",
   varies = true,
   form = "(f, ...) -> steps, results",
   doc = "run once: show each operation, its shapes and its time"},
  {name = "profile", args = "STAT", module = "nacre.profile", lua = true,
   needs = "a statement",
   varies = true,
   form = "(f, ...) -> rows, results",
   doc = "run once: show a table of the operations, slowest first"},
  {name = "shape", args = "EXPR", module = "nacre.dry_run", lua = true,
   needs = "an expression",
   form = "(f, ...) -> steps, results",
   doc = "show shapes, memory and work without computing anything"},
  {name = "nan", args = "off|warn|trap", module = "nacre.nan_watch",
   doc = "warn about, or stop, operations that make nan or inf"},
  {group = "pictures", name = "plot", args = "[X] Y... [-x|-y log] [-o FILE]",
   module = "nacre.picture_commands", call = "plotcall", lua = true,
   needs = "an expression", form = "([x,] y, ..., [opts])",
   doc = "draw curves over the first argument if it rises, else over " ..
         "1, 2, ...; or functions: F 0 6; -o writes .svg or .png"},
  {name = "scatter", args = "X Y... [-o FILE]",
   module = "nacre.picture_commands", call = "scattercall", lua = true,
   needs = "an expression", form = "(x, y, ..., [opts])",
   doc = "draw points, each Y against X, or the columns of a matrix"},
  {name = "hist", args = "X [BINS] [-y log] [-o FILE]",
   module = "nacre.picture_commands", call = "histcall", lua = true,
   needs = "an expression", form = "(x[, bins][, opts])",
   doc = "draw the distribution of the values"},
  {name = "heat", args = "M [-z CENTER] [-o FILE]",
   module = "nacre.picture_commands", call = "heatcall", lua = true,
   needs = "an expression", form = "(m[, opts])",
   doc = "draw a matrix in colours"},
  {name = "show", args = "IMAGE", module = "nacre.picture_commands",
   call = "showcall", lua = true, needs = "an expression",
   form = "(image[, opts])",
   doc = "show one image or many: HxW, CxHxW, HxWxC, NxCxHxW"},
  {name = "png", args = "FILE IMAGE", module = "nacre.picture_commands",
   call = "pngcall", lua = true, form = "(file, image)",
   doc = "write the image that :show shows to a file"},
  {group = "files", name = "cd", args = "[FOLDER]",
   module = "nacre.file_commands", files = true,
   doc = "show or change the working folder"},
  {name = "run", args = "FILE [ARGUMENTS]",
   module = "nacre.file_commands",
   call = "callrun", form = "(file, ...)", files = true,
   doc = "run a file in this session; without FILE, the last one"},
  {name = "load", args = "FILE", module = "nacre.file_commands", files = true,
   doc = "put a text into the input line; FILE.safetensors: its variables"},
  {name = "edit", args = "[NAME|FILE]",
   module = "nacre.file_commands", run = "edit",
   files = true, doc = "edit the last block, a function or a file in $EDITOR"},
  {name = "reload", args = "[auto|off]", module = "nacre.reload",
   doc = "reload modules whose file has changed"},
  {group = "keep", name = "history", args = "[N] [DATE] [TEXT]",
   module = "nacre.input_history", about = true, varies = true,
   form = "([n or text]) -> list of texts",
   doc = "list the last N inputs, those of a day or with a text, and when"},
  {name = "again", args = "[N | N-M]", module = "nacre.input_history",
   run = "again", call = "call_again", form = "([first[, last]])",
   doc = "run an input of the history again, by default the last one"},
  {name = "save", args = "FILE [N-M | NAMES]",
   module = "nacre.save_session", files = true,
   about = true,
   doc = "save inputs that succeeded as a script; --test: the session as " ..
         "a test; FILE.safetensors: the variables"},
  {name = "record", args = "FILE|off",
   module = "nacre.transcript", files = true,
   about = true, doc = "write the session to a file from now on, as it looks"},
  {name = "transcript", args = "FILE", module = "nacre.transcript",
   files = true, about = true, needs = "a file",
   doc = "write the session so far to a file, as it looks"},
}

-- Names IPython knows.
local aliases = {timeit = "bench", exit = "quit", who = "whos", pwd = "cd",
                 device = "dev"}

-- What replaces commands of other shells.
local others = {ls = "!ls ", find = "??", apropos = "??", search = "??",
                doc = "?", info = "?", type = "?", pinfo = "?"}

-- The command for a name after a percent sign, as in IPython.
local magics = {hist = "history", lsmagic = "help", quickref = "help"}

-- The function of a row, `kind` "run" or "call", or nil.
local function function_of(command, kind)
  local f = command[kind]
  if type(f) == "function" or not command.module then return f end
  local module = require(command.module)
  return not f and kind == "run" and module[command.name] or module[f or kind]
end

-- Finds a command by name, alias or an unambiguous prefix.
function commands.find(name)
  local found
  name = aliases[name] or name
  for _, command in ipairs(commands.list) do
    if command.name == name or command.as == name then return command end
    if name ~= "" and command.name:sub(1, #name) == name then
      found = found == nil and command or false
    end
  end
  return found or nil
end

-- What to type for a word that is the name or alias of a command.
function commands.line(word, rest)
  if word == "ls" then return ("!ls " .. (rest or "")):match "^.*%S" end
  local command = commands.find(word)
  if not command or command.name ~= (aliases[word] or word) then return nil end
  return (":%s %s"):format(command.name, rest or ""):match "^.*%S"
end

-- The name and the arguments of a line that is a command, or nil.
function commands.parse(text)
  local name, rest, sign = require "nacre.input_block".command(text)
  if not name then return nil end
  return sign == "%" and magics[name] or name, rest:match "^%s*(.-)%s*$"
end

-- The command of a line, or nil.
function commands.of(text)
  local name = commands.parse(text)
  return name and commands.find(name)
end

function commands.usage(command)
  local form = command.call and "(...)" or "(text)"
  return ("%s\n  %s\n  shell.%s%s"):format(
    commands.line(command.name, command.args), command.doc,
    command.as or command.name, command.form or form)
end

local function unknown(shell, name, rest)
  local sign = others[name]
  if sign then
    return shell.fail(("no command :%s; that is %s"):format(name,
      (sign .. rest):match "^.*%S"))
  end
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
  for _, row in ipairs(require "nacre.settings".list) do
    close = row[1] == name and "set " .. name or close
  end
  shell.fail(("no command :%s%s"):format(name,
    close and (", did you mean :%s?"):format(close) or
    "; :help lists the commands"))
end

function commands.run(shell, name, rest)
  local command = commands.find(name)
  if not command then return unknown(shell, name, rest) end
  if command.needs and rest == "" then
    return shell.fail((":%s needs %s"):format(command.name, command.needs))
  end
  if command.lua then return function_of(command, "run")(shell, rest) end
  shell.protected(function_of(command, "run"), shell, rest)
end

-- A session for commands called by a program: their failures are errors.
local function raising_session()
  local shell = require "nacre.shell"
  return setmetatable({fail = function(text) error(text, 0) end},
                      {__index = shell, __newindex = shell})
end

-- The function shell.NAME; nil if no command has exactly this name.
function commands.callable(name)
  for _, command in ipairs(commands.list) do
    if command.name == name then
      return function_of(command, "call") or function(text)
        local run = function_of(command, "run")
        return run(raising_session(), tostring(text or ""))
      end
    end
  end
end

return commands
