-- SPDX-License-Identifier: MIT
-- Three programs whose operations are fused: prices of options, the Mandelbrot
-- set, a step of Adam. Each is compared with itself, unfused.
--
--   nacre scripts/fuse.lua [elements]

local n = math.tointeger(tonumber(arg[1] or 1e6))

-- The median of the seconds of several calls.
local function seconds(f, ...)
  local times = {}
  f(...)
  for i = 1, 7 do
    local start = nacre.clock()
    f(...)
    times[i] = nacre.clock() - start
  end
  table.sort(times)
  return times[4]
end

local function compare(name, f, ...)
  local fused = nacre.fuse(f)
  local want, got = table.pack(f(...)), table.pack(fused(...))
  for i = 1, want.n do
    assert(nacre.equal(want[i], got[i]), name .. ": the results differ")
  end
  local plain, once = seconds(f, ...), seconds(fused, ...)
  print(("%-14s %7.2f ms, fused %7.2f ms: %.1f times as fast")
        :format(name, plain * 1e3, once * 1e3, plain / once))
  return fused
end

-- ---- Black-Scholes: a call and a put

local function normal(d) return 0.5 * (1 + (d * 0.5 ^ 0.5):erf()) end

local function prices(spot, strike, years, rate, sigma)
  local q = years:sqrt() * sigma
  local d = ((spot / strike):log() + (rate + sigma * sigma / 2) * years) / q
  local paid = strike * (-rate * years):exp()
  local call = spot * normal(d) - paid * normal(d - q)
  return call, call - spot + paid
end

local spot = nacre.rand(n) * 50 + 75
local strike = nacre.rand(n) * 50 + 75
compare("Black-Scholes", prices, spot, strike, nacre.rand(n) + 0.1, 0.03, 0.2)

-- ---- the Mandelbrot set: how long each point stays near 0

local function iterate(x, y, cx, cy, count)
  local u = x * x - y * y + cx
  local v = 2 * x * y + cy
  return u, v, count + (u * u + v * v):le(4)
end

local rows, columns = 24, 72
local cx = nacre.linspace(-2.1, 0.7, columns):expand(rows, columns):contiguous()
local cy = nacre.linspace(-1.2, 1.2, rows):view(rows, 1)
           :expand(rows, columns):contiguous()
local step = nacre.fuse(iterate)
local x, y = cx:zeros_like(), cx:zeros_like()
local count = cx:zeros_like()
for _ = 1, 40 do x, y, count = step(x, y, cx, cy, count) end
for _, row in ipairs(count:to("int64"):totable()) do
  local line = {}
  for i, k in ipairs(row) do
    line[i] = k == 40 and "#" or (" .:-=+*%@"):sub(k // 5 + 1, k // 5 + 1)
  end
  print(table.concat(line))
end
local c = nacre.rand(n) - 0.5
compare("Mandelbrot", iterate, c, c, c, c, c:zeros_like())

-- ---- Adam, in place

local function adam(p, m, v, g, lr, bias1, bias2)
  m:mul_(0.9):add_(g * 0.1)
  v:mul_(0.999):addcmul_(g, g, {value = 0.001})
  p:sub_((m / bias1) * lr / ((v / bias2):sqrt() + 1e-8))
end

local function train(update)
  nacre.manual_seed(1)
  local p, m, v = nacre.randn(n), nacre.zeros(n), nacre.zeros(n)
  for t = 1, 5 do
    update(p, m, v, p * 2, 1e-3, 1 - 0.9 ^ t, 1 - 0.999 ^ t)
  end
  return p
end

local fused = nacre.fuse(adam)
assert(nacre.equal(train(adam), train(fused)), "Adam: the results differ")
local g = nacre.randn(n)
local state = {nacre.randn(n), nacre.zeros(n), nacre.zeros(n), g, 1e-3, 0.19,
               1.9e-3}
local plain = seconds(adam, table.unpack(state))
local once = seconds(fused, table.unpack(state))
print(("%-14s %7.2f ms, fused %7.2f ms: %.1f times as fast")
      :format("Adam, in place", plain * 1e3, once * 1e3, plain / once))
print(fused:explain(table.unpack(state)))
