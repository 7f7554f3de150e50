-- SPDX-License-Identifier: MIT
--
-- coverage.lua - --cover reports which lines of a project's Lua files the
-- tests ran. Each test process counts for itself; the counts are summed here.

local file = require "nacre.test_file"
local process = require "nacre.process"
local root = require "nacre.project_root"

local coverage = {}

--
-- In the process of a test
--

-- Sends what was counted since the last call.
function coverage.tell(tell)
  for name, counts in next, process.take_coverage() do
    if counts ~= "" then tell("cover", name, counts) end
  end
end

function coverage.start(tell)
  process.start_coverage(function() coverage.tell(tell) end)
end

-- The lines that have code. For the functions in a chunk only its dump has
-- them, in the format of lundump.c of Lua 5.4.
local HEADER = 4 + 1 + 1 + 6 + 3 + 8 + 8 + 1

local FIXED = {[0x13] = 8, [0x03] = 8} -- bytes of a constant, by its type
local STRINGS = {[0x04] = true, [0x14] = true}

local function reader(dump)
  local at, r = HEADER + 1, {}
  function r.skip(n) at = at + n end
  function r.byte()
    at = at + 1
    return dump:byte(at - 1)
  end
  function r.int()
    local n = 0
    while true do
      local b = r.byte()
      n = n << 7 | b & 0x7f
      if b & 0x80 ~= 0 then return n end
    end
  end
  function r.text() r.skip(math.max(r.int() - 1, 0)) end
  return r
end

local function constants(r)
  for _ = 1, r.int() do
    local kind = r.byte()
    if STRINGS[kind] then r.text() else r.skip(FIXED[kind] or 0) end
  end
end

-- Adds the lines of the instructions, except the last return, which every
-- function has at its end.
local function lineinfo(r, first, vararg, lines)
  local deltas, jumps, n = {}, {}, r.int()
  for pc = 1, n do deltas[pc] = r.byte() end
  for k = 1, r.int() do
    r.int()
    jumps[k] = r.int()
  end
  local line, jump = first, 0
  for pc = 1, n do
    if deltas[pc] == 0x80 then
      jump = jump + 1
      line = jumps[jump]
    else
      line = line + (deltas[pc] ~ 0x80) - 0x80
    end
    if pc < n and not (vararg and pc == 1) then lines[line] = true end
  end
end

local function code(r, lines)
  r.text()
  local first = r.int()
  r.int()
  r.skip(1)
  local vararg = r.byte() ~= 0
  r.skip(1)
  r.skip(4 * r.int())
  constants(r)
  r.skip(3 * r.int())
  for _ = 1, r.int() do code(r, lines) end
  lineinfo(r, first, vararg, lines)
  for _ = 1, r.int() do
    r.text()
    r.int()
    r.int()
  end
  for _ = 1, r.int() do r.text() end
end

-- The lines with code, {line = true}; empty if the file does not compile.
function coverage.lines(text)
  local lines = {}
  local f = load(require "nacre.files".source(text), "=", "t")
  if f then code(reader(string.dump(f)), lines) end
  return lines
end

--
-- Summing up
--
local hits = {}     -- by absolute path: {line = times}
local roots = {}    -- by absolute path

local function istest(path)
  return file.kind(path) ~= nil or path:find "/conftest%.lua$"
end

-- Does a file count?
local function is_covered_file(path, o)
  if not path:find "%.lua$" or istest(path) or process.list_folder(path) then
    return false
  end
  return o.cover == true or root.within(path, o.cover)
end

function coverage.add(outcome, o)
  local unit = outcome.job.unit
  for _, m in ipairs(outcome.messages) do
    local name = m[1] == "cover" and m[2]
    local path = name and process.real_path(name:find "^/" and name or
                                           unit.root .. "/" .. name)
    if path and root.within(path, unit.root) and is_covered_file(path, o) then
      local of = hits[path] or {}
      hits[path], roots[path] = of, unit.root
      for line, times in m[3]:gmatch "(%d+):(%d+)" do
        line = math.tointeger(line)
        of[line] = (of[line] or 0) + math.tointeger(times)
      end
    end
  end
end

-- The files of a folder that no test has loaded.
local function unloaded(folder, o)
  for _, entry in ipairs(process.list_folder(folder) or {}) do
    local path = folder .. "/" .. entry[1]
    if entry[1]:find "^%." then
      -- not the user's to look into
    elseif entry[2] then
      unloaded(path, o)
    elseif is_covered_file(path, o) and not hits[path] then
      hits[path], roots[path] = {}, root.of(folder, o.root)
    end
  end
end

-- The files by name: {name, path, lines = in order, hits, missed = lines}
local function summed(o)
  if type(o.cover) == "string" then unloaded(o.cover, o) end
  local list = {}
  for path, of in pairs(hits) do
    local one = {name = root.called({root = roots[path]}, path), path = path,
                 hits = of, lines = {}, missed = {}}
    for line in pairs(coverage.lines(file.read(path) or "")) do
      one.lines[#one.lines + 1] = line
    end
    table.sort(one.lines)
    for k, line in ipairs(one.lines) do
      if not of[line] then one.missed[#one.missed + 1] = {line, k} end
    end
    list[#list + 1] = one
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- "3, 7-12": lines with no other code between them are one range.
local function ranges(missed)
  local parts, k = {}, 1
  while missed[k] do
    local last = k
    while missed[last + 1] and missed[last + 1][2] == missed[last][2] + 1 do
      last = last + 1
    end
    parts[#parts + 1] = last == k and tostring(missed[k][1]) or
                        missed[k][1] .. "-" .. missed[last][1]
    k = last + 1
  end
  return table.concat(parts, ", ")
end

local function percent(lines, missed)
  if lines == 0 then return "100%" end
  return ("%d%%"):format((lines - missed) * 100 // lines)
end

-- The table of `nacre --test --cover`.
function coverage.summary(o)
  local list, width, lines, missed = summed(o), #"total", 0, 0
  for _, one in ipairs(list) do width = math.max(width, #one.name) end
  local text = {("%-" .. width .. "s  %6s  %6s  %5s  %s"):format("coverage",
    "lines", "missed", "cover", "missing")}
  local function row(name, n, m, rest)
    text[#text + 1] = (("%-" .. width .. "s  %6d  %6d  %5s  %s"):format(name,
      n, m, percent(n, m), rest):gsub("%s+$", ""))
  end
  for _, one in ipairs(list) do
    row(one.name, #one.lines, #one.missed, ranges(one.missed))
    lines, missed = lines + #one.lines, missed + #one.missed
  end
  if #list == 0 then return "coverage: no file of the project was loaded\n" end
  row("total", lines, missed, "")
  return table.concat(text, "\n") .. "\n"
end

-- The same for genhtml and other programs.
function coverage.lcov(o)
  local text = {}
  local function put(...) text[#text + 1] = (...):format(select(2, ...)) end
  for _, one in ipairs(summed(o)) do
    put("TN:")
    put("SF:%s", one.path)
    for _, line in ipairs(one.lines) do
      put("DA:%d,%d", line, one.hits[line] or 0)
    end
    put("LF:%d", #one.lines)
    put("LH:%d", #one.lines - #one.missed)
    put("end_of_record")
  end
  return table.concat(text, "\n") .. (#text > 0 and "\n" or "")
end

return coverage
