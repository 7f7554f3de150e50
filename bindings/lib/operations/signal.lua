-- SPDX-License-Identifier: MIT
-- signal.lua - convolution and correlation of signals, windows, phases. Names
-- and modes are NumPy's and SciPy's.

local all = ...
all.require "nacre.checks"
local define, fail = all.define, all.fail

-- ---- convolution

-- Products of a float signal with a shorter one of more elements go by Fourier
-- transforms: measured, they are faster from about here on.
local SHORT = 128

-- The elements of the whole convolution, of n and k elements, that a mode
-- gives: where the first is (from 1), and how many.
local function part(mode, n, k)
  local long, short = math.max(n, k), math.min(n, k)
  if mode == "full" then return 1, long + short - 1 end
  if mode == "same" then return (short - 1) // 2 + 1, long end
  return short, long - short + 1
end

-- A length of lines for transforms: at least n, with small factors.
local function good_length(n)
  while true do
    local rest = n
    for _, f in ipairs {2, 3, 5} do
      while rest % f == 0 do rest = rest // f end
    end
    if rest == 1 then return n end
    n = n + 1
  end
end

-- Products of complex numbers, pairs in the last dimension.
local function times(a, b)
  local ar, ai = a:select(-1, 1), a:select(-1, 2)
  local br, bi = b:select(-1, 1), b:select(-1, 2)
  return nacre.stack({ar * br - ai * bi, ar * bi + ai * br}, -1)
end

-- The whole convolution along each of dims, by transforms of all of them.
local function by_transforms(a, b, dims)
  local last, sizes = dims[#dims], {}
  for i, d in ipairs(dims) do
    sizes[i] = good_length(a:size(d) + b:size(d) - 1)
  end
  local function spectrum(x)
    x = x:_fourier(last, sizes[#dims], "of_real")
    for i = 1, #dims - 1 do x = x:_fourier(dims[i], sizes[i], "complex") end
    return x
  end
  local y, count = times(spectrum(a), spectrum(b)), 1
  for i = 1, #dims - 1 do
    y = y:_fourier(dims[i], sizes[i], "complex", true)
  end
  for _, n in ipairs(sizes) do count = count * n end
  return y:_fourier(last, sizes[#dims], "to_real", true, 1 / count)
end

-- Sums of windows of a, of k elements, times those of `weights', turned: exact
-- for integers.
local function by_windows(a, weights)
  local k = weights:size(1)
  local edge = nacre.zeros(k - 1, all.like(a))
  local windows = nacre.cat {edge, a, edge}:unfold(1, k, 1)
  return windows:matmul(weights:flip(1))
end

local function check_signals(op, a, v, name_a, name_v)
  for name, t in pairs {[name_a] = a, [name_v] = v} do
    all.check_dims(op, t, name, 1)
    if t:numel() == 0 then fail(op, ("{%s} is empty"):format(name), nil, name,
                                t) end
  end
end

local function common(a, v)
  local dtype = nacre.promote_types(a.dtype, v.dtype)
  if dtype == "bool" then dtype = "int64" end
  return a:to(dtype), v:to(dtype), dtype
end

-- The shorter one is the weights: convolution does not care which is which.
local function convolved(a, v, mode)
  local dtype
  a, v, dtype = common(a, v)
  local n, k = a:size(1), v:size(1)
  if k > n then a, v = v, a end
  local y
  if a:is_floating_point() and math.min(n, k) > SHORT then
    y = by_transforms(all.widen(a), all.widen(v), {1}):to(dtype)
  else y = by_windows(a, v) end
  local first, count = part(mode, n, k)
  return y:narrow(1, first, count)
end

-- Vectors of n and k elements: n+k-1 (full), max(n, k) (same), or the elements
-- to which no edge contributes (valid). Numbers and bool as in a product;
-- integers exactly.
define("convolve", "a:tensor, v:tensor, mode:full|same|valid=full",
       "convolution of two vectors",
function(a, v, mode)
  check_signals("convolve", a, v, "a", "v")
  return convolved(a, v, mode):contiguous()
end)

-- Element k of the whole one is the sum over i of a[i + k] * v[i]. Sizes are
-- those of convolve.
define("correlate", "a:tensor, v:tensor, mode:full|same|valid=valid",
       "cross-correlation of two vectors",
function(a, v, mode)
  check_signals("correlate", a, v, "a", "v")
  local y = convolved(a, v:flip(1), mode)
  -- NumPy's rule: in `same' of a longer v the middle is another one
  if mode == "same" and v:size(1) > a:size(1) and a:size(1) % 2 == 0 then
    y = convolved(a, v:flip(1), "full"):narrow(1, a:size(1) // 2 + 1,
                                               v:size(1))
  end
  return y:contiguous()
end)

-- Floats with as many dimensions, whose sizes are equal (or 1) but along dim.
-- SciPy's modes: same has the size of in1; valid needs one that is at least as
-- large in every dim.
define("fftconvolve", "in1:tensor, in2:tensor, mode:full|same|valid=full, "
       .. "dim:dims=nil",
       "convolution along dims (default: all) by Fourier transforms",
function(a, b, mode, dims)
  local op = "fftconvolve"
  all.check_float(op, a, "in1")
  all.check_float(op, b, "in2")
  if a:dim() ~= b:dim() or a:dim() == 0 then
    fail(op, ("{in1} has %d dimensions, {in2} has %d"):format(a:dim(), b:dim()),
         nil, "in1", a, "in2", b)
  end
  dims = all.list_dims(op, a, dims)
  local dtype = nacre.promote_types(a.dtype, b.dtype)
  a, b = all.widen(a:to(dtype)), all.widen(b:to(dtype))
  local larger = {}
  for _, d in ipairs(dims) do
    local n, k = a:size(d), b:size(d)
    if n == 0 or k == 0 then fail(op, ("dimension %d is empty"):format(d)) end
    larger[n > k and 1 or n < k and 2 or 0] = true
  end
  if mode == "valid" and larger[1] and larger[2] then
    fail(op, 'for mode "valid" one operand must be at least as large as the '
         .. "other in every dimension", nil, "in1", a, "in2", b)
  end
  local y = by_transforms(a, b, dims)
  for _, d in ipairs(dims) do
    local n, k = a:size(d), b:size(d)
    local first, count = part(mode, n, k)
    if mode == "same" then first, count = (k - 1) // 2 + 1, n end
    y = y:narrow(d, first, count)
  end
  return y:contiguous():to(dtype)
end)

-- ---- windows

local options = "periodic:bool=true, %s*, dtype:dtype=nil, "
                .. "device:any|device=nil"

-- A window of n elements, from f(angle, number...) of angles 0 .. 2 pi, which
-- float64 computes.
local function window(name, more, doc, f)
  define(name, "window_length:int, " .. options:format(more or ""), doc,
  function(n, periodic, a, b, c, d)
    local extra = {a, b, c, d}
    local numbers = more and select(2, more:gsub(":", "")) or 0
    local dtype = extra[numbers + 1] or nacre.get_default_dtype()
    local device = extra[numbers + 2]
    if n < 0 then fail(name, ("window_length is %d, must not be negative")
                             :format(n)) end
    if not dtype:find "float" then
      fail(name, ("needs a float dtype, not %s"):format(dtype))
    end
    local wide = {dtype = "float64", device = device}
    if n == 1 then return nacre.ones(1, wide):to(dtype) end
    local steps = periodic and n or n - 1
    local angle = nacre.arange(n, wide) * (2 * math.pi / math.max(steps, 1))
    return f(angle, table.unpack(extra, 1, numbers)):to(dtype)
  end)
end

-- periodic: for transforms, as if one more element closed the period; else
-- symmetric, as NumPy's are.
window("hann_window", nil, "0.5 - 0.5 cos: a raised cosine",
       function(x) return 0.5 - 0.5 * x:cos() end)
window("hamming_window", "alpha:num=0.54, beta:num=0.46, ",
       "alpha - beta cos: a raised cosine that does not end at 0",
       function(x, alpha, beta) return alpha - beta * x:cos() end)
window("blackman_window", nil, "0.42 - 0.5 cos + 0.08 cos of twice the angle",
function(x) return 0.42 - 0.5 * x:cos() + 0.08 * (2 * x):cos() end)
window("bartlett_window", nil, "a triangle",
       function(x) return 1 - (x / math.pi - 1):abs() end)
window("kaiser_window", "beta:num=12.0, ",
       "i0 of beta times a half circle, over i0(beta)",
function(x, beta)
  local at = x / math.pi - 1
  local whole = nacre.tensor(beta, {dtype = "float64", device = x.device})
  return (beta * (1 - at * at):clamp_min(0):sqrt()):i0() / whole:i0()
end)

-- ---- phases

-- Steps of more than discont (at least half a period) are replaced by what they
-- are less whole periods. Floats.
define("unwrap", "self, discont:num=nil, dim:dim=-1, *, "
       .. "period:num=6.283185307179586",
       "phases whose jumps are taken out by adding whole periods along dim",
function(self, discont, dim, period)
  all.check_float("unwrap", self, "self")
  local n = self:dim() > 0 and self:size(dim) or 0
  if n < 2 then return self:clone() end
  local half = period / 2
  local step = self:diff(1, dim)
  local near = (step + half):remainder(period) - half
  near = nacre.where(near:eq(-half):logical_and(step:gt(0)), half, near)
  local small = step:abs():lt(math.max(discont or half, half))
  local change = nacre.where(small, 0.0, near - step)
  local rest = self:narrow(dim, 2, n - 1) + change:cumsum(dim)
  return nacre.cat({self:narrow(dim, 1, 1), rest}, dim)
end)
