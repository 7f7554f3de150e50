-- SPDX-License-Identifier: MIT
-- Several images as one: where each lies, what is between them, and how values
-- are brought to 0 .. 1.
-- Run by: nacre tests/ops/image_grids.lua

local U = nacre.utils
local function same(a, b) assert(nacre.equal(a, b), tostring(a)) end
local function fails(text, f, ...)
  local ok, e = pcall(f, ...)
  assert(not ok and tostring(e):find(text, 1, true), tostring(e))
end

local x = nacre.arange(1, 5 * 3 * 2 * 4 + 1):float():reshape(5, 3, 2, 4)
local g = U.make_grid(x, {nrow = 2, padding = 1, pad_value = -1})
same(nacre.tensor(g:size()), nacre.tensor {3, 10, 11})
for i = 0, 4 do
  same(g:narrow(2, i // 2 * 3 + 2, 2):narrow(3, i % 2 * 5 + 2, 4), x[i + 1])
end
assert((g:sum() - x:sum()):item() == -(g:numel() - x:numel()))
same(U.make_grid({x[1], x[2]}), U.make_grid(x["1:2"]))
same(U.make_grid(x[1]), x[1])
local grey = U.make_grid(x[":, 1:1"], {padding = 0, nrow = 5})
same(grey, nacre.cat({x[1], x[2], x[3], x[4], x[5]}, 3)["1:1"]
  :expand(3, -1, -1))

local n = U.make_grid(x, {normalize = true, padding = 0})
assert(n:min():item() == 0 and n:max():item() == 1)
local each = U.make_grid(x, {normalize = true, scale_each = true, padding = 0})
same(each:narrow(3, 1, 4), each:narrow(3, 5, 4))
local range = U.make_grid(x, {normalize = true, value_range = {0, 10},
                              padding = 0})
assert(math.abs(range[{1, 1, 2}] - 0.2) < 1e-6 and range[{1, 1, 5}] == 1)

fails("images have 2 to 4 dimensions, not 1", U.make_grid, nacre.ones(3))
fails("the list of images is empty", U.make_grid, {})
fails("nrow must be positive", U.make_grid, x, {nrow = 0})
fails("value_range is two numbers", U.make_grid, x, {value_range = {1}})
