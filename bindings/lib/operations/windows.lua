-- SPDX-License-Identifier: MIT
-- windows.lua - windows for spectra: nacre.signal.windows, as in torch.signal.
-- signal.lua has hann_window and its like.

local all = ...
local define, fail = all.define, all.fail

local OPTIONS = "dtype:dtype=nil, device:any|device=nil"

-- 0, 1, ... of m elements, in float64, and what the last counts as: the window
-- is symmetric, or the first period of one that repeats.
local function positions(op, m, symmetric, device)
  if m < 0 then fail(op, ("the length is %d"):format(m)) end
  local k = nacre.arange(0, m, {dtype = "float64", device = device})
  return k, math.max(symmetric and m - 1 or m, 1)
end

-- Fails unless a window may have this dtype, or none is given.
local function check_dtype(op, dtype)
  dtype = dtype or nacre.get_default_dtype()
  if dtype ~= "float32" and dtype ~= "float64" then
    fail(op, ("a window is float32 or float64, not %s"):format(dtype))
  end
  return dtype
end

-- What fails of the parameters of a window.
local function check_positive(op, name, v)
  if not (v > 0) then
    fail(op, ("%s is %g, but must be above 0"):format(name, v))
  end
end

local checks = {
  gaussian = function(op, _, std) check_positive(op, "std", std) end,
  exponential = function(op, sym, center, tau)
    check_positive(op, "tau", tau)
    if sym and center then
      fail(op, "the center of a symmetric window is its middle",
           "{sym = false} takes another center")
    end
  end,
}

-- define for a window: f(k, last, parameters...) gives it in float64.
local function window(name, parameters, doc, f)
  local given = select(2, parameters:gsub(":", ""))
  local op = "signal.windows." .. name
  define(op, "m:int, *, " .. parameters .. (given > 0 and ", " or "")
             .. "sym:bool=true, " .. OPTIONS, doc,
  function(m, ...)
    local v = {...}
    local sym, dtype, device = v[given + 1], v[given + 2], v[given + 3]
    local k, last = positions(op, m, sym, device)
    dtype = check_dtype(op, dtype)
    local check = checks[name]
    if check then check(op, sym, table.unpack(v, 1, given)) end
    local y = m == 1 and nacre.ones_like(k) or
              f(k, last, table.unpack(v, 1, given))
    return y:to(dtype)
  end)
end

-- a[1] - a[2]*cos(x) + a[3]*cos(2x) - ...
local function cosines(k, last, a)
  local y = nacre.zeros_like(k)
  for i, c in ipairs(a) do
    y = y + (k * (2 * math.pi * (i - 1) / last)):cos() *
            (i % 2 == 1 and c or -c)
  end
  return y
end

-- A window of signal.lua, symmetric.
local function symmetric(name, parameters, doc)
  local given = parameters == "" and 0 or 1
  define("signal.windows." .. name, "m:int, *, " .. parameters
         .. "sym:bool=true, " .. OPTIONS, doc,
  function(m, ...)
    local v = {...}
    check_dtype("signal.windows." .. name, v[given + 2])
    local older, o = nacre[name .. "_window"], {dtype = v[given + 2],
                                                device = v[given + 3]}
    if given == 0 then return older(m, not v[1], o) end
    return older(m, not v[2], v[1], o)
  end)
end

symmetric("bartlett", "", "a triangle")
symmetric("blackman", "", "three cosines")
symmetric("hann", "", "a raised cosine, 0 at the ends")
symmetric("hamming", "", "a raised cosine, 0.08 at the ends")
symmetric("kaiser", "beta:num=12, ", "i0 of a half circle, scaled")

window("nuttall", "", "four cosines", function(k, last)
  return cosines(k, last, {0.3635819, 0.4891775, 0.1365995, 0.0106411})
end)
window("general_hamming", "alpha:num=0.54", "alpha - (1 - alpha)*cos",
function(k, last, alpha) return cosines(k, last, {alpha, 1 - alpha}) end)
window("cosine", "", "half a sine", function(k, last)
  return ((k + 0.5) * (math.pi / (last + 1))):sin()
end)
window("gaussian", "std:num=1", "exp(-x*x/2) of the distance from the middle",
function(k, last, std)
  return (-((k - last / 2) / std):square() / 2):exp()
end)
window("exponential", "center:num=nil, tau:num=1",
       "exp(-|k - center|/tau); the center is the middle",
function(k, last, center, tau)
  return (-(k - (center or last / 2)):abs() / tau):exp()
end)

define("signal.windows.general_cosine",
       "m:int, *, a:nums, sym:bool=true, " .. OPTIONS,
       "a[1] - a[2]*cos(x) + a[3]*cos(2*x) - ...",
function(m, a, sym, dtype, device)
  local op = "signal.windows.general_cosine"
  if type(a) == "table" and #a == 0 then
    fail(op, "a is empty: it needs a coefficient")
  end
  local k, last = positions(op, m, sym, device)
  dtype = check_dtype(op, dtype)
  local y = m == 1 and nacre.ones_like(k) or
            cosines(k, last, type(a) == "table" and a or {a})
  return y:to(dtype)
end)
