-- SPDX-License-Identifier: MIT
-- Fused functions on a device, whose kernels are compiled at run time: each
-- pointwise operation and gradient, in all dtypes, sums of lines, layouts,
-- numbers, in place. On the emulated device the host's compiler compiles them
-- (NACRE_NVRTC names the folder of the sources), and the bits are those of the
-- operations one by one; on a GPU they may round differently.
-- Run by: nacre tests/cuda/cuda_fused.lua [dtype ... | layouts]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local common = dofile(here .. "fused_common.lua")
local O, check, machine, runs = common.O, common.check, common.machine,
                                common.runs
local same, settle, compare = common.same, common.settle, common.compare
local function finish() common.finish "cuda_fused" end
nacre.manual_seed(3)

-- ---- every operation

local function vector(i, t, n)
  if t == "bool" then return nacre.rand(n):gt(0.5):cuda() end
  local x = nacre.rand(n) * 1.9 - 0.9
  if not O.isfloat(t) then x = (x * 100):floor() * 2 + 1 end
  return x:to(t):cuda()
end

local function call(op, x)
  local f = nacre[op.name]
  if op.kind == "choose" then return f(x[1]:gt(0), x[2], x[3]) end
  if op.arity == 1 then return f(x[1]) end
  if op.arity == 2 then return f(x[1], x[2]) end
  return f(x[1], x[2], x[3])
end

-- Operations that a function of operands of type t can have, in groups: their
-- results are those of the function. An operation of the dtype that another
-- cannot take fails, and is left out.
local function groups(t, size)
  local list, group = {}, {}
  local x = {vector(1, t, 8), vector(2, t, 8), vector(3, t, 8)}
  local seen = {}
  for _, op in ipairs(O.operations()) do
    local division = op.name:find "divide" or op.name == "remainder" or
                     op.name == "fmod"
    local copy = op.name == "floor" or op.name == "ceil" or
                 op.name == "trunc" or op.name == "round" or
                 op.name == "positive" or op.name == "abs" and t == "uint8"
    if op.kind ~= "reduce" and
       (O.isfloat(t) or not division and not copy) and not seen[op.name] and
       pcall(call, op, x) then
      seen[op.name] = true
      group[#group + 1] = op
      if #group == size then
        list[#list + 1] = group
        group = {}
      end
    end
  end
  if #group > 1 then list[#list + 1] = group end
  return list
end

local layouts = not arg[1] or arg[1] == "layouts"
local chosen = layouts and (arg[1] and {} or O.dtypes) or {table.unpack(arg)}
for _, t in ipairs(chosen) do
  for g, group in ipairs(groups(t, 25)) do
    local names = {}
    for i, op in ipairs(group) do names[i] = op.name end
    local x = {vector(1, t, 1003), vector(2, t, 1003), vector(3, t, 1003)}
    compare(("%s: %s"):format(t, table.concat(names, " ")), 1,
            function(a, b, c)
              local y, v = {}, {a, b, c}
              for i, op in ipairs(group) do y[i] = call(op, v) end
              return table.unpack(y)
            end,
            function() return table.unpack(x) end)
  end
end

-- Gradients, by chains of one operation and a product.
local function gradients(t)
  local some, seen = {}, {}
  for _, op in ipairs(O.operations()) do
    if op.kind ~= "reduce" and not seen[op.name] then some[#some + 1] = op end
    seen[op.name] = true
  end
  for at = 1, #some, 12 do
    local group, names = {}, {}
    for i = at, math.min(at + 11, #some) do
      local x = {}
      for k = 1, 3 do x[k] = vector(k, t, 8):requires_grad_() end
      local ok = pcall(function() call(some[i], x):sum():backward() end)
      if ok then
        group[#group + 1] = some[i]
        names[#names + 1] = some[i].name
      end
    end
    local function f(a, b, c)
      local y = a * b
      for _, op in ipairs(group) do y = y + call(op, {a, b, c}) end
      return y
    end
    local leaf = {vector(1, t, 1003), vector(2, t, 1003), vector(3, t, 1003)}
    local function run(g)
      local x = {}
      for k = 1, 3 do x[k] = leaf[k]:detach():requires_grad_() end
      g(table.unpack(x)):sum():backward()
      return x[1].grad, x[2].grad, x[3].grad
    end
    local want, fused = table.pack(run(f)), nacre.fuse(f)
    for _ = 1, 2 do       -- the forward, then the gradients
      run(fused)
      settle()
    end
    local before = machine.figure "fused"
    local got = table.pack(run(fused))
    check(not runs or machine.figure "fused" > before,
          "gradients of %s: unfused", table.concat(names, " "))
    for k = 1, 3 do
      check((got[k] == nil) == (want[k] == nil) and
            (got[k] == nil or same(got[k], want[k], true)),
            "gradient %d of %s, %s", k, table.concat(names, " "), t)
    end
  end
end
if not arg[1] then gradients "float32" end
if not layouts then
  for _, t in ipairs(chosen) do
    if O.isfloat(t) then gradients(t) end
  end
  finish()
  return
end

-- ---- layouts

local function chain(x, y) return (x * y + 1):tanh(), x - y, x:gt(y) end
local function on(t) return t:cuda() end
local a, b = on(nacre.randn(40, 64)), on(nacre.randn(40, 64))
local layouts = {
  {"dense", a, b}, {"a row", a, b[1]}, {"a column", a, b:narrow(2, 3, 1)},
  {"0-d", a, b:select(1, 5):select(1, 5)},
  {"transposed", a:t(), b:t()}, {"one transposed", a, b:reshape(64, 40):t()},
  {"sliced", a:slice(2, 2, -1, 3), b:slice(2, 2, -1, 3)},
  {"not aligned", a:flatten():narrow(1, 2, 999), b:flatten():narrow(1, 5, 999)},
  {"odd rows", a:narrow(2, 1, 63), b[1]:narrow(1, 1, 63)},
  {"expanded", a:narrow(1, 3, 1):expand(40, 64), b},
  {"one element", a:narrow(1, 3, 1):narrow(2, 3, 1), b},
  {"three dimensions", a:view(4, 10, 64):permute(2, 1, 3),
   b:view(10, 4, 64)},
  {"no elements", a:narrow(1, 1, 0), b:narrow(1, 1, 0)},
}
for _, l in ipairs(layouts) do
  local n = l[1] == "no elements" and 0 or 1
  compare(l[1], n, chain, function() return l[2], l[3] end)
end
compare("halves", 1, chain, function() return a:half(), b:half() end)
compare("bfloat16 by float32", 1, chain,
        function() return a:bfloat16(), b end)
compare("float64 by float32", 1, chain, function() return a:double(), b end)
compare("integers", 1, chain,
        function() return (a * 9):to "int8", (b * 9):to "int64" end)

-- ---- numbers and parameters; a number may change without a new kernel

local compiled = machine.figure "fused_compiled" + machine.figure "fused_cached"
local scale = nacre.fuse(function(x, s) return (x * s + 0.123):exp() end)
scale(a, 0.1)
settle()
for _, s in ipairs {0.3, 0.7, 1.9} do
  local want = (a * s + 0.123):exp()
  check(same(scale(a, s), want), "scaled by %s", s)
end
check(machine.figure "fused_compiled" + machine.figure "fused_cached" <=
      compiled + 1, "one kernel for all numbers")
compare("parameters", 1, function(x, y)
  return x:add(y, {alpha = 0.37}):leaky_relu(0.013):clamp(-0.9, 1),
         nacre.addcmul(x, x, y, {value = -2.5})
end, function() return a, b end)

-- ---- in place, and into a tensor

compare("in place", nil, function(x, y)
  x:mul_(0.9):add_(y, {alpha = 0.1})
  y:copy_(x):sqrt_()
  return x, y, x + 1
end, function() return a:clone(), b:clone() end)
compare("of a view", 1, function(x, y)
  x:mul_(0.9):add_(y)
  return x, y + 1
end, function() return a:clone():t(), b:t() end)

-- ---- lines

local lib = common.functions
local standardize, logsumexp = lib.standardize, lib.logsumexp
for _, n in ipairs {32, 33, 100, 128, 250, 1000, 1024, 4096} do
  for _, lines in ipairs {1, 7, 33} do
    local x, w, c = on(nacre.randn(lines, n)), on(nacre.randn(n)),
                    on(nacre.randn(n))
    local what = ("%dx%d"):format(lines, n)
    compare("softmax " .. what, 1, lib.softmax, function() return x end, true)
    if n < 300 then
      compare("standardize " .. what, 1, standardize,
              function() return x, w, c end, true)
      compare("logsumexp " .. what, nil, logsumexp,
              function() return x end, true)
    end
  end
end
local x = on(nacre.randn(5, 6, 200):double())
compare("float64 lines", 1, standardize,
        function() return x, x[1][1], x[1]:narrow(2, 1, 1) end, true)
compare("of a sum", 1, function(v)
  return (v * v):sum(-1, true):sqrt():add(1):reciprocal() * v
end, function() return x end, true)

finish()
