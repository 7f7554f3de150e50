-- SPDX-License-Identifier: MIT
-- module_state.lua - state_dict and load_state_dict of an nn.Module. The names
-- are those of PyTorch: parts of a list count from 0.
local all = ...
all.require("nacre.module", "nacre.module_tensors")
local fail, Module, each_tensor = all.fail, all.Module, all.each_tensor

-- The order of a state is that of the module.
local function ordered_pairs(state)
  local order, i = getmetatable(state).order, 0
  local rest, named = nil, {}
  for _, name in ipairs(order) do named[name] = true end
  return function()
    while i < #order do
      i = i + 1
      if rawget(state, order[i]) ~= nil then
        return order[i], rawget(state, order[i])
      end
    end
    repeat rest = next(state, rest) until rest == nil or not named[rest]
    if rest ~= nil then return rest, state[rest] end
  end
end

-- A table from name to tensor, with the memory of the module and without
-- history; shared tensors are there under each name.
function Module:state_dict()
  local order = {}
  local state = setmetatable({}, {__pairs = ordered_pairs, order = order})
  each_tensor(self, function(name, m)
    if m.kind ~= "plain" then
      order[#order + 1] = name
      state[name] = m.value:detach()
    end
  end)
  return state
end

-- ---- what does not fit

local MOST = 4

local function shape(t) return "[" .. table.concat(t:size(), "x") .. "]" end

local function some(list)
  local more = #list > MOST and (" and %d more"):format(#list - MOST) or ""
  return table.concat(list, ", ", 1, math.min(MOST, #list)) .. more
end

-- A prefix that all names of the state have more, or less, than those of the
-- module; nil if there is none.
local function prefix_hint(own, state, unexpected)
  local first = unexpected[1]
  local at = first and first:find(".", 1, true)
  while at do
    if own[first:sub(at + 1)] then
      local prefix = first:sub(1, at)
      return ('the names begin with "%s"%s'):format(prefix,
        prefix ~= "module." and "" or rawget(state, "n_averaged") and
        ": it is the state of an AveragedModel" or
        ": it was saved from a DataParallel")
    end
    at = first:find(".", at + 1, true)
  end
end

-- The names whose shapes differ, and whether all are transposed.
local function compare(own, state, names)
  local missing, wrong, transposed = {}, {}, true
  for _, name in ipairs(names) do
    local t, s = own[name], state[name]
    if s == nil then missing[#missing + 1] = name
    elseif not nacre.is_tensor(s) then
      wrong[#wrong + 1] = ("%s is a %s, not a tensor"):format(name, type(s))
      transposed = false
    elseif shape(t) ~= shape(s) then
      wrong[#wrong + 1] = ("%s is %s, but that of the state is %s")
                          :format(name, shape(t), shape(s))
      transposed = transposed and t:dim() == 2 and s:dim() == 2 and
                   shape(t:t()) == shape(s)
    end
  end
  return missing, wrong, transposed
end

local function fail_to_load(self, missing, unexpected, wrong, own, state,
                            transposed)
  local lines = {self.__name .. " and the state do not match"}
  local function say(what, list)
    if #list > 0 then lines[#lines + 1] = ("  %s: %s"):format(what, some(list))
    end
  end
  say("only in the module", missing)
  say("only in the state", unexpected)
  say("other shape", wrong)
  local hint = #wrong > 0 and transposed and "the matrices are transposed"
  if #wrong == 0 then hint = prefix_hint(own, state, unexpected) end
  fail("load_state_dict", table.concat(lines, "\n"), hint or nil)
end

local loading = all.parse("load_state_dict",
                          "strict:bool=true, assign:bool=false -> table")

-- Copies a state into the module's tensors; `state' may be the name of a file.
-- Further arguments: strict=true, assign=false (takes the tensors of the state
-- instead). Gives {missing_keys=, unexpected_keys=}; with strict both are
-- empty.
function Module:load_state_dict(state, ...)
  local strict, assign = table.unpack(all.read("load_state_dict", loading, ...))
  if type(state) == "string" then state = nacre.load(state) end
  if type(state) ~= "table" then
    fail("load_state_dict", "a table of tensors or the name of a file is "
                            .. "expected, not a " .. type(state))
  end
  for name, m in self:named_modules() do
    if m._load_shapes then
      m:_load_shapes(state, name == "" and "" or name .. ".")
    end
  end
  local own, names, where = {}, {}, {}
  each_tensor(self, function(name, m)
    if m.kind ~= "plain" then
      names[#names + 1] = name
      own[name], where[name] = m.value, m
    end
  end)
  local missing, wrong, transposed = compare(own, state, names)
  local unexpected = {}
  for name in pairs(state) do
    if own[name] == nil then unexpected[#unexpected + 1] = tostring(name) end
  end
  table.sort(unexpected)
  if #wrong > 0 or strict and #missing + #unexpected > 0 then
    fail_to_load(self, missing, unexpected, wrong, own, state, transposed)
  end
  for _, name in ipairs(names) do
    if not assign and state[name] and own[name].device == "meta" then
      fail("load_state_dict", ("%s is on the meta device and cannot keep "
           .. "values"):format(name),
           "net:load_state_dict(state, {assign = true}) takes the tensors of "
           .. "the state; net:to_empty(\"cpu\") gives memory")
    end
  end
  nacre.no_grad(function()
    for _, name in ipairs(names) do
      local t, s = own[name], state[name]
      if s and assign then
        local m = where[name]
        local new = s:detach():requires_grad_(t.requires_grad)
        m.owner[m.key] = m.kind == "parameter" and all.declare(new) or new
      elseif s then t:copy_(s) end
    end
  end)
  return {missing_keys = missing, unexpected_keys = unexpected}
end
