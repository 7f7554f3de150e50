-- SPDX-License-Identifier: MIT
--
-- job_plan.lua - expands test files to jobs: one for each file, device and
-- dtype. A job that cannot run here becomes a result at once, skipped or
-- failed.

local file = require "nacre.test_file"
local jobs = require "nacre.job_pool"
local root = require "nacre.project_root"
local values = require "nacre.stored_values"

local plan = {}

local TIMEOUT = 60

local function ordinal(device) return tonumber(device:match "^cuda:(%d+)$") end

local function normal(device) return device == "cuda" and "cuda:0" or device end

-- The devices that were asked for, without repetition.
local function named(list, gpus, required)
  local out, seen = {}, {}
  local function put(device)
    if not seen[device] then out[#out + 1] = device end
    seen[device] = true
  end
  for _, device in ipairs(list) do
    if device == "all" then
      put "cpu"
      local count = math.max(#gpus, required and 1 or 0)
      for i = 1, count do put("cuda:" .. i - 1) end
    else
      put(normal(device))
    end
  end
  return out
end

-- The devices of a file, in the order it names them.
local function devices(unit, p)
  local says = unit.says.devices and named(unit.says.devices, p.gpus)
  if not p.devices then
    local both = #p.gpus > 0 or p.require
    return says or both and {"cpu", "cuda:0"} or {"cpu"}
  end
  if not says then return p.devices end
  local both = {}
  for _, device in ipairs(says) do
    for _, other in ipairs(p.devices) do
      if device == other then both[#both + 1] = device end
    end
  end
  return both
end

local ABSENT = "cuda not available"

-- Why a job cannot run here, whether a device is missing, and whether a file
-- is, which is a failure: the project is not whole.
local function why_impossible(job, p)
  local unit, k = job.unit, ordinal(job.device)
  if k and not p.gpus[k + 1] then return ABSENT, true end
  for _, need in ipairs(unit.needs) do
    if need.what == "cuda" and #p.gpus < need.count then
      return need.count == 1 and ABSENT or "needs cuda>=" .. need.count, true
    elseif need.what == "file" and not root.find(unit, need.path) then
      local text = ("needs file%s %s"):format(need.may_lack and "?" or "",
                                              need.path)
      return text, false, not need.may_lack
    elseif (need.what == "png" or need.what == "jpg") and
           not pcall(nacre.serialize, nacre.zeros(1, 1),
                     {format = need.what}) then
      return "needs " .. need.what
    elseif need.what == "nvrtc" and not p.gpus.nvrtc then
      return "needs nvrtc"
    elseif need.what == "python" and not nacre._python_has(need.modules) then
      return (("needs python " .. need.modules):gsub("%s+$", ""))
    elseif need.what == "mem" then
      job.mem, job.room = need.bytes, k and p.gpus[k + 1] or p.memory
      if job.mem > job.room then return "needs mem " .. need.text end
    end
  end
end

local function refused(job, p)
  if job.unit.bad then return "fail", job.unit.bad end
  if job.unit.says.skip then return "skip", job.unit.says.skip end
  local why, device, file = why_impossible(job, p)
  if not why then return nil end
  if file then
    return "fail", why .. ": there is no such file; with 'needs file? F' " ..
           "the test is skipped"
  end
  return device and p.require and "fail" or "skip",
         device and p.require and why .. ", and --require cuda was given" or
         why
end

local function steps(unit, device, line)
  local list = {}
  for _, step in ipairs(unit.steps) do
    local here = not step.only or device:find("^" .. step.only)
    if here and (not line or step.line <= line) then list[#list + 1] = step end
  end
  return list
end

-- The options that a rerun needs, as words.
local function rerun_words(p)
  local list = {}
  for _, word in ipairs(p.libraries or {}) do
    list[#list + 1] = "-l"
    list[#list + 1] = word
  end
  if p.limit then
    list[#list + 1] = "--memory-limit"
    list[#list + 1] = ("%d"):format(p.limit)
  end
  for _, name in ipairs {"root", "at"} do
    if p[name] then
      list[#list + 1] = "--" .. name
      list[#list + 1] = p[name]
    end
  end
  return list
end

local function job(unit, device, dtype, line, p)
  local says = unit.says
  local j = {unit = unit, device = device, dtype = dtype, line = line,
             seed = says.seed or p.seed or 0, threads = p.threads,
             timeout = p.pdb and math.huge or says.timeout or p.timeout or
                       TIMEOUT, pdb = p.pdb, limit = says.memory or p.limit,
             serial = says.serial, shuffle = p.shuffle,
             cover = p.cover and true, libraries = p.libraries,
             files = p.files, asshown = p.asshown,
             again = rerun_words(p),
             rtol = p.rtol or says.rtol, atol = p.atol or says.atol,
             rtolby = p.rtol and "--rtol" or "--: rtol",
             atolby = p.atol and "--atol" or "--: atol",
             steps = steps(unit, device, line),
             values = says.values and not p.novalues and
                      {values.path(unit)} or nil,
             title = dtype and device .. " " .. dtype or device}
  if dtype then j.written = says.dtype[1] end
  j.status, j.reason = refused(j, p)
  return j
end

local function each_job(unit, line, p, put)
  local list = unit.bad and {"cpu"} or devices(unit, p)
  for _, device in ipairs(list) do
    for _, dtype in ipairs(unit.says.dtype or {false}) do
      put(job(unit, device, dtype or nil, line, p))
    end
  end
end

-- Shuffles with numbers that depend on the seed only.
local function shuffled(list, seed)
  local x = seed & 0x7fffffff
  for i = #list, 2, -1 do
    x = (x * 1103515245 + 12345) & 0x7fffffff
    local k = (x >> 8) % i + 1
    list[i], list[k] = list[k], list[i]
  end
end

-- The files under the paths, once each: {path, line}; nil and why.
local function files(paths)
  local list, seen = {}, {}
  for _, p in ipairs(paths) do
    local found, why = file.find(p[1])
    if not found then return nil, why end
    for _, path in ipairs(found) do
      local key = path .. ":" .. (p[2] or "")
      if not seen[key] then list[#list + 1] = {path, p[2]} end
      seen[key] = true
    end
  end
  return list
end

-- All jobs that the options `o` (test_options.lua) ask for, or nil and what is
-- wrong. wanted(job), if given, may exclude some.
function plan.make(o, wanted)
  local found, wrong = files(o.paths)
  if not found then return nil, wrong end
  local p = setmetatable({memory = jobs.memory()}, {__index = o})
  p.gpus = #found > 0 and jobs.devices() or {}
  p.devices = o.devices and named(o.devices, p.gpus, o.require)
  local list = {}
  for _, f in ipairs(found) do
    local unit = file.load(f[1])
    root.place(unit, o.root, o.at)
    each_job(unit, f[2], p, function(j)
      local title = j.unit.path .. " " .. j.title
      if o.word and not title:find(o.word, 1, true) then
        if j.unit.kind ~= "unit" or j.status then return end
        j.word = o.word -- it may be in the name of a case
      end
      if wanted and not wanted(j) then return end
      for n = 1, o.times do
        local copy = {}
        for k, v in pairs(j) do copy[k] = v end
        if o.times > 1 then
          copy.anew = n > 1 and not o.pdb and n or nil
          copy.title = ("%s  run %d of %d"):format(j.title, n, o.times)
        end
        list[#list + 1] = copy
      end
    end)
  end
  if o.shuffle then shuffled(list, o.shuffle) end
  return list
end

return plan
