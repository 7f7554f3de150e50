-- SPDX-License-Identifier: MIT
-- fft.lua - nacre.fft: discrete Fourier transforms of real and complex tensors,
-- over the operator _fourier, which takes complex numbers as pairs. Names,
-- options and results are those of torch.fft; dimensions count from 1.

local all = ...
local define, fail = all.define, all.fail

-- The factor of a transform of n elements. A transform back has by default 1/n.
local function factor(norm, n, inverse)
  if norm == "ortho" then return n ^ -0.5 end
  return (norm == "forward") ~= inverse and 1 / n or 1
end

local function as_float(x)
  if x.dtype == "float16" or x.dtype == "bfloat16" then
    return x:to "float32"
  end
  return (x:is_floating_point() or x:is_complex()) and x or
         x:to(nacre.get_default_dtype())
end

local function as_complex(x)
  x = as_float(x)
  if x:is_complex() then return x end
  return x:to(x.dtype == "float64" and "complex128" or "complex64")
end

local function as_real(op, x)
  if x:is_complex() then
    fail(op, "takes real numbers; nacre.fft.fft takes complex ones", nil,
         "input", x)
  end
  return as_float(x)
end

-- One transform along a dimension of x; n: its elements, or nil for all.
local function transform(x, n, dim, inverse, scale)
  x = as_complex(x)
  return nacre.view_as_complex(nacre._fourier(
    nacre.view_as_real(x), dim, n or x:size(dim), "complex", inverse, scale))
end

-- Half of the spectrum of real x.
local function half(x, n, dim, scale)
  return nacre.view_as_complex(nacre._fourier(
    x, dim, n or x:size(dim), "of_real", false, scale))
end

-- The n real numbers of half a spectrum.
local function to_real(x, n, dim, scale)
  x = as_complex(x)
  n = n or 2 * (x:size(dim) - 1)
  return nacre._fourier(nacre.view_as_real(x:contiguous()), dim, n, "to_real",
                        true, scale)
end

local NORM = "norm:backward|ortho|forward=backward"
local ONE = "input, n:int=nil, dim:dim=-1, " .. NORM

local function length(x, n, dim) return n or x:size(dim) end

-- A real result has by default twice the elements, but the first and last.
local function real_length(x, n, dim) return n or 2 * (x:size(dim) - 1) end

define("fft.fft", ONE, "the discrete Fourier transform along a dimension",
function(x, n, dim, norm)
  n = length(x, n, dim)
  return transform(x, n, dim, false, factor(norm, n, false))
end)

define("fft.ifft", ONE, "the inverse of fft",
function(x, n, dim, norm)
  n = length(x, n, dim)
  return transform(x, n, dim, true, factor(norm, n, true))
end)

define("fft.rfft", ONE,
       "the first n/2 + 1 elements of fft, which tell the others of real input",
function(x, n, dim, norm)
  x = as_real("fft.rfft", x)
  n = length(x, n, dim)
  return half(x, n, dim, factor(norm, n, false))
end)

define("fft.irfft", ONE, "the inverse of rfft: n real numbers",
function(x, n, dim, norm)
  n = real_length(x, n, dim)
  return to_real(x, n, dim, factor(norm, n, true))
end)

define("fft.hfft", ONE,
       "the n real elements of the spectrum of a signal of which half is given",
function(x, n, dim, norm)
  n = real_length(x, n, dim)
  return to_real(as_complex(x):conj(), n, dim, factor(norm, n, false))
end)

define("fft.ihfft", ONE, "the inverse of hfft: half a signal",
function(x, n, dim, norm)
  x = as_real("fft.ihfft", x)
  n = length(x, n, dim)
  return half(x, n, dim, factor(norm, n, true)):conj()
end)

--
-- Several dimensions
--
-- The dimensions and the lengths there: those given, or the last ones, or all.
local function plan(op, x, s, dim)
  local dims, sizes = {}, {}
  if type(s) == "number" then s = {s} end
  if type(dim) == "number" then dim = {dim} end
  if dim then dims = dim
  else
    local count = s and #s or x:dim()
    for i = 1, count do dims[i] = x:dim() - count + i end
  end
  if s and #s ~= #dims then
    fail(op, ("%d sizes for %d dimensions"):format(#s, #dims))
  end
  if #dims == 0 then fail(op, "needs at least one dimension") end
  for i = 1, #dims do sizes[i] = s and s[i] ~= -1 and s[i] or nil end
  return dims, sizes
end

-- Transforms along the first `count' of dims.
local function along(x, dims, sizes, count, norm, inverse)
  for i = count, 1, -1 do
    local n = length(x, sizes[i], dims[i])
    x = transform(x, n, dims[i], inverse, factor(norm, n, inverse))
  end
  return x
end

-- The forms of several dimensions, with names that end in 2 and n.
local forms = {}

function forms.fft(x, dims, sizes, norm)
  return along(as_complex(x), dims, sizes, #dims, norm, false)
end

function forms.ifft(x, dims, sizes, norm)
  return along(as_complex(x), dims, sizes, #dims, norm, true)
end

function forms.rfft(x, dims, sizes, norm, op)
  x = as_real(op, x)
  local n = length(x, sizes[#dims], dims[#dims])
  x = half(x, n, dims[#dims], factor(norm, n, false))
  return along(x, dims, sizes, #dims - 1, norm, false)
end

function forms.irfft(x, dims, sizes, norm)
  x = along(as_complex(x), dims, sizes, #dims - 1, norm, true)
  local n = real_length(x, sizes[#dims], dims[#dims])
  return to_real(x, n, dims[#dims], factor(norm, n, true))
end

function forms.hfft(x, dims, sizes, norm)
  x = along(as_complex(x), dims, sizes, #dims - 1, norm, false)
  local n = real_length(x, sizes[#dims], dims[#dims])
  return to_real(x:conj(), n, dims[#dims], factor(norm, n, false))
end

function forms.ihfft(x, dims, sizes, norm, op)
  x = as_real(op, x)
  local n = length(x, sizes[#dims], dims[#dims])
  x = half(x, n, dims[#dims], factor(norm, n, true)):conj()
  return along(x, dims, sizes, #dims - 1, norm, true)
end

for _, kind in ipairs {"fft", "ifft", "rfft", "irfft", "hfft", "ihfft"} do
  local f = forms[kind]
  for ending, default in pairs {["2"] = "{-2, -1}", n = "nil"} do
    local name = "fft." .. kind .. ending
    define(name, "input, s:ints=nil, dim:dims=nil, " .. NORM,
           kind .. (ending == "2" and " along the last two dimensions, or dim"
                                   or " along all dimensions, or dim"),
    function(x, s, dim, norm)
      if not dim and default ~= "nil" then dim = {-2, -1} end
      local dims, sizes = plan(name, x, s, dim)
      return f(x, dims, sizes, norm, name)
    end)
  end
end

--
-- Frequencies
--
local FREQUENCIES = "n:int, d:num=1, *, dtype:dtype=nil, device:any|device=nil"

local function options(dtype, device)
  return {dtype = dtype or nacre.get_default_dtype(), device = device}
end

define("fft.fftfreq", FREQUENCIES,
       "the frequencies of the elements of fft, for samples d apart",
function(n, d, dtype, device)
  local o = options(dtype, device)
  local up = nacre.arange(0, (n - 1) // 2 + 1, o)
  return nacre.cat({up, nacre.arange(-(n // 2), 0, o)}, 1) / (n * d)
end)

define("fft.rfftfreq", FREQUENCIES, "the frequencies of the elements of rfft",
function(n, d, dtype, device)
  return nacre.arange(0, n // 2 + 1, options(dtype, device)) / (n * d)
end)

-- Turns each dimension by half its size; back by the other half.
local function shifted(x, dim, part)
  if type(dim) == "number" then dim = {dim} end
  if not dim then
    dim = {}
    for d = 1, x:dim() do dim[d] = d end
  end
  for _, d in ipairs(dim) do x = x:roll(part(x:size(d)), d) end
  return x
end

define("fft.fftshift", "input, dim:dims=nil",
       "the frequency 0 moved to the middle",
function(x, dim)
  return shifted(x, dim, function(n) return n // 2 end)
end)

define("fft.ifftshift", "input, dim:dims=nil", "the inverse of fftshift",
function(x, dim)
  return shifted(x, dim, function(n) return -(n // 2) end)
end)
