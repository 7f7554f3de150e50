-- SPDX-License-Identifier: MIT
-- Hooks and custom functions that refer to the tensor whose graph holds them
-- are collected, and none that a graph may still call is.

local function collect() collectgarbage() collectgarbage() end

-- What make() gives is collected, and its memory is given back.
local function dies(what, make)
  collect()
  local live, weak = nacre._memory().live, setmetatable({}, {__mode = "v"})
  for i = 1, 3 do weak[i] = make() end
  collect()
  for i = 1, 3 do assert(weak[i] == nil, what .. " lives") end
  assert(nacre._memory().live <= live, what .. " holds memory")
end

local function leaf(n) return nacre.ones(n or 3):requires_grad_() end

local function keeps(field)
  return nacre.autograd.Function {
    forward = function(ctx, x)
      local y = x * 2
      ctx[field] = field == "f" and function() return y end or y
      return y
    end,
    backward = function(_, g) return g * 2 end,
  }
end

for _, back in ipairs {false, true} do
  local function made(y, z)
    if back then y:sum():backward() end
    return z or y
  end
  dies("a leaf with a hook", function()
    local x = leaf()
    x:register_hook(function(g) return g + x * 0 end)
    return made(x * 2, x)
  end)
  dies("a result with a hook", function()
    local y = leaf() * 2
    y:register_hook(function(g) return g * y:detach() end)
    return made(y)
  end)
  dies("a module", function()
    local m = {w = leaf()}
    m.w:register_hook(function(g) m.last = g end)
    m.out = m.w * 2
    m.view = m.out["1:2"]
    return made(m.view, m.w)
  end)
  dies("a result on ctx", function() return made(keeps "y"(leaf())) end)
  dies("a closure on ctx", function() return made(keeps "f"(leaf())) end)
  dies("a hook with its handle", function()
    local x, h = leaf(), nil
    h = x:register_hook(function() h:remove() end)
    return made(x * 1, x)
  end)
  dies("two hooks in a ring", function()
    local x, y = leaf(), leaf()
    x:register_hook(function() return y:detach() end)
    y:register_hook(function() return x:detach() end)
    return made(x * y, x)
  end)
  dies("a hook from a coroutine", function()
    local x = leaf()
    coroutine.wrap(function() x:register_hook(function() return x end) end)()
    return made(x * 1, x)
  end)
  dies("an element with a hook", function()
    local x = leaf()
    local e = x[2]
    e:register_hook(function() return e:detach() end)
    return made(e)
  end)
end
dies("a graph of gradients", function()
  local x = leaf()
  local y = x ^ 3
  y:register_hook(function(g) return g * y end)
  y:sum():backward {create_graph = true}
  return y
end)

-- ---- what may still be called is kept, with all that it names
do
  local calls, y = 0, nil
  do
    local x, scale = leaf(2), nacre.tensor {2., 3.}
    x:register_hook(function(g)
      calls = calls + 1
      x.last = nil
      return g * scale * x:detach()
    end)
    y = (x * 2):sum()
  end
  collect()
  assert(not pcall(y.backward, y, {retain_graph = true}), "x has no field")
  assert(calls == 1)
end
do
  local calls, y = 0, nil
  do
    local x, scale = leaf(2), nacre.tensor {2., 3.}
    local z = x * 1
    z:register_hook(function(g)
      calls = calls + 1
      return g * scale * z:detach()
    end)
    y = (z * 2):sum()
  end
  collect()
  y:backward {retain_graph = true}
  collect()
  y:backward()
  assert(calls == 2)
end
do                  -- x.grad alone holds the graph that the hook is in
  local calls, x = 0, leaf()
  do
    local y = x ^ 2
    y:register_hook(function(g)
      calls = calls + 1
      return g * y
    end)
    y:sum():backward {create_graph = true}
  end
  collect()
  local g = x.grad
  x.grad = nil
  g:sum():backward()
  assert(calls == 2 and x.grad:eq(6):all():item())
end
do                  -- a collection while the graph is at work
  local x, seen = leaf(2), nil
  x:register_hook(function(g)
    collect()
    seen = g * x:detach()
  end)
  local f = keeps "y"(x)
  f:register_hook(function() collect() end)
  ;(f * 3):sum():backward()
  assert(seen and seen[1] == 6)
end
do                  -- a removed hook, a freed tensor
  local x = leaf()
  local h = x:register_hook(function() return x end)
  h:remove()
  h:remove()
  collect()
  x:free()
  collect()
end

do                  -- finalizers that register more while tensors are counted
  local finalizing = {}
  local function litter()
    for _ = 1, 30 do
      setmetatable({}, {__gc = function()
        for _ = 1, 20 do
          local x = leaf()
          x:register_hook(function() return x end)
          finalizing[#finalizing + 1] = x
        end
      end})
    end
  end
  collectgarbage("incremental", 1, 1000, 4) -- a step at every occasion
  for _ = 1, 20 do
    litter()
    local x = leaf()
    x:register_hook(function() return x end)
    collectgarbage()
  end
  collectgarbage "generational"
  assert(#finalizing > 0)
end

-- ---- by chance: a hook is called if and only if its graph goes backward
local random = math.random
math.randomseed(7)
for _ = 1, 40 do
  local kept, counts = {}, {}
  for i = 1, 30 do
    local a = kept[random(#kept + 1)] or leaf(4)
    local b = kept[random(#kept + 1)] or leaf(4)
    local y = random(3) == 1 and keeps "y"(a) or a * b
    local box = {y, kept[random(#kept + 1)]}
    counts[i] = 0
    y:register_hook(function()
      counts[i] = counts[i] + 1
      assert(box[1]:numel() == 4)
    end)
    kept[#kept + 1] = y
    if random(3) == 1 then table.remove(kept, random(#kept)) end
    if random(5) == 1 then collectgarbage() end
    if random(5) == 1 then nacre.scope(function() return leaf() * 2 end) end
  end
  local last = kept[#kept]
  local own = nacre.ones(4) + last
  local called = 0
  own:register_hook(function() called = called + 1 end)
  kept, last = nil, nil
  collect()
  own:sum():backward()
  local any = 0
  for i = 1, 30 do any = any + counts[i] end
  assert(called == 1 and any >= 1)
end

-- ---- collectgarbage is otherwise Lua's
assert(collectgarbage "count" > 0 and collectgarbage "isrunning" == true)
assert(collectgarbage() == 0 and collectgarbage "collect" == 0)
local _, why = pcall(collectgarbage, "what")
assert(why:find "invalid option 'what'", why)
