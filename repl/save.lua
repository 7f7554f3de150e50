-- SPDX-License-Identifier: MIT
--
-- save.lua - :save: what was typed becomes a script, or a regression test.

local commands = require "nacre.commands"
local host = require "nacre.host"
local process = require "nacre.process"
local submit = require "nacre.submit"

local save = {}

-- The inputs of the session, or those that :history numbers a..b; without
-- `all` only what succeeded.  Commands about the session itself are not of it.
local function inputs(shell, o)
  local list, failed = {}, {}
  for _, one in ipairs(shell.log) do failed[one.text] = one.failed end
  local function put(text, bad)
    local command = commands.of(text)
    if command and command.about then return end
    if o.all or not bad then list[#list + 1] = text end
  end
  if o.from then
    local history = host.history()
    for i = math.max(1, o.from), math.min(o.to, #history) do
      put(history[i], failed[history[i]])
    end
  else
    for _, one in ipairs(shell.log) do put(one.text, one.failed) end
  end
  return list
end

-- An input as a line of a program.
local function aslua(text)
  if load(text) then return text end
  local unit = submit.compile(text)
  if unit.kind == "expression" then
    return ("print(%s)"):format(text:gsub("[%s;]+$", ""):gsub("^%s*=", ""))
  end
  return "-- " .. text:gsub("\n", "\n-- ")
end

-- An input as in a session, what it prints still open.
local function assession(text)
  local command = commands.of(text)
  local open = command and command.varies and "\n..." or ""
  return "> " .. text:gsub("\n", "\n>> ") .. open
end

local function write(shell, path, text)
  local f, why = io.open(path, "wb")
  local ok = f and f:write(text) and f:close()
  if not ok then shell.fail("cannot write " .. (why or path)) end
  return ok
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- Has the runner fill in what is printed; true, or nil and what it says.
local function replay(path)
  local program = process.absolute "/proc/self/exe" or "nacre"
  local pipe = io.popen(("%s --test --update --ok -- %s 2>&1"):format(
    quoted(program), quoted(path)))
  local text = pipe:read "a"
  local ok = pipe:close()
  text = text:gsub("^[.Fsx]*\n", ""):gsub("%d+ files? written\n", "")
  return ok, text
end

-- Does the session itself say where its random numbers start?
local function seeds(list)
  for _, text in ipairs(list) do
    if text:find "^%s*[:%%]see?d?%s" or text:find "manual_seed" then
      return true
    end
  end
  return false
end

local function counted(n)
  return ("%d input%s"):format(n, n == 1 and "" or "s")
end

local function astest(shell, path, list)
  local lines = {}
  if not seeds(list) then lines[1] = "--: seed " .. shell.seed end
  for _, text in ipairs(list) do lines[#lines + 1] = assession(text) end
  if not write(shell, path, table.concat(lines, "\n") .. "\n") then return end
  local ok, text = replay(path)
  if not ok then
    os.remove(path)
    shell.fail("no test was made of this session\n" .. text)
    return
  end
  local where = text:match "replayed (.-)\n"
  io.stdout:write(("%s: %s, %s\n"):format(path, counted(#list),
    where and "replayed " .. where or "none of which prints anything"))
end

-- "[--test] [--all] FILE [N | N-M]"
local function parse(text)
  local o = {}
  for word in text:gmatch "%S+" do
    local from, to = word:match "^(%d+)%-?(%d*)$"
    if word == "--test" or word == "--all" then
      o[word:sub(3)] = true
    elseif word:find "^%-%-" then
      return nil, "no option " .. word .. " of :save (--test, --all)"
    elseif not o.path then
      o.path = word
    elseif from and not o.from then
      o.from = math.tointeger(tonumber(from))
      o.to = to ~= "" and math.tointeger(tonumber(to)) or o.from
    else
      return nil, ("'%s' is neither a number nor a range such as 3-7")
        :format(word)
    end
  end
  if not o.path then return nil, ":save needs a file" end
  return o
end

function save.run(shell, text)
  local o, wrong = parse(text)
  if not o then return shell.fail(wrong) end
  if process.absolute(o.path) then
    return shell.fail(o.path .. " exists already")
  end
  if o.test and not o.path:find "%.nacre$" then
    return shell.fail "a test needs a name that ends in .nacre"
  end
  o.all = o.all or o.test -- what fails belongs to the behaviour
  local list = inputs(shell, o)
  if #list == 0 then return shell.fail "there is nothing to save" end
  if o.test then return astest(shell, o.path, list) end
  local lines = {}
  for k, input in ipairs(list) do lines[k] = aslua(input) end
  if write(shell, o.path, table.concat(lines, "\n") .. "\n") then
    io.stdout:write(("%s: %s\n"):format(o.path, counted(#list)))
  end
end

return save
