-- SPDX-License-Identifier: MIT
--
-- extensions.lua - how a program extends the shell: the functions of
-- function_list.lua. Each puts a row into the table that the shell itself
-- reads, and refuses what the table has already.

local commands = require "nacre.commands"
local messages = require "nacre.messages"
local options = require "nacre.command_options"
local run_command = require "nacre.run_command"
local state = require "nacre.state"
local user_hooks = require "nacre.user_hooks"

local extensions = {}

--
-- Errors in the user's functions
--

function user_hooks.handler(err)
  local ok, captured = pcall(require "nacre.errors".capture, err, 2)
  return ok and captured or err
end

-- Says what failed and in which hook. Unless the input asked for it, the input
-- itself has not failed, and the correction of its error stays.
function user_hooks.report(err, where, interrupted, asked)
  local failed, correction = state.failed, state.correction
  local failure = state.failure
  if type(err) == "table" then
    err.module = err.module and err.module .. ", in " .. where or where
  end
  messages.report(err, interrupted and "interrupted in " .. where)
  if asked then return end
  state.failed, state.correction, state.failure = failed, correction, failure
end

-- Raises what is wrong in the call of shell.NAME, at the line of the caller.
local function refuse(name, text, ...)
  error(("shell.%s: " .. text):format(name, ...), 3)
end

local function check_function(name, f, what)
  if type(f) == "function" then return end
  error(("shell.%s: %s must be a function, got %s"):format(name, what,
    type(f) == "nil" and "nil" or "a " .. type(f)), 3)
end

--
-- Names
--

-- What has the name of a command already, or nil. What the user has defined by
-- the same function is replaced: `own` tells that.
local function owner(name, own)
  local command = commands.named(name)
  if command and not (own == "command" and command.own and
                      command.name == name) then
    return "there is a command :" .. command.name
  end
  local target = commands.aliases[name]
  if target and not (own == "alias" and commands.own_aliases[name]) then
    return (":%s is another name of :%s"):format(name, target)
  end
  return commands.function_named(name) and
         ("shell.%s is a function of the shell"):format(name)
end

-- Checks the name of a new command; `what` is the argument's.
local function check_name(caller, name, what)
  if type(name) ~= "string" or not name:find "^%a+$" then
    error(("shell.%s: %s must be letters without blanks, got %s"):format(caller,
      what, type(name) == "string" and ("%q"):format(name) or type(name)), 3)
  end
  local taken = owner(name, caller)
  if taken then
    error(("shell.%s: the name '%s' is taken: %s"):format(caller, name, taken),
          3)
  end
end

--
-- Commands
--

local FIELDS <const> = {name = "string", args = "string", doc = "string",
                        options = "table", shown = "table",
                        trailing = "boolean", paged = "boolean",
                        varies = "boolean", run = "function"}

local function check_fields(o)
  if type(o) ~= "table" then
    error("shell.command: a table is needed: " ..
          "shell.command{name=, args=, doc=, run=}", 3)
  end
  for key, value in next, o do
    local wanted = FIELDS[key]
    if not wanted then
      error(("shell.command: no field '%s'%s"):format(tostring(key),
        require "nacre.suggestion".text(tostring(key), FIELDS, "%s")), 3)
    elseif type(value) ~= wanted then
      error(("shell.command: %s must be a %s, got a %s"):format(key, wanted,
        type(value)), 3)
    end
  end
  for _, key in ipairs {"name", "doc", "run"} do
    if o[key] == nil then error("shell.command: no " .. key, 3) end
  end
end

-- Does the command take Lua? Refuses a signature that is none.
local function check_signature(row)
  local lua = false
  for _, p in ipairs(commands.params(row)) do
    if not p.name:find "^%a[%w_]*%.*$" or not p.type:find "^%a+$" then
      error(("shell.command: args of :%s must be like \"file:file, n:number=1, "
             .. "*, quick=false\", got %q"):format(row.name, row.args), 3)
    end
    lua = lua or p.type == "lua" and not p.byname
  end
  return lua
end

-- The values of the arguments: of a table those that are there.
local function values(row, given)
  local params = commands.params(row)
  if type(given) ~= "table" then
    return options.read(params, tostring(given or ""))
  end
  return options.with_defaults(params, table.move(given, 1, #given, 1,
    setmetatable({}, {__index = given})))
end

-- The functions of the row: at the prompt, and for programs, which get the
-- results and the errors.
local function run_of(row, f)
  return function(shell, text)
    local given, wrong = values(row, text)
    if not given then
      return shell.fail((":%s: %s; :help %s"):format(row.name, wrong, row.name))
    end
    user_hooks.run("the command :" .. row.name, f, given)
  end
end

local function call_of(row, f)
  return function(given)
    local list, wrong = values(row, given)
    if not list then error(("shell.%s: %s"):format(row.name, wrong), 2) end
    return f(list)
  end
end

-- Puts the row behind the others, or instead of that of the same name.
local function place(row)
  for i, known in ipairs(commands.list) do
    if known.name == row.name then
      row.group = known.group
      commands.list[i] = row
      return
    end
  end
  row.group = not commands.list[#commands.list].own and "yours" or nil
  table.insert(commands.list, row)
end

-- shell.command{name=, args=, doc=, run=}
function extensions.command(o)
  check_fields(o)
  check_name("command", o.name, "name")
  local row = {own = true, varies = o.varies or false}
  for _, key in ipairs {"name", "args", "doc", "options", "shown", "trailing",
                        "paged"} do
    row[key] = o[key]
  end
  row.lua = check_signature(row)
  row.run, row.call = run_of(row, o.run), call_of(row, o.run)
  place(row)
  require "nacre.shell_functions".add(row.name)
end

-- shell.alias(name, text)
function extensions.alias(name, text)
  check_name("alias", name, "the name")
  if text ~= nil and type(text) ~= "string" then
    refuse("alias", "the text must be a string, got a %s", type(text))
  end
  local line = text and text:match "^%s*:?(.-)%s*$"
  local command = line and line:match "^%a+"
  if line and not line:find "^!%s*%S" and
     not (command and commands.named(command)) then
    refuse("alias", "%q begins with no command of the shell, and with no ! " ..
           "for a command of the system", text)
  end
  commands.aliases[name] = line
  commands.own_aliases[name] = line and true
  require "nacre.shell_functions".add(name)
end

--
-- Events
--

local EVENTS <const> = {"input", "result", "error", "exit"}

-- shell.on(event, f)
function extensions.on(event, f)
  local known = false
  for _, name in ipairs(EVENTS) do known = known or name == event end
  if not known then
    refuse("on", "no event %s; there are %s",
           type(event) == "string" and ("%q"):format(event) or type(event),
           table.concat(EVENTS, ", "))
  end
  if f ~= nil then check_function("on", f, "the second argument") end
  user_hooks.listen(event, f)
end

--
-- Completion
--

-- The parameters of a command, or of a function as far as they are known.
local function parameters_of(f)
  if type(f) == "string" then
    local command = commands.named(f:match "^:(%a+)$" or "")
    if command then return commands.params(command), f end
    error(("shell.complete: no command %q"):format(f), 3)
  end
  local info = package.loaded.nacre._info(f) or
               require "nacre.lua_functions".info(f)
  local list = {}
  if info then return info.params, "the function" end
  for name in require "nacre.lookup".parameters(f):gmatch "[%a_][%w_]*" do
    list[#list + 1] = {name = name, type = "unknown"}
  end
  return list, "the function"
end

-- The parameter of a name or a position.
local function parameter(list, argument, what)
  local names = {}
  for i, p in ipairs(list) do
    if argument == i or argument == p.name:match "^[^.]+" then return p end
    names[i] = p.name
  end
  if names[1] then
    error(("shell.complete: %s has no argument %s; it has %s"):format(what,
      tostring(argument), table.concat(names, ", ")), 3)
  end
  error(("shell.complete: %s has no arguments that are known"):format(what), 3)
end

-- shell.complete(f, argument, list)
function extensions.complete(f, argument, list)
  if type(f) ~= "string" then
    check_function("complete", f, "the first argument")
  end
  local params, what = parameters_of(f)
  local p = parameter(params, argument, what)
  if list ~= nil and type(list) ~= "table" and type(list) ~= "function" then
    refuse("complete", "the third argument must be a list or a function, " ..
           "got a %s", type(list))
  end
  if p.type == "lua" then
    refuse("complete", "%s is code, for which Tab offers names", p.name)
  end
  if type(f) == "string" then
    p.own = list
  else
    user_hooks.words[f] = user_hooks.words[f] or {}
    user_hooks.words[f][p.name] = list
  end
end

--
-- Keys
--

-- The answer of the user's function for a key: {text, position of the cursor
-- from 1, and again}, or nil.
local function changed(f, line, point)
  local text, at = f(line, point)
  if text == nil then return nil end
  if type(text) ~= "string" or text:find "\0" then
    error("it must return the line, a text without zero bytes, or nil; got a "
          .. type(text), 0)
  end
  if at == nil then at = #text end
  if math.type(at) ~= "integer" or at < 0 or at > #text then
    error(("the cursor must be 0 to %d, got %s"):format(#text, tostring(at)), 0)
  end
  return {text, at + 1, at + 1}
end

-- shell.key(keys, f)
function extensions.key(keys, f)
  if type(keys) ~= "string" then
    refuse("key", "the key must be a text like \"\\\\C-t\", got a %s",
           type(keys))
  end
  if f ~= nil then check_function("key", f, "the second argument") end
  local id, why = require "nacre.host".bind_key(keys, f ~= nil)
  if why then refuse("key", "%q cannot be bound: %s", keys, why) end
  if not id then return end
  user_hooks.keys[id] = f and {name = keys, call = function(line, point)
    return changed(f, line, point)
  end}
end

-- shell.hint(f)
function extensions.hint(f)
  if f ~= nil then check_function("hint", f, "the argument") end
  user_hooks.add_hints(f)
end

--
-- Values
--

-- shell.show(T, f): T is a class, a dtype, "tensor" or a function of a tensor;
-- false removes f.
function extensions.show(of, f)
  local known = type(of) == "table" or type(of) == "function" or of == "tensor"
  for _, dtype in ipairs(package.loaded.nacre._dtypes()) do
    known = known or of == dtype
  end
  if not known then
    refuse("show", "values are those of a class, a dtype, \"tensor\", or a " ..
           "function that picks tensors; got %s",
           type(of) == "string" and ("%q"):format(of) or type(of))
  end
  require "nacre.user_displays".set(of, f or nil)
end

-- shell.lines(command): the output of a command of the shell or of a system
-- command as lines without ends; of the latter also the exit status unless that
-- is 0.
function extensions.lines(command)
  if command:find "^%s*[:?]" then
    return require "nacre.redirect".lines(command)
  end
  local pipe <close> = assert(io.popen(command))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  local ok, _, status = pipe:close()
  return list, not ok and status or nil
end

return extensions
