-- SPDX-License-Identifier: MIT
--
-- stored_values.lua - the values of the tensors that a test shows.
--
-- Values that the printed text does not determine, because the display rounded
-- them or left elements out, are stored in FILE.safetensors beside the test; a
-- test with "--: values" is compared with these. The name of a tensor, "3:
-- a:mm(b) #1", is the number and the text of the input that showed it, and its
-- number among those that the input showed.
--
-- While a test runs, each tensor that is shown is written to a folder, without
-- running an operation, which a mode of the session might report. The
-- comparison is made when the test is over.

local closeness = require "nacre.closeness"
local facts = require "nacre.tensor_facts"
local host = require "nacre.host"
local match = require "nacre.match_output"

local values = {}

local MOST = 32 << 20         -- bytes of a test
local PLACES, PIECE = 3, 1 << 16

values.toolarge = ("the values of this test take more than %d MiB: leave " ..
                   "them out (--no-values)"):format(MOST >> 20)

-- The file of the values of a test.
function values.path(unit)
  local path = unit.full
  if unit.kind == "script" then path = path:gsub("%.lua$", ".out") end
  return path .. ".safetensors"
end

-- Names the steps of a unit by their text and how often it occurred before.
function values.name(unit)
  local seen = {}
  for n, step in ipairs(unit.steps) do
    step.n = n
    local text = step.text:gsub("%s+", " "):match "^%s*(.-)%s*$"
    if unit.kind == "script" then text = "printed" end
    if not utf8.len(text) then text = text:gsub("[\128-\255]", "?") end
    seen[text] = (seen[text] or 0) + 1
    step.key = seen[text] == 1 and text or
               ("%s (%d)"):format(text, seen[text])
  end
end

local function keyof(step, n) return ("%s #%d"):format(step.key, n) end

-- The number, the key and the key without the tensor's number.
local function parts(name)
  local n, key = name:match "^(%d+): (.*)$"
  if not n then return 0, name, name end
  return tonumber(n), key, (key:gsub(" #%d+$", ""))
end

--
-- While the test runs
--

-- Are all floats whole (or nan, inf) and so shown in full?
local function whole(x)
  if type(x) ~= "table" then
    return x - x ~= 0 or x % 1 == 0 and math.abs(x) <= 1e5
  end
  for _, item in ipairs(x) do
    if not whole(item) then return false end
  end
  return true
end

-- Does the text determine all elements of t?
local function determined(t, text)
  local kind = closeness.kind(t.dtype)
  if t:numel() == 0 then return true end
  if text:find("...", 1, true) then return false end
  if t:dim() > 0 and not text:find "\n" then
    local all = text:match "  all (%S+)$"
    return all ~= nil and (not (kind and kind.bits) or
                           not all:find "[%.e]")
  end
  if not (kind and kind.bits) then return true end
  return whole(t:dim() == 0 and t:item() or t:totable())
end

-- Does the test accept any output of a step?
local function open(step)
  return #step.expect == 1 and match.isgap(step.expect[1])
end

-- Compares the values before the program exits.
local function onexit(watch, job, tell)
  local exit = os.exit
  function os.exit(...)
    values.finish(watch, job, tell)
    return exit(...)
  end
end

-- From now on writes every shown tensor to job.shown. Returns the watch.
function values.watch(job, tell)
  if not job.values then return nil end
  local watch = {list = {}, bytes = 0}
  onexit(watch, job, tell)
  local tensors = require "nacre.tensor_text"
  function tensors.watch(t, text)
    local step = watch.step
    if not step or open(step) or nacre._isdry(t) then return end
    watch.n = watch.n + 1
    local bytes = facts.bytes(t)
    local one = {step = step, index = watch.index, text = text,
                 key = keyof(step, watch.n), needed = not determined(t, text),
                 path = ("%s/%d.safetensors"):format(job.shown,
                                                    #watch.list + 1)}
    watch.list[#watch.list + 1] = one
    if one.needed then watch.bytes = watch.bytes + bytes end
    one.large = watch.bytes > MOST
    if not one.large then nacre.save(one.path, {t = t}) end
  end
  return watch
end

function values.step(watch, step, index)
  if watch then watch.step, watch.index, watch.n = step, index, 0 end
end

--
-- When it is over
--

-- Elements first..last of a tensor of one dimension.
local function piece(t, first, last)
  t = t:narrow(1, first, last - first + 1)
  return (closeness.kind(t.dtype).bits and t:double() or t):totable()
end

-- The largest finite magnitude.
local function scale(t)
  local most = 0
  for first = 1, t:numel(), PIECE do
    for _, x in ipairs(piece(t, first, math.min(first + PIECE - 1,
                                               t:numel()))) do
      if x - x == 0 then most = math.max(most, math.abs(x)) end
    end
  end
  return most
end

-- The tolerance: the requested one, else the dtype's, which is smaller
-- relative to the largest element than to each.
local function tolerance(dtype, requested, most)
  if requested then return requested.rtol or 0, requested.atol or 0 end
  local kind = closeness.kind(dtype)
  return kind.rtol, math.min(kind.atol, kind.rtol * most)
end

-- "index: got x, expected y" of the k-th element.
local function place(k, size, x, y)
  local function text(v, form)
    return type(v) == "number" and v ~= v and "nan" or
           math.type(v) == "float" and form:format(v) or tostring(v)
  end
  local form = text(x, "%.9g") == text(y, "%.9g") and "%.17g" or "%.9g"
  return ("%s: got %s, expected %s"):format(
    facts.index(k, size), text(x, form),
    text(y, form))
end

-- Compares x and y, element k, and records the worst. Only inf is close to
-- inf.
local function look(s, k, x, y)
  if x == y or x ~= x and y ~= y then return end
  local off = type(x) == "number" and math.abs(x + 0.0 - y) or math.huge
  if off ~= off then off = math.huge end
  local size = type(y) == "number" and math.abs(y + 0.0) or 0
  local finite = off < math.huge
  s.least = finite and math.max(s.least, off / (size + s.most)) or math.huge
  if s.float and finite and off <= s.rtol * size + s.atol then return end
  s.count = s.count + 1
  if off > s.worst then s.worst, s.at = off, {k, x, y} end
  if #s.first < PLACES then s.first[#s.first + 1] = {k, x, y} end
end

-- Both as lists of elements, or why they cannot be compared.
local function alike(got, saved, job)
  if not facts.same_shape(got, saved) then
    return ("got a shape of [%s], expected [%s]"):format(facts.shape(got),
                                                         facts.shape(saved))
  end
  local other = job.dtype and got.dtype == job.dtype and
                saved.dtype == job.written
  if got.dtype ~= saved.dtype and not other then
    return ("got %s, expected %s"):format(got.dtype, saved.dtype)
  end
end

-- The difference as a text, and the tolerance that would cover it; nil if
-- there is none.
function values.compare(got, saved, job, requested)
  local wrong = alike(got, saved, job)
  if wrong then return wrong end
  local A, B = got:flatten(), saved:flatten()
  local dtype = facts.coarser(got.dtype, saved.dtype) or saved.dtype
  local s = {count = 0, first = {}, worst = -1, least = 0, most = 0}
  s.float = closeness.kind(dtype).bits ~= nil
  if s.float then s.most = scale(B) end
  s.rtol, s.atol = tolerance(dtype, requested, s.most)
  for first = 1, A:numel(), PIECE do
    local last = math.min(first + PIECE - 1, A:numel())
    local x, y = piece(A, first, last), piece(B, first, last)
    for i = 1, #x do look(s, first + i - 1, x[i], y[i]) end
  end
  if s.count == 0 then return nil end
  local size, lines = got:size(), {}
  for i, one in ipairs(s.first) do
    lines[i] = "  " .. place(one[1], size, one[2], one[3])
  end
  if s.at[1] > s.first[#s.first][1] then
    lines[#lines + 1] = "  most at " .. place(s.at[1], size, s.at[2], s.at[3])
  end
  local head = "%d of %d elements differ (allowed: rtol %.2g, atol %.2g)\n%s"
  return head:format(s.count, A:numel(), s.rtol, s.atol,
                     table.concat(lines, "\n")),
    s.float and s.least < math.huge and s.least or nil, s.most
end

-- The requested tolerance, of the lines of the step or of the job.
local function requested_tolerance(job, step)
  local o
  for _, text in ipairs(step.expect) do
    local _, own = match.note(text)
    if own then
      o = o or {rtol = 0, atol = 0}
      o.rtol = math.max(o.rtol, own.rtol or 0)
      o.atol = math.max(o.atol, own.atol or 0)
    end
  end
  if o then return o end
  return (job.rtol or job.atol) and {rtol = job.rtol, atol = job.atol} or nil
end

local function loaded(path, key)
  return nacre.load(path, key and {names = {key}} or nil)
end

-- The tensors in a file; none if there is no file.
function values.load(path)
  return host.file_time(path) and loaded(path) or {}
 end

-- The names in a file by their keys; for inputs that are no longer in the test
-- by their number, as they may have been edited.
local function names(path, unit)
  local of, steps = {}, {}
  for _, step in ipairs(unit.steps) do steps[step.key] = true end
  for name in pairs(values.load(path)) do
    local n, key, step = parts(name)
    of[key] = name
    if not steps[step] then of[n .. key:match "#%d+$"] = name end
  end
  return of
end

-- "rtol=2e-6 atol=3e-6": a tolerance that covers a difference.
local function note(least, most)
  local function up(x)
    local unit = 10.0 ^ math.floor(math.log(x, 10))
    return ("%.0e"):format(math.ceil(x / unit - 1e-9) * unit)
      :gsub("e([+-])0", "e%1")
  end
  if not least or least == 0 then return "" end
  return ("rtol=%s atol=%s"):format(up(least), up(least * most))
end

-- What differs in a shown tensor, or nil; and is there a stored value?
local function checked(one, job, known)
  for k, path in ipairs(job.values) do
    local name = known[k][one.key] or known[k][one.step.n ..
                                              one.key:match "#%d+$"]
    if name and not one.large then
      local got, saved = loaded(one.path).t, loaded(path, name)[name]
      local within = path == job.kept and {rtol = 0, atol = 0} or
                     requested_tolerance(job, one.step)
      local says, least, most = values.compare(got, saved, job, within)
      return says, true, note(least, most)
    end
  end
  if one.needed and #job.values > 0 then
    return ("no value in %s: --update writes it"):format(
      job.values[1]:match "[^/]*$")
  end
end

-- Has a shown tensor the value that is stored beside the test? A second run
-- is compared with the first, and is still shown as that.
local function agrees(one, job, says, has)
  if not job.kept then return has and not says end
  local known = {names(values.path(job.unit), job.unit)}
  local wrong, stored = checked(one, {values = {values.path(job.unit)},
    rtol = job.rtol, atol = job.atol, dtype = job.dtype,
    written = job.written}, known)
  return stored and not wrong
end

-- Sends for each step whether its tensors have the stored values.
local function check(watch, job, tell)
  local known, values_match, total = {}, {}, {}
  for k, path in ipairs(job.values) do known[k] = names(path, job.unit) end
  for _, one in ipairs(watch.list) do
    local i = one.index
    local says, has, covers = checked(one, job, known)
    if one.large then says = values.toolarge end
    total[i] = (total[i] or 0) + (one.needed and 1 or 0)
    if one.needed and has and not says then
      values_match[i] = (values_match[i] or 0) + 1
    end
    if agrees(one, job, says, has) then tell("agrees", i, one.text) end
    if says then tell("value", i, one.key .. "\0" .. (covers or "") ..
                                  "\0" .. says) end
  end
  for i, n in pairs(total) do
    if n > 0 and values_match[i] == n then tell("values_match", i) end
  end
end

-- Writes the values that the text does not determine to a file.
local function keep(watch, path)
  local out = {}
  for _, one in ipairs(watch.list) do
    if one.needed and not one.large then
      out[("%d: %s"):format(one.step.n, one.key)] = loaded(one.path).t
    end
  end
  if next(out) then nacre.save(path, out) end
end

-- To be called when the test is over.
function values.finish(watch, job, tell)
  if not watch or watch.over then return end
  watch.over, watch.step = true, nil
  if job.keep then keep(watch, job.keep) end
  check(watch, job, tell)
  tell "compared"
end

-- A function for a separate process: writes the values of a test; the steps in
-- `renew` get new values, others keep the old ones.
function values.writer(unit, files, renew)
  local path, steps = values.path(unit), {}
  for _, step in ipairs(unit.steps) do steps[step.key] = step.n end
  return function(tell)
    local out, n = {}, 0
    local function take(from, wanted)
      for name, t in pairs(values.load(from)) do
        local _, key, step = parts(name)
        name = steps[step] and ("%d: %s"):format(steps[step], key)
        if name and wanted(step) and not out[name] then
          out[name], n = t, n + 1
        end
      end
    end
    take(path, function(step) return not renew[step] end)
    for _, file in ipairs(files) do
      take(file, function(step) return renew[step] end)
    end
    if n > 0 then
      nacre.save(path, out)
    else
      os.remove(path)
    end
    tell("written", n)
  end
end

return values
