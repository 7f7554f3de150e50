-- SPDX-License-Identifier: MIT
--
-- outcomes.lua - makes results of the outcomes of jobs (job_pool.lua).
--
-- A result has job, status ("pass", "fail", "skip" or "xfail"), time, the
-- name of a case in a *_test.lua, and
--   reason     of a skip, an expected failure, or a failure as a whole
--   line       where it failed
--   start      of a case: its own line
--   failures   of a session: the steps that differ, {step =, got = lines}
--   got        of a session: what each step printed, as lines
--   left       of a session: the status that it ended with
--   errors     of a session: the positions of the steps that ended in an error
--   unchecked  of a case: it passed, but called no check
--   unreferenced  of the first case of a file: the stored values of no test

local agreed_text = require "nacre.agreed_text"
local match = require "nacre.match_output"

local root = require "nacre.project_root"
local styled = require "nacre.styled_output"
local units = require "nacre.units"

local outcomes = {}

local MOST_PRINTED, WIDEST = 20, 500 -- lines of a failed case, bytes of one

-- The options of matching in a job. `values_match': the tensors in the step
-- have the values that are stored.
function outcomes.tolerance(job, values_match)
  return {rtol = job.rtol, atol = job.atol, device = job.device,
          dtype = job.dtype, written = job.written, values_match = values_match}
end

-- The same for one output of a step, {result, lines, its position}.
function outcomes.ofprint(one)
  return outcomes.tolerance(one[1].job, one[1].values_match[one[3]])
end

-- Why a process did not end normally.
local function why_ended(outcome)
  if outcome.late then
    local text = ("timed out after %g s"):format(outcome.job.timeout)
    return (outcome.where or "") == "" and text or text .. "\n" .. outcome.where
  end
  if outcome.how == "signal" then
    return ("killed by signal %d (%s)"):format(outcome.status, outcome.signal)
  end
  return ("the program ended with status %d"):format(outcome.status)
end

-- Sorts the messages by subject.
local function sorted(outcome)
  local m = {from = {}, to = {}, cases = {}, values = {}, values_match = {},
             errors = {}, agrees = {}}
  for _, message in ipairs(outcome.messages) do
    local word, text, rest, printed = table.unpack(message, 1, 4)
    local case = m.cases[#m.cases]
    if word == "step" then
      m.from[tonumber(text)] = printed
    elseif word == "done" then
      m.to[tonumber(text)] = printed
    elseif word == "case" then
      local line = math.tointeger(tonumber(rest))
      m.cases[#m.cases + 1] = {name = text, line = line, start = line,
                               from = printed}
    elseif word == "took" then
      case.time, case.to = tonumber(text), printed
    elseif case and (word == "pass" or word == "skip" or word == "fail") then
      case.status, case.text = word, word ~= "pass" and text or nil
      case.unchecked = word == "pass" and text == "unchecked"
      case.line = word == "fail" and math.tointeger(tonumber(rest)) or
                  case.line
    elseif word == "agrees" then
      local i = tonumber(text)
      m.agrees[i] = m.agrees[i] or {}
      table.insert(m.agrees[i], rest)
    elseif word == "error" then
      m.errors[tonumber(text)] = true
    elseif word == "unreferenced" then
      m.unreferenced = m.unreferenced or {}
      table.insert(m.unreferenced, text)
    elseif word == "torn" then
      m.torn = text
    elseif word == "value" then
      local i = tonumber(text)
      local key, covers, says = rest:match "^(.-)\0(.-)\0(.*)$"
      m.values[i] = m.values[i] or {}
      table.insert(m.values[i], {key = key, covers = covers, text = says})
    elseif word == "golden" then
      case.golden = case.golden or {}
      table.insert(case.golden, {key = text, says = rest})
    elseif word == "values_match" then
      m.values_match[tonumber(text)] = true
    elseif word == "skip" then
      m.skip = text
    else
      m[word] = tonumber(text) or true -- "ready", "end", "broken"
    end
  end
  return m
end

local function result(outcome, status, more)
  local r = more or {}
  r.job, r.status = outcome.job, status
  r.time = r.time or outcome.seconds or outcome.time
  return r
end

-- The line in the file of the first expected line that differs.
local function where(job, f)
  local from = f.step.from
  local steps = match.align(f.step.expect, f.got,
                            outcomes.tolerance(job, f.values_match))
  for _, s in ipairs(steps) do
    if s.e and not s.same then return from + s.e - 1 end
    if s.a and not s.e and not s.gap then break end
  end
  return f.step.line
end

-- Times are not compared: the output of :time matches the one in the test.
local function timing(step, got)
  if not step.text:find "^%s*[:%%]time" then return got end
  for _, expected in ipairs(step.expect) do
    for k, line in ipairs(got) do
      if match.istiming(expected) and match.istiming(line) then
        got[k] = expected
      end
    end
  end
  return got
end

-- The output of a step as lines, and does it match? agrees: the texts of
-- tensors with the stored values.
function outcomes.step(job, step, text, values_match, agrees)
  if job.unit.kind ~= "script" then text = styled.uncoloured(text) end
  if job.asshown then text = root.renamed(job.unit, text) end
  local got = timing(step, match.split(text))
  if agrees then agreed_text.apply(step.expect, got, agrees) end
  return got, match.lines(step.expect, got,
                          outcomes.tolerance(job, values_match))
end

-- "; 3 inputs were not run"
local function unrun(n)
  if n == 0 then return "" end
  return ("; %d input%s not run"):format(n, n == 1 and " was" or "s were")
end

-- Is step i expected to end the program?
local function ends_program(outcome, i)
  local job = outcome.job
  return job.unit.says.exit and i == #job.steps and outcome.how == "exit" and
         not outcome.late
end

local function statusof(outcome, m)
  return m["end"] and (m.status or 0) or outcome.status
end

-- Did it end with an unexpected status?
local function wrongstatus(outcome, m)
  local job = outcome.job
  local want = job.unit.says.exit
  local got = statusof(outcome, m)
  if not want and not m["end"] then return why_ended(outcome) end
  if not want or got == want or #job.steps < #job.unit.steps then return nil end
  return ("the program ended with status %d instead of %d"):format(got, want)
end

local function session(outcome, m)
  local job = outcome.job
  local r = result(outcome, "pass", {got = {}, failures = {},
                                     values_match = m.values_match,
                                     values = m.values, errors = m.errors,
                                     left = statusof(outcome, m)})
  for i, step in ipairs(job.steps) do
    if outcome.interrupted and not m.to[i] then break end
    if not m.from[i] then
      r.reason = r.reason or ("the session ended before line %d%s"):format(
        step.line, unrun(#job.steps - i + 1))
      r.line = r.line or step.line
      break
    end
    local text = outcome.printed:sub(m.from[i] + 1, m.to[i] or -1)
    local values_match, values = m.values_match[i], m.values[i]
    local got, same = outcomes.step(job, step, text, values_match,
                                     m.agrees[i])
    r.got[i] = got
    if values or not same then
      r.failures[#r.failures + 1] = {step = step, got = got, index = i,
                                     values_match = values_match,
                                     values = values}
    end
    if not m.to[i] and not ends_program(outcome, i) then
      r.reason = ("line %d: %s%s"):format(step.line, why_ended(outcome),
                                          unrun(#job.steps - i))
      r.line = step.line
    end
  end
  if not outcome.interrupted then
    r.reason = r.reason or wrongstatus(outcome, m) or m.torn or
               job.values and not m.compared and
               "the program ended before its values were compared" or nil
  end
  if r.failures[1] then r.line = where(job, r.failures[1]) end
  if r.reason or r.failures[1] then r.status = "fail" end
  return outcome.interrupted and r.status == "pass" and {} or {r}
end

local function failed_results(outcome, why)
  local text = match.cut(match.trimmed(outcome.printed), MOST_PRINTED * WIDEST)
  return {result(outcome, "fail", {
    reason = text ~= "" and text .. (why and "\n" .. why or "") or why,
    line = math.tointeger(tonumber(text:match "^[^\n]-:(%d+):")) or 1})}
end

-- Why a case failed, and its output; `lost` if the process ended with it.
local function reason(outcome, c, lost)
  if c.status and c.status ~= "fail" then return c.text end
  local why = c.text or why_ended(lost)
  local lines = match.split(outcome.printed:sub(c.from + 1, c.to or lost.to))
  if #lines == 0 then return why end
  for k = 1, math.min(#lines, MOST_PRINTED) do
    lines[k] = match.cut(lines[k], WIDEST)
  end
  local more = #lines - MOST_PRINTED
  if more > 0 then
    lines = table.move(lines, 1, MOST_PRINTED, 1, {})
    lines[#lines + 1] = ("... %d more lines"):format(more)
  end
  return why .. "\nit printed:\n  " .. table.concat(lines, "\n  ")
end

local function cases(outcome, m)
  if not m["end"] and #m.cases == 0 then
    if outcome.interrupted then return {} end
    return failed_results(outcome, why_ended(outcome))
  end
  if #m.cases == 0 and m.chosen then return {} end -- none of that name
  if #m.cases == 0 then
    return failed_results(outcome, "the file has no test()")
  end
  local list = {}
  for k, c in ipairs(m.cases) do
    if outcome.interrupted and not c.status and not outcome.lost[k] then
      return list -- it was still running
    end
    local lost = outcome.lost[k] or outcome
    list[k] = result(outcome, c.status or "fail", {
      name = c.name, line = c.line, start = c.start, golden = c.golden,
      unchecked = c.unchecked,
      time = c.time or lost.time, reason = reason(outcome, c, lost)})
  end
  if not m["end"] and not outcome.lost[#list] and
     not outcome.interrupted then -- between two tests
    list[#list + 1] = failed_results(outcome, why_ended(outcome))[1]
  end
  return list
end

-- Turns expected failures into passes, and their absence into failures.
local function apply_xfail(list, why)
  local failed = false
  for _, r in ipairs(list) do
    if r.status == "skip" then return end
    if r.status == "fail" then
      failed = true
      r.status, r.reason = "xfail", why
    end
  end
  if failed then return end
  list[1].status = "fail"
  list[1].reason = "passed, but was expected to fail: " .. why
end

-- Did the test run out of memory, judged by its messages and its end?
local function out_of_memory(r)
  local parts = {r.reason}
  for _, f in ipairs(r.failures or {}) do
    parts[#parts + 1] = table.concat(f.got, "\n")
  end
  local text = table.concat(parts, "\n")
  return text:find "not enough memory" or
         text:find "needs [%d%.]+ [KMGT]?i?B; " or text:find "killed by signal"
end

-- The results of an outcome, in order: one, or one for each case. An
-- interrupted job has the results known by then.
function outcomes.results(outcome)
  local job, m = outcome.job, sorted(outcome)
  local list
  outcome.seconds = tonumber(m["end"])
  if m.skip then
    list = {result(outcome, "skip", {reason = m.skip})}
  elseif not m.ready then
    list = outcome.interrupted and {} or
           failed_results(outcome, why_ended(outcome))
  elseif m.broken then
    list = failed_results(outcome)
  elseif job.unit.kind == "unit" then
    list = cases(outcome, m)
    if list[1] then list[1].unreferenced = m.unreferenced end
  else
    list = session(outcome, m)
  end
  for _, r in ipairs(list) do
    if job.limit and r.status == "fail" and out_of_memory(r) then
      r.reason = (r.reason and r.reason .. "\n" or "") ..
        ("the memory limit is %s"):format(units.bytes(job.limit))
    end
  end
  local why = job.unit.says.xfail
  if why and outcome.interrupted then return {} end
  if why and list[1] then apply_xfail(list, why) end
  return list
end

return outcomes
