-- SPDX-License-Identifier: MIT
-- lazy_layers.lua - nn.LazyLinear, LazyConv2d and so on: layers that infer
-- their input size. The first call creates the parameters, and turns the module
-- into one of the class without Lazy. Before it the parameters are tensors
-- without elements. The call fills these same tensors, because an optimizer may
-- already have them.
local all = ...
all.require("nacre.function_layers", "nacre.module", "nacre.weight_layers")
local fail, layer, nn = all.fail, all.weight_layer, all.space "nn"

-- The names of the parameters and buffers of a layer with the arguments of
-- self.
local function tensors_of(self)
  if self.affine == nil then
    return rawget(self, "bias") and {"weight", "bias"} or {"weight"}, {}
  end
  return self.affine and {"weight", "bias"} or {},
         self.track_running_stats and
         {"running_mean", "running_var", "num_batches_tracked"} or {}
end

-- Puts the values of `new' in place of t, with its device and, of floating
-- point numbers, its dtype.
local function fill_in(t, new)
  all.replace_tensor(t, function(old)
    new = new:detach():to(old.device)
    return new:is_floating_point() and new:to(old.dtype) or new
  end)
end

-- Makes self one of class Full with n input channels.
local function become(self, Full, n)
  local v = rawget(self, "_arguments")
  local full = Full(n, table.unpack(v, 1, #self._signature.params))
  for _, m in ipairs(all.members(full)) do
    fill_in(rawget(self, m.key), m.value)
  end
  for k, value in next, full do
    if not nacre.is_tensor(value) and k ~= "_fields" and k ~= "_made" and
       k ~= "training" then
      rawset(self, k, value)
    end
  end
  setmetatable(self, Full)
end

-- Defines nn["Lazy" .. name]; channels(self, x) is how many of them an input
-- has, channels_of(self, state, prefix) those that a state has, or nil.
local function define_lazy(name, channels, channels_of)
  local Full, parameters = nn[name], {}
  for i, p in ipairs(Full._signature.params) do
    if i > 1 then parameters[#parameters + 1] = all.declaration(p) end
  end
  local Lazy = layer("Lazy" .. name, table.concat(parameters, ", "),
    name .. " whose first argument is that of the first input", Full,
  function(self, ...)
    for i, p in ipairs(self._signature.params) do
      rawset(self, p.name, (select(i, ...)))
    end
    local params, buffers = tensors_of(self)
    for _, key in ipairs(params) do
      rawset(self, key, nil)
      self[key] = nn.Parameter(nacre.empty(0))
    end
    for _, key in ipairs(buffers) do
      self:register_buffer(key, key == "num_batches_tracked" and
                                nacre.zeros({}, {dtype = "int64"}) or
                                nacre.empty(0))
    end
  end)

  function Lazy:forward(x, ...)
    all.check_min_dims(self.__name, x, "input", 1)
    if nacre._in_dry_run() then
      fail(self.__name, "its parameters are made by the first call, which "
                        .. "cannot be a dry run")
    end
    become(self, Full, channels(self, x))
    return self:forward(x, ...)
  end

  -- For load_state_dict: takes the shapes of the state.
  function Lazy:_load_shapes(state, prefix)
    local n = channels_of(self, state, prefix)
    if n then become(self, Full, n) end
  end
end

-- The size of dimension d of a tensor of a state.
local function size_of(t, d)
  return nacre.is_tensor(t) and t:dim() >= d and t:size(d) or nil
end

-- The channels of an input with nd more dimensions, with or without samples.
local function channels_in(nd)
  return function(self, x)
    all.check_dims(self.__name, x, "input", nd + 1, nd + 2)
    return x:size(-nd - 1)
  end
end

define_lazy("Linear", function(_, x) return x:size(-1) end,
            function(_, state, prefix)
              return size_of(state[prefix .. "weight"], 2)
            end)

local function channels_of_norm(_, state, prefix)
  return size_of(state[prefix .. "weight"], 1) or
         size_of(state[prefix .. "running_mean"], 1)
end

for nd = 1, 3 do
  define_lazy(("Conv%dd"):format(nd), channels_in(nd),
              function(self, state, prefix)
                local n = size_of(state[prefix .. "weight"], 2)
                return n and n * self.groups
              end)
  define_lazy(("ConvTranspose%dd"):format(nd), channels_in(nd),
              function(_, state, prefix)
                return size_of(state[prefix .. "weight"], 1)
              end)
  define_lazy(("BatchNorm%dd"):format(nd),
              function(self, x)
                all.check_min_dims(self.__name, x, "input", 2)
                return x:size(2)
              end, channels_of_norm)
  define_lazy(("InstanceNorm%dd"):format(nd), channels_in(nd),
              channels_of_norm)
end
