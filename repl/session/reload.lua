-- SPDX-License-Identifier: MIT
--
-- reload.lua - :reload loads modules again whose files changed since they were
-- required. The module's table is kept and its fields are replaced, so
-- existing references see the new functions.

local host = require "nacre.host"

local reload = {}

-- By module: its file, and the file's time when it was loaded.
local loaded_files = {}
local automatic = false

-- Is this a module of the program, which has no file?
local function is_own(name)
  return name == "torch" or name:find "^nacre%f[%W]" or
         package.preload[name] ~= nil or
         rawequal(rawget(_G, name), package.loaded[name]) and
         require "nacre.state".isbuiltin(name)
end

-- Modules found on the path.
local function find_modules()
  for name in next, package.loaded do
    if type(name) == "string" and loaded_files[name] == nil then
      local path = not is_own(name) and
                   package.searchpath(name, package.path)
      loaded_files[name] = path and {path = path,
                                     written = host.file_time(path)} or false
    end
  end
end

-- Puts the fields of a new table into the old one.
local function replace(old, new)
  for k in next, old do
    if rawget(new, k) == nil then rawset(old, k, nil) end
  end
  for k, v in next, new do rawset(old, k, v) end
  debug.setmetatable(old, debug.getmetatable(new))
end

-- For a module that is not a table: globals with the old value get the new.
local function replace_globals(old, new)
  for k, v in next, _G do
    if rawequal(v, old) then rawset(_G, k, new) end
  end
end

local function load(shell, name, file)
  file.written = host.file_time(file.path)
  local f, why = loadfile(file.path, "t")
  if not f then return shell.fail(why) end
  local got = shell.run {f = function() return f(name, file.path) end}
  if not got then return end
  local old, new = package.loaded[name], got[1]
  if new == nil then return true end
  if type(old) == "table" and type(new) == "table" then
    replace(old, new)
  else
    replace_globals(old, new)
    package.loaded[name] = new
  end
  return true
end

-- Loads the modules that changed and returns their names.
local function reload_changed(shell)
  local names, done = {}, {}
  for name, file in pairs(loaded_files) do
    if file and package.loaded[name] ~= nil then
      local now = host.file_time(file.path)
      if now and now ~= file.written then names[#names + 1] = name end
    end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    if load(shell, name, loaded_files[name]) then done[#done + 1] = name end
  end
  return done
end

-- Reloads the module of a file that was edited; returns its name.
function reload.file(shell, path)
  for name, file in pairs(loaded_files) do
    if file and file.path == path then
      return load(shell, name, file) and name
    end
  end
end

-- Called between blocks: finds new modules and, in automatic mode, reloads
-- changed ones.
function reload.between(shell)
  find_modules()
  if automatic then
    for _, name in ipairs(reload_changed(shell)) do
      shell.note("reloaded " .. name)
    end
  end
end

-- :reload, :reload auto, :reload off
function reload.run(shell, text)
  if text == "auto" or text == "off" then
    automatic = text == "auto"
  elseif text ~= "" then
    return shell.fail ":reload takes auto, off, or nothing"
  end
  find_modules()
  local names = reload_changed(shell)
  if #names > 0 then
    require "nacre.wrap_lines".say("reloaded " .. table.concat(names, ", "))
  elseif text == "" then
    io.stdout:write "no module was changed\n"
  end
end

return reload
