-- SPDX-License-Identifier: MIT
-- Products made of matrix products: errors, broadcasting, and how operations
-- written in Lua take their arguments. diff_torch.py compares the values.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, shape = C.fails, C.is, C.shape
local t = nacre.tensor
local a, b = t{{1, 2}, {3, 4}}, t{{5, 6}, {7, 8}}

-- ---- einsum
is(nacre.einsum("i,i->", t{1, 2}, t{3}), "9")      -- size 1 broadcasts
-- and the other operand is summed first: (1e38 - 1e38) * 10 is no inf - inf
is(nacre.einsum("i,i->", t{1e38, -1e38}, t{10.0}), "0.0")
is(nacre.einsum("i,j,ij->j", t{1e38, -1e38}, t{10.0}, t{{1.0, 2.0}}),
   "{0.0,0.0}")
shape(nacre.einsum("ab,bc,cd,de->ae", nacre.ones(2, 30), nacre.ones(30, 3),
                   nacre.ones(3, 30), nacre.ones(30, 4)), 2, 4)
shape(nacre.einsum("ij,jk->ik", nacre.ones(0, 2), nacre.ones(2, 3)), 0, 3)
fails("the equation has 2 operands, 1 is given", nacre.einsum, "ij,jk->ik", a)
fails("'ijk' has 3 subscripts for the 2 dimensions of operand 1", nacre.einsum,
      "ijk->i", a)
fails("subscript j stands for size 3 in operand 2 and 2 before", nacre.einsum,
      "ij,jk->ik", a, nacre.ones(3, 2))
fails("the output has subscript x, which no operand has", nacre.einsum, "ij->x",
      a)
fails("the output has subscript i twice", nacre.einsum, "ij->ii", a)
fails("'1' is not a subscript", nacre.einsum, "i1->i", a)
fails("equation must be a string, not a tensor", nacre.einsum, a)

-- ---- the others
fails("no dimension 3 in a tensor of 2", a.tensordot, a, b, {{3}, {1}})
fails("dimensions count from 1, not 0", a.tensordot, a, b, {{0}, {1}})
is(t{1, 1}:addmv(a, t{1, 1}), "{4,8}")
is(t{0 / 0, 1}:addmv(a:double():float(), t{1.0, 1.0}, {beta = 0}),
   "{3.0,7.0}")
local y = nacre.ones(2, {dtype = "int64"})
assert(rawequal(y:addmv_(a, t{1, 1}), y))
is(y, "{4,8}")
fails("self [2x2] does not broadcast to the product [2]", a.addmv, a, a, y)
fails("self has 1 dimension, not 2", y.trace, y)
fails("no dimension has size 3", a.cross, a, b)
is(nacre.chain_matmul(a, b, a), "{{85,126},{193,286}}")
local ok, e = pcall(nacre.chain_matmul, {a, nil, b})  -- # may be 1 or 3
assert(not ok and tostring(e):find "chain_matmul", e)
is(t{1, 2, 3}:cov{correction = 0, fweights = t{0, 1, 0}}, "0.0")

-- ---- how arguments are read
local out = nacre.empty(2, 2, {dtype = "int64"})
assert(rawequal(a:tensordot(b, 1, {out = out}), out))
is(out, "{{19,22},{43,50}}")
fails("no argument 'dim', did you mean 'dims'?", a.tensordot, a, b, {dim = 1})
fails("takes at most 2 arguments besides self, got 3", a.tensordot, a, b, 1, 1)
fails("other is missing: a tensor expected", a.tensordot, a)
fails("other must be a tensor, not an integer", a.tensordot, a, 1)
fails("dims is given twice", a.tensordot, a, b, 1, {dims = 1})
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
