-- SPDX-License-Identifier: MIT
-- nacre.func, nacre.autograd.functional and forward_ad: values against formulas
-- and differences, identities between transforms, nesting, and errors.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, same, is, eq = C.fails, C.same, C.is, C.eq
local F, A = nacre.func, nacre.autograd
nacre.manual_seed(3)

local F64 = {dtype = "float64"}
local function R(...) return nacre.randn({...}, F64) end
local function T(v) return nacre.tensor(v, F64) end
local function close(got, want, what) same(got, want, what, 1e-9) end

-- ---- grad

local x, w = R(5), R(4, 5)
local function cube(v) return (v ^ 3):sum() end
close(F.grad(cube)(x), 3 * x ^ 2, "grad")
assert(not F.grad(cube)(x).requires_grad and not x.requires_grad)
do
  local g, y = F.grad_and_value(cube)(x)
  close(g, 3 * x ^ 2)
  close(y, cube(x))
  assert(not y.requires_grad)
end
-- trees, several arguments, what follows the value
do
  local function f(p, v)
    return (p.w:mv(v) + p.b[1]):square():sum(), {v}, "aux"
  end
  local p = {w = w, b = {R(4)}}
  local g, aux, text = F.grad(f, 1, true)(p, x)
  local r = 2 * (w:mv(x) + p.b[1])
  close(g.w, r:outer(x))
  close(g.b[1], r)
  close(aux[1], x)
  eq(text, "aux")
  local both = F.grad(f, {2, 1}, true)(p, x)
  close(both[1], w:t():mv(r))
  close(both[2].w, g.w)
  close(F.grad(f, -1, {has_aux = true})(p, x), w:t():mv(r))
end
-- nesting, and no confusion of levels
close(F.grad(F.grad(function(v) return v ^ 4 end))(T(2.0)), T(48.0))
close(F.grad(function(a)
  return a * F.grad(function(b) return a + b end)(T(1.0))
end)(T(3.0)), T(1.0), "D(x D(x + y))")
-- gradients by what is outside: an argument, a captured tensor
do
  local a = C.leaf {2.0}
  F.grad(function(v) return (a * v ^ 2):sum() end)(T {3.0}):sum():backward()
  close(a.grad, T {6.0})
  local b = C.leaf {3.0}
  F.grad(cube)(b):sum():backward()
  close(b.grad, T {18.0})
  assert(not F.grad(cube)(b:detach()).requires_grad)
end
close(nacre.no_grad(F.grad(cube), x), 3 * x ^ 2, "inside no_grad")
close(F.grad(function(v) return nacre.no_grad(cube, v) end)(x), x * 0)
close(F.grad(function(v) return w:sum() end)(x), x * 0, "independent")

fails("grad: the function returned [5], not one number",
      "y:sum() is one; nacre.func.jacrev differentiates each element",
      F.grad(nacre.exp), x)
fails("grad: argnums is 2, but the function was called with 1 argument",
      F.grad(cube, 2), x)
fails("grad: argnums is 0", F.grad(cube, 0), x)
fails("grad: argnums are positions", F.grad(cube, "x"), x)
fails("grad: argnums names no argument", F.grad(cube, {}), x)
fails("grad: differentiates float tensors, not int64", F.grad(cube),
      nacre.tensor {1, 2})
fails("grad: the function returned a number, not a tensor",
      F.grad(function() return 1 end), x)
fails("grad: the function returned 2 values", F.grad(function(v)
  return v:sum(), v
end), x)
fails("grad: argument 1 has no tensor", F.grad(cube), 3)
fails("grad: func must be a function", F.grad, x)
do -- errors of the function pass as they are, and leave nothing open
  local ok, e = pcall(F.grad(function() error({mine = true}) end), x)
  assert(not ok and e.mine)
  assert(not F.grad(cube)(x).requires_grad)
end

-- ---- products with Jacobians

local function f(v) return w:mv(v:tanh()):exp() end
local function jacobian(g, v)
  local rows, y = {}, g(v)
  for i = 1, v:numel() do
    local step = v:zeros_like()
    step[i] = 1e-6
    rows[i] = (g(v + step) - g(v - step)) / 2e-6
  end
  return nacre.stack(rows, -1)
end
local J, t, u = jacobian(f, x), R(5), R(4)
do
  local y, pull = F.vjp(f, x)
  close(y, f(x))
  same(pull(u), J:t():mv(u), "vjp", 1e-6)
  same(pull(2 * u), J:t():mv(u) * 2, "vjp again", 1e-6)
  local rows = nacre.vmap(pull)(nacre.eye(4, F64))
  same(rows, J, "vmap of a pull back", 1e-6)
  local z, d = F.jvp(f, {x}, {t})
  close(z, y)
  same(d, J:mv(t), "jvp", 1e-6)
  local _, push = F.linearize(f, x)
  close(push(t), d)
  close(push(t * 3), d * 3)
  same(nacre.vmap(push)(nacre.eye(5, F64)), J:t(), "vmap of linearize", 1e-6)
  fails("vjp: cotangent 1 is [5], the tensor is [4]", pull, x)
  fails("linearize: tangent 1 is [4], the tensor is [5]", push, u)
end
do -- several arguments and results
  local y, pull = F.vjp(function(a, b) return a * b, {sum = a + b} end, x, t)
  close(y[1], x * t)
  local da, db = pull(nacre.ones_like(x), {sum = 2 * x})
  close(da, t + 2 * x)
  close(db, x + 2 * x)
  local z, d, aux = F.jvp(function(a, b) return a * b, 7 end, {x, t}, {t, x},
                          {has_aux = true})
  close(d, t * t + x * x)
  eq(aux, 7)
end
same(F.jacrev(f)(x), J, "jacrev", 1e-6)
close(F.jacfwd(f)(x), F.jacrev(f)(x), "jacfwd")
close(F.jacrev(f, {chunk_size = 3})(x), F.jacrev(f)(x), "chunks")
do -- [out x in] of trees
  local j = F.jacrev(function(a, b) return {y = a:outer(b), z = b} end, {1, 2})(
    R(2), R(3))
  C.shape(j.y[1], 2, 3, 2)
  C.shape(j.y[2], 2, 3, 3)
  close(j.z[1], nacre.zeros({3, 2}, F64))
  close(j.z[2], nacre.eye(3, F64))
  C.shape(F.jacrev(function(a) return a:sum() end)(R(2, 3)), 2, 3)
  C.shape(F.jacfwd(function(a) return a:sum(1) end)(R(2, 3)), 3, 2, 3)
  C.shape(F.jacrev(function(a) return a end)(R(0)), 0, 0)
end
local function rosen(v)
  local a, b = v:narrow(1, 2, 4), v:narrow(1, 1, 4)
  return ((a - b * b):square() * 100 + (1 - b):square()):sum()
end
local H = F.hessian(rosen)(x)
close(H, F.jacrev(F.grad(rosen))(x), "hessian")
close(H, F.jacfwd(F.grad(rosen))(x), "forward over reverse")
same(H, jacobian(F.grad(rosen), x), "hessian", 1e-4)
close(select(2, F.jvp(F.grad(rosen), {x}, {t})), H:mv(t), "hvp")
close(select(2, F.jvp(function(v)
  return select(2, F.jvp(nacre.sin, {v}, {nacre.ones_like(v)}))
end, {x}, {nacre.ones_like(x)})), -x:sin(), "jvp of jvp")

-- ---- vmap

local a, b = R(3, 5), R(4, 5)
local dot = function(p, q) return p:dot(q) end
close(nacre.vmap(function(p)
  return nacre.vmap(function(q) return dot(p, q) end)(b)
end)(a), a:matmul(b:t()), "nested")
close(F.vmap(F.vmap(dot, {false, 1}), {1, false})(a, b), a:matmul(b:t()))
close(F.vmap(function(p) return p * 2 end, 2, 2)(a), a * 2, "in and out dims")
close(F.vmap(function(p) return p * 2 end, {in_dims = -1, out_dims = -1})(a),
      a * 2)
close(F.vmap(function(v) return v.p + v.q[1] end, {{p = 1, q = false}})(
  {p = a, q = {x}}), a + x, "trees")
do
  local y, z = F.vmap(function(p) return p, w end, {out_dims = {2, 1}})(a)
  close(y, a:t())
  close(z, w:unsqueeze(1):expand(3, 4, 5), "the same for all")
end
close(F.vmap(function(p, k) return p * k end)(a, 3), a * 3, "a number")
close(F.vmap(nacre.exp, {chunk_size = 2})(a), a:exp(), "chunks")
close(F.vmap(function(p) return p[1] + p[-1] end)(a), a[{{}, 1}] + a[{{}, -1}])
is(F.vmap(function(p) p[2] = 0 return p end)(a:clone())[{{}, 2}],
   "{0.0,0.0,0.0}")
do -- in place, through views
  local c = a:clone()
  F.vmap(function(p) p:narrow(1, 1, 2):mul_(0) return p end)(c)
  close(c, nacre.cat({a:narrow(2, 1, 2) * 0, a:narrow(2, 3, 3)}, 2))
end
-- samples with their own gradients, of what is the same for all
local function loss(p, v, y)
  return (w:mv(v) * p):square():sum() * y
end
do
  local p, ys = R(4), R(3)
  local got = F.vmap(F.grad(loss), {false, 1, 1})(p, a, ys)
  for i = 1, 3 do close(got[i], F.grad(loss)(p, a[i], ys[i]), "per sample") end
  local v, g = F.vmap(F.grad_and_value(loss), {false, 1, 1})(p, a, ys)
  close(v, got)
  close(g:select(1, 2), loss(p, a[2], ys[2]))
end
close(F.vmap(F.jacrev(f))(a)[2], F.jacrev(f)(a[2]), "vmap of jacrev")
close(F.vmap(F.hessian(rosen))(a)[3], F.hessian(rosen)(a[3]), "of hessian")
close(F.vmap(function(p, q) return select(2, F.jvp(f, {p}, {q})) end)(a, a)[1],
      select(2, F.jvp(f, {a[1]}, {a[1]})), "vmap of jvp")
close(select(2, F.jvp(F.vmap(f), {a}, {a})),
      F.vmap(function(p) return select(2, F.jvp(f, {p}, {p})) end)(a),
      "jvp of vmap")
do -- backward through vmap
  local q = C.leaf(a:totable())
  F.vmap(function(v) return v:square():sum() end)(q):sum():backward()
  close(q.grad, 2 * a)
end
-- a module of other parameters, several modules as one
do
  local net = nacre.nn.Sequential(nacre.nn.Linear(5, 3), nacre.nn.Tanh(),
                                  nacre.nn.Linear(3, 2)):to "float64"
  local params = {}
  for name, p in net:named_parameters() do params[name] = p:detach() end
  local function of(p, v) return F.functional_call(net, p, v):square():sum() end
  local g = F.grad(of)(params, x)
  net(x):square():sum():backward()
  for name, p in net:named_parameters() do close(g[name], p.grad, name) end
  local each = F.vmap(F.grad(of), {false, 1})(params, a)
  close(each["0.weight"]:sum(1), F.grad(function(p)
    return F.functional_call(net, p, a):square():sum()
  end)(params)["0.weight"], "sum of samples")
  local other = net:clone()
  nacre.no_grad(function() other[1].weight:mul_(2) end)
  local stacked = F.stack_module_state {net, other}
  local y = F.vmap(function(p, v)
    return F.functional_call(net, p, v)
  end, {1, false})(stacked, a)
  close(y[1], net(a):detach())
  close(y[2], other(a):detach())
  fails("functional_call: the module has no tensor 'weight'",
        F.functional_call, net, {weight = w}, x)
  fails("functional_call: 0.bias is a number", F.functional_call, net,
        {["0.bias"] = 1}, x)
  local before = net[1].weight
  assert(not pcall(F.functional_call, net, {["0.weight"] = w:t()}, R(7)))
  assert(rawequal(net[1].weight, before))
  fails("stack_module_state: takes a list", F.stack_module_state, {})
  fails("stack_module_state: module 2 is a Tanh", F.stack_module_state,
        {net[1], nacre.nn.Tanh()})
end
-- random numbers
local function noise(p) return p + nacre.rand(5, F64) end
fails("rand: draws random numbers", F.vmap(noise), a)
do
  local y = F.vmap(noise, {randomness = "same"})(a) - a
  close(y[1], y[2])
  y = F.vmap(noise, {randomness = "different"})(a) - a
  assert((y[1] - y[2]):abs():max():item() > 1e-3)
  y = F.vmap(function(p) return p:rand_like() end, {randomness = "same"})(a)
  close(y[1], y[3])
  y = F.vmap(function(p) return p:rand_like() end,
             {randomness = "different"})(a)
  assert((y[1] - y[3]):abs():max():item() > 1e-3)
  y = F.vmap(noise, {randomness = "same", chunk_size = 1})(a) - a
  close(y[1], y[3])
  y = F.vmap(function(p) return nacre.nn.functional.dropout(p, 0.5) end,
             {randomness = "different"})(nacre.ones({3, 64}, F64))
  assert((y[1] - y[2]):abs():max():item() > 0)
end
-- what differs from sample to sample is not read
fails("item: needs the values of a tensor that vmap maps over", F.vmap(
  function(p) return p:sum():item() end), a)
fails("needs the values", F.vmap(function(p)
  if p:sum() < p:max() then return p end
  return -p
end), a)
fails("a mask of vmap selects another number of elements", F.vmap(
  function(p) return p[p:gt(0)] end), a)
fails("nonzero: each sample of vmap would have a result of a shape of its own",
      F.vmap(nacre.nonzero), a)
fails("equal: gives one answer", F.vmap(function(p) return p:equal(x) end), a)
fails("cannot be written into a tensor that is the same for all",
      F.vmap(function(p) return x:add_(p) end), a)
fails("requires_grad_: the tensor is one sample of vmap",
      F.vmap(function(p) return p:requires_grad_() end), a)
fails("the tensor is one sample of vmap", F.vmap(function(p)
  p:sum():backward()
  return p
end), a)
fails("needs the values of a tensor that vmap maps over", F.vmap(function(p)
  return nacre.save("sample.pt", p)
end), a)
for _, name in ipairs {"npy", "safetensors", "npz", "csv"} do
  fails("needs the values of a tensor that vmap maps over", F.vmap(function(p)
    local named = name == "safetensors" or name == "npz"
    return nacre.save("sample." .. name, named and {p = p} or p)
  end), a)
end
assert(not io.open "sample.npy")
do -- kept after the end
  local kept
  F.vmap(function(p) kept = p return p end)(a)
  fails("a tensor of vmap was kept after vmap had ended", function()
    return kept + 1
  end)
  assert(tostring(kept):find "of a vmap that has ended")
  fails("was kept after vmap had ended", F.vmap(function(p)
    return p + kept
  end), a)
  F.vmap(function(p) kept = tostring(p) return p end)(a)
  eq(kept, "float64[5] cpu, a sample of vmap (level 1, 3 samples)")
end
fails("vmap: no argument is mapped over", F.vmap(dot, false), x, x)
fails("vmap: no argument is mapped over", F.vmap(function() end))
fails("vmap: argument 2 has 4 samples along dim 1, argument 1 has 3",
      F.vmap(dot), a, b)
fails("vmap: in_dims is 2 for a tensor of 1 dimension", F.vmap(nacre.exp, 2),
      x)
fails("vmap: in_dims are dimensions, or false", F.vmap(nacre.exp, "x"), x)
fails("vmap: in_dims has 2 entries for 1 argument", F.vmap(nacre.exp, {1, 1}),
      x)
fails("vmap: result 1 of the mapped function is a number",
      F.vmap(function() return 1 end), a)
fails("vmap: out_dims is false for a result that differs", F.vmap(nacre.exp, 1,
      false), a)
fails("vmap: chunk_size is 0", F.vmap, nacre.exp, {chunk_size = 0})
fails("vmap: func must be a function", nacre.vmap, 3)
do -- an error closes the level
  pcall(F.vmap(function(p) error "mine" end), a)
  eq(#A._levels(), 0)
end
-- custom functions see a sample at a time
do
  local Square = A.Function {
    forward = function(ctx, v)
      ctx:save_for_backward(v)
      return v * v:sum():item()
    end,
    backward = function(ctx, g)
      local v = ctx.saved_tensors[1]
      return g * v:sum():item() + (g * v):sum():item()
    end}
  close(F.vmap(function(v) return Square(v) end)(a), a * a:sum(2, true))
end

-- ---- autograd.grad of a batch of gradients

do
  local v = C.leaf(x:totable())
  local y = f(v)
  same(A.grad(y, v, nacre.eye(4, F64), true, false, true, false, true), J,
       "is_grads_batched", 1e-6)
  same(A.grad(y, v, {grad_outputs = nacre.eye(4, F64), retain_graph = true,
                     is_grads_batched = true}), J, "is_grads_batched", 1e-6)
  fails("grad: is_grads_batched needs grad_outputs", A.grad, y, v,
        {is_grads_batched = true})
end

-- ---- autograd.functional

local G = A.functional
do
  local y, d = G.vjp(f, x, u)
  close(y, f(x))
  same(d, J:t():mv(u), "vjp", 1e-6)
  assert(not d.requires_grad and not y.requires_grad)
  y, d = G.jvp(f, x, t)
  same(d, J:mv(t), "jvp", 1e-6)
  same(G.jacobian(f, x), J, "jacobian", 1e-6)
  same(G.jacobian(f, x, {strategy = "forward-mode", vectorize = true}), J,
       "jacobian", 1e-6)
  close(G.hessian(rosen, x), H)
  y, d = G.vhp(rosen, x, t)
  close(y, rosen(x))
  close(d, H:mv(t), "vhp")
  close(select(2, G.hvp(rosen, x, t)), H:mv(t), "hvp")
  local j = G.jacobian(function(p, q) return p * q end, {x, t})
  close(j[1], t:diag())
  close(j[2], x:diag())
  local h = G.hessian(function(p, q) return (p * q * q):sum() end, {x, t})
  close(h[1][2], (2 * t):diag())
  close(h[2][2], (2 * x):diag())
  assert(G.vjp(f, x, u, true)[1] == nil or true)
  local _, more = G.vjp(f, x, u, {create_graph = true})
  assert(more.requires_grad)
  fails("vjp: v is missing", G.vjp, f, x)
  fails("vjp: vector 1 is [5], the tensor is [4]", G.vjp, f, x, x)
  fails("hvp: the function must return a tensor of one element", G.hvp, f, x, x)
  fails("jacobian: output 1 does not depend on", G.jacobian,
        function(p, q) return p end, {x, t}, {strict = true})
  fails("vjp: inputs is a tensor or a list", G.vjp, f, 3)
end

-- ---- duals

local D = A.forward_ad
do
  local y, d = D.dual_level(function()
    local v = D.make_dual(x, t)
    local p, q = D.unpack_dual(v)
    close(p, x)
    close(q, t)
    return D.unpack_dual(f(v))
  end)
  close(y, f(x))
  same(d, J:mv(t), "dual", 1e-6)
  fails("make_dual: no dual level is open", D.make_dual, x, t)
  fails("exit_dual_level: no dual level is open", D.exit_dual_level)
  D.enter_dual_level()
  fails("enter_dual_level: a dual level is open", D.enter_dual_level)
  fails("make_dual: tangent 1 is [4]", D.make_dual, x, u)
  eq(select(2, D.unpack_dual(x)), nil)
  D.exit_dual_level()
end

print "transforms: ok"
