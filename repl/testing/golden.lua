-- SPDX-License-Identifier: MIT
--
-- golden.lua - t.golden(x, name) compares a tensor with the one that --update
-- stored in FILE.safetensors beside the *_test.lua. Its key is the name of the
-- test and the given name, or its number within the test.
--
-- With --update the first run stores the value (job.keep); the second must
-- give the same (job.kept).

local closeness = require "nacre.closeness"
local values = require "nacre.stored_values"
local facts = require "nacre.tensor_facts"

local golden = {}

local count, last = 0, nil    -- of the names in the test at work

-- The name of a value, or nil and why it has none.
local function named(job, name)
  if not job.test then return nil, "t.golden can only be called in a test" end
  if job.test ~= last then count, last = 0, job.test end
  count = count + 1
  if name ~= nil and type(name) ~= "string" then
    return nil, "t.golden(tensor, name, {rtol=, atol=}): the name is a string"
  end
  return ("%s: %s"):format(job.test, name or "#" .. count)
end

-- A number or a table of numbers as a tensor with all of its digits.
local function tensorof(x)
  if facts.istensor(x) then return x:detach():cpu() end
  if type(x) ~= "number" and type(x) ~= "table" then
    return nil, "t.golden takes a tensor, a number or a table of numbers"
  end
  local ok, made = pcall(nacre.tensor, x)
  if ok and closeness.kind(made.dtype).bits then
    ok, made = pcall(nacre.tensor, x, {dtype = "float64", device = "cpu"})
  end
  if not ok then return nil, "t.golden: " .. tostring(made) end
  return made
end

-- The tensor of that name in the first of the files that has it.
local function stored_tensor(job, key)
  for _, path in ipairs(job.golden or {values.path(job.unit)}) do
    local all = values.load(path)
    if all[key] then return all[key], path end
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
  x, wrong = tensorof(x)
  if not x then return wrong end
  local was, path = stored_tensor(job, key)
  local tolerance = o and (o.rtol or o.atol) and o or
                (job.rtol or job.atol) and job or nil
  if path and path == job.kept then tolerance = {rtol = 0, atol = 0} end
  local says = was and values.compare(x, was, job, tolerance)
  if not was then
    says = ("no value of this name in %s: --update writes it\n  %s"):format(
      values.path(job.unit):match "[^/]*$", key)
  end
  if not job.keep then return says end
  keep(job, key, x)
  if says then tell("golden", key, says) end
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
    for _ in pairs(out) do n = n + 1 end
    if n > 0 then nacre.save(path, out) end
    tell("written", n)
  end
end

return golden
