-- SPDX-License-Identifier: MIT
-- No function of the library answers with an internal error: every one that
-- can be reached (tests/lib/public_functions.lua walks the tables) is called
-- with values of each type, alone and behind others that may fit, as options,
-- in lists, and with a wrong self. It succeeds, or fails with an error of ours.
-- Run by: nacre tests/lua/wrong_types.lua [part=N] [only=PATTERN] [most=N]
--         [walk=python|shell]
--   part=1 makes all calls, part=N every Nth of those with options or several
--   arguments; walk=python calls the functions of nacre.python() instead, and
--   walk=shell commands.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local option = dofile(here .. "../lib/options.lua") {part = 41, only = "",
                                                    most = 40, walk = ""}

-- Commands that look at values alone.
local function commands()
  local list = {}
  for name in ([[diff explain gc heat help hist kernel mem nan parity plot
    repeated scatter seed shape show trace whos]]):gmatch "%S+" do
    list[name] = shell[name]
  end
  return list
end

local others = option.walk == "python" and {py = nacre.python()} or
               option.walk == "shell" and {shell = commands()} or nil
local subjects = dofile(here .. "../lib/public_functions.lua")(nil, others)

nacre.set_memory_limit(1 << 26)

-- ---- values

local MARK = "an error of the caller"
local plausible = {
  function() return nacre.ones(2, 3) end, function() return 2 end,
  function() return "weight" end, function() return {} end,
  function() return {nacre.ones(2, {requires_grad = true})} end,
  function() return function(x) return x end end,
  function() return nacre.nn.Linear(3, 2) end,
}
local wrong = {
  function() return nil end, function() return true end,
  function() return false end,
  function() return 0 end, function() return -1 end,
  function() return 1.5 end, function() return 2.0 ^ 53 end,
  function() return 0 / 0 end, function() return 1 / 0 end,
  function() return "" end, function() return "no such thing" end,
  function() return {1, 2} end, function() return {{1, "x"}, {}} end,
  function() return {"a", true} end,
  function() return {no_such_key = 1} end, function() return {1, x = 2} end,
  function() return {params = 1, state = 2, param_groups = {3}} end,
  function() return print end,
  function() return function() error(MARK, 0) end end,
  function() return function() end end,
  function() return nacre.tensor(7) end, function() return nacre.zeros(0) end,
  function() return nacre.tensor {true, false} end,
  function() return nacre.ones(3, {dtype = "uint8"}):expand(2, 3) end,
  function() return nacre.ones(3, {dtype = "float16"}) end,
  function() return nacre.tensor {0 / 0, 1 / 0} end,
  function() return nacre.ones(1, 1, 1, 1, 1, 1, 1, 1) end,
  function() return io.stdout end,
  function() return coroutine.create(print) end,
  function() return nacre.nn.Linear end,
  function() return nacre.optim.Optimizer end,
}
table.move(plausible, 1, #plausible, #wrong + 1, wrong)

-- ---- one call

local function text_of(v)
  local ok, text = pcall(function()
    if nacre.is_tensor(v) then
      return ("%s[%s]"):format(v.dtype, table.concat(v:size(), "x"))
    elseif type(v) == "table" and getmetatable(v) == nil then
      local parts = {}
      for k, x in next, v do
        parts[#parts + 1] = tostring(k) .. "=" ..
                            (type(x) == "table" and "{..}" or type(x))
      end
      return "{" .. table.concat(parts, ",") .. "}"
    end
    return type(v) == "string" and ("%q"):format(v) or tostring(v)
  end)
  return ok and text:match "^[^\n]*" or type(v)
end

local calls, refused, failures, faults = 0, 0, {}, 0

local function complain(name, what, ...)
  local args = table.pack(...)
  for i = 1, args.n do args[i] = text_of(args[i]) end
  faults = faults + 1
  local list = failures[name] or {}
  failures[name] = list
  local kind = what:gsub("0x%x+", "")
  if list[kind] then return end
  list[kind] = true
  failures[#failures + 1] = ("%s(%s): %s"):format(name,
                                      table.concat(args, ", "), what)
end

local INTERNAL = {"attempt to ", "internal error", "bad argument #",
                  "bad 'for' ", "nacre%.[%w_]+:%d+:", "%(local '",
                  "%(upvalue '",
                  "%(field '", "expected, got", "index is n",
                  "no integer representation", "stack overflow",
                  "loop without end", "not enough memory",
                  "cannot work with these arguments"}

local function judge(name, e, ...)
  refused = refused + 1
  local ok, text = pcall(tostring, e)
  if not ok then return complain(name, "an error without a text", ...) end
  if text:find(MARK, 1, true) or text:find "^example:%d" then return end
  local own = type(e) == "table" and pcall(function() return e.code:len() end)
  if not own and not text:find "^%a[%w_.]*: " and option.walk ~= "shell" then
    return complain(name, text, ...)
  end
  for _, pattern in ipairs(INTERNAL) do
    if text:find(pattern) then return complain(name, text, ...) end
  end
end

local SECONDS = 5
local began
local function watch()
  if os.clock() - began > SECONDS then
    error("a loop without end", 0)
  end
end

local device = nacre.get_default_device()
local function restore()
  nacre.set_default_dtype "float32"
  nacre.set_default_device(device)
  debug.sethook(watch, "", 1000000)
end

local function try(name, f, ...)
  calls = calls + 1
  began = os.clock()
  local ok, e = pcall(f, ...)
  if not ok then judge(name, e, ...) end
  if calls % 1000 == 0 then restore() end
  return ok
end

-- ---- the calls of a subject

local turn = 0
local function is_chosen()
  turn = turn + 1
  return turn % option.part == 0
end

-- Lists of what may fit and one of the wrong ones.
local function try_lists(name, f, joined)
  for _, u in ipairs(plausible) do
    for _, v in ipairs(wrong) do
      if is_chosen() then try(name, f, joined({u(), v()})) end
      if is_chosen() then try(name, f, joined({v(), u(), x = v()})) end
      if is_chosen() then try(name, f, joined(u(), {u(), v()})) end
    end
  end
end

-- A group of parameters with a wrong value.
local function try_group(name, f, joined, key, v)
  local group = {params = {nacre.ones(2, {requires_grad = true})}, [key] = v}
  try(name, f, joined(group))
  try(name, f, joined({group}))
end

-- f with the arguments that first() gives and then each of the wrong ones.
local function try_each(name, f, first, params)
  try(name, f, first())
  local function joined(...)
    local args = table.pack(first())
    local more = table.pack(...)
    table.move(more, 1, more.n, args.n + 1, args)
    return table.unpack(args, 1, args.n + more.n)
  end
  for _, v in ipairs(wrong) do try(name, f, joined(v())) end
  try_lists(name, f, joined)
  for _, u in ipairs(plausible) do
    for _, v in ipairs(wrong) do
      if is_chosen() then try(name, f, joined(u(), v())) end
    end
    for _, w in ipairs(plausible) do
      for _, v in ipairs(wrong) do
        if turn % 8 == 0 and is_chosen() then
          try(name, f, joined(u(), w(), v()))
        else turn = turn + 1 end
      end
    end
    for _, p in ipairs(params) do
      for _, v in ipairs(wrong) do
        if is_chosen() then try(name, f, joined(u(), {[p.name] = v()})) end
      end
    end
  end
  for _, p in ipairs(params) do
    for _, v in ipairs(wrong) do
      if is_chosen() then try(name, f, joined({[p.name] = v()})) end
      if is_chosen() then try_group(name, f, joined, p.name, v()) end
    end
  end
  try(name, f, joined(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12))
end

local function nothing() end

local function walk(subject)
  local name, f, fresh = subject.name, subject.f, subject.fresh
  if not fresh then return try_each(name, f, nothing, subject.params) end
  local self = fresh()
  if self == nil then return end
  try_each(name, f, function()
    -- an object keeps what it is given, and so grows
    if nacre.is_tensor(self) or calls % 500 == 0 then self = fresh() end
    return self
  end, subject.params)
  if not name:find ":__" then
    try(name, f)
    for _, v in ipairs(wrong) do
      try(name, f, v())
      if is_chosen() then try(name, f, v(), v()) end
    end
  end
end

restore()
for _, subject in ipairs(subjects) do
  if subject.name:find(option.only) then walk(subject) end
end
debug.sethook()

for i = 1, math.min(#failures, option.most) do print(failures[i]) end
if faults > 0 then
  error(("%d calls of %d, %d kinds"):format(faults, calls, #failures), 0)
end
assert(option.only ~= "" or others or #subjects > 1500 and refused > 50000,
       ("%d functions, %d refusals"):format(#subjects, refused))
print(("wrong_types: ok, %d functions, %d calls, %d of them refused")
      :format(#subjects, calls, refused))
