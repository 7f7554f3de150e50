-- SPDX-License-Identifier: MIT
-- optimizer_states.lua - state_dict and load_state_dict of optimizers. A state
-- of PyTorch goes on as it would there; one that cannot is refused before
-- anything of it is taken.
--
-- The rule of an optimizer of Nacre says what its states are made of: `keeps'
-- is a list of keys that each has after a step, or a function of the parameter
-- that gives it; `numbers' has the keys that are numbers, "tensor" for what is
-- one in PyTorch, false for what is not needed; size_of(key, p, group) gives
-- sizes other than those of the parameter; `optional' has options that may be
-- nil; `steps' is false if PyTorch keeps no step.
local all = ...
all.require "nacre.python_forms"
local fail = all.fail

local OP = "load_state_dict"

-- ---- as PyTorch writes them in a file

local NONE, as_kind = all.python_none, all.as_python_kind

-- Options that are tuples there.
local TUPLES = {betas = 2, etas = 2, step_sizes = 2, eps = 2,
                ns_coefficients = 3}

local function python_group(group, n, rule)
  local out = {}
  for key in pairs(rule and rule.optional or {}) do out[key] = NONE end
  for key, v in pairs(group) do
    if TUPLES[key] and type(v) == "table" then
      local list = {}
      for i = 1, TUPLES[key] do list[i] = v[i] == nil and NONE or v[i] end
      v = as_kind("tuple", list)
    end
    out[key] = v
  end
  out.params = as_kind("list", {})
  for j = 1, #group.params do out.params[j] = n + j - 1 end
  return out, n + #group.params
end

-- The dtypes in which PyTorch keeps the step and the numbers of states, and of
-- optimizers whose states these are: that of the default dtype. In float32 they
-- are rounded in each step.
local number_dtypes = setmetatable({}, {__mode = "k"})

-- The number x for state s, in the precision that s has.
function all.state_number(s, x)
  if number_dtypes[s] ~= "float32" then return x end
  return (string.unpack("f", string.pack("f", x)))
end

-- A new state for an optimizer.
function all.new_state(self)
  local s = {}
  number_dtypes[s] = number_dtypes[self]
  return s
end

-- The state s of a parameter. In PyTorch the step is a tensor.
local function python_state(s, rule)
  local new, dtype = {}, number_dtypes[s]
  for key, v in pairs(s) do
    if type(v) == "table" and v[1] ~= nil then as_kind("list", v) end
    if key == "step" or dtype and rule.numbers and
       rule.numbers[key] == "tensor" then
      v = nacre.tensor(v, {dtype = dtype or "float32", device = "cpu"})
    end
    new[key] = v
  end
  if rule.steps == false then new.step = nil end
  return new
end

-- The same state of an optimizer with parameters that count from 0.
local function python_form(out, optimizer)
  local form = {state = as_kind("dict", {}),
                param_groups = as_kind("list", {})}
  local n, rule = 0, optimizer._rule
  for i, group in ipairs(out.param_groups) do
    form.param_groups[i], n = python_group(group, n, rule)
  end
  for i, s in pairs(out.state) do
    s = rule and python_state(s, rule) or s
    if not rule or next(s) ~= nil then form.state[i - 1] = s end
  end
  return form
end

-- Notes that this state of an optimizer is for PyTorch in a .pt file.
function all.note_optimizer_state(out, optimizer)
  all.python_forms[out] = function() return python_form(out, optimizer) end
  return out
end

-- {state=, param_groups=}: the parameters by their number, counted from 1
-- through all groups.
function all.optimizer_state(self)
  local n, out = 0, {state = {}, param_groups = {}}
  for i, group in ipairs(self.param_groups) do
    local g = {}
    for key, value in pairs(group) do g[key] = value end
    g.params = {}
    for j, p in ipairs(group.params) do
      n = n + 1
      g.params[j], out.state[n] = n, rawget(self.state, p)
    end
    out.param_groups[i] = g
  end
  return all.note_optimizer_state(out, self)
end

-- ---- options

-- Options of PyTorch that say how, not what, is computed: they are kept for it.
local IGNORED = {foreach = true, fused = true, capturable = true,
                 differentiable = true, param_names = true}

local MOST_LEVELS = 10

-- The number in a tensor without dimensions, and in lists those of theirs; an
-- object of a file, which may hold itself, is left as it is.
local function numbers_of(v, level)
  level = level or 0
  if nacre.is_tensor(v) and v:dim() == 0 then return v:item() end
  if type(v) ~= "table" or rawget(v, "__class") or level > MOST_LEVELS then
    return v
  end
  local list = {}
  for key, element in pairs(v) do list[key] = numbers_of(element, level + 1) end
  return list
end
all.numbers_of = numbers_of

-- The names of the arguments of a signature, whose positions `known' are, in
-- their order.
local function names_of(known)
  local list = {}
  for name in pairs(known) do list[#list + 1] = name end
  table.sort(list, function(a, b) return known[a] < known[b] end)
  return list
end
all.names_of = names_of

local function fail_other(i, what)
  fail(OP, ("group %d of the state %s: it belongs to another optimizer")
           :format(i, what))
end

local function is_optional(self, key)
  local optional = self._rule and self._rule.optional
  return optional and optional[key]
end

-- Fails unless group i of a state has the options of this optimizer, and none
-- that only others have. PyTorch has added switches in the course of time.
local function check_options(self, i, from)
  local group, known = self.param_groups[i], self._known
  for _, key in ipairs(names_of(known)) do
    local own = group[key]
    if key ~= "params" and own ~= nil and type(own) ~= "boolean" and
       from[key] == nil and not is_optional(self, key) then
      fail_other(i, "has no " .. key)
    end
  end
  for _, key in ipairs(all.sorted_keys(from)) do
    local v = from[key]
    if v and key ~= "params" and not known[key] and not IGNORED[key] and
       all.option_names[key] then
      fail_other(i, ("has %s = %s"):format(tostring(key), tostring(v)))
    end
  end
end

-- The options of group i after it has taken those of a state.
local function merged_group(self, i, from)
  local group, new = self.param_groups[i], {}
  if self._known then check_options(self, i, from) end
  for key, v in pairs(group) do
    if not is_optional(self, key) then new[key] = v end
  end
  for key, v in pairs(from) do
    if key ~= "params" and (v or not IGNORED[key]) then
      new[key] = numbers_of(v)
    end
  end
  if self._check then self._check(OP, new) end
  return new
end

-- ---- the states of parameters

-- The dtype of the states of parameter p: its own, but of a half parameter
-- float32 (Optimizer:_step_group).
local function state_dtype(self, p)
  local steps_wide = self._rule and self._rule.update
  return steps_wide and all.is_half[p.dtype] and "float32" or p.dtype
end

-- A copy of a value of a state for parameter p: on its device, in this dtype if
-- it is of floating point numbers. A table is copied with its elements.
local function state_value(v, p, dtype)
  if type(v) == "table" then
    local list = {}
    for key, element in pairs(v) do
      list[key] = state_value(element, p, dtype)
    end
    return list
  elseif not nacre.is_tensor(v) then return v
  end
  v = v:to(p.device)
  return (v:is_floating_point() and v:to(dtype) or v):clone()
end

-- The dtype that a value, of PyTorch if it is a tensor, tells of the numbers of
-- its state; a step in float32 tells nothing.
local function number_dtype(v, is_step)
  local dtype = nacre.is_tensor(v) and v.dtype
  return (dtype == "float64" or dtype == "float32" and not is_step) and dtype
         or nil
end

-- A state for parameter p with the values of s; nil if there are none.
local function state_for(self, s, p)
  local numbers = self._rule and self._rule.numbers or {}
  local dtype, new = state_dtype(self, p), nil
  for key, value in pairs(s or {}) do
    new = new or {}
    if key == "step" or numbers[key] then
      new[key] = numbers_of(value)
      number_dtypes[new] = number_dtypes[new] or number_dtypes[s] or
                           number_dtype(value, numbers[key] ~= "tensor")
    elseif numbers[key] == nil then new[key] = state_value(value, p, dtype)
    end
  end
  return new
end

local function fail_state(n, what)
  fail(OP, ("the state of parameter %d %s"):format(n, what),
       "the parameters count in the order of the groups")
end

local function size_text(size) return "[" .. table.concat(size, "x") .. "]" end

-- Fails unless each tensor in v, one or a list of them, has this size.
local function check_size(n, key, v, size, p)
  if type(v) == "table" then
    for _, t in ipairs(v) do check_size(n, key, t, size, p) end
  elseif not nacre.is_tensor(v) then
    fail_state(n, ("has a %s as %s"):format(type(v), key))
  elseif size_text(v:size()) ~= size_text(size) then
    fail_state(n, ("has %s of %s; the parameter is %s")
                  :format(key, size_text(v:size()), size_text(p:size())))
  end
end

-- Fails unless s can be the state of parameter p, number n.
local function check_state(self, group, p, n, s)
  local rule = self._rule
  local keeps = rule.keeps
  if type(keeps) == "function" then keeps = keeps(p, s) end
  for _, key in ipairs(keeps) do
    if s[key] == nil then
      fail_state(n, ("has no %s: it belongs to another optimizer"):format(key))
    end
  end
  for _, key in ipairs(all.sorted_keys(s)) do
    local v, number = s[key], rule.numbers and rule.numbers[key]
    if key == "step" or number then
      local kind = type(numbers_of(v))
      if kind ~= "number" and kind ~= "table" then
        fail_state(n, ("has %s that is not a number"):format(key))
      end
    elseif number == nil and (nacre.is_tensor(v) or type(v) == "table") then
      check_size(n, key, v, rule.size_of and rule.size_of(key, p, group) or
                            p:size(), p)
    end
  end
end

-- The states of all parameters with the values of a saved one.
local function loaded_states(self, saved, groups)
  local n, list = 0, {}
  for i, group in ipairs(self.param_groups) do
    for j, p in ipairs(group.params) do
      n = n + 1
      local s = saved.state[saved.param_groups[i].params[j]]
      if s ~= nil and type(s) ~= "table" then
        fail_state(n, "is not a table")
      elseif s and next(s) ~= nil and self._rule then
        groups[i].params = group.params
        check_state(self, groups[i], p, n, s)
      end
      list[n] = {p, state_for(self, s, p)}
    end
  end
  return list
end

-- Converts what optimizers keep of these parameters, the keys of a table, to
-- their dtypes and devices.
function all.move_states(params)
  for opt in pairs(all.all_optimizers) do
    for p in pairs(params) do
      local s = rawget(opt.state, p)
      if s then opt.state[p] = state_for(opt, s, p) end
    end
  end
end

-- ---- the whole

local function check_groups(self, saved)
  local own = self.param_groups
  local other = type(saved) == "table" and saved.param_groups
  if type(other) ~= "table" or type(saved.state) ~= "table" then
    fail(OP, "a table of state_dict is expected")
  end
  if #own ~= #other then
    fail(OP, ("the optimizer has %d groups, the state %d")
             :format(#own, #other))
  end
  for i, group in ipairs(own) do
    local params = type(other[i]) == "table" and other[i].params
    if type(params) ~= "table" then
      fail(OP, "a table of state_dict is expected")
    elseif #group.params ~= #params then
      fail(OP, ("group %d has %d parameters, but that of the state has %d")
               :format(i, #group.params, #params))
    end
  end
end

function all.load_optimizer_state(self, saved)
  check_groups(self, saved)
  local groups = {}
  for i in ipairs(self.param_groups) do
    groups[i] = merged_group(self, i, saved.param_groups[i])
  end
  local states = loaded_states(self, saved, groups)
  for i, group in ipairs(self.param_groups) do
    local params = group.params
    for key in pairs(group) do group[key] = nil end
    for key, v in pairs(groups[i]) do group[key] = v end
    group.params = params
  end
  number_dtypes[self] = nil
  for _, pair in ipairs(states) do
    self.state[pair[1]] = pair[2]
    number_dtypes[self] = number_dtypes[self] or
                          pair[2] and number_dtypes[pair[2]]
  end
end
