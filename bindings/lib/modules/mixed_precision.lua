-- SPDX-License-Identifier: MIT
-- mixed_precision.lua - nacre.autocast and nacre.amp: training in a lower
-- dtype. core/trace/autocast.c has the lists of operations.
--
--   scaler = nacre.amp.GradScaler()
--   loss = nacre.autocast("cuda", function() return loss_of(net(x), y) end)
--   scaler:scale(loss):backward()
--   scaler:step(opt)
--   scaler:update()
local all = ...
all.require "nacre.guards"
local fail = all.fail

-- ---- autocast

-- Is this text the name of an accelerator, or of one of its kind?
local function is_accelerator(op, device)
  local name = type(device) == "string" and device:match "^%a+" or device
  if name ~= "cpu" and name ~= "cuda" then
    fail(op, ('device_type is "cuda" or "cpu", not %s')
             :format(tostring(device)))
  end
  return name == "cuda"
end

local function is_callable(v)
  local meta = getmetatable(v)
  return type(v) == "function" or
         type(v) == "table" and type(meta) == "table" and
         meta.__call ~= nil
end

local function read_options(op, options, accelerator)
  for key in pairs(options) do
    if key ~= "dtype" and key ~= "enabled" and key ~= "cache_enabled" then
      fail(op, ("no argument '%s'"):format(tostring(key)))
    end
  end
  if options.enabled == false then return "none" end
  local dtype = options.dtype or accelerator and "float16" or "bfloat16"
  if dtype ~= "float16" and dtype ~= "bfloat16" then
    fail(op, ("dtype is float16 or bfloat16, not %s"):format(tostring(dtype)))
  end
  return dtype
end

-- autocast(device_type, options, fn, ...), where options, {dtype=, enabled=},
-- may be left out.
local function autocast(device, ...)
  local accelerator = is_accelerator("autocast", device)
  local options = ...
  if type(options) == "table" and not is_callable(options) then
    return nacre._autocast(accelerator,
                           read_options("autocast", options, accelerator),
                           select(2, ...))
  end
  return nacre._autocast(accelerator, read_options("autocast", {}, accelerator),
                         ...)
end

local function register(name, f, signature, doc)
  all.alias(name, f)
  all.describe(name, f, doc, all.parse(name, signature))
end

register("autocast", autocast,
         "device_type:text|cuda|cpu, options:any=nil, fn:any -> results",
         "calls fn with products in a lower dtype: float16 on devices, "
         .. "bfloat16 on the CPU, or {dtype=...}; {enabled=false} turns it off "
         .. "inside")
all.alias("amp.autocast", autocast)
register("is_autocast_enabled", function(device)
  return nacre._autocast_dtype(is_accelerator("is_autocast_enabled",
                                              device or "cuda")) ~= nil
end, "device_type:text|cuda|cpu=cuda -> boolean",
         "is autocast on?")
register("get_autocast_dtype", function(device)
  return nacre._autocast_dtype(is_accelerator("get_autocast_dtype",
                                              device or "cuda"))
end, "device_type:text|cuda|cpu=cuda -> dtype",
         "the lower dtype of autocast, or nil")

-- ---- GradScaler

local Scaler = {}
Scaler.__index = Scaler

function Scaler.__tostring(self)
  return self._enabled and ("GradScaler(scale %g)"):format(self._scale) or
         "GradScaler(disabled)"
end

-- What is known of an optimizer since the last update.
local function record(self, opt)
  self._steps[opt] = self._steps[opt] or {}
  return self._steps[opt]
end

-- The loss, or each of a list, times the scale.
function Scaler:scale(outputs)
  if not self._enabled then return outputs end
  if nacre.is_tensor(outputs) then return outputs * self._scale end
  local list = {}
  for i, y in ipairs(outputs) do list[i] = self:scale(y) end
  return list
end

-- Divides gradients of the optimizer by the scale, in place, and notes on the
-- device of the first whether all are finite: false if there are none.
function Scaler:unscale_(opt)
  if not self._enabled then return end
  local known = record(self, opt)
  if known.finite ~= nil then
    fail("unscale_", "it was already called since the last update()")
  elseif known.stepped then
    fail("unscale_", "it was called after step()")
  end
  local list = {}
  for _, group in ipairs(opt.param_groups) do
    for _, p in ipairs(group.params) do list[#list + 1] = p.grad end
  end
  known.finite = #list > 0 and
                 nacre.no_grad(all.scale_finite, list, 1 / self._scale)
end

-- Takes a step of the optimizer unless a gradient is not finite, for which it
-- waits once.
function Scaler:step(opt, ...)
  all.check_optimizer("step", opt)
  if not self._enabled then return opt:step(...) end
  local known = record(self, opt)
  if known.stepped then
    fail("step", "it was already called since the last update()")
  end
  if known.finite == nil then self:unscale_(opt) end
  if not known.finite then
    fail("step", "no parameter of the optimizer has a gradient")
  end
  known.stepped, known.ok = true, known.finite:item()
  if known.ok then return opt:step(...) end
end

-- Lowers the scale if a step was left out since the last update, raises it
-- after growth_interval updates without; or sets it.
function Scaler:update(scale)
  if not self._enabled then return end
  if scale then self._scale = scale
  else
    local ok, any = true, false
    for _, known in pairs(self._steps) do
      if known.finite and known.ok == nil then
        known.ok = known.finite:item()
      end
      any, ok = true, ok and known.ok ~= false
    end
    if not any then fail("update", "no step was taken since the last one") end
    self._good = ok and self._good + 1 or 0
    if not ok then self._scale = self._scale * self._backoff
    elseif self._good == self._interval then
      self._scale, self._good = self._scale * self._growth, 0
    end
  end
  self._steps = {}
end

function Scaler:get_scale() return self._enabled and self._scale or 1.0 end
function Scaler:is_enabled() return self._enabled end
function Scaler:get_growth_factor() return self._growth end
function Scaler:get_backoff_factor() return self._backoff end
function Scaler:get_growth_interval() return self._interval end

-- The names are PyTorch's.
function Scaler:state_dict()
  if not self._enabled then return {} end
  return {scale = self._scale, growth_factor = self._growth,
          backoff_factor = self._backoff, growth_interval = self._interval,
          _growth_tracker = self._good}
end

function Scaler:load_state_dict(state)
  if not self._enabled then return end
  for _, key in ipairs {"scale", "growth_factor", "backoff_factor",
                        "growth_interval", "_growth_tracker"} do
    if type(state[key]) ~= "number" then
      fail("load_state_dict", ("the state has no '%s'"):format(key))
    end
  end
  self._scale, self._growth = state.scale, state.growth_factor
  self._backoff, self._interval = state.backoff_factor, state.growth_interval
  self._good = state._growth_tracker
end

local function is_scaler(v) return all.is_instance(v, Scaler) end
all.guard_methods(Scaler, is_scaler, "scaler", {
  scale = "outputs:several", unscale_ = "optimizer:optimizer",
  update = "new_scale:num=nil", load_state_dict = "state_dict:table"})

-- The device is only checked: gradients tell where they are.
local GradScaler = all.define("amp.GradScaler",
  "device:any|device=cuda, init_scale:num=65536, growth_factor:num=2, "
  .. "backoff_factor:num=0.5, growth_interval:int=2000, enabled:bool=true "
  .. "-> scaler",
  "scales losses, so that gradients in float16 do not vanish; leaves out steps "
  .. "whose gradients are not finite",
function(device, scale, growth, backoff, interval, enabled)
  local op = "GradScaler"
  if type(device) == "number" then
    fail(op, "init_scale is given by name",
         ("nacre.amp.GradScaler{init_scale = %g}"):format(device))
  end
  is_accelerator(op, device)
  if growth <= 1 then fail(op, "growth_factor must be above 1") end
  if backoff <= 0 or backoff >= 1 then
    fail(op, "backoff_factor must be between 0 and 1")
  end
  return setmetatable({_scale = scale + 0.0, _growth = growth,
                       _backoff = backoff, _interval = interval,
                       _enabled = enabled, _good = 0, _steps = {}}, Scaler)
end)
all.alias("GradScaler", GradScaler)
