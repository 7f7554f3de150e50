-- SPDX-License-Identifier: MIT
-- Rows of few elements, which have loops of their own: argmax, argmin, sort,
-- median, flip, cumsum, cumprod and logsumexp are what Lua computes, also of
-- infinities, nan and equal elements.

nacre.manual_seed(4)
local inf, nan = math.huge, 0 / 0

-- Does a come before b in ascending order, nan last?
local function before(a, b)
  if a ~= a or b ~= b then return a == a and b ~= b end
  return a < b
end

local expected = {}

function expected.sort(row, descending)
  local at = {}
  for i = 1, #row do at[i] = i end
  for i = 2, #at do                     -- stable, as PyTorch's sort here
    for k = i, 2, -1 do
      local a, b = row[at[k - 1]], row[at[k]]
      if descending then a, b = b, a end
      if not before(b, a) then break end
      at[k - 1], at[k] = at[k], at[k - 1]
    end
  end
  return at
end

function expected.argmax(row, sign)
  local best = 1
  for i = 2, #row do
    local a, b = sign * row[best], sign * row[i]
    if a == a and (b ~= b or b > a) then best = i end
  end
  return best
end

function expected.median(row)
  for i, v in ipairs(row) do if v ~= v then return i end end
  return expected.sort(row)[(#row + 1) // 2]
end

function expected.logsumexp(row)
  local most, sum = -inf, 0
  for _, v in ipairs(row) do
    most = (v > most or v ~= v) and v or most
    if v ~= v then return v end
  end
  if most == inf or most == -inf then return most end
  for _, v in ipairs(row) do sum = sum + math.exp(v - most) end
  return most + math.log(sum)
end

local function same(a, b) return a == b or (a ~= a and b ~= b) end

local function near(a, b)
  return same(a, b) or math.abs(a - b) <= 1e-6 * (1 + math.abs(b))
end

local function check_numbers(what, x, row, i)
  local function line(y) return y[i]:tolist() end
  local sorted, at = x:sort(2)
  local wanted = expected.sort(row)
  for k, p in ipairs(wanted) do
    assert(at[{i, k}] == p and same(sorted[{i, k}], row[p]), what .. " sort")
  end
  at = select(2, x:sort(2, true))
  for k, p in ipairs(expected.sort(row, true)) do
    assert(at[{i, k}] == p, what .. " descending")
  end
  assert(x:argmax(2)[i] == expected.argmax(row, 1), what .. " argmax")
  assert(x:argmin(2)[i] == expected.argmax(row, -1), what .. " argmin")
  assert(same(x:median(2)[i], row[expected.median(row)]), what .. " median")
  for k, v in ipairs(line(x:flip(2))) do
    assert(same(v, row[#row + 1 - k]), what .. " flip")
  end
  local sum, product = line(x:cumsum(2)), line(x:cumprod(2))
  local s, p = 0, 1
  for k, v in ipairs(row) do
    s, p = s + v, p * v
    assert(near(sum[k], s), what .. " cumsum")
    assert(near(product[k], p), what .. " cumprod")
  end
end

local special = {0.0, -0.0, inf, -inf, nan, 1.0, 1.0}

-- Rows of whole numbers, some of them with what is not a number.
local function operand(dtype, rows, n)
  local x = nacre.randint(0, 4, {rows, n}):to(nacre[dtype])
  if dtype:find "int" then return x end
  for i = 1, rows // 2 do
    x[{i, math.random(n)}] = special[math.random(#special)]
    x[{i, math.random(n)}] = special[math.random(#special)]
  end
  return x
end

for _, n in ipairs {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 64, 65} do
  for _, dtype in ipairs {"float32", "float64", "float16", "int64", "uint8"} do
    local x = operand(dtype, 21, n)  -- more than stand side by side
    if dtype == "int64" or dtype == "uint8" then x = x % 2 + 1 end
    local what = ("%s, rows of %d:"):format(dtype, n)
    for i, row in ipairs(x:tolist()) do
      if not (dtype == "float16" and n > 16) then   -- products are too large
        check_numbers(what, x, row, i)
      end
      if dtype:find "float" and dtype ~= "float16" then
        assert(near(x:logsumexp(2)[i], expected.logsumexp(row)),
               what .. " logsumexp")
      end
    end
  end
end

-- ---- enough rows for several threads; what does not depend on them

for _, n in ipairs {3, 16} do
  local x = nacre.randn(20000, n)
  local before_threads = nacre.get_num_threads()
  local results = {}
  for _, threads in ipairs {1, 3} do
    nacre.set_num_threads(threads)
    results[threads] = {x:argmax(2), (select(2, x:sort(2))), x:flip(2),
                        x:cumsum(2), x:cumprod(2), x:logsumexp(2)}
  end
  nacre.set_num_threads(before_threads)
  for k, y in ipairs(results[1]) do assert(y:equal(results[3][k]), k) end
  local sorted = x:sort(2)
  assert(sorted:diff(1, 2):ge(0):all():item())
  assert(x:flip(2):equal(x:index_select(2, n - nacre.arange(n))))
  assert((x:logsumexp(2) - x:double():exp():sum(2):log():float()):abs():max()
         :item() < 1e-5)
end
