-- SPDX-License-Identifier: MIT
--
-- job_pool.lua - runs jobs in parallel processes and collects their messages.

local host = require "nacre.host"
local printed_text = require "nacre.printed_text"
local process = require "nacre.process"
local root = require "nacre.project_root"
local run = require "nacre.run_test"

local jobs = {}

-- Parses what came through the pipe of p: messages {word, text, text2,
-- printed}, of which the last may be incomplete. Returns true if a test began.
function jobs.hear(p, bytes)
  local at, began = 1, false
  bytes = p.rest .. bytes
  local function message()
    local m, at = {}, at
    for i = 1, 4 do
      local n, from = bytes:match("^(%d+):()", at)
      at = n and from + math.tointeger(tonumber(n))
      if not n or at > #bytes + 1 then return end
      m[i] = bytes:sub(from, at - 1)
    end
    m[4] = tonumber(m[4])
    return m, at
  end
  local m, to = message()
  while m do
    p.messages[#p.messages + 1], at = m, to
    began = began or m[1] == "case"
    if m[1] == "where" then p.where = m[2] end
    m, to = message()
  end
  p.rest = bytes:sub(at)
  return began
end

-- A value as an expression of Lua.
local function literal(v)
  if type(v) ~= "table" then return ("%q"):format(v) end
  local parts = {}
  for k, item in pairs(v) do
    parts[#parts + 1] = ("[%s]=%s"):format(literal(k), literal(item))
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

-- What process.start runs for a job.
local function body_of(job)
  return job.anew and literal(job) or run.body(job)
end

local count = 0

local function start(job, body)
  count = count + 1
  local p = {job = job, folder = process.folder(tostring(count)),
             messages = {}, rest = "", begin = host.clock()}
  local inside = p.folder
  for _ = 1, job.unit and root.depth(job.unit) or 0 do
    inside = inside .. "/test"
  end
  host.makefolders(inside, true)
  if job.values or job.unit and job.unit.errors then
    p.shown = process.folder(count .. "-shown")
  end
  job.shown = p.shown
  p.pid, p.pipe, p.print = process.start(body or body_of(job), inside, job.pdb,
                                         job.anew)
  p.deadline = p.begin + (job.timeout or math.huge)
  return p
end

-- The outcome of a process that has ended.
local function finish(p, ended)
  local how, n, name = process.finish(p.pid, p.pipe, ended)
  process.remove(p.folder)
  if p.shown then process.remove(p.shown) end
  return {job = p.job, messages = p.messages,
          printed = printed_text.take(p.print, p.messages, p.job),
          how = how, status = n,
          signal = name, late = p.asked or not ended, where = p.where,
          time = host.clock() - p.begin}
end

-- Runs one process to its end.
function jobs.alone(job, body)
  local p = start(job, body)
  while true do
    local ready = process.wait({p.pipe}, p.deadline - host.clock())
    local text = ready[1] and process.read(p.pipe)
    if text then
      jobs.hear(p, text)
    elseif ready[1] or host.clock() >= p.deadline then
      return finish(p, ready[1] ~= nil)
    end
  end
end

-- How many tests of a *_test.lua have begun, and is the last still running?
local function tests_begun(messages)
  local n, open = 0, false
  for _, m in ipairs(messages) do
    if m[1] == "case" then
      n, open = n + 1, true
    elseif m[1] == "pass" or m[1] == "skip" or m[1] == "fail" then
      open = false
    end
  end
  return n, open
end

-- The outcome of a file whose tests ran in two processes, one after the other.
local function join_outcomes(a, b)
  local messages = a.messages
  for _, m in ipairs(b.messages) do
    m[4] = m[4] + #a.printed
    messages[#messages + 1] = m
  end
  b.messages, b.printed, b.lost = messages, a.printed .. b.printed, a.lost
  b.time = a.time + b.time
  return b
end

--
-- Several at once
--
local function memory()
  for line in io.lines "/proc/meminfo" do
    local kib = line:match "^MemAvailable:%s*(%d+)"
    if kib then return tonumber(kib) * 1024 end
  end
  return math.huge
end

function jobs.memory()
  local ok, bytes = pcall(memory)
  return ok and bytes or math.huge
end

-- May job start beside those that run?
local function may_start(s, job)
  if #s.running == 0 then return true end
  if #s.running >= s.most or s.running[1].job.serial or job.serial then
    return false
  end
  local same, memory = 0, job.mem or 0
  for _, p in ipairs(s.running) do
    if p.job.device == job.device then
      same, memory = same + 1, memory + (p.job.mem or 0)
    end
  end
  if job.mem and memory > job.room then return false end
  return job.device == "cpu" or same < s.ongpu
end

-- Starts the jobs that may start; one that may not does not block others.
local function start_more(s)
  local k = 1
  while s.waiting[k] and not s.stop do
    if may_start(s, s.waiting[k]) then
      local job = table.remove(s.waiting, k)
      local before = s.before[job]
      job.done = before and tests_begun(before.messages)
      s.running[#s.running + 1] = start(job)
    else
      k = k + 1
    end
  end
end

-- A test that ends its process (no end, os.exit, a crash) is lost; the tests
-- after it run in a new one. `lost` says how it ended, by the test's number.
local function process_ended(s, p, ended)
  for k, other in ipairs(s.running) do
    if other == p then table.remove(s.running, k) end
  end
  local part = finish(p, ended)
  local seconds = part.time
  local before = s.before[p.job]
  local outcome = before and join_outcomes(before, part) or part
  local n, open = tests_begun(outcome.messages)
  outcome.lost = outcome.lost or {}
  if open and not outcome.lost[n] and not p.job.names then
    outcome.lost[n] = {job = p.job, late = part.late, how = part.how,
                       status = part.status, signal = part.signal,
                       where = part.where,
                       time = seconds, to = #outcome.printed}
    s.before[p.job] = outcome
    table.insert(s.waiting, 1, p.job)
  elseif s.each(outcome) == false then
    s.stop = true
  end
end

-- Ends the running processes; what they sent so far counts.
local function end_all(s)
  for _, p in ipairs(s.running) do
    local part = finish(p, false)
    local before = s.before[p.job]
    local outcome = before and join_outcomes(before, part) or part
    outcome.lost, outcome.interrupted = outcome.lost or {}, true
    s.before[p.job] = nil
    s.each(outcome)
  end
  s.running = {}
end

local GRACE = 1 -- seconds

-- A test whose time is over has a moment to say where it is.
local function overdue(s, p)
  if p.asked then return process_ended(s, p, false) end
  p.asked, p.deadline = true, host.clock() + GRACE
  process.ask(p.pid)
end

local function step(s)
  local pipes, at, first = {}, {}, math.huge
  for k, p in ipairs(s.running) do
    pipes[k], at[p.pipe] = p.pipe, p
    first = math.min(first, p.deadline)
  end
  for _, pipe in ipairs(process.wait(pipes, first - host.clock())) do
    local text = process.read(pipe)
    local p = at[pipe]
    if not text then
      process_ended(s, p, true)
    elseif jobs.hear(p, text) and not p.asked then
      p.deadline = host.clock() + p.job.timeout -- each test has its own time
    end
  end
  for _, p in ipairs(table.move(s.running, 1, #s.running, 1, {})) do
    if p.where or host.clock() >= p.deadline then overdue(s, p) end
  end
end

-- Runs the jobs of the list, at most o.jobs at once and o.gpujobs on each CUDA
-- device. Calls each(outcome) as they end; false stops the rest.
function jobs.run(list, o, each)
  local s = {waiting = table.move(list, 1, #list, 1, {}), running = {},
             before = {}, most = o.jobs, ongpu = o.gpujobs, each = each}
  start_more(s)
  while #s.running > 0 and not process.pending_signal() do
    step(s)
    start_more(s)
  end
  end_all(s)
  for _, job in ipairs(s.waiting) do -- it was stopped between two tests
    local before = s.before[job]
    if before then
      before.interrupted = process.pending_signal() ~= nil
      each(before)
    end
  end
end

-- The CUDA devices: {free bytes, ...}, from 1, with nvrtc = is it there?; and
-- why there is none.
function jobs.devices()
  local outcome = jobs.alone({timeout = 60}, run.probe)
  local list, why = {}, nil
  for _, m in ipairs(outcome.messages) do
    if m[1] == "device" then list[#list + 1] = tonumber(m[3]) end
    if m[1] == "nvrtc" then list.nvrtc = tonumber(m[2]) == 1 end
    if m[1] == "none" then why = m[2] end
  end
  return list, why or outcome.printed
end

return jobs
