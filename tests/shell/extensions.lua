-- SPDX-License-Identifier: MIT
--
-- extensions.lua - shell.command, shell.alias, shell.on: what they add is
-- found, helped, completed and run like what the shell has itself; names that
-- are taken are refused; errors of the user's functions are told with the
-- hook's name.

local commands = require "nacre.commands"
local completion = require "nacre.completion"
local hooks = require "nacre.user_hooks"
local session = require "nacre.shell"

session.start(true)

-- What the session says instead of printing it.
local said

local function listen()
  said = {}
  session.held = said
end

-- Runs an input; gives what was said.
local function input(text)
  listen()
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
-- Values
--

local display = require "nacre.display"

-- The results of an input as the session shows them.
local function shown(...)
  return (require "nacre.styled_output".text(...))
end

local Span, Long = {}, {}
Span.__index, Long.__index = Span, Long
setmetatable(Long, Span)
local span = setmetatable({a = 1}, Span)
local before = shown(span)
local asked_for
shell.show(Span, function(v, how)
  asked_for = how
  return "span " .. v.a
end)
assert(shown(span) == "span 1\n" and asked_for == "text")
assert(shown(setmetatable({a = 2}, Long)) == "span 2\n")
assert(shown(setmetatable({a = 2}, {__index = Long})) == "span 2\n")
assert(shown{span, 7} == "{span 1, 7}\n")
assert(shown(span, 7) == "span 1\t7\n")
assert(shown{a = 1} == "{a = 1}\n")
shell.show(Span, function(v) return "two\nlines" end) -- instead of the other
assert(shown(span) == "two\nlines\n" and shown{span} == "{{a = 1}}\n")
shell.show(Span, function() end)
assert(shown(span) == before)
listen()
shell.show(Span, function(v) return v.b.c end)
assert(shown(span) == before and shown(span) == before)
assert(#said == 1 and said[1]:find "in shell.show", said[1])
shell.show(Span, false)
assert(shown(span) == before)

local t = nacre.ones(2, {dtype = "bool"})
local plain = shown(t)
shell.show("tensor", function() return "any" end)
shell.show("bool", function() return "bools" end)
shell.show(function(x) return x.ndim == 3 end, function() return "cube" end)
assert(shown(t) == "bools\n" and shown(nacre.ones(2)) == "any\n")
assert(shown(nacre.ones(2, 2, 2)) == "cube\n")
local mime = require "nacre.mime_bundle"
shell.show("bool", function(_, how) return how ~= "svg" and how or nil end)
local data = mime.bundle(t)
assert(data["text/plain"] == "text" and data["text/html"] == "html")
assert(data["image/svg+xml"] == nil)
shell.show("bool", function(_, how) return how == "svg" and "<svg/>" or nil end)
shell.show("tensor", false)
assert(mime.bundle(t)["image/svg+xml"] == "<svg/>")
assert(shown(t) == plain and display.show(t) .. "\n" == plain)
shell.show("bool", false)
assert(shown(t) == plain)
refused('got "float31"', shell.show, "float31", print)
refused("got number", shell.show, 3, print)

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

--
-- Completion
--

function train(model, epochs) end
shell.complete(train, "model", {"linear", {"cubic", "four"}, 7})
shell.complete(train, 2, {"ten"})
local list = offered 'train("'
assert(list['linear"'] and list['cubic"'] and not list['ten"'])
assert(offered "train("['"linear"'] and offered 'train("x", "'['ten"'])
assert(offered 'train "li'['linear"'])
for _, item in ipairs(completion.candidates('train("c', "")) do
  assert(item[1] == 'cubic"' and item[2]:find "cubic +four")
end
local word
shell.complete(train, "model", function(w) word = w return {"linear"} end)
assert(offered 'train("li'['linear"'] and word == "li")
shell.complete(train, "model", nil)
assert(not offered 'train("'['linear"'])
shell.complete(":fit", "model", {"square"})
shell.complete(":fit", "steps", {"20"})
assert(offered ":fit "["square"] and not offered ":fit "["linear"])
assert(offered ":fit --steps "["20"] and offered 'shell.fit("'['square"'])
shell.complete(nacre.load, 1, {"m.npz"})
local files = offered 'nacre.load "'
assert(next(files) == 'm.npz"' and next(files, 'm.npz"') == nil)
shell.complete(nacre.load, 1, nil)
assert(not offered 'nacre.load "'['m.npz"'])
shell.complete(":fit", "model", function() error "lost" end)
listen()
assert(next(offered ":fit ") == nil and next(offered ":fit ") == nil)
assert(#said == 0)            -- while a line is edited
text = input "z = 1"
assert(text:find "error: lost" and text:find "in shell.complete", text)
assert(not session.failed and input "z = 1" == "")
refused("has no argument epoch; it has model, epochs", shell.complete, train,
        "epoch", {})
refused("no arguments that are known", shell.complete, function() end, 1, {})
refused('no command ":fits"', shell.complete, ":fits", 1, {})
refused("the first argument must be a function, got a number", shell.complete,
        3, 1, {})
refused("a list or a function, got a number", shell.complete, train, 1, 3)
refused("expr is code", shell.complete, ":code", "expr", {})

--
-- Keys: without an editor they have no effect; test_extensions.py presses them
--

shell.key("\\C-t", print)
shell.key("\\C-t", nil)
refused("the key must be a text like", shell.key, 3, print)
refused("the second argument must be a function", shell.key, "\\C-t", 3)

--
-- Hints
--

function set_scale() end
local seen
local function advise(e)
  seen = e
  return e.message:find "scale" and "set_scale(1)" or nil
end
shell.hint(advise)
text = input "error('no scale', 0)"
assert(text:find "error: no scale\n  hint: set_scale%(1%)$", text)
text = input "error 'no scale'"
assert(text:find "error: no scale\n  hint: set_scale%(1%)$", text)
assert(seen.kind == "error" and seen.source == "error 'no scale'")
assert(session.correction == "set_scale(1)", session.correction)
text = input "nacre.ones(2):reshape(3)"
assert(seen.op == "reshape" and text == input "nacre.ones(2):reshape(3)")
assert(input ":scale":find "error: no command :scale; .*\n  hint: set_scale")
assert(seen.kind == "command")
assert(input "scale scale":find "'scale'\n.*\n  hint: set_scale")
assert(seen.kind == "syntax" and seen.source == "scale scale")
shell.hint(function() return nil end) -- asked first, has none
assert(input "error 'scale'":find "hint: set_scale")
shell.hint(function(e) return "mine of " .. e.kind end)
text = input "error 'scale'"
assert(text:find "hint: mine of error" and not text:find "set_scale")
shell.hint(nil)
assert(not input "error 'scale'":find "hint")
shell.hint(function(e) return e.a.b end)
text = input "error 'scale'"
assert(text:find "error: scale" and text:find "in shell.hint", text)
assert(input "error 'scale'" == "error: scale")
shell.hint(nil)
refused("the argument must be a function, got a number", shell.hint, 3)
assert(hooks.call("a hook", function() return 1 end))
assert(shell.lines "?shell.on"[1] == "shell.on(event, f)")
