-- SPDX-License-Identifier: MIT
--
-- sweep.lua - :sweep times expressions over sizes. For each size it runs the
-- setup, then times every expression; it reports where one overtakes the
-- first, and draws the curves.

local bench = require "nacre.bench"
local compare = require "nacre.compare"
local measurements = require "nacre.measurement_files"
local host = require "nacre.host"
local wrap = require "nacre.wrap_lines"
local stats = require "nacre.timing_stats"
local text = require "nacre.timing_text"
local measure = require "nacre.measure"

local sweep = {}

local BUDGET = 0.1            -- seconds for an expression at a size
local LONG = 10               -- what would take longer is left out

--
-- One size
--
-- The environment of the expressions at a size, after the setup.
local function setup(o, name, n, sources)
  local globals = {}
  for k, v in pairs(o.globals or {}) do globals[k] = v end
  globals[name] = n
  return bench.setup({setup = o.setup, globals = globals}, sources)
end

-- The name of the i-th expression; a function has no text.
local function name_of(source, i)
  return type(source) == "string" and source or "function " .. i
end

-- The columns: each expression, or a single one on each device.
local function columns(sources)
  if #sources > 1 or type(sources[1]) == "function" then
    local list = {}
    for i, source in ipairs(sources) do
      list[i] = {name = name_of(source, i)}
    end
    return list
  end
  local devices, why = compare.devices()
  local list = {{name = #devices > 1 and "cpu" or sources[1]}}
  if devices[2] then
    list[2] = {name = devices[2]}
    list[3] = {name = devices[2] .. " + copies"}
  end
  return list, why, devices
end

local function subjects(sources, env, devices, n)
  if devices then return compare.subjects(sources[1], env, devices) end
  local list = {}
  for i, source in ipairs(sources) do
    list[i] = bench.subject(type(source) == "string" and source or
                            function() return source(n) end, env)
  end
  return list
end

-- The expected seconds of a column at size i, from the two sizes before.
local function expected(list, sizes, i)
  local a, b = list[i - 2], list[i - 1]
  if not b then return 0 end
  local order = a and math.log(b.median / a.median) /
                math.log(sizes[i - 1] / sizes[i - 2]) or 1
  return b.median * (sizes[i] / sizes[i - 1]) ^ math.max(order, 1)
end

-- Times every column that was not dropped at size i.
local function time_size(t, i, o)
  local env = setup(o, t.name, t.sizes[i], t.sources)
  local all, chosen, where = subjects(t.sources, env, t.devices,
                                        t.sizes[i]), {}, {}
  for k in ipairs(all) do
    local results = t.columns[k].results
    if (i == 1 or results[i - 1]) and expected(results, t.sizes, i) <= LONG then
      all[k].seen = i > 1       -- what it prints
      chosen[#chosen + 1], where[#where + 1] = all[k], k
    else
      t.left = true
    end
  end
  if #chosen == 0 then return false end
  local list = measure.together(chosen, {budget = o.budget or BUDGET,
                                        cold = o.cold, fewest = 3})
  for j, r in ipairs(list) do
    bench.named(r, t.columns[where[j]].name, o)
    r.sizes = ("%s=%d"):format(t.name, t.sizes[i])
    t.columns[where[j]].results[i] = r
  end
  return true
end

-- The same; returns false also if a larger size runs out of memory.
local function attempt(t, i, o)
  if i == 1 then return time_size(t, i, o) end
  local ok, e = pcall(time_size, t, i, o)
  if ok then return e end
  if type(e) ~= "table" or e.code ~= "ENOMEM" then error(e, 0) end
  t.stopped = ("stopped at %s = %d: %s: %s"):format(t.name, t.sizes[i], e.op,
                                                    e.message)
  return false
end

--
-- The table
--
local function medians(column)
  local list = {}
  for i, r in pairs(column.results) do list[i] = r.median end
  return list
end

-- Where each column overtakes the first one.
local function crossings(t)
  local base = medians(t.columns[1])
  for k = 2, #t.columns do
    local c = t.columns[k]
    c.at, c.where = stats.crossing(t.reached, base, medians(c))
  end
end

local function notes(t, i)
  local parts = {}
  for k = 2, #t.columns do
    if t.columns[k].at == i then
      parts[#parts + 1] = t.columns[k].name .. " faster from here"
    end
  end
  return table.concat(parts, ", ")
end

local MOST = 28               -- characters of a heading

local function short(name) return wrap.cut(name, MOST) end

-- "1.1 us" and " 58   us": numbers and units below each other.
local function cell(r, width)
  if not r then return wrap.right("-", width) end
  local number, unit = text.time(r.median, text.digits(r)):match "^(%S+) (.*)$"
  local s = ("%s %-2s"):format(number, unit)
  return wrap.right(s, width)
end

local function line(t, i, width)
  local parts = {("%8d"):format(t.sizes[i])}
  for k, c in ipairs(t.columns) do
    parts[k + 1] = cell(c.results[i], width[k])
  end
  local note = notes(t, i)
  if note ~= "" then parts[#parts + 1] = "   " .. note end
  return (table.concat(parts, "   "):gsub("%s+$", ""))
end

local function heading(t, width)
  local parts = {("%8s"):format(t.name)}
  for k, c in ipairs(t.columns) do
    parts[k + 1] = wrap.right(short(c.name), width[k])
  end
  return table.concat(parts, "   ")
end

local function crossinglines(t)
  local found, never = {}, {}
  for k = 2, #t.columns do
    local c = t.columns[k]
    if c.where then
      found[#found + 1] = ("%s at %s = %.0f"):format(c.name, t.name, c.where)
    elseif c.at then
      never[#never + 1] = c.name .. " is faster at every size"
    else
      never[#never + 1] = c.name .. " is not faster at the largest size"
    end
  end
  if #found > 0 then
    table.insert(never, 1, "crossover: " .. table.concat(found, ", ") ..
                 " (interpolated)")
  end
  return never
end

--
-- The curves
--
function sweep.chart(t, options)
  local series = {}
  for k, c in ipairs(t.columns) do
    local s = {name = c.name, x = {}, y = {}}
    for i = 1, #t.reached do
      if c.results[i] then
        s.x[#s.x + 1], s.y[#s.y + 1] = t.reached[i], c.results[i].median
      end
    end
    series[k] = s
  end
  return require "nacre.plot".chart {
    series = series, xlog = true, ylog = true, width = options.width,
    height = 10, utf8 = options.utf8, color = options.color,
    xticks = t.reached, ytext = function(v) return text.time(v, 2) end}
end

-- Runs a sweep. Returns a table: name, sizes, reached (those that were timed),
-- sources, columns {name =, results = {...}}; and why there is no second
-- device. `say` gets each line as soon as it is known.
local function run_sweep(name, sizes, sources, o, say)
  local t = {name = name, sizes = sizes, reached = {}, sources = sources}
  t.columns, t.why, t.devices = columns(sources)
  local width = {}
  for k, c in ipairs(t.columns) do
    c.results, width[k] = {}, math.max(9, #short(c.name))
  end
  say(heading(t, width))
  for i, n in ipairs(sizes) do
    if not attempt(t, i, o) then break end
    t.reached[i] = n
    t.row = line(t, i, width)
    say(t.row)
  end
  return t
end

local function unmeasured(t)
  if not t.left then return nil end
  return ("measurements of more than %d s were left out"):format(LONG)
end

-- The warning of the worst of all results.
local function doubt(t)
  local worst, spread
  for _, c in ipairs(t.columns) do
    for i, r in pairs(c.results) do
      local s = (r.q3 - r.q1) / r.median
      if not spread or s > spread then worst, spread = {c, i, r}, s end
    end
  end
  local warning = worst and text.warning(worst[3])
  return warning and ("warning: at %s = %d %s: %s"):format(t.name,
    t.sizes[worst[2]], worst[1].name, warning)
end

-- All results, column by column.
local function all(t)
  local list = {}
  for _, c in ipairs(t.columns) do
    for i = 1, #t.reached do list[#list + 1] = c.results[i] end
  end
  return list
end

-- The lines that report columns that ran on another device; nil if none did.
local function elsewhere(t)
  if not t.devices or not t.devices[2] then return nil end
  local uses = {}
  for i in ipairs(t.devices) do
    local r = t.columns[i].results[1]
    uses[i] = r and r.uses or 0
  end
  return compare.elsewhere(t.devices, uses)
end

-- What follows the table: crossings, doubts, the curves.
local function conclusions(t)
  local lines = elsewhere(t)
  if not lines then
    crossings(t)
    lines = crossinglines(t)
  end
  lines[#lines + 1] = compare.alone(t.why)
  lines[#lines + 1] = text.emulated(all(t))
  lines[#lines + 1] = text.printed(all(t))
  lines[#lines + 1] = unmeasured(t)
  lines[#lines + 1] = t.stopped
  lines[#lines + 1] = doubt(t)
  lines[#lines + 1] = text.load(all(t))
  return lines
end

local function sweep_and_report(name, sizes, sources, o, say)
  local t = run_sweep(name, sizes, sources, o, say)
  for _, s in ipairs(conclusions(t)) do say("  " .. s) end
  measurements.export(all(t), o)
  return t
end

-- For programs: shell.sweep("n=16..1024", "a:mm(a)", {setup = ...}) returns a
-- table with name, sizes and columns, which prints like :sweep. A list of
-- sizes is for n; a function is called with the size.
function sweep.call(given, what, o)
  if type(given) == "table" then
    given = "n=" .. table.concat(given, ",")
  elseif type(given) ~= "string" then
    error("sweep: sizes are a string such as n=16..4096 or a list, not a " ..
          type(given), 2)
  end
  local name, sizes = stats.sizes(given)
  if not name then error("sweep: " .. sizes, 2) end
  o = bench.check(o)
  local sources = compare.sources(what, "sweep")
  local lines = {}
  local t = sweep_and_report(name, sizes, sources, o, function(s)
    lines[#lines + 1] = s
  end)
  t.devices, t.row = nil, nil
  return setmetatable(t, {__name = "sweep", __tostring = function()
    return table.concat(lines, "\n")
  end})
end

-- Reads options before the sizes and after them.
local function parse(shell, words)
  local o, rest = bench.options(words)
  if not o then return shell.fail(":sweep: " .. rest) end
  local given, tail = rest:match "^(%S+)%s*(.*)$"
  local name, sizes = stats.sizes(given or "")
  if not name then return shell.fail(":sweep: " .. sizes) end
  local more, expression = bench.options(tail)
  if not more then return shell.fail(":sweep: " .. expression) end
  for k, v in pairs(more) do o[k] = v end
  if expression == "" then
    return shell.fail ":sweep needs an expression after the sizes"
  end
  return o, name, sizes, compare.split(expression)
end

-- Does the setup or an expression use the variable?
local function depends(o, name, sources)
  local text = table.concat(sources, "\n") .. "\n" .. (o.setup or "")
  for _, used in ipairs(require "nacre.lexer".variables(text)) do
    if used == name then return true end
  end
  return false
end

function sweep.run(shell, words)
  local o, name, sizes, sources = parse(shell, words)
  if not o then return end
  if not depends(o, name, sources) then
    return shell.fail((":sweep: nothing depends on %s; -s \"a = " ..
      "nacre.randn(%s, %s)\" makes operands of that size"):format(name, name,
      name))
  end
  for _, source in ipairs(sources) do
    if source == "" or not shell.compile(source) then return end
  end
  bench.guarded(shell, function()
    local function say(s)
      wrap.say(s)
      io.stdout:flush()
    end
    local t = sweep_and_report(name, sizes, sources, o, say)
    local color = host.has_color "stdout"
    local lines = #t.reached > 2 and sweep.chart(t, {
      width = math.min(host.columns(), 80), utf8 = host.has_utf8(),
      color = color})
    for _, s in ipairs(lines or {}) do say(s) end
  end)
end

return sweep
