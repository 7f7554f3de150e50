-- SPDX-License-Identifier: MIT
-- Our side of fusion_bench.py.
--
--   nacre fusion_bench.lua SIZE THREADS wall|processor
--
-- Reads lines from stdin and answers each: "case NAME" makes the operands,
-- "plain CALLS", "fused CALLS" and "grad CALLS" give the seconds of one call.

nacre.set_num_threads(tonumber(arg[2]))
local size = math.tointeger(tonumber(arg[1]))
local clock = arg[3] == "processor" and os.clock or nacre.clock

local function tanh_gelu(x)
  return 0.5 * x *
         (1 + (0.7978845608028654 * (x + 0.044715 * x * x * x)):tanh())
end

local function adam(p, m, v, g)
  m = 0.9 * m + 0.1 * g
  v = 0.999 * v + 0.001 * g * g
  return p - 1e-3 * m / (v:sqrt() + 1e-8), m, v
end

local function normal(d) return 0.5 * (1 + (d * 0.7071067811865476):erf()) end

local function black_scholes(s, k, t)
  local rate, sigma = 0.03, 0.2
  local q = t:sqrt() * sigma
  local d = ((s / k):log() + (rate + 0.5 * sigma * sigma) * t) / q
  local paid = k * (-rate * t):exp()
  local call = s * normal(d) - paid * normal(d - q)
  return call, call - s + paid
end

local function mandelbrot(x, y, cx, cy, n)
  local u = x * x - y * y + cx
  local v = 2 * x * y + cy
  return u, v, n + (u * u + v * v):le(4)
end

local function softmax(x)
  local e = (x - x:amax(-1, true)):exp()
  return e / e:sum(-1, true)
end

local function standardize(x)
  local d = x - x:mean(-1, true)
  return d / (d * d):mean(-1, true):sqrt()
end

-- name: function, operands, rows of 1024
local cases = {
  ["sigmoid"] = {function(a, b, c) return (a * b + c):sigmoid() end, 3},
  ["gelu"] = {tanh_gelu, 1},
  ["Adam"] = {adam, 4},
  ["Black-Scholes"] = {black_scholes, 3},
  ["Mandelbrot"] = {mandelbrot, 5},
  ["softmax"] = {softmax, 1, true},
  ["standardize"] = {standardize, 1, true},
}

local plain, fused, x

local function make(name)
  local case = cases[name]
  plain, fused, x = case[1], nacre.fuse(case[1]), {}
  for i = 1, case[2] do
    x[i] = nacre.rand(size) + 0.5
    if case[3] then x[i] = x[i]:view(-1, 1024) end
  end
end

local function gradients(f)
  local first = f(table.unpack(x))
  first:sum():backward()
end

local function repeated(calls, f, ...)
  collectgarbage()
  local start = clock()
  for _ = 1, calls do f(...) end
  return (clock() - start) / calls
end

for line in io.lines() do
  local word, rest = line:match "^(%S+) (.*)$"
  local seconds = 0
  if word == "case" then make(rest)
  elseif word == "grad" then
    for _, t in ipairs(x) do t:requires_grad_() t.grad = nil end
    seconds = repeated(tonumber(rest), gradients, fused)
    for _, t in ipairs(x) do t:requires_grad_(false) t.grad = nil end
  else
    seconds = repeated(tonumber(rest), word == "fused" and fused or plain,
                       table.unpack(x))
  end
  print(("%.9g"):format(seconds))
  io.stdout:flush()
end
