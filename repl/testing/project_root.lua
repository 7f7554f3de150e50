-- SPDX-License-Identifier: MIT
--
-- project_root.lua - where a test finds its modules and files. The root of a
-- project is the nearest folder above a test that holds .nacre-root or a
-- repository. A test requires modules from its own folder and from the root,
-- and messages name files relative to the root, the same in every checkout.

local files = require "nacre.files"
local host = require "nacre.host"
local process = require "nacre.process"

local root = {}

local MARKS = {"/.nacre-root", "/.git"}

-- The folder of an absolute path.
local function above(path) return path:match "^(.+)/[^/]*$" or "/" end

local function join(folder, name)
  return (folder == "/" and "" or folder) .. "/" .. name
end

local function marked(folder)
  for _, mark in ipairs(MARKS) do
    if process.real_path(folder .. mark) then return true end
  end
end

-- If the path is in the folder (or is it): the rest of the path.
local function within(path, folder)
  if path == folder then return "" end
  local start = join(folder, "")
  return path:sub(1, #start) == start and path:sub(#start + 1) or nil
end

root.within = within

-- The root of a folder: the given one, else the nearest marked one, else the
-- current folder if this is in it, else the folder itself.
function root.of(folder, given)
  if given then return given end
  local at = folder
  while not marked(at) do
    if at == "/" then
      local here = process.real_path "."
      return here and within(folder, here) and here or folder
    end
    at = above(at)
  end
  return at
end

-- Sets the position of a test file: its own, or as if it were in the folder
-- `at`.
function root.place(unit, given, at)
  if not unit.full then return end
  unit.folder = at or above(unit.full)
  unit.root = root.of(unit.folder, given)
end

-- The file of this name for a test: beside it or in the root.
function root.find(unit, name)
  if name:find "^/" then return process.real_path(name) end
  return process.real_path(join(unit.folder, name)) or
         process.real_path(join(unit.root, name))
end

-- How many folders above its own a test needs files: "../x" is 1.
function root.depth(unit)
  local most = 0
  for _, need in ipairs(unit.needs) do
    local depth, lowest = 0, 0
    for part in (need.path or ""):gmatch "[^/]+" do
      if part == ".." then depth = depth - 1
      elseif part ~= "." then depth = depth + 1 end
      lowest = math.min(lowest, depth)
    end
    if not (need.path or ""):find "^/" then most = math.max(most, -lowest) end
  end
  return most
end

-- The files of this name that apply to a folder, the root's first.
function root.each(unit, name)
  local list, at = {}, unit.folder
  while true do
    local path = process.real_path(join(at, name))
    if path then table.insert(list, 1, path) end
    if at == unit.root or not within(at, unit.root) then return list end
    at = above(at)
  end
end

-- Renames the files in printed text to the names that a test uses: at the
-- prompt a module is found as ./lib.lua.
function root.renamed(unit, text)
  local here = within(process.real_path ".", unit.root)
  local start = join(unit.root, "")
  text = text:gsub(start:gsub("%p", "%%%0"), "")
  return here and (text:gsub("%f[^%s'\"(\0]%./([^%s:'\n]+%.lua)", function(name)
    if process.real_path(name) then
      return here == "" and name or join(here, name)
    end
  end)) or text
end

--
-- In the process of a test
--

local function copy(from, to)
  local list = process.list_folder(from)
  if not list then
    local ok, why = process.copy(from, to)
    if not ok then error(("cannot copy %s: %s"):format(from, why), 0) end
    return
  end
  host.makefolders(to, true)
  for _, entry in ipairs(list) do
    local name = entry[1]
    if name ~= "." and name ~= ".." then
      copy(join(from, name), join(to, name))
    end
  end
end

-- Copies a file to the name that the test uses.
local function bring(name, path)
  if name:find "/" then host.makefolders(name:match "^(.*)/", true) end
  copy(path, name)
end

local function bringall(unit)
  for _, need in ipairs(unit.needs) do
    local name = need.path
    if name and not name:find "^/" then bring(name, root.find(unit, name)) end
  end
end

-- Makes functions that read files find those that the test did not declare,
-- and report them.
function root.bringing(unit, tell)
  local function wrap(library, name, writes)
    local f = library[name]
    library[name] = function(file, mode, ...)
      if type(file) == "string" and file:find "^[^/]" and
         not process.real_path(file) and
         not (writes and tostring(mode):find "^w") then
        local path = root.find(unit, file)
        if path then
          bring(file, path)
          tell("file", (file:gsub("^%./", "")))
        end
      end
      return f(file, mode, ...)
    end
  end
  wrap(io, "open", true)
  wrap(io, "lines")
  wrap(io, "input")
  wrap(nacre, "load")
  wrap(_G, "loadfile")
  wrap(_G, "dofile")
end

-- The name of a file in messages.
local function called(unit, path)
  local rest = within(path, unit.root)
  return rest and rest ~= "" and rest or path
end

root.called = called

local names = {} -- by chunkname: the absolute path

-- debug.getinfo returns the full path, for modules that look for files beside
-- their own. The level counts this function, too.
local function openinfo()
  local getinfo = debug.getinfo
  function debug.getinfo(...)
    local a, b, c = ...
    local info
    if type(a) == "thread" then
      local own = a == coroutine.running() and math.type(b) == "integer"
      info = getinfo(a, own and b + 1 or b, c)
    elseif math.type(a) == "integer" then
      info = getinfo(a + 1, b)
    else
      info = getinfo(...)
    end
    if info and names[info.source] then info.source = names[info.source] end
    return info
  end
end

local function loadwith(unit, path, ...)
  local name = called(unit, path)
  local text, why = files.read(path)
  if not text then return nil, ("cannot open %s"):format(why) end
  if name ~= path then
    if not next(names) then openinfo() end
    names["@" .. name] = "@" .. path
  end
  return load(files.source(text), "@" .. name, ...)
end

local function openloads(unit)
  local plain = loadfile
  local function ours(path)
    local full = type(path) == "string" and process.real_path(path)
    return full and within(full, unit.root) and
           not within(full, process.real_path ".") and full
  end
  function _G.loadfile(path, mode, ...)
    local full = ours(path)
    if full then return loadwith(unit, full, mode or "t", ...) end
    return plain(path, mode, ...)
  end
  local dofile = dofile
  function _G.dofile(path)
    if not ours(path) then return dofile(path) end
    local f, why = _G.loadfile(path)
    if not f then error(why, 0) end
    return f()
  end
end

-- A message with the quoted files named relative to the root.
local function plainly(unit, text)
  return (text:gsub("'([^'\n]+)'", function(file)
    return ("'%s'"):format(called(unit, file))
  end))
end

-- Replaces Lua's searcher, which comes after that of the program's modules.
-- The module gets its full path; what require reports is the same in every
-- checkout.
local function opensearcher(unit)
  package.searchers[3] = function(name)
    local path, why = package.searchpath(name, package.path)
    if not path then return plainly(unit, why) end
    local f
    f, why = _G.loadfile(path)
    if f then
      return function() return f(name, path) end, called(unit, path)
    end
    error(("error loading module '%s' from file '%s':\n\t%s"):format(name,
      called(unit, path), why), 0)
  end
end

-- The same for C modules: `a.b` in a library of its own, or in that of `a`.
local function openlibraries(unit)
  for k = 4, 5 do
    local search = package.searchers[k]
    package.searchers[k] = function(name)
      local ok, open, path = pcall(search, name)
      if not ok then error(plainly(unit, open), 0) end
      if type(open) ~= "function" then
        return open and plainly(unit, open)
      end
      return function() return open(name, path) end, called(unit, path)
    end
  end
end

local started = process.real_path "." -- by the runner, before its tests

-- LUA_PATH and LUA_CPATH are relative to where the runner was started.
local function frombefore(path, variable)
  if not os.getenv(variable .. "_5_4") and not os.getenv(variable) or
     not started then
    return path
  end
  return (path:gsub("[^;]+", function(template)
    return not template:find "^/" and
           join(started, (template:gsub("^%./", ""))) or nil
  end))
end

-- Makes the current, empty folder the one of the test.
function root.enter(unit)
  bringall(unit)
  package.path = frombefore(package.path, "LUA_PATH")
  package.cpath = frombefore(package.cpath, "LUA_CPATH")
  local dirs = {unit.folder, unit.folder ~= unit.root and unit.root or nil}
  for k = #dirs, 1, -1 do
    package.path = ("%s;%s;%s"):format(join(dirs[k], "?.lua"),
      join(dirs[k], "?/init.lua"), package.path)
    package.cpath = ("%s;%s"):format(join(dirs[k], "?.so"), package.cpath)
  end
  openloads(unit)
  opensearcher(unit)
  openlibraries(unit)
end

return root
