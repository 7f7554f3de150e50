-- SPDX-License-Identifier: MIT
--
-- shape_fits.lua - which variables can be the next argument of an operation.
--
-- The operation itself decides: it is called with miniatures, tensors of ones
-- with small sizes that are equal, one, or ordered where those of the
-- variables are. So its own shape rule applies, nothing large is computed,
-- only the CPU works, and no user code runs.

local lookup = require "nacre.lookup"
local facts = require "nacre.tensor_facts"

local shape_fits = {}

local LARGEST = 4096          -- elements of a miniature
local VARIABLES = 200

-- Maps every size above 1 to a small one: equal sizes to equal ones, in the
-- same order.
local function scale(tensors)
  local seen, sizes, small = {}, {}, {[0] = 0, [1] = 1}
  for _, t in ipairs(tensors) do
    for _, n in ipairs(t:size()) do
      if n > 1 and not seen[n] then
        seen[n] = true
        sizes[#sizes + 1] = n
      end
    end
  end
  table.sort(sizes)
  for i, n in ipairs(sizes) do small[n] = i + 1 end
  return small
end

local function miniature(t, small)
  local sizes, n = {}, 1
  for i, size in ipairs(t:size()) do
    sizes[i] = small[size]
    n = n * sizes[i]
  end
  if n > LARGEST then return nil end
  return nacre.ones(sizes, {dtype = t.dtype, device = "cpu"})
end

-- The value of an argument's text: a tensor, a small number, a boolean; nil if
-- it would have to be run.
local function value(text)
  if text == "true" or text == "false" then return text == "true", true end
  local n = tonumber(text)
  if n then return n, math.abs(n) <= 8 end
  local v = text:find "^[%a_][%w_.%[%]]*$" and lookup.value(text)
  return v, facts.istensor(v)
end

-- The session's tensors by name.
local function variables()
  local list = {}
  for name, v in next, _G do
    if type(name) == "string" and facts.istensor(v) and
       not name:find "^_+$" and name ~= "ans" then
      list[#list + 1] = {name = name, value = v}
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  while #list > VARIABLES do list[#list] = nil end
  return list
end

-- The arguments so far, after the object of a method.
local function before(call)
  local args = {}
  if call.method then
    if not facts.istensor(call.object) then return nil end
    args[1] = call.object
  end
  for _, text in ipairs(call.typed) do
    local v, ok = value(text)
    if not ok then return nil end
    args[#args + 1] = v
  end
  return args
end

local function samedevice(tensors, t)
  for _, other in ipairs(tensors) do
    if other:dim() > 0 and t:dim() > 0 and
       tostring(other.device) ~= tostring(t.device) then
      return false
    end
  end
  return true
end

-- Does the operation accept the miniatures? Nil if it needs more arguments.
local function takes(f, args)
  local ok, err = pcall(nacre.no_grad, function()
    f(table.unpack(args, 1, #args))
  end)
  if ok then return true end
  local more = type(err) == "table" and err.cause == "missing" or
               tostring(err):find "expected, got no value"
  if more then return nil end
  return false
end

-- Only an operation of nacre is called, which computes something of its
-- operands and nothing else: none that draws random numbers or sets a state.
local function is_pure(f)
  local info = type(f) == "function" and nacre._info(f)
  if not info then return false end
  for _, p in ipairs(info.params) do
    if p.type == "generator" or p.type == "fn" then return false end
  end
  local results = info.results
  return results ~= "" and results ~= "results" and
         not info.name:find "[:]" and not info.name:find "drop" and
         not info.name:find "gumbel" and not info.name:find "rrelu"
end

-- The variables that fit as the next argument of a call (see
-- call_at_cursor.around), a list of {name =, value =}; nil if that is unknown.
function shape_fits.list(call)
  if call.options or not is_pure(call.f) then return nil end
  local args, all, found = before(call), variables(), {}
  if not args then return nil end
  local tensors = {}
  for _, v in ipairs(args) do
    if facts.istensor(v) then tensors[#tensors + 1] = v end
  end
  for _, var in ipairs(all) do
    local group = {table.unpack(tensors)}
    group[#group + 1] = var.value
    local small, mini = scale(group), {}
    for i, v in ipairs(args) do
      mini[i] = v
      if facts.istensor(v) then mini[i] = miniature(v, small) or false end
    end
    mini[#args + 1] = miniature(var.value, small) or false
    local fit = samedevice(tensors, var.value) and takes(call.f, mini)
    if fit == nil then return nil end
    if fit then found[#found + 1] = var end
  end
  return found
end

return shape_fits
