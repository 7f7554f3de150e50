-- SPDX-License-Identifier: MIT
-- init.lua - nn.init: initial values of parameters, in place and without
-- recording. Definitions and names are those of PyTorch.
local all = ...
local fail = all.fail

-- nn.init[name], which changes and gives its first argument.
local function define(name, signature, doc, f)
  all.define("nn.init." .. name, "tensor:tensor" ..
             (signature == "" and "" or ", ") .. signature, doc,
  function(t, ...)
    nacre.no_grad(f, t, ...)
    return t
  end)
end

define("uniform_", "a:num=0, b:num=1", "numbers between a and b",
       function(t, a, b) t:uniform_(a, b) end)
define("normal_", "mean:num=0, std:num=1", "normal numbers",
       function(t, mean, std) t:normal_(mean, std) end)
define("constant_", "val:num", "val", function(t, v) t:fill_(v) end)
define("ones_", "", "ones", function(t) t:fill_(1) end)
define("zeros_", "", "zeros", function(t) t:fill_(0) end)

define("eye_", "", "the identity matrix", function(t)
  all.check_dims("eye_", t, "tensor", 2)
  t:copy_(nacre.eye(t:size(1), t:size(2), {dtype = t.dtype, device = t.device}))
end)

define("trunc_normal_", "mean:num=0, std:num=1, a:num=-2, b:num=2",
       "normal numbers between a and b",
function(t, mean, std, a, b)
  -- The inverse of the distribution function, of uniform numbers.
  local ends = nacre.tensor({a, b}, {dtype = "float64", device = "cpu"})
  local low, high = table.unpack(((ends - mean) / (std * math.sqrt(2))):erf()
                                 :tolist())
  t:uniform_(low, high):erfinv_():mul_(std * math.sqrt(2))
   :add_(mean):clamp_(a, b)
end)

-- ---- by the numbers of inputs and outputs of a unit

local function fans(op, t)
  if t:dim() < 2 then
    fail(op, "{tensor} has fewer than 2 dimensions", nil, "tensor", t)
  end
  local field = 1
  for d = 3, t:dim() do field = field * t:size(d) end
  return t:size(2) * field, t:size(1) * field
end

local GAIN = {linear = 1, conv1d = 1, conv2d = 1, conv3d = 1, sigmoid = 1,
              conv_transpose1d = 1, conv_transpose2d = 1, conv_transpose3d = 1,
              tanh = 5 / 3, relu = math.sqrt(2), selu = 3 / 4}

-- The nonlinearities as the type of a parameter.
local GAINS = "text|leaky_relu|linear|relu|selu|sigmoid|tanh|conv1d|conv2d|"
              .. "conv3d|conv_transpose1d|conv_transpose2d|conv_transpose3d"

-- The standard deviation that a nonlinearity asks for.
local function gain(nonlinearity, param)
  if nonlinearity == "leaky_relu" then
    return math.sqrt(2 / (1 + (param or 0.01) ^ 2))
  end
  if not GAIN[nonlinearity] then
    fail("calculate_gain", ("no nonlinearity '%s'"):format(nonlinearity))
  end
  return GAIN[nonlinearity]
end

all.define("nn.init.calculate_gain",
           "nonlinearity:" .. GAINS .. ", param:num=nil -> number",
           "the recommended factor of the standard deviation for a "
             .. "nonlinearity", gain)

-- Glorot and Bengio 2010.
local function xavier(op, t, factor)
  local inputs, outputs = fans(op, t)
  return factor * math.sqrt(2 / (inputs + outputs))
end

define("xavier_uniform_", "gain:num=1",
       "uniform, of variance gain^2 * 2/(inputs + outputs)",
function(t, factor)
  local bound = math.sqrt(3) * xavier("xavier_uniform_", t, factor)
  t:uniform_(-bound, bound)
end)
define("xavier_normal_", "gain:num=1",
       "normal, of variance gain^2 * 2/(inputs + outputs)",
function(t, factor) t:normal_(0, xavier("xavier_normal_", t, factor)) end)

-- He, Zhang, Ren and Sun 2015.
local KAIMING = "a:num=0, mode:fan_in|fan_out=fan_in, "
                .. "nonlinearity:" .. GAINS .. "=leaky_relu"

local function kaiming(op, t, a, mode, nonlinearity)
  local inputs, outputs = fans(op, t)
  local n = mode == "fan_in" and inputs or outputs
  return gain(nonlinearity, a) / math.sqrt(n)
end

define("kaiming_uniform_", KAIMING, "uniform, of variance gain^2 / inputs",
function(t, ...)
  local bound = math.sqrt(3) * kaiming("kaiming_uniform_", t, ...)
  t:uniform_(-bound, bound)
end)
define("kaiming_normal_", KAIMING, "normal, of variance gain^2 / inputs",
function(t, ...) t:normal_(0, kaiming("kaiming_normal_", t, ...)) end)

-- Saxe, McClelland and Ganguli 2014.
define("orthogonal_", "gain:num=1",
       "rows, or columns if there are more rows, that are orthogonal",
function(t, factor)
  if t:dim() < 2 then
    fail("orthogonal_", "{tensor} has fewer than 2 dimensions", nil,
         "tensor", t)
  end
  local rows = t:size(1)
  local columns = t:numel() // rows
  local flat = nacre.randn(rows, columns, {dtype = t.dtype, device = t.device})
  if rows < columns then flat = flat:t() end
  local q, r = nacre.linalg.qr(flat)
  q = q * r:diagonal():sign()
  if rows < columns then q = q:t() end
  t:copy_(q:reshape(t:size())):mul_(factor)
end)

define("dirac_", "groups:int=1",
       "a kernel of a convolution that preserves its input, in each group",
function(t, groups)
  local nd = t:dim()
  if nd < 3 or nd > 5 then
    fail("dirac_", ("{tensor} has %d dimensions, not 3 to 5"):format(nd), nil,
         "tensor", t)
  elseif groups < 1 or t:size(1) % groups ~= 0 then
    fail("dirac_", ("%d channels are not divisible by %d groups")
                   :format(t:size(1), groups))
  end
  t:zero_()
  local outputs = t:size(1) // groups
  local middle = {}
  for d = 3, nd do middle[d] = t:size(d) // 2 + 1 end
  for k = 0, t:size(1) - 1 do
    middle[1], middle[2] = k + 1, k % outputs + 1
    if middle[2] <= t:size(2) then t[middle] = 1 end
  end
end)

-- Martens 2010.
define("sparse_", "sparsity:num, std:num=0.01",
       "normal numbers, with a fraction of each column set to 0",
function(t, sparsity, std)
  all.check_dims("sparse_", t, "tensor", 2)
  local zeros = math.ceil(t:size(1) * sparsity)
  t:normal_(0, std)
  for column = 1, zeros > 0 and t:size(2) or 0 do
    local rows = nacre.randperm(t:size(1), {device = t.device})
    t:select(2, column):index_fill_(1, rows:narrow(1, 1, zeros), 0)
  end
end)
