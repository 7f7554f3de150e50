-- SPDX-License-Identifier: MIT
--
-- suggestion.lua - what is said of a word that is not known: ", did you mean
-- 'x'?"; and the checks of a table of options and of self.

local host = require "nacre.host"
local facts = require "nacre.tensor_facts"

local suggestion = {}

-- The keys of a table, sorted.
local function keys(t)
  local list = {}
  for name in pairs(t) do list[#list + 1] = name end
  table.sort(list)
  return list
end

-- ", did you mean x?" for the nearest of the known words, a list or the keys of
-- a table; "" if none is near. `form' is "%s" or "'%s'". With `names' the words
-- are names of Lua, compared as host.suggest says.
function suggestion.text(word, known, form, names)
  if known[1] == nil then known = keys(known) end
  local near = host.suggest(tostring(word), known, names)
  return near and (", did you mean " .. form .. "?"):format(near) or ""
end

-- Checks options against kinds[name]: "string", "table", ..., "positive" or, of
-- several, "string or function". An error is that of the caller's caller.
function suggestion.check(o, kinds, head)
  if type(o) ~= "table" then
    error(head .. "options are a table, not a " .. facts.typename(o), 4)
  end
  for name, v in pairs(o) do
    local kind, is = kinds[name], type(v)
    if not kind then
      error(("%sno option '%s'%s"):format(head, tostring(name),
        suggestion.text(name, kinds, "%s")), 4)
    end
    local want = kind == "positive" and "number" or kind
    if not (" " .. want .. " "):find(" " .. is .. " ", 1, true) then
      error(("%soption %s is a %s, not a %s"):format(head, name, want,
        facts.typename(v)), 4)
    elseif kind == "positive" and not (v > 0) then
      error(("%soption %s must be above 0"):format(head, name), 4)
    end
  end
end

-- Fails unless v can be called.
function suggestion.check_function(v, head)
  local meta = debug.getmetatable(v)
  if type(v) == "function" or
     not facts.istensor(v) and type(meta) == "table" and meta.__call then
    return
  end
  error(("%s: takes a function, not %s"):format(
    head, v == nil and "nothing" or "a " .. facts.typename(v)), 0)
end

-- Makes the methods of a class fail for a self that is not one of its objects;
-- `object' is what they are called.
function suggestion.guard_methods(class, object)
  for name, method in pairs(class) do
    if type(method) == "function" and not name:find "^__" then
      class[name] = function(self, ...)
        if debug.getmetatable(self) ~= class then
          error(("%s: self must be a %s, not %s"):format(name, object,
            self == nil and "nothing" or "a " .. facts.typename(self)), 2)
        end
        return method(self, ...)
      end
    end
  end
end

return suggestion
