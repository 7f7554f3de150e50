-- SPDX-License-Identifier: MIT
--
-- How errors are shown: blocks of a session run as the shell runs them, and
-- what is said of their failures against golden text.

local errors = require "nacre.errors"

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local S = dofile(here .. "../lib/golden_text.lua")
local same = S.same

_G.a, _G.b = nacre.zeros(3, 4), nacre.zeros(5, 4)

-- mm(x, y[, hint]) fails as that of the binding, whose frames are not the
-- user's, with another hint.
_G.mm = load([=[
local x, y, hint = ...
local _, e = pcall(nacre.mm, x, y)
if hint then
  e.template.hint = hint
  e.hint = hint:gsub("\0020", "self"):gsub("\0021", "arg 1")
end
error(e, 0)
]=], "=nacre.prelude")

-- Frames of this file would be shown as the user's.
local function clean(o)
  if not o.frames then return o end
  for i = #o.frames, 1, -1 do
    if o.frames[i].file:find "error_display%.lua" then
      table.remove(o.frames, i)
    end
  end
  return o
end

-- Runs a block; gives what the shell would say.
local function block(text, opts)
  local f = load("return " .. text .. "\n", "=stdin")
  local message
  if not f then f, message = load(text, "=stdin") end
  if not f then return errors.syntax(message, text, opts) end
  errors.remember(f, text)
  local captured
  local ok = xpcall(f, function(e)
    captured = errors.capture(e, 2)
    return captured
  end)
  return not ok and errors.render(clean(captured), opts or {}) or "no error"
end

local function check(text, want, opts) same(text, block(text, opts), want) end

--
-- The form
--
-- names: locals before globals, what stands on the line before both
check("local x = a\nlocal unused = a\n  mm(x, b)  return 1", [=[
error: mm: inner sizes differ: self has 4 columns, arg 1 has 5 rows
  at stdin:3   mm(x, b)  return 1
  self   x  float32[3x4] cpu
  arg 1  b  float32[5x4] cpu
  hint: x:mm(b:t()) gives float32[3x5]]=])

check("local only = nacre.ones(3, 4)\nlocal list = {only, b}\n" ..
      "mm(table.unpack(list)) return 1", [=[
error: mm: inner sizes differ: self has 4 columns, arg 1 has 5 rows
  at stdin:3   mm(table.unpack(list)) return 1
  self   only  float32[3x4] cpu
  arg 1  b     float32[5x4] cpu
  hint: only:mm(b:t()) gives float32[3x5]]=])

check("net = {weight = nacre.ones(3, 4)}  mm(net.weight, b) return 1", [=[
error: mm: inner sizes differ: self has 4 columns, arg 1 has 5 rows
  at stdin:1   net = {weight = nacre.ones(3, 4)}  mm(net.weight, b) return 1
  self   net.weight  float32[3x4] cpu
  arg 1  b           float32[5x4] cpu
  hint: net.weight:mm(b:t()) gives float32[3x5]]=])

-- no hint that cannot be typed; a view names what it looks into
check("mm(a, b:narrow(1, 2, 3)) return 1", [=[
error: mm: inner sizes differ: self has 4 columns, arg 1 has 3 rows
  at stdin:1   mm(a, b:narrow(1, 2, 3)) return 1
  self   a  float32[3x4] cpu
  arg 1     float32[3x4] cpu  view of b]=])

-- nobody sees what self would be in a hint
check("mm(nacre.ones(3, 4), nacre.ones(5, 4), '\\0020 has') return 1", [=[
error: mm: inner sizes differ: self has 4 columns, arg 1 has 5 rows
  at stdin:1   mm(nacre.ones(3, 4), nacre.ones(5, 4), '\0020 has') return 1
  self   float32[3x4] cpu
  arg 1  float32[5x4] cpu]=])

-- there is no operand 2; words are not replaced
check("mm(a, b, '\\0020, \\0022, \\0021') return 1", [=[
error: mm: inner sizes differ: self has 4 columns, arg 1 has 5 rows
  at stdin:1   mm(a, b, '\0020, \0022, \0021') return 1
  self   a  float32[3x4] cpu
  arg 1  b  float32[5x4] cpu]=])
check("mm(a, b, 'self: \\0020, \\0021') return 1", [=[
error: mm: inner sizes differ: self has 4 columns, arg 1 has 5 rows
  at stdin:1   mm(a, b, 'self: \0020, \0021') return 1
  self   a  float32[3x4] cpu
  arg 1  b  float32[5x4] cpu
  hint: self: a, b]=])

check("mm(a, b) return 1", "\27[1;31merror:\27[0m mm: inner sizes differ: " ..
  "self has 4 columns, arg 1 has 5 rows\n  at stdin:1   mm(a, b) return 1\n" ..
  "\27[2m  self   a  float32[3x4] cpu\27[0m\n" ..
  "\27[2m  arg 1  b  float32[5x4] cpu\27[0m\n" ..
  "  \27[36mhint:\27[0m a:mm(b:t()) gives float32[3x5]", {color = true})

--
-- The way there
--
check("function g(x) mm(x, b) return 1 end", "no error")
check("function f(x) local r = g(x) return r end", "no error")
check("local r = f(a)", [=[
error: mm: inner sizes differ: self has 4 columns, arg 1 has 5 rows
  at stdin:1   function g(x) mm(x, b) return 1 end
  self   x  float32[3x4] cpu
  arg 1  b  float32[5x4] cpu
  hint: x:mm(b:t()) gives float32[3x5]
  in g, called from stdin:1   function f(x) local r = g(x) return r end
  in f, called from the prompt]=])
check("local r = f(a)", [=[
stdin:1: mm: inner sizes differ: self has 4 columns, arg 1 has 5 rows
  at stdin:1   function g(x) mm(x, b) return 1 end
  self   x  float32[3x4] cpu
  arg 1  b  float32[5x4] cpu
  hint: x:mm(b:t()) gives float32[3x5]
  in g, called from stdin:1   function f(x) local r = g(x) return r end
  in f, called from stdin:1   local r = f(a)
  in main chunk]=], {script = true})

check("function deep(n) if n == 0 then error 'deep' end " ..
      "return 1 + deep(n - 1) end", "no error")
local line = "function deep(n) if n == 0 then error 'deep' end " ..
             "return 1 + deep(n - 1) end"
check("local r = deep(30)", ([=[
error: deep
  at stdin:1   %s
  in deep, called from stdin:1   %s
  ... 29 x same frame
  in deep, called from the prompt]=]):format(line, line))

-- thousands of frames are not walked one by one
check("function over(n) return 1 + over(n + 1) end", "no error")
local text = block "local r = over(1)"
same("a stack overflow", text:gsub("%d%d%d%d+ x", "many x"), [=[
error: stack overflow
  at stdin:1   function over(n) return 1 + over(n + 1) end
  in over, called from stdin:1   function over(n) return 1 + over(n + 1) end
  ... many x same frame
  in over, called from the prompt]=])

-- at most ten frames
for i = 1, 15 do
  local body = i == 1 and "error 'end'" or ("local r = h%d() return r")
    :format(i - 1)
  block(("function h%d() %s end"):format(i, body))
end
local _, frames = block("local r = h15()"):gsub("\n  in ", "")
same("at most ten frames", frames <= 10, true)

--
-- Errors of Lua: see also tests/transcripts/error_messages.nacre
--
check("exit()", "error: no variable 'exit', :quit leaves")
check("local w = 1\nlocal v = w()", [=[
error: attempt to call a number value (local 'w')
  at stdin:2   local v = w()]=])

--
-- Error values of other kinds
--
same("a value that was not captured", errors.render("plain text", {}),
     "error: plain text")
same("with a position", errors.render("x.lua:3: plain text", {script = true}),
     "x.lua:3: plain text")
local object = select(2, xpcall(function() return a + b end, errors.capture))
same("the text alone", tostring(object):gsub("^.*error_display%.lua:%d+: ", ""),
     "add: shapes do not broadcast: dim 1 is 3 in one and 5 in the other")
same("captured once", errors.capture(object), object)
same("the object keeps its code", object.code, "ESHAPE")

--
-- Syntax: where the caret stands, which sessions do not compare
--
check("x = 1\n  y = 2 3", [=[
error: unexpected symbol near '3'
  stdin:2   y = 2 3
                  ^]=])
check("2 t", [=[
error: <eof> expected near 't'
  stdin:1   2 t
              ^]=])
check("for i = 1, 3 do\n", "error: 'end' expected to close 'for' at line 1")

check("local s = 1\nif a != b then", [=[
error: '!=' is written ~= in Lua
  stdin:2   if a != b then
                 ^]=])

-- where the caret stands; the hints themselves are in hints.txt
local carets = {
  ["y = !x"] = 4, ["a[1,2]"] = 3, ["a @ b"] = 2, ["print a"] = 6,
  ["v = a > b ? 1 : 2"] = 10, ["f(2, dtype=x, y=True)"] = 10,
  ["nacre.ones((2, 3))"] = 13, ["\u{3bb} = 1"] = 0, ["x = [1, 2]"] = 4,
  ["if a = b then"] = 5, ["while x do {"] = 11, ["a ** 2"] = 3,
}
for line, column in pairs(carets) do
  same(line, #block(line):match "\n( *)%^" - #"  stdin:1   ", column)
end

-- a file that does not compile
local path = os.tmpname() .. ".lua"
local out = assert(io.open(path, "w"))
out:write "#!/usr/bin/env nacre\nlocal x = 1\n  x = = 3\n"
out:close()
local _, message = loadfile(path)
same("a script", errors.render(message, {script = true}), ([=[
%s:3: unexpected symbol near '='
  %s:3   x = = 3
]=]):format(path, path) .. (" "):rep(#path + 7 + 4) .. "^")
os.remove(path)

S.done "errors"
