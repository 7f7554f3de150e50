-- SPDX-License-Identifier: MIT
-- Random programs do on a device what they do on the CPU: chains of recorded
-- calls (recorded_calls.lua), each of which takes what the ones before gave,
-- views and what is written in place among it. A step that is not the same bit
-- by bit is left out, so that no rounding grows; the program is then run again
-- on two streams of the device, without waiting for any step, and compared at
-- its end. Some, in float64, end with gradients.
-- Run by: nacre tests/parity/parity_programs.lua [seed=N] [programs=N]
-- [steps=N]
--         [with=TEST,...] [one=N]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local options = dofile(here .. "../lib/options.lua")({
  seed = "1", programs = "40", steps = "20", with = "", one = ""
}, "cuda")

local record = dofile(here .. "recorded_calls.lua")
local V = dofile(here .. "variants.lua")
local same = dofile(here .. "compare.lua")
local cuda, device = nacre.cuda, "cuda:0"
local MOST, POOL = 3000, 14   -- elements of a tensor, tensors around
local ROUGH = {most = 1e4, terms = 1e4}     -- of sums in float64

-- ---- the tensors that a program starts with

local starts = {}
local function start(t) starts[#starts + 1] = {tensor = t} end

nacre.manual_seed(3)
for _, dtype in ipairs {"float64", "float32", "int64"} do
  for _, size in ipairs {{3}, {2, 3}, {3, 3}, {2, 3, 4}} do
    start(nacre.randn(size):mul(4):round():to(dtype))
  end
end
start(nacre.randint(1, 3, {2, 3}))
start(nacre.tensor {{true, false, true}, {false, false, true}})
start(nacre.tensor {true, true, false})

-- Those of a program: with gradients of float64 only.
local function pool(program, where)
  local plan = {values = "asis", more = "asis", layout = "any", form = "call",
                seed = program.seed, grad = program.grad}
  local call, list = {n = 0}, {}
  for _, v in ipairs(starts) do
    if not program.grad or v.tensor.dtype ~= "float32" then
      call.n = call.n + 1
      call[call.n] = v
    end
  end
  local args, _, leaves = V.arguments(call, plan, where)
  for i = 1, call.n do
    -- what is to be written to is no leaf
    list[i] = program.grad and args[i].requires_grad and args[i] * 1 or args[i]
  end
  return list, leaves
end

-- ---- steps

-- The tensors of a recorded value, in the same order in each process.
local function templates(v, list)
  if v.tensor then list[#list + 1] = v end
  for _, key in ipairs(record.keys(v.list or {})) do
    templates(v.list[key], list)
  end
  return list
end

local function category(dtype)
  return dtype:match "^%a+"
end

-- A tensor of the pool that may do for what was recorded; or nil.
local function candidate(t, list)
  local fits, near = {}, {}
  for i, u in ipairs(list) do
    if category(u.dtype) == category(t.dtype) then
      near[#near + 1] = i
      if nacre.equal(nacre.tensor(u:size()), nacre.tensor(t:size())) then
        fits[#fits + 1] = i
      end
    end
  end
  local from = #fits > 0 and math.random() < 0.7 and fits or near
  return from[math.random(math.max(#from, 1))]
end

-- { call, the tensors of the pool it takes, a seed }
local function draw(calls, list)
  while true do
    local call, from, any = calls[math.random(#calls)], {}, false
    local of = {}
    for i = 1, call.n do templates(call[i], of) end
    for _, v in ipairs(of) do
      from[v] = candidate(v.tensor, list)
      any = any or from[v]
    end
    if any then
      return {call = call, from = from, place = math.random(POOL),
              stream = math.random(2)}
    end
  end
end

local function tensors(v, list)
  if nacre.is_tensor(v) then
    list[#list + 1] = v
  elseif type(v) == "table" then
    for _, x in ipairs(v) do tensors(x, list) end
  end
  return list
end

local plain = V.plain(false)

local function take(step, list, where)
  local made = {}
  for v, i in pairs(step.from) do made[v] = list[i] end
  local args = V.arguments(step.call, plain, where, made)
  nacre.manual_seed(7)
  return table.pack(step.call.f(table.unpack(args, 1, args.n)))
end

-- The tensors of the CPU that a step takes.
local function taken(step, list)
  local made, of = {}, {}
  for i = 1, step.call.n do templates(step.call[i], of) end
  for i, v in ipairs(of) do
    made[i] = step.from[v] and list[step.from[v]] or v.tensor
  end
  return made
end

local function keep(step, list, results)
  for _, t in ipairs(tensors(results, {})) do
    local known
    for _, u in ipairs(list) do known = known or rawequal(u, t) end
    if not known and t:numel() <= MOST then
      if #list < POOL + #starts then
        list[#list + 1] = t
      else
        list[#starts + step.place] = t
      end
    end
  end
end

-- All steps again, waiting for nothing; streams, if there are some, take turns.
local function replay(program, where, streams)
  nacre.set_default_device(where)
  local list, leaves = pool(program, where)
  local last = streams and cuda.current_stream()
  for _, step in ipairs(program) do
    local function once() keep(step, list, take(step, list, where)) end
    if streams then
      local s = streams[step.stream]
      if s ~= last then s:wait_stream(last) end
      cuda.stream(s, once)
      last = s
    else
      once()
    end
  end
  if streams then cuda.current_stream():wait_stream(last) end
  return list, leaves
end

local function compare(a, b, scale)
  for i, t in ipairs(a) do
    local why = same.tensors(t, b[i], device, scale)
    if why then return ("tensor %d: %s"):format(i, why) end
  end
end

-- ---- programs

local function names(program)
  local list = {}
  for i, step in ipairs(program) do list[i] = step.call.name end
  return table.concat(list, " ")
end

local function attempt(step, list, where)
  nacre.set_default_device(where)
  local ok, y = pcall(take, step, list, where)
  local synced, late = pcall(nacre.synchronize)
  return ok and synced, ok and late or y, ok and y
end

-- May it have written to a tensor before it failed?
local function writes(name)
  return name:find "_$" or name == "__newindex" or name:find "norm$"
end

-- A program of so many steps; the CPU's tensors after them, and its leaves.
local function write(calls, program, steps)
  local ours, leaves = replay(program, "cpu")
  local theirs = replay(program, device)
  for k = 1, steps * 20 do
    if #program >= steps then break end
    math.randomseed(program.seed, k)
    nacre.set_default_device "cpu"
    local step = draw(calls, ours)
    while V.ambiguous(step.call.name, taken(step, ours)) do
      step = draw(calls, ours)
    end
    local ok, why, results = attempt(step, ours, "cpu")
    local fine, other, there = attempt(step, theirs, device)
    if ok ~= fine then
      return nil, ("%s: %s"):format(step.call.name,
                                   same.message(ok and other or why))
    end
    local off
    if ok then
      local scale = same.scale(taken(step, ours))
      off = same.results(results, there, device, scale) or
            compare(ours, theirs, scale)
      if off and not step.call.name:find "^linalg" then
        return nil, ("%s: %s"):format(step.call.name, off)
      end
      off = off or same.results(results, there, device) or
            compare(ours, theirs)
    end
    if ok and not off then
      program[#program + 1] = step
      keep(step, ours, results)
      keep(step, theirs, there)
    elseif writes(step.call.name) then
      ours, leaves = replay(program, "cpu")
      theirs = replay(program, device)
    end
  end
  return ours, leaves
end

local function gradients(list, leaves)
  local sum
  for _, t in ipairs(list) do
    if t.dtype == "float64" and t.requires_grad then
      local w = nacre.arange(t:numel(), {dtype = t.dtype}) % 7 + 1
      local part = (t * w:reshape(t:size())):sum()
      sum = sum and sum + part or part
    end
  end
  if sum then sum:backward() end
  local grads = {}
  for i, t in ipairs(leaves) do grads[i] = t.grad or false end
  return grads
end

-- Gradients of singular matrices and the like say nothing, nor do those that
-- have gone through coarser types.
local function tame(grads, list, program)
  for _, step in ipairs(program) do
    if step.call.name:find "^linalg" then return false end
  end
  for _, t in ipairs(list) do
    if t.dtype ~= "float64" and t:is_floating_point() then return false end
  end
  for _, t in ipairs(grads) do
    if t and not t:abs():lt(1e6):all():item() then return false end
  end
  return true
end

local function run(calls, number)
  math.randomseed(tonumber(options.seed), number)
  local program = {seed = math.random(1 << 40), grad = number % 4 == 0}
  local ours, leaves = write(calls, program, math.random(
    5, tonumber(options.steps)))
  if not ours then return leaves, program end
  nacre.set_default_device(device)
  local streams = {cuda.Stream(), cuda.Stream()}
  local theirs, others = replay(program, device, streams)
  nacre.synchronize()
  local why = compare(ours, theirs)
  if not program.grad or why then return why, program end
  local fine, got = pcall(gradients, theirs, others)
  nacre.set_default_device "cpu"
  local ok, want = pcall(gradients, ours, leaves)
  if ok and fine then
    if tame(want, ours, program) then
      why = same.results(want, got, device, ROUGH)
    end
  elseif ok or fine or same.message(want) ~= same.message(got) then
    why = "backward: " .. same.message(ok and got or want)
  end
  return why, program
end

local tests = {"autograd/grad_public", "autograd/grad_operators"}
for name in options.with:gmatch "[%w_/]+" do tests[#tests + 1] = name end
local calls, failed, steps = {}, 0, 0
for _, call in ipairs(record.calls(tests, 1)) do
  if call.tensors > 0 and not call.name:find "requires_grad" then
    calls[#calls + 1] = call
  end
end
local only = tonumber(options.one)
for number = only or 1, only or tonumber(options.programs) do
  local ok, why, program = pcall(run, calls, number)
  nacre.set_default_device "cpu"
  if not ok or why then
    failed = failed + 1
    print(("FAILED (seed=%s one=%d): %s\n  %s"):format(options.seed, number,
      tostring(why), program and names(program) or ""))
  end
  steps = steps + (program and #program or 0)
end
assert(failed == 0, failed .. " programs differ")
print(("parity_programs: %d steps of %d calls"):format(steps, #calls))
