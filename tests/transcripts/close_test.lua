-- SPDX-License-Identifier: MIT
--
-- close_test.lua - t.close says how many elements are off, by how much, where.

local close = require "nacre.closeness"

test("close enough", {dtype = {"float16", "float32", "float64"}},
  function(t, p)
    local a = nacre.linspace(-2, 2, 24, {dtype = p.dtype}):view(4, 6)
    t.close(a, a:clone())
    t.eq(close.compare(a, a:add(1)) == nil, false)
  end)

test("special values", function(t)
  local a = nacre.tensor {1 / 0, -1 / 0, 0 / 0, 0}
  t.close(a, a:clone())
  t.ok(close.compare(a, nacre.zeros(4)):find "^3 of 4 elements differ")
end)

test("where the worst one is", function(t)
  local a = nacre.ones(4, 5)
  local b = a:clone()
  b[{2, 3}] = 1.5
  b[{4, 5}] = 1.25
  local says = close.compare(a, b)
  t.ok(says:find "^2 of 20 elements differ %(10%%%)", says)
  t.ok(says:find("greatest abs 0.5 at [2,3]: 1 / 1.5", 1, true), says)
  t.ok(says:find("|  @  |\n  |     |\n  |    @|", 1, true), says)
end)

test("what cannot be close", function(t)
  t.eq(close.compare(nacre.ones(2), nacre.ones(3)),
       "shapes differ: 2 and 3")
  t.eq(close.compare(nacre.ones(2), nacre.ones(2):double()),
       "dtypes differ: float32 and float64")
  t.eq(close.compare("1", 1),
       "got a string, expected a number: these cannot be close")
end)

test("nan and inf against numbers", function(t)
  local function differ(a, b, text)
    local says = close.compare(nacre.tensor(a), nacre.tensor(b))
    t.ok(says and says:find(text, 1, true), says)
  end
  differ({1.0, 1.0}, {1.0, 0 / 0}, "1 with nan, the first at [2]: 1 / nan")
  differ({0 / 0, 1.0, 0 / 0, 4.0}, {2.0, 1.0, 3.0, 5.0},
         "2 with nan, the first at [1]: nan / 2\n" ..
         "  greatest abs 1 at [4]: 4 / 5")
  differ({1 / 0, 1.0}, {-1 / 0, 1.0}, "greatest rel inf at [1]: inf / -inf")
  differ({0 / 0}, {0.0}, "1 of 1 elements differ")
end)

test("numbers and tables beside a tensor", function(t)
  local a = nacre.tensor {1, 2, 3}:double()
  t.close(a, {1, 2, 3})
  t.close({1, 2, 3}, a)
  t.close(1, nacre.ones(2))
  t.ok(close.compare(a, {1, 2, 4}):find "at %[3%]: 3 / 4")
  t.eq(close.compare(a, {1, 2}), "shapes differ: 3 and 2")
  t.ok(close.compare(a, {1, {2}}):find "^the table is not a tensor: ")
end)

test("tensors that are equal", function(t)
  local a = nacre.tensor {1.5, 2.5}
  t.eq(a, a:clone())
  t.err("at [2]: 2.5 / 3", t.eq, a, nacre.tensor {1.5, 3.0})
  t.err("dtypes differ", t.eq, a, a:double())
end)

test("a tensor as a truth", function(t)
  t.ok(nacre.tensor {true})
  t.ok(nacre.ones(1, 1))
  t.err("not true", t.ok, nacre.tensor {false})
  t.err("not true", t.ok, nacre.zeros(1))
  t.err("use :all()", t.ok, nacre.ones(2):gt(0))
end)

test("nan equals nan, unless that is refused", function(t)
  local a, strict = nacre.tensor {0 / 0, 1}, {equal_nan = false}
  t.eq(a, a:clone())
  t.close(a, a:clone())
  t.eq(0 / 0, -(0 / 0))
  t.eq({x = {0 / 0}}, {x = {0 / 0}})
  t.close(0 / 0, 0 / 0)
  t.close({0 / 0}, {0 / 0})
  t.err("1 of 2 elements", t.close, a, a:clone(), strict)
  t.err("nan and nan differ", t.close, 0 / 0, 0 / 0, strict)
end)

test("integers are exact", function(t)
  local a = nacre.tensor {2^53 // 1 | 0, 7}
  t.eq(a, {9007199254740992, 7})
  t.err("1 of 2 elements", t.eq, a, {9007199254740993, 7})
  t.err("1 of 2 elements", t.close, a, {9007199254740993, 7})
  t.eq(nacre.tensor {true, false}, nacre.tensor {true, false})
  t.err("1 of 2 elements", t.eq, nacre.tensor {true, true},
        nacre.tensor {true, false})
end)

test("a table does not lose its digits beside a tensor", function(t)
  t.eq(nacre.tensor {1, 2, 3}, {1, 2, 3})
  t.eq(nacre.tensor {0.1, 2.0}, {0.1, 2})
  t.err("a float cannot be an element of a tensor of int64", t.eq,
        nacre.tensor {1, 2}, {1.5, 2})
  t.err("of a tensor of int64", t.close, nacre.tensor {1, 2}, 1.5)
end)

test("nothing is a part of nothing", function(t)
  local says = close.compare(nacre.tensor {0.04, 1.0}, nacre.zeros(2))
  t.ok(not says:find "rel inf", says)
  says = close.compare(nacre.tensor {0.04}, {0})
  t.ok(not says:find "greatest rel", says)
  t.ok(not close.compare(1, 0):find "rel inf")
end)

test("options that are none", function(t)
  t.err("not rtoll = 1", t.close, 1, 1, {rtoll = 1})
  t.err('not rtol = "x"', t.close, 1, 1, {rtol = "x"})
end)

test("tolerances of its own", function(t)
  t.close(1, 1.01, {rtol = 0.1})
  t.close(nacre.ones(3), nacre.ones(3):mul(1.01), {atol = 0.1})
  t.ok(close.compare(1, 1.01))
  t.ok(close.compare(1, 1 + 1e-12, {rtol = 0, atol = 0}):find "4504 ulp")
end)

test("integers have no ulps", function(t)
  local function says(a, b) return close.compare(a, b) end
  local a, b = nacre.tensor {3, 3}, nacre.tensor {3, 4}
  t.ok(says(a, b):find("abs 1 at [2]: 3 / 4\n", 1, true), says(a, b))
  t.ok(not says(1, 2):find "ulp", says(1, 2))
  t.ok(says(1, 2.0):find " ulp\n", says(1, 2.0))
  t.ok(not close.worst(a, b, {}):find "ulp")
end)

test("floats with the digits that tell them apart", function(t)
  local text = close.compare(nacre.ones(2), 2.01)
  t.ok(text:find("at [1]: 1 / 2.01  ", 1, true), text)
end)
