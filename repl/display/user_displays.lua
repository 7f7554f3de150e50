-- SPDX-License-Identifier: MIT
--
-- user_displays.lua - the forms that shell.show has given to the user's values:
-- those of a class, tensors of a dtype, or those that a function picks.

local facts = require "nacre.tensor_facts"
local user_hooks = require "nacre.user_hooks"

local user_displays = {}

local rows = {}               -- {of = a class, a dtype or a function, show = f}

-- Sets the function for a kind of values; nil removes it. What was set last is
-- asked first.
function user_displays.set(of, show)
  for i = #rows, 1, -1 do
    if rawequal(rows[i].of, of) then table.remove(rows, i) end
  end
  if show then table.insert(rows, 1, {of = of, show = show}) end
end

-- Is v an object of a class, or of one that is derived from it? From raw
-- fields.
local function is_object(v, class)
  local meta, left = debug.getmetatable(v), 20
  while type(meta) == "table" and left > 0 do
    local index = rawget(meta, "__index")
    if rawequal(meta, class) or rawequal(index, class) then return true end
    local higher = type(index) == "table" and not rawequal(index, meta)
    meta, left = higher and index or debug.getmetatable(meta), left - 1
  end
  return false
end

local function fits(row, v, tensor)
  local of = row.of
  if type(of) == "table" then return not tensor and is_object(v, of) end
  if not tensor then return false end
  if of == "tensor" or of == v.dtype then return true end
  if type(of) ~= "function" then return false end
  local ok, answer = user_hooks.call("the condition of shell.show", of, v)
  return ok and answer
end

-- What the user's function for a value gives, how = "text", "html" or "svg";
-- nil if there is none, or it fails or gives no text.
local function asked(v, how)
  local tensor = facts.istensor(v)
  if not tensor and type(v) ~= "table" and type(v) ~= "userdata" then
    return nil
  end
  for _, row in ipairs(rows) do
    if fits(row, v, tensor) then
      local ok, text = user_hooks.call("shell.show", row.show, v, how)
      if ok and type(text) == "string" then return text end
      return nil
    end
  end
end

function user_displays.of(v, how) return rows[1] and asked(v, how) end

return user_displays
