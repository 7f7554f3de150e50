-- SPDX-License-Identifier: MIT
-- nn.Module: which fields count, their order and names, calls and hooks, what
-- is done to all parts, text, errors that name the layer.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local eq, fails, shape = C.eq, C.fails, C.shape
local nn, F = nacre.nn, nacre.nn.functional

local function names(iterator)
  local list = {}
  for name in iterator do list[#list + 1] = name end
  return table.concat(list, " ")
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

-- classes of instances
do
  local Mine = nn.Linear:extend "Mine"
  local m = Mine(1, 1)
  assert(nn.Linear:is(m) and Mine:is(m) and nn.Module:is(m))
  assert(not nn.Conv1d:is(m) and not Mine:is(nn.Linear(1, 1)))
  assert(not nn.Linear:is(3) and not nn.Linear:is {} and not nn.Linear:is(nil))
  assert(not nn.Linear:is(nn.Linear) and nn.ModuleList:is(nn.ModuleList()))
end

-- a parameter that becomes a plain tensor would not be trained
do
  local layer = nn.Linear(2, 2)
  layer.weight = nacre.zeros(2, 2)
  local text = "Linear: weight was a parameter and cannot become"
  fails(text, layer, nacre.ones(1, 2))
  fails(text, layer.parameters, layer)
  layer.weight = nn.Parameter(nacre.zeros(2, 2))
  layer.weight:requires_grad_(false)
  layer.bias = nil
  eq(layer(nacre.ones(1, 2)):sum():item(), 0)
  layer.weight.data = nacre.ones(2, 2)
  eq(layer:clone()(nacre.ones(1, 2)):sum():item(), 4)
end

-- parameters and buffers in tables count, other tensors there do not
do
  local Tables = nn.Module "Tables"
  function Tables:init()
    self.w = {nn.Parameter(nacre.ones(2)), nn.Parameter(nacre.ones(3))}
    self.deep = {a = {b = nn.Buffer(nacre.ones(1))}}
    self.cache = {nacre.ones(1)}
  end
  local m = Tables()
  eq(names(m:named_parameters()), "w.0 w.1")
  eq(names(m:named_buffers()), "deep.a.b")
  eq(m:double().w[2].dtype, "float64")
  local state = m:clone():state_dict()
  state["w.1"] = state["w.1"] * 2
  m:load_state_dict(state)
  eq(m.w[2]:sum():item(), 6)
end

-- the methods of Python are called otherwise
fails("Py: nothing calls __init__", "function Py:init(...)", function()
  local Py = nn.Module "Py"
  function Py:__init__() end
end)
fails("D: nothing calls __getitem__", "function D:get(...)", function()
  local D = nacre.utils.data.Dataset "D"
  function D:__getitem__() end
end)
fails("O: nothing calls __init", "function O:init(...)", function()
  local O = nacre.optim.Optimizer "O"
  function O:__init() end
end)

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

-- parts in tables of tables, and by name: in the order in which they were made
local Tables = nn.Module "Tables"
function Tables:init()
  self.deep = {{nn.Linear(1, 1)}, {at = nn.ReLU()}}
  self.named = {z = nn.Linear(1, 1), size = 3}
  self.named.a = nn.Linear(1, 1)
  self.mixed = {nacre.relu, nn.Linear(1, 1)}
  self.mixed.again = self.mixed
  self.data = {1, 2, {3}}
end
local tables = Tables()
eq(names(tables:named_children()), "deep.0.0 deep.1.at named.z named.a mixed.1")
eq(#tables:parameters(), 8)
assert(tostring(tables):find("deep[1][1]  Linear(1, 1)", 1, true))
assert(tostring(tables):find("named.z  Linear(1, 1)", 1, true))

-- ---- paths, apply, train

assert(rawequal(deeper:get_submodule "blocks.1", deeper.blocks[2]))
assert(rawequal(deeper:get_submodule "blocks[2]", deeper.blocks[2]))
assert(rawequal(deeper:get_parameter "blocks[1].bias", deeper.blocks[1].bias))
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
do        -- slices share the parts; those of a Sequential keep their names
  local whole = nn.Sequential(nn.Linear(4, 3), nacre.tanh, nn.Linear(3, 2))
  local part = whole["2:-1"]
  assert(nn.Sequential:is(part) and #part == 2 and part[2] == whole[3])
  assert(part:state_dict()["2.weight"] and not part:state_dict()["1.weight"])
  assert(#whole[":"] == 3 and #whole[":-2"] == 2 and #whole["3:"] == 1 and
         #whole["3:2"] == 0 and #whole["2:99"] == 2)
  local named = nn.Sequential({"a", nn.ReLU()}, {"b", nn.Linear(2, 3)})
  assert(named["2:2"].b == named.b and named["2:"](nacre.ones(2)):size(1) == 3)
  local list = nn.ModuleList {nn.ReLU(), nn.Linear(2, 3)}
  assert(list["2:"]:state_dict()["0.weight"])
  fails("there is no part 0", function() return whole["0:1"] end)
end
fails("a module or a function is expected, not a tensor", nn.Sequential,
      nacre.ones(2))
fails("position 9 is not between 1 and 6", seq.insert, seq, 9, nn.ReLU())
local list = nn.ModuleList {nn.Linear(1, 1), nn.Linear(1, 2)}
eq(list[2].out_features, 2)
local dict = nn.ModuleDict {b = nn.Linear(1, 1), a = nn.Linear(1, 1)}
eq(#dict:parameters(), 4)
eq(#nn.ParameterList(nn.Parameter(nacre.ones(1))):parameters(), 1)
local plain = nn.ParameterList {nacre.ones(2)}:insert(1, nacre.ones(1))
assert(#plain:parameters() == 2 and plain[1].requires_grad)
fails("Sequential: the keys of a table have no order: give a list",
      '{"a", nn.Linear(2, 3)} is a part with a name', nn.Sequential,
      {a = nn.ReLU()})
fails("ModuleList: the keys of a table have no order",
      "nn.ModuleDict{...} takes names", nn.ModuleList,
      {nn.ReLU(), last = nn.ReLU()})
fails("ModuleDict: a part has a name, not 1",
      "nn.ModuleList{...} takes a list", nn.ModuleDict, {nn.ReLU()})
fails("ModuleDict: a module is expected, not a number", nn.ModuleDict,
      {a = nn.ReLU(), b = 2})

-- ---- text

eq(tostring(nn.Conv2d(1, 16, 3, {padding = 1}):_head()),
   "Conv2d(1, 16, 3, {padding=1})")
eq(nn.Dropout(0.25):_head(), "Dropout(0.25)")
eq(nn.LSTM(3, 4, {bidirectional = true}):_head(),
   "LSTM(3, 4, {bidirectional=true})")
eq(tostring(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))), [[
Sequential           23  92 B  cpu  training
  [1]  Linear(4, 3)  15  3x4, 3
  [2]  ReLU()
  [3]  Linear(3, 2)   8  2x3, 2]])
local rows = tostring(nn.ModuleList {nn.ReLU(), nn.ReLU(), nn.ReLU()})
assert(rows:find "%[1%.%.3%]  ReLU%(%)", rows)
-- layers of other dtypes are not equal
eq(tostring(nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1):double(),
                          nn.Linear(1, 1))), [[
Sequential           6  32 B  cpu  training
  [1]  Linear(1, 1)  2  1x1, 1
  [2]  Linear(1, 1)  2  1x1, 1  float64
  [3]  Linear(1, 1)  2  1x1, 1]])

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
-- a ModuleList does not run itself: the path goes through it
local Listed = nn.Module "Listed"
function Listed:init()
  self.layers = nn.ModuleList {nn.Sequential(nn.Linear(2, 3)), nn.Linear(2, 3)}
  self.heads = nn.ModuleDict {["a b"] = nn.Linear(3, 2)}
end
function Listed:forward(x, head)
  if head then return self.heads[head](x) end
  for _, l in ipairs(self.layers) do x = l(x) end
end
e = fails("linear: input has 3", Listed(), nacre.ones(1, 3))
eq(e.module, "layers[1][1]: Linear(2, 3), of Listed")
e = fails("linear: input has 3", Listed(), nacre.ones(1, 2))
eq(e.module, "layers[2]: Linear(2, 3), of Listed")
e = fails("linear: input has 2", Listed(), nacre.ones(1, 2), "a b")
eq(e.module, 'heads["a b"]: Linear(3, 2), of Listed')
local Silent = nn.Module "Silent"
function Silent:forward(x) self.seen = x end
eq(select("#", Silent()(1)), 0)
fails("Sequential: the forward of [2], Silent, returned nothing",
      nn.Sequential(nn.ReLU(), Silent(), nn.ReLU()), nacre.ones(1))
fails("Sequential: the function [1] returned nothing",
      nn.Sequential(function() end, nn.ReLU()), nacre.ones(1))
local Empty = nn.Module "Empty"
fails("Empty: the class has no forward", Empty(), 1)
fails("Linear: out_features is missing", nn.Linear, 2)
fails("no argument 'biass', did you mean 'bias'?", nn.Linear, 2, 3,
      {biass = false})
fails("a class has a name", nn.Module)
fails("Module: takes the name alone", 'Outer:extend "Inner"', nn.Module,
      "Inner", Outer)
fails("eval: takes no argument, got 1", net.eval, net, true)
fails("train: takes at most 1 argument, got 2", net.train, net, true, 1)
net.fc2.bias.grad = nacre.ones(2)
eq(net:zero_grad {set_to_none = false}.fc2.bias.grad:sum():item(), 0)
eq(net:zero_grad(true).fc2.bias.grad, nil)
fails("eval: a method is called with a colon", "net:eval()", net.eval)
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
fails('scale_grad_by_freq needs mode "sum" or "mean"',
      nn.EmbeddingBag(5, 2, {scale_grad_by_freq = true, mode = "max"}),
      nacre.tensor {{1, 2}})
fails("recompute_scale_factor is for scale_factor, not for size",
      nn.Upsample {size = 3, recompute_scale_factor = true},
      nacre.ones(1, 1, 2))
fails("output_padding 2 must be below stride 1 or dilation 2",
      nn.ConvTranspose1d(1, 1, 2, {dilation = 2, output_padding = 2}),
      nacre.ones(1, 1, 3))
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
  fails("there are 1 lengths for 2 samples", layer, x, nil, {lengths = {3}})
  fails("length 1 is 6, but must be from 1 to 5", layer, x, nil,
        {lengths = {6, 5}})
  fails("input has 2 features, the layer takes 3", layer, x[{{}, {}, {1, 2}}])
end
local packed = nn.utils.rnn.pack_padded_sequence(nacre.ones(5, 2, 3), {2, 4})
local out, lengths = nn.utils.rnn.pad_packed_sequence(
  (nn.GRU(3, 4)(packed)))
shape(out, 4, 2, 4)
C.is(lengths, "{2,4}")
local one_state = nacre.ones(1, 2, 4)
for _, given in ipairs {{one_state}, {one_state, one_state}} do
  fails("LSTM: the state is a list {h, c}", "lstm(x, {h, c})", nn.LSTM(3, 4),
        nacre.ones(5, 2, 3), table.unpack(given))
  fails("LSTMCell: the state is a list {h, c}", "lstmcell(x, {h, c})",
        nn.LSTMCell(3, 4), nacre.ones(2, 3), table.unpack(given))
end
fails("GRU: takes x, the state and {lengths = ...}", nn.GRU(3, 4),
      nacre.ones(5, 2, 3), one_state, one_state)
fails("GRUCell: takes x and the state", nn.GRUCell(3, 4), nacre.ones(2, 3),
      one_state[1], 1)
fails("the options are a table {lengths = ...}, not a number", nn.GRU(3, 4),
      nacre.ones(5, 2, 3), one_state, 3)
fails("LSTM: the options come after the state", nn.LSTM(3, 4),
      nacre.ones(5, 2, 3), {lengths = {3, 5}})
fails("LSTM: no argument 'length'", nn.LSTM(3, 4), nacre.ones(5, 2, 3), nil,
      {length = {3, 5}})
fails("BatchNorm2d: input has 2 dimensions, not 4", nn.BatchNorm2d(3),
      nacre.ones(3, 3))
for _, norm in ipairs {nn.BatchNorm2d(3), nn.GroupNorm(3, 3),
                       nn.InstanceNorm2d(3, {affine = true})} do
  fails("input has 4 channels, the layer takes 3", norm, nacre.ones(1, 4, 2, 2))
end
shape(nn.InstanceNorm2d(3)(nacre.ones(1, 4, 2, 2)), 1, 4, 2, 2)

-- layers of the library take no more arguments than they use
do
  local x, y = nacre.ones(1, 4), nacre.zeros(1, 4)
  fails("MSELoss: takes 2 arguments, got 3",
        "options are those of the class: nn.MSELoss({reduction = ...})",
        nn.MSELoss(), x, y, {reduction = "sum"})
  fails("Linear: takes 1 argument, got 3", nn.Linear(4, 2), x, 5, "x")
  fails("Dropout: takes 1 argument, got 2", nn.Dropout(0.5), x, {p = 0})
  fails("takes 1 argument, got 2", nn.Sequential(nn.Linear(4, 4)), x, y)
  fails("CrossEntropyLoss: an instance takes the tensors", nn.CrossEntropyLoss,
        x, y)
  local hooked = nn.Linear(4, 2)
  hooked:register_forward_hook(function() end)
  fails("Linear: takes 1 argument, got 2", hooked, x, 5)
  shape(nn.Linear(4, 2)(x, nil), 1, 2)
  local Wide = nn.Linear:extend "Wide"
  function Wide:forward(a, b) return nn.Linear.forward(self, a + b) end
  shape(Wide(4, 2)(x, y), 1, 2)
end

-- attention: a boolean mask is true at positions that attention ignores
local attention = nn.MultiheadAttention(4, 2, {batch_first = true}):double()
local q = nacre.randn(1, 3, 4, {dtype = "float64"})
local mask = nacre.ones(3, 3):triu(1):bool()
local _, weights = attention(q, q, q, {attn_mask = mask})
eq(weights[1]:triu(1):abs():sum():item(), 0)
local fast = attention(q, q, q, {attn_mask = mask, need_weights = false})
assert(nacre.allclose(fast, (attention(q, q, q, {attn_mask = mask}))))
fails("is_causal only says what attn_mask is", attention, q, q, q,
      {is_causal = true})
do  -- so do the layers that have one
  local options = {batch_first = true, dropout = 0}
  local encoder = nn.TransformerEncoderLayer(4, 2, 8, options)
  local decoder = nn.TransformerDecoderLayer(4, 2, 8, options)
  local model = nn.Transformer(4, 2, 1, 1, 8, options)
  local stack = nn.TransformerEncoder(encoder, 2)
  local x = nacre.randn(1, 3, 4)
  local function refuses(...)
    fails("is_causal only says what attn_mask is", ...)
  end
  refuses(encoder, x, {is_causal = true})
  refuses(stack, x, {is_causal = true})
  refuses(decoder, x, x, {tgt_is_causal = true})
  refuses(decoder, x, x, {memory_is_causal = true})
  refuses(nn.TransformerDecoder(decoder, 1), x, x, {tgt_is_causal = true})
  refuses(model, x, x, {src_is_causal = true})
  refuses(model, x, x, {tgt_is_causal = true})
  local mask = model:generate_square_subsequent_mask(3)
  assert(stack(x, {mask = mask, is_causal = true}):equal(stack(x, mask)))
end
local padded = nacre.tensor {{false, false, true}}
_, weights = attention(q, q, q, {key_padding_mask = padded})
eq(weights[{{}, {}, {3, 3}}]:abs():sum():item(), 0)
for _, need in ipairs {true, false} do
  fails("key_padding_mask is [2x3], queries and keys of this shape need [1x3]",
        attention, q, q, q, {key_padding_mask = nacre.ones(2, 3):bool(),
                             need_weights = need})
  fails("key_padding_mask is [1x3], queries and keys of this shape need [3]",
        attention, q[1], q[1], q[1], {key_padding_mask = padded,
                                      need_weights = need})
  fails("attn_mask is [2x2], queries and keys of this shape need [3x3]",
        attention, q, q, q, {attn_mask = nacre.ones(2, 2):bool(),
                             need_weights = need})
  fails("attn_mask is [1x3x3], queries and keys of this shape need [2x3x3]",
        attention, q, q, q, {attn_mask = nacre.ones(1, 3, 3):bool(),
                             need_weights = need})
end

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
local sparse = nn.init.sparse_(nacre.empty(200, 300), 0.3, 2)
assert(sparse:eq(0):sum(1):eq(60):all():item())
near(sparse[sparse:ne(0)]:std():item(), 2)
local kernel = nn.init.dirac_(nacre.empty(4, 2, 3), 2)
C.is(kernel:nonzero(), "{{1,1,2},{2,2,2},{3,1,2},{4,2,2}}")
local image = nacre.randn(1, 4, 5)
assert(F.conv1d(image, kernel, {padding = 1, groups = 2}) == image)
fails("tensor has 2 dimensions, not 3 to 5", nn.init.dirac_, nacre.empty(2, 2))
fails("4 channels are not divisible by 3 groups", nn.init.dirac_, kernel, 3)
fails("tensor has fewer than 2 dimensions", nn.init.xavier_uniform_,
      nacre.empty(3))
assert(F.linear and not pcall(function() return nn.Linaer end))

-- ---- many classes in clusters

local adaptive = nn.AdaptiveLogSoftmaxWithLoss(8, 50, {5, 20}, 2):double()
local points = nacre.randn(30, 8, {dtype = "float64"})
local classes = nacre.randint(1, 51, {30})
local logs, mean = adaptive(points, classes)
local every = adaptive:log_prob(points)
assert(nacre.allclose(logs, every:gather(2, classes:unsqueeze(2)):squeeze(2)))
assert(nacre.allclose(mean, -logs:mean()))
assert(nacre.allclose(every:exp():sum(2), nacre.ones_like(logs)))
assert(adaptive:predict(points) == every:argmax(2))
fails("a class is not from 1 to 50", adaptive, points, classes * 0)
fails("input has 3 rows, target has 30: they must match", adaptive,
      points["1:3"], classes)
fails("cutoffs must increase, from 1 to n_classes - 1",
      nn.AdaptiveLogSoftmaxWithLoss, 8, 50, {20, 5})

-- ---- the text of a network keeps to the columns of the terminal

for _, line in ipairs {"nn.Transformer(512, 8, 2, 2)",
    "nn.TransformerEncoderLayer(512, 8, {dim_feedforward=1024, "
    .. "batch_first=true, norm_first=true})"} do
  local text = tostring(load("local nn = ... return " .. line)(nn))
  for row in text:gmatch "[^\n]+" do assert(#row <= 80, row) end
  -- what is broken into lines is all there
  assert(text:gsub("  +%d.-\n", " "):gsub("%s+", " "):find("norm", 1, true))
end
assert(tostring(nn.TransformerEncoderLayer(512, 8, {norm_first = true,
                                                    batch_first = true}))
       :find "^TransformerEncoderLayer%(512, 8, +3152384 .-\n +{.-}%)\n")

-- ---- sequences of several lengths

local rnn = nn.utils.rnn
local parts = {nacre.randn(2, 3), nacre.randn(4, 3), nacre.randn(1, 3)}
local packed = rnn.pack_sequence(parts)
for i, t in ipairs(rnn.unpack_sequence(packed)) do assert(t == parts[i]) end
local padded, lengths = rnn.pad_packed_sequence(packed, true)
do
  local long = rnn.pad_packed_sequence(packed, true, {total_length = 9})
  assert(long:size(2) == 9 and long:narrow(2, 9, 1):abs():sum():item() == 0)
  fails("total_length is 1, but the longest sequence", rnn.pad_packed_sequence,
        packed, {total_length = 1})
end
for i, t in ipairs(rnn.unpad_sequence(padded, lengths, true)) do
  assert(t == parts[i])
end
local gru = nn.GRU(3, 2)
local _, last = gru(packed)
for i, t in ipairs(parts) do
  local _, alone = gru(t)
  assert(nacre.allclose(last[1][i], alone[1], 1e-5, 1e-6))
end
