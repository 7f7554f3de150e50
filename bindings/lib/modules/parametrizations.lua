-- SPDX-License-Identifier: MIT
-- parametrizations.lua - nn.utils.parametrize and parametrizations: a parameter
-- of a module becomes a function of others, computed when it is read. Names and
-- the keys of a state are those of PyTorch.
--
--   layer = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
--   layer.weight      -- of layer.parametrizations.weight.original0 and 1
local all = ...
all.require("nacre.containers", "nacre.module")
local fail, nn, Module = all.fail, all.space "nn", all.Module
local F, parametrize = all.space "nn.functional",
                       all.space "nn.utils.parametrize"

-- ---- fields that are computed

-- Classes derived from others, by these and the prefix of the name: an instance
-- has in _computed, by key, the functions that compute and set a field.
local classes = setmetatable({}, {__mode = "k"})

local function computing_class(base, prefix)
  local derived = classes[base] or {}
  classes[base] = derived
  if derived[prefix] then return derived[prefix] end
  local class, index, newindex = base:extend(prefix .. base.__name),
                                 base.__index, base.__newindex
  class._base, derived[prefix] = base, class
  function class.__index(m, k)
    local f = m._computed[k]
    if f then return f.compute(m) end
    if type(index) == "function" then return index(m, k) end
    return class[k]
  end
  function class.__newindex(m, k, v)
    local f = m._computed[k]
    if f then f.assign(m, v) else newindex(m, k, v) end
  end
  return class
end

-- The field `key' of self is from now on compute(self), and is set by
-- assign(self, value); the name of the class of self begins with prefix.
local function compute_field(self, key, prefix, compute, assign)
  if not rawget(self, "_computed") then
    rawset(self, "_computed", {})
    setmetatable(self, computing_class(getmetatable(self), prefix))
  end
  self._computed[key] = {compute = compute, assign = assign}
end

-- The field is from now on value.
local function restore_field(self, key, value)
  self._computed[key] = nil
  if next(self._computed) == nil then
    rawset(self, "_computed", nil)
    setmetatable(self, getmetatable(self)._base)
  end
  self[key] = value
end

local function is_computed(self, key)
  local computed = rawget(self, "_computed")
  return computed ~= nil and computed[key] ~= nil
end

-- Removes the parameter `name' of self, and gives it.
local function take_parameter(op, self, name)
  if not all.is_module(self) then
    fail(op, "module must be a module")
  end
  local t = rawget(self, name)
  if not nacre.is_tensor(t) then
    fail(op, is_computed(self, name) and
             ("'%s' is already computed"):format(name) or
             ("%s has no parameter '%s'"):format(self.__name, name))
  end
  rawset(self, name, nil)
  return t
end

-- ---- parametrizations

-- The functions of one parameter: original, or original0 and so on, and the
-- parametrizations as parts 0 and so on.
local List = nn.ModuleList:extend "ParametrizationList"

function List:init(original, parametrization)
  local values = {original}
  if parametrization.right_inverse then
    values = nacre.no_grad(function()
      return table.pack(parametrization:right_inverse(original))
    end)
    if #values == 1 and type(values[1]) == "table" then values = values[1] end
  end
  if #values == 1 then
    if not rawequal(values[1], original) then
      all.replace_tensor(original, function() return values[1]:detach() end)
    end
    self.original = all.declare(original)
  end
  for i = 1, #values > 1 and #values or 0 do
    self["original" .. i - 1] =
      nn.Parameter(values[i]:clone(), original.requires_grad)
  end
  self._count = #values
  self:append(parametrization)
end

function List:originals()
  if self._count == 1 then return self.original end
  local list = {}
  for i = 1, self._count do list[i] = self["original" .. i - 1] end
  return table.unpack(list)
end

function List:forward()
  local x = self[1](self:originals())
  for i = 2, #self do x = self[i](x) end
  return x
end

-- Sets the originals to what gives this value.
function List:assign(value)
  nacre.no_grad(function()
    local list = {value}
    for i = #self, 1, -1 do
      if not self[i].right_inverse then
        fail("parametrize", ("%s has no right_inverse: its value cannot be set")
                            :format(self[i].__name))
      end
      list = table.pack(self[i]:right_inverse(list[1]))
    end
    for i, t in ipairs {self:originals()} do t:copy_(list[i]) end
  end)
end

local MODULE = "module:module, tensor_name:text"

all.define("nn.utils.parametrize.register_parametrization",
           MODULE .. ", parametrization:table -> module",
           "a parameter becomes parametrization(original), a module; its "
           .. "right_inverse, if there is one, gives the original",
function(self, name, parametrization)
  local op = "register_parametrization"
  if not all.is_module(parametrization) then
    fail(op, "parametrization must be a module")
  end
  parametrization:train(self.training)
  if is_computed(self, name) and parametrize.is_parametrized(self, name) then
    self.parametrizations[name]:append(parametrization)
    return self
  end
  local list = List(take_parameter(op, self, name), parametrization)
  if not rawget(self, "parametrizations") then
    self.parametrizations = nn.ModuleDict()
  end
  self.parametrizations[name] = list
  compute_field(self, name, "Parametrized",
                function(m) return m.parametrizations[name]() end,
                function(m, value) m.parametrizations[name]:assign(value) end)
  return self
end)

all.define("nn.utils.parametrize.is_parametrized",
           "module:module, tensor_name:text=nil -> boolean",
           "has the module parametrizations, or one of this parameter?",
function(self, name)
  local dict = rawget(self, "parametrizations")
  return dict ~= nil and (name == nil and #dict > 0 or
                          name ~= nil and rawget(dict, name) ~= nil)
end)

all.define("nn.utils.parametrize.remove_parametrizations",
           MODULE .. ", leave_parametrized:bool=true -> module",
           "makes it a plain parameter again, with its value or that of the "
             .. "original",
function(self, name, leave)
  if not parametrize.is_parametrized(self, name) then
    fail("remove_parametrizations", ("%s has no parametrization of '%s'")
                                    :format(self.__name, name))
  end
  local list = self.parametrizations:pop(name)
  local original = rawget(list, "original")
  if not leave and not original then
    fail("remove_parametrizations",
         "there are several originals: leave_parametrized must be true")
  end
  local value = original
  if leave then
    local result = nacre.no_grad(list)
    if original then all.replace_tensor(original, function() return result end)
    else value = nn.Parameter(result, (list:originals()).requires_grad) end
  end
  restore_field(self, name, value)
  if #self.parametrizations == 0 then
    rawset(self, "parametrizations", nil)
  end
  return self
end)

-- ---- the same with fields of the module itself

-- Computes field `name' by f(self).
local function compute_from_fields(self, name, f)
  compute_field(self, name, "", f, function()
    fail(self.__name, ("'%s' is computed: set what it is computed from")
                      :format(name))
  end)
  return self
end

-- Removes the fields name .. suffix, of which the field `name' was computed.
local function remove_norm(op, self, name, suffixes)
  if not is_computed(self, name) or not rawget(self, name .. suffixes[1]) then
    fail(op, ("%s of '%s' is missing"):format(op:sub(8), name))
  end
  local value = nn.Parameter(nacre.no_grad(function() return self[name] end))
  for _, suffix in ipairs(suffixes) do rawset(self, name .. suffix, nil) end
  restore_field(self, name, value)
  return self
end

-- ---- weight normalization (Salimans and Kingma 2016)

-- The norms of the slices of t along dim, of all elements if dim is false, in a
-- shape that broadcasts.
local function slice_norms(t, dim)
  all.check_tensor("weight_norm", t, "weight")
  if dim and not math.tointeger(dim) then
    fail("weight_norm", "dim must be an integer, or false for all elements")
  end
  if not dim then return t:norm() end
  local size = {}
  for d = 1, t:dim() do size[d] = 1 end
  dim = dim < 0 and dim + t:dim() + 1 or dim
  size[dim] = t:size(dim)
  return t:movedim(dim, 1):reshape(size[dim], -1):norm(2, 2):reshape(size)
end

local function normalized(g, v, dim) return v * (g / slice_norms(v, dim)) end

local WeightNorm = Module:extend "_WeightNorm"
function WeightNorm:init(dim) self.dim = dim end
function WeightNorm:forward(g, v) return normalized(g, v, self.dim) end
function WeightNorm:right_inverse(weight)
  return slice_norms(weight, self.dim), weight
end

local NORM = "module:module, name:text=weight, dim:any=1 -> module"

all.define("nn.utils.parametrizations.weight_norm", NORM,
           "a parameter becomes g*v/|v|, with the norms of slices along dim; "
             .. "dim=false: the norm of the whole",
function(self, name, dim)
  return parametrize.register_parametrization(self, name, WeightNorm(dim))
end)

all.define("nn.utils.weight_norm", NORM,
           "the same with the older names in a state, weight_g and weight_v",
function(self, name, dim)
  local t = take_parameter("weight_norm", self, name)
  self:register_parameter(name .. "_g", nn.Parameter(slice_norms(t, dim)))
  self:register_parameter(name .. "_v", t)
  return compute_from_fields(self, name, function(m)
    return normalized(m[name .. "_g"], m[name .. "_v"], dim)
  end)
end)

local NAMED = "module:module, name:text=weight -> module"

all.define("nn.utils.remove_weight_norm", NAMED,
           "the parameter is one again, with its value", function(self, name)
  return remove_norm("remove_weight_norm", self, name, {"_g", "_v"})
end)

-- ---- spectral normalization (Miyato et al. 2018)

-- A weight as a matrix with dimension dim as its rows.
local function as_matrix(t, dim) return t:movedim(dim, 1):flatten(2) end

local function unit(t, eps) return F.normalize(t, {dim = 1, eps = eps}) end

-- Random unit vectors for the rows and columns of a matrix.
local function random_vectors(w, eps)
  return unit(w:new_empty(w:size(1)):normal_(), eps),
         unit(w:new_empty(w:size(2)):normal_(), eps)
end

-- The weight by its largest singular value, of which u and v are the vectors.
local function by_sigma(weight, w, u, v)
  return weight / u:clone():dot(w:mv(v:clone()))
end

local function dim_of(self, dim)
  return dim or self.__name:find "ConvTranspose" and 2 or 1
end

local SpectralNorm = Module:extend "_SpectralNorm"

function SpectralNorm:init(weight, iterations, dim, eps)
  self.n_power_iterations, self.dim, self.eps = iterations, dim, eps
  if weight:dim() < 2 then return end
  local w = as_matrix(weight:detach(), dim)
  local u, v = random_vectors(w, eps)
  self:register_buffer("_u", u)
  self:register_buffer("_v", v)
  self:power_method(w, 15)
end

function SpectralNorm:power_method(w, n)
  nacre.no_grad(function()
    for _ = 1, n do
      self._u:copy_(unit(w:mv(self._v), self.eps))
      self._v:copy_(unit(w:t():mv(self._u), self.eps))
    end
  end)
end

function SpectralNorm:forward(weight)
  if weight:dim() < 2 then return unit(weight, self.eps) end
  local w = as_matrix(weight, self.dim)
  if self.training then self:power_method(w, self.n_power_iterations) end
  return by_sigma(weight, w, self._u, self._v)
end

function SpectralNorm.right_inverse(_, weight) return weight end

local SPECTRAL = "module:module, name:text=weight, n_power_iterations:int=1, "
                 .. "eps:num=1e-12, dim:dim=nil -> module"

local function check_iterations(n)
  if n < 1 then
    fail("spectral_norm", ("n_power_iterations is %d, but must be positive")
                          :format(n))
  end
end

all.define("nn.utils.parametrizations.spectral_norm", SPECTRAL,
           "divides a parameter by its largest singular value, which each "
             .. "call in training estimates",
function(self, name, iterations, eps, dim)
  check_iterations(iterations)
  local t = rawget(self, name)
  if not nacre.is_tensor(t) then take_parameter("spectral_norm", self, name) end
  return parametrize.register_parametrization(self, name,
    SpectralNorm(t, iterations, dim_of(self, dim), eps))
end)

all.define("nn.utils.spectral_norm", SPECTRAL,
           "the same with the older names in a state, weight_orig, weight_u "
           .. "and weight_v",
function(self, name, iterations, eps, dim)
  check_iterations(iterations)
  dim = dim_of(self, dim)
  local t = take_parameter("spectral_norm", self, name)
  local u, v = random_vectors(as_matrix(t:detach(), dim), eps)
  self:register_parameter(name .. "_orig", t)
  self:register_buffer(name .. "_u", u)
  self:register_buffer(name .. "_v", v)
  compute_from_fields(self, name, function(m)
    local weight = m[name .. "_orig"]
    return by_sigma(weight, as_matrix(weight, dim), m[name .. "_u"],
                    m[name .. "_v"])
  end)
  self:register_forward_pre_hook(function(m)
    if not m.training or not is_computed(m, name) then return end
    nacre.no_grad(function()
      local w = as_matrix(m[name .. "_orig"], dim)
      local left, right = m[name .. "_u"], m[name .. "_v"]
      for _ = 1, iterations do
        right:copy_(unit(w:t():mv(left), eps))
        left:copy_(unit(w:mv(right), eps))
      end
    end)
  end)
  return self
end)

all.define("nn.utils.remove_spectral_norm", NAMED,
           "the parameter is one again, with its value", function(self, name)
  return remove_norm("remove_spectral_norm", self, name, {"_orig", "_u", "_v"})
end)
