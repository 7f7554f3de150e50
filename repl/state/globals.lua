-- SPDX-License-Identifier: MIT
--
-- globals.lua - what reading an undefined global returns: a result that is
-- held weakly, an error under --strict, otherwise nil. A metatable that the
-- user sets on _G is left alone.

local globals = {}

local finders = {}            -- in this order: "results", "strict"

local function find(_, name)
  for _, key in ipairs {"results", "strict"} do
    local value
    if finders[key] then value = finders[key](name) end
    if value ~= nil then return value end
  end
end

local ours = {__index = find}

-- Could a metatable that the user has set on _G give undefined globals?
function globals.are_foreign()
  local meta = debug.getmetatable(_G)
  return meta ~= nil and meta ~= ours and rawget(meta, "__index") ~= nil
end

-- Sets find(name) to be called for globals that are nil; nil removes it.
function globals.missing(key, finder)
  if finders[key] == finder then return end
  finders[key] = finder
  local meta = debug.getmetatable(_G)
  if meta ~= nil and meta ~= ours then return end
  debug.setmetatable(_G, next(finders) and ours or nil)
end

-- --strict: an undefined global is an error, except the names of prompts and
-- results.
function globals.strict()
  globals.missing("strict", function(name)
    if type(name) ~= "string" or name:find "^_+P?R?O?M?P?T?2?$" or
       name == "ans" then
      return nil
    end
    error(("no variable '%s' (--strict)"):format(name), 3)
  end)
end

return globals
