-- SPDX-License-Identifier: MIT
-- The arguments of calls: by position and by name, missing, too many, of the
-- wrong kind; and what errors tell about them.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local C = dofile(here .. "../lib/small_calls.lua")
local common = dofile(here .. "../lib/common.lua")
local fails, same = common.fails, common.same
local check = O.check
local T = nacre.tensor
local a = T {{1.0, 2, 3}, {4, 5, 6}}

-- ---- positions and names

same(a:sum(1, true), a:sum {dim = 1, keepdim = true}, "sum by name")
same(a:sum(1, true), a:sum(1, {keepdim = true}), "sum by both")
same(a:sum {1, 2}, a:sum(), "a list of dims is no table of names")
same(a:sum({1, 2}, true), a:sum {dim = {1, 2}, keepdim = true},
     "dims by name")
same(a:std(false), a:std {unbiased = false}, "std(false) skips dim")
same(a:std(1, false), a:std {dim = 1, unbiased = false}, "std(1, false)")
same(a:std(nil, false), a:std(false), "nil stands for what is not given")
same(nacre.exp(a), a:exp(), "a function is a method")
same(nacre.add(a, 1, {alpha = 3}), a + 3, "alpha")
same(a:add {other = a}, a + a, "an operand by name")
same(a:clamp {max = 3}, a:minimum(3), "clamp by name")
same(a:clamp(nil, 3), a:minimum(3), "clamp(nil, 3)")
-- options that a caller passes on and was not given
check(nacre.randperm(5, nil):size(1) == 5, "randperm(5, nil)")
check(nacre.zeros({2}, nil):size(1) == 2, "zeros({2}, nil)")
same(a:add(1, nil), a + 1, "add(1, nil)")
same(nacre.cdist(a, a, 2, nil, nil), nacre.cdist(a, a), "cdist")
fails("arg 2 is nil", nacre.zeros, 2, nil)
fails("takes at most 4 arguments, got 6", nacre.cdist, a, a, 2, nil, nil, nil)
fails("arg 2 is nil", nacre.randperm, 5, nil, nil)
local F = nacre.nn.functional
same(F.linear(a, a, false), F.linear(a, a), "no bias")
same(nacre.zeros(2, 3), nacre.zeros {2, 3}, "sizes as numbers or list")
same(nacre.zeros(2, 3, {dtype = "float64"}),
     nacre.zeros({2, 3}, {dtype = nacre.float64}), "sizes and names")
same(nacre.zeros {size = {2, 3}}, nacre.zeros(2, 3), "sizes by name")
check(nacre.zeros().ndim == 0 and nacre.zeros({}).ndim == 0, "no sizes")
same(nacre.full(2, 3, 7), nacre.full({2, 3}, 7), "full(2, 3, 7)")
same(nacre.full({2}, 7, {dtype = "int8"}),
     nacre.full {size = {2}, fill_value = 7, dtype = "int8"},
         "full by name")
same(a:view(3, 2), a:view {3, 2}, "view(3, 2)")
same(a:permute(2, 1), a:permute {2, 1}, "permute(2, 1)")
check(#nacre.randint(10, {4}) == 4, "randint(high, sizes)")
check(#nacre.randint(1, 10, {4}) == 4, "randint(low, high, sizes)")
same(a:sum(2.0), a:sum(2), "a whole float is an integer")
check(a:size(2.0) == 3, "size(2.0)")
fails("size: dim must be a dimension, not 1.5", a.size, a, 1.5)
local out = nacre.zeros(2, 3)
check(a:mul(2, {out = out}) == out and out[1][1] == 2, "out")
same(a:gelu {approximate = "tanh"}, a:gelu {approximate = "tanh"}, "choice")
check(not nacre.allclose(a:gelu {approximate = "tanh"}, a:gelu(), 0, 0),
      "a choice is heeded")
local options = {dim = 1}
a:sum(options)
check(options.dim == 1 and next(options, "dim") == nil,
      "options stay as they are")

-- ---- mistakes

fails("EVALUE: sum: no argument 'keepdims', did you mean 'keepdim'?", a.sum, a,
      {keepdims = true})
fails("no argument 'zzzzzz'", a.sum, a, {zzzzzz = 1})
fails("not both", a.sum, a, {1, keepdim = true})
for _, data in ipairs {{1, 2, dtype = "float64"},
                       {{1, x = 1}, {2}}} do
  fails("not both", T, data)
end
fails("zeros: dtype is given by name", 'zeros(..., {dtype="int32"})',
      nacre.zeros, 2, "int32")
check(fails("at most 1", T, 1, 2, 3).hint
      :find("tensor{1, 2, 3}", 1, true), "hint of tensor(1, 2, 3)")
check(fails("tensor: an element is a string", T, [[1,2],[3,4]])
      .hint:find("tensor{{1, 2}, {3, 4}}", 1, true), "hint of [[ ]]")
if not nacre.cuda.is_available() then
  fails("EDEVICE: tensor: no usable", T, {1}, {device = "cuda"})
end
fails("dim is given twice", a.sum, a, 1, {dim = 2})
fails("out must be a tensor", a.exp, a, {out = 3})
fails("exp: takes no argument besides self, got 1", nacre.exp, a, 2)
fails("unique: takes at most 4 arguments besides " .. "self, got 5",
      nacre.unique, a, true, true, true, nil, 7)
fails("add: takes at most 1 argument besides self, got 2", nacre.add, a, a, a)
fails("add: other is missing", nacre.add, a)
fails("cumsum: dim is missing", nacre.cumsum, a)
fails("exp: self", nacre.exp)
fails("exp: self", nacre.exp, nil)
fails("must be a tensor", nacre.exp, 3)
fails("not a table", nacre.exp, {})
fails("not a function", nacre.exp, print)
fails("add: self must be a tensor, not a number", nacre.add, 1, 2)
fails("dim", nacre.select, a, 1.5, 1)
fails("a dimension", nacre.select, a, "1", 1)
fails("zeros: size must be", nacre.zeros, "2")
fails("1.5", nacre.zeros, 2, 1.5)
fails("1.5", nacre.zeros, {2, 1.5})
fails("", nacre.zeros, 0 / 0)
fails("no dtype 'float31', did you mean 'float3", nacre.zeros, 2,
      {dtype = "float31"})
fails("a dtype", nacre.zeros, 2, {dtype = 3})
fails("EVALUE: no device is named 'gpu'", nacre.zeros, 2, {device = "gpu"})
if not nacre.cuda.is_available() then
  fails("EDEVICE: no usable CUDA device", nacre.zeros, 2, {device = "cuda"})
end
fails("approximate must be one of none|tanh, not 'x'", a.gelu, a,
      {approximate = "x"})
fails("keepdim must be true or false", a.sum, a, {keepdim = 1})
fails("element 2 of tensors is an integer", nacre.cat, {a, 2})
fails("a list of tensors", nacre.cat, a)
fails("tensor has no method 'summ', did you mean 'sum'?",
      function() return a:summ() end)
check(fails("<", function() return a < a end).hint
      :find(":lt(", 1, true), "hint of <")
check(fails("<=", function() return a <= a end).hint
      :find(":le(", 1, true), "hint of <=")
local function hint(f) return fails("<", f).hint end
check(hint(function() return a > 0.5 end) == "right:gt(0.5)", "hint of >")
check(hint(function() return a <= 2 end) == "left:le(2)", "hint of <= 2")
local one = nacre.tensor {1.5}
check(one < 2 and one:sum() <= 1.5 and 1 < one and not (one > one) and
      one >= one and not (nacre.tensor(0 / 0) < 1), "one element compares")
fails("not with a string", function() return one < "2" end)
fails("not with a table", function() return {} <= a end)
for _, word in ipairs {"type", "foo", "a"} do
  local e = fails("no method '" .. word .. "'", function() return a[word] end)
  check(not tostring(e):find "did you mean", "%s is near nothing", word)
end
check(require "torch" == nacre, "require 'torch'")
check(tostring(a.shape) == "{2, 3}" and a.shape == nacre.ones(2, 3):size() and
      a.shape ~= a.T.shape and a.shape ~= a:sum(1).shape and
      "of " .. a.shape == "of {2, 3}" and tostring(a:sum().shape) == "{}",
      "sizes print, compare and join")
fails("pairs", function() for _ in ipairs(a) do end end)
fails("add", function() return a + "x" end)
fails("add", function() return {} + a end)
fails("add", function() return a + nil end)
fails("tensors only", function() return a .. "x" end)

-- ---- what errors tell

local line = debug.getinfo(1, "l").currentline + 1
local ok, e = pcall(function() return a + nacre.ones(2, 4) end)
check(not ok and type(e) == "table", "an error is an object")
check(tostring(e):match("([%w_]+%.lua):(%d+): add: shapes do not broadcast"),
      "text of an error: %s", tostring(e))
check(e.op == "add" and e.code == "ESHAPE", "op %s, code %s", e.op, e.code)
check(e.message ==
      "shapes do not broadcast: dim 2 is 3 in one and 4 in the other",
      "message: %s", e.message)
check(e.line == line and e.file:find("arguments.lua", 1, true), "%s:%s", e.file,
      e.line)
check(e.rule and e.rule:find("equal or 1"), "rule: %s", e.rule)
check(#e.args == 2, "%d operands", #e.args)
check(e.args[1].role == "left" and e.args[2].role == "right", "roles %s %s",
      e.args[1].role, e.args[2].role)
check(rawequal(e.args[1].tensor, a), "identity of the left operand")
check(table.concat(e.args[2].shape, "x") == "2x4", "shape of the right operand")
check(e.args[1].dtype == "float32" and e.args[1].device == O.device,
      "dtype, device")
check("at " .. e == "at " .. tostring(e), "an error concatenates as its text")
e = fails("ESHAPE: add", a.add, a, nacre.ones(2, 4))
check(e.args and e.args[1].role == "self" and e.args[2].role == "arg 1",
      "roles in a call")
e = fails("ESHAPE: mm: inner sizes differ", a.mm, a, a)
check(e.args and e.args[1].role == "self" and e.args[2].role == "arg 1" and
      rawequal(e.args[2].tensor, a), "roles of mm")
e = fails("ESHAPE: cat: tensor 2 differs", nacre.cat, {a, nacre.ones(2, 2)})
check(e.args and #e.args == 2, "cat blames two")
if e.args and #e.args == 2 then
  check(e.args[1].role == "[1]" and e.args[2].role == "[2]", "roles of cat")
  check(rawequal(e.args[1].tensor, a), "identity inside a list")
end
e = fails("ESHAPE: ", a.view, a:t(), 5)
check(e.args and e.args[1].note == "view", "a view is noted")
local text = select(2, pcall(nacre.exp, "x"))
check(tostring(text):find("exp: self must be a tensor, not a string", 1, true),
      "%s", tostring(text))

-- ---- freed tensors

local gone = nacre.ones(2)
gone:free()
for _, op in ipairs(C.all()) do
  local args = C.sample(op)
  for i, v in ipairs(args) do
    if nacre.is_tensor(v) then
      args[i] = gone
      fails("the tensor was freed", op.f or op.method, table.unpack(args))
      args[i] = v
    end
  end
  if op.into then
    fails("the tensor was freed", op.into, gone, table.unpack(args, 2))
  end
end
for _, f in ipairs {function() return gone[1] end, function() gone[1] = 2 end,
                    function() return #gone end,
                    function() return gone + 1 end,
                    function() return gone.dtype end,
                    function() return gone:size() end,
                    function() gone:free() end,
                    function() return gone:item() end,
                    function() return a:add(1, {out = gone}) end,
                    function() for _ in pairs(gone) do end end,
                    function() return gone:to("int8") end,
                    function() return gone(1) end,
                    function() return a .. gone end,
                    function() return nacre.tensor(gone) end,
                    function() return nacre.cat {a, gone} end,
                    function() return nacre.save("/dev/null", gone) end} do
  fails("freed", f)
end
check(tostring(gone) == "a freed tensor" and ("%s"):format(gone) ==
      "a freed tensor", "the text of a freed tensor")
check(gone == gone and gone ~= a and a ~= gone, "a freed tensor compares")

-- ---- every kind of value in every place: an error or a result, no crash

local wrong = {false, true, 1, -3, 1.5, 0 / 0, "", "x", "float32", {},
               {1, "x"},
               {{}}, {x = 1}, {1, x = 2}, print, coroutine.create(print),
               io.stdout, a, T {1, 2}, T(3),
               setmetatable({}, {__index = function() error "no key" end})}
local function try(f, ...)
  local ok, e = pcall(f, ...)
  if ok then return end
  local message = type(e) == "table" and e.message or e
  check(type(message) == "string" and #message > 0 and
        (type(e) == "string" or type(e.code) == "string"), "an odd error: %s",
        tostring(e))
end
local calls = 0
nacre.set_memory_limit(1 << 28)
for _, op in ipairs(C.all()) do
  local f = op.f or op.method
  local function attempt(...)
    calls = calls + 1
    try(f, ...)
    if op.into then try(op.into, ...) end
    pcall(nacre.synchronize)  -- a device may say later what is wrong
  end
  attempt()
  local args = C.sample(op, true)
  for i = 1, #args + 1 do
    for _, v in ipairs(wrong) do
      local z = table.move(args, 1, #args, 1, {})
      z[i] = v
      attempt(table.unpack(z, 1, math.max(#z, i)))
      attempt(table.unpack(z, 1, i))
    end
    attempt(table.unpack(args, 1, i - 1))
  end
  for _, p in ipairs(op.params) do
    for _, v in ipairs(wrong) do
      local z = C.sample(op)
      z[#z + 1] = {[p.name] = v}
      attempt(table.unpack(z))
      attempt(z[1], {[p.name] = v})
      attempt({[p.name] = v})
    end
  end
  fails("no argument 'qqqqqqqq'", f,
         table.unpack((function()
           local z = C.sample(op)
           z[#z + 1] = {qqqqqqqq = 1}
           return z
         end)()))
end
-- operators, functions bound in C and functions in Lua read by the same rules
fails("sum: self is missing: a tensor expected", nacre.sum)
fails("numel: self is missing: a tensor expected", nacre.numel)
fails("huber_loss: input is missing: a tensor expected", F.huber_loss)
fails("no argument 'dimension', did you mean 'dim'?", a.sum, a, {dimension = 1})
fails("no argument 'red', did you mean 'reduction'?", F.huber_loss, a, a,
      {red = "sum"})
fails("dim must be a dimension or a list of them, not 1.5", a.sum, a, 1.5)
fails("dim must be an integer, not 'x'", F.cosine_similarity, a, a, "x")
fails("delta must be a number, not 'x'", F.huber_loss, a, a, {delta = "x"})
fails("delta must be a number, not a boolean", F.huber_loss, a, a, "mean", true)
same(F.huber_loss(a, a + 3, "sum", nacre.tensor(2.0)),
     F.huber_loss(a, a + 3, {reduction = "sum", delta = 2}), "delta")
same(F.normalize(a:double(), 2, 1.0), F.normalize(a:double(), 2, 1), "1.0")
check(nacre.is_tensor {value = 1} == false and nacre.is_tensor {} == false,
      "a table with names is the value of a parameter that takes any")
local one = nacre.ones(1)
fails("device is given twice", one.to, one, "cpu", "cpu")
fails("dtype is given twice", one.to, one, "int64", {dtype = "int32"})
fails("dtype is given twice", one.to, one, one, {dtype = "int32"})
fails("'int33' is neither a dtype nor a device", one.to, one, "int33")
fails("target must be a dtype, a device or a tensor, not a function", one.to,
      one, print)
fails("target must be a dtype, a device or a tensor, not 1.5", one.to, one, 1.5)
fails("target is missing", one.to, one, nil)
fails("no argument 'dtyp', did you mean 'dtype'?", one.to, one, {dtyp = "int8"})
fails("takes at most 4 arguments besides self, got 5", one.to, one, "cpu",
      "int8", true, true, true)
fails("non_blocking must be true or false", one.to, one, "cpu",
      {non_blocking = 1})
check(one:to("cpu", "int8", true, true).dtype == "int8" and
      one:to("int8", "cpu").dtype == "int8" and
      one:to(one:int(), true).dtype == "int32" and
      one:to {target = "int8"}.dtype == "int8" and
      one:to("cpu", nil, true).device == "cpu", "targets in any order")
fails("backend must be one of auto|single|mpi|gloo, not 'ucc'",
      nacre.distributed.init_process_group, "ucc")
fails("output must be one of all|prefix|rank0, not 'none'",
      nacre.distributed.init_process_group, {output = "none"})
fails("requires_grad must be true or false", one.requires_grad_, one, "no")
fails("path must be a string, not an integer", nacre.load, 3)
check(one:size {dim = 1} == 1 and not one:requires_grad_(false).requires_grad,
      "arguments by name")
for _, name in ipairs(nacre._names()) do      -- also what is not an operation
  local f = rawget(nacre._functions, name) or nacre._methods[name]
  local kind = nacre._info(name).kind
  local quiet = name ~= "save" and name ~= "set_memory_limit" and name ~= "free"
                and name ~= "set_default_dtype" and name ~= "set_num_threads"
  if kind == "function" and quiet then
    for _, v in ipairs(wrong) do
      try(f, v)
      try(f, a, v)
      try(f, a, v, v)
      calls = calls + 3
    end
    try(f)
  end
end
check(calls > 10000, "%d calls", calls)

O.done "arguments"
