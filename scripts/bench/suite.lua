-- SPDX-License-Identifier: MIT
-- Nacre's side of suite.py; suite_python.py is the other one.
--
--   nacre suite.lua THREADS FOLDER DEVICE   FOLDER has the numbers of suite.py
--
-- Says "ready" or why DEVICE is of no use, reads requests from stdin, a line
-- each with tabs between the words, and answers each with a line: "ok",
-- numbers, or "error: " and the reason.
--
--   row N DTYPE TIMER SMALL           forgets the last row; n is N
--   let NAME KIND DTYPE LIMIT SIZES SEED    an operand
--   setup TEXT                        runs statements
--   forward TEXT KEEPS                what is measured, an expression
--   gradient NAMES                    the gradient of that to these operands
--   check COUNT                       what the first COUNT results are
--   collect                           gives back what is not used any more
--   time CALLS                        seconds of a call, the processor's and
--                                     the wall's; of a device, its own twice

local threads, folder, device = table.unpack(arg)
local base = {}                 -- the numbers, when they are first needed
local values, measured, run     -- run(calls): a loop around what is measured
local timer, lets, sets         -- sets: as many loops as exceed the cache

local CACHE = 300e6             -- bytes, several times the largest cache
local SAMPLES, WARMUPS = 5, 3   -- of a turn on a device

nacre.set_num_threads(tonumber(threads))
nacre.manual_seed(1)

-- COUNT numbers of those that were loaded, from a place that SEED says on.
local function numbers(kind, count, seed)
  local from = base[kind] or nacre.load(folder .. "/" .. kind .. ".npy")
  base[kind] = from
  local length = from:numel()
  local first = seed * 7919 % length
  local copies = (first + count + length - 1) // length
  return from:tile(copies):narrow(1, first + 1, count)
end

--
-- Operands
--
-- Those of the CPU are the same on both sides.
local function on_cpu(o)
  local count = 1
  for _, n in ipairs(o.size) do count = count * n end
  local x = numbers(o.kind == "normal" and "normal" or "whole", count, o.seed)
  if o.kind == "whole" or o.kind == "position" then x = x % o.limit + 1 end
  if o.kind == "bit" then x = x % 2 end
  if o.kind == "positive" then x = (x % 1000 + 1) / 500 end
  return x:to(nacre[o.dtype]):reshape(o.size):clone()
end

-- Those of a device are drawn there, for each side its own.
local function on_device(o)
  local there = {device = device}
  if o.kind == "pageable" then return nacre.randn(o.size) end
  if o.kind == "pinned" then return nacre.randn(o.size):pin_memory() end
  if o.kind == "bit" then return nacre.rand(o.size, there):gt(0.5) end
  if o.kind == "whole" or o.kind == "position" then
    return nacre.randint(1, o.limit + 1, o.size, there):to(o.dtype)
  end
  return nacre.randn(o.size, there):to(o.dtype)
end

-- The weights of a network become the same on both sides.
local function same(net)
  local list = net.parameters and net:parameters() or net
  for i, p in ipairs(list) do
    local x = numbers("normal", p:numel(), i):reshape(p:size()) * 0.1
    p:detach():copy_(x)
  end
  return net
end

-- "dtype sizes mean" and up to some thousand of the elements of y.
local function summary(y)
  if type(y) ~= "userdata" then y = nacre.tensor(y) end
  y = y:detach()
  local count, flat = y:numel(), y:reshape(-1)
  local words = {tostring(y.dtype), table.concat(y:size(), ",")}
  if count == 0 then return table.concat(words, " ") .. " 0" end
  local step = count // 1000 | 1
  local positions = nacre.arange(1, count + 1, step):to(y.device)
  local some = flat:index_select(1, positions):double()
  words[#words + 1] = ("%.9g"):format(flat:double():mean():item())
  for _, v in ipairs(some:tolist()) do
    words[#words + 1] = ("%.9g"):format(v)
  end
  return table.concat(words, " ")
end

--
-- Loops
--
-- A loop over the expression, with these operands in its locals. What a device
-- holds is given back at once.
local function loop(text, operands, keeps)
  local names, list = {}, {}
  for i, o in ipairs(lets) do names[i], list[i] = o.name, operands[o.name] end
  return assert(load(("local %s = ...\nreturn function(calls_)\nlocal y_\n" ..
    "for _ = 1, calls_ do y_ = %s %s end\nreturn y_\nend"):format(
      #names > 0 and table.concat(names, ", ") or "_", text,
      timer ~= "" and not keeps and "y_:free()" or ""), "=row", "t", values))(
      table.unpack(list))
end

-- More loops, whose operands the cache does not hold from one to the next.
local function other_sets(text, keeps)
  local size, most = 0, timer == "device" and 16 or 1
  for _, o in ipairs(lets) do
    local x = values[o.name]
    size = size + x:numel() * x:element_size()
  end
  while #sets < most and #sets * size <= CACHE do
    local operands = {}
    for _, o in ipairs(lets) do operands[o.name] = on_device(o) end
    sets[#sets + 1] = loop(text, operands, keeps)
  end
end

-- A fused function is compiled while others go on.
local function await_kernels()
  local figure = require "nacre.machine".figure
  run(1)
  while figure "fused_waiting" > 0 do nacre.cuda.synchronize() end
end

--
-- Answers
--
local answer = {}

function answer.row(n, dtype, its_timer, small)
  values, measured, run, timer = nil, nil, nil, its_timer
  lets, sets = {}, {}
  answer.collect()
  if device ~= "cpu" then
    nacre.cuda.empty_cache()
    nacre.backends.cuda.matmul.allow_tf32 = false
  end
  values = setmetatable({nacre = nacre, n = math.tointeger(n), dtype = dtype,
                         small = small == "small", folder = folder,
                         F = nacre.nn.functional, nn = nacre.nn,
                         linalg = nacre.linalg, optim = nacre.optim,
                         same = same, here = arg[0]:match "^(.*)/" or "."},
                        {__index = _G})
  return "ok"
end

function answer.let(name, kind, dtype, limit, sizes, seed)
  local o = {name = name, kind = kind, dtype = dtype, size = {},
             limit = tonumber(limit), seed = tonumber(seed)}
  for n in sizes:gmatch "%d+" do o.size[#o.size + 1] = math.tointeger(n) end
  lets[#lets + 1] = o
  values[name] = (timer == "" and on_cpu or on_device)(o)
  return "ok"
end

function answer.setup(text)
  assert(load(text, "=setup", "t", values))()
  return "ok"
end

function answer.forward(text, keeps)
  measured = assert(load("return " .. text, "=row", "t", values))
  run = loop(text, values, keeps == "keeps")
  sets = {run}
  if timer ~= "" then
    other_sets(text, keeps == "keeps")
    await_kernels()
  end
  return "ok"
end

function answer.gradient(names)
  local leaves, forward = {}, measured
  for name in names:gmatch "%w+" do
    leaves[#leaves + 1] = values[name]:requires_grad_()
  end
  local y = (forward())
  local options = {grad_outputs = numbers("normal", y:numel(), 99)
                                  :reshape(y:size()):clone()}
  function measured()
    return nacre.autograd.grad((forward()), leaves, options)
  end
  function run(calls)
    local y_
    for _ = 1, calls do y_ = measured() end
    return y_
  end
  return "ok"
end

function answer.check(count)
  local found, results = {}, table.pack(measured())
  if type(results[1]) == "table" then results = results[1] end
  for i = 1, math.min(tonumber(count), #results) do
    found[i] = summary(results[i])
  end
  return table.concat(found, "\t")
end

function answer.collect()
  collectgarbage()
  collectgarbage()
  return "ok"
end

--
-- Times
--
local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

local timers = {}

timers[""] = function(calls)
  local wall, processor = nacre.clock(), os.clock()
  local y = run(calls)
  processor, wall = os.clock() - processor, nacre.clock() - wall
  return y ~= 0 and processor / calls, wall / calls
end

function timers.device(calls)
  local function event() return nacre.cuda.Event {enable_timing = true} end
  local from, to, seconds = {}, {}, {}
  for k = 1, SAMPLES do from[k], to[k] = event(), event() end
  for k = 1 - WARMUPS, SAMPLES do
    if k > 0 then from[k]:record() end
    sets[(k + WARMUPS - 1) % #sets + 1](calls)
    if k > 0 then to[k]:record() end
  end
  nacre.cuda.synchronize()
  for k = 1, SAMPLES do
    seconds[k] = from[k]:elapsed_time(to[k]) / 1e3 / calls
  end
  return median(seconds)
end

function timers.host(calls)
  local seconds = {}
  for k = -1, SAMPLES do
    nacre.cuda.synchronize()
    local start = nacre.clock()
    run(calls)
    if k > 0 then seconds[k] = (nacre.clock() - start) / calls end
  end
  nacre.cuda.synchronize()
  return median(seconds)
end

function answer.time(calls)
  local processor, wall = timers[timer](tonumber(calls))
  return ("%.9g %.9g"):format(processor, wall or processor)
end

local why = device ~= "cpu" and nacre.cuda.why()
print(why and "error: " .. why or "ready")
if device ~= "cpu" and not why then nacre.cuda.set_device(device) end
for line in io.lines() do
  local words = {}
  for word in (line .. "\t"):gmatch "([^\t]*)\t" do
    words[#words + 1] = word
  end
  local done, text = pcall(answer[words[1]], table.unpack(words, 2))
  if not done then text = "error: " .. tostring(text):gsub("\n.*", "") end
  print(text)
  io.stdout:flush()
end
