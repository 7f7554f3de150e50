-- SPDX-License-Identifier: MIT
--
-- source_view.lua - name?? shows the source of a function; for an operation,
-- its formula, its dtypes and its devices.

local frames = require "nacre.stack_frames"
local help = require "nacre.help"
local lookup = require "nacre.lookup"

local source_view = {}

-- Lines a to b of a text.
local function lines(text, a, b)
  local list, n = {}, 0
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    n = n + 1
    if n >= a and n <= b then list[#list + 1] = line end
  end
  return table.concat(list, "\n")
end

-- The source of a function, or nil.
function source_view.text(f)
  local info = debug.getinfo(f, "Sf")
  local text = info.what ~= "C" and frames.textof(info)
  return text and lines(text, info.linedefined, info.lastlinedefined) or nil
end

local kinds = {family = "a family: one function for each device",
               composed = "composed of other operations",
               view = "a view: it moves no element"}

local classes = {N = "numbers", U = "unsigned", I = "integers",
                 F = "floats", B = "bool"}

-- The dtypes of a pointwise operation, from the letters of its class.
local function types(class)
  if not class then return nil end
  local whole = {ANY = "all dtypes", FLT = "floats; integers become floats",
                 INT = "integers", BIT = "integers and bool",
                 NUM = "numbers"}
  if whole[class] then return whole[class] end
  local list = {}
  for letter in class:gmatch "." do
    list[#list + 1] = classes[letter] or letter
  end
  return table.concat(list, ", ")
end

-- The text of `?name`, and how the operation is computed.
local function operation(info, text)
  local list = {text}
  local kind = info.view and kinds.view or kinds[info.kind] or
               ("one row of core/ops.def (%s)"):format(info.kind)
  list[#list + 1] = "  made    " .. kind
  local takes = not text:find "\n  dtypes?%s" and types(info.class)
  if takes then list[#list + 1] = "  dtypes  " .. takes end
  local devices = {"cpu"}
  for _, d in ipairs(nacre._devices()) do
    if d.name ~= "cpu" then devices[#devices + 1] = d.name end
  end
  if #devices > 1 then
    list[#list + 1] = "  runs on " .. table.concat(devices, ", ")
  end
  return table.concat(list, "\n")
end

-- name??
function source_view.show(shell, name)
  local value = lookup.value(name)
  local info = type(value) == "function" and nacre._info(value) or
               value == nil and nacre._info(name:match "[%w_]*$")
  local about = help.text(name)
  if info and about then
    io.stdout:write(operation(info, about), "\n")
    return
  end
  local text = type(value) == "function" and source_view.text(value)
  if not text then return help.show(shell, name) end
  local where = debug.getinfo(value, "S")
  io.stdout:write(text, "\n")
  if where.source:find "^@" then
    io.stdout:write(("-- %s:%d\n"):format(where.short_src,
                                          where.linedefined))
  end
end

return source_view
