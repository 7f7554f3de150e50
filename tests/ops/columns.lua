-- SPDX-License-Identifier: MIT
-- Scans and extremes along a dimension that is not the last, against the same
-- of rows, whose loops are others: each dtype, strips that end anywhere, nan,
-- equal elements. And rows that end anywhere in a vector, against their parts.
-- Run by: nacre tests/ops/columns.lua

local SHAPES <const> = {{5, 2}, {4, 7}, {3, 8}, {9, 17}, {1, 40}, {6, 129},
                        {2, 300}, {3, 5, 16}, {4, 2, 3, 9}, {700, 12}}
local TYPES <const> = {"float32", "float64", "float16", "bfloat16", "uint8",
                       "int8", "int16", "int32", "int64"}

-- Of few values, so that many are equal; floats have nan and infinity.
local function filled(shape, dtype)
  local x = nacre.randint(0, 5, shape):to(dtype)
  if dtype:find "float" and shape[1] > 1 then
    local u = nacre.rand(shape)
    x = x - 2
    x = x:masked_fill(u:lt(0.02), nacre.nan)
    x = x:masked_fill(u:gt(0.98), -nacre.inf)
  end
  return x
end

local function check_same(what, a, b)
  local same = a:eq(b):logical_or(a:ne(a):logical_and(b:ne(b)))
  if not same:all():item() then
    error(("%s: %d of %d differ"):format(what, (~same):sum():item(),
                                         same:numel()), 0)
  end
end

local calls = 0

local function check_along(x, dim, name, what)
  local values, at = x[name](x, dim)
  local rows = x:transpose(dim, -1):contiguous()
  local keeps = name == "cumsum" or name == "cumprod" or name == "cummax" or
                name == "cummin"
  local want, want_at = rows[name](rows, -1)
  local function back(t)
    return keeps and t:transpose(dim, -1) or
           t:unsqueeze(-1):transpose(dim, -1):squeeze(dim)
  end
  calls = calls + 1
  check_same(what, values, back(want))
  if at then check_same(what .. ", positions", at, back(want_at)) end
end

nacre.manual_seed(3)
for threads = 1, 3 do
  nacre.set_num_threads(threads)
  for _, shape in ipairs(SHAPES) do
    for _, dtype in ipairs(TYPES) do
      local x = filled(shape, dtype)
      for dim = 1, #shape - 1 do
        for _, name in ipairs {"cumsum", "cumprod", "cummax", "cummin", "max",
                               "min", "argmax", "argmin"} do
          local what = ("%s of %s %s along %d, %d threads"):format(name, dtype,
                         table.concat(shape, "x"), dim, threads)
          -- The products of halves and of floats are rounded in one order.
          check_along(x, dim, name, what)
        end
      end
    end
  end
end
assert(calls > 2000)

-- ---- rows of every length

local function check_close(what, got, want)
  local most = (got:double() - want):abs():max():item()
  if not (most <= 1e-5 * (1 + want:abs():max():item())) then
    error(("%s: off by %g"):format(what, most), 0)
  end
end

for _, dtype in ipairs {"float32", "float64", "int32", "uint8", "int16"} do
  for n = 1, 150 do
    local x = (nacre.randn(6, n) * 20):abs():to(dtype)
    local d, name = x:double(), ("%s, rows of %d"):format(dtype, n)
    local parts = {norm = 0, sum = 0, count = 0}
    local most, least = d:select(2, 1), d:select(2, 1)
    for i = 1, n do
      local v = d:select(2, i)
      parts.norm = parts.norm + v * v
      parts.sum = parts.sum + v
      parts.count = parts.count + v:ne(0):double()
      most, least = most:maximum(v), least:minimum(v)
    end
    if dtype:find "float" then
      check_close(name .. ": norm", x:norm(2, 2), parts.norm:sqrt())
      check_close(name .. ": norm 1", x:norm(1, 2), parts.sum)
      local p = (x:double() / 20 + 0.2):to(dtype)
      check_close(name .. ": prod of signs", p:sign():prod(2),
                  nacre.ones(6, {dtype = "float64"}))
    end
    check_close(name .. ": sum", x:sum(2), parts.sum)
    check_close(name .. ": count_nonzero", x:count_nonzero(2), parts.count)
    check_same(name .. ": amax", x:amax(2):double(), most)
    check_same(name .. ": amin", x:amin(2):double(), least)
    -- the only one that is true, at each place
    local one = nacre.zeros(n, n, {dtype = "bool"})
    one:fill_diagonal_(1)
    assert(one:any(2):all():item() and not (~one):all(2):any():item(), name)
  end
end

-- ---- a column that meets rows

for _, n in ipairs {2, 15, 16, 63, 64, 65, 100, 127, 255, 256, 300} do
  for _, dtype in ipairs(TYPES) do
    local x = (nacre.randn(70, n) * 9):to(dtype)
    local column = (nacre.randn(70, 1) * 9):abs():add(1):to(dtype)
    local want = column:expand(70, n):clone()
    for _, name in ipairs {"mul", "sub", "maximum", "gt", "div"} do
      check_same(("%s of %s and a column, rows of %d"):format(name, dtype, n),
                 nacre[name](x, column), nacre[name](x, want))
    end
  end
end
print "columns: ok"
