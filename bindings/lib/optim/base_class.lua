-- SPDX-License-Identifier: MIT
-- base_class.lua - base classes: calling one with a name makes a class derived
-- from it, as with nn.Module:
--
--   Lion = nacre.optim.Optimizer "Lion"      -- or Other:extend "Lion"
--   function Lion:init(params, lr) ... end
--   opt = Lion(net, 1e-4)
local all = ...
local fail = all.fail

-- Fails if a constructor was not called for an instance: Optimizer.init(self).
function all.check_instance(class, self)
  if not all.is_instance(self, class) then
    fail(class.name, "init is a method of an instance",
         class.name .. ".init(self, ...)")
  end
end

local function construct(class, ...)
  local self = setmetatable({}, class)
  self:init(...)
  return self
end

-- A class called name with these methods and those of `parent'. If it is the
-- library's, they check what they are given: parent._is(self) and, by name, the
-- signatures in parent._takes; parent._object is what a hint calls self.
function all.derive(parent, name, methods)
  local class = methods or {}
  class.name, class.__index, class.__tostring = name, class, parent.__tostring
  if not all.is_loaded then
    all.guard_methods(class, parent._is, parent._object, parent._takes)
  end
  return setmetatable(class, {
    __index = parent, __call = construct,
    __newindex = function(_, key, v)
      all.check_key(name, key)
      all.check_method_name(name, key)
      rawset(class, key, v)
    end,
    __tostring = function() return "class " .. name end})
end

-- Makes `class' a class to derive from, and stores it at this path.
function all.base_class(class, path, doc)
  local space, last = path:match "^(.*)%.(.-)$"
  local function extend(self, name)
    if not rawequal(self, class) and not all.is_instance(self, class) and
       not (type(self) == "table" and rawget(self, "__index") == self) then
      fail(last, "extend is called on a class")
    end
    if type(name) ~= "string" then
      fail(last, ('a class has a name: nacre.%s "Mine"'):format(path))
    end
    return all.derive(self, name)
  end
  class.extend = extend
  setmetatable(class, {__call = extend,
                       __tostring = function() return "class " .. last end})
  all.space(space)[last] = class
  all.describe(path, class, doc, all.parse(path, "name:text -> class"))
end
