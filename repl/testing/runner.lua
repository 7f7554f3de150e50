-- SPDX-License-Identifier: MIT
--
-- runner.lua - `nacre --test`: selects the tests, runs them and reports.

local outcomes = require "nacre.outcomes"
local formats = require "nacre.report_formats"
local host = require "nacre.host"
local jobs = require "nacre.job_pool"
local options = require "nacre.test_options"
local plan = require "nacre.job_plan"
local process = require "nacre.process"
local report = require "nacre.text_report"
local units = require "nacre.units"

local runner = {}

local FAILED, USAGE, NOTHING = 1, 2, 5

local function say(...) io.stdout:write(...) end

local function complain(text)
  io.stdout:flush()
  io.stderr:write("nacre: ", text, "\n")
end

-- The failures of the last run in a folder, one on each line: the absolute
-- path, the device, the dtype, and the test of a *_test.lua
local function state_file()
  return host.userfile("XDG_STATE_HOME", "/.local/state", "last-failed")
end

local function key(job)
  return ("%s\t%s\t%s"):format(job.unit.full, job.device, job.dtype or "")
end

-- {key = {name of a test = true, ...}}
local function last_failed()
  local path, set = state_file(), {}
  local f = path and io.open(path, "rb")
  if not f then return set end
  for line in f:lines() do
    local job, name = line:match "^([^\t]+\t[^\t]+\t[^\t]*)\t(.*)$"
    if job then
      set[job] = set[job] or {}
      set[job][name] = true
    end
  end
  f:close()
  return set
end

-- Stores the failures. Those of files that did not run are kept.
local function store_failed(results)
  local set, list = last_failed(), {}
  local path = state_file()
  if path then host.makefolders(path:match "^(.*)/", true) end
  local f = path and io.open(path, "wb")
  if not f then return end
  local here = process.real_path "." .. "/"
  for _, r in ipairs(results) do
    if not r.job.cut then set[key(r.job)] = nil end
  end
  for job, names in pairs(set) do
    if job:sub(1, #here) ~= here then
      for name in pairs(names) do list[#list + 1] = job .. "\t" .. name end
    end
  end
  for _, r in ipairs(results) do
    if r.status == "fail" then
      list[#list + 1] = key(r.job) .. "\t" .. (r.name or ""):gsub("%c", " ")
    end
  end
  table.sort(list)
  f:write(table.concat(list, "\n"), #list > 0 and "\n" or "")
  f:close()
end

-- A filter of jobs that failed last time; for a *_test.lua it selects the
-- tests.
local function failed_last(last)
  return function(job)
    local names = last[key(job)]
    job.only = names and not names[""] and names or nil
    return names ~= nil
  end
end

--
-- Running
--

-- The results of the jobs in order, and how many jobs did not finish; calls
-- each(result), false stops.
function runner.results(list, o, each)
  local of, todo, all = {}, {}, {}
  local going, left = true, 0
  local function take(job, results)
    of[job] = {}
    for k, r in ipairs(results) do
      of[job][k] = r
      if each(r) == false then
        going = false
        break
      end
    end
    return going
  end
  for _, job in ipairs(list) do
    if job.status then
      take(job, {{job = job, status = job.status, reason = job.reason,
                  time = 0}})
    else
      todo[#todo + 1] = job
    end
  end
  if going then
    left = #todo
    jobs.run(todo, o, function(outcome)
      outcome.job.cut = outcome.interrupted
      if o.cover then require "nacre.coverage".add(outcome, o) end
      if not outcome.interrupted then left = left - 1 end
      return take(outcome.job, outcomes.results(outcome))
    end)
  end
  for _, job in ipairs(list) do
    for _, r in ipairs(of[job] or {}) do all[#all + 1] = r end
  end
  return all, left
end

-- For each result on a device the one on the CPU.
local function peers(results)
  local cpu, of = {}, {}
  local function name(r)
    return ("%s\0%s\0%s"):format(r.job.unit.path, r.job.dtype or "",
                                 r.name or "")
  end
  for _, r in ipairs(results) do
    if r.job.device == "cpu" then cpu[name(r)] = r end
  end
  for _, r in ipairs(results) do
    if r.job.device ~= "cpu" then of[r] = cpu[name(r)] end
  end
  return of
end

local function failures(results)
  local list = {}
  for _, r in ipairs(results) do
    if r.status == "fail" then list[#list + 1] = r end
  end
  return list
end

local function dots(o)
  local quiet = o.tap or o.json
  local function mark(r)
    if not quiet then
      say(report.mark(r))
      io.stdout:flush()
    end
    return not (o.failfast and r.status == "fail")
  end
  return mark, function() if not quiet then say "\n" end end
end

local function save(path, text)
  local ok, why = host.write_file(path, text)
  if not ok then complain(("cannot write %s"):format(why)) end
  return ok
end

local function tell(results, o, seconds, stop)
  local peer = peers(results)
  local failed = failures(results)
  if o.tap then
    say(formats.tap(results, peer, stop))
  elseif o.json then
    say(formats.json(results, peer, seconds, stop))
  else
    if o.shuffle then say("order: --shuffle=", o.shuffle, "\n") end
    for _, r in ipairs(failed) do
      say("\n", report.painted(report.failure(r, peer[r])), "\n")
    end
    if #failed > 0 then say "\n" end
    say(report.unreferenced(results), report.unchecked(results))
    if o.cover then say(require "nacre.coverage".summary(o), "\n") end
    say(report.summary(results, seconds, o.jobs), "\n")
  end
  if o.ci and os.getenv "GITHUB_ACTIONS" then
    for _, r in ipairs(failed) do say(formats.github(r, peer[r]), "\n") end
  end
  local good = not o.junit or
               save(o.junit, formats.junit(results, peer, seconds, stop))
  if o.lcov then
    good = save(o.lcov, require "nacre.coverage".lcov(o)) and good
  end
  return #failed == 0 and good
end

-- Lists the tests. To find those of a *_test.lua its top level is run.
local function list(todo, o)
  local function line(job, more)
    say(job.unit.path, "  ", job.title, more, "\n")
  end
  local function each(outcome)
    for _, r in ipairs(outcomes.results(outcome)) do
      line(r.job, r.name and "  " .. r.name or
                  ("  (%s: %s)"):format(r.status, r.reason:match "[^\n]*"))
    end
  end
  for _, job in ipairs(todo) do
    if job.unit.kind == "unit" and not job.status then
      job.names = true
      jobs.run({job}, o, each)
    else
      line(job, job.reason and ("  (%s: %s)"):format(job.status, job.reason) or
                "")
    end
  end
  return 0
end

-- Lists the files that tests read without declaring them.
local function files(todo, o)
  local seen = {}
  local function each(outcome)
    for _, m in ipairs(outcome.messages) do
      if m[1] == "file" and not seen[m[2]] then say(m[2], "\n") end
      seen[m[2]] = m[1] == "file" or seen[m[2]]
    end
  end
  jobs.run(todo, o, each)
  return 0
end

-- Why every test was skipped, or nil if one was run.
local function all_skipped(results)
  for _, r in ipairs(results) do
    if r.status ~= "skip" then return nil end
  end
  return results[1].reason
end

-- Reports after a signal what is known by then, without more computing.
local function interrupted(results, o, seconds, left)
  for _, r in ipairs(failures(results)) do
    if r.failures and r.failures[1] then r.failures[1].found = "" end
  end
  local stop = {signal = process.pending_signal(), unfinished = left}
  stop.text = ("interrupted by %s, %s not finished"):format(
    stop.signal, units.count(left, "file"))
  tell(results, o, seconds, stop)
  complain(stop.text)
  if not o.ci then store_failed(results) end
  return FAILED -- the signal is what the runner then dies of
end

local function run(o, todo)
  local begin = host.clock()
  local mark, finish = dots(o)
  process.hold_signals(true)
  local results, left = runner.results(todo, o, mark)
  process.hold_signals(false)
  finish()
  if process.pending_signal() then
    return interrupted(results, o, host.clock() - begin, left)
  end
  if #results == 0 then
    complain "no test was run"
    return NOTHING
  end
  require "nacre.run_alone".judge(results, o)
  local good = tell(results, o, host.clock() - begin)
  if not o.ci then store_failed(results) end
  local why = o.devices and all_skipped(results)
  if not why then return good and 0 or FAILED end
  complain(("no test was run: %s"):format(why))
  return NOTHING
end

-- The exit status of `nacre --test WORDS...`.
function runner.main(words)
  local o, wrong = options.parse(words)
  if o and o.color then host.terminal_settings(o.color) end
  if not o then
    complain(wrong)
    io.stderr:write("usage: nacre --test [options] [PATH[:LINE] ...]   ",
                    "(--help for the list)\n")
    return USAGE
  end
  if o.help then
    say(options.help)
    return 0
  end
  local last = o.lastfailed and last_failed()
  local todo
  todo, wrong = plan.make(o, last and failed_last(last))
  if not todo then
    complain(wrong)
    return USAGE
  end
  if #todo == 0 then
    complain(last and "no test failed in the last run" or "no tests found")
    return last and 0 or NOTHING
  end
  if o.list then return list(todo, o) end
  if o.files then return files(todo, o) end
  if o.update or o.review then
    return require "nacre.update_expected".run(o, todo)
  end
  return run(o, todo)
end

return runner
