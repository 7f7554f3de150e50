-- SPDX-License-Identifier: MIT
-- Every allocation of every operation fails in turn, once and from then on:
-- the call gives its result or an ENOMEM error, operands are unchanged, and
-- afterwards no more memory is in use than before.
-- Run by: nacre tests/ops/oom.lua [operation | some]
-- With `some' an operation fails once, not from then on, and the other way
-- round in place, with out, on strided operands.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local C = dofile(here .. "../lib/small_calls.lua")
local live = dofile(here .. "../lib/common.lua").live
local check = O.check

nacre.set_num_threads(1)

nacre.ones(2, 2):mm(nacre.ones(2, 2))     -- a device keeps room for products

local function isnomemory(e)
  if type(e) == "table" then return e.code == "ENOMEM" and #e.message > 0 end
  return tostring(e):find("not enough memory", 1, true) ~= nil
end

local function snapshot(args)
  local list = {}
  for i, v in ipairs(args) do
    if nacre.is_tensor(v) and v:numel() < 100 then list[i] = v:totable() end
  end
  return list
end

local function unchanged(args, list)
  for i, v in ipairs(args) do
    if list[i] and not v:new_tensor(list[i]):eq(v):all():item() then
      return false
    end
  end
  return true
end

-- What f makes of its first argument, where that is one and the same each time.
local function outcome(make, f)
  local first
  for _ = 1, 6 do
    local args = make()
    if not pcall(f, table.unpack(args)) or not nacre.is_tensor(args[1]) then
      return nil
    end
    first = first or args[1]
    if not first:allclose(args[1], 0, 0, true) then return nil end
  end
  return first
end

local failures = 0

-- Calls f with fresh arguments until no allocation is left to fail; after each
-- failure does `each', which may say that it was enough.
-- changes: may it have changed operands when it fails?
local function fail_each(what, make, f, changes, sticky, wanted, each)
  for n = 1, 2000 do
    local args = make()
    local list = not changes and snapshot(args)
    nacre._fail_alloc(n, sticky)
    local ok, e = pcall(f, table.unpack(args))
    nacre._fail_alloc(0)
    if not ok then
      failures = failures + 1
      check(isnomemory(e), "%s, allocation %d: %s", what, n, tostring(e))
    end
    if ok and wanted then     -- it is not done twice
      check(args[1]:allclose(wanted, 0, 0, true),
            "%s, allocation %d made another result", what, n)
    end
    if list then
      check(unchanged(args, list), "%s, allocation %d changed an operand",
            what, n)
    end
    args, e, list = nil, nil, nil
    -- a single failure is got over
    if each(n) or ok and (sticky or n > 12) then return end
    check(n < 2000, "%s does not come to an end", what)
  end
end

-- A collection takes longer than a call. So there is one after all failures of
-- a call, and one after each only to find the failure after which more is held.
local function exhaust(what, make, f, changes, modes)
  local wanted = changes and outcome(make, f)
  for _, sticky in ipairs(modes or {false, true}) do
    local before = live()
    collectgarbage "stop"
    fail_each(what, make, f, changes, sticky, wanted,
              function() nacre.empty_cache() end)
    collectgarbage "restart"
    local after = live()
    if after ~= before then
      fail_each(what, make, f, changes, sticky, wanted, function(n)
        local more = live() - after
        check(more == 0, "%s, allocation %d (sticky %s) keeps %d bytes", what,
              n, sticky, more)
        return more ~= 0
      end)
      check(false, "%s: %d bytes more are held", what, after - before)
      return
    end
  end
end

-- ---- every operation: as it is, on a strided operand, in place, with out

local function strided(args)
  for i, v in ipairs(args) do
    if nacre.is_tensor(v) and v.ndim == 2 then
      args[i] = nacre.stack({v, v}, 3):select(3, 2)
    end
  end
  return args
end

local only = arg and arg[1]
local some = only == "some"
if some then only = nil end
local plain, varied = some and {false}, some and {true}

for _, op in ipairs(C.all()) do
  if not only or only == op.name then
    local f = op.f or op.method
    local writes = op.name:find("_$") ~= nil
    exhaust(op.name, function() return C.sample(op, true) end, f, writes,
            plain)
    -- a view of another dtype needs elements side by side
    if op.name ~= "_view_dtype" and op.name ~= "view_as_complex" then
      exhaust(op.name .. ", strided", function()
        return strided(C.sample(op))
      end, f, writes, varied)
    end
    if op.into then
      exhaust(op.name .. "_", function() return C.sample(op) end, op.into,
              true, varied)
    end
    if op.results and op.results:find("^tensor") and op.results ~= "tensors" and
       not writes then
      local results = {f(table.unpack(C.sample(op)))}
      local result = results[1]
      exhaust(op.name .. " with out", function()
        local args, out = C.sample(op), {}
        for i, y in ipairs(results) do out[i] = y:zeros_like() end
        args[#args + 1] = {out = #out == 1 and out[1] or out}
        return args
      end, f, nil, varied)
      if op.info and op.info.kind ~= "reduce" then
        exhaust(op.name .. " with out that overlaps", function()
          local args = C.sample(op)
          local i = op.info.kind == "choose" and 2 or 1
          local mem = nacre.zeros(9, {dtype = result.dtype})
          if args[i].dtype == mem.dtype then
            args[i] = mem:narrow(1, 2, 4):view(2, 2):copy_(args[i])
          end
          args[#args + 1] = {out = mem:narrow(1, 1, 4):view(2, 2)}
          return args
        end, f, true, varied)
      end
    end
  end
end

-- ---- other types, more elements, several threads, empty tensors

local function case(what, make, f, changes)
  if not only then exhaust(what, make, f, changes) end
end

local big = nacre.ones(300, 300)
local half = big:to("float16")
local function given(...)
  local list = table.pack(...)
  return function() return list end
end
for _, name in ipairs {"sum", "var", "norm", "logsumexp", "softmax", "cumsum",
                       "argmax", "max", "mean", "std", "exp", "nonzero"} do
  local dim = name ~= "exp" and name ~= "nonzero" and {dim = 1} or nil
  case(name .. " of much", given(big, dim), nacre[name])
  case(name .. " of halves", given(half:t(), dim), nacre[name])
  nacre.set_num_threads(2)
  case(name .. " on threads", given(big, dim), nacre[name])
  nacre.set_num_threads(1)
end
case("mixed types", given(big, half), nacre.add)
case("mm", given(big, big), nacre.mm)
case("mm of transposes", given(big:t(), big:t()), nacre.mm)
case("mm of integers", given(big:to("int32"), big:to("int32")), nacre.mm)
case("mm of halves", given(half, half), nacre.mm)
case("mm of short halves", given(big:to("bfloat16"), big:to("bfloat16")),
     nacre.mm)
case("conv of much", function()
  return {nacre.ones(4, 16, 32, 32, {requires_grad = true}),
          nacre.ones(32, 16, 3, 3, {requires_grad = true})}
end, function(x, w)
  return nacre.autograd.grad(nacre.nn.functional.conv2d(x, w):sum(), {x, w})
end)
case("cat", given({big, big, big}, 2), nacre.cat)
case("cat of types", given({big, half}, 1), nacre.cat)
case("split", given(big, {100, 150, 50}, 2), nacre.split)
case("unbind", given(big:narrow(2, 1, 9), 2), nacre.unbind)
case("equal", given(big, half), nacre.equal)
case("allclose", given(big, half, 1, 1, true), nacre.allclose)
case("randn", given(1000, 100), nacre.randn)
case("randperm", given(1000), nacre.randperm)

-- ---- what is not an operation of the table

case("tensor", given({{1, 2}, {3, 4}}), nacre.tensor)
case("tensor as half", given({{1, 2}, {3, 4}}, {dtype = "float16"}),
     nacre.tensor)
case("totable", given(big:narrow(1, 1, 3)), big.totable)
case("to", given(big, "float64"), big.to)
case("to, copied", given(big, {copy = true}), big.to)
case("..", given(big, big), function(a, b) return a .. b end)
case("operators", given(big, big), function(a, b) return -(a + b) * 2 / 3 end)
case("==", given(big, big), function(a, b) return a == b end)
case("item", given(big:sum()), big.item)
case("scope", given(big), function(a)
  return nacre.scope(function() return a:exp():sum() end)
end)
case("summary", given(big), function(a) return nacre._summary(a, 0) end)
case("iteration", given(big:narrow(1, 1, 3)), function(a)
  local n = 0
  for _, row in pairs(a) do n = n + row:sum():item() end
  return n
end)
local index, mask, one = nacre.tensor {3, 1, 2}, big:gt(0), nacre.tensor(2)
local column = nacre.tensor {{1}, {2}}
local reads = {
  ["t[i]"] = function(t) return t[1] end,
  ["t[i][j]"] = function(t) return t[1][2] end,
  ["t[{{a, b}, c}]"] = function(t) return t[{{1, 3}, 2}] end,
  ["t['1:3, ::2']"] = function(t) return t["1:3, ::2"] end,
  ["t[tensor]"] = function(t) return t[index] end,
  ["t[mask]"] = function(t) return t[mask] end,
  ["t(a, tensor)"] = function(t) return t({}, index) end,
  ["t[{tensor, tensor}]"] = function(t) return t[{index, index}] end,
  ["t[{tensor, {a, b}}]"] = function(t) return t[{index, {1, 3}}] end,
  ["t[{column, row}]"] = function(t) return t[{column, index}] end,
}
for what, f in pairs(reads) do case(what, given(big), f) end
local writes = {
  ["t[i] = n"] = function(t) t[1] = 5 end,
  ["t[i] = row"] = function(t) t[1] = t[2] end,
  ["t[{a, b}] = n"] = function(t) t[{1, 2}] = 5 end,
  ["t[{{a, b}}] = halves"] = function(t) t[{{1, 3}}] = half[1] end,
  ["t[tensor] = n"] = function(t) t[index] = 7 end,
  ["t[tensor] = rows"] = function(t) t[index] = t["4:6"] end,
  ["t[mask] = n"] = function(t) t[mask] = 3 end,
  ["t[mask] = t[mask]"] = function(t) t[mask] = t[mask] end,
  ["t[{column, row}] = row"] = function(t) t[{column, index}] = index end,
  ["t[{i, scalar}] = scalar"] = function(t) t[{1, one}] = one end,
  ["t[text] = itself"] = function(t) t["1:100"] = t["2:101"] end,
}
for what, f in pairs(writes) do
  case(what, function() return {big:clone()} end, f, true)
end
-- ---- recording and backward: either every leaf has its gradient, or none

local function leaf(t) return t:clone():requires_grad_() end
local recorded = {
  rows = function(x) return (x:exp() * x + 1):tanh() end,
  broadcast = function(x) return x * x[1] + x:sum(1) end,
  folds = function(x) return x:amax(1) + x:prod(1) + x:norm(2, 1) end,
  views = function(x) return x:t()["1:2"]:reshape(-1) * x[2][{{1, 1}}] end,
  lists = function(x)
    local a, b = table.unpack(x:split(1))
    return nacre.cat({a * b, nacre.stack({b, a})[1]})
  end,
  indices = function(x) return x[nacre.tensor {2, 1, 2}] * 2 end,
  assignment = function(x)
    local y = x * 1
    y[1] = x[2]
    y[nacre.tensor {2}] = x[1] * 2
    y[2]:mul_(x[1])
    return y * x
  end,
  lines = function(x) return x:softmax(1):cumsum(2):logsumexp(1) + x:std(1) end,
  norms = function(x)
    local F = nacre.nn.functional
    return F.layer_norm(x, 2, x[1], x[2]) +
           F.batch_norm(x, nil, nil, x[1], x[2], true) +
           F.group_norm(x:reshape(1, 2, 2), 1)[1]
  end,
  products = function(x) return x:mm(x:t()):matmul(x[1]) end,
  windows = function(x)
    local F, t, one = nacre.nn.functional, x:reshape(1, 1, 2, 2),
        nacre.ones(6, 1, 2, 2)
    local y = F.conv2d(t, one:mul(x:sum()), {padding = 1})
    return y:sum() + F.conv2d(t, t):sum() + F.max_pool2d(t, 2):sum() +
           F.unfold(t, 2):sum()
  end,
  types = function(x) return x:to("float64"):mul(2):to("float16") end,
}
for what, f in pairs(recorded) do
  case(what .. ", recorded", function()
    return {leaf(nacre.tensor {{1, 2}, {3, 4.5}})}
  end, function(x)
    local ok, e = pcall(function() f(x):sum():backward() end)
    check(ok == (x.grad ~= nil), "%s: a failure left a gradient", what)
    if not ok then error(e, 0) end
  end)
  case(what .. ", recorded again", function()
    return {leaf(nacre.tensor {{1, 2}, {3, 4.5}})}
  end, function(x)
    local y = (f(x) ^ 2):sum()
    local g = nacre.autograd.grad(y, x, {create_graph = true})
    g:sum():backward()
  end)
end
case("hooks", function() return {leaf(nacre.ones(2))} end, function(x)
  local y = x * 2
  local h = y:register_hook(function(g) return g * 2 end)
  y:sum():backward()
  h:remove()
end)
case("hooks after leaves, and at the end", function()
  return {leaf(nacre.ones(2)), leaf(nacre.ones(2))}
end, function(x, y)
  local ended, h = 0
  local begin = x:register_hook(function()
    nacre.autograd._at_end(function() ended = ended + 1 end)
  end)
  local ok, e = pcall(function()
    h = x:register_post_accumulate_grad_hook(function(p) p.grad = nil end);
    (x * y):sum():backward()
  end)
  begin:remove()
  if h then h:remove() end
  y.grad = nil
  check(ended <= 1 and (ended == 1 or not ok), "the end comes once")
  if not ok then error(e, 0) end
end)
case("custom functions", function() return {leaf(nacre.ones(2))} end,
     function(x)
  local F = nacre.autograd.Function {
    forward = function(ctx, t)
      local y = t:exp()
      ctx:save_for_backward(y, t)
      return y
    end,
    backward = function(ctx, g) return g * ctx.saved_tensors[1] end}
  F(x):sum():backward()
end)

local path = os.tmpname()
for _, t in ipairs {big, half, big:t(), nacre.ones(0), nacre.ones({})} do
  case("save", given(path, t), nacre.save)
  nacre.save(path, t)
  case("load", given(path), nacre.load)
end
os.remove(path)

local function archive(name)
  case("save " .. name, function()
    return {name, {a = big, b = half, c = big:t(), nacre.ones(0)}}
  end, nacre.save)
  nacre.save(name, {a = big, b = half, c = big:t()})
  case("load " .. name, given(name), nacre.load)
  os.remove(name)
end
archive(path .. ".safetensors")
if pcall(nacre.save, path .. ".npz", {big}) then archive(path .. ".npz") end
case("save a text", given(path .. ".csv", big), nacre.save)
case("load a text", given(path .. ".csv", {dtype = "float16"}), nacre.load)
case("load a text with names", given(path .. ".csv", {header = true}),
     nacre.load)
os.remove(path .. ".csv")

for _, format in ipairs {"npy", "safetensors", "csv"} do
  local what = format == "safetensors" and {big:t()} or big:t()
  case("serialize " .. format, given(what, {format = format}), nacre.serialize)
end
local image = nacre.randint(0, 256, {3, 40, 40}, {dtype = "uint8"})
local encoded, png = pcall(nacre.encode_png, image)
if encoded then                -- the library may not be there
  case("encode_png", given(image), nacre.encode_png)
  case("decode_png", given(png), nacre.decode_png)
end

check(failures > 1000 or arg and arg[1], "only %d calls failed", failures)
O.done("oom")
