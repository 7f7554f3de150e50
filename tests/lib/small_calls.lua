-- SPDX-License-Identifier: MIT
-- For tests that call every operation: the signatures of core/operators.def and
-- of the rows, and a small call of each that succeeds.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = {}

local function parse(text)
  local list, named = {}, false
  text = text:gsub("%->.*", "")
  for word in text:gmatch("[^,]+") do
    word = word:match("^%s*(.-)%s*$")
    if word == "*" then
      named = true
    elseif word ~= "" then
      local name, kind, default = word:match("^([%w_]+):?([^=]*)=?(.*)$")
      if kind == "" then
        kind = default == "" and "tensor" or
               default:find("^[tf]") and "bool" or "num"
      end
      list[#list + 1] = {name = name, type = kind:find("|") and "choice" or
                         kind,
                         optional = default ~= "", named = named,
                         choices = kind:find("|") and kind or
                                   default:match('^"(.*)"$')}
    end
  end
  return list
end

local function families()
  local path = here .. "../../core/operators.def"
  local file = assert(io.open(path), "no " .. path)
  local ops = {}
  local text = file:read("a"):gsub('"%s+"', "")  -- texts of several lines
  for name, signature in text:gmatch('OPERATOR%(([%w_]+),%s*%u+,%s*"(.-)"') do
    signature = signature:gsub("!", "")
    ops[#ops + 1] = {name = name, family = true, params = parse(signature),
                     results = signature:match("%->%s*(.*)")}
  end
  file:close()
  assert(#ops > 40, "where are the operators?")
  return ops
end

local arity = {unary = 1, test = 1, binary = 2, compare = 2, ternary = 3,
               choose = 3, reduce = 1}

local function rows(ops)
  for name in pairs(nacre) do
    local info = nacre._info(name)
    if info and info.class then
      local params = parse(info.signature:match("%((.*)%)"))
      for i, p in ipairs(params) do
        if i <= arity[info.kind] then
          p.type = arity[info.kind] > 1 and "operand" or "tensor"
        elseif p.name == "dim" then p.type = "dims"
        elseif p.name == "keepdim" then p.type = "bool"
        elseif p.name == "dtype" then p.type = "dtype"
        elseif p.choices then p.type = "choice" end
      end
      ops[#ops + 1] = {name = name, row = info, params = params,
                       results = "tensor"}
    end
  end
end

-- All operations, ordered by name: { name, params, results, row or family }.
-- A parameter is { name, type, optional, named }.
function C.all()
  local ops = families()
  rows(ops)
  table.sort(ops, function(a, b) return a.name < b.name end)
  for _, op in ipairs(ops) do
    op.f = nacre[op.name]
    op.method = nacre._methods[op.name]
    op.into = nacre._methods[op.name .. "_"]
  end
  return ops
end

-- What fits a parameter of a type: fresh tensors at each call.
local function value(p, dtype)
  local t = p.type
  if t == "tensor" or t == "operand" or t == "inplace" or
      t == "dimortensor" then
    return nacre.tensor({{0.5, 0.25}, {0.75, 1}}):mul(4):to(dtype)
  elseif t == "tensors" then
    return {nacre.ones(2, 2), nacre.zeros(2, 2)}
  elseif t == "size" then return {2, 2}
  elseif t == "bool" then return false
  elseif t == "dtype" then return "float64"
  elseif t == "device" then return "cpu"
  elseif t == "text" then return "text"
  elseif t == "choice" then return p.choices:match("^[^|=]+")
  end
  return 1                    -- dim dims index int ints num
end

local special = dofile(here .. "small_call_arguments.lua")

-- The arguments of a call that succeeds, all positional ones that are needed;
-- `full': the optional positional ones too.
function C.sample(op, full)
  local ints = op.row and op.row.class:find("^IN")
  local dtype = ints and "int32" or "float32"
  if special[op.name] then
    return special[op.name](value({type = "tensor"}, dtype))
  end
  local args = {}
  for _, p in ipairs(op.params) do
    if not p.named and (full or not p.optional) then
      args[#args + 1] = value(p, dtype)
    end
  end
  if op.row and op.row.kind == "choose" then args[1] = args[1]:gt(2) end
  if op.name == "clamp" then args = {args[1], 1, 2} end
  return args
end

C.value = value
return C
