-- SPDX-License-Identifier: MIT
-- stft.lua - short-time Fourier transforms: spectra of windows that slide over
-- a signal, and the signal of such spectra. Semantics are PyTorch's; the result
-- is always complex.

local all = ...
local define, fail = all.define, all.fail

-- The window of n_fft elements: ones if none is given; a shorter one stands in
-- the middle.
local function whole_window(op, window, win_length, n_fft, x)
  if win_length < 1 or win_length > n_fft then
    fail(op, ("win_length is %d, but must be from 1 to n_fft, %d")
         :format(win_length, n_fft))
  end
  local dtype = x.dtype:gsub("complex128", "float64")
                       :gsub("complex64", "float32")
  window = window or nacre.ones(win_length, {dtype = dtype, device = x.device})
  if window:dim() ~= 1 or window:size(1) ~= win_length then
    fail(op, ("the window has not the length %d"):format(win_length), nil,
         "window", window)
  end
  local left = (n_fft - win_length) // 2
  return nacre.nn.functional.pad(window, {left, n_fft - win_length - left})
end

define("stft",
       "self, n_fft:int, hop_length:int=nil, win_length:int=nil, "
       .. "window:tensor=nil, "
       .. "center:bool=true, pad_mode:text=reflect, normalized:bool=false, "
       .. "onesided:bool=nil, return_complex:bool=true",
       "spectra of windows that slide over signals: [... x frequency x time]",
function(x, n_fft, hop, win, window, center, mode, normalized, onesided,
         return_complex)
  local op, batched = "stft", x:dim() == 2
  hop, win = hop or n_fft // 4, win or n_fft
  if x:dim() ~= 1 and not batched then
    fail(op, "a signal has 1 dimension, or 2 with a batch", nil, "self", x)
  end
  if hop < 1 then fail(op, ("hop_length is %d"):format(hop)) end
  window = whole_window(op, window, win, n_fft, x)
  if center then
    local half = n_fft // 2
    x = nacre.nn.functional.pad(batched and x:unsqueeze(2) or x:view(1, 1, -1),
                                {half, half}, mode)
    x = batched and x:squeeze(2) or x:view(-1)
  end
  if n_fft < 1 or n_fft > x:size(-1) then
    fail(op, ("n_fft is %d, but must be from 1 to the length %d")
         :format(n_fft, x:size(-1)))
  end
  if onesided == nil then onesided = not x:is_complex() end
  local frames = x:unfold(-1, n_fft, hop) * window
  local norm = normalized and "ortho" or "backward"
  local f = onesided and nacre.fft.rfft or nacre.fft.fft
  local y = f(frames, nil, -1, norm):transpose(-2, -1)
  return return_complex and y or nacre.view_as_real(y)
end)

-- Adds overlapping frames [batch x time x n], each hop after the one before.
local function overlap_add(frames, hop)
  local batch, count, n = frames:size(1), frames:size(2), frames:size(3)
  local total = n + hop * (count - 1)
  local at = nacre.arange(0, count, {device = frames.device}):view(-1, 1) * hop
             + nacre.arange(1, n + 1, {device = frames.device})
  local y = nacre.zeros({batch, total}, {dtype = frames.dtype,
                                         device = frames.device})
  return y:index_add(2, at:reshape(-1), frames:reshape(batch, -1))
end

define("istft",
       "self, n_fft:int, hop_length:int=nil, win_length:int=nil, "
       .. "window:tensor=nil, "
       .. "center:bool=true, normalized:bool=false, onesided:bool=nil, "
       .. "length:int=nil, return_complex:bool=false",
       "the signal of which stft gives these spectra, by least squares",
function(z, n_fft, hop, win, window, center, normalized, onesided, length,
         return_complex)
  local op, batched = "istft", z:dim() == 3
  hop, win = hop or n_fft // 4, win or n_fft
  if not z:is_complex() or z:dim() ~= 2 and not batched then
    fail(op, "takes complex spectra [frequency x time], or a batch of them",
         nil, "self", z)
  end
  window = whole_window(op, window, win, n_fft, z)
  z = (batched and z or z:unsqueeze(1)):transpose(-2, -1)
  if onesided == nil then onesided = z:size(-1) ~= n_fft end
  if z:size(-1) ~= (onesided and n_fft // 2 + 1 or n_fft) then
    fail(op, ("there are %d frequencies, not %d"):format(
      z:size(-1), onesided and n_fft // 2 + 1 or n_fft))
  end
  local norm = normalized and "ortho" or "backward"
  if not onesided and not return_complex then  -- the other half says the same
    z, onesided = z:narrow(-1, 1, n_fft // 2 + 1), true
  end
  local f = onesided and nacre.fft.irfft or nacre.fft.ifft
  local frames = f(z, n_fft, -1, norm)
  local count = frames:size(2)
  local weight = overlap_add((window * window):view(1, 1, -1)
                             :expand(1, count, -1), hop)
  local y
  if frames:is_complex() then
    y = nacre.complex(overlap_add(frames.real * window, hop),
                      overlap_add(frames.imag * window, hop))
  else
    y = overlap_add(frames * window, hop)
  end
  local first = center and n_fft // 2 or 0
  local last = length and first + length or y:size(-1) - first
  local kept = math.min(last, y:size(-1))
  weight = weight:narrow(-1, first + 1, kept - first)
  if weight:abs():min():item() < 1e-11 then
    fail(op, "the windows leave elements that none of them covers")
  end
  y = y:narrow(-1, first + 1, kept - first) / weight
  if last > kept then
    y = nacre.cat({y, nacre.zeros({y:size(1), last - kept},
                                  {dtype = y.dtype, device = y.device})}, 2)
  end
  return batched and y or y:squeeze(1)
end)
