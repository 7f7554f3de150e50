-- SPDX-License-Identifier: MIT
--
-- lexer.lua - tokens and indentation of Lua source that may be incomplete.

local lexer = require "nacre.lexer"

-- The tokens as "kind:text" with "!" behind what is not closed.
local function shown(text)
  local list = {}
  for i, t in ipairs(lexer.tokens(text)) do
    assert(text:sub(t.from, t.to) == t.text)
    list[i] = t.kind:sub(1, 2) .. ":" .. t.text .. (t.closed and "" or "!")
  end
  return table.concat(list, "  ")
end

local function is(text, want)
  local got = shown(text)
  if got ~= want then
    error(("%q gives\n  %s\nand not\n  %s"):format(text, got, want), 2)
  end
end

is("", "")
is(" \t\n ", "")
is("local x_1 = endless", "ke:local  na:x_1  op:=  na:endless")

-- numbers: a sign belongs to an exponent only
is("1+2", "nu:1  op:+  nu:2")
is("1e+5-3", "nu:1e+5  op:-  nu:3")
is("0x1F+5 0xA.8p-2", "nu:0x1F  op:+  nu:5  nu:0xA.8p-2")
is("0xe+1", "nu:0xe  op:+  nu:1")
is(".5 5. a.b", "nu:.5  nu:5.  na:a  op:.  na:b")
is("x[1]:sum(-1)",
   "na:x  op:[  nu:1  op:]  op::  na:sum  op:(  op:-  nu:1  op:)")

-- strings
is([["a\"b" 'c']], [[st:"a\"b"  st:'c']])
is('"open\nnext', 'st:"open!  na:next')
is('"a\\\nb"', 'st:"a\\\nb"')
is('"a\\z \n  b"', 'st:"a\\z \n  b"')
is('"ends\\', 'st:"ends\\!')
is("[[a]b]]..[==[]=]]==]", "st:[[a]b]]  op:..  st:[==[]=]]==]")
is("[[open\nx", "st:[[open\nx!")
is("a[ [=x", "na:a  op:[  op:[  op:=  na:x")

-- comments
is("a -- b\nc", "na:a  co:-- b  na:c")
is("--[[b\nc]]d", "co:--[[b\nc]]  na:d")
is("--[==[ ]]", "co:--[==[ ]]!")
is("--[ b", "co:--[ b")

-- operators, and those that Lua does not have
is("a~=b//c<<d::e...", "na:a  op:~=  na:b  op://  na:c  op:<<  na:d  " ..
   "op:::  na:e  op:...")
is("a$\xC3", "na:a  op:$  op:\xC3")
is("a\0b", "na:a  op:\0  na:b")

-- lines
local lines = {}
for i, t in ipairs(lexer.tokens "a\n[[\n]] b --[[\n\n]]c") do
  lines[i] = t.line
end
assert(table.concat(lines, " ") == "1 2 3 3 5", table.concat(lines, " "))

-- indentation
local function indented(text, rest, want)
  local got = lexer.indent(text, rest)
  if got ~= want then
    error(("%q, %q: %d and not %d"):format(text, rest, got, want), 2)
  end
end

indented("for i = 1, 2 do", "", 2)
indented("for i = 1, 2 do", "end", 0)
indented("for i = 1, 2 do", "endless", 2)
indented("f(function()", "end)", 0)     -- both stand on one line
indented("f(\ng(", "", 4)
indented("if a then\nb()\nelse", "", 2)
indented("if a then\nb()", "else c()", 0)
indented("x = [[ do", "", 0)
indented("x = 1 -- do", "", 0)
indented("end end )", "", 0)
indented("do", "end\nend", 0)
indented("repeat\ndo", "end until", 0)

assert(lexer.keywords["goto"] and not lexer.keywords.to)
for word in next, lexer.keywords do is(word, "ke:" .. word) end
