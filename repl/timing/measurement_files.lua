-- SPDX-License-Identifier: MIT
--
-- measurement_files.lua - saves measurements: under a name, to compare with
-- later, and as JSON and Markdown in the form that hyperfine writes.

local host = require "nacre.host"
local json = require "nacre.json"
local machine = require "nacre.machine"
local stats = require "nacre.timing_stats"
local text = require "nacre.timing_text"

local measurements = {}

local FOLDER = ".nacre-bench"

--
-- What is written of a measurement
--
local function moments(samples)
  local sum, square = 0, 0
  for _, x in ipairs(samples) do sum = sum + x end
  local mean = sum / #samples
  for _, x in ipairs(samples) do square = square + (x - mean) ^ 2 end
  return mean, #samples > 1 and math.sqrt(square / (#samples - 1)) or 0
end

-- The machine of a measurement: what must be equal for times to be comparable.
function measurements.machineof(r)
  if r.device == "cpu" then
    return ("%s, %d threads"):format(machine.model(), r.threads)
  end
  local name = package.loaded.nacre.cuda.get_device_name(r.device)
  return r.emulated and name .. " (emulated)" or name
end

local PLAIN = {"median", "min", "max", "q1", "q3", "n", "flops", "bytes",
               "operations", "allocated", "copied_in", "copied_out", "device",
               "dtype", "threads", "load", "first", "opening", "emulated",
               "cold", "sizes"}

function measurements.record(r)
  local t = {command = r.text, setup = r.setup, times = r.samples,
             machine = measurements.machineof(r),
             date = os.date "!%Y-%m-%dT%H:%M:%SZ",
             version = package.loaded.nacre.version}
  for _, name in ipairs(PLAIN) do t[name] = r[name] end
  t.mean, t.stddev = moments(r.samples)
  return t
end

--
-- Under a name
--
local function path(name) return FOLDER .. "/" .. name .. ".json" end

function measurements.name(name)
  if name:find "^[%w_%-][%w_%-%.]*$" then return name end
  return nil, ("%q is not a valid name: use letters, digits, _, - and .")
              :format(name)
end

-- Saves r under a name; returns the path, or nil and why not.
function measurements.save(name, r)
  local ok, why = measurements.name(name)
  if ok then ok, why = host.makefolders(FOLDER) end
  if ok then ok, why = json.save(path(name), measurements.record(r)) end
  return ok and path(name) or nil, why
end

-- The saved measurement; nil and why.
function measurements.load(name)
  local ok, why = measurements.name(name)
  if not ok then return nil, why end
  local t, wrong = json.load(path(name))
  if not t then return nil, wrong end
  if type(t) ~= "table" or type(t.times) ~= "table" or #t.times == 0 then
    return nil, path(name) .. " is not a measurement"
  end
  for _, x in ipairs(t.times) do
    if type(x) ~= "number" or x <= 0 then
      return nil, path(name) .. " is not a measurement"
    end
  end
  return t
end

-- The lines that compare r with the measurement saved as `name`.
function measurements.compared(r, name, old)
  local ratio, low, high = stats.ratio(r.samples, old.times)
  local lines = {}
  if not low then
    lines[1] = ("%.3gx as long as %s: too few samples for an interval")
               :format(ratio, name)
  else
    local said = (low > 1 and "slower" or high < 1 and "faster" or
                  "no difference shown")
    lines[1] = ("%.3fx as long as %s, %.3f .. %.3f with 95%%: %s"):format(
      ratio, name, low, high, said)
  end
  if old.command and r.text and old.command ~= r.text then
    lines[#lines + 1] = ("%s was: %s"):format(name, old.command)
  end
  local here = measurements.machineof(r)
  if old.machine and old.machine ~= here then
    lines[#lines + 1] = ("warning: %s was measured on %s, this on %s"):format(
      name, old.machine, here)
  end
  return lines, {ratio = ratio, low = low, high = high, name = name}
end

--
-- For others
--
local function row(r)
  local n = text.digits(r)
  local o = require "nacre.machine_peak".reached(r, r.median)
  local limit = text.limit(o)
  local size = r.sizes and (" (%s)"):format(r.sizes) or ""
  return ("| `%s`%s | %s | %s | %s | %s | %s | %s |"):format(
    (r.text or "function"):gsub("|", "\\|"):gsub("\n", " "), size,
    r.device .. (r.emulated and " (emulated)" or ""), text.time(r.median, n),
    text.time(r.min, n), text.range(r.q1, r.q3, n),
    text.rate(limit[1], limit[2], n) or "",
    limit[3] and text.percent(limit[3], n) or "")
end

function measurements.markdown(results)
  local lines = {"| Expression | Device | Median | Min | Middle half | Rate " ..
                 "| Of peak |",
                 "|:---|:---|---:|---:|---:|---:|---:|"}
  for _, r in ipairs(results) do lines[#lines + 1] = row(r) end
  return table.concat(lines, "\n") .. "\n"
end

function measurements.json(results)
  local list = {}
  for i, r in ipairs(results) do list[i] = measurements.record(r) end
  return json.encode {results = list}
end

-- Writes the files that the options ask for; raises an error if that fails.
function measurements.export(results, o)
  for _, form in ipairs {"json", "markdown"} do
    if o[form] then
      local ok, why = host.write_file(o[form], measurements[form](results))
      if not ok then error(why, 0) end
    end
  end
end

return measurements
