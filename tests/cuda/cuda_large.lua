-- SPDX-License-Identifier: MIT
-- Tensors of more than 2^31 elements on a device, which kernels take in pieces:
-- what is made of them has a closed form. Some of it anywhere, more where there
-- are 24 GB.
-- Run by: nacre tests/cuda/cuda_large.lua, with a device, or
-- NACRE_CUDA=emulated and
-- NACRE_EMULATION=memory=6G,fill=0; with a number N, a power of 2 from 2^16 on,
-- all of it for N elements instead of 2^31, to see that the test is right

local cuda = nacre.cuda
if not cuda.is_available() then skip(cuda.why()) end
local free = cuda.mem_get_info()
local trial = math.tointeger(tonumber(arg[1]))
if free < 5 << 30 and not trial then skip "it takes 5 GB of a device" end

local full = trial or 1 << 31
local odd = full + 17
local cols = trial and 256 or 1 << 16
local device = {device = 0, dtype = "int8"}

-- Runs f, and gives back what it held.
local function part(name, f)
  local start = os.clock()
  nacre.scope(f)
  collectgarbage()
  cuda.empty_cache()
  print(("%s: %.1f s"):format(name, os.clock() - start))
end

part("fill, add in place, elements, largest", function()
  local x = nacre.full({odd}, 3, device)
  assert(x:numel() == odd and x[1] == 3 and x[odd] == 3 and x[full] == 3)
  x:add_(4)
  assert(x[1] == 7 and x[full + 1] == 7 and x[odd] == 7)
  x[odd - 1] = 9
  x[full // 2] = 8
  local most, at = x:max(1)
  assert(most:item() == 9 and at:item() == odd - 1)
  local i = nacre.tensor({1, full // 2, odd - 1, -1, -2, full},
                         {device = 0})
  assert(table.concat(x[i]:cpu():totable(), " ") == "7 8 9 7 9 7")
  x[i] = nacre.tensor({1, 2, 3, 4, 3, 5}, device)
  assert(x[1] == 1 and x[full // 2] == 2 and x[odd - 1] == 3 and x[odd] == 4)
  assert(x[full] == 5 and x[2] == 7)
end)

part("a transposing copy", function()
  local rows = odd // cols + 1
  local x = nacre.zeros(rows, cols, device)
  x[rows][cols] = 5
  x[rows][1] = 4
  x[1][cols] = 3
  x[2][3] = 2
  local y = x:t():contiguous()
  assert(y[cols][rows] == 5 and y[1][rows] == 4 and y[cols][1] == 3)
  assert(y[3][2] == 2 and y[2][3] == 0 and y[cols][rows - 1] == 0)
end)

if not trial and
   (os.getenv "NACRE_CUDA" == "emulated" or free < 24 << 30) then
  return
end

part("sums, counts, the smallest", function()
  local x = nacre.ones(odd, device)
  x[odd] = -5
  assert(x:sum():item() == odd - 6 and x:count_nonzero():item() == odd)
  assert(x:argmin():item() == odd and x:eq(1):sum():item() == odd - 1)
  assert(x[{{2, -1}}]:sum():item() == odd - 7)      -- not aligned
end)

part("cumulative sums", function()
  local y = nacre.ones(odd, {device = 0, dtype = "bool"})
                 :cumsum(1, {dtype = "int64"})
  assert(y[odd] == odd and y[full] == full and y[1] == 1)
end)

part("halves", function()
  local x = nacre.full({odd}, 0.5, {device = 0, dtype = "float16"})
  x:mul_(2):add_(1)
  assert(x[1] == 2 and x[odd] == 2 and x[full] == 2)
  assert(x:max():item() == 2 and
         math.abs(x:mean {dtype = "float32"}:item() - 2) < 1e-5)
  local rows = x[{{1, full}}]:view(-1, cols)
  local s = rows:softmax(2)
  assert(math.abs(s[1][1] * cols - 1) < 1e-2 and s[-1][-1] == s[1][1])
end)

part("5e9 elements", function()
  local n = trial and 3 * trial + 1 or 5000000000
  local x = nacre.zeros(n, device)
  x:add_(1)
  x[n] = 2
  assert(x:sum():item() == n + 1 and x:argmax():item() == n)
end)

part("the least of all", function()
  local x = nacre.zeros(odd, device)
  x[odd] = -1
  assert(x:min():item() == -1 and x:argmin():item() == odd)
  local done, e, at = pcall(x.topk, x, 1, 1, false)
  if trial then assert(done and e[1] == -1 and at[1] == odd)
  else assert(tostring(e):find "elements along a dimension, cuda:0 sorts") end
end)
