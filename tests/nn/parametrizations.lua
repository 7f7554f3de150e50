-- SPDX-License-Identifier: MIT
-- Parameters that are computed of others (nn.utils.parametrize), and layers
-- whose parameters the first call makes. Their values are compared with
-- PyTorch's in tests/torch/modules_torch.py.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails
local nn, optim = nacre.nn, nacre.optim
local P, parametrize = nn.utils.parametrizations, nn.utils.parametrize

local function keys(m)
  local list = {}
  for name in pairs(m:state_dict()) do list[#list + 1] = name end
  return table.concat(list, " ")
end

local function near(a, b) assert(nacre.allclose(a, b, 1e-5, 1e-6)) end

-- ---- a parametrization of the user

local Symmetric = nn.Module "Symmetric"
function Symmetric.forward(_, x) return x:triu() + x:triu(1):t() end

local layer = nn.Linear(3, 3)
local original = layer.weight
parametrize.register_parametrization(layer, "weight", Symmetric())
assert(keys(layer) == "bias parametrizations.weight.original")
assert(rawequal(layer.parametrizations.weight.original, original))
assert(layer.weight == layer.weight:t() and layer.weight.requires_grad)
assert(parametrize.is_parametrized(layer) and
       parametrize.is_parametrized(layer, "weight") and
       not parametrize.is_parametrized(layer, "bias"))
local opt = optim.SGD(layer, 0.1)
layer(nacre.randn(4, 3)):square():sum():backward()
opt:step()
assert(layer.weight == layer.weight:t())
assert(tostring(layer):find "ParametrizedLinear%(3, 3%)")
fails("Symmetric has no right_inverse: its value cannot be set",
      function() layer.weight = nacre.eye(3) end)
fails("Linear has no parameter 'wight'", parametrize.register_parametrization,
      nn.Linear(1, 1), "wight", Symmetric())

-- a second one; a copy, a dtype and a state have them, too
local Scale = nn.Module "Scale"
function Scale.forward(_, x) return x * 2 end
function Scale.right_inverse(_, x) return x / 2 end
local once = layer.weight:detach():clone()
parametrize.register_parametrization(layer, "weight", Scale())
near(layer.weight:detach(), once * 2)
local copy = layer:clone():double()
assert(copy.weight.dtype == "float64" and layer.weight.dtype == "float32")
near(copy.weight:detach():float(), layer.weight:detach())
parametrize.remove_parametrizations(layer, "weight")
assert(tostring(layer):find "^Linear%(3, 3%)" and
       rawequal(layer.weight, original) and keys(layer) == "weight bias")
near(layer.weight:detach(), once * 2)
near(copy.weight:detach():float(), once * 2)
fails("Linear has no parametrization of 'weight'",
      parametrize.remove_parametrizations, layer, "weight")

-- a value that is set goes through right_inverse
parametrize.register_parametrization(layer, "weight", Scale())
layer.weight = nacre.ones(3, 3)
near(original:detach(), nacre.full({3, 3}, 0.5))
near(layer.weight:detach(), nacre.ones(3, 3))
parametrize.remove_parametrizations(layer, "weight",
                                    {leave_parametrized = false})
near(layer.weight:detach(), nacre.full({3, 3}, 0.5))

-- ---- weight_norm, spectral_norm

for _, dim in ipairs {1, 2} do
  local made = nn.Conv1d(4, 3, 5)
  local before = made.weight:detach():clone()
  P.weight_norm(made, "weight", dim)
  near(made.weight:detach(), before)
  assert(keys(made) == "bias parametrizations.weight.original0 " ..
                       "parametrizations.weight.original1")
  local norms = made.parametrizations.weight.original0
  assert(norms:numel() == (dim == 1 and 3 or 4))
  made.weight = before * 3
  near(made.weight:detach(), before * 3)
end

layer = nn.Linear(3, 2)
local weight = layer.weight:detach():clone()
nn.utils.weight_norm(layer)
assert(layer.weight_g.shape[2] == 1 and not rawget(layer, "weight"))
near(layer.weight:detach(), weight)
fails("'weight' is computed: set what it is computed from",
      function() layer.weight = weight end)
fails("'weight' is already computed", nn.utils.weight_norm, layer)
local twin = nn.utils.weight_norm(nn.Linear(3, 2))
twin:load_state_dict(layer:state_dict())
near(twin.weight:detach(), weight)
nn.utils.remove_weight_norm(layer)
assert(keys(layer) == "weight bias")
near(layer.weight:detach(), weight)
fails("weight_norm of 'weight' is missing", nn.utils.remove_weight_norm,
      layer)

nacre.manual_seed(1)
for _, norm in ipairs {P.spectral_norm, nn.utils.spectral_norm} do
  layer = norm(nn.Linear(4, 3))
  local x = nacre.randn(2, 4)
  for _ = 1, 60 do layer(x) end
  assert(math.abs(nacre.linalg.norm(layer.weight, 2):item() - 1) < 1e-3)
  layer:eval()
  local state = layer:clone():state_dict()
  layer(x)
  for name, t in pairs(layer:state_dict()) do assert(t == state[name], name) end
end
nn.utils.remove_spectral_norm(layer)
assert(keys(layer) == "weight bias")
fails("n_power_iterations is 0, but must be positive", P.spectral_norm, layer,
      {n_power_iterations = 0})

-- ---- lazy layers

local function make()
  return nn.Sequential(nn.LazyConv2d(6, 3, {groups = 3}), nn.LazyBatchNorm2d(),
                       nn.Flatten(), nn.LazyLinear(4, false))
end
local net = make()
assert(keys(net) == "0.weight 0.bias 1.weight 1.bias 1.running_mean " ..
       "1.running_var 1.num_batches_tracked 3.weight")
assert(tostring(net):find "LazyLinear%(4, {bias=false}%)")
opt = optim.SGD(net:double(), 0.1)
weight = net[1].weight
net:eval()
fails("its parameters are made by the first call, which cannot be a dry run",
      net.summary, net, {1, 3, 5, 5})
local y = net(nacre.randn(2, 3, 5, 5, {dtype = "float64"}))
assert(tostring(y.shape) == "{2, 4}" and y.dtype == "float64")
assert(rawequal(weight, net[1].weight) and
       tostring(weight.shape) == "{6, 1, 3, 3}")
assert(getmetatable(net[1]) == nn.Conv2d and net[1].in_channels == 3 and
       net[2].num_features == 6 and net[4].in_features == 54)
assert(not net[1].training)
y:sum():backward()
opt:step()
assert(weight.grad and not net[4].bias)
fails("linear: input has 5 features, weight takes 54", net[4],
      nacre.ones(1, 5, {dtype = "float64"}))
-- a state gives the shapes, too
local other = make():double()
other:load_state_dict(net:state_dict())
assert(other[1].in_channels == 3 and other[4].weight == net[4].weight)
-- the values are those of the class without Lazy
nacre.manual_seed(3)
local eager = nn.Linear(5, 2)
nacre.manual_seed(3)
local lazy = nn.LazyLinear(2)
lazy(nacre.ones(5))
assert(lazy.weight == eager.weight and lazy.bias == eager.bias)
