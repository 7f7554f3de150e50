-- SPDX-License-Identifier: MIT
--
-- text_report.lua - results as text: a dot for each, the failures and the
-- commands to run them again, the totals.

local outcomes = require "nacre.outcomes"
local escape_controls = require "nacre.lua_values".escape_controls
local diagnosis = require "nacre.device_diagnosis"
local host = require "nacre.host"
local styled = require "nacre.styled_output"
local match = require "nacre.match_output"
local units = require "nacre.units"

local report = {}

local MOST_STEPS, MOST_PLACES, MOST_LINES = 3, 8, 12
local WIDEST = 500 -- bytes of a line
local MOST_NAMES = 5

--
-- A line that differs
--
local function short(x)
  return (("%.2g"):format(x):gsub("e([+-])0*(%d)", "e%1%2"))
end

-- Who set the tolerance.
local function source(job, off)
  if off.own then return "#~" end
  return off.by == "rtol" and job.rtolby or off.by == "atol" and job.atolby or
         off.by
end

-- "abs 0.1334  rel 1.1e-04   allowed 0.00005 (digits as written)"
local function distance(job, off)
  if not off then return "" end
  if off.kinds then return "   " .. off.kinds end
  local text = "   abs " .. short(off.abs)
  if off.expected ~= 0 then text = text .. "  rel " .. short(off.rel) end
  if off.doubt > 0 and off.abs <= off.allowed then
    text = ("   rounded, it may be off by %s"):format(short(off.doubt))
  end
  local most = short(off.allowed)
  if off.by == "rtol" then most = "rel " .. short(off.rtol) end
  return ("%s   allowed %s (%s)"):format(text, most, source(job, off))
end

local function row(mark, n, text)
  return ("%s%4s  %s"):format(mark, n or "", match.cut(text, WIDEST))
end

-- The steps of an alignment that differ, as rows.
local function rows(job, f)
  local list, options = {}, outcomes.tolerance(job, f.values_match)
  local from, E, A = f.step.from, f.step.expect, f.got
  for _, s in ipairs(match.align(E, A, options)) do
    local n = s.e and from + s.e - 1
    if s.e and s.a and not s.same then
      list[#list + 1] = row("-", n, E[s.e])
      list[#list + 1] = row("+", n, A[s.a]) ..
                        distance(job, match.off(s, options))
    elseif s.e and not s.same then
      list[#list + 1] = row("-", n, E[s.e])
    elseif s.a and not s.e and not s.gap then
      list[#list + 1] = row("+", nil, A[s.a])
    end
  end
  return list
end

local function input(step)
  local list = {}
  for line in (step.text .. "\n"):gmatch "(.-)\n" do
    list[#list + 1] = row(" ", step.line + #list,
                          (#list == 0 and "> " or ">> ") .. line)
  end
  return list
end

local function add(lines, more, most)
  for k, line in ipairs(more) do
    if most and k > most then
      lines[#lines + 1] = ("       ... %d more lines"):format(#more - most)
      return
    end
    lines[#lines + 1] = line
  end
end

local INDENT = "       "

-- The differences of the values of shown tensors.
local function values(f)
  local list = {}
  for _, one in ipairs(f.values or {}) do
    local number = tonumber(one.key:match "#(%d+)$")
    local name = #f.values > 1 and number and "tensor " .. number or "values"
    for line in (name .. ": " .. one.text .. "\n"):gmatch "(.-)\n" do
      list[#list + 1] = INDENT .. line
    end
  end
  return list
end

-- The output of the CPU for the same step, if it passed there.
local function oncpu(r, f, peer)
  local got = peer and peer.got and peer.got[f.index]
  if not got then return nil end
  local options = outcomes.tolerance(peer.job, peer.values_match[f.index])
  if peer.values[f.index] or not match.lines(f.step.expect, got, options) then
    return nil -- it has failed, too, and a block of its own
  end
  return INDENT .. ("cpu gives %s, within tolerance: only %s differs"):format(
    #got == 1 and got[1] or "what is expected", r.job.device)
end

-- "... 4 inputs more differ, in lines 12, 15, 20, 31"
local function rest(failures)
  local places, n = {}, #failures - MOST_STEPS
  for k = 1, math.min(n, MOST_PLACES) do
    places[k] = failures[MOST_STEPS + k].step.line
  end
  if n > MOST_PLACES then places[#places + 1] = "..." end
  return INDENT .. ("... %d more input%s differ%s, in line%s %s"):format(n,
    n == 1 and "" or "s", n == 1 and "s" or "", n == 1 and "" or "s",
    table.concat(places, ", "))
end

-- A note if the output contains what a session cannot represent.
local function looksodd(job, f)
  if job.unit.kind == "script" then return nil end
  local options = outcomes.tolerance(job, f.values_match)
  for _, s in ipairs(match.align(f.step.expect, f.got, options)) do
    local line = not s.same and not s.gap and f.got[s.a] or ""
    if line:find "^%-%-" or line:find "^>" then
      return INDENT .. "a printed line begins with -- or >: in a test it is " ..
             "written <...>" .. line:sub(2, 20)
    end
  end
end

local function steps(lines, r, peer, all)
  for k, f in ipairs(r.failures) do
    if k > MOST_STEPS and not all then
      lines[#lines + 1] = rest(r.failures)
      break
    end
    if f.step.ofstderr then lines[#lines + 1] = INDENT .. "stderr:" end
    if f.step.text ~= "" then add(lines, input(f.step), MOST_LINES) end
    add(lines, rows(r.job, f), MOST_LINES)
    add(lines, values(f), MOST_LINES)
    lines[#lines + 1] = looksodd(r.job, f)
    local cpu = oncpu(r, f, peer)
    lines[#lines + 1] = cpu
    if cpu and k == 1 then
      f.found = f.found or diagnosis.line(r, peer, f) or ""
      lines[#lines + 1] = f.found ~= "" and INDENT .. f.found or nil
    end
  end
end

-- The position of a failure; lines of a script are those of its output.
function report.place(r)
  local path = r.job.unit.path
  if r.job.unit.kind == "script" then path = path:gsub("%.lua$", ".out") end
  return path .. (r.line and ":" .. r.line or "")
end

local function word(text)
  if not text:find "[^%w_%-%./:]" then return text end
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The command that runs this again.
local function rerun(r)
  local job = r.job
  local at = job.unit.path
  if job.unit.kind ~= "script" and (r.start or r.line) then
    at = at .. ":" .. (r.start or r.line)
  end
  local text = ("nacre --test %s --device %s --seed %d"):format(word(at),
    job.device, job.seed)
  for _, more in ipairs(job.again) do text = text .. " " .. word(more) end
  if job.shuffle then text = text .. " --shuffle=" .. job.shuffle end
  return text
end

-- The failing line of a *_test.lua, unless it is shown already.
local function failedline(r)
  local text = r.name and r.line and r.job.unit.lines[r.line]
  local at = ("at %s:%d "):format(r.job.unit.path, r.line or 0)
  if not text or (r.reason or ""):find(at, 1, true) then return nil end
  return row(" ", r.line, text:match "^%s*(.-)%s*$")
end

-- The report on a failed result; peer is the CPU's result of the same job.
-- With `all` it has every input that differs, for programs.
function report.failure(r, peer, all)
  local job = r.job
  local lines = {("FAIL %s%s  %s  (%.2f s)"):format(report.place(r),
    r.name and "  " .. r.name or "", job.title, r.time)}
  if r.failures then steps(lines, r, peer, all) end
  lines[#lines + 1] = failedline(r)
  for line in ((r.reason or "") .. "\n"):gmatch "(.-)\n" do
    if line ~= "" then lines[#lines + 1] = INDENT .. line end
  end
  lines[#lines + 1] = INDENT .. "rerun   " .. rerun(r)
  if r.failures and r.failures[1] and not r.reason then
    local at = job.unit.kind == "script" and job.unit.path or report.place(r)
    lines[#lines + 1] = INDENT .. ("accept  nacre --test %s --update"):format(
      word(at))
  end
  return escape_controls(table.concat(lines, "\n"))
end

-- The report for a terminal: expected lines red, printed ones green, if stdout
-- has colours.
function report.painted(text)
  if not host.has_color "stdout" then return text end
  return (text:gsub("[^\n]+", function(line)
    local mark = line:match "^%s*([-+]) "
    local red = mark == "-" or line:find "^FAIL "
    return red and styled.paint(line, "red") or
           mark and styled.paint(line, "green") or line
  end))
end

local MARKS = {pass = ".", fail = "F", skip = "s", xfail = "x"}

function report.mark(r)
  local mark = MARKS[r.status]
  return r.status == "fail" and styled.paint(mark, "red") or mark
end

-- A line for each file of values in which there are some of no test.
function report.unreferenced(results)
  local lines = {}
  for unit, list in pairs(require "nacre.golden".unreferenced(results)) do
    local names = match.cut(table.concat(list, "; "), WIDEST)
    lines[#lines + 1] = ("%s.safetensors has %s of no test, which --update " ..
      "removes: %s\n"):format(unit.path, units.count(#list, "value"),
                              escape_controls(names))
  end
  table.sort(lines)
  return table.concat(lines)
end

-- A line for the tests that passed without a check.
function report.unchecked(results)
  local names = {}
  for _, r in ipairs(results) do
    if r.unchecked and r.status == "pass" then names[#names + 1] = r.name end
  end
  if #names == 0 then return "" end
  local list = table.concat(names, ", ", 1, math.min(#names, MOST_NAMES))
  return ("%s passed without a check: %s%s\n"):format(
    units.count(#names, "test"), escape_controls(list),
    #names > MOST_NAMES and ", ..." or "")
end

-- "2 failed, 118 passed, 6 skipped (cuda not available: 6)   in 3.4 s, 8 jobs"
function report.summary(results, seconds, jobs)
  local n, why, order = {pass = 0, fail = 0, skip = 0, xfail = 0}, {}, {}
  for _, r in ipairs(results) do
    n[r.status] = n[r.status] + 1
    if r.status == "skip" then
      if not why[r.reason] then order[#order + 1] = r.reason end
      why[r.reason] = (why[r.reason] or 0) + 1
    end
  end
  local parts = {}
  local function count(k, text)
    if n[k] > 0 then parts[#parts + 1] = n[k] .. " " .. text end
  end
  count("fail", "failed")
  parts[#parts + 1] = n.pass .. " passed"
  count("xfail", "failed as expected")
  if n.skip > 0 then
    for i, reason in ipairs(order) do
      order[i] = ("%s: %d"):format(escape_controls(reason), why[reason])
    end
    parts[#parts + 1] = ("%d skipped (%s)"):format(n.skip,
                                                   table.concat(order, ", "))
  end
  return ("%s   in %.1f s, %s"):format(table.concat(parts, ", "), seconds,
                                       units.count(jobs, "job"))
end

return report
