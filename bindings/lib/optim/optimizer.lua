-- SPDX-License-Identifier: MIT
-- optimizer.lua - what all optimizers of nacre.optim share: groups of
-- parameters, state, steps, state_dict.
--
--   opt = nacre.optim.Adam(net, {lr = 1e-3})
--   opt:zero_grad(); loss:backward(); opt:step()
--
-- An optimizer has param_groups, a list of tables with params and the options,
-- and state, a table from a parameter to the values that its algorithm keeps.
-- One of the user is a class that has update or step:
--
--   Descent = nacre.optim.Optimizer "Descent"
--   function Descent:update(p, g, state, group) p:sub_(g * group.lr) end
--   opt = Descent(net, {lr = 0.1})
local all = ...
all.require("nacre.base_class", "nacre.guards")
local fail, optim = all.fail, all.space "optim"

local Optimizer = {name = "Optimizer"}
all.Optimizer = Optimizer
all.base_class(Optimizer, "optim.Optimizer",
               "a class of optimizers; it has update(p, grad, state, group), "
               .. "or step, and init, which calls "
               .. "Optimizer.init(self, params, defaults)")

-- The list of tensors that the user gave: a list, a module, its parameters, or
-- what iterates over their names and them, as net:named_parameters(), whose
-- names are the second value.
local function tensors_of(op, params)
  if all.is_module(params) then return params:parameters() end
  local list, names = {}, nil
  if type(params) == "function" then
    names = {}
    for name, p in params do
      list[#list + 1], names[#names + 1] = p, tostring(name)
    end
    params = list
  end
  for i, p in ipairs(params) do
    if not nacre.is_tensor(p) then
      fail(op, ("element %d of params is a %s, not a tensor")
               :format(i, type(p)))
    end
    list[i] = p
  end
  return list, names
end

local function check_parameter(op, p, seen)
  if seen[p] then
    fail(op, "{param} is given twice", nil, "param", p)
  elseif not p.is_leaf then
    fail(op, "{param} is a result, not a leaf: it cannot be optimized",
         "{param}:detach():requires_grad_()", "param", p)
  elseif not all.is_parameter(p) then
    fail(op, "{param} does not require a gradient", "{param}:requires_grad_()",
         "param", p)
  end
  seen[p] = true
end

-- Fails if an option of a group has a type or a value that it cannot have.
local function check_options(self, op, group)
  local s = self._signature
  for i = 2, s and #s.params or 0 do
    local v = group[s.params[i].name]
    if v ~= nil then all.check_argument(op, s, i, v) end
  end
  if self._check then self._check(op, group) end
end

-- What groups may have that is no option.
local NOTES = {initial_lr = true, param_names = true}

-- Adds a group {params=, options}; options that are missing have the defaults.
function Optimizer:add_param_group(group)
  local op, known = self.name, self._known
  if type(group) ~= "table" or type(group.params) ~= "table" and
     type(group.params) ~= "function" and not nacre.is_tensor(group.params) then
    fail(op, "a group is a table {params = ..., lr = ...}",
         type(group) == "table" and nacre.is_tensor(group[1]) and
         "nn.ModuleList{a, b}:parameters() has the parameters of several "
         .. "modules in one group" or nil)
  end
  local given = group.params
  local params, names =
    tensors_of(op, nacre.is_tensor(given) and {given} or given)
  if #params == 0 then fail(op, "there are no parameters") end
  local seen = {}
  for _, g in ipairs(self.param_groups) do
    for _, p in ipairs(g.params) do seen[p] = true end
  end
  for _, p in ipairs(params) do check_parameter(op, p, seen) end
  local new = {params = params, param_names = names}
  for key, value in pairs(self.defaults) do new[key] = value end
  for key, value in pairs(group) do
    if key ~= "params" then
      if known and known[key] == nil and not NOTES[key] then
        fail(op, ("no argument '%s'"):format(key))
      end
      new[key] = value
    end
  end
  check_options(self, op, new)
  self.param_groups[#self.param_groups + 1] = new
end

-- Is this a list of groups?
local function are_groups(params)
  return type(params) == "table" and not all.is_module(params) and
         type(params[1]) == "table" and
         not nacre.is_tensor(params[1])
end

-- All optimizers, for what happens to their parameters.
local optimizers = setmetatable({}, {__mode = "k"})
all.all_optimizers = optimizers

-- What a list of groups can do that a list of Lua cannot.
local GROUPS = {
  __index = function(groups, key)
    if key == 0 then fail("param_groups", "groups count from 1") end
    return math.type(key) == "integer" and key < 0 and
           rawget(groups, #groups + 1 + key) or nil
  end,
  __call = function()
    fail("param_groups", "a list is not an iterator",
         "for i, group in ipairs(opt.param_groups) do ... end")
  end}

-- Fills in a new optimizer; `params' are parameters or groups.
local function fill_in(self, params, defaults, state)
  if type(params) ~= "table" and type(params) ~= "function" then
    fail(self.name, "params must be a list of tensors, a module or groups, "
                    .. "not a " .. (nacre.is_tensor(params) and "tensor" or
                                    type(params)))
  end
  optimizers[self] = true
  self.param_groups, self.state = setmetatable({}, GROUPS), state
  self.defaults = defaults
  if are_groups(params) then
    for _, group in ipairs(params) do self:add_param_group(group) end
  else
    self:add_param_group {params = params}
  end
end

-- The state of a parameter that has none yet is an empty table.
local STATES = {__index = function(state, p)
  if not nacre.is_tensor(p) then return nil end
  rawset(state, p, {})
  return rawget(state, p)
end}

-- For the classes of the user: params are parameters or groups, defaults the
-- options of groups that do not give them.
function Optimizer:init(params, defaults)
  all.check_instance(Optimizer, self)
  if defaults ~= nil and type(defaults) ~= "table" then
    fail(self.name, "defaults must be a table of options, not a "
                    .. type(defaults))
  end
  if nacre.is_tensor(params) then params = {params} end
  fill_in(self, params, defaults or {}, setmetatable({}, STATES))
end

function Optimizer:update(...)
  fail(self.name or "Optimizer", "the class has no update and no step",
       ("function %s:update(p, grad, state, group) ... end")
       :format(self.name or "Optimizer"))
end

-- Options of PyTorch that say how, not what, is computed: where there is a step
-- of all parameters at once, it is always used.
local UNUSED = ", *, foreach:bool=nil, fused:bool=nil, capturable:bool=nil"

-- __newindex of an optimizer. An option that is set in it would change nothing.
local function refuse_options(self, key, v)
  all.check_key(self.name, key)
  local groups = rawget(self, "param_groups")
  local first = groups and groups[1]
  if first and key ~= "params" and first[key] ~= nil then
    fail(self.name, ("%s is an option of the groups"):format(key),
         ("for _, group in ipairs(opt.param_groups) do group.%s = %s end")
         :format(key, type(v) == "number" and v or "..."))
  end
  rawset(self, key, v)
end

-- The options of all optimizers.
all.option_names = {}

-- nacre.optim[name]: a function that makes an optimizer from params and the
-- options of the signature. rule.update(self, p, g, s, o, t) is one step of
-- parameter p with gradient g, state s, options o; t counts the steps from 1.
-- It is also the reference of the tests of rule.fused, if there is that;
-- rule.start(o, key) is what a state begins with there, 0 if it is not given.
-- rule.check(op, options) fails for wrong values. `methods' are those of the
-- class.
function all.optimizer(name, signature, doc, rule, methods)
  if name ~= "LBFGS" then signature = signature .. UNUSED end
  local s = all.parse("optim." .. name,
                      "params:any, " .. signature .. " -> optimizer")
  local class = all.derive(Optimizer, name, methods)
  class._known, class._check, class._rule = all.positions(s), rule.check, rule
  class._signature = s
  for key in pairs(class._known) do all.option_names[key] = true end
  rawset(class, "__newindex", refuse_options)
  local function construct(...)
    local v, defaults = all.read(name, s, ...), {}
    for i = 2, #s.params do defaults[s.params[i].name] = v[i] end
    defaults.foreach, defaults.fused, defaults.capturable = nil, nil, nil
    if rule.defaults then rule.defaults(defaults) end
    local self = setmetatable({}, class)
    fill_in(self, v[1], defaults, {})
    return self
  end
  optim[name] = construct
  all.describe("optim." .. name, construct, doc, s)
  return construct
end

-- Removes the gradients; zero_grad(false) sets them 0.
function Optimizer:zero_grad(...)
  for _, group in ipairs(self.param_groups) do
    all.zero_gradients(group.params, ...)
  end
end

-- The parameters of a group that have a gradient, their gradients and states.
local function with_gradients(self, group)
  local params, grads, states, n = {}, {}, {}, 0
  local state = self.state
  for _, p in ipairs(group.params) do
    local g = p.grad
    if g then
      local s = rawget(state, p)
      if not s then
        s = state[p] or all.new_state(self)
        state[p] = s
      end
      s.step = s.step or 0
      n = n + 1
      params[n], grads[n], states[n] = p, g, s
    end
  end
  return params, grads, states
end

-- The numbers of a step in the order of StepNumbers (core/optimizer_step.h),
-- and what they are if they are not given.
local NUMBERS = {"sign", "decay", "shrink", "rate", "momentum", "intake",
                 "first", "nesterov", "rest1", "beta2", "rest2", "eps", "root",
                 "look", "down", "up", "least", "most"}
local NEUTRAL = {1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0}

-- One request for lists of tensors; false if they are not fit for it.
local function request(rule, params, grads, states, numbers)
  local list = {}
  for i, name in ipairs(NUMBERS) do list[i] = numbers[name] or NEUTRAL[i] end
  return nacre._optimizer_step(rule, params, grads, states,
    nacre.tensor(list, {dtype = "float64", device = "cpu"}))
end

-- averages[j] += (tensors[j] - averages[j]) * weight: a step of gradient
-- descent from -tensors[j] with averages[j] as the penalty.
function all.lerp_fused(averages, tensors, weight)
  return request("sgd", averages, tensors, {},
                 {sign = -1, decay = 1, rate = weight})
end

-- The states of `keys' of all parameters, one key after the other, and those
-- that were made because this is the first step; nil if some have made other
-- steps than others.
local function fused_states(rule, group, params, states, keys)
  local n, list, made = #params, {}, {}
  local step, product = states[1].step, states[1].mu_product
  for _, s in ipairs(states) do
    if s.step ~= step or s.mu_product ~= product then return nil end
  end
  for i, key in ipairs(keys) do
    for j, s in ipairs(states) do
      local t = s[key]
      if not t then
        if step > 0 then return nil end
        t = nacre.full_like(params[j], rule.start and rule.start(group, key) or
                                       0)
        made[#made + 1] = {s, key, t}
      end
      list[(i - 1) * n + j] = t
    end
  end
  if #made > 0 and #made < #keys * n then return nil end
  return list, made
end

-- All of params as one operation, if the algorithm has one and the tensors are
-- fit for it; false if nothing was done. rule.fused(o, t, s) gives the rule,
-- the keys of the states, the numbers, and what else the states become.
local function step_fused(self, group, params, grads, states)
  local own = self._rule
  if not own or not own.fused or self.fused == false or #params == 0 then
    return false
  end
  local t = states[1].step + 1
  local rule, keys, numbers, new = own.fused(group, t, states[1])
  local list, made = fused_states(own, group, params, states, keys)
  if not list then return false end
  numbers.sign = group.maximize and -1 or 1
  if group.decoupled_weight_decay then
    numbers.shrink = 1 - group.lr * group.weight_decay
  else
    numbers.decay = group.weight_decay
  end
  local done = request(rule, params, grads, list, numbers)
  for i = 1, done and #made or 0 do
    local s, key, t = table.unpack(made[i])
    s[key] = t
  end
  for j = 1, done and #params or 0 do
    local s = states[j]
    s.step = t
    if new then
      for key, value in pairs(new) do s[key] = value end
    end
  end
  return done
end

-- One step of a group by the Lua text of the algorithm. `given' are params
-- before they were widened.
local function step_text(self, group, params, grads, states, given)
  local update = self._rule and self._rule.update or self.update
  for j, p in ipairs(params) do
    local g, s = grads[j], states[j]
    s.step = s.step + 1
    update(self, p, group.maximize and -g or g, s, group, s.step,
           given[j].dtype)
  end
end

-- The tensors of a list, halves in float32; nil if there are none.
local function widened(list)
  local wide
  for j, t in ipairs(list) do
    if all.is_half[t.dtype] then
      wide = wide or table.move(list, 1, #list, 1, {})
      wide[j] = t:float()
    end
  end
  return wide
end

-- The optimizers of Nacre step half parameters in float32, in which their
-- states are: in float16 eps is 0, and so is the square of a small gradient.
function Optimizer:_step_group(group)
  local params, grads, states = with_gradients(self, group)
  if step_fused(self, group, params, grads, states) then return end
  local wide = self._known and widened(params)
  if not wide then
    return step_text(self, group, params, grads, states, params)
  end
  grads = widened(grads) or grads
  if not step_fused(self, group, wide, grads, states) then
    step_text(self, group, wide, grads, states, params)
  end
  for j, p in ipairs(params) do
    if not rawequal(wide[j], p) then p:copy_(wide[j]) end
  end
end

-- Fails in a dry run, whose tensors must not get into the state.
function all.check_no_dry_run()
  if nacre._in_dry_run() then
    fail("step", "a step changes parameters, which a dry run cannot")
  end
end

-- Changes the parameters by their gradients. closure(), if given, computes the
-- loss with gradients; step returns it.
function Optimizer:step(closure)
  if closure ~= nil and type(closure) ~= "function" then
    fail("step", "takes a function that computes the loss, not a " ..
                 type(closure))
  end
  local loss = closure and nacre.enable_grad(closure)
  all.check_no_dry_run()
  nacre.no_grad(function()
    for _, group in ipairs(self.param_groups) do self:_step_group(group) end
  end)
  if closure then return loss end
end

-- ---- state

function Optimizer:state_dict() return all.optimizer_state(self) end

function Optimizer:load_state_dict(saved)
  all.load_optimizer_state(self, saved)
end

local function option_text(v)
  if type(v) ~= "table" then return tostring(v) end
  local list = {}
  for i, element in ipairs(v) do list[i] = tostring(element) end
  return "{" .. table.concat(list, ", ") .. "}"
end

function Optimizer:__tostring()
  local lines = {self.name}
  for i, group in ipairs(self.param_groups) do
    local n, keys = 0, {}
    for _, p in ipairs(group.params) do n = n + p:numel() end
    for key in pairs(group) do
      if key ~= "params" and key ~= "param_names" then
        keys[#keys + 1] = key
      end
    end
    table.sort(keys)
    for k, key in ipairs(keys) do
      keys[k] = key .. "=" .. option_text(group[key])
    end
    lines[i + 1] = ("  group %d  %d parameter%s, %d elements  %s"):format(
      i, #group.params, #group.params == 1 and "" or "s", n,
      table.concat(keys, " "))
  end
  return table.concat(lines, "\n")
end

-- Is this an optimizer? Fails for one whose init left it empty.
local function is_optimizer(self)
  if not all.is_instance(self, Optimizer) then return false end
  if rawget(self, "param_groups") == nil then
    fail(self.name, "init did not call Optimizer.init(self, params, defaults)")
  end
  return rawget(self, "param_groups") ~= nil
end

Optimizer._is, Optimizer._object = is_optimizer, "opt"
Optimizer._takes = {load_state_dict = "state_dict:table"}
all.guard_methods(Optimizer, is_optimizer, "opt", Optimizer._takes)
