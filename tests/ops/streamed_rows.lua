-- SPDX-License-Identifier: MIT
-- Results too large for the cache, of operands that broadcast along rows: equal
-- to the same operation of their parts, which are small.

local PART = 1 << 20                  -- elements

-- Is whole = f(x, ...), by parts of x and of the operands that have its rows?
local function same_by_parts(f, whole, x, ...)
  local rows = x:size(1)
  local step = math.max(1, PART * rows // x:numel())
  for first = 1, rows, step do
    local n, part = math.min(step, rows - first + 1), {}
    for i, t in ipairs {...} do
      local has_rows = t:dim() == x:dim() and t:size(1) == rows
      part[i] = has_rows and t:narrow(1, first, n) or t
    end
    local small = f(x:narrow(1, first, n), table.unpack(part))
    if not whole:narrow(1, first, n):equal(small) then return false end
  end
  return true
end

local function check(what, f, x, ...)
  assert(same_by_parts(f, f(x, ...), x, ...), what)
end

local function add(a, b) return a + b end
local function divide(a, b) return a / b end
local function less(a, b) return a:lt(b) end
local function choose(a, b) return nacre.where(a:gt(0), a, b) end
local function three(a, b, c) return nacre.addcmul(a, b, c, {value=0.5}) end

local threads = nacre.get_num_threads()
for _, n in ipairs {1, 2} do
  nacre.set_num_threads(n)
  for _, size in ipairs {{4097, 2111}, {87000, 97}, {1000001, 9},
                         {3, 2900003}} do
    local x = nacre.randn(size)
    local row, column = nacre.randn(size[2]), nacre.randn(size[1], 1)
    local name = table.concat(size, "x") .. ", threads: " .. n
    check("row " .. name, add, x, row)
    check("column " .. name, divide, x, column)
    check("row and column " .. name, three, x, row, column)
    check("where " .. name, choose, x, column)
    local into = x:clone()             -- a result that is an operand
    into:add_(column)
    assert(same_by_parts(add, into, x, column), "in place " .. name)
    local parted = x:narrow(2, 2, size[2] - 1)
    check("strided " .. name, add, parted, column)
  end
  local bytes = nacre.randint(0, 100, {5003, 7001}, {dtype="uint8"})
  check("uint8", add, bytes, nacre.arange(7001):to "uint8")
  check("bool", less, bytes, nacre.arange(7001):to "uint8")
  local images = nacre.randn(8, 33, 181, 181)
  check("channels", add, images, nacre.randn(33, 1, 1))
  check("types", add, images, nacre.randn(33, 1, 1, {dtype="float64"}))
  check("halves", add, images:half(), nacre.randn(181, {dtype="float16"}))
end
nacre.set_num_threads(threads)
print "ok"
