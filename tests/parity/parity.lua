-- SPDX-License-Identifier: MIT
-- Parity: what an operation does on the CPU it does on a device: the same
-- values, dtype, shape, strides, gradients, errors. The calls are
-- those of the examples of the reference and of the tests of gradients, made
-- again as they are and then, by chance, with other values, dtypes, shapes and
-- layouts, in place or into out=. What is made of tensors lies where they do,
-- whatever the default device is: it is the other one, too.
-- Run by: nacre tests/parity/parity.lua [seed=N] [rounds=N] [only=PATTERN]
--         [with=TEST,...] [kinds=N] [case=N:SEED] [device=NAME]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local options = dofile(here .. "../lib/options.lua")({
  seed = "1", rounds = "2", only = "", with = "", kinds = "1",
  case = "", device = "cuda:0"
}, "cuda")

local record = dofile(here .. "recorded_calls.lua")
local V = dofile(here .. "variants.lua")
local same = dofile(here .. "compare.lua")
local methods, device = nacre._methods, options.device

-- ---- one call on one device

-- A loss that tells elements apart.
local function backward(v)
  if nacre.is_tensor(v) then
    if v.requires_grad then
      local dtype = v:is_complex() and "float64" or v.dtype
      local w = nacre.arange(v:numel(), {dtype = dtype, device = v.device})
      local sum = (v * (w % 7 + 1):reshape(v:size())):sum()
      if v:is_complex() then sum = sum.real + 2 * sum.imag end
      sum:backward {retain_graph = true}
    end
  elseif type(v) == "table" then
    for _, x in ipairs(v) do backward(x) end
  end
end

-- The function that is called: itself, its form in place, or with out=; args
-- are made to fit.
local function formed(call, plan, args, out)
  if plan.form == "into" and methods[call.name .. "_"] then
    if nacre.is_tensor(args[1]) and plan.grad then args[1] = args[1] * 1 end
    return methods[call.name .. "_"]
  elseif plan.form == "out" and out then
    local last = args[args.n]
    if type(last) ~= "table" or #last > 0 or nacre.is_tensor(last) then
      args.n = args.n + 1
      last = {}
      args[args.n] = last
    end
    last.out = out
  end
  return call.f
end

-- { ok, results or error, given tensors, gradients }; `default' is the default
-- device of a call that is given tensors.
local function outcome(call, plan, where, like, default)
  nacre.set_default_device(where)
  local made, args, given, leaves = pcall(V.arguments, call, plan, where)
  if not made then return {unmade = true} end   -- sizes near the limit
  if #given > 0 then nacre.set_default_device(default or where) end
  local out = like and V.memory(like, plan, where)
  local f = formed(call, plan, args, out)
  nacre.manual_seed(7)
  local results = table.pack(pcall(f, table.unpack(args, 1, args.n)))
  local synced, late = pcall(nacre.synchronize)
  local y = {given = given, out = out, ok = results[1] and synced,
             grads = {}}
  if not y.ok then
    y.why = results[1] and late or results[2]
  else
    table.remove(results, 1)
    results.n = nil
    y.results = results
    if plan.grad then
      y.backward, y.backwhy = pcall(backward, results)
      for i, t in ipairs(leaves) do y.grads[i] = t.grad or false end
    end
  end
  return y
end

local function differs(want, got, device)
  if want.ok ~= got.ok then
    return want.ok and "an error: " .. same.message(got.why) or
           "no error, the CPU says: " .. same.message(want.why)
  end
  local scale = same.scale(want.given)
  if not want.ok then
    local a, b = same.message(want.why), same.message(got.why)
    return a ~= b and ("it says: %s\n  not: %s"):format(b, a) or nil
  end
  local why = same.results(want.results, got.results, device, scale)
  if why then return "result " .. why end
  for i, t in ipairs(want.given) do
    why = same.tensors(t, got.given[i], device, scale)
    if why then return ("argument %d: %s"):format(i, why) end
  end
  if want.out then
    why = same.tensors(want.out, got.out, device, scale)
    if why then return "out: " .. why end
  end
  if want.backward ~= got.backward then
    return "backward: " .. tostring(got.backwhy or want.backwhy)
  end
  if want.backward == false then
    local a, b = same.message(want.backwhy), same.message(got.backwhy)
    return a ~= b and ("backward says: %s\n  not: %s"):format(b, a) or nil
  end
  scale.most = math.max(scale.most, 1) * 700
  why = same.results(want.grads, got.grads, device, scale)
  if why then return "gradient " .. why end
end

-- ---- the walk

local counts = {calls = 0, errors = 0, failed = 0, excused = 0}

-- Differences that have a reason: a pattern of the call, one of the difference.
local known = {
  -- a zero of the padding times an infinite weight is left out on one side
  {"conv", "nan"},
  -- what else is wrong is found before what the device finds in elements
  {"", "not: index %-?%d"},
  {"", "not: integer division by zero"},
  {"", "not: a probability is not"},
  -- two values for one element
  {"max_unpool", "result 1"},
  -- rows and classes, which the CPU checks and the device finds by an index
  {"embedding", "not: row %-?%d+ does not exist"},
  {"loss", "not: class %-?%d"}, {"cross_entropy", "not: class %-?%d"},
  -- powers of float32 are added up in float32 there: too large, too small
  {"norm", "inf, not"}, {"norm", "0.0, not .*e%-"},
  -- the mean of an infinity, and a deviation from it
  {"norm", "nan"}, {"norm", "0.0, not %-?0.0"},
  -- a device has less memory
  {"", "needs [%d.]+ [GTP]iB"},
  -- of rows that are the same
  {"pinv", "gradient"},
}

local function excused(call, why)
  for _, k in ipairs(known) do
    if call.name:find(k[1]) and why:find(k[2]) then return true end
  end
end

local function summary(v)
  if v.tensor then
    return ("%s[%s]"):format(v.tensor.dtype,
                             table.concat(v.tensor:size(), "x"))
  elseif v.list then
    local parts = {}
    for key, x in pairs(v.list) do
      parts[#parts + 1] = (type(key) == "string" and key .. "=" or "") ..
                          summary(x)
    end
    return "{" .. table.concat(parts, ", ") .. "}"
  end
  return tostring(v.value)
end

local function shown(call)
  local parts = {}
  for i = 1, call.n do parts[i] = summary(call[i]) end
  return ("%s(%s)"):format(call.name, table.concat(parts, ", "))
end

-- Fails unless a call gives the same on the device and on the CPU.
local function compare(want, got, i, call, plan, device)
  counts.calls = counts.calls + 1
  if not want.ok then counts.errors = counts.errors + 1 end
  local ok, why = pcall(differs, want, got, device)
  if ok and not why then return end
  if ok and excused(call, why) then
    counts.excused = counts.excused + 1
    return
  end
  counts.failed = counts.failed + 1
  print(("FAILED %s\n  (case=%d:%s; %s; on %s)\n  %s"):format(
    shown(call), i, plan.id, V.describe(plan), device, tostring(why)))
end

local function try(i, call, plan)
  local like
  local want = outcome(call, plan, "cpu")
  if want.unmade or V.ambiguous(call.name, want.given) then return end
  if plan.form == "out" and want.ok and nacre.is_tensor(want.results[1]) then
    like = want.results[1]:detach()
    want = outcome(call, plan, "cpu", like)
  end
  local got = outcome(call, plan, device, like, plan.apart and "cpu")
  compare(want, got, i, call, plan, device)
  if plan.apart and #want.given > 0 then
    got = outcome(call, plan, "cpu", like, device)
    compare(want, got, i, call, plan, "cpu")
  end
  nacre.set_default_device "cpu"
end

local function planned(i, id)
  if id <= 1 then
    local plan = V.plain(id == 1)
    plan.id = id
    return plan
  end
  math.randomseed(i, id)
  local plan = V.plan()
  plan.id = id
  return plan
end

-- Every operation of linalg is among the calls: those are made of many others,
-- and of tensors of their own.
local function complete(calls)
  local called = {}
  for _, call in ipairs(calls) do called[call.name] = true end
  for name, f in next, nacre.linalg do
    assert(type(f) ~= "function" or called["linalg." .. name],
           "linalg." .. name .. " is not called")
  end
end

local tests = {"autograd/grad_public", "autograd/grad_operators"}
for name in options.with:gmatch "[%w_/]+" do tests[#tests + 1] = name end
local calls = record.calls(tests, tonumber(options.kinds))
complete(calls)
local case, id = options.case:match "^(%d+):(%d+)$"
if case then
  try(tonumber(case), calls[tonumber(case)], planned(tonumber(case),
                                                     tonumber(id)))
else
  local from = tonumber(options.seed) * 1000
  for i, call in ipairs(calls) do
    if call.name:find(options.only) then
      try(i, call, planned(i, 1))
      for k = 1, tonumber(options.rounds) do
        try(i, call, planned(i, from + k))
      end
    end
  end
end
assert(counts.failed == 0, counts.failed .. " calls differ")
print(("parity: %d calls from %d, %d of them errors, %d differ for a reason")
      :format(counts.calls, #calls, counts.errors, counts.excused))
