-- SPDX-License-Identifier: MIT
--
-- expressions.lua - the operands and calls that expression_at.lua finds in a
-- text.

local expressions = require "nacre.expression_at"

local function is(got, want, text)
  if got ~= want then
    error(("%s: %s, not %s"):format(text, got, want), 2)
  end
end

-- The calls of a text, each as "owner|mark|name|args|what all of it is".
local function calls(text, want, name)
  local list = {}
  for i, c in ipairs(expressions.calls(text, name)) do
    list[i] = table.concat({tostring(c.owner), c.mark, c.name, c.args,
                            text:sub(c.from, c.to)}, "|")
  end
  is(table.concat(list, "  "), want, text)
end

calls("f(x)", "||f|(x)|f(x)")
calls("y = a.b:sum (1)", "a.b|:|sum|(1)|a.b:sum (1)")
calls("x[1]:t():mm{w}",
      "x[1]|:|t|()|x[1]:t()  x[1]:t()|:|mm|{w}|x[1]:t():mm{w}")
calls('require "x".f("a)b")',
      '||require|"x"|require "x"  require "x"|.|f|("a)b")|require "x".f("a)b")')
calls("g(f(x))", "||g|(f(x))|g(f(x))  ||f|(x)|f(x)")
calls("x:add_(1); x:add(2); x:added(3)",
      "x|:|add_|(1)|x:add_(1)  x|:|add|(2)|x:add(2)", "add")
-- what only looks like a call
calls('s = "f(x)" -- g(x)', "")
calls("function f(x) end; local function g(y) end", "")
calls("if (a) then return (b) end", "")
calls("f(x", "")
calls("{1}:f()", "nil|:|f|()|f()")

-- the operand that ends a text
for text, want in pairs {
  ["y = x"] = "x", ["return (a + b):t()"] = "(a + b):t()", ["x + 1"] = "nil",
  ["f(x)[1].b"] = "f(x)[1].b", ["x -"] = "nil", ["x -- y"] = "x",
  ["a b"] = "b", ["f(x]"] = "f(x]", ["end"] = "nil", [""] = "nil",
} do is(tostring(expressions.ending(text)), want, text) end

-- the chain that begins one, and what follows
for text, want in pairs {
  ["x:t() + 1"] = "x:t()", ["x (1)"] = "x", ["f(x"] = "f",
  ["a.b.c, d"] = "a.b.c", ["(a):b{1}[2] "] = "(a):b{1}[2]",
  ["1 + x"] = "nil", ["x."] = "x",
} do is(tostring((expressions.beginning(text))), want, text) end

is(expressions.iterated "for i, v in f(a, b) do g() end", "f(a, b)", "loop")
is(expressions.iterated "while x do f() end", nil, "loop")
is(expressions.path("x = np.linalg.norm(v)", "np"), "np.linalg.norm", "path")
is(table.concat(expressions.arguments("(a, {1, 2}, f(b, c))"), ";"),
   "a;{1, 2};f(b, c)", "arguments")
