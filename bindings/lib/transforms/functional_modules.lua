-- SPDX-License-Identifier: MIT
-- functional_modules.lua - nacre.func: modules as functions of their tensors.
local all = ...
all.require("nacre.levels", "nacre.module_tensors")
local fail, T = all.fail, all.transforms

-- The places of each tensor of a module, by its name; a tensor that is in
-- several places has all of them under each name.
local function places_of(module)
  local by_name, by_tensor = {}, {}
  all.each_tensor(module, function(name, m)
    local list = by_tensor[m.value] or {value = m.value}
    by_tensor[m.value] = list
    list[#list + 1] = m
    by_name[name] = list
  end)
  return by_name
end

-- The name of the module's tensors that is most like this one: spelled almost
-- so, else of the same kind, else the first.
local function near(name, places)
  local names, same = {}, nil
  for other in pairs(places) do names[#names + 1] = other end
  table.sort(names)
  for _, other in ipairs(names) do
    same = same or
           other:match "[^.]*$" == name:match "[^.]*$" and other or nil
  end
  return all.nearest(name, names) or same or names[1]
end

local function check(op, name, t, places)
  if not places[name] then
    local other = near(name, places)
    fail(op, ("the module has no tensor '%s'"):format(tostring(name)),
         other and ("one of its names is '%s'"):format(other))
  end
  if not nacre.is_tensor(t) then
    fail(op, ("%s is a %s, not a tensor"):format(name, type(t)))
  end
end

-- A list of tables of tensors by name, of which the first that has a name
-- counts.
local function joined(op, tables)
  if type(tables) ~= "table" then
    fail(op, "tables of tensors by name are expected")
  end
  local list = tables[1] ~= nil and tables or {tables}
  local out = {}
  for _, t in ipairs(list) do
    if type(t) ~= "table" then
      fail(op, ("a table of tensors by name is expected, not a %s")
               :format(type(t)))
    end
    for name, v in pairs(t) do if out[name] == nil then out[name] = v end end
  end
  return out
end

T.define("func.functional_call", "module:module, tensors:any, args:any=nil, "
         .. "kwargs:table=nil -> results",
         "calls module with these tensors, by their names, in place of its "
         .. "own; args is a list of arguments, or one of them",
function(module, tensors, args, kwargs)
  local op = "functional_call"
  local new, places = joined(op, tensors), places_of(module)
  for _, name in ipairs(T.keys(new)) do check(op, name, new[name], places) end
  local list = args
  if args == nil then list = {}
  elseif nacre.is_tensor(args) or not T.is_tree(args) then list = {args} end
  local values = table.pack(table.unpack(list))
  if kwargs then
    values.n = values.n + 1
    values[values.n] = kwargs
  end
  local old = {}
  for name, t in pairs(new) do
    for _, m in ipairs(places[name]) do
      old[#old + 1] = {m.owner, m.key, rawget(m.owner, m.key), t, all.lend(t)}
      rawset(m.owner, m.key, t)
    end
  end
  local results = table.pack(pcall(module, table.unpack(values, 1, values.n)))
  for i = #old, 1, -1 do
    local owner, key, value, t, own = table.unpack(old[i])
    rawset(owner, key, value)
    all.take_back(t, own)
  end
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end)

-- The tensors of all modules by name, stacked. They are leaves.
local function stacked(modules, named, is_parameter)
  local lists, out = {}, {}
  for i, m in ipairs(modules) do
    for name, t in m[named](m) do
      lists[name] = lists[name] or {}
      lists[name][i] = t:detach()
    end
  end
  for _, name in ipairs(T.keys(lists)) do
    local list = lists[name]
    if #list ~= #modules then
      fail("stack_module_state", ("not all modules have %s"):format(name))
    end
    out[name] = nacre.stack(list)
    if is_parameter then out[name]:requires_grad_() end
  end
  return out
end

T.define("func.stack_module_state", "models:any -> parameters, buffers",
         "the parameters and the buffers of several modules of one kind, "
         .. "stacked along dim 1, as two tables by name",
function(modules)
  if type(modules) ~= "table" or #modules == 0 then
    fail("stack_module_state", "takes a list of modules")
  end
  for i, m in ipairs(modules) do
    if type(m) ~= "table" or not m.named_parameters then
      fail("stack_module_state", ("entry %d of the list is a %s, not a module")
                                 :format(i, type(m)))
    end
    if m.__name ~= modules[1].__name then
      fail("stack_module_state", ("module %d is a %s, the first is a %s")
           :format(i, m.__name, modules[1].__name))
    end
  end
  return stacked(modules, "named_parameters", true),
         stacked(modules, "named_buffers")
end)
