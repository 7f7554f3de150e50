-- SPDX-License-Identifier: MIT
--
-- golden.lua - t.golden(x, name) compares a value with the one that --update
-- stored in FILE.safetensors beside the *_test.lua. Its key is the name of the
-- test and the given name, or its number within the test.
--
-- With --update the first run stores the value (job.keep); the second must
-- give the same (job.kept).

local closeness = require "nacre.closeness"
local values = require "nacre.stored_values"
local facts = require "nacre.tensor_facts"
local diff = require "nacre.value_diff"

local golden = {}

local count, last = 0, nil    -- of the names in the test at work
local used = {}               -- all names

-- The name of a value, or nil and why it has none.
local function named(job, name)
  if not job.test then return nil, "t.golden can only be called in a test" end
  if job.test ~= last then count, last = 0, job.test end
  count = count + 1
  if name ~= nil and type(name) ~= "string" then
    return nil, "t.golden(x, name, {rtol=, atol=}): the name is a string"
  end
  return ("%s: %s"):format(job.test, name or "#" .. count)
end

-- What is in a table, its keys included: {number = true, ...}
local function kinds_in(x, kinds)
  for k, v in pairs(x) do
    kinds[math.type(k) == "integer" and "number" or type(k)] = true
    kinds[facts.istensor(v) and "tensor" or type(v)] = true
    if type(v) == "table" then kinds_in(v, kinds) end
  end
  return kinds
end

local STORED = {number = true, string = true, boolean = true, table = true,
                tensor = true}

-- Why a value cannot be stored, or nil.
local function unstorable(x)
  local kinds = type(x) == "table" and kinds_in(x, {}) or {[type(x)] = true}
  for kind in pairs(kinds) do
    if not STORED[kind] then
      return "t.golden takes a tensor, a number, a text, or a table of them"
    end
  end
end

-- Numbers and rectangular tables of numbers as a tensor with all digits, other
-- tables and texts as they are.
local function storable(x)
  if facts.istensor(x) then return x:detach():cpu() end
  local wrong = unstorable(x)
  if wrong then return nil, wrong end
  if type(x) == "string" then return x end
  local kinds = type(x) == "table" and kinds_in(x, {}) or {number = true}
  kinds.number, kinds.table = nil, nil
  if next(kinds) then return x end
  local ok, made = pcall(nacre.tensor, x)
  if ok and closeness.kind(made.dtype).bits then
    ok, made = pcall(nacre.tensor, x, {dtype = "float64", device = "cpu"})
  end
  return ok and made or x
end

-- What differs between a value and the stored one, or nil.
local function compare(x, was, job, tolerance)
  if facts.istensor(x) and facts.istensor(was) then
    return (values.compare(x, was, job, tolerance))
  end
  return diff.values(x, was, function(a, b)
    if facts.istensor(a) and facts.istensor(b) then
      local says = values.compare(a, b, job, tolerance)
      return says and {says}
    end
    local floats = math.type(a) == "float" and math.type(b) == "float"
    local says = floats and closeness.compare(a, b, tolerance)
    return not floats and diff.leaf(a, b) or says and {says} or nil
  end)
end

-- The value of that name in the first of the files that has it.
local function stored_value(job, key)
  for _, path in ipairs(job.golden or {values.path(job.unit)}) do
    local all = values.load(path)
    if all[key] ~= nil then return all[key], path end
  end
end

local function keep(job, key, x)
  local all = values.load(job.keep)
  all[key] = x
  nacre.save(job.keep, all)
end

-- Compares x with the stored value; returns what differs, or nil.
function golden.check(job, x, name, o, tell)
  local key, wrong = named(job, name)
  if not key then return wrong end
  used[key] = true
  local plain = x
  x, wrong = storable(x)
  if wrong then return wrong end
  local was, path = stored_value(job, key)
  local tolerance = o and (o.rtol or o.atol) and o or
                (job.rtol or job.atol) and job or nil
  if path and path == job.kept then tolerance = {rtol = 0, atol = 0} end
  local says = was ~= nil and compare(
    facts.istensor(was) and x or plain, was, job, tolerance)
  if was == nil then
    says = ("no value of this name in %s: --update writes it\n  %s"):format(
      values.path(job.unit):match "[^/]*$", key)
  end
  if not job.keep then return says end
  keep(job, key, x)
  if says then tell("golden", key, says) end
end

-- When all tests have run: sends the names in the file that no test has used,
-- except those of tests that did not end.
function golden.tell_unreferenced(job, open, tell)
  local list = {}
  for key in pairs(values.load(values.path(job.unit))) do
    local old = not used[key]
    for _, name in ipairs(open) do
      old = old and key:sub(1, #name + 2) ~= name .. ": "
    end
    if old then list[#list + 1] = key end
  end
  table.sort(list)
  for _, key in ipairs(list) do tell("unreferenced", key) end
end

-- By unit: the names that none of its jobs has used, if all have run.
function golden.unreferenced(results)
  local jobs, seen, of = {}, {}, {}
  for _, r in ipairs(results) do
    local unit = r.job.unit
    seen[unit] = seen[unit] or {}
    if not seen[unit][r.job] and not r.second then
      jobs[unit] = (jobs[unit] or 0) + 1
    end
    seen[unit][r.job] = true
    for _, key in ipairs(r.unreferenced or {}) do
      of[unit] = of[unit] or {}
      of[unit][key] = (of[unit][key] or 0) + 1
    end
  end
  local lists = {}
  for unit, keys in pairs(of) do
    for key, n in pairs(keys) do
      if n == jobs[unit] then
        lists[unit] = lists[unit] or {}
        table.insert(lists[unit], key)
      end
    end
    if lists[unit] then table.sort(lists[unit]) end
  end
  return lists
end

-- For a separate process: copies the values named in `renew` from the files.
-- Other old values stay, unless `all` tests ran and none has that name.
function golden.writer(unit, files, renew, all)
  local path = values.path(unit)
  return function(tell)
    local old, out, n = values.load(path), {}, 0
    if not all then
      for key, t in pairs(old) do out[key] = t end
    end
    local new = {}
    for _, file in ipairs(files) do
      for key, t in pairs(values.load(file)) do new[key] = new[key] or t end
    end
    for key, t in pairs(new) do
      out[key] = renew[key] and t or old[key]
    end
    local others = false
    for _, v in pairs(out) do
      n, others = n + 1, others or not facts.istensor(v)
    end
    if n > 0 then nacre.save(path, out) else os.remove(path) end
    tell("written", n, others and "value" or "tensor")
  end
end

return golden
