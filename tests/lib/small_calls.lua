-- SPDX-License-Identifier: MIT
-- For tests that call every operation: the signatures of core/operators.def and
-- core/ops.def, and a small call of each that succeeds.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = {}

local function operators()
  local path = here .. "../../core/operators.def"
  local file = assert(io.open(path), "no " .. path)
  local ops = {}
  for name in file:read("a"):gmatch "\nOPERATOR[^\n]-([%w_]+), [%u()]+," do
    ops[#ops + 1] = {name = name}
  end
  file:close()
  assert(#ops > 200, "where are the operators?")
  return ops
end

local function pointwise(ops)
  for name in pairs(nacre) do
    local info = nacre._info(name)
    if info and info.class then ops[#ops + 1] = {name = name, info = info} end
  end
end

-- All operations, ordered by name: {name, params, results}, the last two as
-- nacre._info gives them; those of ops.def also have their `info'.
function C.all()
  local ops = operators()
  pointwise(ops)
  table.sort(ops, function(a, b) return a.name < b.name end)
  for _, op in ipairs(ops) do
    local info = nacre._info(op.name)
    op.params, op.results = info.params, info.results
    op.f = nacre[op.name]
    op.method = nacre._methods[op.name]
    op.into = nacre._methods[op.name .. "_"]
  end
  return ops
end

-- What fits a parameter of a type: fresh tensors at each call.
local function value(p, dtype)
  local t = p.type
  if t == "tensor" or t == "operand" or t == "dimortensor" then
    return nacre.tensor({{0.5, 0.25}, {0.75, 1}}):mul(4):to(dtype)
  elseif t == "tensors" then
    return {nacre.ones(2, 2), nacre.zeros(2, 2)}
  elseif t == "size" then return {2, 2}
  elseif t == "bool" then return false
  elseif t == "dtype" then return "float64"
  elseif t == "device" then return "cpu"
  elseif t == "text" then return p.choices and p.choices:match "^[^|]+" or t
  end
  return 1                    -- dim dims index int ints num
end

local special = dofile(here .. "small_call_arguments.lua")

-- The arguments of a call that succeeds, all positional ones that are needed;
-- `full': the optional positional ones too.
function C.sample(op, full)
  local ints = op.info and op.info.class:find("^IN")
  local dtype = ints and "int32" or "float32"
  if special[op.name] then
    return special[op.name](value({type = "tensor"}, dtype))
  end
  local args = {}
  for _, p in ipairs(op.params) do
    if not p.byname and (full or not p.optional) then
      args[#args + 1] = value(p, dtype)
    end
  end
  if op.info and op.info.kind == "choose" then args[1] = args[1]:gt(2) end
  if op.name == "clamp" then args = {args[1], 1, 2} end
  return args
end

C.value = value
return C
