-- SPDX-License-Identifier: MIT
-- What works along rows gives the same for many rows, which lie in several
-- ways, as for each alone: every dtype, few rows and some more, of 1 to 31
-- elements, which are random, often equal, or no numbers. A new operation needs
-- no line here.
-- Run by: nacre tests/ops/sweep_rows.lua [part=N] [seed=N] [only=PATTERN]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local sweep = dofile(here .. "../lib/sweep.lua") {part = 211}
local C = dofile(here .. "../lib/common.lua")
local calls = dofile(here .. "../lib/row_calls.lua")

local odd = nacre.tensor {0 / 0, 1 / 0, -1 / 0, -0.0, 0.0, 1.0}

local values = {
  random = function(size) return nacre.randn(size) * 3 end,
  ties = function(size) return nacre.randint(0, 3, size):float() end,
  odd = function(size)
    local some = odd:take(nacre.randint(1, #odd + 1, size))
    return nacre.where(nacre.rand(size):lt(0.4), some, nacre.randn(size))
  end,
}

local function operand(kind, rows, columns, dtype)
  local x = values[kind] {rows, columns}
  if dtype == "uint8" then x = x:abs() end
  return (kind == "odd" and not dtype:find "float" and x:nan_to_num(2, 1, 0)
          or x):to(dtype)
end

-- The results of each row alone, joined; or the error of the first.
local function one_by_one(f, x)
  local parts = {}
  for i = 1, x:size(1) do
    for k, y in ipairs(f(x:narrow(1, i, 1):clone())) do
      parts[k] = parts[k] or {}
      parts[k][i] = y
    end
  end
  for k, list in ipairs(parts) do parts[k] = nacre.cat(list, 1) end
  return parts
end

local function outcome(...)
  local ok, v = pcall(...)
  return ok and v or {sweep.same.message(v)}
end

-- Halves are rounded but once on the CPU; what else is computed by vectors or
-- alone may be off by a step.
local host = nacre.ones(1).device == "cpu"
local function scale_of(x)
  return not (host and x.dtype:find "float16") and sweep.same.scale {x} or nil
end

-- Which of 0 and -0 is the smaller is not said.
local function unsigned(name, list)
  if not name:find "m[ai][nx]" then return list end
  for i, y in ipairs(list) do
    list[i] = nacre.is_tensor(y) and y.dtype ~= "bool" and y + 0 or y
  end
  return list
end

local function text(options)
  local parts = {}
  for key, v in pairs(options) do
    parts[#parts + 1] = ("%s = %s"):format(key, v)
  end
  table.sort(parts)
  return table.concat(parts, ", ")
end

local function try(call, x, layout, what)
  local f, options = call.draw()
  local want = unsigned(call.name, outcome(one_by_one, f, x))
  local got = unsigned(call.name, outcome(f, sweep.layouts[layout](x)))
  sweep.check(sweep.differs(want, got, scale_of(x)), "%s of %s {%s}",
              call.name, what, text(options))
end

local columns = {}
for n = 1, 31 do columns[n] = n end
for call, dtype, rows, n, kind, layout in
    sweep.cases(calls, C.dtypes, {1, 15, 16, 17, 40}, columns,
                {"odd", "random", "ties"},
                {"dense", "stepped", "transposed"}) do
  if sweep.wanted(call.name) then
    try(call, operand(kind, rows, n, dtype), layout,
        ("%s[%dx%d], %s, %s"):format(dtype, rows, n, kind, layout))
  end
end
sweep.finish(100000)
