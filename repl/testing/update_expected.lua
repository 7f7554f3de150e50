-- SPDX-License-Identifier: MIT
--
-- update_expected.lua - --update, and --review (review.lua), write what was
-- printed as what is expected. Everything runs twice; text that differs
-- between the runs, or between devices by more than the tolerance, is refused.

local outcomes = require "nacre.outcomes"
local file = require "nacre.test_file"
local golden = require "nacre.golden"
local jobs = require "nacre.job_pool"
local match = require "nacre.match_output"
local process = require "nacre.process"
local report = require "nacre.text_report"
local values = require "nacre.stored_values"
local units = require "nacre.units"

local update = {}

local function say(...) io.stdout:write(...) end

--
-- New text for a step
--

-- Output that would be parsed differently in a session is replaced by <...>.
local function escaped(line, unit)
  if unit.kind == "script" then return line end
  line = line:gsub("(%s)#~", "%1<...>~") -- no tolerance was meant
  if match.istiming(line) then return "  <...>" end
  if line:find "^%s*%S+  [%d%.]+ [KMGT]?i?B in use" then return "..." end
  local fence = unit.kind == "markdown" and
                (line:find "^%s*```" or line:find "^%s*~~~")
  if fence or line:find "^%-%-" or line:find "^>" or
     line:find "^cuda:%d+> " or line:find "^debug> " then
    return "<...>" .. line:sub(#line:match "^%s*" + 2)
  end
  return line
end

-- The expected lines of a step; those that do not match are replaced.
function update.rewritten(step, got, options, unit)
  if match.lines(step.expect, got, options) then return step.expect end
  local new, all = {}, {}
  for _, s in ipairs(match.align(step.expect, got, options)) do
    if s.same then
      new[#new + 1] = step.expect[s.e]
    elseif s.a and not s.gap then
      new[#new + 1] = escaped(got[s.a], unit)
    end
  end
  if match.lines(new, got, options) then return new end
  for k, line in ipairs(got) do all[k] = escaped(line, unit) end
  return all
end

local function strict(options)
  options.rtol, options.atol = 0, 0
  return options
end

-- The first difference, one line of each.
local function difference(new, got, options)
  for _, s in ipairs(match.align(new, got, options)) do
    if not s.same and not s.gap then
      return new[s.e] or "nothing", got[s.a] or "nothing"
    end
  end
end

local function brief(line)
  line = line:match "^%s*(.-)%s*$"
  return #line > 60 and line:sub(1, utf8.offset(line, 0, 58) - 1) .. "..." or
         line
end

-- Did a script fail without being expected to?
local function failing(one)
  local unit, left = one[1].job.unit, one[1].left
  return unit.kind == "script" and not unit.says.exit and left ~= 0 and
         ("it ended with status %d; '--: exit %d' says that this is "
           .. "expected"):format(
           left, left) or nil
end

-- Does a step end in an error that was not expected? Nobody may look at what
-- it then says.
local function new_error(step, one)
  if not one[1].errors or not one[1].errors[one[3]] then return nil end
  for _, line in ipairs(step.expect) do
    if line:find "^%s*error:" then return nil end
  end
  return ("it now ends in an error: %s; --update=errors writes it"):format(
    brief((one[2][1] or ""):gsub("^error: ", "")))
end

-- Why `new` is refused, or nil; and do only the devices differ? all: {result,
-- got, index} of both runs, the first being the source of `new`.
local function refusal(new, all)
  local base, others = all[1][1].job, nil
  for k = 2, #all do
    local r, got, i = table.unpack(all[k])
    local own, options = r.job == base, outcomes.ofprint(all[k])
    local value = r.second and r.values[i]
    if value and value[1].text == values.toolarge then return value[1].text end
    if value and own then
      return "differs between two runs: " .. value[1].text:match "[^\n]*"
    end
    others = others or value and ("%s gives other values: %s"):format(
      r.job.title, value[1].text:match "[^\n]*")
    if own then strict(options) end
    if not match.lines(new, got, options) then
      local a, b = difference(new, got, options)
      a, b = brief(a), brief(b)
      if own then return ("differs between two runs: %s / %s"):format(a, b) end
      others = others or ("%s gives %s, %s gives %s"):format(base.title, a,
                                                             r.job.title, b)
    end
  end
  return others, others ~= nil
end

--
-- The changes of a file
--

-- The output of a step in all runs: {{result, lines, its position}, ...}
local function prints(step, results)
  local all = {}
  for _, r in ipairs(results) do
    for i, s in ipairs(r.got and r.job.steps or {}) do
      if s == step then all[#all + 1] = {r, r.got[i] or {}, i} end
    end
  end
  return all
end

-- Do the values of a step differ from the stored ones?
local function values_differ(all)
  for _, one in ipairs(all) do
    if not one[1].second and one[1].values[one[3]] then return true end
  end
  return false
end

local function differs(step, all)
  for _, one in ipairs(all) do
    if not match.lines(step.expect, one[2], outcomes.ofprint(one)) then
      return true
    end
  end
  return values_differ(all)
end

-- With a line: only the last step before it may change.
local function chosen(unit, line)
  if not line then return unit.steps end
  local last
  for _, step in ipairs(unit.steps) do
    if step.line <= line then last = step end
  end
  return {last}
end

-- A tolerance for two lines of an alignment: "atol=1e-4" for the last digit as
-- written, "rtol=2e-6" if that is at most `most`; else nil.
local function note(step, options, most)
  local unit = match.lastdigit(step, options)
  local least = not unit and match.covers(step, options)
  if unit then return "atol=" .. unit end
  return least and tonumber(least) <= most and "rtol=" .. least or nil
end

-- `expect` with a tolerance at the lines where devices differ by so little,
-- and how many these are; nil where one differs by more.
local function add_tolerances(expect, all, most)
  local new, count = table.move(expect, 1, #expect, 1, {}), 0
  for _, print in ipairs(all) do
    local options, got = outcomes.ofprint(print), print[2]
    for _, s in ipairs(match.align(new, got, options)) do
      if not s.same and not s.gap then
        local text, own = match.note(new[s.e] or "")
        local add = not own and note(s, options, most)
        if not add then return nil end
        new[s.e], count = ("%s  #~ %s"):format(text, add), count + 1
      end
    end
  end
  return new, count
end

-- The same for values: a tolerance at the first line.
local function add_value_tolerance(lines, all, most)
  for _, one in ipairs(all) do
    for _, value in ipairs(one[1].second and one[1].values[one[3]] or {}) do
      local rtol = tonumber(value.covers:match "^rtol=(%S+)")
      local text, own = match.note(lines[1] or "")
      if own or not rtol or rtol > most then return nil end
      lines[1] = ("%s  #~ %s"):format(text, value.covers)
      return lines, 1
    end
  end
  return lines, 0
end

-- The new lines of a step and why they are refused, or nil; with --within,
-- also how many got a tolerance.
local function proposal(step, all, unit, o)
  local new = update.rewritten(step, all[1][2], outcomes.ofprint(all[1]), unit)
  local why, others = failing(all[1]), nil
  if o.update == true then why = why or new_error(step, all[1]) end
  if why then return new, why end
  why, others = refusal(new, all)
  if others and o.within then
    local text, count = add_tolerances(new, all, o.within)
    if text and count == 0 then
      text, count = add_value_tolerance(text, all, o.within)
    end
    if text then return text, nil, count end
  end
  return new, why
end

-- {step =, new =, all =, refused = why or nil, noted =} for each step that
-- differs.
local function changes(unit, results, o)
  local list = {}
  for _, step in ipairs(chosen(unit, results[1].job.line)) do
    local all = prints(step, results)
    if #all > 0 and differs(step, all) then
      local one = {step = step, all = all}
      one.new, one.refused, one.noted = proposal(step, all, unit, o)
      list[#list + 1] = one
    end
  end
  return list
end

-- A file that is there is whole; nil and why if it cannot be.
update.write = require "nacre.host".write_file

-- The new lines with the indentation of their block.
local function indented(change)
  local lines = {}
  for k, line in ipairs(change.new) do
    lines[k] = line == "" and "" or (change.step.indent or "") .. line
  end
  return lines
end

-- Removes the values of a test: its directive and the file.
local function withoutvalues(unit, lines)
  for n = #lines, 1, -1 do
    if lines[n]:find "^%-%-:%s*values%s*$" then table.remove(lines, n) end
  end
  os.remove(values.path(unit))
end

local function applyscript(unit, list)
  for _, one in ipairs(list) do
    local path = unit.full:gsub("%.lua$",
                                one.step.ofstderr and ".err" or ".out")
    local lines = table.concat(one.new, "\n")
    local ok, why = update.write(path, lines == "" and "" or lines .. "\n")
    if not ok then return nil, why end
  end
  return true
end

-- Writes the accepted changes; nil and why if the file cannot be written.
local function apply(unit, list, novalues)
  if unit.kind == "script" then return applyscript(unit, list) end
  local lines = table.move(unit.lines, 1, #unit.lines, 1, {})
  for k = #list, 1, -1 do
    local step, new = list[k].step, indented(list[k])
    local rest = table.move(lines, step.to + 1, #lines, 1, {})
    for n = #lines, step.from, -1 do lines[n] = nil end
    table.move(new, 1, #new, step.from, lines)
    table.move(rest, 1, #rest, step.from + #new, lines)
  end
  if file.read(unit.path) ~= unit.text then
    return nil, "it has changed in the meantime"
  end
  if novalues and unit.says.values then withoutvalues(unit, lines) end
  local eol = unit.text:find("\r\n", 1, true) and "\r\n" or "\n"
  return update.write(unit.full, (unit.bom or "") ..
                                 table.concat(lines, eol) .. eol)
end

--
-- Both runs
--
local function devices(results)
  local list, seen = {}, {}
  for _, r in ipairs(results) do
    local ran = r.got or r.name
    if ran and not seen[r.job.title] then list[#list + 1] = r.job.title end
    seen[r.job.title] = seen[r.job.title] or ran
  end
  return table.concat(list, " and ")
end

-- Should the values of this test be removed, whatever it printed?
local function drops(unit, o)
  return o.update and o.novalues and unit.says.values
end

-- The results by file, in order: {unit, results}; only of files that fail, or
-- are to be without values.
local function byfile(results, o)
  local list, of, failing = {}, {}, {}
  for _, r in ipairs(results) do
    local unit = r.job.unit
    if r.status == "fail" or r.golden or r.unreferenced or drops(unit, o) then
      failing[unit] = true
    end
    if not of[unit] then
      of[unit] = {unit, {}}
      list[#list + 1] = of[unit]
    end
    table.insert(of[unit][2], r)
  end
  local out = {}
  for _, one in ipairs(list) do
    if failing[one[1]] then out[#out + 1] = one end
  end
  return out
end

-- Makes the jobs write their values to files of their own.
local function keepvalues(todo)
  local folder
  for k, job in ipairs(todo) do
    if job.values or job.unit.kind == "unit" then
      folder = folder or process.folder "values"
      job.keep = ("%s/%d.safetensors"):format(folder, k)
    end
  end
end

-- The files of values that the first run has written.
local function value_files(results)
  local list, seen = {}, {}
  for _, r in ipairs(results) do
    local path = r.job.keep or r.job.kept
    if path and not seen[path] then list[#list + 1] = path end
    seen[path or 0] = true
  end
  return list
end

-- The second run, to be compared with the first: in programs started anew,
-- with other orders of pairs, and at another time.
local function run_again(files, o)
  local list, of, seen = {}, {}, {}
  for _, one in ipairs(files) do
    of[one[1]] = one[2]
    local first = value_files(one[2])
    for _, r in ipairs(one[2]) do
      local job = r.job
      if not seen[job] and (r.got or r.golden) then
        job.anew, job.ahead = 2, true
        list[#list + 1] = job
      end
      seen[job] = seen[job] or r.got or r.golden
      if job.keep then
        job.values, job.golden = job.values and first, first
        job.kept, job.keep = job.keep, nil
      end
    end
  end
  local second = require "nacre.runner".results(list, o, function() end)
  for _, r in ipairs(second) do
    r.second = true
    table.insert(of[r.job.unit], r)
  end
end

-- Writes the values of these names, of a session or of t.golden; returns how
-- many there are, or nil and why it failed.
local function writevalues(unit, renew, results, left)
  local files, job = value_files(results), results[1].job
  local outcome = jobs.alone({timeout = 60}, unit.kind ~= "unit" and
    values.writer(unit, files, renew) or golden.writer(
      unit, files, renew, not (left or job.line or job.word or job.only)))
  for _, m in ipairs(outcome.messages) do
    if m[1] == "written" then
      return tonumber(m[2]), units.count(tonumber(m[2]), m[3] or "tensor")
    end
  end
  return nil, match.cut(outcome.printed, 500)
end

-- Reports failures other than differences of text, once each. Returns the
-- names of the tests that have one, "" for a whole file; nil if none.
local function other_failures(results)
  local failed
  for _, r in ipairs(results) do
    if r.status == "fail" and r.reason then
      local name = r.name or ""
      failed = failed or {}
      if not failed[name] then
        say("\n", report.painted(report.failure(r)), "\n")
      end
      failed[name] = true
    end
  end
  return failed
end

local function place(unit, step)
  return ("%s:%d"):format(unit.path, step.line)
end

local function changed(unit, list, results, count)
  local lines = 0
  for _, one in ipairs(list) do lines = lines + (one.noted or 0) end
  say(("%s: %d of %d inputs rewritten; replayed twice on %s, identical " ..
       "within written digits%s%s\n"):format(unit.path, #list, #unit.steps,
         devices(results), lines == 0 and "" or
         ", or within the #~ of " .. units.count(lines, "line"),
         (count or 0) == 0 and "" or ("; %s in %s"):format(
           units.count(count, "tensor"), values.path(unit):match "[^/]*$")))
end

local function refuse(unit, one)
  say(("%s: refused: %s\n"):format(place(unit, one.step), one.refused))
end

-- What --update accepts without asking: all of a file, or nothing.
local function updated(unit, list)
  local bad = false
  for _, one in ipairs(list) do
    if one.refused then
      refuse(unit, one)
      bad = true
    end
  end
  return bad and {} or list, bad
end

-- The values of t.golden that differ: {key =, says =, line =}, once each,
-- except those of tests that fail.
local function goldens(unit, results, failed)
  local list, seen = {}, {}
  for _, r in ipairs(results) do
    local fails = failed[r.name or ""] or failed[""]
    for _, one in ipairs(r.golden or {}) do
      one.line = r.line
      if fails and not seen[one.key] then
        say(("%s: %s: not written, because the test failed\n"):format(
          unit.path, one.key))
      elseif not seen[one.key] then
        list[#list + 1] = one
      end
      seen[one.key] = true
    end
  end
  return list
end

-- For a *_test.lua: only its values of t.golden can be written.
local function settlegolden(unit, results, o, failed)
  local list, left, renew = goldens(unit, results, failed or {}), false, {}
  local old = not failed and #list == 0 and o.update and
              golden.unreferenced(results)[unit]
  if #list == 0 and not old and not o.review then
    return failed ~= nil, false
  end
  if failed and #list == 0 then return true, false end
  if o.review then
    list, left = require "nacre.review".goldens(unit, list, o)
    if #list == 0 then return left or failed ~= nil, false end
  end
  left = left or failed ~= nil        -- whose values are to stay
  for _, one in ipairs(list) do renew[one.key] = true end
  local n, why = writevalues(unit, renew, results, left)
  if n and old then
    say(("%s: removed from %s, as no test has them: %s\n"):format(unit.path,
      values.path(unit):match "[^/]*$", table.concat(old, "; ")))
    return false, true
  end
  say(n and ("%s: %s in %s, the same in two runs on %s\n"):format(unit.path,
    why, values.path(unit):match "[^/]*$",
    devices(results)) or ("%s: not written: %s\n"):format(unit.path, why))
  return left or n == nil, n ~= nil
end

-- Settles one file; returns whether anything in it still fails, and whether it
-- changed.
local function settle(unit, results, o)
  local failed = other_failures(results)
  if unit.kind == "unit" then return settlegolden(unit, results, o, failed) end
  if failed then return true, false end
  local take = o.review and require "nacre.review".take or updated
  local list, left = take(unit, changes(unit, results, o), o, refuse)
  if #list == 0 and (left or not drops(unit, o)) then return left, false end
  if o.novalues and unit.says.values and unit.kind ~= "transcript" then
    say(unit.path, ": not written: remove the line '--: values' first\n")
    return true, false
  end
  local ok, why = apply(unit, list, o.novalues)
  local count
  if ok and unit.says.values and not o.novalues then
    local renew = {}
    for _, one in ipairs(list) do renew[one.step.key] = true end
    count, why = writevalues(unit, renew, results)
    ok = count
  end
  if not ok then
    say(("%s: not written: %s\n"):format(unit.path, why))
    return true, false
  end
  changed(unit, list, results, count)
  return left, true
end

-- Runs the jobs, settles the failures and returns the exit status.
function update.run(o, todo)
  keepvalues(todo)
  local results = require "nacre.runner".results(todo, o, function(r)
    say(report.mark(r))
    io.stdout:flush()
  end)
  say "\n"
  local files = byfile(results, o)
  run_again(files, o)
  local failing, written = false, 0
  for _, one in ipairs(files) do
    local left, done = settle(one[1], one[2], o)
    failing = failing or left
    if done then written = written + 1 end
  end
  say(units.count(written, "file"), " written\n")
  if failing then return 1 end
  return written > 0 and not o.ok and not o.review and 1 or 0
end

return update
