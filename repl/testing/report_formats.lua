-- SPDX-License-Identifier: MIT
--
-- report_formats.lua - results for programs: JUnit's XML, TAP 14, JSON, and
-- the annotations of GitHub. `stop` is nil unless a signal ended the run: then
-- {signal = its name, unfinished = number of files, text = a message}.

local escape_controls = require "nacre.lua_values".escape_controls
local json = require "nacre.json"
local report = require "nacre.text_report"

local formats = {}

-- The name of a result, the same in every run.
local function title(r)
  local name = r.name and ": " .. r.name or ""
  return ("%s [%s]%s"):format(r.job.unit.path, r.job.title, name)
end

local function about(r, peers)
  return r.status == "fail" and report.failure(r, peers[r], true) or
         r.reason or ""
end

-- XML: control bytes that it cannot hold become "?"
local ENTITIES = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;",
                  ['"'] = "&quot;", ["\n"] = "&#10;", ["\t"] = "&#9;"}

local function xml(text)
  if not utf8.len(text) then text = text:gsub("[\128-\255]", "?") end
  return (text:gsub('[&<>"%c]', function(c) return ENTITIES[c] or "?" end))
end

local BODY = {
  fail = function(r, text)
    local first = r.reason or "the output differs"
    return ('\n    <failure message="%s">%s</failure>\n  '):format(
      xml(first:match "[^\n]*"), xml(text))
  end,
  skip = function(r)
    return ('\n    <skipped message="%s"/>\n  '):format(xml(r.reason))
  end,
  xfail = function(r)
    return ('\n    <skipped message="expected failure: %s"/>\n  '):format(
      xml(r.reason))
  end,
  pass = function() return "" end,
}

-- What a suite contains before and after its cases: JUnit has no element for
-- an interrupted run.
local function around(stop)
  if not stop then return "", "" end
  return ('  <properties>\n    <property name="interrupted" value="%s"/>\n' ..
          '    <property name="unfinished" value="%d"/>\n  </properties>\n')
         :format(xml(stop.signal), stop.unfinished),
         ("  <system-err>%s</system-err>\n"):format(xml(stop.text))
end

function formats.junit(results, peers, seconds, stop)
  local failed, skipped, lines = 0, 0, {}
  for _, r in ipairs(results) do
    if r.status == "fail" then failed = failed + 1 end
    if r.status == "skip" or r.status == "xfail" then skipped = skipped + 1 end
    local body = BODY[r.status](r, about(r, peers))
    lines[#lines + 1] =
      ('  <testcase classname="%s" name="%s" file="%s" time="%.3f">%s' ..
       "</testcase>\n"):format(xml(r.job.unit.path),
        xml(r.job.title .. (r.name and ": " .. r.name or "")),
        xml(r.job.unit.path), r.time, body)
  end
  local before, after = around(stop)
  return ('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n' ..
    '<testsuite name="nacre" tests="%d" failures="%d" errors="0" ' ..
    'skipped="%d" time="%.3f">\n%s%s%s</testsuite>\n</testsuites>\n'):format(
    #results, failed, skipped, seconds, before, table.concat(lines), after)
end

--
-- TAP
--
local function one_line(text)
  return escape_controls((text:gsub("\n", " ")))
end

local function plain(text) return (one_line(text):gsub("[#\\]", "\\%0")) end

local function tapline(n, r)
  local good = r.status == "pass" or r.status == "skip"
  local text = ("%s %d - %s"):format(good and "ok" or "not ok", n,
                                     plain(title(r)))
  local word = r.status == "skip" and " # SKIP " or
               r.status == "xfail" and " # TODO "
  return word and text .. word .. one_line(r.reason) or text
end

function formats.tap(results, peers, stop)
  local lines = {"TAP version 14", "1.." .. #results}
  for n, r in ipairs(results) do
    lines[#lines + 1] = tapline(n, r)
    if r.status == "fail" then
      lines[#lines + 1] = "  ---\n  message: |"
      for line in about(r, peers):gmatch "[^\n]+" do
        lines[#lines + 1] = "    " .. line
      end
      lines[#lines + 1] = "  ..."
    end
  end
  if stop then lines[#lines + 1] = "Bail out! " .. stop.text end
  return table.concat(lines, "\n") .. "\n"
end

--
-- JSON
--
function formats.json(results, peers, seconds, stop)
  local lines = {}
  local function rounded(s) return tonumber(("%.3f"):format(s)) end
  for i, r in ipairs(results) do
    lines[i] = "    " .. json.line {
      file = r.job.unit.path, line = r.line or json.null,
      device = r.job.device, dtype = r.job.dtype or json.null,
      name = r.name or json.null, status = r.status,
      seconds = rounded(r.time), seed = r.job.seed, text = about(r, peers)}
  end
  return ('{\n  "seconds": %s,\n  "interrupted": %s,\n' ..
          '  "unfinished": %d,\n  "results": [\n%s\n  ]\n}\n'):format(
    json.line(rounded(seconds)), json.line(stop and stop.signal),
    stop and stop.unfinished or 0, table.concat(lines, ",\n"))
end

--
-- GitHub
--
local function escaped(text)
  return (text:gsub("[%%\r\n]", {["%"] = "%25", ["\r"] = "%0D",
                                 ["\n"] = "%0A"}))
end

function formats.github(r, peer)
  return ("::error file=%s,line=%d::%s"):format(
    escaped(r.job.unit.path):gsub("[:,]", {[":"] = "%3A", [","] = "%2C"}),
    r.line or 1, escaped(report.failure(r, peer)))
end

return formats
