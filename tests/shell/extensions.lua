-- SPDX-License-Identifier: MIT
--
-- extensions.lua - shell.command, shell.alias, shell.on: what they add is
-- found, helped, completed and run like what the shell has itself; names that
-- are taken are refused; errors of the user's functions are told with the
-- hook's name.

local commands = require "nacre.commands"
local completion = require "nacre.completion"
local hooks = require "nacre.user_hooks"
local messages = require "nacre.messages"
local session = require "nacre.shell"

session.start(true)

-- What the session says instead of printing it.
local said = {}
function messages.complain(text) said[#said + 1] = text end

-- Runs an input; gives what was said.
local function input(text)
  said = {}
  session.submit(text)
  return table.concat(said, "\n")
end

local function refused(part, f, ...)
  local ok, why = pcall(function(...)
    f(...)
    return nil                -- no tail call
  end, ...)
  assert(not ok and why:find(part, 1, true), part .. " / " .. tostring(why))
  assert(why:find "^[^\n]*extensions.lua:%d+: shell%.", why)
end

local function offered(left)
  local list = {}
  for _, item in ipairs(completion.candidates(left, "")) do
    list[type(item) == "table" and item[1] or item] = true
  end
  return list
end

--
-- Commands
--

local got
local fit = {name = "fit", doc = "fits a model", options = {quick = "less"},
             args = "model:text|linear|cubic, n...:number=nil, *, " ..
                    "steps:count=10, quick=false",
             run = function(a) got = a return "done" end}
shell.command(fit)
assert(input ":fit cubic 1 2.5 --steps 3 --quick" == "")
assert(got.model == "cubic" and got.n[1] == 1 and got.n[2] == 2.5)
assert(got.steps == 3 and got.quick == true)
assert(input ":fit --steps 3 linear" == "" and got.model == "linear")
assert(input ":fit linear" == "" and got.steps == 10 and got.quick == false)
assert(got.n == nil)
assert(shell.fit "linear 4" == "done" and got.n[1] == 4)
assert(shell.fit{model = "x", steps = 1} == "done" and got.model == "x")
assert(got.steps == 1 and got.quick == false)
assert(input ":fit":find "needs linear|cubic; :help fit")
assert(session.failed)
assert(input ":fit square":find "MODEL is: linear or cubic")
assert(input ":fit linear x":find "N needs a number")
assert(input ":fit linear --steps":find "%-%-steps needs a value")
assert(input ":fit linear --steps 0":find "%-%-steps needs a number above 0")
assert(input ":fit linear --step 3":find "no option '%-%-step'")
assert(input ":fit 'linear":find "no quote ends 'linear")
assert(not pcall(shell.fit) and not pcall(shell.fit, {}))

shell.command{name = "one", doc = "takes one", args = "a:word, b:word='x'",
              run = function(a) got = a end}
assert(input ":one 'a b'" == "" and got.a == "a b")
assert(input ":one a b c":find "too many arguments, from 'c' on")
shell.command{name = "code", doc = "takes Lua", args = "n:count=nil, expr:lua",
              run = function(a) got = a end}
assert(input ":code 3 x + 1" == "" and got.n == 3 and got.expr == "x + 1")

assert(offered ":fi"["fit "] and offered ":fit "["linear"])
assert(offered ":fit linear --q"["--quick "])
local help = shell.lines ":help fit"
assert(help[1] == ":fit [OPTIONS] linear|cubic [N...]", help[1])
assert(help[2] == "  fits a model" and help[4]:find "%-%-quick +less")
assert(table.concat(shell.lines ":help", "\n"):find "yours +:fit")
assert(tostring(shell):find "shell.fit +fits a model")

-- A command of the same name takes its place.
fit.run = function() error "new" end
shell.command(fit)
local text = input ":fit linear"
assert(text:find "error: new" and text:find "in the command :fit", text)
assert(session.failed)
assert(input ":fit linear" == text) -- each time
assert(input "z = 1" == "" and not session.failed)

for _, row in ipairs {
  {"'plot' is taken: there is a command :plot", {name = "plot"}},
  {"'repeated' is taken: there is a command :repeat", {name = "repeated"}},
  {"'timeit' is taken: :timeit is another name of :bench", {name = "timeit"}},
  {"'on' is taken: shell.on is a function of the shell", {name = "on"}},
  {"name must be letters without blanks, got \"a b\"", {name = "a b"}},
  {"no field 'runs'", {name = "ok", runs = print}},
  {"doc must be a string, got a number", {name = "ok", doc = 3}},
  {"args of :ok must be like", {name = "ok", args = "a b"}},
} do
  local o = {doc = "x", run = print}
  for key, value in pairs(row[2]) do o[key] = value end
  refused(row[1], shell.command, o)
end
refused("no run", shell.command, {name = "ok", doc = "x"})
refused("no doc", shell.command, {name = "ok", run = print})
refused("a table is needed", shell.command, "ok")
assert(not commands.named "ok")

--
-- Other names
--

shell.alias("pp", "set precision")
input ":pp 6"
assert(shell.set "precision" == 6)
shell.set("precision", 4)
shell.alias("pp", ":set edge")
local edge = shell.set "edge"
assert(shell.pp "3" == 3)
shell.set("edge", edge)
shell.alias("sys", "!echo one")
assert(shell.lines ":sys two"[1] == "one two")
assert(shell.lines ":help sys"[1] == ":sys is !echo one")
assert(commands.line("sys", "x") == "!echo one x")
shell.alias("pp", nil)
assert(shell.pp == nil and not commands.aliases.pp)
refused("'whos' is taken: there is a command :whos", shell.alias, "whos", "set")
refused("'timeit' is taken", shell.alias, "timeit", "set")
refused('"nonsense" begins with no command', shell.alias, "q", "nonsense")
refused("text must be a string, got a number", shell.alias, "q", 3)

--
-- Events
--

local log = {}
local function note(...) log[#log + 1] = table.concat({...}, "|") end
for _, event in ipairs {"input", "result", "error", "exit"} do
  local function f(...) note(event, ...) end
  shell.on(event, f)
  shell.on(event, f)         -- once
end
input "6 * 7, 1"
input "x = 3"
input "error 'wrong'"
input ":nosuch"
input "x = ="
input ":fit linear"
session.left()
assert(table.concat(log, "\n") == [[
input|6 * 7, 1
result|42|1
input|x = 3
input|error 'wrong'
error|wrong|error 'wrong'
input|:nosuch
error|no command :nosuch; :help lists the commands|:nosuch
input|x = =
error|stdin:1: unexpected symbol near '='|x = =
input|:fit linear
error|new|:fit linear
exit]], table.concat(log, "\n"))
for _, event in ipairs {"input", "result", "error", "exit"} do
  shell.on(event, nil)
end
log = {}
input "1"
assert(#log == 0)
refused('no event "inputs"; there are input, result, error, exit', shell.on,
        "inputs", print)
refused("the second argument must be a function, got a number", shell.on,
        "input", 3)

-- An error is told once, until the function is right again, and the input has
-- not failed.
local wrong = true
shell.on("input", function() if wrong then error "mine" end end)
text = input "y = 1"
assert(text:find "error: mine" and text:find 'in shell.on "input"', text)
assert(not session.failed and y == 1)
assert(input "y = 2" == "" and y == 2)
wrong = false
assert(input "y = 3" == "")
wrong = true
assert(input "y = 4":find "error: mine")
shell.on("input", nil)
assert(hooks.call("a hook", function() return 1 end))
assert(shell.lines "?shell.on"[1] == "shell.on(event, f)")
