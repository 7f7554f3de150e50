-- SPDX-License-Identifier: MIT
-- For the tests of parity: arguments of a recorded call (recorded_calls.lua),
-- made on a device as a plan says: with other values, dtypes and shapes, lying
-- otherwise in memory. The same plan gives the same tensors on each device.
--   local V = dofile(here .. "variants.lua")
--   plan = V.plan(); args = V.arguments(call, plan, device)

local V = {}

V.dtypes = {"bool", "uint8", "int8", "int16", "int32", "int64",
            "float16", "bfloat16", "float32", "float64"}
local MOST = 20000            -- elements of a tensor that is made larger

-- ---- the elements: a dense tensor of the CPU gives another

local change = {}

function change.asis(c) return c end

function change.big(c)
  local times = ({701, 23, 8, 4, 3})[c:dim()] or 1
  if c:dim() == 0 or c:numel() * times ^ c:dim() > MOST then return c end
  local each = {}
  for d = 1, c:dim() do each[d] = times end
  return c:tile(table.unpack(each))
end

function change.empty(c)
  return c:dim() > 0 and c:narrow(1, 1, 0):clone() or c
end

function change.one(c)
  local d = c:dim() > 0 and math.random(c:dim())
  return d and c:size(d) > 0 and c:narrow(d, 1, 1):clone() or c
end

function change.scalar(c)
  return c:numel() > 0 and c:reshape(-1)[{{1, 1}}]:reshape({}) or c
end

-- Some numbers are those that are none, or limits.
function change.special(c)
  local list = (c:is_floating_point() or c:is_complex()) and
    {0 / 0, math.huge, -math.huge, -0.0, 0.0, 1e-40} or
    {0, 1, c.dtype == "uint8" and 255 or -1}
  if c.dtype == "bool" or c:numel() == 0 then return c end
  local flat = c:reshape(-1):clone()
  for _ = 1, math.random(3) do
    flat[math.random(#flat)] = list[math.random(#list)]
  end
  return flat:reshape(c:size())
end

-- Numbers that are no positions, where integers are some.
local wrong = {0, 99, -99, -1, 2, 7}

function change.bounds(c)
  if c.dtype ~= "int64" and c.dtype ~= "int32" or c:numel() == 0 then
    return c
  end
  local flat = c:reshape(-1):clone()
  flat[math.random(#flat)] = wrong[math.random(#wrong)]
  return flat:reshape(c:size())
end

-- What the plan wants of a dtype; of integers only if there are no floats.
local function cast(c, plan, floats)
  local dtype = plan.dtype
  if dtype == "any" then dtype = V.dtypes[math.random(#V.dtypes)] end
  if not dtype or c:is_complex() or floats and not c:is_floating_point() then
    return c
  end
  return c:to(dtype)
end

-- ---- how they lie: a tensor of the device gives an equal one

local lay = {}

function lay.dense(t) return t end

function lay.transposed(t)
  if t:dim() < 2 then return t end
  return t:transpose(1, -1):contiguous():transpose(1, -1)
end

function lay.rotated(t)
  if t:dim() < 3 then return lay.transposed(t) end
  local to, back = {}, {}
  for d = 1, t:dim() do
    to[d] = d % t:dim() + 1
    back[to[d]] = d
  end
  return t:permute(to):contiguous():permute(back)
end

-- Not where 16 bytes begin.
function lay.offset(t)
  local memory = nacre.zeros(t:numel() + 1, {dtype = t.dtype,
                                             device = t.device})
  local part = memory:narrow(1, 2, t:numel()):view(t:size())
  return part:copy_(t)
end

function lay.stepped(t)
  if t:dim() == 8 then return t end
  local memory = nacre.stack({t, t}, -1)
  return memory:select(-1, 2)
end

-- Rows are further apart than they are long.
function lay.rows(t)
  if t:dim() < 2 or t:numel() == 0 then return lay.offset(t) end
  local size = t:size()
  local memory = nacre.zeros(size[1], t:numel() // math.max(size[1], 1) + 3,
                             {dtype = t.dtype, device = t.device})
  local d = memory:narrow(2, 2, t:numel() // math.max(size[1], 1))
  return d:unflatten(2, table.move(size, 2, #size, 1, {})):copy_(t)
end

function lay.expanded(t)
  if t:dim() == 0 or t:size(1) < 2 then return t end
  return t:narrow(1, 1, 1):contiguous():expand(t:size())
end

local function names(t)
  local n = {}
  for name in pairs(t) do n[#n + 1] = name end
  table.sort(n)
  return n
end
local changes, layouts = names(change), names(lay)
V.layouts = layouts

-- ---- plans

local function pick(list, p)
  return math.random() < p and list[math.random(#list)] or nil
end

-- How a call is made again. The plain one is as it was recorded.
function V.plain(grad)
  return {values = "asis", more = "asis", layout = "dense", form = "call",
          apart = true, grad = grad, seed = 1}
end

function V.plan()
  local plan = {values = pick(changes, 0.7) or "asis",
                more = pick(changes, 0.2) or "asis",
                some = math.random() < 0.2,
                layout = pick(layouts, 0.5) or "any",
                form = pick({"call", "into", "out"}, 0.4) or "call",
                grad = math.random() < 0.4, seed = math.random(1 << 40),
                apart = math.random() < 0.2}
  plan.dtype = pick(V.dtypes, 0.3) or pick({"any"}, 0.05)
  return plan
end

function V.describe(plan)
  return table.concat({plan.values, plan.more,
                       plan.some and "some" or "all", plan.layout, plan.form,
                       plan.dtype or "its dtype",
                       plan.grad and "grad" or "no grad",
                       plan.apart and "apart from the default device" or
                       "on the default device"}, ", ")
end

-- ---- arguments

local function anyfloats(v)
  if v.tensor then
    return v.tensor:is_floating_point() or v.tensor:is_complex()
  end
  for _, x in pairs(v.list or {}) do
    if anyfloats(x) then return true end
  end
end

local function tensor(v, world)
  local plan, c = world.plan, v.tensor
  local layout = plan.layout
  if layout == "any" then layout = layouts[math.random(#layouts)] end
  if not plan.some or math.random(2) == 1 then
    c = change[plan.more](change[plan.values](c))
  end
  c = cast(c, plan, world.floats)
  local t = lay[layout](c:clone():to(world.device))
  if plan.grad and (t:is_floating_point() or t:is_complex()) then
    t:requires_grad_()
    world.leaves[#world.leaves + 1] = t
  end
  world.given[#world.given + 1] = t
  return t
end

-- One of the numbers may be wrong, too; not more, as sizes multiply.
local function number(v, world)
  local plan = world.plan
  if (plan.values == "bounds" or plan.more == "bounds") and not world.wrong and
     math.type(v) == "integer" and math.random(3) == 1 then
    world.wrong = true
    return wrong[math.random(#wrong)]
  end
  return v
end

local value

local function list(v, world)
  local made, keys = {}, {}
  for key in pairs(v.list) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do made[key] = value(v.list[key], world) end
  return made
end

function value(v, world)
  local made = world.made[v]
  if made then return made end
  if v.tensor then
    made = tensor(v, world)
    world.made[v] = made
    return made
  end
  if v.list then return list(v, world) end
  if v.value == "cpu" then return world.device end
  return number(v.value, world)
end

-- The arguments of a call on a device, as a table with n; the tensors among
-- them that were made, and those that get gradients. `made' has tensors that
-- are there already, by what was recorded.
function V.arguments(call, plan, device, made)
  local world = {plan = plan, device = device, made = made or {}, given = {},
                 leaves = {}}
  for i = 1, call.n do world.floats = world.floats or anyfloats(call[i]) end
  math.randomseed(plan.seed)
  local args = {n = call.n}
  for i = 1, call.n do args[i] = value(call[i], world) end
  return args, world.given, world.leaves
end

-- May a call write to positions of which some are the same, as -1 and the last
-- are? Which of several stays there is not said.
function V.ambiguous(name, tensors)
  if not (name:find "^__newindex" or name:find "put" or name:find "scatter" or
          name:find "index_copy" or name:find "unpool") then
    return false
  end
  for _, t in ipairs(tensors) do
    if t.dtype:find "^int" then
      local ok, same = pcall(function()
        return t:unique():numel() < t:numel() or t:lt(0):any():item()
      end)
      if not ok or same then return true end
    end
  end
  return false
end

-- Memory for a result like t, laid in one way or another; nil if it is large.
function V.memory(t, plan, device)
  if t:numel() > 100 * MOST then return nil end
  math.randomseed(plan.seed + 1)
  local name = layouts[math.random(#layouts)]
  if name == "expanded" then name = "dense" end
  return lay[name](nacre.zeros(t:size(), {dtype = t.dtype, device = device}))
end

return V
