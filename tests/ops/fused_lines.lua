-- SPDX-License-Identifier: MIT
-- Reductions of the last dimension in a fused function give the bits of the
-- function itself: for each reduction, lines of many lengths, numbers of lines
-- and threads, dtypes and layouts.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check = O.check
nacre.manual_seed(5)

local lib = dofile(here .. "../lib/fused.lua")(O)
local same, softmax = lib.same, lib.softmax
local standardize, logsumexp = lib.standardize, lib.logsumexp

local together = 0
local function compare(f, what, ...)
  local ok, fused = lib.compare(f, what, ...)
  check(ok, "%s fails", what)
  local text = fused:explain(...)
  if not text:find "part 2" and text:find "part 1, fused" then
    together = together + 1
  end
  return text
end

local function in_place(x, w)
  local y = x * 1
  y:sub_(y:mean(-1, true)):mul_(w)
  return y, y:sum(-1, true):gt(0), y:gt(y:mean(-1, true))
end

local lengths = {1, 16, 31, 32, 33, 50, 64, 100, 127, 128, 250, 1000, 1023,
                 1024, 1025, 2048, 4095, 4096, 4097, 9000}
for _, n in ipairs(lengths) do
  for _, lines in ipairs {1, 2, 7, 33} do
    for _, t in ipairs {"float32", "float64", "float16"} do
      local x = nacre.randn(lines, n):to(t)
      local w, b = nacre.randn(n):to(t), nacre.randn(n):to(t)
      local what = ("%dx%d %s"):format(lines, n, t)
      compare(softmax, "softmax " .. what, x)
      compare(standardize, "standardize " .. what, x, w, b)
      compare(logsumexp, "logsumexp " .. what, x)
      compare(in_place, "in place " .. what, x, w)
    end
  end
end

-- Each reduction; between two operations and alone.
for _, op in ipairs(O.operations()) do
  if op.kind == "reduce" then
    local f = nacre[op.name]
    for _, t in ipairs {"float32", "float64", "int32", "bool", "bfloat16"} do
      local x = (nacre.randn(9, 100) * 3):to(t)
      local function between(v)
        local y = f(v * v, -1, true)
        return y, v * y, y + 1
      end
      local ok, e = pcall(between, x)
      if ok then
        compare(between, op.name .. " of " .. t, x)
        compare(function(v) return f(v, -1, true) + v end, op.name, x)
        compare(function(v) return f(v, -1, true) end, op.name, x)
        compare(function(v) return f(v * 2, 1, true) + v end, op.name, x)
        compare(function(v) return f(v * 2, -1) end, op.name, x)
      else
        check(not pcall(nacre.fuse(between), x), "%s of %s: %s", op.name, t, e)
      end
    end
  end
end

-- Layouts, more dimensions, threads, and results beyond the cache.
local x = nacre.randn(64, 40, 100)
local w = nacre.randn(100)
compare(standardize, "three dimensions", x, w, w)
compare(standardize, "permuted", x:permute(2, 1, 3), w, w)
compare(standardize, "transposed", nacre.randn(100, 64):t(), w, w)
compare(standardize, "strided", x:narrow(3, 3, 64), w:narrow(1, 1, 64),
        nacre.randn(40, 1))
compare(standardize, "broadcast", nacre.randn(1, 100):expand(30, 100), w, w)
compare(softmax, "no lines", nacre.zeros(0, 100))
compare(softmax, "a vector", nacre.randn(1000))
for threads = 1, 3 do
  nacre.set_num_threads(threads)
  compare(standardize, threads .. " threads", nacre.randn(3000, 1000),
          nacre.randn(1000), nacre.randn(1000))
end
do -- of zeros of both signs the extreme is the first, however it is computed
  local zeros = nacre.zeros(40, 33) * nacre.randn(40, 33)
  for name, other in pairs {max = -1, min = 1} do
    zeros:narrow(2, 1, 1):fill_(other)
    compare(function(v)
      local m = v[name](v, -1, true)
      return m * 0.5, v - m
    end, name .. " of zeros", zeros)
  end
end
do -- no tensor has the shape of the differences
  local function nearest(a, b)
    return (a:unsqueeze(2) - b:unsqueeze(1)):square():sum(-1)
  end
  for _, n in ipairs {32, 50, 64, 1000} do
    local text = compare(nearest, "distances", nacre.randn(30, n),
                         nacre.randn(7, n))
    check(text:find "fused over %[30x7x", "%s", text)
  end
end
local large = nacre.randn(9000, 1024)
local text = compare(softmax, "large", large)
check(text:find "amax.*sub.*exp.*sum.*true_divide", "one part: %s", text)

-- Gradients, in one pass too: the bits of those of the function itself. The sum
-- of all results has one gradient for all elements, that of a product does not.
local function grads(f, weigh, ...)
  local x = {}
  for i, t in ipairs {...} do x[i] = t:detach():requires_grad_() end
  local y, total = table.pack(f(table.unpack(x))), nil
  for _, r in ipairs(y) do
    if r.requires_grad then
      local one = weigh and r * nacre.linspace(-1, 1, r:numel(), {
        dtype = r.dtype}):view(r:size()) or r
      total = total and total + one:sum() or one:sum()
    end
  end
  total:backward()
  for i, t in ipairs(x) do x[i] = t.grad end
  return x, tostring(y[1].grad_fn)
end

local function folds(x, w)
  local s = x:sum(-1, true)
  return x * s + w, x - s * 0.5, x:abs():sum(-1, true) + s
end

local function extremes(x)
  local low = x:amin(-1, true)
  return (x - low) / (x:amax(-1, true) - low)
end

local function without_dim(x, w)
  local m = (x * w):mean(-1):unsqueeze(-1)
  local d = x - m
  return d:square(), d:view(-1) * 2
end

local function in_order(x, w, b)               -- results as they are made
  local y, scale, d = standardize(x, w, b)
  return d, scale, y
end

local function norms(x)
  return x / x:norm(2, -1, true), x * x:norm(1, -1, true)
end

local function products(x, w)                  -- with zeros, and without
  local y = nacre.where(w:gt(0.01), x, 1)
  return y * y:prod(-1, true), x:clamp(0.1):prod(-1, true) - x
end

local F, weights = nacre.nn.functional, {}
local function normalized(x, w)                -- without gradients of weights
  local n = {x:size(-1)}
  local own = weights[x.dtype .. n[1]]
  local y = F.layer_norm(x, n, own, own) * w + F.rms_norm(x, n, own)
  return y, F.layer_norm(y, n)
end

local one_node = 0
for index, f in ipairs {softmax, in_order, folds, extremes,
                       without_dim, norms, products, normalized} do
  for _, n in ipairs {32, 50, 64, 1000, 1024, 4096} do
    for _, t in ipairs {"float32", "float64"} do
      local v = nacre.randn(6, n):round {decimals = 1}:to(t)  -- equal elements
      local u = nacre.rand(n):to(t)
      weights[t .. n] = weights[t .. n] or nacre.randn(n):to(t)
      for weigh = 0, 1 do
        local want = grads(f, weigh == 1, v, u, u)
        local got, name = grads(nacre.fuse(f), weigh == 1, v, u, u)
        if name == "<fused>" then one_node = one_node + 1 end
        check(index < 7 or n % 64 > 0 or name == "<fused>",
              "function %d of %d has %s", index, n, name)
        for i = 1, 3 do
          check(not want[i] and not got[i] or same(want[i], got[i]),
                "gradient %d of 6x%d %s, function %d, %d, %s", i, n, t, index,
                weigh, name)
        end
      end
    end
  end
end
check(one_node > 80, "only %d with a node of their own", one_node)

check(together > 300, "only %d were fused in one part", together)
print(together .. " in one part")
O.done("fused_lines")
