-- SPDX-License-Identifier: MIT
--
-- python_truth.lua - what counts as true in Python: a list, a dictionary or a
-- text that is not empty, a number that is not 0. In Lua they all do.

local python_methods = require "nacre.python_methods"

local python_truth = {}

-- The test of a value whose kind is known, for %s; nil of others.
local function test_of(p, n)
  local v = n.path and p.value(n.path)
  if python_methods.is_text(p, n) then return '%s ~= ""', '%s == ""' end
  if math.type(v) and not p.found.bound[n.path] then
    return "%s ~= 0", "%s == 0"
  end
  if type(v) == "table" and debug.getmetatable(v) == nil and #v == 0 then
    return "next(%s) ~= nil", "next(%s) == nil"
  elseif python_methods.is_list(p, n) then return "#%s > 0", "#%s == 0" end
end

-- A node as a condition, or the opposite of it.
function python_truth.of(p, n, no)
  if n.negates then return python_truth.of(p, n.negates, not no) end
  local both = n.both
  if both and not no then
    n.text = python_truth.of(p, both[1]).text .. both.joint ..
             python_truth.of(p, both[2]).text
    return n
  end
  if n.text:find ":all%(%)$" or n.text:find ":any%(%)$" then
    n.text = n.text .. ":item()"
  end
  local yes, empty = test_of(p, n)
  if yes then return p.node((no and empty or yes):format(p.enclosed(n)), 3) end
  return no and p.node("not " .. (n.rank < 12 and p.enclosed(n) or n.text),
                       12) or n
end

return python_truth
