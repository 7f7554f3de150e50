-- SPDX-License-Identifier: MIT
--
-- result_forms.lua - the results of a method for an object, by shapes alone.

local facts = require "nacre.tensor_facts"
local listeners = require "nacre.op_listeners"

local result_forms = {}

-- "a:sum() is float32[] here; a:sum(1) is float32[4]"; nil if the method needs
-- arguments other than dimensions.
function result_forms.of(path, object, info)
  local first = info.params and info.params[2]
  if not info.params or info.kind == "function" or info.inplace then
    return nil
  end
  local calls = {{}}
  if first and first.type:find "^dim" then
    for d = 1, math.min(object:dim(), 3) do calls[#calls + 1] = {d} end
  end
  local parts = {}
  for _, args in ipairs(calls) do
    local ok, _, y = pcall(listeners.steps, "shape", "steps dry",
                           object[info.name], object, table.unpack(args))
    if not ok or not facts.istensor(y) then break end
    parts[#parts + 1] = ("%s:%s(%s) is %s%s"):format(path, info.name,
      args[1] or "", facts.kind(y), #parts == 0 and " here" or "")
  end
  return #parts > 0 and table.concat(parts, "; ") or nil
end

return result_forms
