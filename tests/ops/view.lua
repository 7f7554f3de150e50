-- SPDX-License-Identifier: MIT
-- Views, and tensors joined: sharing, sizes at the edges, every message.
-- opinfo_torch.py compares the values with PyTorch.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local dtypes, odd, fails, range = C.dtypes, C.odd, C.fails, C.range
local text, shape, is, shares = C.text, C.shape, C.is, C.shares
local minint, maxint = math.mininteger, math.maxinteger

-- y is a view of x: what is written to it, x has too.
local function view(x, y)
  assert(shares(x, y))
  if y:numel() > 0 then
    local keep = x:clone()
    y:fill_(-7)
    assert(not x:equal(keep))
    x:copy_(keep)
  end
  return y
end

local a = range(3, 4)
local scalar = nacre.tensor(5)
local empty = nacre.zeros(0, 3)
local eight = range(1, 2, 1, 2, 1, 2, 1, 2)

do -- view: sizes
  shape(view(a, a:view(4, 3)), 4, 3)
  shape(a:view {2, 6}, 2, 6)
  shape(a:view {shape = {12}}, 12)
  shape(a:view(2, -1), 2, 6)
  shape(a:view(-1), 12)
  shape(a:view(2, 1, 3, 1, 2), 2, 1, 3, 1, 2)
  shape(a:view(1, 1, 1, 1, 1, 1, 1, -1), 1, 1, 1, 1, 1, 1, 1, 12)
  is(a:view(2, 6), "{{0,1,2,3,4,5},{6,7,8,9,10,11}}")
  shape(scalar:view(1, 1), 1, 1)
  shape(scalar:view(-1), 1)
  shape(nacre.ones(1, 1):view {}, nil)
  shape(empty:view(3, 0), 3, 0)
  shape(empty:view(-1), 0)
  shape(empty:view(5, 0, 7), 5, 0, 7)
  shape(empty:view(2, -1), 2, 0)
  shape(eight:view(-1), 16)
end

do -- view: what does not fit
  local e = fails("view: shape [2x5] has 10 elements, the tensor has 12",
                  "self:view(2,6), or self:view(2,-1) to have it worked out",
                  a.view, a, 2, 5)
  assert(e.op == "view" and e.args[1].role == "self" and
         rawequal(e.args[1].tensor, a))
  fails("view: shape [5x2] has 10 elements, the tensor has 12",
        "self:view(6,2), or self:view(-1,2) to have it worked out",
        a.view, a, 5, 2)
  e = fails("view: shape [5x7] has 35 elements, the tensor has 12", a.view, a,
            5, 7)
  assert(e.hint == nil)
  fails("view: cannot infer -1 in [5x-1]: 12 elements are not divisible by 5",
        a.view, a, 5, -1)
  fails("view: cannot infer -1 in [0x-1]: 12 elements are not divisible by 0",
        a.view, a, 0, -1)
  fails("view: sizes 1 and 3 are both -1, only one can be inferred", a.view, a,
        -1,
        2, -1)
  fails("view: size -2 of dim 2 is negative", a.view, a, 6, -2)
  fails("view: 9 dimensions, at most 8 are supported", a.view, a, 1, 1, 1, 1,
        1, 1, 1, 1,
        12)
  fails("view: cannot infer -1 in [0x-1]: there are no elements",
        empty.view, empty, 0, -1)
  fails("view: shape [4611686018427387904x4] has 1.84e+19 elements, the " ..
        "tensor has 12",
        a.view, a, 1 << 62, 4)
  fails("view: shape [4611686018427387904x4x0] is too large", empty.view,
        empty, 1 << 62, 4, 0)
  fails("view: [4x3] with strides 1,4 cannot be viewed as [12] without a copy",
        "self:reshape(12)", function() a:t():view(12) end)
  fails("view: shape [2x3] has 6 elements, the tensor has 1", scalar.view,
        scalar, 2, 3)
end

do -- view: strides that allow it, or not
  local b = range(4, 6)
  shape(view(b, b:narrow(1, 2, 2):view(12)), 12)
  shape(view(b, b:narrow(2, 1, 4):view(4, 2, 2)), 4, 2, 2)
  fails("cannot be viewed as [16]", "self:reshape(16)", function()
    b:narrow(2, 1, 4):view(16)
  end)
  shape(view(b, b:t():view(2, 3, 4)), 2, 3, 4)
  is(b:t():view(2, 3, 4)[2], "{{3,9,15,21},{4,10,16,22},{5,11,17,23}}")
  shape(b:slice(2, 1, -1, 2):view(4, 3, 1), 4, 3, 1)
  shape(b:slice(2, 1, -1, 2):view(12), 12)   -- every second of all
  local e = nacre.tensor {1, 2}:expand(3, 2)
  fails("cannot be viewed as [6]", e.view, e, 6)
  shape(e:view(3, 1, 2), 3, 1, 2)
  shape(nacre.ones(1, 1):expand(3, 4):view(12), 12)
end

do -- reshape
  assert(shares(a, a:reshape(12)))
  local r = a:t():reshape(12)
  assert(not shares(a, r))
  is(r, "{0,4,8,1,5,9,2,6,10,3,7,11}")
  is(a:t():reshape(2, -1), "{{0,4,8,1,5,9},{2,6,10,3,7,11}}")
  fails("reshape: shape [2x5] has 10 elements, the tensor has 12",
        "self:reshape(2,6), or self:reshape(2,-1) to have it worked out",
        a.reshape, a, 2, 5)
  shape(a:reshape_as(nacre.zeros(6, 2)), 6, 2)
  shape(view(a, a:view_as(nacre.zeros(6, 2))), 6, 2)
  local e = fails("view_as: shape [5x2] has 10 elements, the tensor has 12",
                  a.view_as,
                  a, nacre.zeros(5, 2))
  assert(e.args[2].role == "arg 1" and text(e.args[2].shape) == "{5,2}")
  fails("reshape_as: shape [5] has 5 elements", a.reshape_as, a, nacre.zeros(5))
  shape(nacre.reshape(a, {4, 3}), 4, 3)
end

do -- flatten, unflatten
  local b = range(2, 3, 4)
  shape(view(b, b:flatten(2)), 2, 12)
  shape(b:flatten {end_dim = 2}, 6, 4)
  shape(scalar:flatten(), 1)
  shape(empty:flatten(), 0)
  fails("flatten: start_dim 3 comes after end_dim 1", b.flatten, b, 3, 1)
  fails("flatten: dim 4 is outside a tensor of 3 dimensions", b.flatten, b, 1,
        4)
  fails("flatten: dim 0: dimensions are counted from 1",
        "1 is the first dimension, -1 the last", b.flatten, b, 0)
  shape(view(b, b:unflatten(3, {2, 2})), 2, 3, 2, 2)
  shape(b:unflatten(-1, {-1, 2}), 2, 3, 2, 2)
  shape(b:unflatten(2, {3, 1}), 2, 3, 1, 4)
  is(nacre.arange(4):unflatten(1, {2, 2}), "{{0,1},{2,3}}")
  is(range(2, 6):t():unflatten(1, {3, 2}),
     "{{{0,6},{1,7}},{{2,8},{3,9}},{{4,10},{5,11}}}")
  shape(empty:unflatten(1, {0, 2}), 0, 2, 3)
  fails("unflatten: shape [2x3] has 6 elements, dim 3 has 4", b.unflatten, b,
        3, {2, 3})
  fails("unflatten: no sizes are given", b.unflatten, b, 3, {})
  fails("unflatten: the tensor has no dimensions to split", scalar.unflatten,
        scalar, 1, {1})
  fails("unflatten: 9 dimensions, at most 8 are supported", eight.unflatten,
        eight, 2,
        {2, 1})
end

do -- transpose, t
  shape(view(a, a:transpose(1, 2)), 4, 3)
  shape(scalar:transpose(1, -1))
  shape(eight:transpose(1, 8), 2, 2, 1, 2, 1, 2, 1, 1)
  fails("transpose: dim 3 is outside a tensor of 2 dimensions", a.transpose, a,
        1, 3)
  fails("transpose: dim 0: dimensions are counted from 1", a.transpose, a, 0, 1)
  shape(view(a, a:t()), 4, 3)
  shape(nacre.ones(3):t(), 3)
  shape(scalar:t())
  shape(a.T, 4, 3)
  fails("t: the tensor has 8 dimensions, a matrix has 2",
        "self:transpose(-2,-1) swaps the last two", eight.t, eight)
end

do -- permute, movedim
  local b = range(2, 3, 4)
  shape(view(b, b:permute(3, 1, 2)), 4, 2, 3)
  shape(scalar:permute {})
  shape(eight:permute(8, 7, 6, 5, 4, 3, 2, 1), 2, 1, 2, 1, 2, 1, 2, 1)
  fails("permute: 2 dimensions are given, the tensor has 3", b.permute, b, 1, 2)
  fails("permute: 1 dimension is given, the tensor has 3", b.permute, b, 1)
  fails("permute: dim 2 is given twice", b.permute, b, 2, 1, -2)
  fails("permute: dim 4 is outside a tensor of 3 dimensions", b.permute, b, 1,
        2, 4)
  shape(view(b, b:movedim(1, -1)), 3, 4, 2)
  shape(b:movedim({1, 2}, {3, 1}), 3, 4, 2)
  shape(b:movedim({3, 1}, {1, 2}), 4, 2, 3)
  shape(scalar:movedim(1, 1))
  fails("movedim: source has 2 dimensions, destination 1", b.movedim, b, {1, 2},
        1)
  fails("movedim: dim 1 is given twice", b.movedim, b, {1, -3}, {1, 2})
  fails("movedim: dim 2 is given twice", b.movedim, b, {1, 3}, {2, 2})
  fails("movedim: 4 dimensions to move, the tensor has 3", b.movedim, b,
        {1, 2, 3, 1}, {1, 2, 3, 1})
end

do -- narrow
  is(view(a, a:narrow(2, 2, 2)), "{{1,2},{5,6},{9,10}}")
  shape(a:narrow(1, 2, 0), 0, 4)
  shape(a:narrow(1, 4, 0), 0, 4)
  shape(empty:narrow(1, 1, 0), 0, 3)
  fails("narrow: 3 elements from 2 do not lie inside dim 1 of size 3", a.narrow,
        a, 1, 2, 3)
  fails("narrow: 9223372036854775807 elements from 3 do not lie inside dim 1",
        a.narrow, a, 1, 3, maxint)
  fails("narrow: index 5 is outside dim 2 of size 4 (indices run from 1 to 4, "
        .. "or -4 to -1)", a.narrow, a, 2, 5, 1)
  fails("narrow: index 5 is outside dim 1 of size 3", a.narrow, a, 1, 5, 0)
  fails("narrow: index 0: indices start at 1",
        "self[1] is the first row, self[-1] the last", a.narrow, a, 1, 0, 1)
  fails("narrow: index 0: indices start at 1",
        "1 is the first of dim 2, -1 the last", a.narrow, a, 2, 0, 1)
  fails("narrow: length -1 is negative", a.narrow, a, 1, 1, -1)
  fails("narrow: the tensor has no dimensions", scalar.narrow, scalar, 1, 1, 0)
  fails("narrow: dim 3 is outside a tensor of 2 dimensions", a.narrow, a, 3, 1,
        1)
end

do -- select
  is(view(a, a:select(1, 2)), "{4,5,6,7}")
  shape(nacre.ones(3):select(1, 1))
  fails("select: index 4 is outside dim 1 of size 3 (indices run from 1 to 3, "
        .. "or -3 to -1)", a.select, a, 1, 4)
  fails("select: index -5 is outside dim 2", a.select, a, 2, -5)
  fails("select: index 0: indices start at 1", a.select, a, 1, 0)
  fails("select: index 1 is outside dim 1, which is empty", empty.select, empty,
        1, 1)
  fails("select: the tensor has no dimensions", scalar.select, scalar, 1, 1)
  fails("select: index must be an index, not 1.5", a.select, a, 1, 1.5)
end

do -- slice
  local v = nacre.range(9)
  is(view(v, v:slice(1, 2, 4)), "{2,3,4}")
  is(v:slice(1, 2, -2), "{2,3,4,5,6,7,8}")
  is(v:slice(1, -3), "{7,8,9}")
  is(v:slice(1), "{1,2,3,4,5,6,7,8,9}")
  is(v:slice(1, nil, 2), "{1,2}")
  is(v:slice {dim = 1, step = 4}, "{1,5,9}")
  is(v:slice(1, 2, 9, 3), "{2,5,8}")
  is(v:slice(1, 3, 2), "{}")
  is(v:slice(1, 1, 0), "{}")
  is(v:slice(1, 5, 99), "{5,6,7,8,9}")
  is(v:slice(1, -99, 2), "{1,2}")
  is(v:slice(1, 10, 12), "{}")
  is(v:slice(1, minint, maxint, maxint), "{1}")
  is(v:slice(1, maxint, minint), "{}")
  is(v:slice(1, 1, minint), "{}")
  is(a:slice(2, 1, 4, 2):t():slice(1, 2), "{{2,6,10}}")
  shape(empty:slice(1, 1, 5), 0, 3)
  fails("slice: index 0: indices start at 1", v.slice, v, 1, 0, 2)
  fails("slice: step 0: steps must be positive", v.slice, v, 1, 1, 2, 0)
  fails("slice: step -1: steps must be positive", v.slice, v, 1, 1, 2, -1)
  fails("slice: the tensor has no dimensions", scalar.slice, scalar, 1)
end

do -- squeeze, unsqueeze
  local b = range(1, 2, 1, 3)
  shape(view(b, b:squeeze()), 2, 3)
  shape(b:squeeze {1, -2}, 2, 3)
  shape(b:squeeze {}, 1, 2, 1, 3)
  shape(scalar:squeeze())
  shape(scalar:squeeze(-1))
  shape(nacre.ones(1, 1):squeeze())
  shape(nacre.ones(1, 0):squeeze(), 0)
  fails("squeeze: dim 5 is outside a tensor of 4 dimensions", b.squeeze, b, 5)
  fails("squeeze: dim 1 is given twice", b.squeeze, b, {1, -4})
  shape(view(a, a:unsqueeze(1)), 1, 3, 4)
  shape(scalar:unsqueeze(1), 1)
  shape(scalar:unsqueeze(-1), 1)
  fails("unsqueeze: dim 4 is outside: a new dimension of this tensor is 1 to "
        .. "3, or -3 to -1", a.unsqueeze, a, 4)
  fails("unsqueeze: dim 0: dimensions are counted from 1", a.unsqueeze, a, 0)
  fails("unsqueeze: 9 dimensions, at most 8 are supported", eight.unsqueeze,
        eight, 1)
end

do -- expand
  local b = nacre.tensor {{1}, {2}}
  is(b:expand(2, 3), "{{1,1,1},{2,2,2}}")
  is(b:expand {2, -1, 3} and b:expand(2, -1, 3),
     "{{{1,1,1},{2,2,2}},{{1,1,1},{2,2,2}}}")
  shape(b:expand(-1, -1), 2, 1)
  shape(b:expand(2, 0), 2, 0)
  shape(b:broadcast_to(4, 2, 3), 4, 2, 3)
  shape(b:expand_as(nacre.ones(2, 5)), 2, 5)
  shape(scalar:expand(2, 2), 2, 2)
  shape(scalar:expand {})
  shape(nacre.ones(0, 1):expand(0, 4), 0, 4)
  assert(shares(b, b:expand(2, 3)))
  assert(text(b:expand(5, 2, 3):stride()) == "{0,1,0}")
  local e = fails("expand: dim 1 has size 2 and cannot be expanded to 4",
                  b.expand,
                  b, 4, 3)
  assert(e.rule == "only dimensions of size 1 expand; shapes are aligned at " ..
                   "the last")
  fails("expand: dim 1 has size 2 and cannot be expanded to 0", b.expand, b, 0,
        3)
  fails("expand: 1 size is given, the tensor has 2 dimensions", b.expand, b, 2)
  fails("expand: size -1 of dim 1: a new dimension has no size to keep",
        b.expand, b, -1, 2, 1)
  fails("expand: size -2 of dim 2 is negative", b.expand, b, 2, -2)
  fails("expand: 9 dimensions, at most 8 are supported", b.expand, b, 1, 1, 1,
        1, 1, 1, 1,
        2, 1)
  fails("has more elements than a tensor can have", b.expand, b, 2, 1 << 62)
  fails("has more elements than a tensor can have", scalar.expand, scalar,
        maxint, 0)
  fails("broadcast_to: dim 1 has size 2", b.broadcast_to, b, 3, 1)
  e = fails("expand_as: dim 1 has size 2", b.expand_as, b, nacre.ones(3, 1))
  assert(#e.args == 2)
  fails("several elements of the tensor share memory",
        "self:clone() first", function() b:expand(2, 3):fill_(1) end)
  local huge = scalar:expand(1 << 30, 1 << 28)   -- costs nothing
  assert(huge[{-1, -1}] == 5 and huge:numel() == 1 << 58)
  shape(huge:view(1 << 28, 1 << 30), 1 << 28, 1 << 30)
  shape(huge:transpose(1, 2):reshape(-1), 1 << 58)
end

do -- diagonal
  is(view(a, a:diagonal()), "{0,5,10}")
  is(a:diagonal {offset = -1, dim1 = -2, dim2 = -1}, "{4,9}")
  local b = range(2, 3, 2)
  is(view(b, b:diagonal(0, 1, 3)), "{{0,7},{2,9},{4,11}}")
  for _, v in ipairs(odd) do
    local size = a:diagonal(v):numel()
    local want = v >= 0 and math.min(3, 4 - math.min(v, 4))
                 or math.min(3 - math.min(-v & maxint, 3), 4)
    if v == minint then want = 0 end
    assert(size == want, v)
  end
  fails("diagonal: dim1 and dim2 are both 2", a.diagonal, a, 0, 2, -1)
  fails("diagonal: dim 3 is outside a tensor of 2 dimensions", a.diagonal, a, 0,
        1, 3)
  fails("diagonal: a diagonal needs two dimensions, the tensor has 1",
        a[1].diagonal, a[1])
  fails("diagonal: a diagonal needs two dimensions, the tensor has 0",
        scalar.diagonal, scalar)
end

do -- unbind, chunk, split
  local function sizes(list, dim)
    local s = {}
    for i, t in ipairs(list) do s[i] = t:size(dim or 1) end
    return text(s)
  end
  local v = nacre.range(7)
  local rows = a:unbind()
  assert(#rows == 3)
  is(view(a, rows[2]), "{4,5,6,7}")
  assert(#empty:unbind() == 0 and #empty:unbind(2) == 3)
  fails("unbind: the tensor has no dimensions", scalar.unbind, scalar)
  fails("unbind: 1073741824 pieces are too many for a list", function()
    scalar:expand(1 << 30):unbind()
  end)

  assert(sizes(v:chunk(5)) == "{2,2,2,1}")        -- fewer than asked
  assert(sizes(v:chunk(maxint)) == "{1,1,1,1,1,1,1}")
  assert(sizes(empty:chunk(3)) == "{0,0,0}")
  assert(sizes(a:chunk(2, -1), 2) == "{2,2}")
  is(view(v, v:chunk(3)[2]), "{4,5,6}")
  fails("chunk: chunks must be at least 1, not 0", v.chunk, v, 0)
  fails("chunk: chunks must be at least 1, not -3", v.chunk, v, -3)
  fails("chunk: the tensor has no dimensions", scalar.chunk, scalar, 1)
  fails("pieces are too many for a list", empty.chunk, empty, maxint)

  assert(sizes(v:split(maxint)) == "{7}")
  assert(sizes(v:split {2, 0, 5}) == "{2,0,5}")
  assert(sizes(v:split {7}) == "{7}")
  assert(sizes(a:split({1, 3}, 2), 2) == "{1,3}")
  assert(sizes(a:split {split_size = 3, dim = 2}, 2) == "{3,1}")
  assert(sizes(empty:split(2)) == "{0}")
  assert(sizes(empty:split(0)) == "{0}")
  assert(sizes(empty:split {}) == "{}")
  is(view(v, v:split(3)[3]), "{7}")
  fails("split: split_size must be at least 1, not 0", v.split, v, 0)
  fails("split: split_size must be at least 1, not -1", v.split, v, -1)
  fails("split: the sizes add up to 4, dim 1 has 7", v.split, v, {2, 2})
  fails("split: the sizes add up to 2, dim 1 has 7", v.split, v, {2})
  fails("split: piece 2 has size -1", v.split, v, {8, -1})
  fails("split: the sizes add up to 9223372036854775807, dim 1 has 7", v.split,
        v, {maxint, maxint, 9})
  fails("split: the tensor has no dimensions", scalar.split, scalar, 1)
end

do -- cat
  local b = nacre.tensor {{1, 2}, {3, 4}}
  is(b[1] .. b[2], "{1,2,3,4}")
  assert(not shares(b, nacre.cat {b}))
  shape(nacre.cat {empty, nacre.zeros(2, 3)}, 2, 3)
  shape(nacre.cat {empty, empty}, 0, 3)
  is(nacre.cat {nacre.zeros(0), b, nacre.zeros(0)}, "{{1.0,2.0},{3.0,4.0}}")
  shape(nacre.cat {nacre.zeros(0), nacre.zeros(0)}, 0)
  shape(nacre.cat {nacre.zeros(0), eight}, 1, 2, 1, 2, 1, 2, 1, 2)
  is(nacre.cat {nacre.ones(2):expand(3, 2), nacre.zeros(1, 2)},
     "{{1.0,1.0},{1.0,1.0},{1.0,1.0},{0.0,0.0}}")
  local e = fails("cat: tensor 2 differs from tensor 1 in dim 2: 3 and 4 "
                  .. "(only dim 1 may differ)", nacre.cat,
                  {a, nacre.ones(5, 3)}, 1)
  assert(e.args[1].role == "[1]" and e.args[2].role == "[2]" and
         text(e.args[2].shape) == "{5,3}" and rawequal(e.args[1].tensor, a))
  fails("cat: tensor 3 differs from tensor 2 in dim 1", nacre.cat,
        {nacre.zeros(0), a, b}, 2)
  fails("cat: tensor 2 has 1 dimension, tensor 1 has 2", nacre.cat, {a, a[1]})
  e = fails("cat: tensor 2 has no dimensions",
            "nacre.stack joins such tensors", nacre.cat, {a, scalar})
  assert(#e.args == 1 and e.args[1].role == "[2]")
  fails("cat: no tensors are given", nacre.cat, {})
  fails("cat: dim 3 is outside a tensor of 2 dimensions", nacre.cat, {a}, 3)
  fails("cat: dim 0", nacre.cat, {a}, 0)
  local huge = nacre.zeros(1):expand(1 << 58)
  local many = {}
  for i = 1, 40 do many[i] = huge end
  fails("needs", nacre.cat, many)
end

do -- stack
  local b = nacre.tensor {1, 2, 3}
  is(nacre.stack {scalar, scalar}, "{5,5}")
  is(nacre.stack {b, b:to "float64"}, "{{1.0,2.0,3.0},{1.0,2.0,3.0}}")
  shape(nacre.stack {empty, empty}, 2, 0, 3)
  local e = fails("stack: tensor 3 is [3x3], tensor 1 is [3x4]", nacre.stack,
                  {a, a, nacre.ones(3, 3)})
  assert(e.args[2].role == "[3]")
  fails("stack: tensor 2 is [], tensor 1 is [3]", nacre.stack, {b, scalar})
  fails("stack: dim 3 is outside", nacre.stack, {b}, 3)
  fails("stack: no tensors are given", nacre.stack, {})
  fails("stack: 9 dimensions, at most 8 are supported", nacre.stack, {eight})
end

do -- tile
  local b = nacre.tensor {{1, 2}, {3, 4}}
  is(scalar:tile(2, 2), "{{5,5},{5,5}}")
  is(scalar:tile {}, "5")
  shape(b:tile(0, 2), 0, 4)
  shape(empty:tile(2, 2), 0, 6)
  assert(not shares(b, b:tile(1, 1)))
  fails("tile: repeat count -1 of dim 2 is negative", b.tile, b, 2, -1)
  fails("tile: 9 dimensions, at most 8 are supported", b.tile, b, 1, 1, 1, 1,
        1, 1, 1, 1,
        1)
  fails("needs", b.tile, b, 1 << 40, 1 << 40)
  fails("needs", b.tile, b, maxint, maxint)
end

do -- views in chains write through, and outlive what they show
  local b = nacre.zeros(2, 3, 4)
  b:transpose(1, 3):select(2, 2):narrow(1, 2, 2):t():diagonal():fill_(1)
  is(b:nonzero(), "{{1,2,2},{2,2,3}}")
  local v = b:select(1, 1)
  b:free()
  collectgarbage()
  is(v:nonzero(), "{{2,2}}")
  for _, dtype in ipairs(dtypes) do
    local t = nacre.zeros(3, 3, {dtype = dtype})
    t:t():narrow(1, 2, 1):fill_(1)
    assert(t.dtype == dtype and t:sum():item() == 3)
    is(t:ne(0):nonzero(), "{{1,2},{2,2},{3,2}}")
  end
end

do -- nonzero
  is(nacre.tensor {0.0, 0 / 0, -0.0, 1e-45}:nonzero(), "{{2},{4}}")
  shape(nacre.tensor(3):nonzero(), 1, 0)
  shape(nacre.tensor(0):nonzero(), 0, 0)
  shape(nacre.zeros(0, 3):nonzero(), 0, 2)
  shape(nacre.zeros(4, 3):nonzero(), 0, 2)
  is(range(2, 2):t():nonzero(), "{{1,2},{2,1},{2,2}}")
  local many = nacre.zeros(300, 1000)
  many:slice(2, 7, -1, 10):fill_(1)
  local at = many:nonzero()
  shape(at, 30000, 2)
  is(at[1], "{1,7}")
  is(at[12345], "{124,447}")
  is(at[-1], "{300,997}")
  assert(at.dtype == "int64")
end
