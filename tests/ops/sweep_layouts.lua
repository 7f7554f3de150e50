-- SPDX-License-Identifier: MIT
-- An operation gives the same for operands that lie in odd ways as for dense
-- copies of them: the calls that the examples of the reference and the tests of
-- gradients make, with operands as they are and larger, of each dtype. A new
-- operation needs no line here.
-- Run by: nacre tests/ops/sweep_layouts.lua [part=N] [seed=N] [only=PATTERN]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local sweep = dofile(here .. "../lib/sweep.lua") {part = 61}
local V = dofile(here .. "../parity/variants.lua")
local record = dofile(here .. "../parity/recorded_calls.lua")

local device = nacre.ones(1).device
nacre.set_default_device "cpu"        -- what lies elsewhere is not recorded
local tests = {"autograd/grad_public", "autograd/grad_operators"}
local calls = record(tests, 1)
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
               "cannot be viewed as", "limit of"}
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
sweep.finish(50000)
