-- SPDX-License-Identifier: MIT
--
-- python_definitions.lua - translates Python's classes, functions, decorators
-- and `with' to Lua.

local expressions = require "nacre.expression_at"
local unknown_names = require "nacre.unknown_names"
local value_of = require "nacre.stack_frames".value_of

local python_definitions = {}

-- The last `class' that was typed, and the lines of the session before it.
local last_class, lines_before

-- How many inputs there were.
local function input_count()
  local shell = package.loaded["nacre.shell"]
  return shell and #shell.log or 0
end

-- Sets a parameter that is nil to its default.
local function default(name, value)
  if value:find "^%b()$" and value:find "," then
    value = "{" .. value:sub(2, -2) .. "}"
  end
  value = value:gsub("^%a+$", unknown_names.constants)
  if value == "nil" or not expressions.first(value) then return nil end
  return value == "true" and
         ("if %s == nil then %s = true end"):format(name, name) or
         ("%s = %s or %s"):format(name, name, expressions.first(value))
end

-- function f(a, x=1): a, x and x = x or 1; nil if no parameter has a default
function python_definitions.defaults(head, params)
  local names, sets = {}, {}
  for _, part in ipairs(expressions.items(params)) do
    local name, value = part:match "^%s*([%a_][%w_]*)%s*(.-)%s*$"
    if not name then return nil end
    names[#names + 1] = name
    value = value:match "^=%s*(.+)$"
    sets[#sets + 1] = value and default(name, value)
  end
  if not sets[1] then return nil end
  return ("%s(%s) %s ... end"):format(head:match "^%s*(.-)%s*$",
                              table.concat(names, ", "),
                              table.concat(sets, "; "))
end

-- What a class of Python derives from, as the beginning of Lua's class.
local function class_of(name, base)
  local last = base:match "[%w_]*$"
  local v = value_of(base)
  if last == "Module" or last == "LightningModule" then
    return ('%s = nacre.nn.Module "%s"'):format(name, name), true
  elseif last == "Dataset" then
    return ('%s = nacre.utils.data.Dataset "%s"'):format(name, name)
  elseif type(v) == "table" and rawget(v, "__name") then
    return ('%s = %s:extend "%s"'):format(name, base, name), true
  end
  return ("%s = {}"):format(name), true
end

local function class(rest)
  local name, base = rest:match "^([%w_]+)%s*%(?%s*([%w_.]*)"
  if not name then return nil end
  last_class, lines_before = name, input_count()
  local head, forward = class_of(name, base)
  return ("%s; function %s:%s ... end"):format(head, name,
           forward and "forward(x)" or "get(i)")
end

-- The class of which a method is defined: the last one of the session.
local function current_class()
  for input, i in require "nacre.session_log".recent() do
    if last_class and i <= lines_before then break end
    local found
    for name, text in input:gmatch '([%a_][%w_]*)%s*=[^=\n]-"([%w_]+)"' do
      local v = name == text and rawget(_G, name)
      if type(v) == "table" and rawget(v, "__name") == name then
        found = name
      end
    end
    if found then return found end
  end
  return last_class or "Net"
end

-- What Python calls the methods that Lua calls otherwise.
local special = {__init__ = "init", __len__ = "len", __getitem__ = "get",
                 __call__ = "forward"}

-- def forward(self, x):
local function definition(rest)
  local name, params = rest:match "^([%w_]+)%s*(%b())"
  if not name then return "function f() ... end" end
  params = params:sub(2, -2):gsub("%s*:%s*[%a_][%w_.%[%]]*", "")
  local own, more = params:match "^%s*(self)%s*,?%s*(.-)%s*$"
  if own then
    name, params = ("%s:%s"):format(current_class(), special[name] or name),
                   more
  end
  local head = "function " .. name
  return python_definitions.defaults(head, params) or
         ("%s(%s) ... end"):format(head, params)
end

-- The call of a function of the library that runs a block, with the first
-- arguments that it takes; nil if the path is none.
local function block_call(path, args)
  local last = path:match "[%w_]+$"
  local named, list = {}, {}
  for _, item in ipairs(expressions.items(args)) do
    local name, value = item:match "^%s*([%a_][%w_]*)%s*=%s*(.-)%s*$"
    if value then
      value = value:gsub("^%a+$", unknown_names.constants)
    end
    if name == "device_type" then table.insert(list, 1, value)
    elseif name then named[#named + 1] = ("%s=%s"):format(name, value)
    elseif item:find "%S" then
      list[#list + 1] = item:match "^%s*(.-)%s*$"
                            :gsub("^%a+$", unknown_names.constants)
    end
  end
  if last == "autocast" and not (list[1] or ""):find "^[\"']" then
    table.insert(list, 1, '"cuda"')
  end
  if named[1] then list[#list + 1] = "{" .. table.concat(named, ", ") .. "}" end
  local ours = unknown_names.of_library(path)
  if not ours then path = unknown_names.elsewhere(last) or path end
  list[#list + 1] = ""
  return ("%s(%s"):format(path, table.concat(list, ", "))
end

-- with torch.no_grad(): f(x); the same with do ... end
local function with(rest)
  local path, args, tail = rest:match "^([%w_.]+)%s*(%b())(.*)$"
  local body = tail and (tail:match "^[^:]*:%s*(.-)%s*$" or
                         tail:match "^%s*do%s+(.-)%s*end%s*$")
  if path == "open" then
    local name = rest:match "%f[%w_]as%s+([%a_][%w_]*)" or "f"
    return ("%s = io.open%s; ...; %s:close()"):format(name, args, name)
  end
  body = expressions.methods(body or "", value_of)
  if not load(body, "=", "t") then
    body = load("return " .. body, "=", "t") and "return " .. body or ""
  end
  return ("%sfunction() %s end)"):format(
    path and block_call(path, args:sub(2, -2)) or "f(",
    body ~= "" and body or "...")
end

-- @torch.no_grad()
function python_definitions.decorator(rest)
  local path, args = rest:match "^@([%a_][%w_.]*)%s*(%b())%s*$"
  path = path or rest:match "^@([%a_][%w_]*%.[%w_.]+)%s*$"
  if not path and not rest:find "^@%l+method%s*$" and
     not rest:find "^@property%s*$" then return nil end
  if path and (unknown_names.of_library(path) or
               path:find "^torch%.") then
    return block_call(path, (args or "()"):sub(2, -2)) ..
           "function() ... end)"
  end
  return "Lua has no decorators: f = decorate(f) calls one"
end

local words = {class = class, def = definition, with = with}

-- What is written for a line that begins with this word of Python and goes on
-- with `rest'; nil if the word is none of these.
function python_definitions.of(word, rest)
  local translate = words[word]
  return translate and translate(rest)
end

return python_definitions
