-- SPDX-License-Identifier: MIT
-- containers.lua - modules made of modules: Sequential, ModuleList, ModuleDict,
-- ParameterList. A function may stand where a module may.
local all = ...
local fail, nn, Module = all.fail, all.space "nn", all.Module
local is_module = all.is_module

local function is_part(v)
  return is_module(v) or type(v) == "function"
end

local function check_part(self, v, is, what)
  if is(v) then return v end
  local class = type(v) == "table" and rawget(v, "__name")
  fail(self.__name, class and ("%s is a class: %s(...) is an instance")
                    :format(class, class) or
                    ("%s is expected, not a %s"):format(what,
                      nacre.is_tensor(v) and "tensor" or type(v)))
end

-- A list of parts that `is' accepts.
local function define_list(name, is, what, doc)
  local List = Module:extend(name)
  all.describe("nn." .. name, List, doc,
               all.parse("nn." .. name, "modules:any=nil -> module"))

  -- The parts one by one, or in a list.
  function List:init(...)
    local list, n = {...}, select("#", ...)
    if n == 1 and type(list[1]) == "table" and
       getmetatable(list[1]) == nil then
      list = list[1]
      n = #list
    end
    for i = 1, n do self:append(list[i]) end
  end

  function List:append(v)
    self[#self + 1] = check_part(self, v, is, what)
    return self
  end

  function List:extend_with(list)
    for _, v in ipairs(list) do self:append(v) end
    return self
  end

  function List:insert(at, v)
    check_part(self, v, is, what)
    if math.type(at) ~= "integer" or at < 1 or at > #self + 1 then
      fail("insert", ("position %s is not between 1 and %d")
                     :format(at, #self + 1))
    end
    for i = #self, at, -1 do self[i + 1] = self[i] end
    self[at] = v
    return self
  end

  nn[name] = List
  return List
end

define_list("ModuleList", is_part, "a module or a function",
            "a list of modules, one by one or in a table")
local Sequential = define_list("Sequential", is_part, "a module or a function",
                               "modules and functions, one after the other")
define_list("ParameterList", nacre.is_tensor, "a tensor",
            "a list of parameters")

-- The first part gets all arguments, each other part the result of the one
-- before.
function Sequential:forward(...)
  local n = #self
  if n == 0 then return ... end
  if n == 1 then return self[1](...) end
  local x = self[1](...)
  for i = 2, n - 1 do x = self[i](x) end
  return self[n](x)
end

local ModuleDict = Module:extend "ModuleDict"
nn.ModuleDict = ModuleDict
all.describe("nn.ModuleDict", ModuleDict, "modules by name",
             all.parse("nn.ModuleDict", "modules:table=nil -> module"))

function ModuleDict:init(parts)
  local names = {}
  for name in pairs(parts or {}) do names[#names + 1] = name end
  table.sort(names, function(a, b) return parts[a]._made < parts[b]._made end)
  for _, name in ipairs(names) do
    self[name] = check_part(self, parts[name], is_module, "a module")
  end
end

-- ---- net.eval() instead of net:eval()

-- Makes the methods of all modules fail for what is no module.
for name, method in pairs(Module) do
  if type(method) == "function" and name:find "^%l" and name ~= "extend" and
     name ~= "forward" then
    Module[name] = function(self, ...)
      if not is_module(self) then
        fail(name, "a method is called with a colon",
             ("net:%s(...)"):format(name))
      end
      return method(self, ...)
    end
  end
end
