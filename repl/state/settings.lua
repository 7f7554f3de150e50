-- SPDX-License-Identifier: MIT
--
-- settings.lua - the settings that :set changes, a row each. Other modules read
-- a value with settings.get.

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

-- A setting whose value another part of the program keeps. What `set' returns
-- is shown.
local function external(get, set) return {get = get, set = set, own = true} end

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
-- `module' has refused(value), which says why a value cannot be; it is asked
-- about values other than the initial one.
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
  {"color", external(function() return (terminal()) end, function(v)
     terminal(v)
   end),
   word("auto", "always", "never"), nil, "auto|always|never",
   "colours"},
  {"ascii", external(function() return not host.has_utf8() end, function(v)
     terminal(nil, v)
   end), switch, onoff, "on|off", "write only ASCII characters"},
  {"suggestions", external(host.suggestions, host.suggestions), switch, onoff,
   "on|off", "suggestions from the history and of corrected lines"},
  {"graphics", "auto", word("auto", "kitty", "iterm", "sixel", "blocks",
                            "ascii", "off"), nil,
   "auto|kitty|iterm|sixel|blocks|ascii|off", "how :show draws"},
  {"live", "off", function(v)
     return (v == "off" or load("return " .. v)) and v or nil
   end, nil, "lua|off",
   "what is plotted while a loop runs",
   "an expression such as log.loss, or off", module = "nacre.live_plot"},
  {"width", external(host.columns, function(v)
     terminal(nil, nil, v)
   end), function(v)
     return tonumber(v) == 0 and 0 or integer(10, 100000)(v)
   end, nil, "int",
   "columns of the output", "10 or more, or 0 for that of the terminal"},
  {"device", external(nacre.get_default_device, set_device), tostring, nil,
   "device",
   "where new tensors are created", "a device"},
  {"dtype", external(nacre.get_default_dtype, nacre.set_default_dtype),
   tostring, nil, "dtype", "the dtype of new float tensors",
   "a dtype"},
  {"threads", external(nacre.get_num_threads, nacre.set_num_threads),
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
                initial = default, value = default, own = own,
                module = row.module}
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

-- The row of this name: {name =, show = its value as text, own =, ...}; an
-- error if there is none.
function settings.row(name)
  local row = rows[name]
  if row then return row end
  error(("no setting '%s'%s"):format(name, require "nacre.suggestion".text(name,
    rows, "'%s'")), 0)
end

-- What tostring and print of a tensor obey, too.
local of_tensors = {precision = true, edge = true, maxlines = true}

-- Gives a setting the value that the user typed; returns what is said of it.
function settings.change(row, word)
  local value = row.parse(word)
  if value == nil then
    error(("%s must be %s, not '%s'"):format(row.name, row.may,
                                             tostring(word)), 0)
  end
  if row.own then return row.own.set(value) end
  local why = row.module and value ~= row.initial and
              require(row.module).refused(value)
  if why then error(("%s: %s"):format(row.name, why), 0) end
  row.value = value
  if of_tensors[row.name] then
    require "nacre.tensor_text".defaults[row.name] = value
  end
end

return settings
