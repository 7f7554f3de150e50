-- SPDX-License-Identifier: MIT
-- Attention reads only what its mask shows. A query that sees no key gives 0,
-- with gradients of 0; what no query sees may be nan. Scores of float16 have
-- the range of float32; without features all keys count alike.
-- Run by: nacre tests/nn/attention_masked.lua, and with a device

local nn, F = nacre.nn, nacre.nn.functional
local attention = F.scaled_dot_product_attention
local devices = {"cpu"}
if nacre.cuda.is_available() then devices[2] = "cuda" end
nacre.manual_seed(5)

local function check_finite(what, t)
  assert(t:isfinite():all():item(), what .. " is not finite")
end

local function check_equal(what, a, b, tolerance)
  local off = (a:double():cpu() - b:double():cpu()):abs():max():item()
  assert(off <= tolerance, ("%s: off by %g"):format(what, off))
end

-- ---- queries without keys

-- Query 2 of 3 sees nothing, the others some of 4 keys.
local sees = nacre.tensor {{true, false, true, true},
                           {false, false, false, false},
                           {false, true, true, false}}

local function masks(device, dtype)
  local bool = sees:to(device)
  local float = nacre.zeros(3, 4):masked_fill(sees:logical_not(), -math.huge)
  float = float:to(device):to(dtype)
  return {bool = bool, float = float,
          learned = float:clone():requires_grad_(),
          heads = float:expand(2, 1, 3, 4):contiguous(),
          matrices = bool:expand(2, 5, 3, 4):contiguous()}
end

-- The result and the gradients of q, k, v.
local function run(given, mask, device, dtype, options)
  local leaf = {}
  for i, t in ipairs(given) do
    leaf[i] = t:clone():to(device):to(dtype):requires_grad_()
  end
  local o = {attn_mask = mask}
  for k, v in pairs(options) do o[k] = v end
  local y = attention(leaf[1], leaf[2], leaf[3], o)
  y:sum():backward()
  return {y:detach(), leaf[1].grad, leaf[2].grad, leaf[3].grad}
end

local tolerance = {float64 = 1e-12, float32 = 1e-5, float16 = 5e-3,
                   bfloat16 = 4e-2}
local given = {}
for i, size in ipairs {{2, 5, 3, 8}, {2, 5, 4, 8}, {2, 5, 4, 6}} do
  given[i] = nacre.randn(size):double()
end
local rows = nacre.tensor {1, 3}
local others = {given[1]:index_select(3, rows), given[2], given[3]}
local want = run(others, sees:index_select(1, rows):cpu(), "cpu", "float64", {})

for _, device in ipairs(devices) do
  for dtype, most in pairs(tolerance) do
    for name, mask in pairs(masks(device, dtype)) do
      for _, p in ipairs {0, 1e-13} do
        local what = ("%s, %s, %s, dropout %g"):format(device, dtype, name, p)
        local got = run(given, mask, device, dtype, {dropout_p = p})
        assert(got[1].dtype == dtype, what)
        assert(got[1]:select(3, 2):eq(0):all():item(), what .. ": not 0")
        assert(got[2]:select(3, 2):eq(0):all():item(), what .. ": gradient")
        local index = rows:to(device)
        check_equal(what, got[1]:index_select(3, index), want[1], most)
        check_equal(what .. ", of q", got[2]:index_select(3, index), want[2],
                    4 * most)
        check_equal(what .. ", of k", got[3], want[3], 8 * most)
        check_equal(what .. ", of v", got[4], want[4], 8 * most)
        if mask.requires_grad then check_finite(what .. ", mask", mask.grad) end
      end
    end
  end
end

-- all rows of a matrix, more keys than a block of the CPU has, and columns
for _, device in ipairs(devices) do
  local q = nacre.randn(2, 140, 4, {device = device}):requires_grad_()
  local k = nacre.randn(2, 300, 4, {device = device}):requires_grad_()
  local mask = nacre.ones(2, 1, 300, {dtype = "bool", device = device})
  mask[1] = false
  mask[{2, {}, {1, 150}}] = false
  local y = attention(q, k, k, mask)
  y:sum():backward()
  assert(y[1]:eq(0):all():item() and q.grad[1]:eq(0):all():item() and
         k.grad[1]:eq(0):all():item() and
         k.grad[{2, {1, 150}}]:eq(0):all():item())
  local part = k:detach()[2]:narrow(1, 151, 150)
  check_equal("half of the keys", y[2]:detach(),
              attention(q:detach()[2], part, part), 1e-5)
  -- second derivatives
  local a = nacre.randn(3, 2, {dtype = "float64", device = device})
            :requires_grad_()
  local see = nacre.tensor({{true, false, true}, {false, false, false},
                            {true, true, true}}, {device = device})
  assert(nacre.autograd.gradgradcheck(function(x)
    return attention(x, x, x, see)
  end, {a}))
end

-- ---- what no query sees

for _, device in ipairs(devices) do
  for _, bad in ipairs {0 / 0, math.huge} do
    for _, p in ipairs {0, 1e-13} do
      for _, bool in ipairs {true, false} do
        local q = nacre.randn(2, 3, 4, {device = device}):requires_grad_()
        local k = nacre.randn(2, 5, 4, {device = device})
        local v = nacre.randn(2, 5, 4, {device = device})
        local mask = nacre.ones(2, 1, 5, {dtype = "bool", device = device})
        mask[{1, {}, {4, 5}}] = false
        mask[{2, {}, 1}] = false
        local shown = mask
        if not bool then
          shown = nacre.zeros(2, 3, 5, {device = device})
                  :masked_fill(mask:logical_not(), -math.huge)
        end
        local clean = attention(q, k, v, shown):detach()
        local hidden = mask:logical_not():transpose(2, 3)
        k = k:masked_fill(hidden, bad):requires_grad_()
        v = v:masked_fill(hidden, bad):requires_grad_()
        local y = attention(q, k, v, {attn_mask = shown, dropout_p = p})
        check_equal("hidden keys", y:detach(), clean, 1e-5)
        y:square():sum():backward()
        for _, t in ipairs {q, k, v} do check_finite("gradient", t.grad) end
      end
    end
  end
end

-- ---- modules

local function check_gradients(what, net)
  for name, p in net:named_parameters() do
    if p.grad then check_finite(what .. ", " .. name, p.grad) end
  end
end

for _, device in ipairs(devices) do
  local x = nacre.randn(3, 6, 8, {device = device})
  local padding = nacre.zeros(3, 6, {dtype = "bool", device = device})
  padding[2] = true
  padding[{3, {5, 6}}] = true
  for _, p in ipairs {0, 0.1} do
    local many = nn.MultiheadAttention(8, 2, {dropout = p, batch_first = true})
                 :to(device):train()
    local out, weights = many(x, x, x, {key_padding_mask = padding,
                                        need_weights = false})
    assert(weights == nil)
    check_finite("MultiheadAttention", out)
    out:square():sum():backward()
    check_gradients("MultiheadAttention", many)

    for _, first in ipairs {false, true} do
      local layer = nn.TransformerEncoderLayer(8, 2, 16, p,
        {batch_first = true, norm_first = first, activation = "gelu"})
        :to(device):train()
      local y = layer(x, {src_key_padding_mask = padding})
      y[1]:square():sum():backward()      -- a loss of a good sample alone
      check_gradients("TransformerEncoderLayer", layer)
    end

    local decoder = nn.TransformerDecoderLayer(8, 2, 16, p,
                                               {batch_first = true})
                    :to(device):train()
    local y = decoder(nacre.randn(3, 4, 8, {device = device}), x,
                      {memory_key_padding_mask = padding})
    check_finite("TransformerDecoderLayer", y)
    y:square():sum():backward()
    check_gradients("TransformerDecoderLayer", decoder)
  end
end

-- ---- float16, and no features

for _, device in ipairs(devices) do
  for _, p in ipairs {0, 1e-13} do
    local q = nacre.full({1, 2, 64}, 100.0, {device = device}):half()
              :requires_grad_()
    local v = nacre.tensor({{{1.0}, {3}}}, {device = device}):half()
    local y = attention(q, q, v, {dropout_p = p})
    check_equal("large scores", y:detach(), nacre.full({1, 2, 1}, 2.0), 0)
    y:sum():backward()
    check_finite("large scores, gradient", q.grad)
    local low = nacre.autocast(device, {dtype = "float16"}, function()
      return attention(q:detach():float(), q:detach():float(), v:float(),
                       {dropout_p = p})
    end)
    check_equal("in a region", low, nacre.full({1, 2, 1}, 2.0), 0)
    -- scores of which float16 knows no fractions
    local a = nacre.tensor({{64.0, 1}}, {device = device}):half()
    local b = nacre.tensor({{64.0, 0}, {64, 0.5}}, {device = device}):half()
    local c = nacre.tensor({{0.0}, {1}}, {device = device}):half()
    local z = attention(a, b, c, {dropout_p = p, scale = 1})
    check_equal("fractions", z, nacre.tensor {{1 / (1 + math.exp(-0.5))}}, 1e-3)

    local none = nacre.zeros(3, 0, {device = device})
    local values = nacre.tensor({{1.0, 2}, {3, 4}, {5, 9}}, {device = device})
    local mean = attention(none, none, values, {dropout_p = p})
    check_equal("no features", mean, values:mean(1, true):expand(3, 2), 1e-6)
  end
end
