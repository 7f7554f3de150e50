-- SPDX-License-Identifier: MIT
--
-- source_view.lua - name?? shows the source of a function; for an operation,
-- its formula and its devices.

local frames = require "nacre.stack_frames"
local help = require "nacre.help"
local lookup = require "nacre.lookup"

local source_view = {}

-- Lines a to b of a text.
local function lines(text, a, b)
  local list = require "nacre.files".lines(text)
  return table.concat(list, "\n", a, math.min(b, #list))
end

-- The source of a function, or nil.
function source_view.text(f)
  local info = debug.getinfo(f, "Sf")
  local text = info.what ~= "C" and frames.textof(info)
  return text and lines(text, info.linedefined, info.lastlinedefined) or nil
end

-- Where an operation is defined.
local function definition(info)
  if info.view then return "a view: it moves no element" end
  if info.kind == "operator" then
    return "an operator: a line of core/operators.def"
  elseif info.kind ~= "function" then
    return ("a pointwise operation or reduction: a line of core/ops.def (%s)")
           :format(info.kind)
  end
  return info.differentiable ~= nil and "composed of other operations" or
         "a function of the bindings"
end

-- The text of `?name`, and how the operation is computed.
local function operation(info, text)
  local list = {text, "  made    " .. definition(info)}
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
    require "nacre.wrap_lines".say(operation(info, about))
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
