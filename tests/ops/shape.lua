-- SPDX-License-Identifier: MIT
-- Copies in other orders and shapes, pads, grids, windows: errors, aliasing,
-- what PyTorch does not have. opinfo_torch.py compares the values with PyTorch.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local is, shape, fails, shares = C.is, C.shape, C.fails, C.shares

local x = nacre.arange(6):reshape(2, 3)

do -- kron of matrices with short rows, which are first repeated to long ones
  for _, size in ipairs {{20, 33, 40, 7}, {20, 33, 40, 300}, {2, 3, 40, 7}} do
    local n, m, k, l = table.unpack(size)
    local a, b = nacre.randn(n, m), nacre.randn(k, l)
    local y = a:view(n, 1, m, 1) * b:view(1, k, 1, l)
    assert(a:kron(b):equal(y:reshape(n * k, m * l)))
    assert(a[1]:kron(b):equal(y[1]:reshape(k, m * l)))
    assert(a:kron(b[1]):equal(y[{{}, 1}]:reshape(n, m * l)))
  end
  local a, b = nacre.randn(17, 2):requires_grad_(), nacre.randn(16, 3)
  local g = nacre.randn(17 * 16, 6)
  a:kron(b):backward(g)
  local each = g:view(17, 16, 2, 3) * b:view(1, 16, 1, 3)
  assert(a.grad:allclose(each:sum({2, 4}), 1e-4, 1e-5))
end

do -- vander multiplies, as PyTorch does: powers of integers are int64
  local v = nacre.tensor{2, 0, -3}
  is(v:vander(4), "{{8,4,2,1},{0,0,0,1},{-27,9,-3,1}}")
  is(v:vander(4, true), "{{1,2,4,8},{1,0,0,0},{1,-3,9,-27}}")
  shape(v:vander(0), 3, 0)
  shape(nacre.empty(0):vander(), 0, 0)
  assert(v:int():vander().dtype == "int64")
  assert(v:half():vander(2).dtype == "float16")
  assert(v:bool():vander(2).dtype == "int64")
  is(nacre.tensor{1 / 0, 0 / 0}:vander(2), "{{inf,1.0},{nan,1.0}}")
end

do -- orders
  assert(not shares(x:flip({}), x))
  is(nacre.tensor(3):flip(1), "3")
  assert(not shares(x:roll(6), x))
  assert(not shares(x:rot90(), x) and not shares(x:rot90(0), x))
  fails("dim 1 is given twice", x.flip, x, 1, 1)
  fails("2 shifts for 1 dimension", x.roll, x, {1, 2})
  fails("0 dimensions has no dim", x.roll, nacre.tensor(3), 1, 1)
  fails("needs at least 2", nacre.fliplr, x[1])
end

do -- triangles and diagonals
  local y = x:clone()
  assert(rawequal(y:triu_(1), y))
  assert(x:t():triu():is_contiguous() and x:t():tril(-1):is_contiguous())
  is(y, "{{0,1,2},{0,0,5}}")
  is(x[nacre.triu_indices(2, 3, 1):unbind()], "{1,2,5}")
  local most = math.maxinteger        -- rows without elements take no time
  shape(nacre.tril_indices(most, 0), 2, 0)
  shape(nacre.tril_indices(most, 9, math.mininteger), 2, 0)
  shape(nacre.triu_indices(most, 3), 2, 6)
  shape(nacre.triu_indices(3, most, most), 2, 0)
  assert(not pcall(nacre.tril_indices, most, 1))
  shape(nacre.ones(1):combinations(1 << 20, true), 1, 1 << 20)
  assert(not shares(x:diag(), x))
  fails("needs a vector or a matrix", nacre.diag, nacre.zeros(1, 1, 1))
  fails("needs 8.0 TiB", function() x[1]:diag(1 << 20) end)
end

do -- repeats
  fails("-1 repeats", x.repeat_interleave, x, -1)
  fails("one for each of the 2", x.repeat_interleave, x,
        nacre.tensor({1, 2, 3}), 1)
end

do -- pads
  assert(not shares(x:pad({0, 0}), x))
  fails("cannot be padded by 3", x.pad, x, {3, 0}, "reflect")
  fails("two for each dimension", x.pad, x, {1})
  fails("cannot be cropped", x.pad, x, {-2, -2})
  fails("mode must be one of", x.pad, x, {1, 1}, "mirror")
  -- of a large one only the ends are filled
  for _, p in ipairs {{1, 2, 3, 4}, {0, 5}, {-7, 1, 0, 2},
                      {0, 0, 9, 0, 1, 1}} do
    local a = nacre.ones(2, 300, 250)
    local size, keep = a:size(), a
    for d = 1, #p // 2 do
      local before, after = p[2 * d - 1], p[2 * d]
      local cut = math.max(-before, 0)
      size[4 - d] = size[4 - d] + before + after
      keep = keep:narrow(-d, 1 + cut, keep:size(-d) - cut)
    end
    local want = nacre.full(size, -3)
    local inner = want
    for d = 1, #p // 2 do
      inner = inner:narrow(-d, 1 + math.max(p[2 * d - 1], 0), keep:size(-d))
    end
    inner:copy_(keep)
    assert(a:pad(p, "constant", -3):equal(want), table.concat(p, " "))
  end
end

do -- a view of a copy replaced
  is(x:slice_scatter(nacre.zeros(2, 2, {dtype = "int64"}), 2, 1, 3, 2),
     "{{0,1,0},{0,4,0}}")
  fails("src is [3], but must be [2]", x.select_scatter, x, x[1], 2, 1)
  is(x, "{{0,1,2},{3,4,5}}")
end

do -- views
  local w = nacre.arange(5):unfold(1, 3, 2)
  is(w, "{{0,1,2},{2,3,4}}")
  fails("share memory", w.zero_, w)
  fails("windows of 4", x.unfold, x, 2, 4, 1)
  fails("steps must be positive", x.unfold, x, 2, 1, 0)
  for _, y in ipairs {x:swapdims(1, 2), x:swapaxes(1, 2), x:moveaxis(1, 2),
                      x:ravel(), x:adjoint(), x:atleast_3d(),
                      x:as_strided({2}, {3}),
                          table.unpack(x:vsplit(2))} do
    assert(shares(y, x))
  end
  assert(rawequal(x:atleast_2d(), x))
  is(x:as_strided({2, 2}, {1, 2}, 1), "{{1,3},{2,4}}")
  is(x:t():as_strided({2}, {1}), "{0,1}")
  fails("beyond the 6 elements", x.as_strided, x, {3}, {3})
  fails("beyond the 6 elements", x.as_strided, x, {1}, {1}, 6)
  fails("is negative", x.as_strided, x, {1}, {1}, -1)
  fails("is negative", x.as_strided, x, {2}, {-1})
  fails("needs 64.0 EiB", x.as_strided, x, {math.maxinteger}, {math.maxinteger})
  fails("beyond the 6 elements", x.as_strided, x, {3}, {math.maxinteger})
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
  fails("indices start at 1", v.tensor_split, v, {0})
  fails("does not divide into 2", v.hsplit, v, 2)
  fails("needs at least 2", v.vsplit, v, 2)
end

do -- lists
  local a, b = nacre.tensor({1, 2}), nacre.tensor({3, 4})
  is(nacre.concat {a, b}, "{1,2,3,4}")
  local many = {}
  for i = 1, 200 do many[i] = nacre.tensor(i) end
  shape(nacre.hstack(many), 200)
  fails("no tensors are given", nacre.hstack, {})
  is(nacre.arange(3):combinations(), "{{0,1},{0,2},{1,2}}")
  shape(a:combinations(3), 0, 3)
  fails("combinations", function() nacre.arange(1000):combinations(9) end)
  shape(nacre.broadcast_tensors({a, nacre.zeros(3, 1)})[1], 3, 2)
end
