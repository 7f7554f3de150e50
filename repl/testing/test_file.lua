-- SPDX-License-Identifier: MIT
--
-- test_file.lua - files of tests: what is one, and what is in it.
--
--   *.nacre       a session as it was on the screen
--   *.md          the same in fenced blocks that say ```nacre
--   *_test.lua    test("name", function(t) ... end)
--   NAME.lua, NAME.out
--                 a script and what it prints; with a NAME.err what it writes
--                 to stderr is apart
--
-- A file may say how it is to be run: "--: seed 1" in a line of its own, in
-- Markdown also "<!--: seed 1 -->".

local files = require "nacre.files"
local host = require "nacre.host"
local match = require "nacre.match_output"
local process = require "nacre.process"
local input_block = require "nacre.input_block"
local readers = require "nacre.value_readers"
local styled = require "nacre.styled_output"
local units = require "nacre.units"

local file = {}

file.read = files.read

--
-- Which files
--
local function isfile(path) return host.file_time(path) ~= nil end

-- "transcript", "markdown", "unit", "script", or nil.
function file.kind(path)
  if path:find "%.nacre$" then return "transcript" end
  if path:find "%.md$" then
    local text = file.read(path) or ""
    text = "\n" .. text
    return (text:find "\n%s*```+%s*nacre%f[%s]" or
            text:find "\n%s*~~~+%s*nacre%f[%s]") and "markdown" or nil
  end
  if path:find "_test%.lua$" then return "unit" end
  local stem = path:match "^(.*)%.lua$"
  return stem and isfile(stem .. ".out") and "script" or nil
end

local function sorted(path)
  local list = process.list_folder(path)
  if list then table.sort(list, function(a, b) return a[1] < b[1] end) end
  return list
end

local function walk(path, found)
  for _, entry in ipairs(sorted(path) or {}) do
    local name = path == "." and entry[1] or path .. "/" .. entry[1]
    if entry[1]:find "^%." then
      -- not the user's to look into
    elseif entry[2] then
      walk(name, found)
    elseif file.kind(name) then
      found[#found + 1] = name
    end
  end
end

-- The test files under path, or path itself; nil and why if there is none.
function file.find(path)
  local found = {}
  if process.list_folder(path) then
    walk(path:gsub("(.)/+$", "%1"), found)
    return found
  end
  if not isfile(path) then
    return nil, require "nacre.lua_values".escape_controls(path) ..
                ": no such file or folder"
  end
  if not file.kind(path) then
    return nil, path .. ": not a test (a *.nacre, a *.md with ```nacre " ..
                "blocks, a *_test.lua, or a *.lua with its *.out)"
  end
  return {path}
end

--
-- Directives
--
local function words(text)
  local list = {}
  for word in text:gmatch "[^%s,]+" do list[#list + 1] = word end
  return list
end

local function quoted(text) return text:match '^"(.*)"$' or text end

-- The text of a memory limit in bytes.
function file.bytes(text)
  local n = units.parse_bytes(text)
  return n and n >= 1 and n < 1 << 62 and n or nil
end

local NEEDS = {cuda = true, mem = true, file = true, png = true, jpg = true,
               python = true, nvrtc = true}

-- {what = "cuda", count = 2}, {what = "mem", bytes =}, {what = "file", path =,
-- may_lack =}, {what = "python", modules = "numpy pandas"}
local function need(text)
  local count = text:match "^cuda>=(%d+)$"
  if count then return {what = "cuda", count = tonumber(count)} end
  local what, rest = text:match "^(%a+)%s*(.-)$"
  if not NEEDS[what] then return nil end
  local optional = text:match "^file%?%s*(.*)$"
  if optional then
    return optional ~= "" and {what = what, path = optional, may_lack = true}
  end
  if what == "cuda" then return rest == "" and {what = what, count = 1} end
  if what == "png" or what == "jpg" or what == "nvrtc" then
    return rest == "" and {what = what}
  end
  if what == "python" then return {what = what, modules = rest} end
  if what == "file" then return rest ~= "" and {what = what, path = rest} end
  local n = rest:find "%a" and units.parse_bytes(rest)
  return n and {what = "mem", bytes = n, text = rest}
end

-- Converts the text of each directive; nil if it is invalid.
local directives = {
  seed = readers.integer(),
  devices = readers.devices(),
  dtype = function(s) local l = words(s); return #l > 0 and l or nil end,
  rtol = readers.unsigned,
  atol = readers.unsigned,
  timeout = units.parse_seconds,
  memory = file.bytes,
  skip = function(s) return s ~= "" and quoted(s) or "no reason given" end,
  xfail = function(s) return s ~= "" and quoted(s) or "no reason given" end,
  serial = function(s) return s == "" or nil end,
  exit = readers.integer(0, 255),
  values = function(s) return s == "" or nil end,
  needs = need,
}

-- ", did you mean 'devices'?" where a name is near that.
local function did_you_mean(name)
  local known = {only = true}
  for other in pairs(directives) do known[other] = true end
  return name and require "nacre.suggestion".text(name, known, "'%s'") or ""
end

-- A directive that follows output may have been printed.
local function printed(unit, n, text)
  local step = unit.steps[#unit.steps]
  if not step or step.to ~= n - 1 or #step.expect == 0 or
     text:find "^%s*only%s" or text:find "^%s*}" then
    return false
  end
  unit.bad = unit.bad or ("%s:%d: '--:%s' follows the output of line " ..
    "%d: a directive needs an empty line above it; if it was printed, write " ..
    "<...>-:%s"):format(unit.path, n, text, step.line, text)
  return true
end

local function directive(unit, n, text)
  text = text:gsub("%s+%-%-%s.*$", ""):match "^%s*(.-)%s*$"
  local name, rest = text:match "^(%a+)%s*(.-)$"
  local only = text:match "^only%s+(%w+)%s*{$"
  if only then
    unit.only = only
  elseif text == "}" then
    unit.only = nil
  elseif not directives[name] then
    unit.bad = unit.bad or ("%s:%d: no directive '%s'%s"):format(unit.path, n,
                                                       text, did_you_mean(name))
  else
    local value = directives[name](rest)
    if value == nil or value == false then
      unit.bad = unit.bad or ("%s:%d: invalid value of '%s': '%s'"):format(
        unit.path, n, name, rest)
    elseif name == "needs" then
      unit.needs[#unit.needs + 1] = value
    else
      unit.says[name] = value
    end
  end
end

--
-- Sessions
--
local function islua(name)
  local command = require "nacre.commands".find(name)
  return command ~= nil and command.lua == true
end

local function ready(text) return input_block.ready(text, islua) end

local function compiles(text)
  local part = input_block.lua_part(text, islua)
  return part and input_block.compile(part).f ~= nil
end

-- "> text", also after the name of a default device
local function prompt(line)
  if line:find "^>>" then return nil end
  return line:match "^> (.*)$" or line:match "^cuda:%d+> (.*)$" or
         line:match "^debug> (.*)$" or
         line:match "^>$" and ""
end

local function more(line) return line:match "^>> (.*)$" or
                                 line == ">>" and "" or nil end

-- The rest of a block copied from the editor, without ">>": lines until the
-- block is complete.
local function unmarked(lines, n, last, text)
  local k, all = n, text
  while k < last and not prompt(lines[k + 1]) do
    k = k + 1
    all = all .. "\n" .. lines[k]:gsub("^  ", "", 1)
    if compiles(all) then return all, k end
  end
  return text, n
end

-- The input that starts in line n, and its last line.
local function input(lines, n, last, text)
  local from = n
  while n < last and more(lines[n + 1]) do
    n = n + 1
    text = text .. "\n" .. more(lines[n])
  end
  if n > from or ready(text) then return text, n end
  return unmarked(lines, n, last, text)
end

-- The inputs of a copied session, a list; nil if the text is not one.
function file.inputs(text)
  local list, lines = {}, {}
  for _, line in ipairs(files.lines(text)) do
    if #lines > 0 or line:find "%S" then lines[#lines + 1] = line end
  end
  if not lines[1] or not prompt(lines[1]) then return nil end
  local n = 1
  while n <= #lines do
    local first = prompt(lines[n])
    if first then list[#list + 1], n = input(lines, n, #lines, first) end
    n = n + 1
  end
  return list
end

-- The lines of output from n on, without blank ones at the end.
local function output(unit, lines, n, last)
  local expect, to = {}, n
  while n <= last and not prompt(lines[n]) and not lines[n]:find "^%-%-" do
    local wrong = match.badnote(lines[n])
    if wrong then
      unit.bad = unit.bad or ("%s:%d: %s"):format(unit.path, n, wrong)
    end
    expect[#expect + 1] = styled.uncoloured(lines[n])
    n = n + 1
  end
  while expect[#expect] and not expect[#expect]:find "%S" do
    expect[#expect] = nil
  end
  to = to + #expect - 1
  return expect, n, to
end

-- Adds the steps of lines from..last: {text, line, expect, from, to, only}.
local function session(unit, lines, from, last)
  local n = from
  while n <= last do
    local text = prompt(lines[n])
    if text then
      local step = {line = n, only = unit.only}
      step.text, step.shown = input(lines, n, last, text)
      step.expect, n, step.to = output(unit, lines, step.shown + 1,
                                           last)
      step.from = step.shown + 1
      unit.steps[#unit.steps + 1] = step
    else
      local says = lines[n]:match "^%-%-:(.*)$"
      if says then
        if not printed(unit, n, says) then directive(unit, n, says) end
      elseif lines[n]:find "%S" and not lines[n]:find "^%-%-" then
        unit.bad = unit.bad or ("%s:%d: this is neither input (> ...), " ..
          "nor a comment (-- ...), nor output"):format(unit.path, n)
      end
      n = n + 1
    end
  end
end

-- A block of a list is indented, and so are its lines.
local function block(unit, lines, from, last, indent)
  local inner, done = {}, #unit.steps
  for n = from, last do
    local blanks = #lines[n]:match "^%s*"
    inner[n] = lines[n]:sub(math.min(blanks, #indent) + 1)
  end
  session(unit, inner, from, last)
  for k = done + 1, #unit.steps do unit.steps[k].indent = indent end
end

-- The fence of a line: its indentation, its marks, the word after them.
local function fenceof(line)
  local indent, marks, word = line:match "^(%s*)(```+)%s*([%w_%-]*)"
  if not marks then
    indent, marks, word = line:match "^(%s*)(~~~+)%s*([%w_%-]*)"
  end
  return indent, marks, word
end

local function markdown(unit, lines)
  local n, open, mine, first, indent = 1, nil, nil, nil, nil
  while n <= #lines do
    local blanks, fence, word = fenceof(lines[n])
    if open and fence and fence:find(open, 1, true) and word == "" then
      if mine then block(unit, lines, first, n - 1, indent) end
      open = nil
    elseif not open and fence then
      open, mine, first, indent = fence, word == "nacre", n + 1, blanks
    elseif not open then
      local says = lines[n]:match "^%s*<!%-%-:(.-)%-%->%s*$"
      if says then directive(unit, n, says) end
    end
    n = n + 1
  end
  if open and mine then block(unit, lines, first, #lines, indent) end
end

local function luafile(unit, lines)
  for n, line in ipairs(lines) do
    local says = line:match "^%-%-:%s(.*)$"
    if says then directive(unit, n, says) end
  end
end

-- Without a byte order mark.
local function plain(text) return (text:gsub("^\xEF\xBB\xBF", "", 1)) end

local function script(unit)
  local out, why = file.read(unit.path:gsub("%.lua$", ".out"))
  if not out then unit.bad = why end
  local expect = match.split(plain(out or ""))
  unit.steps[1] = {text = "", line = 1, expect = expect, from = 1,
                   to = #expect}
  unit.errors = file.read(unit.path:gsub("%.lua$", ".err"))
  if not unit.errors then return end -- then they are in the .out
  expect = match.split(plain(unit.errors))
  unit.steps[2] = {text = "", line = 1, expect = expect, from = 1,
                   to = #expect, ofstderr = true}
end

-- Reads a test file: {path, full, kind, lines, steps, says, needs}, with `bad`
-- if it has an error.
function file.load(path)
  local unit = {path = path, full = process.real_path(path),
                kind = file.kind(path), steps = {}, says = {}, needs = {}}
  local text, why = file.read(path)
  if not text then
    unit.bad = why
    return unit
  end
  unit.text, unit.bom = text, text:match "^\xEF\xBB\xBF"
  unit.lines = files.lines(plain(text))
  if unit.kind == "transcript" then
    session(unit, unit.lines, 1, #unit.lines)
  elseif unit.kind == "markdown" then
    markdown(unit, unit.lines)
  else
    luafile(unit, unit.lines)
    if unit.kind == "script" then script(unit) end
  end
  if unit.only and not unit.bad then
    unit.bad = unit.path .. ": 'only " .. unit.only .. " {' is never closed"
  end
  require "nacre.stored_values".name(unit)
  if unit.kind ~= "unit" and #unit.steps == 0 and not unit.says.skip then
    unit.bad = unit.bad or unit.path .. ": it has no input (> ...)"
  end
  return unit
end

return file
