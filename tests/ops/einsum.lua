-- SPDX-License-Identifier: MIT
-- Products made of matrix products, and how operations written in Lua take
-- their arguments.
-- Run by: nacre tests/ops/einsum.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, shape = C.fails, C.is, C.shape
local t = nacre.tensor
local a, b = t{{1, 2}, {3, 4}}, t{{5, 6}, {7, 8}}

-- ---- einsum
is(nacre.einsum("ij,jk->ik", a, b), "{{19,22},{43,50}}")
is(nacre.einsum("ij,jk", {a, b}), "{{19,22},{43,50}}")
is(nacre.einsum(" ij , kj -> ik ", a, b), "{{17,23},{39,53}}")
is(nacre.einsum("ii", a), "5")
is(nacre.einsum("ii->i", a), "{1,4}")
is(nacre.einsum("ij->ji", a), "{{1,3},{2,4}}")
is(nacre.einsum("ba", a), "{{1,3},{2,4}}")
is(nacre.einsum("ij->", a), "10")
is(nacre.einsum("i,j->ij", t{1, 2}, t{3, 4}), "{{3,4},{6,8}}")
is(nacre.einsum("ij,ij->i", a, b), "{17,53}")
is(nacre.einsum("i,i->", t{1, 2}, t{3}), "9")      -- size 1 broadcasts
shape(nacre.einsum("...ij,...jk->...ik", nacre.ones(2, 1, 3, 4),
                   nacre.ones(5, 4, 2)),
      2, 5, 3, 2)
shape(nacre.einsum("ab,bc,cd,de->ae", nacre.ones(2, 30), nacre.ones(30, 3),
                   nacre.ones(3, 30), nacre.ones(30, 4)), 2, 4)
shape(nacre.einsum("ij,jk->ik", nacre.ones(0, 2), nacre.ones(2, 3)), 0, 3)
fails("the equation has 2 operands, 1 is given", nil, nacre.einsum, "ij,jk->ik",
      a)
fails("'ijk' has 3 subscripts for the 2 dimensions of operand 1", nil,
      nacre.einsum, "ijk->i", a)
fails("subscript j stands for size 3 in operand 2 and 2 before", nil,
      nacre.einsum, "ij,jk->ik", a, nacre.ones(3, 2))
fails("the output has subscript x, which no operand has", nil, nacre.einsum,
      "ij->x", a)
fails("the output has subscript i twice", nil, nacre.einsum, "ij->ii", a)
fails("'1' is no subscript", nil, nacre.einsum, "i1->i", a)
fails("equation must be a text, not a tensor", nil, nacre.einsum, a)

-- ---- the others
is(a:tensordot(b, 1), "{{19,22},{43,50}}")
is(a:tensordot(b, {{1, 2}, {2, 1}}), "69")
is(a:tensordot(b, 0):sum(), "260")
fails("no dimension 3 in a tensor of 2", nil, a.tensordot, a, b,
      {{3}, {1}})
fails("dimensions count from 1, not 0", nil, a.tensordot, a, b,
      {{0}, {1}})
is(t{1, 1}:addmv(a, t{1, 1}), "{4,8}")
is(t{0 / 0, 1}:addmv(a:double():float(), t{1.0, 1.0}, {beta = 0}),
   "{3.0,7.0}")
is(t{{1, 1}, {1, 1}}:addr(t{1, 2}, t{3, 4}, {alpha = 2}),
   "{{7,9},{13,17}}")
is(t{{{1}}}:baddbmm(a:unsqueeze(1), b:unsqueeze(1)),
   "{{{20,23},{44,51}}}")
is(t{0, 0}:addbmm(nacre.stack{a, a}, nacre.stack{b, b}),
   "{{38,44},{86,100}}")
local y = nacre.ones(2, {dtype = "int64"})
assert(rawequal(y:addmv_(a, t{1, 1}), y))
is(y, "{4,8}")
fails("beta and alpha must be integers for int64 tensors", nil, y.addmv, y, a,
      y,
      {alpha = 0.5})
fails("self does not broadcast to the product [2]", nil, a.addmv, a, a, y)
is(a:inner(b), "{{17,23},{39,53}}")
is(t{1, 2}:vdot(t{3, 4}), "11")
is(a:trace(), "5")
fails("self has 1 dimension, not 2", nil, y.trace, y)
is(t{1, 0, 0}:cross(t{0, 1, 0}), "{0,0,1}")
fails("no dimension has size 3", nil, a.cross, a, b)
is(nacre.chain_matmul(a, b, a), "{{85,126},{193,286}}")
local ok, e = pcall(nacre.chain_matmul, {a, nil, b})  -- # may be 1 or 3
assert(not ok and tostring(e):find "chain_matmul", e)
is(nacre.linalg.multi_dot{t{1, 1}, a, b, t{1, 1}}, "134")
is(nacre.cdist(t{{0.0, 0.0}}, t{{3.0, 4.0}}), "{{5.0}}")
is(nacre.cdist(t{{0.0, 0.0}}, t{{3.0, 4.0}}, 1), "{{7.0}}")
is(t{{1.0, 2.0, 3.0}, {3.0, 2.0, 1.0}}:cov(), "{{1.0,-1.0},{-1.0,1.0}}")
is(t{1, 2, 3}:cov{correction = 0, fweights = t{0, 1, 0}}, "0.0")
is(t{{1.0, 2.0, 3.0}, {3.0, 2.0, 1.0}}:corrcoef(),
   "{{1.0,-1.0},{-1.0,1.0}}")

-- ---- gradients
local function x(...)
  return nacre.randn({...}, {dtype = "float64", requires_grad = true})
end
nacre.manual_seed(3)
local function grads(f, ...) C.grads("a product", f, ...) end
grads(function(p, q, r) return nacre.einsum("bij,jk,i->bk", p, q, r) end,
      x(2, 2, 3), x(3, 2), x(2))
grads(function(p) return nacre.einsum("iij->j", p) end, x(2, 2, 3))
grads(function(p, q) return p:tensordot(q, 2) end, x(2, 2, 3), x(2, 3, 2))
grads(function(s, p, q) return s:baddbmm(p, q, {beta = 2, alpha = 0.5}) end,
      x(2, 1), x(2, 2, 3), x(2, 3, 2))
grads(function(p, q) return nacre.cdist(p, q) end, x(2, 3), x(3, 3))
grads(function(p, q) return p:cross(q) end, x(2, 3), x(2, 3))
grads(function(p) return p:cov() end, x(2, 4))

-- ---- how arguments are read
local out = nacre.empty(2, 2, {dtype = "int64"})
assert(rawequal(a:tensordot(b, 1, {out = out}), out))
is(out, "{{19,22},{43,50}}")
fails("no argument 'dim', did you mean 'dims'?", nil, a.tensordot, a, b,
      {dim = 1})
fails("takes at most 2 arguments besides self, got 3", nil, a.tensordot, a, b, 1, 1)
fails("other is missing: a tensor expected", nil, a.tensordot, a)
fails("other must be a tensor, not an integer", nil, a.tensordot, a, 1)
fails("dims is given twice", nil, a.tensordot, a, b, 1, {dims = 1})
local e = select(2, pcall(function()
  return a:tensordot(1)
end))
assert(e.op == "tensordot" and e.file:find "einsum.lua" and e.line, tostring(e))
local info = nacre._info "tensordot"
assert(info.signature == "tensordot(self, other, dims=2) -> tensor",
       info.signature)
assert(info.method and info["function"])
assert(nacre._info(nacre.tensordot).name == "tensordot")
assert(nacre._info "linalg.inv".name == "linalg.inv")
assert(nacre._info(nacre.linalg.inv).doc:find "inverse")
local listed = {}
for _, n in ipairs(nacre._names(true)) do listed[n] = true end
assert(listed["einsum"] and listed["nn.functional.conv2d"] and
       listed["linalg.svd"])
print("einsum: passed")
