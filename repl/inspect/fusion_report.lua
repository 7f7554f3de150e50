-- SPDX-License-Identifier: MIT
-- fusion_report.lua - the command :explain: which operations of an expression,
-- or of a function made by nacre.fuse or nacre.kernel, are done in one pass.

local facts = require "nacre.tensor_facts"
local fusion_report = {}

local WHAT <const> = "shows what is done in one pass in an expression of " ..
                     "tensors or a fused function, not in %s"

local function is_fused(v)
  local meta = debug.getmetatable(v)
  local name = type(meta) == "table" and meta.__name
  return name == "nacre.fused" or name == "nacre.kernel"
end

local function kind(v)
  if type(v) == "function" then return "a function: call it, f(a, b)" end
  return v == nil and "nil" or "a " .. facts.typename(v)
end

-- The report on an expression, and its first value. A trace watches what the
-- function reads and changes, but not the modules of nacre.
local function trace(f)
  local report = nacre.fuse(function()
    local got = table.pack(f())
    fusion_report.value = got[2]           -- see input_block.lua
    return table.unpack(got, 2, got.n)
  end):explain(nil)
  local value = fusion_report.value
  fusion_report.value = nil
  return report, value
end

-- The report as a text. What is all in the one line of the prompt needs no
-- names of lines.
local function lines(report, text)
  if #report == 0 and not report.why and not report.note then
    return "no operation on tensors"
  end
  if text:find "\n" then return tostring(report) end
  return (tostring(report):gsub(" %(line 1%)", ""):gsub("stdin:1: ", ""))
end

local function explain(shell, unit)
  local report, value = trace(unit.f)
  if is_fused(value) then
    report = value:explain()
  elseif #report == 0 and value ~= nil and not facts.istensor(value) then
    return shell.fail(":explain " .. WHAT:format(kind(value)))
  end
  for line in lines(report, unit.text):gmatch "[^\n]+" do
    require "nacre.wrap_lines".say(line)
  end
end

function fusion_report.run(shell, text)
  local unit = shell.compile(text)
  if not unit then return end
  if unit.kind ~= "expression" then
    return shell.fail ":explain needs an expression"
  end
  shell.protected(explain, shell, unit)
end

-- shell.explain(f, ...): the report, of a fused function or of another
function fusion_report.call(f, ...)
  if is_fused(f) then return f:explain(...) end
  if type(f) ~= "function" then error(WHAT:format(kind(f)), 2) end
  if select("#", ...) == 0 then return nacre.fuse(f):explain(nil) end
  return nacre.fuse(f):explain(...)
end

return fusion_report
