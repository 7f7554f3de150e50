-- SPDX-License-Identifier: MIT
--
-- assert_test.lua - what t.eq and t.err say, and of calls that cannot be.

local diff = require "nacre.value_diff"

-- What a check says when it fails, or nil.
local function said(f, ...)
  local ok, err = pcall(f, ...)
  return not ok and tostring(err) or nil
end

test("tables that differ, by path", function(t)
  local a = {name = "x", layers = {{size = 3}, {size = 4}}, lr = 0.1}
  local b = {name = "x", layers = {{size = 3}, {size = 5.0}}, momentum = 0.9}
  t.eq(said(t.eq, a, b), "at .layers[2].size: got 4, expected 5.0\n" ..
       "at .lr: got 0.1, expected nil\nat .momentum: got nil, expected 0.9")
  t.eq(a, {name = "x", layers = {{size = 3}, {size = 4}}, lr = 0.1})
  t.eq(said(t.eq, {[true] = 1}, {}), "at [true]: got 1, expected nil")
  t.eq(said(t.eq, {["a b"] = 1, ["end"] = 2}, {["a b"] = 1, ["end"] = 3}),
       'at ["end"]: got 2, expected 3')
end)

test("many places", function(t)
  local a, b = {}, {}
  for i = 1, 30 do a[i], b[i] = i, -i end
  local says = said(t.eq, a, b)
  t.ok(says:find("at [1]: got 1, expected -1\n", 1, true), says)
  t.ok(says:find "%.%.%. 20 more places$", says)
end)

test("tensors in tables", function(t)
  local a = {w = nacre.ones(3), n = 1}
  t.eq(a, {w = nacre.ones(3), n = 1})
  local says = said(t.eq, a, {w = nacre.tensor {1.0, 1.0, 2.0}, n = 1})
  t.ok(says:find("^at %.w:\n  1 of 3 elements differ"), says)
  t.close({w = nacre.ones(3), x = 1}, {w = nacre.ones(3) + 1e-7, x = 1 + 1e-9})
  t.err("at .x: 1 and 2 differ", t.close, {x = 1}, {x = 2})
end)

test("tables in circles", function(t)
  local a, b = {1}, {1}
  a.self, b.self = a, b
  t.eq(a, b)
  b.self = {2}
  t.err("at .self[1]: got 1, expected 2", t.eq, a, b)
end)

test("numbers", function(t)
  t.err("got 1, expected 1.0", t.eq, 1, 1.0)
  t.err("at [2]: got 2.0, expected 2", t.eq, {1, 2.0}, {1, 2})
  t.err("got 0.30000000000000004, expected 0.29999999999999999", t.eq,
        0.1 + 0.2, 0.3)
  t.eq(0.0, -0.0)
end)

test("strings of several lines as a diff", function(t)
  t.eq(said(t.eq, "a\nb\nc\nd\ne", "a\nb\nx\nd\ne"),
       "line 3: - expected, + got\n  b\n- x\n+ c\n  d")
  t.eq(said(t.eq, "a\nb\n", "a\n"), "line 2: - expected, + got\n  a\n+ b\n  ")
  local long = {}
  for i = 1, 300 do long[i] = tostring(i) end
  local says = said(t.eq, table.concat(long, "\n"), "x\n" .. long[1] .. "\n")
  t.ok(says:find "%.%.%. %d+ more lines$", says)
  t.ok(#diff.lines(("a\n"):rep(400), ("b\n"):rep(400)) < 50)
end)

test("long strings around the place", function(t)
  local says = said(t.eq, ("x"):rep(500) .. "A" .. ("y"):rep(500),
                    ("x"):rep(500) .. "B" .. ("y"):rep(500))
  t.ok(#says < 200 and says:find "from byte 501 on", says)
end)

test("errors", function(t)
  local message, err = t.err("got float32[3]", error, "no: got float32[3] cpu")
  t.eq({message, err}, {"no: got float32[3] cpu", "no: got float32[3] cpu"})
  message, err = t.err("code", error, setmetatable({7}, {
    __tostring = function(e) return "code " .. e[1] end}))
  t.eq({message, err[1]}, {"code 7", 7})
  t.err("^a%d+$", {pattern = true}, error, "a12")
  t.err("does not contain '^a%d+$'", t.err, "^a%d+$", error, "a12")
  t.err("does not match 'b'", t.err, "b", {pattern = true}, error, "a12")
  t.err("no error; expected: x", t.err, "x", function() end)
  t.err("inner sizes", nacre.mm, nacre.ones(2, 3), nacre.ones(2, 3))
end)

test("calls that cannot be", function(t)
  t.err("the text of the error comes first, not function", t.err,
        function() end)
  t.err("expected a function, not 1", t.err, "x", 1)
  t.err("expected a function, not nil", t.err, "x")
  t.err("no option patern = true", t.err, "x", {patern = true}, error)
  t.err("the third argument is \"text\"", t.close, 1, 1, "text")
  t.err("got nil, expected a tensor", t.close, nil, nacre.ones(1))
  t.err("got a tensor, expected nil", t.close, nacre.ones(1), nil)
  t.err("call a check with a dot: t.eq(...)", t.eq, t, 1, 1)
end)
