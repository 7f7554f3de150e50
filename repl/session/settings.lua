-- SPDX-License-Identifier: MIT
--
-- settings.lua - :set, shell.set and the start-up file. One row for
-- each setting; other modules read a value with settings.get.

local host = require "nacre.host"
local readers = require "nacre.value_readers"
local units = require "nacre.units"

local settings = {}

local integer, word = readers.integer, readers.one_of

local function bytes(v) return units.parse_bytes(tostring(v)) end

local switches = {on = true, off = false, ["true"] = true, ["false"] = false}
local function switch(v) return switches[tostring(v)] end

-- "on", "off" or the shortest time that is reported, which needs its unit.
local function threshold(v)
  if switch(v) ~= nil then return switch(v) end
  local text = tostring(v)
  return text:find "s$" and units.parse_seconds(text) or nil
end

local function onoff(v) return v and "on" or "off" end

local function duration(v)
  if type(v) == "boolean" then return onoff(v) end
  return v < 1 and ("%gms"):format(v * 1e3) or ("%gs"):format(v)
end

local function memory(v)
  return (units.bytes(v):gsub("%.0 ", " "):gsub(" ", ""))
end

-- A setting whose value is kept elsewhere in the program. What `set' returns is
-- said; `more' prints what there is to choose from.
local function elsewhere(get, set, more)
  return {get = get, set = set, more = more, own = true}
end

local terminal = host.terminal_settings

-- What is said when new tensors go to another device.
local function set_device(name)
  local was = nacre.get_default_device()
  nacre.set_default_device(name)
  return ("default device %s (was %s)"):format(nacre.get_default_device(), was)
end

-- Each row: the name, the initial value, a function that converts what the
-- user typed (nil if it is invalid), a function that formats the value, the
-- type in the syntax of signatures, from which completion takes the words, the
-- description, and how the accepted values are named if not by these words.
settings.list = {
  {"precision", 4, function(v)
     return v == "full" and v or integer(1, 17)(v)
   end, nil, "int|full", "digits of a number, or full",
   "1 to 17, or full"},
  {"edge", 5, integer(1, 1000), nil, "int",
   "rows shown at each end of a long tensor", "1 to 1000"},
  {"maxlines", 25, integer(5, 100000), nil, "int",
   "the most lines that a value takes", "5 or more"},
  {"depth", "auto", function(v)
     return v == "auto" and v or integer(1, 100)(v)
   end, nil, "int|auto", "how deep nested tables are shown",
   "1 to 100, or auto"},
  {"stats", true, switch, onoff, "on|off",
   "the line of statistics under an abbreviated tensor"},
  {"result_keep", 64 << 20, bytes, memory, "size_of_memory",
   "the largest result that _, __ and ___ keep", "a size such as 64MiB"},
  {"timing", 0.5, threshold, duration, "on|off",
   "show the time of a line that took at least this long",
   "on, off or a time such as 500ms"},
  {"numbers", false, switch, onoff, "on|off",
   "the number of the input in the prompt, for _N, In[N] and :again N"},
  {"pager", os.getenv "NACRE_PAGER" or "auto", function(v)
     return v ~= "" and tostring(v) or nil
   end, nil, "auto, off or a command such as less",
   "what shows lists of the shell that are longer than the window"},
  {"color", elsewhere(function() return (terminal()) end, function(v)
     terminal(v)
   end),
   word("auto", "always", "never"), nil, "auto|always|never",
   "colours"},
  {"ascii", elsewhere(function() return not host.has_utf8() end, function(v)
     terminal(nil, v)
   end), switch, onoff, "on|off", "write only ASCII characters"},
  {"suggestions", elsewhere(host.suggestions, host.suggestions), switch, onoff,
   "on|off", "what the history goes on with, dim at the prompt"},
  {"graphics", "auto", word("auto", "kitty", "iterm", "sixel", "blocks",
                            "ascii", "off"), nil,
   "auto|kitty|iterm|sixel|blocks|ascii|off", "how :show draws"},
  {"live", "off", function(v)
     if v == "off" then return v end
     if not load("return " .. v) then return nil end
     local why = require "nacre.live_plot".refused(v)
     if why then error("live: " .. why, 0) end
     return v
   end, nil, "lua|off",
   "what is plotted while a loop runs",
   "an expression such as log.loss, or off"},
  {"width", elsewhere(host.columns, function(v)
     terminal(nil, nil, v)
   end), function(v)
     return tonumber(v) == 0 and 0 or integer(10, 100000)(v)
   end, nil, "int",
   "columns of the output", "10 or more, or 0 for that of the terminal"},
  {"device", elsewhere(nacre.get_default_device, set_device, function()
     require "nacre.session_commands".devices()
   end), tostring, nil, "device",
   "where new tensors are created", "a device"},
  {"dtype", elsewhere(nacre.get_default_dtype, nacre.set_default_dtype),
   tostring, nil, "dtype", "the dtype of new float tensors",
   "a dtype"},
  {"threads", elsewhere(nacre.get_num_threads, nacre.set_num_threads),
   integer(1, 256), nil, "int", "number of CPU threads",
   "1 to 256"},
}

-- "auto, always or never"
local function either(kind)
  return (kind:gsub("|([^|]*)$", " or %1"):gsub("|", ", "))
end

local rows = {}
for _, row in ipairs(settings.list) do
  local name, default, parse, show, kind, doc, may = table.unpack(row, 1, 7)
  local own = type(default) == "table" and default.own and default
  rows[name] = {name = name, parse = parse, show = show or tostring,
                may = may or either(kind), kind = kind, doc = doc,
                value = default, own = own}
end

function settings.get(name)
  local row = rows[name]
  if row.own then return row.own.get() end
  return row.value
end

-- How its values are named, "1 to 17, or full".
function settings.may(name) return rows[name].may end

-- The value of a setting as a parameter of a signature, or nil.
function settings.param(name)
  local row = rows[name]
  return row and nacre._signature("set", "value:" .. row.kind).params[1]
end

local function find(name)
  local row = rows[name]
  if row then return row end
  error(("no setting '%s'%s"):format(name, require "nacre.suggestion".text(name,
    rows, "'%s'")), 0)
end

-- What tostring and print of a tensor obey, too.
local of_tensors = {precision = true, edge = true, maxlines = true}

local function change(row, word)
  local value = row.parse(word)
  if value == nil then
    error(("%s must be %s, not '%s'"):format(row.name, row.may,
                                             tostring(word)), 0)
  end
  if row.own then return row.own.set(value) end
  row.value = value
  if of_tensors[row.name] then
    require "nacre.tensor_text".defaults[row.name] = value
  end
end

-- What is said of a value that was set at the prompt.
local function set_and_tell(row, word)
  local said = change(row, word)
  if type(said) == "string" then io.stdout:write(said, "\n") end
end

-- shell.set(NAME[, VALUE]) or shell.set{NAME = VALUE, ...}; gives the value.
function settings.call(name, value)
  if type(name) == "table" then
    for k, v in pairs(name) do settings.call(k, v) end
    return
  end
  local row = find(tostring(name))
  if value ~= nil then change(row, value) end
  return settings.get(row.name)
end

--
-- The start-up file
--
function settings.initfile()
  return host.userfile("XDG_CONFIG_HOME", "/.config", "init.lua")
end

-- The text of a file in which `line` replaces the one that begins with
-- `start`.
local function replace_line(text, start, line)
  local list, done = {}, false
  for old in text:gmatch "([^\n]*)\n?" do
    if old:sub(1, #start) == start then
      if not done then list[#list + 1] = line end
      done = true
    else
      list[#list + 1] = old
    end
  end
  while list[#list] == "" do list[#list] = nil end
  if not done then list[#list + 1] = line end
  return table.concat(list, "\n") .. "\n"
end

-- Writes a setting to the start-up file and returns the file's name.
local function write_to_file(row)
  local path = settings.initfile() or
               error("there is no home folder to keep it in", 0)
  host.makefolders(path:match "^(.*)/", true)
  local text, wrong, code = require "nacre.files".read(path)
  local ENOENT <const> = 2
  if not text and code ~= ENOENT then
    error("cannot read " .. wrong, 0) -- or it would be lost
  end
  local start = ('shell.set("%s", '):format(row.name)
  local line = ('%s%q)'):format(start, row.show(settings.get(row.name)))
  local ok, why = host.write_file(path, replace_line(text or "", start, line))
  if not ok then error("cannot write " .. why, 0) end
  return path
end

local function tell(row)
  require "nacre.wrap_lines".say(("  %-12s %-9s %s"):format(row.name,
    row.show(settings.get(row.name)), row.doc))
end

-- :set [NAME [VALUE]], :set! NAME VALUE
function settings.run(shell, text)
  local always, name, value = text:match "^(!?)%s*(%S*)%s*=?%s*(.-)$"
  if name == "" then
    for _, r in ipairs(settings.list) do tell(rows[r[1]]) end
    return
  end
  local ok, why = pcall(function()
    local row = find(name)
    if value ~= "" then set_and_tell(row, value) end
    if always == "!" then
      require "nacre.wrap_lines".say(("%s = %s in %s"):format(row.name,
        row.show(settings.get(row.name)), write_to_file(row)))
    elseif value == "" then
      tell(row)
      if row.own and row.own.more then row.own.more() end
    end
  end)
  if not ok and type(why) == "table" then error(why, 0) end -- it has a hint
  if not ok then shell.fail(tostring(why)) end
end

return settings
