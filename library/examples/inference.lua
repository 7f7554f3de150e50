-- SPDX-License-Identifier: MIT
-- inference.lua - weights for inference.c, which runs two blocks of networks,
-- with inputs and the results of Lua:
--
--   lua5.4 inference.lua FILE.safetensors
local nacre = require "nacre"
local nn, F = nacre.nn, nacre.nn.functional

local path = arg[1] or error("usage: inference.lua FILE.safetensors", 0)
local saved = {}

-- Adds the tensors of a layer to the file.
local function keep(name, layer)
  for key, t in pairs(layer:state_dict()) do saved[name .. "." .. key] = t end
  return layer:eval()
end

-- A block of a ResNet, pooling and the classes: image [n x 3 x 8 x 8].
local function classify(image)
  local conv1 = keep("conv1", nn.Conv2d(3, 8, 3, {padding = 1, bias = false}))
  local conv2 = keep("conv2", nn.Conv2d(8, 8, 3, {padding = 1, bias = false}))
  local side = keep("side", nn.Conv2d(3, 8, 1, {bias = false}))
  local norms = {}
  for i = 1, 2 do
    local norm = nn.BatchNorm2d(8)
    norm.running_mean:normal_()
    norm.running_var:uniform_(0.5, 2)
    norms[i] = keep("norm" .. i, norm)
  end
  local fc = keep("fc", nn.Linear(8, 5))
  local y = norms[1](conv1(image)):relu()
  y = (norms[2](conv2(y)) + side(image)):relu()
  y = F.adaptive_avg_pool2d(F.max_pool2d(y, 2), 1)
  return fc(y:flatten(2))
end

local WIDTH <const>, HEADS <const> = 16, 4
local KEY_HEADS <const>, EACH <const> = 2, 4

-- x [1 x heads x n x EACH], the halves of each row turned by angles.
local function rotated(x, cos, sin)
  local a, b = table.unpack(x:chunk(2, -1))
  return x * cos + nacre.cat({-b, a}, -1) * sin
end

-- A block of a decoder over all tokens at once: x [1 x n x WIDTH].
local function decode(x)
  local n = x:size(2)
  local function linear(name, from, to)
    return keep(name, nn.Linear(from, to, {bias = false}))
  end
  local q, k = linear("q", WIDTH, WIDTH), linear("k", WIDTH, KEY_HEADS * EACH)
  local v, o = linear("v", WIDTH, KEY_HEADS * EACH), linear("o", WIDTH, WIDTH)
  local gate, up = linear("gate", WIDTH, 32), linear("up", WIDTH, 32)
  local down = linear("down", 32, WIDTH)
  local before = keep("before", nn.RMSNorm(WIDTH, {eps = 1e-6}))
  local after = keep("after", nn.RMSNorm(WIDTH, {eps = 1e-6}))
  local angles = nacre.outer(nacre.arange(0.0, n),
                             nacre.tensor {1.0, 0.01})
  angles = nacre.cat({angles, angles}, 2)
  saved.cos, saved.sin = angles:cos(), angles:sin()
  local function heads(t, count)
    return t:reshape(1, n, count, EACH):transpose(2, 3)
  end
  local h = before(x)
  local y = F.scaled_dot_product_attention(
    rotated(heads(q(h), HEADS), saved.cos, saved.sin),
    rotated(heads(k(h), KEY_HEADS), saved.cos, saved.sin),
    heads(v(h), KEY_HEADS), {is_causal = true, enable_gqa = true})
  x = x + o(y:transpose(2, 3):reshape(1, n, WIDTH))
  h = after(x)
  return x + down(F.silu(gate(h)) * up(h))
end

nacre.manual_seed(1)
nacre.no_grad(function()
  saved.image, saved.tokens = nacre.randn(2, 3, 8, 8), nacre.randn(1, 8, WIDTH)
  saved.classes, saved.decoded = classify(saved.image), decode(saved.tokens)
end)
nacre.save(path, saved)
