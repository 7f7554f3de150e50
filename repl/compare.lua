-- SPDX-License-Identifier: MIT
--
-- compare.lua - :compare, the same expression on every device, with its
-- operands there and with the copies, and whether the results agree; or two
-- and more expressions beside each other.

local bench = require "nacre.bench"
local difference = require "nacre.difference"
local file = require "nacre.timefile"
local machine = require "nacre.machine"
local peak = require "nacre.peak"
local stats = require "nacre.timestats"
local text = require "nacre.timetext"
local timing = require "nacre.timing"
local units = require "nacre.units"

local nacre = package.loaded.nacre

local compare = {}

-- "a ;; b" is {"a", "b"}; what lies in strings and comments is no end.
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

-- The devices, the CPU first; without a second one also why.
function compare.devices()
  if not nacre.cuda.is_available() then return {"cpu"}, nacre.cuda.why() end
  return {"cpu", "cuda:" .. nacre.cuda.current_device()}
end

--
-- An expression on a device
--
local function bytes(t) return t:numel() * t:element_size() end

-- Puts the tensors that the text names on the device; gives their names.
local function move(env, base, names, device)
  local size = 0
  for _, name in ipairs(names) do
    env[name] = base[name]:to(device)
    size = size + bytes(base[name])
  end
  return size
end

local function tensornames(source, env)
  local list = {}
  for _, name in ipairs(timing.named(source, env)) do
    if timing.istensor(env[name]) then list[#list + 1] = name end
  end
  return list
end

-- f, with the device as the default one.
local function on(device, f)
  return function(...)
    local was = nacre.get_default_device()
    local _ <close> = setmetatable({}, {__close = function()
      nacre.set_default_device(was)
    end})
    nacre.set_default_device(device)
    return f(...)
  end
end

-- The expression with its operands on a device.
local function there(source, base, device)
  local env = timing.environment({source}, base)
  move(env, base, tensornames(source, base), device)
  local s = bench.subject(source, env)
  s.once, s.loop = on(device, s.once), on(device, s.loop)
  return s
end

local function home(...)
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if timing.istensor(v) then v:cpu() end
  end
  return ...
end

-- The same with its operands on the CPU: they are copied there, the results
-- back.
local function copying(source, base, device)
  local env = timing.environment({source}, base)
  local names = tensornames(source, base)
  for _, name in ipairs(names) do env[name] = base[name]:cpu() end
  local here = setmetatable({}, {__index = env})
  for _, name in ipairs(names) do here[name] = env[name] end
  local s = bench.subject(source, env)
  local once = s.once
  local f = on(device, function()
    move(env, here, names, device)
    return home(once())
  end)
  local subject = timing.prepare(f)
  subject.text, subject.env = source, env
  return subject
end

--
-- The table
--
local function pad(s, n)
  return s .. (" "):rep(n - (utf8.len(s) or #s))
end

local function left(s, n)
  return (" "):rep(n - (utf8.len(s) or #s)) .. s
end

local function speedup(x)
  if x >= 10 then return ("%.0fx"):format(x) end
  return x >= 0.995 and ("%.1fx"):format(x) or ("%.2fx"):format(x)
end

-- What a row says of a result: median, rate, share, ratio.
local function cells(r, base)
  local n = text.digits(r)
  local o = text.reached(r, r.median, not r.emulated and peak.of(r.device) or
                                      nil)
  local limit = text.limit(o, text.moves(base))
  local rate = r.operations > 0 and text.rate(limit[1], limit[2], n) or ""
  return {text.time(r.median, n), rate or "",
          not r.copies and (text.cached(o) and "cache" or limit[3] and
                            text.percent(limit[3], n)) or "",
          speedup(base.median / r.median)}
end

local function rows(list)
  local wide, width = 0, {6, 4, 7, 6}
  local all = {}
  for i, item in ipairs(list) do
    all[i] = cells(item.r, list[1].r)
    wide = math.max(wide, utf8.len(item.name) or #item.name)
    for k, cell in ipairs(all[i]) do width[k] = math.max(width[k], #cell) end
  end
  wide = math.min(wide, 36)
  local function line(name, c, note)
    local parts = {"  " .. pad(name, wide)}
    for k = 1, 4 do parts[k + 1] = left(c[k], width[k]) end
    if note then parts[#parts + 1] = "  " .. note end
    return (table.concat(parts, "   "):gsub("%s+$", ""))
  end
  local lines = {line("", {"median", "rate", "of peak", "vs " ..
                           (list[1].short or "first")})}
  for i, item in ipairs(list) do
    local name = item.name
    if (utf8.len(name) or #name) > wide then name = name:sub(1, 33) .. "..." end
    lines[#lines + 1] = line(name, all[i], item.note)
  end
  return lines
end

local function devicename(r)
  if r.device ~= "cpu" then return r.device end
  return ("cpu %d thread%s"):format(r.threads, r.threads == 1 and "" or "s")
end

--
-- Do the results agree, and what do copies cost
--
local function agreement(a, b, what, hint)
  if not (timing.istensor(a) and timing.istensor(b)) then return nil end
  local d, why = difference.measure(a, b)
  if not d then return "results differ: " .. why end
  if d.different == 0 then return "results agree: bit by bit" end
  local inner = difference.inner(what)
  local fine = difference.tolerable(d, inner)
  return ("results %s: max abs %s, max rel %s at %s (%s%s%s)"):format(
    fine and "agree" or "differ", difference.number(d.abs),
    difference.number(d.rel), d.relat, d.dtype,
    inner > 1 and ", inner size " .. inner or "",
    fine and ": fine" or hint and ": :parity says which is wrong" or "")
end

-- From how many calls on the copies are worth it, when they are made once.
function compare.breakeven(cpu, gpu, copied)
  if gpu >= cpu then return nil end
  if copied <= cpu then return 1 end
  return math.ceil((copied - gpu) / (cpu - gpu))
end

local function payoff(cpu, gpu, copied)
  local n = compare.breakeven(cpu, gpu, copied)
  if not n then return "the cpu is faster: copies never pay for themselves" end
  if n == 1 then return "copies pay for themselves from the first call" end
  return ("copies pay for themselves after %d calls with the same operands")
         :format(n)
end

local function doubts(list)
  local seen, lines = {}, {}
  for _, item in ipairs(list) do
    local warning = text.warning(item.r)
    if warning and not seen[warning] then
      seen[warning] = true
      lines[#lines + 1] = ("  warning: %s: %s"):format(item.name, warning)
    end
  end
  return lines
end

--
-- Devices
--
-- The subjects of an expression: on the CPU, on the second device, with the
-- copies.  Also the first result of each, and the bytes that are copied.
function compare.subjects(source, base, devices)
  local list = {}
  for i, device in ipairs(devices) do list[i] = there(source, base, device) end
  if devices[2] then list[3] = copying(source, base, devices[2]) end
  return list
end

local function first(subject)
  local v = subject.once()
  nacre.synchronize()
  return v
end

local function ondevices(source, o)
  local env = bench.setup(o, {source})
  local devices, why = compare.devices()
  local subjects = compare.subjects(source, env, devices)
  local one = first(subjects[1])
  local two = subjects[2] and first(subjects[2])
  local results = timing.together(subjects, {budget = o.budget or 0.7,
                                             warmup = o.warmup, cold = o.cold})
  local list = {}
  for i, r in ipairs(results) do
    bench.named(r, source, o, env).copies = i == 3 or nil
    list[i] = {r = r, name = devicename(r)}
  end
  list[1].short = "cpu"
  if list[3] then
    list[3].name = list[3].name .. " + copies"
    list[3].note = ("in %s, out %s"):format(
      units.bytes(results[3].copied_in // 1),
      units.bytes(results[3].copied_out // 1))
  end
  local lines = rows(list)
  local function add(line) lines[#lines + 1] = line and "  " .. line end
  if why then add("there is no second device to compare with: " .. why) end
  if two then
    add(agreement(one, two, {source = source, env = env}, true))
    add(payoff(results[1].median, results[2].median, results[3].median))
  end
  if results[2] and results[2].emulated then
    add(("%s is emulated on the cpu: its times say nothing of a GPU"):format(
      results[2].device))
  end
  table.move(doubts(list), 1, 9, #lines + 1, lines)
  return lines, results
end

--
-- Expressions
--
local function interval(a, b)
  local ratio, low, high = stats.ratio(b.samples, a.samples)
  if not low then return ("the second takes %.3gx"):format(ratio) end
  local said = (low > 1 or high < 1) and "" or ": no difference shown"
  return ("the second takes %.3fx the time of the first, %.3f .. %.3f with " ..
          "95%%%s"):format(ratio, low, high, said)
end

local function expressions(sources, o)
  local env = bench.setup(o, sources)
  local subjects, list = {}, {}
  for i, source in ipairs(sources) do
    subjects[i] = bench.subject(source, env)
  end
  local values = {first(subjects[1]), first(subjects[2])}
  local results = timing.together(subjects, {budget = o.budget or 0.7,
                                             warmup = o.warmup, cold = o.cold})
  for i, r in ipairs(results) do
    bench.named(r, sources[i], o, env)
    list[i] = {r = r, name = sources[i],
               note = r.device ~= "cpu" and devicename(r) or nil}
  end
  local lines = rows(list)
  local function add(line) lines[#lines + 1] = line and "  " .. line end
  if #results == 2 then
    add(interval(results[1], results[2]))
    add(agreement(values[1], values[2], {source = sources[1], env = env}))
  end
  table.move(doubts(list), 1, 9, #lines + 1, lines)
  return lines, results
end

--
-- Doing it
--
local function both(sources, o)
  if o.save or o.against then
    error("compare: --save and --against are for :bench", 0)
  end
  local lines, results
  if #sources > 1 then
    lines, results = expressions(sources, o)
  else
    lines, results = ondevices(sources[1], o)
  end
  local ok, why = file.export(results, o)
  if not ok then error(why, 0) end
  return lines, results
end

-- For programs: shell.compare("a:mm(a)", options) or a list of texts; gives
-- the results, which print as the table.
function compare.call(what, o)
  o = o or {}
  bench.check(o)
  local sources = type(what) == "table" and what or compare.split(what)
  local lines, results = both(sources, o)
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
  end
  bench.guarded(shell, function()
    local lines = both(sources, o)
    io.stdout:write(table.concat(lines, "\n"), "\n")
  end)
end

return compare
