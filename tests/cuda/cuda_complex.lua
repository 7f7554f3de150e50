-- SPDX-License-Identifier: MIT
-- Complex tensors on a device are computed as on the CPU: functions at points
-- whose squares overflow or vanish, at infinities and on the sides of branch
-- cuts; operands of other dtypes and layouts; as many dimensions as there are.
-- Run by: nacre tests/cuda/cuda_complex.lua, with a device, or
-- NACRE_CUDA=emulated

if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
local i = nacre.i
nacre.manual_seed(3)

local EPS = {float32 = 2e-6, float64 = 2e-14}
local LEAST = {float32 = 1e-43, float64 = 1e-320}
local dtypes = {"complex64", "complex128"}

-- Parts of each element; of a bool, 0 or 1.
local function parts_of(t)
  if t:is_complex() then return nacre.view_as_real(t:reshape(-1)) end
  t = t:reshape(-1, 1)
  return t.dtype == "bool" and t:double() or t
end

-- Compares element by element, relative to the larger part, or to `terms', the
-- size of what was added. C leaves the sign of an infinity beside a nan open.
local function check(what, want, got, x, terms)
  assert(got.is_cuda and got.dtype == want.dtype, what)
  local w, g = parts_of(want), parts_of(got:cpu())
  local dtype = w.dtype
  local size = nacre.where(w:isfinite(), w, 0):abs():amax(-1, true)
  if terms then size = size + terms:reshape(-1, 1) end
  local open = w:isnan():any(-1, true) & w:isinf() & g:isinf()
  local fine = w:eq(g) | w:isnan() & g:isnan() | open |
               (w - g):abs():le(EPS[dtype] * size + LEAST[dtype])
  local bad = fine:all(-1):logical_not():nonzero():reshape(-1)
  if bad:numel() == 0 then return end
  local at = bad[1]
  error(("%s of %s: %s, not %s"):format(what, x and tostring(x[at]) or "?",
    table.concat(g[at]:totable(), " "), table.concat(w[at]:totable(), " ")))
end

--
-- Functions of one number
--
local values = {0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1 + 2.0 ^ -20, 2.0, -2.0,
                1e-3, 1e-20, -1e-20, 1e-38, 30.0, -30.0, 100.0, -100.0, 800.0,
                1e10, -1e10, 1e20, -1e20, 3e38, math.huge, -math.huge, 0 / 0}

local function grid(dtype)
  local list = {}
  for _, x in ipairs(values) do
    for _, y in ipairs(values) do list[#list + 1] = {x, y} end
  end
  list = nacre.tensor(list, {dtype = "float64"})
  return nacre.view_as_complex(list):to(dtype)
end

local functions = {}
for name in ([[abs angle square reciprocal sqrt rsqrt exp exp2 expm1 log log2
  log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sinc
  sigmoid sgn]]):gmatch "%S+" do
  functions[#functions + 1] = name
end
for _, dtype in ipairs(dtypes) do
  local x = grid(dtype)
  local there = x:cuda()
  for _, name in ipairs(functions) do
    check(name, nacre[name](x), nacre[name](there), x)
  end
  check("silu", nacre.nn.functional.silu(x), nacre.nn.functional.silu(there),
        x)
end

--
-- Two operands: other dtypes, layouts, numbers
--
local function random(dtype, ...)
  if dtype == "bool" then return nacre.rand({...}):gt(0.5) end
  if dtype:find "int" then
    return nacre.randint(1, 5, {...}, {dtype = dtype})
  end
  return nacre.randn({...}, {dtype = "float64"}):add(3):to(dtype)
end

local function layouts(t)
  return {t, t:t():contiguous():t(), nacre.stack({t, t}, -1):select(-1, 2),
          t:narrow(1, 1, 1):expand(t:size()), t:narrow(2, 1, 1),
          t:reshape(-1):select(1, 1)}
end

local calls = {
  add = function(a, b) return nacre.add(a, b, {alpha = 0.5}) end,
  sub = function(a, b) return a - b end,
  mul = function(a, b) return a * b end,
  div = function(a, b) return a / b end,
  pow = function(a, b) return a ^ b end,
  addcmul = function(a, b) return a:addcmul(b, a, {value = 2}) end,
  where = function(a, b) return nacre.where(a:abs():gt(4), a, b) end,
  eq = function(a, b) return a:eq(b) end,
  number = function(a) return (2 - i) / a + i end,
}
for _, dtype in ipairs(dtypes) do
  for _, other in ipairs {"complex64", "complex128", "float16", "float32",
                          "float64", "int32", "bool"} do
    local a, b = random(dtype, 9, 7) * (1 + 0.5*i), random(other, 9, 7)
    if b:is_complex() then b = b * (0.5 - i) end
    for _, x in ipairs(layouts(a)) do
      for _, y in ipairs(layouts(b)) do
        for name, f in pairs(calls) do
          if x:dim() > 0 or name ~= "addcmul" then
            check(("%s %s %s"):format(name, dtype, other), f(x, y),
                  f(x:cuda(), y:cuda()))
          end
        end
      end
    end
    if not b:is_complex() then    -- gradients of real operands are real
      local want, got = nil, nil
      for _, device in ipairs {"cpu", "cuda"} do
        local y = b:detach():to(device, "float32"):clone():requires_grad_()
        local z = (a:to(device) * y).real:sum()
        z:backward()
        want, got = got, y.grad
      end
      check("gradient " .. other, want, got)
    end
  end
  -- into what is there: of another complex dtype
  local z = random(dtype, 5, 3) + i
  for _, to in ipairs {"complex64", "complex128"} do
    local want, got = random(to, 5, 3):mul(i), nil
    got = want:cuda()
    check("add_", want:add_(z), got:add_(z:cuda()))
    check("copy_", want:t():copy_(z:t()), got:t():copy_(z:t():cuda()))
    -- computed in the dtype of z
    want = nacre.abs(z, {out = nacre.zeros(5, 3, {dtype = to})})
    got = nacre.abs(z:cuda(), {out = nacre.zeros(5, 3, {dtype = to,
                                                       device = "cuda"})})
    check("abs, out", want:to(dtype), got:to(dtype))
  end
end

--
-- Reductions, and as many dimensions as there are
--
for _, dtype in ipairs(dtypes) do
  local angles = nacre.rand({40, 30}, {dtype = "float64"}) * 6
  local z = nacre.polar(nacre.ones_like(angles), angles):to(dtype)
  for _, x in ipairs {z, z:t(), z:narrow(2, 3, 1), z:narrow(1, 2, 0)} do
    local there = x:cuda()
    for _, name in ipairs {"sum", "mean", "prod"} do
      local adds = name ~= "prod" and x:abs() or nil
      check(name, x[name](x), there[name](there), nil,
            adds and adds[name](adds))
      for d = 1, 2 do
        check(name, x[name](x, d), there[name](there, d), nil,
              adds and adds[name](adds, d))
      end
    end
  end
  local wide = nacre.randn({2, 3, 2, 3, 2, 3, 2, 3}, {dtype = "complex128"})
  wide = wide:to(dtype)
  -- no two dimensions of it are one
  local x = nacre.zeros({3, 4, 3, 4, 3, 4, 3, 4}, {dtype = dtype})
  local there = x:cuda()
  local function inner(t)
    for d = 1, 8 do t = t:narrow(d, 2, wide:size(d)) end
    return t
  end
  inner(x):copy_(wide)
  inner(there):copy_(wide:cuda())
  check("copy", x, there)
  for _, to in ipairs {"complex64", "complex128"} do
    check("cast", inner(x):to(to), inner(there):to(to))
  end
  for _, name in ipairs {"sum", "mean", "prod"} do
    check(name .. " of 8", nacre[name](inner(x)), nacre[name](inner(there)))
    check(name .. " of 7", nacre[name](inner(x), 4),
          nacre[name](inner(there), 4))
  end
  check("conj", inner(x):conj(), inner(there):conj())
end

--
-- Indexing: elements of 16 bytes are moved as they are
--
for _, dtype in ipairs(dtypes) do
  local z = nacre.randn({300, 5}, {dtype = dtype})
  local there = z:cuda()
  local at = nacre.randint(1, 301, {300, 5})
  check("gather", z:gather(1, at), there:gather(1, at:cuda()))
  local only = nacre.randperm(300):view(-1, 1):expand(300, 5)
  check("scatter", z:scatter(1, only, z * i),
        there:scatter(1, only:cuda(), there * i))
  check("scatter_add", z:scatter_add(1, at, z * i),
        there:scatter_add(1, at:cuda(), there * i))
  check("index", z[{at}], there[{at:cuda()}])
  check("mask", z[z:abs():gt(1)], there[there:abs():gt(1)])
  check("flip", z:flip(1, 2), there:flip(1, 2))
  check("cat", nacre.cat({z, z:conj()}, 2), nacre.cat({there, there:conj()}, 2))
end

--
-- What stays on the CPU says what to call
--
local z = nacre.ones(3, {dtype = "complex64", device = "cuda"})
for _, f in ipairs {function() return z:sort() end,
                    function() return z:max() end,
                    function() return z:lt(1) end} do
  local ok, e = pcall(f)
  assert(not ok and tostring(e):find("complex", 1, true), tostring(e))
end
