-- SPDX-License-Identifier: MIT
-- Calls of the examples of the reference with changed arguments: first each
-- number becomes a size that no machine has, then any argument anything. Every
-- call ends soon, in little memory, with a result or an error that says what is
-- wrong.
-- Run by: nacre tests/ops/fuzz_calls.lua [seed=N] [seconds=N] [only=NAME]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local option = dofile(here .. "../lib/options.lua") {seed = 1, seconds = 2,
                                                    only = ""}
local calls = dofile(here .. "../parity/recorded_calls.lua").calls({}, 1)
assert(#calls > 500, "where are the examples?")

local SLOW = 2                -- seconds of a call; a busy machine takes time
local LUA = 64 << 10          -- KiB that Lua's values may grow by
nacre.set_memory_limit(64 << 20)

-- ---- one call

local began, heap
local function watch()
  if os.clock() - began > SLOW then error("a loop without end", 0) end
  if collectgarbage "count" - heap > LUA then error("too much memory", 0) end
end

local function describe(v)
  if nacre.is_tensor(v) then
    return ("%s[%s]"):format(v.dtype, table.concat(v:size(), "x"))
  elseif type(v) ~= "table" then
    return type(v) == "string" and ("%q"):format(v) or tostring(v)
  end
  local parts = {}
  for k, x in next, v do
    parts[#parts + 1] = (math.type(k) and "" or tostring(k) .. "=") ..
                        describe(x)
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local made, failed, refused = 0, {}, 0
local function complain(call, args, what)
  local texts = {}
  for i = 1, call.n do texts[i] = describe(args[i]) end
  failed[#failed + 1] = ("%s(%s): %s"):format(call.name,
                                              table.concat(texts, ", "), what)
end

-- An error of ours has a code, one of Lua's a place in no file of ours.
local function judge(call, args, e)
  local text = tostring(e)
  local fine, code = pcall(function() return e.code end)
  code = fine and code
  refused = refused + 1
  if #text == 0 then complain(call, args, "an error without a text") end
  if not code and (text:find "^nacre%.[%w_.]+:%d+:" or
                   text == "a loop without end" or
                   text == "too much memory" or text == "not enough memory")
  then
    complain(call, args, text)
  end
end

local function try(call, args)
  made = made + 1
  began, heap = os.clock(), collectgarbage "count"
  debug.sethook(watch, "", 100000)
  local ok, e = pcall(call.f, table.unpack(args, 1, call.n))
  debug.sethook()
  local took = os.clock() - began
  if not ok then judge(call, args, e) end
  if took > SLOW then complain(call, args, ("took %.1f s"):format(took)) end
end

-- ---- arguments

local function build(v)
  if v.tensor then
    local t = v.tensor:clone()
    return v.grad and t:requires_grad_() or t
  elseif v.list then
    local list = {}
    for k, x in next, v.list do list[k] = build(x) end
    return list
  end
  return v.value
end

local function arguments(call)
  local args = {}
  for i = 1, call.n do args[i] = build(call[i]) end
  return args
end

-- Calls change(args, table, key) for every argument, and what is in lists,
-- that is like it.
local function each(call, like, change)
  local function visit(v, path)
    for k, x in next, v.list or {} do
      path[#path + 1] = k
      visit(x, path)
      path[#path] = nil
    end
    if not like(v) then return end
    local args = arguments(call)
    local at = args
    for i = 1, #path - 1 do at = at[path[i]] end
    change(args, at, path[#path])
  end
  for i = 1, call.n do visit(call[i], {i}) end
end

local function isnumber(v) return math.type(v.value) end
local function anything() return true end

-- Calls that do not depend on arguments, or change what follows.
local apart = {bench = true, bench_compare = true, set_memory_limit = true,
               set_num_threads = true, set_default_dtype = true,
               set_default_device = true, use_deterministic_algorithms = true}
local chosen = {}
for _, call in ipairs(calls) do
  local wanted = option.only == "" or call.name == option.only
  if wanted and not apart[call.name] then
    chosen[#chosen + 1] = call
  end
end

-- ---- sizes that no machine has, also of tensors without elements

local huge = {1 << 31, 1 << 40, 1 << 61, math.maxinteger, -(1 << 40),
              2.0 ^ 40, 1e300}
local function empty(args)
  for i, v in pairs(args) do
    if nacre.is_tensor(v) and v:dim() > 0 then args[i] = v[{{1, 0}}] end
  end
end
for _, call in ipairs(chosen) do
  for _, n in ipairs(huge) do
    each(call, isnumber, function(args, t, k)
      t[k] = n
      try(call, args)
    end)
    each(call, isnumber, function(args, t, k)
      t[k] = n
      if pcall(empty, args) then try(call, args) end
    end)
  end
end

-- ---- whatever there is

math.randomseed(option.seed)
nacre.manual_seed(option.seed)
local function hostile() error "hostile" end
local odd = {
  function() return nil end, function() return true end,
  function() return 0 end, function() return -1 end,
  function() return math.random(-9, 9) end, function() return 2.5 end,
  function() return 0 / 0 end, function() return 1 / 0 end,
  function() return math.mininteger end, function() return "" end,
  function() return "\27[31m" end, function() return {} end,
  function() return {1, 2, x = 3} end, function() return {{}} end,
  function() return print end, function() return coroutine.create(print) end,
  function() return io.stdout end, function() return nacre.zeros(0) end,
  function() return nacre.ones(2, 3, 4, {requires_grad = true}) end,
  function() return nacre.tensor(7) end, function() return "float16" end,
  function() return nacre.tensor {true, false} end,
  function() return nacre.ones(3, {dtype = "int8"}):expand(2, 3) end,
  function() return nacre.tensor {{0 / 0, 1 / 0}, {-1 / 0, 0}} end,
  function() local t = nacre.ones(1) t:free() return t end,
  function() return setmetatable({}, {__index = hostile}) end,
}
local untilthen = os.time() + option.seconds
while os.time() < untilthen do
  local call = chosen[math.random(#chosen)]
  local args, places = nil, 0
  each(call, anything, function() places = places + 1 end)
  local place = math.random(math.max(places, 1))
  each(call, anything, function(given, t, k)
    place = place - 1
    if place ~= 0 then return end
    args = given
    t[k] = odd[math.random(#odd)]()
  end)
  if math.random(4) == 1 then  -- one more, or one by a name
    args = args or arguments(call)
    args[#args + 1] = odd[math.random(#odd)]()
  end
  if args then try(call, args) end
end

for _, text in ipairs(failed) do print(text) end
if #failed > 0 then
  error(("seed %d: %d of %d calls failed"):format(option.seed, #failed, made))
end
assert(refused > made // 4)
print(("fuzz_calls: ok, %d calls, %d of them refused"):format(made, refused))
