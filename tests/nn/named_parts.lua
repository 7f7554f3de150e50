-- SPDX-License-Identifier: MIT
-- Parts, parameters and buffers by name: add_module, Sequential of pairs,
-- ModuleDict, ParameterDict, nn.Buffer, to_empty; the options device and dtype.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local eq, fails = C.eq, C.fails
local nn = nacre.nn
local Net = nn.Module "Net"

local function keys(m)
  local list = {}
  for name in pairs(m:state_dict()) do list[#list + 1] = name end
  return table.concat(list, " ")
end

-- ---- add_module

local net = Net()
net:add_module("fc", nn.Linear(3, 2))
net:register_module("0", nn.Linear(2, 2))
assert(net.fc.out_features == 2 and net[1].in_features == 2)
assert(keys(net) == "fc.weight fc.bias 0.weight 0.bias")
net:add_module("fc", nn.Linear(3, 3))
assert(keys(net):find "^fc.weight" and net.fc.out_features == 3)
fails("a name is a text without dots, not \"a.b\"", net.add_module, net, "a.b",
      nn.ReLU())
fails("a name is a text without dots, not number", net.add_module, net, 1,
      nn.ReLU())
fails("Net already has a field 'forward'", net.add_module, net, "forward",
      nn.ReLU())
fails("a module is expected, not a tensor", net.add_module, net, "x",
      nacre.ones(1))

-- ---- a Sequential whose parts have names

local function make()
  return nn.Sequential({"conv", nn.Linear(3, 2)}, nn.ReLU(),
                       {"norm", nn.BatchNorm1d(2)}, {"act", nacre.tanh})
end
local seq = make()
assert(keys(seq) == "conv.weight conv.bias norm.weight norm.bias " ..
       "norm.running_mean norm.running_var norm.num_batches_tracked")
assert(rawequal(seq.conv, seq[1]) and rawequal(seq.norm, seq[3]))
assert(#seq == 4 and seq.act == nacre.tanh and seq.nothing == nil)
seq:eval()
local x = nacre.randn(5, 3)
assert(seq(x) == seq[3](seq.conv(x):relu()):tanh())
assert(rawequal(seq:get_submodule "conv", seq[1]))
assert(seq:get_parameter "conv.bias" == seq[1].bias)
local copy = seq:clone()
assert(keys(copy) == keys(seq) and copy(x) == seq(x))
assert(not rawequal(copy.conv, seq.conv))
local other = make():eval()
other:load_state_dict(seq:state_dict())
assert(other(x) == seq(x))
assert(tostring(seq):find "conv  Linear%(3, 2%)")
seq.conv = nn.Linear(3, 2, false)              -- takes the place
assert(#seq == 4 and not seq[1].bias and keys(seq):find "^conv.weight norm")
seq:insert(1, nn.Identity())
assert(seq.conv == seq[2] and keys(seq):find "^conv.weight norm")
seq:append {"last", nn.Linear(2, 2)}
assert(seq.last == seq[6] and keys(seq):find "last.weight last.bias$")
assert(nn.Sequential {{"a", nn.ReLU()}, {"b", nn.Tanh()}}.b)
seq = nn.Sequential(nn.Linear(1, 1))
seq:add_module("1", nn.Linear(1, 1))           -- the name that it has anyway
assert(keys(seq) == "0.weight 0.bias 1.weight 1.bias" and not seq._names)
fails("the keys of a table have no order", nn.Sequential, {a = nn.ReLU()})
-- an error names the part
local ok, e = pcall(make(), nacre.zeros(5, 4))
assert(not ok and e.module == "conv: Linear(3, 2), of Sequential")

-- ---- ModuleDict, ParameterDict

local dict = nn.ModuleDict {b = nn.Linear(1, 2)}
dict.a = nn.Linear(2, 2)
assert(table.concat(dict:keys(), " ") == "b a" and #dict == 2)
assert(rawequal(dict:values()[2], dict.a))
for name, m in dict:items() do assert(rawequal(dict[name], m)) end
local n = 0
for name in pairs(dict) do n = n + #name end
assert(n == 2)
local a = dict.a
assert(rawequal(dict:pop "a", a) and #dict == 1 and dict.a == nil)
dict:update {c = nn.ReLU(), b = nn.Linear(3, 3)}
assert(table.concat(dict:keys(), " ") == "b c" and dict.b.in_features == 3)
dict:clear()
assert(#dict == 0 and #dict:parameters() == 0)
fails("there is no 'x'", dict.pop, dict, "x")
fails("a module is expected, not a tensor", dict.update, dict,
      {x = nacre.ones(1)})

local p = nn.ParameterDict {w = nacre.ones(2, 3), b = nacre.zeros(2)}
assert(p.w.requires_grad and keys(p) == "b w" and #p == 2)
p.s = nacre.ones(1)
assert(p.s.requires_grad and table.concat(p:keys(), " ") == "b w s")
local frozen = nn.Parameter(nacre.ones(1), false)
p:update {f = frozen}
assert(rawequal(p.f, frozen) and #p:parameters() == 4)
local list = nn.ParameterList(nacre.ones(2), frozen)
assert(#list:parameters() == 2 and list[1].requires_grad and
       rawequal(list[2], frozen))
net = Net()
net.p = nn.ParameterDict {w = nacre.ones(1)}
assert(keys(net) == "p.w" and net:get_parameter "p.w" == net.p.w)

-- ---- buffers

net = Net()
net.mean = nn.Buffer(nacre.zeros(2))
net.mask = nn.Buffer(nacre.ones(2), false)
net.plain = nacre.ones(2)
net.plain = nn.Buffer(nacre.ones(2))           -- takes the kind
assert(keys(net) == "mean plain")
assert(#net:buffers() == 3 and #net:parameters() == 0)
assert(keys(net:clone()) == keys(net) and net:double().mask.dtype == "float64")
net:load_state_dict {mean = nacre.ones(2), plain = nacre.zeros(2)}
assert(net.mean[1] == 1)

-- ---- to_empty

net = nn.Linear(3, 2)
local weight = net.weight
assert(net:to_empty {device = "cpu"} == net and rawequal(net.weight, weight))
assert(tostring(weight.shape) == "{2, 3}")
assert(weight.requires_grad and weight.is_leaf)
fails("a device is expected", 'net:to_empty("cpu")', net.to_empty, net)

-- ---- parts by number, and modules that are assigned to a Sequential

do
  local s = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
  s.extra = nn.Linear(3, 1)
  assert(s(nacre.ones(1, 2)):size(2) == 1 and rawequal(s.extra, s[3]))
  assert(rawequal(s[-1], s[3]) and s[4] == nil and s[-4] == nil)
  fails("Sequential: there is no part 0: they count from 1 to 3",
        function() return s[0] end)
  fails("Sequential: there is no part 5 to replace: there are 3",
        "m:append(part)", function() s[5] = nn.ReLU() end)
  s[-1] = nn.Linear(3, 4)
  assert(s(nacre.ones(1, 2)):size(2) == 4)
  local seen = {}
  for i, part in pairs(s) do seen[#seen + 1] = i .. part.__name end
  assert(table.concat(seen, " ") == "1Linear 2ReLU 3Linear")
  assert(s:pop "extra".out_features == 4 and #s == 2 and s.extra == nil)
  s:extend {nn.Linear(3, 5), nn.Tanh()}
  assert(#s == 4 and s:pop().__name == "Tanh" and s:pop(1).__name == "Linear")
  assert(#s == 2 and #s:state_dict()["1.bias"] == 5)
  fails("pop: there is no part 7", s.pop, s, 7)
  assert(#nn.ModuleList {nn.ReLU()}:extend {nn.Tanh()} == 2)
  local Mine = nn.Sequential:extend "Mine"
  function Mine:init() self.fc = nn.Linear(2, 2) end
  local mine = Mine():clone()
  assert(rawequal(mine.fc, mine[1]) and mine(nacre.ones(1, 2)):size(2) == 2)
end

-- a loop calls what it is given
for m, hint in pairs {
    [nn.ModuleList {nn.ReLU()}] = "for i, part in ipairs(m) do ... end",
    [nn.Sequential(nn.ReLU())] = "for i, part in ipairs(m) do ... end",
    [nn.ModuleDict {a = nn.ReLU()}] =
      "for name, part in m:named_children() do ... end"} do
  fails("a module is not an iterator", hint, function() for _ in m do end end)
end
do
  local groups = nacre.optim.SGD(nn.Linear(1, 1)).param_groups
  fails("a list is not an iterator", function() for _ in groups do end end)
  fails("groups count from 1", function() return groups[0] end)
  assert(groups[-1] == groups[1] and groups[2] == nil)
end

-- ---- the device and the dtype of parameters

for name, layer in pairs {
  Linear = nn.Linear(2, 3, {dtype = "float64", device = "cpu"}),
  Conv2d = nn.Conv2d(2, 2, 3, {dtype = "float64"}),
  BatchNorm1d = nn.BatchNorm1d(2, {dtype = "float64"}),
  LSTM = nn.LSTM(2, 3, {dtype = "float64"}),
  Transformer = nn.Transformer {d_model = 4, nhead = 2, dtype = "float64",
                                num_encoder_layers = 1, num_decoder_layers = 1},
  LazyLinear = nn.LazyLinear(2, {dtype = "float64"}),
} do
  for _, p in layer:named_parameters() do eq(p.dtype, "float64") end
  assert(not tostring(layer):find "dtype=", name)
end
eq(nn.BatchNorm1d(2, {dtype = "float64"}).running_mean.dtype, "float64")
eq(nn.BatchNorm1d(2, {dtype = "float64"}).num_batches_tracked.dtype, "int64")
eq(nacre.get_default_dtype(), "float32")
fails("Linear: a module takes the dtype of a floating point number", nn.Linear,
      2, 2, {dtype = "int64"})
fails("GroupNorm: 3 channels are not divisible", nn.GroupNorm, 2, 3,
      {dtype = "float64"})
eq(nacre.get_default_dtype(), "float32")
fails("Linear: no device is named 'gpu'", nn.Linear, 2, 2, {device = "gpu"})
fails("ReLU: no argument 'device'", nn.ReLU, {device = "cpu"})

-- a module in place of a list of tensors
local both = nn.Linear(2, 1)
local _, bias = nacre.autograd.grad(both(nacre.ones(3, 2)):sum(), both)
eq(bias:item(), 3)
nacre.autograd.backward(both(nacre.ones(3, 2)):sum(), {inputs = both})
eq(both.bias.grad:item(), 3)
