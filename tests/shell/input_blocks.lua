-- SPDX-License-Identifier: MIT
--
-- input_blocks.lua - what is compiled of a block: its kind, locals and last
-- value; and how often, which is counted: a block of many lines must not
-- take the square of its length.

local input_block = require "nacre.input_block"
local syntax = require "nacre.syntax_errors"
local session_log = require "nacre.session_log"

local real, count, bytes = load, 0, 0
function load(text, ...)
  count, bytes = count + 1, bytes + #text
  return real(text, ...)
end

local function counted(f, ...)
  count, bytes = 0, 0
  f(...)
  return count, bytes
end

local function names(text)
  local unit, list = input_block.compile(text), {}
  for name in pairs(unit.locals or {}) do list[#list + 1] = name end
  table.sort(list)
  return unit.kind .. " " .. table.concat(list, " ")
end

local function is(got, want)
  if got ~= want then error(("%q and not %q"):format(got, want), 2) end
end

-- the kinds, and the locals that become variables of the session
is(names "-- c", "statements ")
is(names "x = {", "incomplete ")
is(names "x = = 1", "error ")
is(names "1 -- c", "expression ")
is(names "a:sum", "method ")
is(names "local a, b = 1", "statements a b")
is(names "local a <const>, b <close> = 1, nil", "statements a b")
is(names "local function f() local g end", "statements f")
is(names "do local a <const> = 1 end", "statements ")
is(names "local a = function() local b end; local c", "statements a c")
is(names "if x then local y end local z", "statements z")
local hidden = input_block.compile "local a <const> = 1 a; -- c\n;"
is(hidden.hide, true)
is(hidden.note, "a is kept as a session variable; it can be changed")

-- brackets that are too deep for the compiler are an error like another, also
-- here, where a script's handler has seen it
is(names("x = " .. ("{"):rep(5000) .. ("}"):rep(5000)), "error ")
is(names(("{"):rep(5000)), "error ")

-- a value at the end is kept, whether it is a call or not
for _, text in ipairs {"a = 1\nf(2)", "a = 1; f(2)", "a = 1\n2",
                       "local a = 2\na", "a = 1 return 2"} do
  local got
  local env = {f = function(x) return x end}
  local unit = input_block.compile(text)
  debug.setupvalue(unit.f, 1, env)
  unit.f(function(...) got = ... end)
  is(got, 2)
end

-- a block to which lines are added is compiled a few times for each
local function rows(n) return ("{1, 2},\n"):rep(n) end
for _, head in ipairs {"x = {\n", "f(\n", "function f()\nx = {\n",
                       "if a then\nx = {\n", "x = a[{\n"} do
  local some = counted(input_block.compile, head .. rows(10))
  local more = counted(input_block.compile, head .. rows(1000))
  is(more, some)
  assert(some <= 4, some)
end

-- and what is compiled of an error in it is bounded
for _, text in ipairs {rows(30000), "a = 1\n" .. rows(3000) .. "= 1",
                       ("x = 1\n"):rep(30000) .. "= 1",
                       ("x = f\n"):rep(20000) .. "f(1)",
                       "x = " .. ("a + "):rep(30000) .. "= 1"} do
  local _, size = counted(input_block.compile, text)
  assert(size < 12 * #text + (1 << 22), size / #text)
end

-- the token of an error is found by halving
local function plain(text) return text end
for _, n in ipairs {1, 10, 1000, 3000} do
  for _, last in ipairs {"= 1", "1", "} x = = 2", "do", "'x"} do
    local text = "x = {" .. ("1, "):rep(n) .. last
    local unit = input_block.compile(text)
    if unit.message then
      local some = counted(syntax.render, unit.message, text, {}, plain)
      assert(some <= 64, some)
    end
  end
end
local text = "x = {" .. ("1, "):rep(1000) .. "2 3}"
local place = syntax.place(input_block.compile(text).message, text)
is(text:sub(place.from - 2, place.to), "2 3")

-- a list of inputs in parts is a list
local log = session_log.new()
for i = 1, 2000 do log[#log + 1] = {text = "word" .. i .. " = 1"} end
is(#log, 2000)
is(log[1].text, "word1 = 1")
is(log[513].text, "word513 = 1")
is(log[2000].text, "word2000 = 1")
is(log[2001], nil)
is(log[0], nil)
local n = 0
for i, entry in ipairs(log) do
  n = i
  assert(entry == log[i])
end
is(n, 2000)
assert(not pcall(function() log[2002] = {} end))
is(session_log.words(log).word7, true)
is(session_log.words(log).word2001, nil)
