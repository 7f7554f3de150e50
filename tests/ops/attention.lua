-- SPDX-License-Identifier: MIT
-- scaled_dot_product_attention, which works on blocks of scores, is what its
-- formula gives with all scores: values, gradients, masks, more queries or keys
-- than a block has.

local F, grad = nacre.nn.functional, nacre.autograd.grad
nacre.manual_seed(1)

local function formula(q, k, v, o)
  local s = q:matmul(k:transpose(-2, -1)) *
            (o.scale or 1 / math.sqrt(q:size(-1)))
  local mask = o.attn_mask
  if o.is_causal then
    mask = nacre.ones(q:size(-2), k:size(-2), {dtype = "bool"}):tril()
  end
  if mask and mask.dtype == "bool" then s = nacre.where(mask, s, -math.huge)
  elseif mask then s = s + mask end
  return s:softmax(-1):matmul(v)
end

local function check(what, a, b, dtype)
  local worst = (a - b):abs():max():item()
  assert(worst < (dtype == "float64" and 1e-13 or 2e-5),
         ("%s, %s: %g"):format(what, dtype, worst))
end

local shapes = {
  {{2, 3, 100, 16}, {2, 3, 150, 16}, {2, 3, 150, 24}},
  {{300, 8}, {300, 8}, {300, 8}},
  {{4, 1, 64, 64}, {4, 128, 64}, {128, 5}},
  {{2, 2, 200, 33}, {1, 2, 200, 33}, {2, 1, 200, 33}},
  {{1, 1, 4}, {3, 1, 4}, {3, 1, 2}},
}
local function options(n, m, dtype)
  local bool = nacre.rand(n, m):gt(0.3)
  bool[{{}, 1}] = true                    -- each query has a key
  return {plain = {}, causal = {is_causal = true}, scale = {scale = 0.3},
          mask = {attn_mask = nacre.randn(n, m):to(dtype)},
          row = {attn_mask = nacre.randn(1, m):to(dtype)},
          bool = {attn_mask = bool}}
end

for _, size in ipairs(shapes) do
  for _, dtype in ipairs {"float64", "float32"} do
    local n, m = size[1][#size[1] - 1], size[2][#size[2] - 1]
    for what, o in pairs(options(n, m, dtype)) do
      local list = {}
      for i = 1, 3 do
        list[i] = nacre.randn(size[i]):to(dtype):requires_grad_()
      end
      local y = F.scaled_dot_product_attention(list[1], list[2], list[3], o)
      local z = formula(list[1], list[2], list[3], o)
      local g = {grad_outputs = nacre.randn(y:size()):to(dtype)}
      check(what, y, z, dtype)
      local ours, theirs = {grad(y, list, g)}, {grad(z, list, g)}
      for i = 1, 3 do check(what .. ", gradient", ours[i], theirs[i], dtype) end
    end
  end
end

-- operands that are views: heads within features, as MultiheadAttention has
-- them
local x = nacre.randn(2, 70, 3 * 32)
local function heads(i)
  return x:narrow(3, 32 * i + 1, 32):reshape(2, 70, 4, 8):transpose(2, 3)
end
check("heads", F.scaled_dot_product_attention(heads(0), heads(1), heads(2)),
      formula(heads(0), heads(1), heads(2), {}), "float32")

-- a query without keys is 0, others are not
local none = nacre.ones(4, 4):tril():bool()
none[1] = false
local y = F.scaled_dot_product_attention(nacre.randn(4, 2), nacre.randn(4, 2),
                                         nacre.randn(4, 2), none)
assert(y[1]:eq(0):all():item() and y[2]:ne(0):all():item() and
       y:isfinite():all():item())

-- second derivatives, a mask with a gradient, dropout: by operations
local q, k, v = nacre.randn(2, 5, 4):double():requires_grad_(),
                nacre.randn(2, 6, 4):double():requires_grad_(),
                nacre.randn(2, 6, 3):double():requires_grad_()
local mask = nacre.randn(5, 6):double():requires_grad_()
assert(nacre.autograd.gradgradcheck(F.scaled_dot_product_attention, {q, k, v}))
assert(nacre.autograd.gradcheck(F.scaled_dot_product_attention,
                                {q, k, v, mask}))
local dropped = F.scaled_dot_product_attention(q, k, v, {dropout_p = 0.5})
assert(dropped.shape[3] == 3)

-- halves compute in float32
local h = nacre.randn(3, 80, 16)
local got = F.scaled_dot_product_attention(h:half(), h:half(), h:half())
assert(got.dtype == "float16")
assert((got:float() - formula(h, h, h, {})):abs():max():item() < 2e-2)

-- results do not depend on threads
local before, t = nacre.get_num_threads(), nacre.randn(4, 300, 32)
nacre.set_num_threads(1)
local one = F.scaled_dot_product_attention(t, t, t, {is_causal = true})
nacre.set_num_threads(2)
assert(one:equal(F.scaled_dot_product_attention(t, t, t, {is_causal = true})))
nacre.set_num_threads(before)

-- a mask lies where it is, whatever the default device
if nacre.cuda.is_available() then
  local device = nacre.get_default_device()
  nacre.set_default_device(device.type == "cpu" and "cuda" or "cpu")
  for _, where in ipairs {"cpu", "cuda"} do
    local a = nacre.randn(4, 4, {device = where})
    local bool = nacre.ones(4, 4, {device = where}):gt(0)
    check("bool on " .. where, F.scaled_dot_product_attention(a, a, a, bool),
          F.scaled_dot_product_attention(a, a, a), "float32")
  end
  nacre.set_default_device(device)
end

-- errors are those of products
local ok, err = pcall(F.scaled_dot_product_attention, nacre.randn(3, 4),
                      nacre.randn(3, 5), nacre.randn(3, 5))
assert(not ok and tostring(err):find "sizes differ", tostring(err))
