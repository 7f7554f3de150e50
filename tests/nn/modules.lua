-- SPDX-License-Identifier: MIT
-- nn.Module: which fields count, their order and names, calls and hooks, what
-- is done to all parts, text, errors that name the layer.
-- Run by: nacre tests/nn/modules.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, shape = C.fails, C.shape
local nn, F = nacre.nn, nacre.nn.functional

local function names(iterator)
  local list = {}
  for name in iterator do list[#list + 1] = name end
  return table.concat(list, " ")
end

local function eq(got, want)
  assert(got == want, ("%s, not %s"):format(got, want))
end

-- ---- fields

local Net = nn.Module "Net"
function Net:init(hidden)
  -- Lua assigns fc2 first: the order is that in which they were made
  self.fc1, self.fc2 = nn.Linear(4, hidden), nn.Linear(hidden, 2)
  self.scale = nn.Parameter(nacre.ones(1))
  self.plain = nacre.ones(3)
  self:register_buffer("mean", nacre.zeros(2))
  self:register_buffer("scratch", nacre.zeros(2), false)
  self.blocks = {nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)}
  self._private = nn.Linear(9, 9)
  self.history = nacre.ones(2):requires_grad_() * 2
  self.name, self.count = "net", 3
end
function Net:forward(x)
  x = self.fc2(self.fc1(x):relu())
  for _, block in ipairs(self.blocks) do x = block(x) end
  return x * self.scale
end

local net = Net(5)
eq(names(net:named_parameters()),
   "scale fc1.weight fc1.bias fc2.weight fc2.bias blocks.0.weight " ..
   "blocks.0.bias blocks.2.weight blocks.2.bias")
eq(names(net:named_buffers()), "mean plain scratch")
eq(names(net:named_children()), "fc1 fc2 blocks.0 blocks.1 blocks.2")
eq(names(net:named_modules()), " fc1 fc2 blocks.0 blocks.1 blocks.2")
eq(names(pairs(net:state_dict())),
   "scale mean fc1.weight fc1.bias fc2.weight fc2.bias blocks.0.weight " ..
   "blocks.0.bias blocks.2.weight blocks.2.bias")
eq(#net:parameters(), 9)
local n = 0
for p in net:parameters() do n = n + p:numel() end
eq(n, 1 + 25 + 12 + 12)
shape(net(nacre.ones(3, 4)), 3, 2)

-- a parameter stays one when its gradient is switched off, a field that was
-- something else counts when a tensor is assigned
net.fc1:requires_grad_(false)
eq(#net:parameters(), 9)
assert(not net.fc1.weight.requires_grad and net.fc2.weight.requires_grad)
net.name = nn.Parameter(nacre.ones(1))
eq(#net:parameters(), 10)
net.name = nil
eq(#net:parameters(), 9)

-- a shared module is there once, but under both names in the state
local shared = nn.Sequential(net.fc1, nn.ReLU(), net.fc1)
eq(#shared:parameters(), 2)
eq(names(pairs(shared:state_dict())),
   "0.weight 0.bias 2.weight 2.bias")

-- classes: inheritance
local Deeper = Net:extend "Deeper"
function Deeper:init(hidden)
  Net.init(self, hidden)
  self.last = nn.Linear(2, 1)
end
function Deeper:forward(x) return self.last(Net.forward(self, x)) end
local deeper = Deeper(3)
shape(deeper(nacre.ones(3, 4)), 3, 1)
-- a class of the library as a base keeps its arguments and defaults
local Scaled = nn.Linear:extend "Scaled"
function Scaled:forward(x) return nn.Linear.forward(self, x) * 2 end
local scaled = Scaled(2, 3)
eq(scaled.out_features, 3)
shape(scaled.bias, 3)

-- ---- paths, apply, train

assert(rawequal(deeper:get_submodule "blocks.1", deeper.blocks[2]))
assert(rawequal(deeper:get_parameter "fc1.weight", deeper.fc1.weight))
fails("Deeper has no 'fc3.weight'", deeper.get_parameter, deeper, "fc3.weight")
local order = {}
deeper:apply(function(m) order[#order + 1] = m.__name end)
eq(table.concat(order, " "), "Linear Linear Linear ReLU Linear Linear Deeper")
deeper:eval()
assert(not deeper.training and not deeper.blocks[1].training)
deeper:train()
assert(deeper.training and deeper.blocks[1].training)
deeper(nacre.ones(1, 4)):sum():backward()
assert(deeper.last.weight.grad)
deeper:zero_grad()
assert(not deeper.last.weight.grad)

-- ---- to: in place, with gradients; shared memory of names stays

local weight = deeper.fc1.weight
deeper(nacre.ones(1, 4)):sum():backward()
deeper:double()
assert(rawequal(weight, deeper.fc1.weight) and weight.dtype == "float64")
assert(weight.grad.dtype == "float64" and weight.requires_grad)
assert(deeper.plain.dtype == "float64" and deeper.mean.dtype == "float64")
local norm = nn.BatchNorm1d(2):half()
assert(norm.running_mean.dtype == "float16")
assert(norm.num_batches_tracked.dtype == "int64")
fails("takes the dtype of a floating point number", norm.to, norm, "int64")
deeper:to("cpu", "float32"):to(nacre.ones(1))
assert(weight.dtype == "float32")

-- ---- clone

local copy = deeper:clone()
assert(not rawequal(copy.fc1.weight, weight))
assert(copy.fc1.weight == weight and
       copy.fc1.weight.requires_grad)
nacre.no_grad(copy.fc1.weight.zero_, copy.fc1.weight)
assert(weight:abs():sum():item() > 0)
eq(names(copy:named_parameters()), names(deeper:named_parameters()))
local twice = nn.Sequential(net.fc1, net.fc1):clone()
assert(rawequal(twice[1], twice[2]))

-- ---- hooks

local linear, log = nn.Linear(2, 2), {}
local before = linear:register_forward_pre_hook(function(m, args)
  assert(rawequal(m, linear))
  log[#log + 1] = "before"
  return args[1] * 0
end)
local after = linear:register_forward_hook(function(_, args, out)
  log[#log + 1] = "after"
  assert(args[1]:abs():sum():item() == 0)
  return out + 1
end)
assert(nacre.allclose(linear(nacre.ones(2)), linear.bias + 1))
eq(table.concat(log, " "), "before after")
before:remove()
after:remove()
assert(linear(nacre.zeros(2)) == linear.bias)

-- a method typed again changes living instances
function Net:forward(x) return x + 1 end
eq(net(nacre.ones(1)):item(), 2)

-- ---- containers

local seq = nn.Sequential(nn.Linear(4, 3), nacre.tanh, nn.Linear(3, 2))
shape(seq(nacre.ones(5, 4)), 5, 2)
eq(#seq, 3)
seq:append(nn.ReLU()):insert(1, nn.Identity())
eq(#seq, 5)
eq(names(seq:named_parameters()), "1.weight 1.bias 3.weight 3.bias")
fails("Linear is a class: Linear(...) is an instance", seq.append, seq,
      nn.Linear)
fails("a module or a function is expected, not a tensor", nn.Sequential,
      nacre.ones(2))
fails("position 9 is not between 1 and 6", seq.insert, seq, 9, nn.ReLU())
local list = nn.ModuleList {nn.Linear(1, 1), nn.Linear(1, 2)}
eq(list[2].out_features, 2)
local dict = nn.ModuleDict {b = nn.Linear(1, 1), a = nn.Linear(1, 1)}
eq(#dict:parameters(), 4)
eq(#nn.ParameterList(nn.Parameter(nacre.ones(1))):parameters(), 1)

-- ---- text

eq(tostring(nn.Conv2d(1, 16, 3, {padding = 1}):_head()),
   "Conv2d(1, 16, 3, {padding=1})")
eq(nn.Dropout(0.25):_head(), "Dropout(0.25)")
eq(nn.LSTM(3, 4, {bidirectional = true}):_head(),
   "LSTM(3, 4, {bidirectional=true})")
eq(tostring(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))), [[
Sequential         23  92 B  cpu  training
  0  Linear(4, 3)  15  3x4, 3
  1  ReLU()
  2  Linear(3, 2)   8  2x3, 2]])
local rows = tostring(nn.ModuleList {nn.ReLU(), nn.ReLU(), nn.ReLU()})
assert(rows:find "0%.%.2  ReLU%(%)", rows)

-- ---- errors name the layer, through tail calls too

local Outer = nn.Module "Outer"
function Outer:init() self.blocks = {nn.Linear(3, 3), nn.Linear(4, 2)} end
function Outer:forward(x) return self.blocks[2](self.blocks[1](x)) end
local e = fails("linear: input has 3 features, weight takes 4", Outer(),
                nacre.ones(2, 3))
eq(e.module, "blocks[2]: Linear(4, 2), of Outer")
e = fails("linear: input has 2 features", nn.Linear(4, 2), nacre.ones(2, 2))
eq(e.module, "Linear(4, 2)")
e = fails("linear: input has 5", nn.Sequential(nn.Sequential(nn.Linear(4, 2))),
          nacre.ones(2, 5))
eq(e.module, "[1][1]: Linear(4, 2), of Sequential")
local Empty = nn.Module "Empty"
fails("Empty: the class has no forward", Empty(), 1)
fails("Linear: out_features is missing", nn.Linear, 2)
fails("no argument 'biass', did you mean 'bias'?", nn.Linear, 2, 3,
      {biass = false})
fails("a class has a name", nn.Module)
fails("eval: a method is called with a colon", "net:eval(...)", net.eval)
fails("to: a method is called with a colon", net.to, "cuda")

-- a coroutine may yield inside forward
local Yields = nn.Module "Yields"
function Yields:forward(x)
  coroutine.yield(x)
  return x + 1
end
local co = coroutine.wrap(function() return Yields()(1) end)
eq(co(), 1)
eq(co(), 2)

-- ---- layers with rules of their own

assert(nn.Dropout(0.5)(nacre.ones(1000)):eq(0):any():item())
assert(not nn.Dropout(0.5):eval()(nacre.ones(1000)):eq(0):any():item())
fails("3 in_channels are not divisible by 2 groups", nn.Conv2d, 3, 4, 3,
      {groups = 2})
fails("embed_dim, 5, is not divisible by 2 heads", nn.MultiheadAttention, 5, 2)
local average = nn.BatchNorm1d(1, {momentum = false})
average(nacre.tensor {{1.0}, {3.0}})
average(nacre.tensor {{5.0}, {7.0}})
eq(average.running_mean:item(), 4)
eq(average.num_batches_tracked:item(), 2)
local up = nn.ConvTranspose1d(1, 1, 3, 2)
shape(up(nacre.ones(1, 1, 4), {10}), 1, 1, 10)
fails("an output size of 12 is not between 9 and 10", up, nacre.ones(1, 1, 4),
      {12})
local rows_of = nn.Embedding(5, 2, {padding_idx = 2})
eq(rows_of.weight[2]:abs():sum():item(), 0)
eq(nn.Embedding(5, 2, {padding_idx = -4}).weight[2]:abs():sum():item(), 0)
fails("padding_idx 0: the rows are 1 to 5", nn.Embedding, 5, 2,
      {padding_idx = 0})
fails("padding_idx 6: the rows are 1 to 5", nn.EmbeddingBag, 5, 2,
      {padding_idx = 6})
local given = nn.Embedding.from_pretrained(nacre.ones(3, 2))
assert(not given.weight.requires_grad and #given:parameters() == 1)

-- recurrent layers: lengths in any order are what each sequence alone gives
for _, kind in ipairs {"RNN", "LSTM", "GRU"} do
  local layer = nn[kind](3, 4, 2, {bidirectional = true}):double()
  local x = nacre.randn(5, 2, 3, {dtype = "float64"})
  local out, state = layer(x, nil, {lengths = {3, 5}})
  local alone, last = layer(x[{{1, 3}, {1, 1}}])
  assert(nacre.allclose(out[{{1, 3}, {1, 1}}], alone))
  eq(out[{{4, 5}, {1, 1}}]:abs():sum():item(), 0)
  if kind == "LSTM" then state, last = state[2], last[2] end
  assert(nacre.allclose(state[{{}, {1, 1}}], last))
  fails("there are 1 lengths and 2 samples", layer, x, nil, {lengths = {3}})
  fails("length 1 is 6, but must be from 1 to 5", layer, x, nil,
        {lengths = {6, 5}})
  fails("input has 2 features, the layer takes 3", layer, x[{{}, {}, {1, 2}}])
end
local packed = nn.utils.rnn.pack_padded_sequence(nacre.ones(5, 2, 3), {2, 4})
local out, lengths = nn.utils.rnn.pad_packed_sequence(
  (nn.GRU(3, 4)(packed)))
shape(out, 4, 2, 4)
C.is(lengths, "{2,4}")
fails("the state is a list {h, c}", nn.LSTM(3, 4), nacre.ones(5, 2, 3),
      nacre.ones(1, 2, 4))

-- attention: a mask of booleans is true where nothing is looked at
local attention = nn.MultiheadAttention(4, 2, {batch_first = true}):double()
local q = nacre.randn(1, 3, 4, {dtype = "float64"})
local mask = nacre.ones(3, 3):triu(1):bool()
local _, weights = attention(q, q, q, {attn_mask = mask})
eq(weights[1]:triu(1):abs():sum():item(), 0)
local fast = attention(q, q, q, {attn_mask = mask, need_weights = false})
assert(nacre.allclose(fast, (attention(q, q, q, {attn_mask = mask}))))
fails("is_causal only says what attn_mask is", attention, q, q, q,
      {is_causal = true})
local padded = nacre.tensor {{false, false, true}}
_, weights = attention(q, q, q, {key_padding_mask = padded})
eq(weights[{{}, {}, {3, 3}}]:abs():sum():item(), 0)

-- ---- initial values: their bounds and moments

nacre.manual_seed(1)
local w = nn.Linear(100, 300).weight
assert(w:abs():max():item() <= 0.1 and w:abs():max():item() > 0.099)
local function deviation(f, ...)
  return nn.init[f](nacre.empty(200, 300), ...):std():item()
end
local function near(got, want)
  assert(math.abs(got / want - 1) < 0.02, ("%g, not %g"):format(got, want))
end
near(deviation "xavier_uniform_", math.sqrt(2 / 500))
near(deviation("xavier_normal_", 2), 2 * math.sqrt(2 / 500))
near(deviation("kaiming_normal_", {nonlinearity = "relu"}), math.sqrt(2 / 300))
near(deviation("kaiming_uniform_", {mode = "fan_out", a = 1}),
     math.sqrt(1 / 200))
near(deviation("trunc_normal_", 0, 1, -2, 2), 0.8796)
local ortho = nn.init.orthogonal_(nacre.empty(6, 3, {dtype = "float64"}))
assert(nacre.allclose(ortho:t():mm(ortho),
                      nacre.eye(3, {dtype = "float64"})))
fails("tensor has fewer than 2 dimensions", nn.init.xavier_uniform_,
      nacre.empty(3))
assert(F.linear and not pcall(function() return nn.Linaer end))
