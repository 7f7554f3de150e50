-- SPDX-License-Identifier: MIT
--
-- string_metatable.lua - the metatable of strings, which has fields of devices
-- and dtypes in the shell, is for programs like that of plain Lua.

local meta = getmetatable ""
assert(meta == getmetatable "x" and meta.__index == string)
assert(meta.__metatable == nil and meta.missing == nil)

meta.__index.shout = function(s) return s:upper() .. "!" end
assert(("a"):shout() == "A!" and string.shout)
string.shout = nil
assert(not pcall(function() return ("a"):shout() end))

-- another __index, and the old one again
local was = meta.__index
meta.__index = function(s, k)
  return type(k) == "number" and s:sub(k, k) or was[k]
end
assert(("abc")[2] == "b" and ("ab"):rep(2) == "abab" and meta.__index ~= string)
meta.__index = was
assert(("abc")[2] == nil and meta.__index == string and ("a"):byte() == 97)

-- other events
meta.__call = function(s, x) return s .. x end
assert(("a") "b" == "ab")
local found = {}
for k, v in pairs(meta) do found[k] = v end
assert(found.__index == string and found.__call == meta.__call and found.__add)
assert(found.__metatable == nil)
meta.__call = nil
assert(not pcall(function() return ("a") "b" end))
assert("10" + 5 == 15)

-- what the shell has there
assert(("cpu").type == "cpu" and ("float32").itemsize == 4)
assert(("x").type == nil)
