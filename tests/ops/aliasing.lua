-- SPDX-License-Identifier: MIT
-- Operands that share memory: what an operation writes, in place or to
-- {out=}, is what it gives for operands apart, or the call is refused. Every
-- operation of the catalogue, every pair of its operands, and its result with
-- each; a new operation needs no line here.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local calls = dofile(here .. "../lib/small_calls.lua")
local right, refused = 0, 0

local function samesize(a, b)
  return table.concat(a:size(), "x") == table.concat(b:size(), "x")
end

-- Tensors of the shapes of a and b in one memory, and what they hold.
local layouts = {
  same = function(a, b)
    if not samesize(a, b) then return end
    local x = a:clone()
    return x, x
  end,
  transposed = function(a, b)
    if a:dim() ~= 2 or b:dim() ~= 2 or a:size(1) ~= b:size(2) or
       a:size(2) ~= b:size(1) then return end
    local x = a:clone()
    return x, x:t()
  end,
  shifted = function(a, b)
    local n = math.max(a:numel(), b:numel())
    local memory = nacre.empty(n + 1, {dtype = a.dtype})
    memory:narrow(1, 2, b:numel()):copy_(b:reshape(-1))
    memory:narrow(1, 1, a:numel()):copy_(a:reshape(-1))
    return memory:narrow(1, 1, a:numel()):view(a:size()),
           memory:narrow(1, 2, b:numel()):view(b:size())
  end,
  strided = function(a, b)                -- every other element, and all
    local memory = nacre.ones(2 * a:numel() + b:numel(), {dtype = a.dtype})
    local wide = memory:slice(1, 1, 2 * a:numel(), 2)
    wide:copy_(a:reshape(-1))
    local y = memory:narrow(1, 1, b:numel())
    if a:dim() == 2 then
      wide = memory:as_strided(a:size(), {2 * a:size(2), 2}, 0)
    elseif a:dim() ~= 1 then return end
    return wide, y:view(b:size())
  end,
}

local function call(f, args)
  nacre.manual_seed(7)
  return pcall(f, table.unpack(args))
end

local function equal(a, b)
  if not samesize(a, b) then return false end
  local wide = (a:is_complex() or b:is_complex()) and "complex128" or "float64"
  a, b = a:to(wide), b:to(wide)
  return nacre.allclose(a, b, 1e-6, 1e-6, true)
end

-- The arguments with clones in place of tensors, also of those in lists.
local function clones(args)
  local copy = {}
  for i, v in ipairs(args) do
    if nacre.is_tensor(v) then copy[i] = v:clone()
    elseif type(v) == "table" then copy[i] = clones(v)
    else copy[i] = v end
  end
  return copy
end

local function shown(what, want, got)
  return ("%s: %s, not %s"):format(what, nacre.is_tensor(got) and
    tostring(got) or "?", tostring(want))
end

-- f(args), which writes to args[1], with args[1] and args[k] in one memory.
local function inplace(what, f, args, k)
  for name, layout in pairs(layouts) do
    local a, b = args[1], args[k]
    if not (nacre.is_tensor(b) and b.dtype == a.dtype) then return end
    local x, y = layout(a, b)
    if x then
      local given = {table.unpack(args)}
      given[1], given[k] = x, y
      local apart = clones(given)
      local ok, want = call(f, apart)
      local before = x:clone()
      local done, got = call(f, given)
      local of = ("%s with self and operand %d %s"):format(what, k, name)
      if done then
        right = right + 1
        assert(ok, of .. ": works, but not apart: " .. tostring(want))
        assert(equal(got, want), shown(of, want, got))
      else
        refused = refused + 1
        assert(equal(x, before), of .. ": refused, but changed self")
      end
    end
  end
end

-- f(args) to a tensor that shares memory with args[k].
local function toout(what, op, args, k, results)
  for name, layout in pairs(layouts) do
    local a = args[k]
    local x, out = layout(a, nacre.empty(results:size(), {dtype = a.dtype}))
    if x then
      local given = {table.unpack(args)}
      given[k] = x
      local apart = clones(given)
      local ok, want = call(op.f, apart)
      given[#given + 1] = {out = out}
      local done, e = call(op.f, given)
      if ok and done and nacre.is_tensor(want) then
        right = right + 1
        assert(equal(out, want:to(out.dtype)),
               shown(("%s to %s of operand %d"):format(what, name, k), want,
                     out))
      else
        refused = refused + 1
        assert(not done or not ok, what .. ": " .. tostring(e))
      end
    end
  end
end

local function index(v)                   -- numbers that are positions, too
  if nacre.is_tensor(v) and v.dtype ~= "bool" then
    if v:is_complex() then v = v.real end
  return (v:to("int64") - 1) % 2 + 1
  elseif type(v) == "table" then
    local list = {}
    for i, x in ipairs(v) do list[i] = index(x) end
    return list
  end
  return v
end

local function operation(op, args, what)
  local writes = op.name:sub(-1) == "_"
  for k = 2, #args do
    if writes and nacre.is_tensor(args[1]) then
      inplace(what, op.f or op.method, args, k)
    elseif op.into and nacre.is_tensor(args[1]) then
      inplace(what .. "_", op.into, args, k)
    end
  end
  if writes or not op.results:find "^tensor" then return end
  local apart = clones(args)
  local ok, y, second = call(op.f, apart)
  if not ok or not nacre.is_tensor(y) or nacre.is_tensor(second) then return end
  for k, v in ipairs(args) do
    if nacre.is_tensor(v) then toout(what, op, args, k, y) end
  end
end

local count = 0
for _, op in ipairs(calls.all()) do
  if op.f and op.name ~= "empty" and op.name ~= "empty_like" and
     op.name ~= "new_empty" then
    count = count + 1
    operation(op, calls.sample(op), op.name)
    local ints = {}
    for i, v in ipairs(calls.sample(op)) do ints[i] = index(v) end
    operation(op, ints, op.name .. " of integers")
  end
end

-- A list of operands: the result may be one of them.
do
  local x = nacre.range(1, 8):reshape(4, 2)
  local a, b = x:narrow(1, 1, 2), x:narrow(1, 3, 2)
  nacre.cat({b, a}, 1, {out = x})
  assert(nacre.equal(x, nacre.tensor {{5, 6}, {7, 8}, {1, 2},
                                      {3, 4}}))
  local y = nacre.range(1, 4)
  y[nacre.tensor {1, 2, 3, 4}] = y:flip(1)
  assert(nacre.equal(y, nacre.tensor {4, 3, 2, 1}))
  y[{{2, 4}}] = y[{{1, 3}}]
  assert(nacre.equal(y, nacre.tensor {4, 4, 3, 2}))
  y:index_put_({y:clamp(1, 4)}, y)      -- values and positions at once
  assert(y:numel() == 4)
end
-- ---- clamp_ and a rounded div_ write where self lies, without a copy

local values = nacre.tensor {-2.5, -1, 0 / 0, 0.25, 3}
for _, step in ipairs {1, 2} do
  local memory = nacre.zeros(10)
  local x = memory[{("1:%d:%d"):format(5 * step, step)}]
  for name, args in pairs {clamp = {-1, 0.5}, clip = {nil, 1},
                           div = {2, {rounding_mode = "floor"}}} do
    x:copy_(values)
    local method = x[name .. "_"]
    nacre._fail_alloc(1, true)
    local ok, y = pcall(method, x, table.unpack(args, 1, 2))
    nacre._fail_alloc(0)
    assert(ok, y)
    assert(rawequal(x, y) and
           x:allclose(values[name](values, table.unpack(args, 1, 2)), 0, 0,
                      true), name)
  end
end
assert(right > count, "most operations take operands that share memory")
print(("aliasing: %d operations, %d calls right, %d refused")
      :format(count, right, refused))
