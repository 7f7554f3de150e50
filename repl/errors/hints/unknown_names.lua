-- SPDX-License-Identifier: MIT
--
-- unknown_names.lua - names that do not exist: the nearest existing name, the
-- same name in another part of the library, or its equivalent for another
-- library's name (other_libraries.lua).

local host = require "nacre.host"
local istensor = require "nacre.tensor_facts".istensor
local expressions = require "nacre.expression_at"
local names = require "nacre.python_names"
local other_libraries = require "nacre.other_libraries"

local nacre = package.loaded.nacre or _G.nacre

local unknown_names = {}

-- Is this a function of the library? Asking may create it.
function unknown_names.offers(name)
  local ok, v = pcall(function() return nacre[name] end)
  return ok and v ~= nil
end

-- The key of t that is closest to a word.
function unknown_names.nearest(word, t)
  local list = t == nacre and nacre._names() or {}
  for name in next, t do
    if type(name) == "string" and not name:find "^_" then
      list[#list + 1] = name
    end
  end
  table.sort(list)
  local found = host.suggest(word, list, true)
  return (t ~= nacre or found and unknown_names.offers(found)) and found or nil
end

-- "no variable 'nacer', did you mean 'nacre'?"
function unknown_names.did_you_mean(text, name)
  return name and ("%s, did you mean '%s'?"):format(text, name) or text
end

-- Where a name that `nacre' or a part of it does not have is looked up
-- instead: nacre.conv2d is in nn.functional.
local parts = {"", "nn.functional.", "nn.", "linalg.", "autograd.", "cuda.",
               "optim.", "optim.lr_scheduler.", "optim.swa_utils.",
               "nn.init.", "nn.utils.", "utils.data.", "amp.", "utils.",
               "distributions.", "distributions.transforms."}

-- The value of a path of the library, nn.Softmax, whose parts are made when
-- they are asked for; nil if the path begins elsewhere.
function unknown_names.of_library(path)
  local root, rest = path:match "^([%a_][%w_]*)(.*)$"
  local v = rawget(_G, root)
  if type(v) ~= "table" then return nil end -- asking for parts makes them
  local ours = rawequal(v, nacre)
  for _, part in ipairs(parts) do
    local t = nacre
    for word in part:gmatch "[%w_]+" do t = t[word] end
    ours = ours or rawequal(v, t)
  end
  local ok, found = pcall(function()
    for word in rest:gmatch "[%w_]+" do v = v[word] end
    return v
  end)
  return ours and ok and found or nil
end

-- The path of the function or class with this name in another part of the
-- library.
function unknown_names.elsewhere(name)
  for _, form in ipairs {name, name:lower()} do
    for _, part in ipairs(parts) do
      local t = nacre
      for word in part:gmatch "[%w_]+" do t = t[word] end
      local ok, v = pcall(function() return t[form] end)
      if ok and v ~= nil then return "nacre." .. part .. form end
    end
  end
end

-- The name in a part of the library, "nn", that differs only in capitals and
-- "_" from a name, or is longer: nn.Relu is nn.ReLU, nn.CrossEntropy is
-- nn.CrossEntropyLoss.
function unknown_names.in_part(part, name)
  local function plain(text) return (text:lower():gsub("_", "")) end
  local lower = ("nacre.%s.%s"):format(part, name:lower())
  if name ~= name:lower() and unknown_names.of_library(lower) then
    return lower
  end
  local word, longer = plain(name), nil
  local names = nacre._names(true)
  table.sort(names)
  for _, path in ipairs(names) do
    local last = path:match("^" .. part:gsub("%.", "%%.") .. "%.([%w_]+)$")
    local other = last and plain(last)
    if other == word then return "nacre." .. path end
    if other and other:sub(1, #word) == word and
       (#word > 4 or last:find("^%u", #word + 1)) and
       (not longer or #path < #longer) then
      longer = path
    end
  end
  return longer and "nacre." .. longer
end

-- The message for a global that is nil.
function unknown_names.novariable(name)
  local text = ("no variable '%s'"):format(name)
  if name == "exit" or name == "quit" then return text .. ", :quit leaves" end
  local word = names.constants[name]
  if word then return text .. ", did you mean " .. word .. "?" end
  if unknown_names.offers(name) then
    return unknown_names.did_you_mean(text, "nacre." .. name)
  end
  local place = name:find "[%u_]" and unknown_names.elsewhere(name)
  return unknown_names.did_you_mean(text,
                                    place or unknown_names.nearest(name, _G))
end

-- The text before a name on a line, "x:" or "nacre.linalg.", and its arguments
-- there.
local function context(line, name)
  local code = expressions.read(line)
  local dots = select(2, name:gsub("%.", ""))
  for i in ipairs(code) do
    local last = i + 2 * dots
    if code[last] and code:text(i, last) == name then
      local call = code:call(last)
      local args, first = call and call.args, code:first(i)
      if not code:is(i - 1, ".", ":") then return nil, args end
      return first and code:text(first, i - 2) or false, args, code[i - 1].text
    end
  end
end

-- A line of other_libraries.lua with the user's operands in place of x and y.
local function with_operands(code, x, y)
  local set = {x = x, y = y}
  local text = (" " .. code):gsub('([^%w_".])([xy])%f[^%w_]',
    function(before, v) return before .. (set[v] or v) end):sub(2)
  return (load(text, "=", "t") or load("return " .. text, "=", "t") or
          text:find "^:") and text or code
end

local function path(text)
  return text and text:match "^%s*([%a_][%w_%.]*)%s*$"
end

-- The line for a word, with the user's own operands.
local function spell(entry, line, value)
  local code = entry.code
  local owner, args, mark = context(line, entry.name)
  local object = path(owner or nil)
  local tensor = mark == ":" or object and istensor(value(object))
  local function_, method = code:match "^([%a_][%w_%.]*)%(",
                            code:match "^x:([%w_]+)%("
  args = args and args:gsub("^%((%l+)%)$", function(word)  -- x.astype(float)
    local dtype = names.dtypes[word]
    return dtype and rawget(_G, word) == nil and ('("%s")'):format(dtype) or nil
  end)
  if args and args:find "^%(%s*%)$" then
    args = not tensor and "()" or nil   -- x:power(): of 2, as the line has it
  end
  if entry.same and args and owner ~= nil then
    if tensor and owner then
      local name = method or function_:match "[%w_]+$"
      local ok = pcall(function() return nacre.zeros(1)[name] end)
      if ok then return owner .. ":" .. name .. args end
    elseif function_ and not tensor then
      return function_ .. args
    end
  elseif entry.same and args and function_ then
    return function_ .. args
  end
  if tensor then return with_operands(code, owner or nil) end
  local a, b = (args or ""):match "^%(%s*([%w_%.]+)%s*,?%s*([%w_%.]*)"
  a = path(a) and istensor(value(a)) and a or nil
  b = path(b) and istensor(value(b)) and b or nil
  return a and with_operands(code, a, b) or code
end

-- The equivalent of another library's name on a line; nil if none is known.
-- `part' is where it was looked up: "nn", or "" for the library itself.
function unknown_names.hint(name, line, value, part)
  local entry = other_libraries.find(name)
  if not entry or entry.part and entry.part ~= part then return nil end
  local code = entry.code and spell(entry, line, value)
  local owner, _, mark = context(line, name)
  local note = entry.note
  if note and code and owner and mark == ":" then
    note = note:gsub("%f[%w_]x%f[^%w_.\"]", (owner:gsub("%%", "%%%%")))
  end
  return other_libraries.text(entry, code, note)
end

-- The same path in this library, with the arguments on the line:
-- np.linalg.norm(x)
local function same_path(path, line)
  local ok, v = pcall(function()
    local t = nacre
    for word in path:gmatch "[%w_]+" do t = t[word] end
    return t
  end)
  local _, args = context(line, path)
  return ok and v ~= nil and "nacre." .. path .. (args or "") or nil
end

-- The function of that name in another part, with the arguments on the line.
local function called_elsewhere(name, path, line)
  local place = unknown_names.elsewhere(name)
  local _, args = context(line, path)
  return place and place .. (args and #args < 80 and args or "")
end

-- The same for a path, "random.choice" after "np.". Tries in this order: the
-- path itself in other_libraries, the same path here, the last name in a part
-- of the library, the names before the last. `whole': is the full path to be
-- tried?
function unknown_names.ofpath(path, line, value, part, whole)
  local last = path:match "[%w_]+$"
  for word in path:gmatch "([%w_]+)%." do     -- cudnn.version
    local entry = other_libraries.find(word)
    if entry and not entry.code and (not entry.part or entry.part == part) then
      return other_libraries.text(entry)
    end
  end
  local known = unknown_names.hint(path, line, value, part) or
                unknown_names.hint(last, line, value, part) or
                (whole or last ~= path) and
                (same_path(path, line) or called_elsewhere(last, path, line))
  while not known and path:find "%." do
    path = path:match "^(.*)%."
    known = unknown_names.hint(path:match "[%w_]+$", line, value, part)
  end
  return known or nil
end

return unknown_names
