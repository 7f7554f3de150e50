-- SPDX-License-Identifier: MIT
--
-- file_names.lua - completes the name of a file, a folder or a module of Lua.

local candidates = require "nacre.candidates"
local host = require "nacre.host"
local process = require "nacre.process"

local file_names = {}

-- A folder as the system knows it; "~/" is the home folder where `tilde` says
-- so.
local function folder_of(path, tilde)
  local home = tilde and path:find "^~/" and os.getenv "HOME"
  if home then path = home .. path:sub(2) end
  return path == "" and "." or path
end

-- Is the entry of a folder a folder, too? A link to one is.
local function isfolder(folder, entry)
  if entry[2] then return true end
  local path = folder .. "/" .. entry[1]
  return host.file_time(path) == nil and process.real_path(path) ~= nil
end

-- Calls add(name, nil, {text =}) for the entries of a folder that begin with,
-- or resemble, the base.
local function entries(folder, base, only_folders, add)
  for _, entry in ipairs(process.list_folder(folder) or {}) do
    local name = entry[1]
    local dots = name == "." or name == ".." or
                 name:find "^%." and not base:find "^%."
    if not dots and (not only_folders or isfolder(folder, entry)) then
      add(name, nil, {text = name, entry = entry})
    end
  end
end

local SPECIAL <const> = "[%s\"'\\$&;()<>|*?#%[%]{}!`]"

-- How a name is written: in quotes, for the system's shell, or as a word.
local function written(name, style)
  if style == "system" then return (name:gsub(SPECIAL, "\\%0")) end
  if style == "quoted" then return (name:gsub("[\\\"']", "\\%0")) end
  return name
end

-- The names of files that a word can become, as completion.candidates gives
-- them. o: style = "quoted" in a string of Lua, whose `quote' is open; "word"
-- in a command; "system" behind "!"; folders = only folders; right = the text
-- behind the cursor. `start' of the result is relative to that of the word.
function file_names.of(word, o)
  local path = o.style == "system" and word:gsub("\\(.)", "%1") or word
  local quote = o.quote or ""
  if o.style == "word" and path:find "^[\"']" then
    quote, path = path:sub(1, 1), path:sub(2)
  end
  local parent, base = path:match "^(.*/)([^/]*)$"
  parent, base = parent or "", base or path
  local folder = folder_of(parent, o.style ~= "quoted")
  local list = candidates.of(base, function(add)
    entries(folder, base, o.folders, add)
  end)
  local blanks = false
  for i, item in ipairs(list) do
    list[i] = type(item) == "table" and item[1] or item
    blanks = blanks or list[i]:find "%s" ~= nil
  end
  local whole = o.style == "word" and quote == "" and blanks
  local close = o.right and o.right:sub(1, 1) == quote and "" or quote
  for i, name in ipairs(list) do
    local text = written(name, o.style)
    local inside = isfolder(folder, {name})
    local open = whole and text:find "%s" and '"' or ""
    text = (whole and open .. parent or "") .. text
    local ends = (open ~= "" and open or close) ..
                 (o.style == "quoted" and "" or " ")
    list[i] = {text .. (inside and "/" or ends), name .. (inside and "/" or "")}
  end
  list.start = whole and 0 or
               #word - #(o.style == "system" and word:match "[^/]*$" or base)
  return list
end

-- Does a folder hold files of Lua?
local function has_lua(folder)
  for _, entry in ipairs(process.list_folder(folder) or {}) do
    if entry[1]:find "%.lua$" then return true end
  end
end

-- Calls add(name) for the modules that require finds: those that are there,
-- and files on the path in the folder that the dots of the word name.
function file_names.modules(word, add)
  for _, t in ipairs {package.loaded, package.preload} do
    for name in next, t do
      local internal = type(name) ~= "string" or name:find "^nacre%." or
                       name == "_G"
      if not internal then add(name) end
      if not internal and name:find "^torch%." then
        add("nacre" .. name:sub(6)) -- the same module
      end
    end
  end
  local prefix = word:match "^(.*%.)[^.]*$" or ""
  local path = type(package.path) == "string" and package.path or ""
  for template in path:gmatch "[^;]+" do
    local before, after = template:match "^(.-)%?(.*)$"
    local folder = before and before:gsub("/$", "") .. "/" ..
                   prefix:gsub("%.", "/")
    for _, entry in ipairs(folder and process.list_folder(folder) or {}) do
      local name = entry[1]:match "^([%w_]+)%.lua$"
      if after == ".lua" and name then add(prefix .. name) end
      if after == "/init.lua" and entry[2] and
         host.file_time(folder .. entry[1] .. after) then
        add(prefix .. entry[1])
      elseif after == ".lua" and entry[2] and entry[1]:find "^[%w_]+$" and
             has_lua(folder .. entry[1]) then
        add(prefix .. entry[1] .. ".", nil, {text = prefix .. entry[1] .. "."})
      end
    end
  end
end

return file_names
