-- SPDX-License-Identifier: MIT
--
-- display.lua - tensors (see bindings/lib/display) and other values as text.

local facts = require "nacre.tensor_facts"
local tensors = require "nacre.tensor_text"
local user_displays = require "nacre.user_displays"
local values = require "nacre.lua_values"

local nacre = package.loaded.nacre or _G.nacre

local display = setmetatable({}, {__index = tensors})

-- Is a tensor one of the variables?
local function is_variable(t, names)
  for name, v in next, names do
    if rawequal(v, t) and name ~= "ans" and
       not (type(name) == "string" and name:find "^_+$") then return true end
  end
  return false
end

-- The name (among `names', by default the globals) of the tensor that t is a
-- view of: one with the same memory that shows more of it, or as much if t is
-- not a variable itself.
function display.baseof(t, names)
  names = names or _G
  local best, most = nil, 0
  local id, n, dense = nacre._storage_id(t), t:numel(), t:is_contiguous()
  if dense and not is_variable(t, names) then n = n - 1 end
  for name, v in next, names do
    if type(name) == "string" and facts.istensor(v) and not rawequal(v, t) and
       not name:find "^_+$" and name ~= "ans" and
       nacre._storage_id(v) == id and v:is_contiguous() and
       (v:numel() > n or not dense) then
      local m = v:numel()
      if m > most or m == most and name < best then best, most = name, m end
    end
  end
  return best
end

-- "sum(self, dim=nil) -> tensor", without self if it is called as a method;
-- what is only a method is written "t:item()" or "stream:query()".
function display.signature(info, method)
  local text = info.signature or info.name .. "(...)"
  local name = info.name .. (info.inplace and "_" or "")
  local only = info.method and not info["function"]
  if method or only then
    text = text:gsub("%(self,?%s*", "(", 1)
    local owner
    owner, name = name:match "^(.-)[.:]?([%w_]+)$"
    if only and not method then
      name = (owner == "" and "t" or owner:match("[%w_]+$"):lower()) ..
             ":" .. name
    end
  end
  return name .. (text:match "[%({].*" or "")
end

-- A function with its parameters: "function sum(self, dim=nil) -> tensor",
-- "function(x, y) at stdin:1"; nil if they are unknown.
local function of_function(f)
  local info = nacre._info(f)
  if info then
    return "function " .. display.signature(info)
  end
  local at = debug.getinfo(f, "S")
  if at.what == "C" then return nil end
  return ("function%s at %s:%d"):format(
    require "nacre.lookup".parameters(f), at.short_src, at.linedefined)
end

-- The text of a result; opts are those of tensor_text.lua.
function display.show(value, opts)
  opts = tensors.options(opts)
  local own = user_displays.of(value, "text")
  if own then return own end
  if facts.istensor(value) then return tensors.tensor(value, opts) end
  if type(value) == "function" then
    return of_function(value) or tostring(value)
  end
  opts.own = function(v) return user_displays.of(v, "text") end
  opts.brief = function(v)
    if type(v) == "function" then return of_function(v) or "function" end
    return facts.istensor(v) and tensors.brief(v)
  end
  return values.show(value, opts)
end

return display
