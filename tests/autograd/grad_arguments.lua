-- SPDX-License-Identifier: MIT
-- The arguments of nacre.autograd, by position as PyTorch has them and by
-- name; what is not taken is refused by the name of the function.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is = C.fails, C.is
local A = nacre.autograd
local grad = A.grad

local p = nacre.tensor({-1, 2}, {dtype = "float64", requires_grad = true})
local other = nacre.ones(2, {requires_grad = true})
local function cube() return p:pow(3):sum() end

-- outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs,
-- allow_unused
assert(grad(cube(), p, nil, true, true).requires_grad)
assert(not grad(cube(), p, nil, true, false).requires_grad)
is(grad(cube(), p, nacre.tensor(2.0, {dtype = "float64"})), "{6.0,24.0}")
is(grad({cube(), cube()}, p, {false, nacre.tensor(2.0)}), "{9.0,36.0}")
do
  local y = cube()
  grad(y, p, nil, true)
  grad(y, p)
  fails("grad: the graph was freed by an earlier backward",
        "backward({retain_graph=true}) keeps it, and so does "
        .. "nacre.autograd.grad(y, x, {retain_graph=true})", grad, y, p)
end
do
  local a, b = grad(p:sum(), {p, other}, nil, nil, false, true, true)
  assert(a and b == nil)
  a, b = grad(p:sum(), {p, other}, {materialize_grads = true})
  is(b, "{0.0,0.0}")
  a, b = grad(p:sum(), {p, other}, {allow_unused = true,
                                      materialize_grads = true})
  is(b, "{0.0,0.0}")
end
fails("grad: input 2 is not used", "{allow_unused=true} gives nil for it",
      grad, p:sum(), {p, other})
fails("grad: only_inputs", grad, p:sum(), p, nil, nil, nil, false)
fails("grad: only_inputs must be true or false", grad, p:sum(), p, nil, nil,
      true, 5)
fails("grad: takes at most 8 arguments, got 9", grad, p:sum(), p, nil, nil,
      true, true, true, false, "y")
fails("grad: grad_outputs must be", grad, p:sum(), p, "what")
fails("grad: the gradient of the output is [1]", grad, p:sum(), p,
      nacre.tensor {5.})
fails("grad: grad_outputs has 2 entries, expected 1", grad,
      p:sum(), p,
      {false, false})
fails("grad: element 1 of grad_outputs is nil", grad, p:sum(), p, {nil, nil, p})
fails("grad: outputs must be a tensor or a list of tensors, not an integer",
      grad, 1, 2, 3)
fails("grad: outputs must be", grad, {}, p)
fails("grad: element 2 of inputs is an integer, not a tensor", grad, p:sum(),
      {p, 3})
fails("grad: inputs is missing", grad, p:sum())
fails("grad: no argument 'retain_graphs', did you mean 'retain_graph'?", grad,
      p:sum(), p, {retain_graphs = true})
fails("grad: retain_graph must be true or false", grad, p:sum(), p,
      {retain_graph = 1})

-- backward(tensors, grad_tensors, retain_graph, create_graph, *, inputs)
A.backward({p:sum(), (p * 2):sum()})
is(p.grad, "{3.0,3.0}")
p.grad = nil
A.backward(p * 2, nacre.tensor({1, 0}, {dtype = "float64"}))
is(p.grad, "{2.0,0.0}")
p.grad = nil
A.backward((p * other):sum(), {inputs = other})
assert(p.grad == nil)
is(other.grad, "{-1.0,2.0}")
do
  local y = cube()
  A.backward(y, nil, true)
  A.backward(y)
  p.grad = nil
  A.backward(cube(), nil, nil, true)
  assert(p.grad.requires_grad)
  p.grad = nil
end
fails("backward: tensors must be", A.backward, 8, 8, "x")
fails("backward: takes at most 4 arguments, got 5", A.backward, p:sum(), nil,
      nil, false, p)

-- the others
local double = nacre.tensor({0.5}, {dtype = "float64",
                                      requires_grad = true})
assert(A.gradcheck(nacre.exp, double, 1e-6, 1e-5, 1e-3))
local wrong = A.Function {name = "wrong",
  forward = function(_, x) return x * 2 end,
  backward = function(_, g) return g * 3 end}
assert(not A.gradcheck(wrong, double, 1e-6, 1e-5, 1e-3, false))
assert(A.gradcheck(wrong, double, 1e-6, 10))
do                  -- a gradient that is lost, a wrong second derivative
  local second_order = dofile(here .. "../lib/second_order.lua")
  local cube = A.Function {
    forward = function(ctx, t)
      ctx:save_for_backward(t)
      return t ^ 3
    end,
    backward = function(ctx, g)
      local t = ctx.saved_tensors[1]
      return g * 3 * t:detach() * t
    end}
  assert(not pcall(A.gradcheck, function(t) return t:detach() * 2 end, double))
  assert(A.gradcheck(cube, double) and not pcall(second_order, cube, {double}))
end
fails("gradcheck: fn must be a function", A.gradcheck, 3, double)
fails("gradcheck: inputs must be", A.gradcheck, nacre.exp, 3)
fails("gradcheck: no input requires", A.gradcheck, nacre.exp, nacre.ones(1))
fails("gradgradcheck: input 1 is float32", A.gradgradcheck, nacre.exp, other)
fails("Function: definition must be a table", A.Function, 3)
fails("Function: name must be a string", A.Function,
      {forward = print, backward = print, name = {}})

-- what they are made of looks at what it is given, too
fails("table expected", A._backward, "x")
fails("nacre.node expected", A._saved, 8)
fails("nacre.node expected", A._saved, io.stdout, 1)
fails("table expected", A._custom, "sum", other)
fails("function expected", A._custom, "sum", {}, {}, {}, 1)
