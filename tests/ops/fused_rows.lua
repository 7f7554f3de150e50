-- SPDX-License-Identifier: MIT
-- A fused function gives the bits of the function itself: for every pointwise
-- operation followed by others at random, in each dtype and layout, in place,
-- with numbers, and for every number of threads. A new operation needs no line
-- here.
-- Run by: nacre tests/ops/fused_rows.lua [operation ...]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check = O.check
local lib = dofile(here .. "../lib/fused.lua")(O)
local compare, apply = lib.compare, lib.apply

math.randomseed(7)
local operations = O.operations()
local vector = O.vector

local function operands(op, t, n)
  local x = {}
  for i = 1, op.arity do x[i] = vector(i, t, n) end
  if op.kind == "choose" then x[1] = vector(1, "bool", n) end
  return x
end

local function map(x, f)
  local y = {}
  for i, t in ipairs(x) do y[i] = f(t, i) end
  return y
end

-- op, then another that takes its result, then a third.
local function chain(op, second, third)
  local f = nacre[op.name]
  return function(...)
    local y = f(...)
    local z = apply(second, y, (select(-1, ...)))
    return y, z, apply(third, z, y)
  end
end

local function any() return operations[math.random(#operations)] end

local layouts = {
  {"dense", function(t) return t end},
  {"transposed", function(t) return t:view(50, 60):t() end},
  {"every third", function(t) return t:slice(1, 2, -1, 3) end},
  {"columns", function(t) return t:view(100, 30):narrow(2, 5, 9) end},
  {"a row", function(t, i)
    t = t:view(100, 30)
    return i > 1 and t:select(1, 3) or t
  end},
  {"a column", function(t, i)
    t = t:view(100, 30)
    return i > 1 and t:narrow(2, 3, 1) or t
  end},
  {"0-d", function(t, i) return i > 1 and t:select(1, 5) or t end},
  {"one element", function(t) return t:narrow(1, 5, 1) end},
  {"no elements", function(t) return t:narrow(1, 5, 0) end},
}

local fused_parts = 0
local function test(op)
  for _, t in ipairs(O.dtypes) do
    local x = operands(op, t, 3000)
    for try = 1, 3 do
      local a, b = any(), any()
      local what = ("%s %s %s of %s"):format(op.name, a.name, b.name, t)
      local ok, fused = compare(chain(op, a, b), what, table.unpack(x))
      if ok and try == 1 then
        local text = fused:explain(table.unpack(x))
        if text:find "fused over" then fused_parts = fused_parts + 1 end
      end
    end
    for _, l in ipairs(layouts) do
      local a, b = any(), any()
      compare(chain(op, a, b), ("%s %s %s of %s, %s")
              :format(op.name, a.name, b.name, t, l[1]),
              table.unpack(map(x, l[2])))
    end
  end
  -- of two dtypes, with numbers
  if op.arity > 1 then
    for _, t in ipairs {"float16", "float32", "int8", "int64"} do
      local x = operands(op, t, 3000)
      for _, v in ipairs {2, 0.37, -1.5, true, nacre.tensor(0.1234567),
                          vector(2, "int32", 3000) * 1001,
                          vector(2, O.dtypes[math.random(#O.dtypes)], 3000)} do
        local y = map(x, function(e, i) return i == op.arity and v or e end)
        local a = any()
        local f, g = nacre[op.name], nacre[a.name]
        compare(function(...)
          local z = f(...)
          if a.kind == "choose" then return z, g(z:gt(0), z, z) end
          if a.arity == 1 then return z, g(z) end
          if a.arity == 2 then return z, g(z, x[1]) end
          return z, g(z, x[1], z)
        end, ("%s %s of %s, %s"):format(op.name, a.name, t, v),
        table.unpack(y))
      end
    end
  end
end

local chosen = {}
for _, name in ipairs(arg) do chosen[name] = true end
for _, op in ipairs(operations) do
  if op.kind ~= "reduce" and (#arg == 0 or chosen[op.name]) then test(op) end
end
check(fused_parts > 100 or #arg > 0, "only %d chains were fused", fused_parts)
print(fused_parts .. " chains fused")
O.done("fused_rows")
