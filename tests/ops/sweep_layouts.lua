-- SPDX-License-Identifier: MIT
-- An operation gives the same for operands that lie in odd ways as for dense
-- copies of them: the calls that the examples of the reference and the tests of
-- gradients make, with operands as they are and larger, of each dtype. A new
-- operation needs no line here. Some operations of large broadcast operands.
-- Run by: nacre tests/ops/sweep_layouts.lua [part=N] [seed=N] [only=PATTERN]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local sweep = dofile(here .. "../lib/sweep.lua") {part = 61}
local V = dofile(here .. "../parity/variants.lua")
local record = dofile(here .. "../parity/recorded_calls.lua")

local device = nacre.ones(1).device
nacre.set_default_device "cpu"        -- what lies elsewhere is not recorded
local tests = {"autograd/grad_public", "autograd/grad_operators"}
local calls = record.calls(tests, 1)
nacre.set_default_device(device)

-- Whose results are a layout, or ask for one, or write to each place in memory
-- but once.
local skip = {}
for name in ([[stride storage_offset is_contiguous as_strided as_strided_
  detach_ fill_diagonal_]]):gmatch "%S+" do
  skip[name] = true
end

-- Differences that have a reason: what a call says of operands that lie oddly,
-- or of the memory that is left.
local known = {"several elements of the tensor share memory",
               "cannot be viewed as", "do not lie side by side",
               "limit of"}
nacre.set_memory_limit(1 << 28)

-- ---- one case

-- The tensors of a call that lie as planned and dense copies, by what was
-- recorded, and a list of the latter's values; nil if they cannot be made.
local function operands(call, plan)
  local odd, dense, list = {}, {}, {}
  if not pcall(V.arguments, call, plan, device, odd) then return end
  for v, t in pairs(odd) do
    dense[v] = sweep.layouts.dense(t)
    list[#list + 1] = dense[v]:clone()
  end
  return odd, dense, list
end

local function outcome(call, plan, made)
  local args = V.arguments(call, plan, device, made)
  nacre.manual_seed(7)
  local results = table.pack(pcall(call.f, table.unpack(args, 1, args.n)))
  local ok, late = pcall(nacre.synchronize)
  if not ok then results = {false, late} end
  results.n = nil
  return results[1] and results or {sweep.same.message(results[2])}
end

-- What differs between the operands after a call.
local function changed(dense, odd, scale)
  for v, t in pairs(dense) do
    local why = sweep.differs(t, odd[v], scale)
    if why then return "an operand: " .. why end
  end
end

local function try(call, plan)
  collectgarbage "step"
  local odd, dense, given = operands(call, plan)
  if not odd or V.ambiguous(call.name, given) then return end
  local scale = sweep.same.scale(given)
  local want, got = outcome(call, plan, dense), outcome(call, plan, odd)
  local why = sweep.differs(want, got, scale) or changed(dense, odd, scale)
  for _, text in ipairs(known) do
    if why and why:find(text) then return end
  end
  sweep.check(why, "%s, %s", call.name, V.describe(plan))
end

local chosen, ways = {}, {"any"}
for _, call in ipairs(calls) do
  if call.tensors > 0 and not skip[call.name] and sweep.wanted(call.name) then
    chosen[#chosen + 1] = call
  end
end
for _, name in ipairs(V.layouts) do
  if name ~= "dense" then ways[#ways + 1] = name end
end

for call, layout, dtype, values in
    sweep.cases(chosen, ways, {"", table.unpack(V.dtypes)}, {"asis", "big"}) do
  local plan = V.plain(false)
  plan.layout, plan.values, plan.seed = layout, values, sweep.option.seed
  plan.dtype = dtype ~= "" and dtype or nil
  try(call, plan)
end

-- ---- broadcast operands, large enough for blocks and threads

local random = math.random
local DTYPES <const> = {"float32", "float32", "float64", "bfloat16", "float16",
                        "int64", "int32", "uint8"}

local function any_dtype() return DTYPES[random(#DTYPES)] end

local function any_shape(most)
  local shape, n
  repeat
    shape, n = {}, 1
    for i = 1, random(4) do
      shape[i] = random(1, ({3, 40, 40, 300, 300, 3000})[random(6)])
      n = n * shape[i]
    end
  until n <= most
  return shape
end

-- Of the shape, or one that broadcasts to it.
local function operand(shape, dtype)
  local size, from = {}, random(4) == 1 and random(#shape) or 1
  for i = from, #shape do
    size[#size + 1] = random(3) == 1 and 1 or shape[i]
  end
  return {tensor = nacre.randint(0, 100, size, {device = "cpu"}):to(dtype)}
end

local broadcast = {
  add = function(a, b) return a + b end,
  mul_add = function(a, b, c) return a + b * c end,
  where = function(a, b, c) return nacre.where(a:lt(50), b, c) end,
  lt = function(a, b) return a:lt(b) end,
  clamp = function(a, b) return nacre.clamp(a, nil, b) end,
  addcmul = function(a, b, c) return nacre.addcmul(a, b, c) end,
  copy_ = function(a, _, c) return a:contiguous():clone():copy_(c) end,
}

local plan = V.plain(false)
plan.layout = "any"
for round = 1, device == "cpu" and 600 or 60 do
  local shape = any_shape(random(3) == 1 and 2000000 or 200000)
  local dtype = any_dtype()
  local other = random(5) == 1 and any_dtype() or dtype
  local call = {n = 3, operand(shape, dtype), operand(shape, other),
                operand(shape, dtype)}
  plan.seed = random(1 << 40)
  local given, dense = V.arguments(call, plan, device), {}
  math.randomseed(sweep.option.seed, round)
  local wide = nacre.broadcast_tensors(given)[1].shape
  for i, t in ipairs(given) do dense[i] = t:expand(wide):contiguous() end
  nacre.set_num_threads(random(3))
  for name, f in pairs(broadcast) do
    local a = name == "copy_" and dense[1] or given[1]
    local got = f(a, given[2], given[3]):expand(wide)
    sweep.check(not got:equal(f(table.unpack(dense))) and "differs" or nil,
                "%s, round %d of [%s]", name, round, table.concat(wide, "x"))
  end
end
sweep.finish(50000)
