-- SPDX-License-Identifier: MIT
--
-- compare.lua - :compare times one expression on every device, with its
-- operands there and with the copies included, and checks that the results
-- agree; or it times several expressions side by side.

local bench = require "nacre.bench"
local difference = require "nacre.tensor_difference"
local measurements = require "nacre.measurement_files"
local facts = require "nacre.tensor_facts"
local wrap = require "nacre.wrap_lines"
local operands = require "nacre.operand_copies"
local peak = require "nacre.machine_peak"
local stats = require "nacre.timing_stats"
local text = require "nacre.timing_text"
local measure = require "nacre.measure"
local units = require "nacre.units"

local nacre = package.loaded.nacre

local compare = {}

-- Splits "a ;; b" into {"a", "b"}, except inside strings and comments.
function compare.split(source)
  local parts, from, last = {}, 1, nil
  for _, token in ipairs(require "nacre.lexer".tokens(source)) do
    if token.text == ";" and last and last.text == ";" and
       last.to + 1 == token.from then
      parts[#parts + 1] = source:sub(from, last.from - 1)
      from, last = token.to + 1, nil
    else
      last = token
    end
  end
  parts[#parts + 1] = source:sub(from)
  for i, part in ipairs(parts) do parts[i] = part:match "^%s*(.-)%s*$" end
  return parts
end

-- The devices, the CPU first; if there is no second one also why.
function compare.devices()
  if not nacre.cuda.is_available() then return {"cpu"}, nacre.cuda.why() end
  return {"cpu", "cuda:" .. nacre.cuda.current_device()}
end

local told_why_alone = false

-- Reports why there is no second device, once a session.
function compare.alone(why)
  if told_why_alone or not why then return nil end
  told_why_alone = true
  return "no second device: " .. why
end

-- A function that calls f with the device as the default one.
function compare.on(device, f)
  return function(...)
    local was = nacre.get_default_device()
    local _ <close> = measure.defer(function()
      nacre.set_default_device(was)
    end)
    nacre.set_default_device(device)
    return f(...)
  end
end

local function to(device)
  return function(t) return operands.tensor(t, device) end
end

-- The expression with copies of its operands on a device.
local function on_device(source, base, device)
  local s = bench.subject(source,
                          operands.environment(source, base, to(device)))
  s.once, s.loop = compare.on(device, s.once), compare.on(device, s.loop)
  return s
end

local function to_cpu(...)
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if facts.istensor(v) then v:cpu() end
  end
  return ...
end

-- The same with operands on the CPU: each run copies them to the device and
-- the results back.
local function copying(source, base, device)
  local here = operands.environment(source, base, to "cpu")
  local env = measure.environment({source}, here)
  local names = operands.names(source, here)
  local once = bench.subject(source, env).once
  local f = compare.on(device, function()
    operands.move(env, here, names, to(device))
    return to_cpu(once())
  end)
  local subject = measure.prepare(f)
  subject.text, subject.env = source, env
  return subject
end

--
-- The table
--
local function speedup(x)
  if x >= 10 then return ("%.0fx"):format(x) end
  if x >= 0.995 then return ("%.1fx"):format(x) end
  return (x >= 0.095 and "%.2fx" or "%.1gx"):format(x)
end

-- The cells of a result: median, rate, share, and the ratio if it is valid.
local function cells(r, base, valid)
  local n = text.digits(r)
  local o = peak.reached(r, r.median)
  local limit = text.limit(o, text.moves(base))
  local rate = r.operations > 0 and text.rate(limit[1], limit[2], n) or ""
  return {text.time(r.median, n), rate or "",
          not r.copies and (text.cached(o) and "cache" or limit[3] and
                            text.percent(limit[3], n)) or "",
          valid and speedup(base.median / r.median) or ""}
end

-- The lines of a table of results, {r =, name =, note =, short =} each.
local function table_lines(list, valid)
  local rows = {{"", "median", "rate", "of peak",
                 "vs " .. (list[1].short or "first"), ""}}
  for i, item in ipairs(list) do
    local row = cells(item.r, list[1].r, valid)
    table.insert(row, 1, wrap.cut(item.name, 36))
    row[6] = item.note and "  " .. item.note or ""
    rows[i + 1] = row
  end
  return wrap.columns(rows, "lrrrrl", "   ")
end

--
-- Do the results agree, and what do copies cost
--
local SUMS = {sum = true, mean = true, std = true, var = true, norm = true,
              cumsum = true, logsumexp = true}

-- How many terms each element of the result sums up, judged by the text.
function compare.inner(what)
  local last, kind, t
  for _, token in ipairs(require "nacre.lexer".tokens(what.source)) do
    local v = token.kind == "name" and measure.value_of(what.env, token.text)
    if last == ":" or last == "." then
      kind = kind or measure.products[token.text] and "product" or
             SUMS[token.text] and "sum"
    elseif not t and facts.istensor(v) then
      t = v
    end
    last = token.text
  end
  if not kind or not t or t:dim() == 0 then return 1 end
  return kind == "product" and t:size(-1) or t:numel()
end

local function agreement(a, b, what, hint)
  if not (facts.istensor(a) and facts.istensor(b)) then return nil end
  local d, why = difference.measure(a, b)
  if not d then return "results differ: " .. why, false end
  if d.different == 0 then return "results agree: bit by bit", true end
  local inner = compare.inner(what)
  local fine = difference.tolerable(d, inner)
  return ("results %s: max abs %s, max rel %s at %s (%s%s%s)"):format(
    fine and "agree" or "differ", difference.number(d.abs),
    difference.number(d.rel), d.relat, d.dtype,
    inner > 1 and ", inner size " .. inner or "",
    fine and ": fine" or hint and ": :parity shows which is wrong" or ""), fine
end

-- The number of calls from which copying the operands once pays off.
function compare.breakeven(cpu, gpu, copied)
  if gpu >= cpu then return nil end
  if copied <= cpu then return 1 end
  return math.ceil((copied - gpu) / (cpu - gpu))
end

local function payoff_line(cpu, gpu, copied)
  local n = compare.breakeven(cpu, gpu, copied)
  if not n then return "the cpu is faster: copies never pay for themselves" end
  if n == 1 then return "copies pay for themselves from the first call" end
  return ("copies pay for themselves after %d calls with the same operands")
         :format(n)
end

local function doubts(list, results, add)
  local seen = {}
  for _, item in ipairs(list) do
    local warning = text.warning(item.r)
    if warning and not seen[warning] then
      seen[warning] = true
      add(("warning: %s: %s"):format(item.name, warning))
    end
  end
  add(text.load(results))
end

-- The table, the lines that say(add) adds below it, and what to doubt.
local function report(list, results, valid, say)
  local lines = table_lines(list, valid)
  local function add(line) lines[#lines + 1] = line and "  " .. line end
  say(add)
  add(text.emulated(results))
  add(text.printed(results))
  doubts(list, results, add)
  return lines, results
end

-- Times subjects by turns, with the options of the commands.
local function times(subjects, o)
  return measure.together(subjects, {budget = o.budget or 0.7,
                                     warmup = o.warmup, cold = o.cold})
end

-- The subjects of an expression: on the CPU, on the second device, and with
-- the copies. Also the first result of each, and the bytes copied.
function compare.subjects(source, base, devices)
  local list = {}
  for i, device in ipairs(devices) do
    list[i] = on_device(source, base, device)
  end
  if devices[2] then list[3] = copying(source, base, devices[2]) end
  return list
end

-- The result of a subject with random numbers from `state' on, and the uses of
-- CUDA devices during it.
local function first_result(subject, state)
  subject.seen = true           -- what it prints
  local results, uses = operands.observed(state, subject.once)
  return results[1], uses
end

-- The lines that report runs that left their device; nil if none did.
function compare.elsewhere(devices, uses)
  local lines
  for i, device in ipairs(devices) do
    local wrong = operands.elsewhere(device, uses[i])
    if wrong then
      lines = lines or {}
      lines[#lines + 1] = ("no verdict: the run for %s %s"):format(device,
                                                                  wrong)
    end
  end
  return lines
end

-- Do the results agree? If not, although each run had the same operands,
-- another run shows whether the expression itself varies.
local function agreement_lines(values, again, what, hint)
  local line, fine = agreement(values[1], values[2], what, hint)
  if fine ~= false then return line end
  local d = difference.measure(again(), values[1])
  if d and d.different == 0 then return line end
  return "results not compared: the first differs from run to run"
end

-- Compares the first results of two devices: the lines to print, and whether
-- the comparison is valid.
local function compare_first(source, env, devices, subjects)
  local state, values, uses = nacre.get_rng_state(), {}, {}
  for i in ipairs(devices) do
    values[i], uses[i] = first_result(subjects[i], state)
  end
  local lines = compare.elsewhere(devices, uses)
  if lines or not devices[2] then return lines or {}, not lines end
  return {agreement_lines(values, function()
    return (first_result(on_device(source, env, devices[1]), state))
  end, {source = source, env = env}, true)}, true
end

local function ondevices(source, o)
  local env = bench.setup(o, {source})
  local devices, why = compare.devices()
  local subjects = compare.subjects(source, env, devices)
  local seen, valid = compare_first(source, env, devices, subjects)
  local results, list = times(subjects, o), {}
  for i, r in ipairs(results) do
    bench.named(r, source, o, env).copies = i == 3 or nil
    list[i] = {r = r, name = text.place(r)}
  end
  list[1].short = "cpu"
  if list[3] then
    list[2].name = devices[2]
    list[3].name = devices[2] .. " + copies"
    list[3].note = ("in %s, out %s"):format(
      units.bytes(results[3].copied_in // 1),
      units.bytes(results[3].copied_out // 1))
  end
  return report(list, results, valid, function(add)
    add(compare.alone(why))
    for _, line in ipairs(seen) do add(line) end
    if devices[2] and valid then
      add(payoff_line(results[1].median, results[2].median, results[3].median))
    end
  end)
end

--
-- Expressions
--
local function interval(a, b)
  local ratio, low, high = stats.ratio(b.samples, a.samples)
  if not low then
    return ("the second takes %.3gx the time of the first: too few samples " ..
            "for an interval"):format(ratio)
  end
  local said = (low > 1 or high < 1) and "" or ": no difference shown"
  return ("the second takes %.3fx the time of the first, %.3f .. %.3f with " ..
          "95%%%s"):format(ratio, low, high, said)
end

-- A subject of an expression or a function, with its own operands.
local function own_subject(source, env)
  return bench.subject(source, type(source) == "string" and
                               operands.environment(source, env) or nil)
end

local function expressions(sources, o)
  local env = bench.setup(o, sources)
  local subjects, list, values = {}, {}, {}
  local state, seen = nacre.get_rng_state(), nil
  for i, source in ipairs(sources) do subjects[i] = own_subject(source, env) end
  if #sources == 2 then
    for i = 1, 2 do values[i] = first_result(subjects[i], state) end
    seen = agreement_lines(values, function()
      return (first_result(own_subject(sources[1], env), state))
    end, {source = type(sources[1]) == "string" and sources[1] or "",
          env = env})
  end
  local results = times(subjects, o)
  for i, r in ipairs(results) do
    local source = type(sources[i]) == "string" and sources[i] or nil
    bench.named(r, source, o, env)
    list[i] = {r = r, name = source or "function " .. i,
               note = r.device ~= "cpu" and r.device or nil}
  end
  return report(list, results, true, function(add)
    if #results ~= 2 then return end
    add(interval(results[1], results[2]))
    add(seen)
  end)
end

--
-- Doing it
--
local function compare_any(sources, o)
  if o.save or o.against then
    error("compare: --save and --against are for :bench", 0)
  end
  local lines, results
  if #sources > 1 then
    lines, results = expressions(sources, o)
  else
    lines, results = ondevices(sources[1], o)
  end
  measurements.export(results, o)
  return lines, results
end

-- The expressions in the argument of a program: a text, a function, or a list
-- of these.
function compare.sources(what, name)
  local list = type(what) == "string" and compare.split(what) or
               type(what) == "table" and what or {what}
  for _, v in ipairs(list) do
    if type(v) ~= "string" and type(v) ~= "function" then
      error(("%s: a string or a function is timed, not a %s"):format(name,
        facts.typename(v)), 3)
    end
  end
  if #list == 0 then error(name .. ": there is nothing to time", 3) end
  return list
end

-- For programs: shell.compare("a:mm(a)", options) or a list of texts or
-- functions; gives the results, which print as the table.
function compare.call(what, o)
  o = bench.check(o)
  local sources = compare.sources(what, "compare")
  if #sources == 1 and type(sources[1]) == "function" then
    error("compare: the operands of a function cannot be copied to a " ..
          "device: give a string, or several functions", 2)
  end
  local lines, results = compare_any(sources, o)
  return setmetatable(results, {__name = "comparison", __tostring = function()
    return table.concat(lines, "\n")
  end})
end

function compare.run(shell, words)
  local o, expression = bench.parse(shell, words, "compare",
                                    "a:mm(a), or two: a:exp() ;; a:sin()")
  if not o then return end
  local sources = compare.split(expression)
  for _, source in ipairs(sources) do
    if source == "" then return shell.fail ":compare: nothing before a ;;" end
    if not shell.compile(source) then return end
    if #sources == 1 and load("return " .. source) and
       not load("return (" .. source .. "\n)") then
      return shell.fail(":compare: separate the expressions by ;;, for " ..
                        "example a ;; b")
    end
  end
  bench.guarded(shell, function() wrap.say((compare_any(sources, o))) end)
end

return compare
