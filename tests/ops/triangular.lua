-- SPDX-License-Identifier: MIT
-- Factors, inverses and triangular systems by chance, of sizes that are solved
-- by halves: residuals have the bounds of LAPACK's methods, nan and singular
-- matrices are what they are in small ones.
-- Run by: nacre tests/ops/triangular.lua [seed]

local seed = tonumber(arg and arg[1]) or 1
nacre.manual_seed(seed)
math.randomseed(seed)
local random = math.random
local L = nacre.linalg
local epsilon = {float32 = 2^-24, float64 = 2^-53}

-- |off| <= c n epsilon |scale|, of every element (Higham 2002, chapters 8, 9).
local function bounded(what, off, scale, dtype, n)
  local most = scale * (4 * (n + 10) * epsilon[dtype])
  assert(off:double():abs():le(most:double()):all():item(), what)
end

local function matmul(a, b) return a:double():matmul(b:double()) end
local function absolute(a, b) return matmul(a:abs(), b:abs()) end

local function factors(what, a, dtype)
  local p, l, u = L.lu(a)
  local lu = matmul(l, u)
  bounded(what .. ": lu", matmul(p, lu) - a:double(),
          matmul(p, absolute(l, u)), dtype, math.min(a:size(1), a:size(2)))
  assert(l:abs():max():item() <= 1, what .. ": no partial pivoting")
end

local function systems(what, n, dtype)
  local o = {dtype = dtype}
  local sides = random(4) == 1 and random(150) or random(20)
  local upper, left, unit = random(2) == 1, random(2) == 1, random(2) == 1
  local a = nacre.randn(n, n, o) / math.sqrt(n) + 2 * nacre.eye(n, o)
  local b = left and nacre.randn(n, sides, o) or nacre.randn(sides, n, o)
  if random(2) == 1 then a = a:t():contiguous():t() end
  if random(2) == 1 then b = b:t():contiguous():t() end
  local x = L.solve_triangular(a, b, {upper = upper, left = left,
                                      unitriangular = unit})
  local t = upper and a:triu(unit and 1 or 0) or a:tril(unit and -1 or 0)
  if unit then t = t + nacre.eye(n, o) end
  local f, g = t, x
  if not left then f, g = x, t end
  bounded(what .. ": solve_triangular", matmul(f, g) - b:double(),
          absolute(f, g), dtype, n)
end

local function solutions(what, n, dtype)
  local o = {dtype = dtype}
  local a, b = nacre.randn(n, n, o), nacre.randn(n, random(40), o)
  local f, pivots = L.lu_factor(a)
  local p, l, u = L.lu(a)
  local scale = matmul(p, absolute(l, u))
  for _, adjoint in ipairs {false, true} do
    local x = L.lu_solve(f, pivots, b, {adjoint = adjoint})
    local m = adjoint and a:t() or a
    bounded(what .. ": lu_solve", matmul(m, x) - b:double(),
            matmul(adjoint and scale:t() or scale, x:abs()), dtype, 3 * n)
  end
  bounded(what .. ": solve", matmul(a, L.solve(a, b)) - b:double(),
          matmul(scale, L.solve(a, b):abs()), dtype, 3 * n)
  -- the inverse of u times that of l: a bound on the left residual
  local x = L.inv(a)
  local I = nacre.eye(n, {dtype = "float64"})
  local off = (matmul(x, a) - I):abs():max():item()
  local most = matmul(absolute(x, p), absolute(l, u)):max():item()
  assert(off <= 4 * n * epsilon[dtype] * most, what .. ": inv")
  local sign, log = L.slogdet(a)
  local _, exact = L.slogdet(a:double())
  assert(sign:abs():item() == 1 and
         (log:double() - exact):abs():item() < 1e3 * n * epsilon[dtype],
         what .. ": slogdet")
end

for round = 1, 60 do
  local dtype = random(2) == 1 and "float32" or "float64"
  local n = random(5) == 1 and random(100, 330) or random(33, 100)
  local m = random(4) == 1 and random(33, 300) or n
  local what = ("seed %d, case %d, %d x %d, %s"):format(seed, round, m, n,
                                                        dtype)
  local a = nacre.randn(m, n, {dtype = dtype})
  if random(3) == 1 then a = a:mul(2):round() end    -- equals among pivots
  factors(what, a, dtype)
  systems(what, n, dtype)
  solutions(what, n, dtype)
end

for _, dtype in ipairs {"float32", "float64"} do
  local n = random(64, 200)
  local k = random(n)
  local a = nacre.eye(n, {dtype = dtype}) * 3
  a[{k, k}] = 0
  local ok, e = pcall(L.inv, a)
  assert(not ok and tostring(e):find("pivot " .. k .. " is zero", 1, true),
         tostring(e))
  assert(L.det(a):item() == 0)
  -- 1/0 stays what it is in LAPACK: infinite, not nan
  local x = L.solve_triangular(a, nacre.ones(n, 3, {dtype = dtype}),
                               {upper = true})
  assert(x:isinf():sum():item() == 3)
  for _ = 1, 10 do
    local bad, b = nacre.randn(n, n, {dtype = dtype}), nacre.ones(n, 2)
    bad[{random(n), random(n)}] = 0 / 0
    assert(L.solve(bad, b:to(dtype)):isnan():all():item(), "solve loses nan")
    assert(L.inv(bad):isnan():all():item(), "inv loses nan")
    assert(L.det(bad):isnan():item(), "det loses nan")
  end
end

-- What several threads share does not depend on how many they are.
local threads = nacre.get_num_threads()
for round = 1, 8 do
  local dtype = round % 2 == 0 and "float32" or "float64"
  local n, columns = random(130, 500), random(4) == 1 and 300 or random(40)
  local a, b = nacre.randn(n, n, {dtype = dtype}),
               nacre.randn(n, columns, {dtype = dtype})
  local wide = nacre.randn(random(130, 200), n, {dtype = dtype})
  local well = a / math.sqrt(n) + 2 * nacre.eye(n, {dtype = dtype})
  local function results()
    return {L.lu_factor(a:narrow(2, 1, n - 20)), L.lu_factor(wide),
            L.solve(a, b), L.inv(a),
            (L.solve_triangular(well, b, {upper = true}))}
  end
  nacre.set_num_threads(1)
  local alone = results()
  nacre.set_num_threads(math.max(2, threads))
  for i, y in ipairs(results()) do
    assert(y == alone[i], ("seed %d, case %d: result %d of %d rows depends on "
      .. "the number of threads"):format(seed, round, i, n))
  end
end
nacre.set_num_threads(threads)

print("triangular: passed")
