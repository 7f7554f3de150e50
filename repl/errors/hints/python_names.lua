-- SPDX-License-Identifier: MIT
--
-- python_names.lua - what names of Python and its libraries are here:
-- constants, modules, arguments, builtin functions, classes of tensors.
-- Functions of other libraries are in other_libraries.lua.

local lexer = require "nacre.lexer"

local names = {}

local small = '"abcdefghijklmnopqrstuvwxyz"'
-- Constants of other languages.
names.constants = {None = "nil", null = "nil", NULL = "nil",
                   undefined = "nil", True = "true", TRUE = "true",
                   False = "false", FALSE = "false",
                   __name__ = '"__main__"',
                   ["math.inf"] = "math.huge", ["np.inf"] = "math.huge",
                   ["string.ascii_lowercase"] = small,
                   ["string.ascii_uppercase"] = small:upper(),
                   ["string.ascii_letters"] = small:sub(1, -2) ..
                                              small:upper():sub(2),
                   ["string.digits"] = '"0123456789"'}

-- What replaces modules that other languages import.
local here = "nacre, also called torch, needs no import"
local reads = 'nacre.load("x.csv") reads a table of numbers'
local draws = ":plot, :hist, :heat and :show draw"
names.modules = {
  torch = here, nacre = here, nn = "nn = nacre.nn",
  optim = "optim = nacre.optim",
  distributions = "distributions = nacre.distributions",
  numpy = here, np = here, scipy = here, jax = here, tensorflow = here,
  cupy = here,
  matplotlib = draws, plt = draws, pandas = reads, pd = reads, csv = reads,
  time = ":time EXPR, and nacre.clock() in seconds",
  random = "math.random() draws a number, nacre.rand(3) a tensor",
  self = "only methods have self: function Net:init() ... end",
  __future__ = "nothing is to be imported from the future",
  glob = 'shell.lines "ls *.txt" gives the names of files',
  Image = "nacre.load reads images", PIL = "nacre.load reads images",
  argparse = 'nacre.options {{"--epochs", "passes", default = 5}} reads ' ..
             "the arguments",
  sys = "arg has the arguments, os.exit() ends",
  re = "string.match and string.gsub, with Lua's patterns",
  pickle = 'nacre.save("x.pt", {w = x})'}

-- Modules of Python that nacre.python opens.
names.python = lexer.set [[
  abc asyncio base64 bisect calendar collections contextlib copy cv2
  dataclasses datetime decimal enum fractions functools gc gym gymnasium gzip
  hashlib heapq html http itertools json logging multiprocessing operator
  pathlib pprint queue requests seaborn shutil sklearn socket sqlite3
  statistics subprocess tempfile textwrap threading tokenizers traceback
  transformers typing unicodedata urllib uuid warnings xml yaml zipfile]]

-- NumPy's names of arguments.
names.arguments = {axis = "dim", axes = "dims", keepdims = "keepdim",
                   keep = "keepdim", ddof = "correction"}

-- PyTorch's classes of tensors by the methods that convert to them.
names.tensor_classes = {FloatTensor = "float", DoubleTensor = "double",
                        HalfTensor = "half", LongTensor = "long",
                        IntTensor = "int", BoolTensor = "bool",
                        ByteTensor = "byte"}

-- Python's types as dtypes
names.dtypes = {float = "float64", int = "int64", bool = "bool",
                complex = "complex128"}

-- NumPy's functions that have another name here, and options of their own.
names.numpy = {dot = "matmul", std = "std", var = "var",
               median = "quantile", savez = "save", savez_compressed = "save",
               savetxt = "save"}
names.numpy_options = {std = {"correction", "0"}, var = {"correction", "0"}}

-- Functions of Python and other languages as an expression of x, and y if they
-- take two arguments: of a tensor, and of any other value.
names.builtins = {
  len = {"#x", "#x"}, size = {"x:size()"}, shape = {"x.shape"},
  typeof = {"type(x)", "type(x)"}, str = {"tostring(x)", "tostring(x)"},
  dir = {"x:<Tab><Tab> lists them", "x:<Tab><Tab> lists them"},
  sorted = {"x:sort()"}, float = {"x:item()", "tonumber(x)"},
  bool = {"x:bool():item()"},
  int = {"x:long():item()", "math.floor(x)"}, abs = {"x:abs()", "math.abs(x)"},
  round = {"x:round()", "math.floor(x + 0.5)"}, list = {"x:tolist()", "x"},
  max = {"x:max()", nil, "math.max(x, y)"},
  min = {"x:min()", nil, "math.min(x, y)"}, sum = {"x:sum()"},
  unpack = {"table.unpack(x)", "table.unpack(x)"},       -- Lua 5.1
  loadstring = {"load(x)", "load(x)"},
  open = {nil, "io.open(x)", "io.open(x, y)"},
  enumerate = {}, zip = {}, range = {}, isinstance = {}, f = {}}

return names
