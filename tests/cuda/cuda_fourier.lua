-- SPDX-License-Identifier: MIT
-- Fourier transforms on a device are those of the CPU: lines along each
-- dimension, of odd lengths, beginning anywhere; more shapes than there are
-- plans; half spectra that no real line has.
-- Run by: nacre tests/cuda/cuda_fourier.lua, with a device, or
-- NACRE_CUDA=emulated; NACRE_CUFFT=none runs them on the CPU

if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
local fft = nacre.fft
nacre.manual_seed(5)

local EPS = {float32 = 2e-6, float64 = 1e-14}

local function check(what, f, x, o)
  local given, there = x:detach():clone(), x:cuda():detach():clone()
  given:requires_grad_()
  there:requires_grad_()
  local results = {}
  for _, t in ipairs {given, there} do
    local y = f(t, o)
    local parts = y:is_complex() and nacre.view_as_real(y) or y
    local weight = nacre.arange(parts:numel(), {device = t.device})
    ;(parts:reshape(-1) * (weight % 5)):sum():backward()
    results[#results + 1] = {y:detach(), t.grad}
  end
  assert(results[2][1].is_cuda, what)
  for k = 1, 2 do
    local want, got = results[1][k], results[2][k]:cpu()
    assert(want.dtype == got.dtype and nacre.equal(
      nacre.tensor(want:size()), nacre.tensor(got:size())), what)
    local off = (want - got):abs():max():item()
    local most = math.max(want:abs():max():item(), 1e-30)
    assert(off <= EPS[want:abs().dtype] * most,
           ("%s: %g of %g"):format(what, off, most))
  end
end

for _, dtype in ipairs {"float32", "float64"} do
  local complex = dtype == "float32" and "complex64" or "complex128"
  local x = nacre.randn({3, 6, 5, 4}, {dtype = dtype})
  local z = nacre.randn({3, 6, 5, 4}, {dtype = complex})
  for dim = 1, 4 do
    for _, n in ipairs {1, 2, 5, 6, 7, 16} do
      local o = {dim = dim, n = n, norm = n % 2 == 0 and "ortho" or "forward"}
      local what = ("%s along %d, %d"):format(dtype, dim, n)
      check("fft " .. what, fft.fft, z, o)
      check("ifft " .. what, fft.ifft, z, o)
      check("rfft " .. what, fft.rfft, x, o)
      check("irfft " .. what, fft.irfft, z, o)
      check("hfft " .. what, fft.hfft, z, o)
    end
  end
  check("fftn", fft.fftn, z)
  check("rfftn", fft.rfftn, x)
  check("irfft2", fft.irfft2, z)
  -- not where a complex number could begin
  local line = nacre.randn({41}, {dtype = dtype})
  for _, device in ipairs {"cpu", "cuda"} do
    local part = line:to(device):narrow(1, 2, 40)
    assert((fft.rfft(part):cpu() - fft.rfft(line:narrow(1, 2, 40))):abs():max()
           :item() < 1e-4)
  end
  assert(fft.fft(z:cuda():narrow(1, 1, 0)):numel() == 0)
end

-- ---- more than the 64 plans that are kept, and each again

for round = 1, 2 do
  for n = 3, 80 do
    local x = nacre.arange(n):double()
    local y = fft.rfft(x:cuda()):cpu()
    assert((y - fft.rfft(x)):abs():max():item() < 1e-10 * n * n,
           ("%d, round %d"):format(n, round))
  end
end
