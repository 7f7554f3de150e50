-- SPDX-License-Identifier: MIT
--
-- python_names.lua - what names of Python and its libraries are here:
-- constants, modules, arguments, builtin functions, classes of tensors.
-- Functions of other libraries are in other_libraries.lua.

local names = {}

-- Constants of other languages.
names.constants = {None = "nil", null = "nil", NULL = "nil",
                   undefined = "nil", True = "true", TRUE = "true",
                   False = "false", FALSE = "false"}

-- What replaces modules that other languages import.
local here = "nacre, also called torch, needs no import"
local reads = 'nacre.load("x.csv") reads a table of numbers'
local draws = ":plot, :hist, :heat and :show draw"
names.modules = {
  torch = here, nacre = here, nn = "nn = nacre.nn",
  optim = "optim = nacre.optim",
  numpy = here, np = here, scipy = here, jax = here, tensorflow = here,
  cupy = here,
  matplotlib = draws, plt = draws, pandas = reads, pd = reads, csv = reads,
  time = ":time EXPR, and nacre.clock() in seconds",
  random = "nacre.rand, nacre.randint, nacre.randperm",
  argparse = "arg[1], arg[2], ... are the arguments",
  sys = "arg has the arguments, os.exit() ends",
  re = "string.match and string.gsub, with Lua's patterns",
  json = "there is no JSON module", pickle = 'nacre.save("x.pt", {w = x})'}

-- NumPy's names of arguments.
names.arguments = {axis = "dim", axes = "dims", keepdims = "keepdim",
                   keep = "keepdim", ddof = "correction"}

-- PyTorch's classes of tensors by the methods that convert to them.
names.tensor_classes = {FloatTensor = "float", DoubleTensor = "double",
                        HalfTensor = "half", LongTensor = "long",
                        IntTensor = "int", BoolTensor = "bool",
                        ByteTensor = "byte"}

-- Functions of Python and other languages as an expression of x, and y if they
-- take two arguments: of a tensor, and of any other value.
names.builtins = {
  len = {"#x", "#x"}, size = {"x:size()"}, shape = {"x.shape"},
  typeof = {"type(x)", "type(x)"}, str = {"tostring(x)", "tostring(x)"},
  dir = {"x:<Tab><Tab> lists them", "x:<Tab><Tab> lists them"},
  sorted = {"x:sort()"}, float = {"x:item()", "tonumber(x)"},
  int = {"x // 1", "x // 1"}, abs = {"x:abs()", "math.abs(x)"},
  round = {"x:round()", "math.floor(x + 0.5)"}, list = {"x:tolist()", "x"},
  max = {"x:max()", nil, "math.max(x, y)"},
  min = {"x:min()", nil, "math.min(x, y)"}, sum = {"x:sum()"},
  open = {nil, "io.open(x)", "io.open(x, y)"},
  enumerate = {}, zip = {}, range = {}, isinstance = {}, f = {}}

return names
