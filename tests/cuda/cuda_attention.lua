-- SPDX-License-Identifier: MIT
-- scaled_dot_product_attention on a device, in each float type: the result and
-- all gradients against float64 on the CPU; masks that matrices share; on a GPU
-- also more scores than a block has, and how much memory they take.
-- Run by: nacre tests/cuda/cuda_attention.lua, with a device, or
-- NACRE_CUDA=emulated

local cuda = nacre.cuda
if not cuda.is_available() then skip(cuda.why()) end
local attention = nacre.nn.functional.scaled_dot_product_attention
local emulated = cuda.get_device_name():find "Emulated" ~= nil
local times = emulated and 1 or 8
nacre.manual_seed(3)

-- [leading x rows x columns]
local function draw(leading, rows, columns, dtype)
  local size = table.move(leading, 1, #leading, 1, {})
  size[#size + 1], size[#size + 2] = rows, columns
  return nacre.randn(size):to(dtype)
end

-- The result and the gradients of q, k, v, for the gradient g.
local function all(given, g, device, dtype, options)
  local leaf = {}
  for i, t in ipairs(given) do
    leaf[i] = t:detach():to(device):to(dtype):requires_grad_()
  end
  local mask = options.attn_mask
  if mask then
    mask = mask:to(device)
    if mask.dtype ~= "bool" then mask = mask:to(dtype) end
  end
  local y = attention(leaf[1], leaf[2], leaf[3],
                      {attn_mask = mask, is_causal = options.is_causal})
  y:backward(g:to(device):to(dtype))
  return {y, leaf[1].grad, leaf[2].grad, leaf[3].grad}
end

-- The largest difference over the largest element.
local bound = {float64 = 1e-12, float32 = 1e-5, float16 = 5e-3, bfloat16 = 4e-2}

local function compare(what, dtype, leading, n, m, options)
  local given = {draw(leading, n, 16, dtype), draw(leading, m, 16, dtype),
                 draw(leading, m, 24, dtype)}
  local g = draw(leading, n, 24, dtype)
  local got = all(given, g, "cuda", dtype, options)
  local want = all(given, g, "cpu", "float64", options)
  for i, name in ipairs {"result", "of q", "of k", "of v"} do
    local off = (got[i]:cpu():double() - want[i]):abs():max():item() /
                want[i]:abs():max():item()
    assert(off <= bound[dtype],
           ("%s, %s, %s: off by %g"):format(what, dtype, name, off))
  end
end

-- A mask that leaves each query the first key.
local function bool(...)
  local mask = nacre.rand(...):gt(0.3)
  return mask:logical_or(nacre.arange(mask:size(-1)):eq(0))
end

for dtype in pairs(bound) do
  local n, m = 30 * times, 9 * times
  compare("plain", dtype, {2, 3}, n, m, {})
  compare("matrices", dtype, {}, n, m, {})
  compare("causal", dtype, {2, 3}, n, n, {is_causal = true})
  compare("causal, more keys", dtype, {2}, m, n, {is_causal = true})
  compare("causal, more queries", dtype, {2}, n, m, {is_causal = true})
  compare("mask", dtype, {2, 3}, n, m, {attn_mask = nacre.randn(n, m)})
  compare("mask of keys", dtype, {2, 3}, n, m, {attn_mask = bool(2, 1, 1, m)})
  compare("mask of heads", dtype, {2, 3}, n, m, {attn_mask = bool(3, n, m)})
end

if not emulated then
  compare("large", "float16", {2, 16}, 1100, 1500, {})
  compare("large, causal", "bfloat16", {1, 3}, 5000, 5000, {is_causal = true})
  local q = draw({1, 8}, 16384, 64, "bfloat16"):cuda()
  cuda.reset_peak_memory_stats()
  local before = cuda.memory_allocated()
  attention(q, q, q)
  local most = cuda.max_memory_allocated() - before
  assert(most < 1 << 29, ("it takes %d bytes"):format(most)) -- all: 4 GiB
end
print "cuda_attention: all passed"
