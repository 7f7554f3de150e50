-- SPDX-License-Identifier: MIT
--
-- parity.lua - :diff, :parity and :repeat compare numbers: are two tensors
-- equal, how far is a result from the exact one, and is it the same on every
-- run?

local bench = require "nacre.bench"
local compare = require "nacre.compare"
local difference = require "nacre.tensor_difference"
local facts = require "nacre.tensor_facts"
local wrap = require "nacre.wrap_lines"
local measure = require "nacre.measure"
local operands = require "nacre.operand_copies"

local nacre = package.loaded.nacre

local parity = {}

local function checked(v, what)
  if type(v) == "number" then v = nacre.tensor(v, {dtype = "float64"}) end
  if facts.istensor(v) then return v end
  error(("%s gives a %s, not a tensor"):format(what, type(v)), 0)
end

--
-- :diff
--
local function number(x)
  return type(x) == "number" and ("%.9g"):format(x) or tostring(x)
end

local function place(d, name)
  return ("at %s: %s / %s"):format(d[name .. "at"], number(d[name .. "a"]),
                                   number(d[name .. "b"]))
end

-- The report on the difference of a and b, as lines.
function parity.difference(a, b)
  local d, why = difference.measure(a, b)
  if not d then error("diff: " .. why, 0) end
  local lines = {}
  local function add(fmt, ...) lines[#lines + 1] = "  " .. fmt:format(...) end
  if a.dtype ~= b.dtype then add("%s against %s", a.dtype, b.dtype) end
  if d.different == 0 then
    add("all %d elements are the same", d.n)
    return lines, d
  end
  if d.n == 1 then
    add("%s and %s differ: abs %s, rel %s, %.3g ulp (%s)", number(a:item()),
        number(b:item()), difference.number(d.abs),
        difference.number(d.rel),
        d.ulp, d.dtype)
    return lines, d
  end
  add("%d of %d elements differ (%.3g%%)", d.different, d.n,
      100 * d.different / d.n)
  if d.nans > 0 then add("%d are nan on one side only", d.nans) end
  add("max abs %s %s", difference.number(d.abs), place(d, "abs"))
  add("max rel %s %s", difference.number(d.rel), place(d, "rel"))
  if d.ulpat then
    add("max ulp %.3g, mean %.2g (%s) %s", d.ulp, d.mean, d.dtype,
        place(d, "ulp"))
    for _, line in ipairs(difference.histogram(d)) do add("%s", line) end
  end
  if a:dim() > 0 and d.n >= 16 and d.different < d.n then
    add "positions (rows x columns; darker: larger difference)"
    for _, line in ipairs(difference.map(a, b, d.abs)) do add("%s", line) end
  end
  return lines, d
end

-- Two expressions: "a ;; b", "a, b" or "a b".
local function two(words)
  local parts = compare.split(words)
  if #parts == 2 then return parts[1], parts[2] end
  for at in words:gmatch "()[%s,]" do
    local a = words:sub(1, at - 1)
    local b = words:sub(at):match "^[%s,]*(.-)%s*$"
    if b ~= "" and load("return " .. a) and load("return " .. b) then
      return a, b
    end
  end
end

-- The value of a text, evaluated with copies of its operands.
local function value(source)
  local env = operands.environment(source)
  return checked(bench.subject(source, env).once(), source)
end

function parity.diff(shell, words)
  local one, other = two(words)
  if not one then
    return shell.fail ":diff needs two expressions: a b, or a ;; b"
  end
  if not shell.compile(one) or not shell.compile(other) then return end
  bench.guarded(shell, function()
    wrap.say((parity.difference(value(one), value(other))))
  end)
end

-- shell.diff(a, b): a table with abs, rel, ulp, mean, different, n and where.
function parity.diffcall(a, b)
  local d, why = difference.measure(checked(a, "the first"),
                                    checked(b, "the second"))
  if not d then error("diff: " .. why, 0) end
  return d
end

-- Evaluates an expression with copies of its operands on a device and random
-- numbers from `state' on. "reference" is the CPU with all floats in float64.
-- Returns the value, the uses of CUDA devices, and whether random numbers were
-- drawn.
local function evaluate(source, device, state)
  local wide = device == "reference"
  local place = wide and "cpu" or device
  local env = operands.environment(source, nil, function(t)
    local c = operands.tensor(t:detach(), place)
    return wide and c:is_floating_point() and c:double() or c
  end)
  local f = compare.on(place, bench.subject(source, env).once)
  local was = nacre.get_default_dtype()
  local _ <close> = measure.defer(function() nacre.set_default_dtype(was) end)
  if wide then nacre.set_default_dtype "float64" end
  local results, uses, drawn = operands.observed(state, f)
  return checked(results[1], source), uses, drawn
end

local function row(name, d)
  if d.different == 0 then return ("  %-10s exact"):format(name) end
  return ("  %-10s max ulp %-9.3g mean %-9.2g worst %s"):format(name, d.ulp,
    d.mean, place(d, "ulp"))
end

-- Why the values of the devices cannot be compared; nil if they can.
local function incomparable(source, devices, values, uses, state)
  local wrong = compare.elsewhere(devices, uses)
  if wrong then return wrong end
  local again = evaluate(source, devices[1], state)
  local d = difference.measure(again, values[1])
  if not d or d.different > 0 then
    return {"not compared: the result differs from run to run"}
  end
end

-- One device against float64.
local function exactness(device, v, reference)
  local d, wrong = difference.measure(v, reference, v.dtype)
  if not d then error("parity: " .. wrong, 0) end
  if not d.ulpat then
    d.ulp, d.ulpat, d.ulpa, d.ulpb = d.abs, d.absat, d.absa, d.absb
  end
  return row(device, d)
end

local function compare_devices(source)
  local devices, why = compare.devices()
  local state, lines, values, uses = nacre.get_rng_state(), {}, {}, {}
  local function add(line) lines[#lines + 1] = line and "  " .. line end
  local drawn
  for i, device in ipairs(devices) do
    values[i], uses[i], drawn = evaluate(source, device, state)
  end
  local wrong = incomparable(source, devices, values, uses, state)
  for _, line in ipairs(wrong or {}) do add(line) end
  if wrong then return lines end
  if drawn then
    add "it draws random numbers, which differ in float64"
  else
    local reference = evaluate(source, "reference", state)
    add "against float64 on the cpu"
    for i, device in ipairs(devices) do
      lines[#lines + 1] = exactness(device, values[i], reference)
    end
    if reference.dtype ~= "float64" and reference:is_floating_point() then
      add(("the reference is %s: the expression chooses the dtype itself")
          :format(reference.dtype))
    end
  end
  if values[2] then
    local d = difference.measure(values[2], values[1])
    add(not d and "their shapes differ" or
        d.different == 0 and "both give the same bits" or
        ("%d of %d elements differ between them, by %.3g ulp at most")
        :format(d.different, d.n, d.ulp))
  else
    add(compare.alone(why))
  end
  return lines
end

function parity.parity(shell, source)
  if not shell.compile(source) then return end
  bench.guarded(shell, function() wrap.say(compare_devices(source)) end)
end

--
-- :repeat
--
local RUNS = 10               -- where none are asked for

-- Runs f n times; returns each distinct result and its count.
function parity.again(f, n)
  if type(f) ~= "function" or math.type(n) ~= "integer" or n < 1 then
    error("repeated: takes a function and a number of runs, such as 10", 2)
  end
  local kinds = {}
  for i = 1, n do
    local v = checked(f(), "it"):detach():cpu():clone()
    local found
    for _, kind in ipairs(kinds) do
      local d = difference.measure(v, kind.value)
      if d and d.different == 0 and v.dtype == kind.value.dtype then
        kind.times, found = kind.times + 1, true
        break
      end
    end
    if not found and #kinds < 20 then
      kinds[#kinds + 1] = {value = v, times = 1, first = i}
    end
  end
  return kinds
end

local function repeated(source, n)
  local kinds = parity.again(function()
    local env = operands.environment(source)
    return bench.subject(source, env).once()
  end, n)
  if #kinds == 1 then
    return {("  %d runs, one result: reproducible bit by bit"):format(n)}
  end
  local lines = {("  %d runs, %s%d results"):format(n,
    #kinds == 20 and "at least " or "", #kinds)}
  local other = kinds[2]
  local d, why = difference.measure(other.value, kinds[1].value)
  lines[2] = d and ("  run %d differs from the first in %d of %d elements, " ..
    "max abs %s at %s"):format(other.first, d.different, d.n,
    difference.number(d.abs), d.absat) or "  " .. why
  lines[3] = "  (:seed N before each run makes random numbers the same)"
  return lines
end

function parity.times(shell, words)
  local n, source = words:match "^(%d+)%s+(.+)$"
  if not n or not load("return " .. source) then n, source = RUNS, nil end
  n = math.tointeger(tonumber(n))
  if not n or n < 2 or words == "" then
    return shell.fail ":repeat needs a number of 2 or more and an expression"
  end
  source = source or words
  if not shell.compile(source) then return end
  bench.guarded(shell, function() wrap.say(repeated(source, n)) end)
end

return parity
