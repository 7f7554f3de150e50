-- SPDX-License-Identifier: MIT
-- All operations through libnacre: the small calls of the tables of the core
-- and those that the examples of the reference make are written to files, with
-- what Lua gets for them, and library_calls.c makes them again.
--
--   nacre library_calls.lua LIBRARY_CALLS FOLDER
--
-- A call that fails in Lua must fail there, with the same text. What C cannot
-- pass or take (functions, objects, texts) must be refused.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local small_calls = dofile(here .. "../lib/small_calls.lua")
local each_call = dofile(here .. "../lib/example_calls.lua")
local program, folder = arg[1], arg[2]

-- About the session, files, devices and other processes.
local PAGES <const> = {files = true, images = true, session = true, cuda = true,
                       commands = true, python = true, cuda_kernels = true,
                       distributed = true, training_ranks = true}
-- What has no values, depends on the program, or changes it.
local LEFT_OUT <const> = {
  empty = true, empty_like = true, empty_strided = true, new_empty = true,
  resize_ = true, data_ptr = true, version = true, initial_seed = true,
  seed = true, free = true, set_default_dtype = true, set_num_threads = true,
  set_default_device = true, get_num_threads = true, manual_seed = true,
  bench = true, set_memory_limit = true, bench_compare = true,
  set_grad_enabled = true, save = true, load = true, set_rng_state = true,
  get_rng_state = true, enable_grad = true, no_grad = true, png = true,
}
local COMPLEX <const> = debug.getmetatable(nacre.i)
local LARGEST <const> = 4000    -- elements of a tensor
local EACH <const> = 4          -- calls of one name

local lines, tensors, ntensors, count, names = {}, {}, 0, {}, 0

local function write(...)
  lines[#lines + 1] = table.concat({...}, " ")
end

-- The number of a copy of the tensor in the file; nil: it has no place there.
local function file_tensor(t)
  if t.device ~= "cpu" or t:numel() > LARGEST or t.dtype == "complex128" then
    return nil
  end
  local copy = t:detach():clone():contiguous()
  ntensors = ntensors + 1
  tensors["t" .. ntensors] = copy
  return ntensors
end

local function is_list(v)
  return type(v) == "table" and getmetatable(v) == nil and
         next(v, #v > 0 and #v or nil) == nil and #v > 0
end

-- The words of an argument, or nil.
local function word(v)
  if nacre.is_tensor(v) then
    local n = file_tensor(v)
    return n and "t " .. n
  elseif math.type(v) == "integer" then return "i " .. v
  elseif type(v) == "number" then return ("n %.17g"):format(v)
  elseif type(v) == "boolean" then return "f " .. (v and 1 or 0)
  elseif type(v) == "string" and v:find "^[%w_.|,:>%-+ ]+$" then
    return "s " .. v
  elseif v == nil then return "-" end
  if not is_list(v) then return nil end
  local kind = nacre.is_tensor(v[1]) and "T" or "I"
  local out = {kind, #v}
  for i, x in ipairs(v) do
    local good = kind == "T" and nacre.is_tensor(x) or
                 kind == "I" and math.type(x) == "integer"
    out[i + 2] = good and (kind == "I" and x or file_tensor(x)) or nil
    if not out[i + 2] then return nil end
  end
  return table.concat(out, " ")
end

-- The lines of the arguments, or nil.
local function words(args)
  local out, named = {}, nil
  local last = args[args.n]
  if type(last) == "table" and getmetatable(last) == nil and #last == 0 and
     next(last) ~= nil then
    named = last
  end
  for i = 1, args.n - (named and 1 or 0) do
    out[i] = word(args[i])
    if not out[i] then return nil end
  end
  local keys = {}
  for key in next, named or {} do
    if type(key) ~= "string" then return nil end
    keys[#keys + 1] = key
  end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local w = word(named[key])
    if not w then return nil end
    out[#out + 1] = "=" .. key .. " " .. w
  end
  return out
end

-- A copy of an argument: in-place operations get tensors of their own.
local function copied(v)
  if nacre.is_tensor(v) then return v:detach():clone():contiguous() end
  if type(v) ~= "table" or getmetatable(v) ~= nil then return v end
  local t = {}
  for k, x in next, v do t[k] = copied(x) end
  return t
end

-- Appends the words of a result to the list; returns false if C cannot take it.
-- "-" is a tensor that has no place in the file.
local function add_result(list, v)
  if type(v) == "table" and #v > 0 then
    for _, x in ipairs(v) do
      if not add_result(list, x) then return false end
    end
    return true
  end
  if type(v) == "table" then return next(v) == nil end
  if type(v) == "string" or v == nil then return false end
  local w = word(v) or (nacre.is_tensor(v) or
                        debug.getmetatable(v) == COMPLEX) and "-"
  list[#list + 1] = w or nil
  return w and true
end

-- Forms that a signature does not have, which the binding reads for Lua only:
-- sizes as several arguments, t:where(condition, other), false for no tensor.
local function has_form_of_lua(name, info, args)
  local last = args[args.n]
  local options = type(last) == "table" and #last == 0
  local positional, others = 0, false
  for i, p in ipairs(info.params) do
    if not p.byname then positional = positional + 1 end
    others = others or p.type == "tensor" and args[i] == false
  end
  local p = options and last.p or args[2]
  return others or args.n - (options and 1 or 0) > positional or
         name == "t:where" or
         name:find "norm$" and type(p) == "string"
end

local function note(name, f, args)
  if has_form_of_lua(name, nacre._info(f), args) then return end
  name = name:gsub("^t:", "")
  count[name] = (count[name] or 0) + 1
  if LEFT_OUT[name] or count[name] > EACH then return end
  local given = words(args)
  if not given then
    count[name] = count[name] - 1
    return
  end
  if count[name] == 1 then names = names + 1 end
  local own = copied(args)
  nacre.manual_seed(7)
  local got = table.pack(pcall(f, table.unpack(own, 1, args.n)))
  write("call", name)
  for _, line in ipairs(given) do write("arg", line) end
  local results, fits = {}, true
  for i = 2, got.n do fits = fits and add_result(results, got[i]) end
  if not got[1] then
    local e = got[2]
    local text = type(e) == "table" and e.message or tostring(e)
    write("fails", (text:gsub("\n", " ")))
  elseif not fits then write "refused"
  else
    for _, line in ipairs(results) do write("gives", line) end
  end
  write "end"
end

for _, op in ipairs(small_calls.all()) do
  if op.f then
    note(op.name, op.f, table.pack(table.unpack(small_calls.sample(op))))
    note(op.name, op.f, table.pack(table.unpack(small_calls.sample(op, true))))
  end
end
local core = names
each_call(function(name, f, _, args)
  if nacre.get_default_dtype() ~= "float32" then return end
  note(name, f, args)
end, PAGES)
assert(core > 280 and names - core > 250,
       ("only %d and %d operations are called"):format(core, names - core))

local paths = {folder .. "/library_calls.txt",
               folder .. "/library_calls.safetensors"}
local file = assert(io.open(paths[1], "w"))
file:write(table.concat(lines, "\n"), "\n")
file:close()
nacre.save(paths[2], tensors)
local ok = os.execute(("'%s' '%s' '%s'"):format(program, paths[1], paths[2]))
for _, path in ipairs(paths) do os.remove(path) end
print(core, names - core, #lines)
assert(ok, "calls through libnacre differ")
