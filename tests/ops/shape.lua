-- SPDX-License-Identifier: MIT
-- Copies in other orders and shapes, pads, grids, windows. diff_torch.py
-- compares the values with PyTorch; here stand errors, aliasing, and what is
-- Nacre's own. Run by: nacre tests/ops/shape.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local is, shape, fails, shares = C.is, C.shape, C.fails, C.shares

local x = nacre.arange(6):reshape(2, 3)

do -- orders
  is(x:flip(2), "{{2,1,0},{5,4,3}}")
  is(x:flip({1, -1}), "{{5,4,3},{2,1,0}}")
  assert(not shares(x:flip({}), x))
  is(nacre.tensor(3):flip(1), "3")
  is(x:roll(1), "{{5,0,1},{2,3,4}}")
  is(x:roll({1, -1}, {1, 2}), "{{4,5,3},{1,2,0}}")
  assert(not shares(x:roll(6), x))
  is(x:rot90(), "{{2,5},{1,4},{0,3}}")
  assert(not shares(x:rot90(), x) and not shares(x:rot90(0), x))
  is(x:fliplr(), "{{2,1,0},{5,4,3}}")
  is(x:flipud(), "{{3,4,5},{0,1,2}}")
  fails("dim 1 is given twice", nil, x.flip, x, 1, 1)
  fails("2 shifts for 1 dimension", nil, x.roll, x, {1, 2})
  fails("needs at least 2", nil, nacre.fliplr, x[1])
end

do -- triangles and diagonals
  is(x:tril(), "{{0,0,0},{3,4,0}}")
  local y = x:clone()
  assert(rawequal(y:triu_(1), y))
  assert(x:t():triu():is_contiguous() and x:t():tril(-1):is_contiguous())
  is(y, "{{0,1,2},{0,0,5}}")
  is(nacre.tensor({{true, true}, {true, true}}):tril(-1),
     "{{false,false},{true,false}}")
  is(nacre.tril_indices(2, 3), "{{1,2,2},{1,1,2}}")
  is(x[nacre.triu_indices(2, 3, 1):unbind()], "{1,2,5}")
  local most = math.maxinteger        -- no row is looked at in vain
  shape(nacre.tril_indices(most, 0), 2, 0)
  shape(nacre.tril_indices(most, 9, math.mininteger), 2, 0)
  shape(nacre.triu_indices(most, 3), 2, 6)
  shape(nacre.triu_indices(3, most, most), 2, 0)
  assert(not pcall(nacre.tril_indices, most, 1))
  shape(nacre.ones(1):combinations(1 << 20, true), 1, 1 << 20)
  is(x:diag(), "{0,4}")
  assert(not shares(x:diag(), x))
  is(nacre.tensor({1, 2}):diag(-1), "{{0,0,0},{1,0,0},{0,2,0}}")
  shape(x:diag_embed(), 2, 3, 3)
  shape(x:diagflat(1), 7, 7)
  fails("needs a vector or a matrix", nil, nacre.diag, nacre.zeros(1, 1, 1))
  fails("needs 8.0 TiB", nil, function() x[1]:diag(1 << 20) end)
end

do -- repeats
  is(x:repeat_interleave(2, 2), "{{0,0,1,1,2,2},{3,3,4,4,5,5}}")
  is(x:repeat_interleave(nacre.tensor({0, 2}), 1), "{{3,4,5},{3,4,5}}")
  is(x[1]:repeat_interleave(2), "{0,0,1,1,2,2}")
  fails("-1 repeats", nil, x.repeat_interleave, x, -1)
  fails("one for each of the 2", nil, x.repeat_interleave, x,
        nacre.tensor({1, 2, 3}), 1)
  is(nacre.tensor({1, 2}):kron(nacre.tensor({1, 10})), "{1,10,2,20}")
end

do -- pads
  is(x:pad({1, 0}), "{{0,0,1,2},{0,3,4,5}}")
  is(x:pad({0, 0, 1, -1}, "constant", 7), "{{7,7,7},{0,1,2}}")
  is(x:pad({2, 1}, "reflect"), "{{2,1,0,1,2,1},{5,4,3,4,5,4}}")
  is(x:pad({1, 2}, "replicate"), "{{0,0,1,2,2,2},{3,3,4,5,5,5}}")
  is(x:pad({1, 1}, "circular"), "{{2,0,1,2,0},{5,3,4,5,3}}")
  assert(not shares(x:pad({0, 0}), x))
  fails("cannot be padded by 3", nil, x.pad, x, {3, 0}, "reflect")
  fails("two a dimension", nil, x.pad, x, {1})
  fails("cannot be cropped", nil, x.pad, x, {-2, -2})
  fails("mode must be one of", nil, x.pad, x, {1, 1}, "mirror")
end

do -- a view of a copy replaced
  is(x:select_scatter(nacre.tensor({8, 9}), 2, -1), "{{0,1,8},{3,4,9}}")
  is(x:slice_scatter(nacre.zeros(2, 2, {dtype = "int64"}), 2, 1, 3, 2),
     "{{0,1,0},{0,4,0}}")
  is(x:diagonal_scatter(nacre.tensor({8, 9})), "{{8,1,2},{3,9,5}}")
  fails("src is [3], and must be [2]", nil, x.select_scatter, x, x[1], 2, 1)
  is(x, "{{0,1,2},{3,4,5}}")
end

do -- views
  local w = nacre.arange(5):unfold(1, 3, 2)
  is(w, "{{0,1,2},{2,3,4}}")
  fails("share one place", nil, w.zero_, w)
  fails("windows of 4", nil, x.unfold, x, 2, 4, 1)
  fails("steps must be positive", nil, x.unfold, x, 2, 1, 0)
  for _, y in ipairs {x:swapdims(1, 2), x:swapaxes(1, 2), x:moveaxis(1, 2),
                      x:ravel(), x:adjoint(), x:atleast_3d(),
                      x:as_strided({2}, {3}),
                          table.unpack(x:vsplit(2))} do
    assert(shares(y, x))
  end
  assert(rawequal(x:atleast_2d(), x))
  is(x:as_strided({2, 2}, {1, 2}, 1), "{{1,3},{2,4}}")
  is(x:t():as_strided({2}, {1}), "{0,1}")
  fails("beyond the 6 elements", nil, x.as_strided, x, {3}, {3})
  fails("beyond the 6 elements", nil, x.as_strided, x, {1}, {1}, 6)
  fails("is negative", nil, x.as_strided, x, {1}, {1}, -1)
  fails("is negative", nil, x.as_strided, x, {2}, {-1})
  fails("needs 64.0 EiB", nil, x.as_strided, x, {math.maxinteger},
        {math.maxinteger})
  fails("beyond the 6 elements", nil, x.as_strided, x, {3},
        {math.maxinteger})
  local leaf = nacre.zeros(2, 3):requires_grad_()
  fails("whole, contiguous tensor", "self:contiguous():as_strided(...)",
        function() leaf:t():as_strided({2}, {1}) end)
end

do -- pieces: positions where they begin
  local function sizes(list)
    local n = {}
    for i, t in ipairs(list) do n[i] = t:size(1) end
    return table.concat(n, " ")
  end
  local v = nacre.arange(7)
  assert(sizes(v:tensor_split(3)) == "3 2 2")
  assert(sizes(v:tensor_split({3, 6})) == "2 3 2")
  assert(sizes(v:tensor_split({-2, 20})) == "5 2 0")
  assert(v:tensor_split({3})[2][1] == 2)
  fails("indices start at 1", nil, v.tensor_split, v, {0})
  fails("does not divide into 2", nil, v.hsplit, v, 2)
  fails("needs at least 2", nil, v.vsplit, v, 2)
end

do -- lists
  local a, b = nacre.tensor({1, 2}), nacre.tensor({3, 4})
  is(nacre.hstack {a, b}, "{1,2,3,4}")
  is(nacre.vstack {a, b}, "{{1,2},{3,4}}")
  is(nacre.column_stack {a, b}, "{{1,3},{2,4}}")
  shape(nacre.dstack {a, b}, 1, 2, 2)
  is(nacre.concat {a, b}, "{1,2,3,4}")
  local many = {}
  for i = 1, 200 do many[i] = nacre.tensor(i) end
  shape(nacre.hstack(many), 200)
  fails("no tensors are given", nil, nacre.hstack, {})
  is(nacre.block_diag {a, b:reshape(2, 1)}, "{{1,2,0},{0,0,3},{0,0,4}}")
  local g = nacre.meshgrid {a, b}
  is(g[1], "{{1,1},{2,2}}")
  is(g[2], "{{3,4},{3,4}}")
  is(nacre.cartesian_prod {a, b}, "{{1,3},{1,4},{2,3},{2,4}}")
  is(nacre.arange(3):combinations(), "{{0,1},{0,2},{1,2}}")
  is(a:combinations(2, true), "{{1,1},{1,2},{2,2}}")
  shape(a:combinations(3), 0, 3)
  fails("combinations", nil, function() nacre.arange(1000):combinations(9) end)
  is(a:vander(), "{{1,1},{2,1}}")
  shape(nacre.broadcast_tensors({a, nacre.zeros(3, 1)})[1], 3, 2)
end

print("shape: ok")
