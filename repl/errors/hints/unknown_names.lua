-- SPDX-License-Identifier: MIT
--
-- unknown_names.lua - names that do not exist: what was meant, by a slip of the
-- keyboard, by its place, or in another library (other_libraries.lua).

local host = require "nacre.host"
local istensor = require "nacre.styled_output".istensor
local phrases = require "nacre.expression_at"
local words = require "nacre.other_libraries"

local nacre = package.loaded.nacre or _G.nacre

local names = {}

-- Constants of other languages.
names.constants = {None = "nil", null = "nil", NULL = "nil",
                   undefined = "nil", True = "true", TRUE = "true",
                   False = "false", FALSE = "false"}

-- A function of the library, which may be made when it is first asked for.
function names.offers(name)
  local ok, v = pcall(function() return nacre[name] end)
  return ok and v ~= nil
end

-- The key of t that is nearest to a word.
function names.nearest(word, t)
  local list = t == nacre and nacre._names() or {}
  for name in next, t do
    if type(name) == "string" and not name:find "^_" then
      list[#list + 1] = name
    end
  end
  table.sort(list)
  local found = host.suggest(word, list, true)
  return (t ~= nacre or found and names.offers(found)) and found or nil
end

-- "no variable 'nacer', did you mean 'nacre'?"
function names.meant(text, name)
  return name and ("%s, did you mean '%s'?"):format(text, name) or text
end

-- Where a name that `nacre' or a part of it lacks is, as nacre.conv2d is.
local parts = {"", "nn.functional.", "linalg.", "autograd.", "cuda."}

local special = {BCELoss = "binary_cross_entropy",
                 BCEWithLogitsLoss = "binary_cross_entropy_with_logits"}

-- A class's name as that of its function: MaxPool2d, LeakyReLU, NLLLoss.
local function forms(name)
  local snake = name:gsub("ReLU", "Relu"):gsub("(%u)(%u%l)", "%1_%2")
                    :gsub("([%l%d])(%u)", "%1_%2"):lower()
  return {name, name:lower(), special[name] or snake,
          (snake:gsub("_loss$", "")), (snake:gsub("%d+d$", ""))}
end

-- The path of the function that a name, or a class's name, is elsewhere.
function names.elsewhere(name)
  local list = name:find "%u" and forms(name) or {name}
  for _, part in ipairs(parts) do
    local t = nacre
    for word in part:gmatch "[%w_]+" do t = t[word] end
    for _, form in ipairs(list) do
      local ok, v = pcall(function() return t[form] end)
      if ok and v ~= nil then return "nacre." .. part .. form end
    end
  end
end

-- A global that is nil.
function names.novariable(name)
  local text = ("no variable '%s'"):format(name)
  if name == "exit" or name == "quit" then return text .. ", :quit leaves" end
  local word = names.constants[name]
  if word then return text .. ", did you mean " .. word .. "?" end
  if names.offers(name) then return names.meant(text, "nacre." .. name) end
  return names.meant(text, names.nearest(name, _G))
end

-- What stands before a name on a line, "x:" or "nacre.linalg.", and the
-- arguments that it is given there.
local function use(line, name)
  local at = line:find("%f[%w_]" .. name:gsub("%.", "%%.") .. "%f[^%w_]")
  if not at then return nil end
  local head, mark = line:sub(1, at - 1):match "^(.-)%s*([.:])%s*$"
  local owner = head and (phrases.ending(head) or false)
  return owner, line:match("^%s*(%b())", at + #name), mark
end

-- A line of other_libraries.lua with the user's own operands in place of x and y.
local function own(code, x, y)
  local set = {x = x, y = y}
  local text = (" " .. code):gsub('([^%w_".])([xy])%f[^%w_]',
    function(before, v) return before .. (set[v] or v) end):sub(2)
  return (load(text, "=", "t") or load("return " .. text, "=", "t") or
          text:find "^:") and text or code
end

local function path(text)
  return text and text:match "^%s*([%a_][%w_%.]*)%s*$"
end

-- The line for a word as the user wrote it.
local function spelled(entry, line, value)
  local code = entry.code
  local owner, args, mark = use(line, entry.name)
  local object = path(owner or nil)
  local tensor = mark == ":" or object and istensor(value(object))
  local function_, method = code:match "^([%a_][%w_%.]*)%(",
                            code:match "^x:([%w_]+)%("
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
  if tensor then return own(code, owner or nil) end
  local a, b = (args or ""):match "^%(%s*([%w_%.]+)%s*,?%s*([%w_%.]*)"
  a = path(a) and istensor(value(a)) and a or nil
  b = path(b) and istensor(value(b)) and b or nil
  return a and own(code, a, b) or code
end

-- What another library's name is here, for a line that has it; nil if that is
-- not known.  `part' is where it was looked for: "nn", "" for the library.
function names.hint(name, line, value, part)
  local entry = words.find(name)
  if not entry or entry.part and entry.part ~= part then return nil end
  local code = entry.code and spelled(entry, line, value)
  local owner, _, mark = use(line, name)
  local note = entry.note
  if note and code and owner and mark == ":" then
    note = note:gsub("%f[%w_]x%f[^%w_.\"]", (owner:gsub("%%", "%%%%")))
  end
  return words.text(entry, code, note)
end

-- The same path here, with the arguments it has on the line: np.linalg.norm(x)
local function samepath(path, line)
  local ok, v = pcall(function()
    local t = nacre
    for word in path:gmatch "[%w_]+" do t = t[word] end
    return t
  end)
  local _, args = use(line, path)
  return ok and v ~= nil and "nacre." .. path .. (args or "") or nil
end

-- The same for a path, "random.choice" behind "np.": what is known of it, the
-- same path, what a part of ours has by its last name, what is known of the
-- names before.  `whole' is not only asked for its later names.
function names.ofpath(path, line, value, part, whole)
  local last = path:match "[%w_]+$"
  local known = names.hint(path, line, value, part) or
                names.hint(last, line, value, part) or
                (whole or last ~= path) and
                (samepath(path, line) or names.elsewhere(last))
  while not known and path:find "%." do
    path = path:match "^(.*)%."
    known = names.hint(path:match "[%w_]+$", line, value, part)
  end
  return known or nil
end

return names
