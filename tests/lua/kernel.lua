-- SPDX-License-Identifier: MIT
-- nacre.kernel: formulas give what the operations give, with gradients; errors
-- point into the text.

local here = arg[0]:match("^(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, equal = C.fails, C.same
nacre.manual_seed(3)
local a, b, c = nacre.randn(40), nacre.randn(40), nacre.randn(40)

local f = nacre.kernel[[ y = a*b + sin(c) ]]
equal(f(a, b, c), a * b + c:sin())
equal(f(a:double(), b:double(), 0.25), a:double() * b:double() +
                                       math.sin(0.25))
equal(f(a:view(40, 1), b, c), a:view(40, 1) * b + c:sin())
assert(tostring(f) == "kernel: y = a*b + sin(c)")

-- a header: the order of operands, defaults, several results
local g = nacre.kernel("x, y, p=2 -> z, w", [[
  d = x - y                    // a difference
  z = power(absval(d), p); w = where(both(gt(d, 0), lt(d, 1)), d,
    -d / K(0.25) + 1e-3 - .5)  -- over two lines
  d = d * 2]])
for _, p in ipairs {2, 3, 0.7} do
  local z, w = g(a, b, p)
  local d = a - b
  equal(z, d:abs() ^ p)
  equal(w, nacre.where(d:gt(0) & d:lt(1), d, -d / 0.25 + 1e-3 - 0.5))
end
equal((g(a, b)), (a - b):abs() ^ 2)
local text = g:explain(a, b)
local cpu = nacre.get_default_device() == "cpu"
assert(not cpu or text:find "sub %(line 1%)" and
       text:find "pow %(line 2%)", text)

-- without one: the names that are not read are results
local p, q = nacre.kernel("t = x*x; u = t + 1; v = -(t - x)")(a)
equal(p, a * a + 1)
equal(q, -(a * a - a))
-- a name that gets another value, words of numbers, operations by their names
equal(nacre.kernel("x = x + 1; x = x*x")(a), (a + 1) * (a + 1))
equal(nacre.kernel("y = x*sqrt(2) + sigmoid(x)")(a),
      a * nacre.tensor(2.0, {dtype = "float64"}):sqrt() + a:sigmoid())
equal(nacre.kernel("y = larger(smaller(x, 1), sgn(y))")(a, b),
      a:minimum(1):maximum(b:sign()))

-- gradients, and within a fused function
local x = nacre.randn(40):requires_grad_()
local h = nacre.kernel("y = x*exp(-x*x/2)")
h(x):sum():backward()
local got = x.grad
x.grad = nil;
(x * (-x * x / 2):exp()):sum():backward()
equal(got, x.grad)
local outer = nacre.fuse(function(t) return f(t, t, t) * 2 + 1 end)
equal(outer(a), (a * a + a:sin()) * 2 + 1)

local function wrong(text, message, hint)
  local e = fails("kernel: " .. message, nacre.kernel, text)
  assert(e.hint == hint, tostring(e.hint))
end
wrong("y = sine(a)", "line 1: 'sine' is not a known function",
      "did you mean sin?")
wrong("z = 1\ny = (a +\nsum(b))", "line 3: 'sum' is not a known function",
      "did you mean sub?")
wrong("y = a > b", "line 1: '>' is not part of a formula", "gt(a, b)")
wrong("y = a ^ 2", "line 1: '^' is not part of a formula", "power(a, b)")
wrong("y = where(a == b, 1, 2)", "line 1: '==' is not part of a formula",
      "eq(a, b)")
wrong("y = (a + b", "line 1: ')' is missing before 'the end'")
wrong("y = a b", "line 1: unexpected 'b'")
wrong("a*b", "line 1: the value of 'a' is missing", "as in y = a*b + c")
do -- words of Lua are names as well
  equal(nacre.kernel "W = end*v_a; v_end = W + 1"(a, a), a * a + 1)
end
wrong("y = a +", "line 1: a value is missing before 'the end'")
wrong("y = sin()", "line 1: a value is missing before ')'")
wrong("= 3", "line 1: a formula begins with a name, not with '='",
      "as in y = a*b + c")
wrong(" \n ", "there is no formula", "as in y = a*b + c")
fails("line 1: 'q' has no value", nacre.kernel, "x -> z", "z = x*q")
fails("no formula gives 'w'", nacre.kernel, "x -> w", "z = x")
fails("'2x' is not an operand", nacre.kernel, "2x -> w", "w = x")
fails("names operands and results", nacre.kernel, "x", "z = x")
fails("takes formulas in a string, not a number", nacre.kernel, 3)
fails("ESHAPE: ", f, a, nacre.ones(7), c)
do -- the count of operands; a default is the number that was written
  local f = nacre.kernel("x, y, p=2 -> z", "z = p*x + y")
  local one = nacre.ones(3)
  fails("kernel: y is missing: the operands are x, y, p", f, one)
  fails("kernel: x is missing", f, nil, one)
  fails("kernel: takes 3 operands, not 4", f, one, one, 1, 2)
  assert(nacre.equal(f(one, one), one * 2 + one))
  local exact = nacre.kernel("x, p=0.12345678901234567 -> y", "y = x*p")
  assert(exact(nacre.ones(1):double()):item() == 0.12345678901234567)
  local large = nacre.kernel("x, p=1e999 -> y", "y = x*p")
  assert(large(one):isinf():all():item())
end

do -- what Lua does not take, and operations in place
  local many = {}
  for i = 1, 250 do many[i] = ("y%d = a + %d"):format(i, i) end
  fails("kernel: the formulas are too many", nacre.kernel,
        table.concat(many, "\n"))
  fails("'add_' is not a known function", nacre.kernel, "y = add_(a, b)")
end

print "kernel: all passed"
