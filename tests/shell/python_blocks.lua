-- SPDX-License-Identifier: MIT
--
-- python_blocks.lua - which blocks of Python wait for more lines at the prompt,
-- how far the next one is indented, which inputs a copied session has.

local input_block = require "nacre.input_block"
local python_block = require "nacre.python_block"
local paste_blocks = require "nacre.paste_blocks"
local hooks = require "nacre.editor_hooks"

local function is(got, want, text)
  if got ~= want then
    error(("%s\n  is  %s\n  not %s"):format(text, got, want), 2)
  end
end

-- Each line but the last leaves the block open.
local function open_until_the_end(text)
  local at = 1
  for stop in text:gmatch "()\n" do
    local part = text:sub(1, stop - 1)
    is(input_block.ready(part, function() end), false, part)
    at = stop
  end
  is(input_block.ready(text, function() end), true, text)
  return at
end

for _, text in ipairs {
  "while n > 0:\n    n -= 1\n",
  "for row in m:  # each ':' of \"them\"\n    if row:\n        f(row)\n    " ..
    "else:\n        g(row)\n  ",
  "def f(a,\n      b):\n    return a\n",
  "try:\n    int('x')\nexcept ValueError:\n    n = 0\nfinally:\n    n = 1\n",
  "@torch.no_grad()\ndef f(x):\n    '''Two\n\n    lines: [.'''\n    return x\n",
  "@cache\nclass A(B):\n    x = 1\n",
  "d = {\n    'a': 1,  # one\n    'b': [\n        2,\n    ]\n}",
  "x = torch.tensor([\n    [1, 2],\n    [3, 4]])",
  "net = nn.Sequential(\n    nn.Linear(2, 3),\n    nn.ReLU(),\n)",
  "with open('x') as f:\n    for line in f:\n        print(line)\n",
  "if a:\n    x = {\n        'k': 1}\n",
} do open_until_the_end(text) end

-- what is Lua, complete in a line, or an error that no line mends
for _, text in ipairs {
  "for i in range(3): print(i)", "if x then y() end", "x = [1, 2]", "else:",
  "print((1 + * 2", "for i in range(3):\nprint(i)", "x = 3:", "f(", "a:sum",
  "try = {x = print}; try:x()", "for i = 1, 2 do\n  print(i)\nend",
  "x = 5 # {", "def f(x): return [", "match n:",
  "while x do {", "function f() {",
} do
  local ready = text ~= "f(" and text ~= "def f(x): return ["
  is(input_block.ready(text, function() end), ready, text)
end
-- what Lua would take for the call of a method that is in the second line
for _, text in ipairs {"try:\n    int('x')", "for k in d.items():\n    f(k)",
                       "if x:  # why\n    print(x)", "while t.go():\n  f()"} do
  is(input_block.compile(text).kind, "error", text)
  is(input_block.ready(text, function() end), false, text)
  is(input_block.ready(text .. "\n  ", function() end), true, text)
end
try = {int = function() return 5 end}
is(input_block.compile("try:\nint()").kind, "expression", "a variable")
try = nil
is(input_block.compile("try:\nint()").kind, "error", "no variable")

-- the column of the next line
for text, want in pairs {
  ["for i in range(3):"] = 4, ["if a:\n    b()"] = 4,
  ["def f(x):\n    if x:"] = 8, ["def f(x):\n    if x:\n        return 1"] = 4,
  ["while 1:\n    break"] = 0, ["@a.b(1)"] = 0,
  ["try:\n    x = 1\nexcept E:"] = 4, ["@a.b(1)\ndef f():"] = 4,
} do is(hooks.indent(text, ""), want, text) end
is(hooks.indent("if a:\n    b()", "else:"), 0, "else")
is(hooks.indent("for i = 1, 2 do", ""), 2, "Lua")
is(python_block.indent("x = {", ""), nil, "a bracket")

-- a head without a body, which a transcript may have
local function none() end
is(paste_blocks.split("for i in range(2):\nprint(7)", none),
   "for i in range(2):", "a head")
is(paste_blocks.next(), "print(7)", "what follows it")
is(paste_blocks.split("@f\nx = 1", none), "@f", "a decorator")
is(paste_blocks.next(), "x = 1", "what follows that")
is(paste_blocks.split("@f\ndef g():\n    pass", none), nil, "a function")
is(paste_blocks.split("if a:\nelse:\n    b()", none), nil, "two heads")
is(paste_blocks.split("if a:\n    b()\nc()", none), nil, "a body")

-- a session of Python
is(paste_blocks.strip(
  ">>> x = [1,\n...      2]\n>>> x\n[1, 2]\n>>> for v in x:\n" ..
  "...     print(v)\n... \n1\n... no input\n>>> x[0]\n1"),
  "x = [1,\n     2]\nx\nfor v in x:\n    print(v)\nx[0]", "a session")
is(python_block.session ">> x", nil, "a session of ours")
is(python_block.session ">>>x", nil, "no prompt")
