-- SPDX-License-Identifier: MIT
--
-- rewrite_hint.lua - fills in hints that end in "..." with the user's own
-- arguments: zeros(..., {device="cuda"}) becomes nacre.zeros(8,
-- {device="cuda"}).

local unknown_names = require "nacre.unknown_names"
local expressions = require "nacre.expression_at"

local nacre = package.loaded.nacre or _G.nacre

local rewrite_hint = {}

-- The only call of a name on a line, with the list of its arguments, or nil.
local function only_call(line, name)
  local list = expressions.calls(line, name)
  local call = #list == 1 and list[1]
  if not call or not call.owner or not call.args:find "^%(" then return nil end
  call.args = expressions.arguments(call.args)
  return call
end

-- add(..., {alpha=0.1}): moves a positional argument into the table.
local function named_argument(o, line)
  local op, options = o.hint:match "^([%w_.]+)%(%.%.%., (%b{})%)$"
  local call = op and only_call(line, op:match "[%w_]+$")
  if not call then return nil end
  local list, _, given = call.args, options:gsub("=", "")
  local last = list[#list]
  if last and last:find "^{%s*[%a_][%w_]*%s*=" then
    options = options:sub(1, -2) .. ", " .. last:sub(2)
    list[#list] = nil
  end
  for _ = 1, given do list[#list] = nil end
  list[#list + 1] = options
  return ("%s%s%s(%s)"):format(call.owner, call.mark, call.name,
                               table.concat(list, ", "))
end

-- t:abs_(...) for nacre.abs_(x); "" if x is a constant, which has no methods
local function as_method(o, line)
  local name = o.hint:match "^t:([%w_]+)%(%.%.%.%)$"
  local call = name and only_call(line, name)
  if not call or call.mark ~= "." or not call.args[1] then return nil end
  if call.args[1]:find "^[%d\"'{]" then return "" end
  return ("%s:%s(%s)"):format(expressions.enclosed(call.args[1]), name,
                              table.concat(call.args, ", ", 2))
end

-- nacre.searchsorted(...) for x:searchsorted(y), nacre.cat{\2 0, ...}
local function as_function(o, line)
  local path, open = o.hint:match "^(nacre[%w_.]*)([({])[\2%w, ]*%.%.%.[)}]$"
  local call = path and only_call(line, path:match "[%w_]+$")
  if not call or call.mark ~= ":" then return nil end
  local info = nacre._info(path:match "^nacre%.(.*)$")
  local kind = info and info.params and info.params[1] and
               info.params[1].type or "tensor"
  if not kind:find "^tensor" and kind ~= "operand" then
    local like = unknown_names.offers(call.name .. "_like")
    return like and ("%s_like(%s)"):format(path, call.owner) or nil
  end
  table.insert(call.args, 1, call.owner)
  return path .. open .. table.concat(call.args, ", ") ..
         (open == "(" and ")" or "}")
end

-- save("x.npy", t): keeps the name the user gave
local function save_call(o, line)
  local head = o.hint:match "^(nacre%.save%(%b\"\", )t%)$"
  local call = head and only_call(line, "save")
  return call and call.args[1] and head .. call.args[1] .. ")"
end

-- The hint of an error at `line' with the user's own arguments, if it has
-- them.
function rewrite_hint.hint(o, line)
  if not o.hint then return nil end
  if not o.hint:find("...", 1, true) then
    return save_call(o, line) or o.hint
  end
  local hint = named_argument(o, line) or as_method(o, line) or
               as_function(o, line) or
               o.hint
  return hint ~= "" and hint or nil
end

return rewrite_hint
