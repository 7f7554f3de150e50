-- SPDX-License-Identifier: MIT
--
-- foreign_definitions.lua - translates Python's classes, functions, decorators,
-- `with' and imports to Lua. A line of them is the head of a block, so "..."
-- stands for what follows.

local expressions = require "nacre.expression_at"
local names = require "nacre.python_names"
local other_libraries = require "nacre.other_libraries"
local unknown_names = require "nacre.unknown_names"
local value_of = require "nacre.stack_frames".value_of

local definitions = {words = {}}
local words = definitions.words

-- The last `class' that was typed, and the lines of the session before it.
local last_class, lines_before, last_is_plain

-- How many inputs there were.
local function input_count()
  return #require "nacre.session_log".entries
end

-- The text says it all: nothing else of the line is translated.
local function say(p, text)
  p.found.said = text
  p.fail()
end

--
-- Functions
--

-- Sets a parameter that is nil to its default.
local function default(name, value)
  if value == "nil" then return nil end
  return value == "true" and
         ("if %s == nil then %s = true end"):format(name, name) or
         ("%s = %s or %s"):format(name, name, value)
end

-- The parameters up to `close', "a, x", and what sets their defaults,
-- "x = x or 1". Annotations go.
function definitions.parameters(p, close)
  local list, sets = {}, {}
  while not p:take(close) do
    if list[1] then p:expect "," end
    local star, options = p:take "*", p:take "**"
    if options then p.found.python = true end
    if star and p:at "," then           -- the others are named
      p:take ","
      star = nil
    end
    local name = p:take "..." and "..." or p:name()
    local rest = options and list[#list] == "..."
    if not rest then list[#list + 1] = star and "..." or name end
    if rest then
      local args = sets[#sets]:match "local ([%w_]+)"
      sets[#sets + 1] = ('local %s = type(%s[#%s]) == "table" and ' ..
                         "table.remove(%s) or {}"):format(name, args, args,
                                                          args)
    elseif star then sets[#sets + 1] = ("local %s = {...}"):format(name) end
    if p:take ":" then p:expression(1) end
    if p:take "=" then
      p.found.defaults = true
      sets[#sets + 1] = default(name, p:expression().text)
    end
  end
  return table.concat(list, ", "), table.concat(sets, "; ")
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

-- The same for a class of no library, which is the metatable of its objects.
local metamethods = {__repr__ = "__tostring", __str__ = "__tostring",
                     __add__ = "__add", __sub__ = "__sub", __mul__ = "__mul",
                     __truediv__ = "__div", __neg__ = "__unm", __eq__ = "__eq",
                     __lt__ = "__lt", __le__ = "__le", __len__ = "__len",
                     __call__ = "__call"}

-- def forward(self, x):
function words.def(p)
  p:take()
  local name = p:name()
  p:expect "("
  local params, sets = definitions.parameters(p, ")")
  if p:take "->" then p:expression(1) end
  if params == "self" or params:find "^self," then
    name = ("%s:%s"):format(current_class(), last_is_plain and
                            metamethods[name] or special[name] or name)
    params = params:gsub("^self,? ?", "")
  end
  local body = "..."
  if p:token() then body = p:body() end
  if sets ~= "" then sets = sets .. (body == "..." and " " or "; ") end
  return ("function %s(%s) %s%s end"):format(name, params, sets, body)
end

--
-- Classes
--

-- A class of no library: $c(x) makes an object and calls its init(x).
local plain_class = "$c = {}; $c.__index = $c; setmetatable($c, {__call = " ..
  "function(c, ...) local o = setmetatable({}, c); if o.init then " ..
  "o:init(...) end return o end})"

-- What a class of Python derives from, as the beginning of Lua's class; and
-- its first method, with the parameters.
local function class_of(name, base)
  local last = base:match "[%w_]*$"
  local v = value_of(base)
  if last == "Module" or last == "LightningModule" then
    return ('%s = nacre.nn.Module "%s"'):format(name, name), "forward(x)"
  elseif last == "Dataset" then
    return ('%s = nacre.utils.data.Dataset "%s"'):format(name, name), "get(i)"
  elseif type(v) == "table" and rawget(v, "__name") then
    return ('%s = %s:extend "%s"'):format(name, base, name), "forward(x)"
  end
  local from = base ~= "" and last ~= "object" and
               ("{__index = %s, "):format(base) or "{"
  return plain_class:gsub("{__call", from .. "__call"):gsub("%$c", name),
         "init()"
end

local function dotted(p)
  local path = p:name()
  while p:take "." do path = path .. "." .. p:name() end
  return path
end

function words.class(p)
  p:take()
  local name = p:name()
  local base = p:take "(" and not p:at ")" and dotted(p) or ""
  p:take ")"
  last_class, lines_before = name, input_count()
  if base:find "autograd%.Function$" then
    say(p, ("%s = nacre.autograd.Function{forward = function(ctx, x) ... " ..
            "end, backward = function(ctx, g) ... end}"):format(name))
  end
  local head, method = class_of(name, base)
  last_is_plain = method == "init()"
  if p:take ":" and p:take "pass" and not p:token() then return head end
  if p:take "\1" then
    local body = p:block {["\2"] = true}
    p:expect "\2"
    return table.concat({head, body}, "; ")
  end
  say(p, ("%s; function %s:%s ... end"):format(head, name, method))
end

--
-- Blocks: with, decorators
--

-- The call of a function of the library that runs a block, up to the function:
-- 'torch.autocast("cpu", '.
local function block_call(path, list)
  local last = path:match "[%w_]+$"
  local given, named = {}, {}
  for _, item in ipairs(list) do
    local text = item.node.text
    if item.name == "device_type" then table.insert(given, 1, text)
    elseif item.name then named[#named + 1] = item.name .. "=" .. text
    else given[#given + 1] = text end
  end
  if last == "autocast" and not (given[1] or ""):find "^[\"']" then
    table.insert(given, 1, '"cuda"')
  end
  if named[1] then
    given[#given + 1] = "{" .. table.concat(named, ", ") .. "}"
  end
  local ours = unknown_names.of_library(path)
  path = ours and path or unknown_names.elsewhere(last)
  given[#given + 1] = ""
  return path and ("%s(%s"):format(path, table.concat(given, ", "))
end

-- with torch.no_grad(): f(x); with open(path) as f:
function words.with(p)
  p:take()
  local n = p:expression(1)
  local path, list = n.callee, n.list
  local name = p:take "as" and p:name() or "f"
  if n.text:find "^io%.open%(" then
    p.files[name] = true
    local text = p:token() and p:body() or "..."
    text = ("%s = %s; %s; %s:close()"):format(name, n.text, text, name)
    if text:find("...", 1, true) then say(p, text) end
    return text
  elseif not path then p.fail() end
  local call = block_call(path, list)
  if path:find "set_grad_enabled$" then
    local given = list[1] and list[1].node.text or "..."
    say(p, ("%s(%s); ...; %s(true)"):format(path, given, path))
  elseif not call then
    say(p, "there is no " .. path)
  end
  local body = "..."
  if p:token() then body = p:body() end
  p:take "end"
  return ("%sfunction() %s end)"):format(call,
    load("return " .. body, "=", "t") and body ~= "..." and
    not load(body, "=", "t") and "return " .. body or body)
end

-- try: f() except E as e: g()
function words.try(self)
  self:take()
  local outer = self.in_try
  self.in_try = true
  local call = ("pcall(function() %s end)"):format((self:body()))
  self.in_try = outer
  local ok, name, handler = self:unused "ok", nil, nil
  if self:take "except" then
    if not self:at ":" then self:expression(1) end
    if self:take "as" then name = self:name() end
    handler = self:body()
  end
  local last = self:take "finally" and self:body()
  if not handler and not last then return call end
  if not handler then
    name = self:unused "e"
    handler = ("error(%s, 0)"):format(name)
  end
  local head = ("do local %s%s = %s; "):format(ok, name and ", " .. name or "",
                                              call)
  local test = ("if not %s then %s end"):format(ok, handler)
  if not last then return head .. test .. " end" end
  return head .. (handler:find "^error%(" and last .. "; " .. test or
                  test .. "; " .. last) .. " end"
end

-- raise ValueError("no")
local function raised(self)
  self:take()
  local n = self:token() and self:expression()
  local args = n and n.text:match "%((.*)%)$" or '"..."'
  return ("error(%s)"):format(args)
end
words.raise, words.throw = raised, raised

-- What is said of a decorator, @torch.no_grad(); nil if the line, which begins
-- with @, has none.
function definitions.decorator(p)
  p:take "@"
  local path = p:try(dotted)
  if not path then return nil end
  local list = p:take "(" and p:arguments() or nil
  if p:token() then return nil end
  if path == "property" or path:find "^%l+method$" or
     path:find "%." or list then
    local call = unknown_names.of_library(path) and block_call(path, list or {})
    return call and call .. "function() ... end)" or
           "Lua has no decorators: f = decorate(f) calls one"
  end
end

--
-- Imports
--

-- Is there such a path in the library? Parts are made when asked for.
local function there(path)
  return pcall(function()
    local v = package.loaded.nacre
    for word in path:gmatch "%.([%w_]+)" do v = assert(v[word]) end
  end)
end

-- torch.nn.functional as F; torch import nn, optim: what is there already
local function of_library(p, path)
  local place = "nacre" .. path:match "^[%w_]+(.*)$"
  if p:take "as" then
    local alias = p:name()
    return there(place) and ("%s = %s"):format(alias, place)
  end
  local sets = {}
  while p:take "import" or sets[1] and p:take "," do
    local name = p:name()
    local alias = p:take "as" and p:name() or name
    if not there(place .. "." .. name) then break end
    sets[#sets + 1] = ("%s = %s.%s"):format(alias, place, name)
  end
  return sets[1] and table.concat(sets, "; ")
end

-- The Lua statement that loads a module: one of Lua's, else one of Python's
-- under `alias', or of that what the rest of the line imports.
local function module(p, path, alias)
  local name = path:match "^[%w_]+"
  if package.preload[name] or package.searchpath(name, package.path) or
     package.searchpath(name, package.cpath) then
    return ('require "%s"'):format(name)
  end
  if not names.python[name] then
    return ("no module has that name; nacre.python().import \"%s\" would " ..
            "open Python's"):format(name)
  end
  local open, sets = ('nacre.python().import "%s"'):format(path), {}
  while p:take "import" or sets[1] and p:take "," do
    local member = p:name()
    sets[#sets + 1] = ("%s = %s.%s"):format(p:take "as" and p:name() or member,
                                           open, member)
  end
  return sets[1] and table.concat(sets, "; ") or
         ("%s = %s"):format(alias or name, alias and open or
                            ('nacre.python().import "%s"'):format(name))
end

-- What is said of a library that has no counterpart.
local function refused(name)
  local entry = other_libraries.find(name)
  return entry and not entry.code and other_libraries.text(entry)
end

-- One of the modules that a line imports: the statement, if there is one, and
-- what is said of it.
local function imported(p)
  local path = dotted(p)
  local root = path:match "^[%w_]+"
  if root == "torch" or root == "nacre" then
    local text = of_library(p, path)
    if text then return text end
  end
  local alias = p:take "as" and p:name()
  if root == "numpy" and alias then
    return alias .. " = nacre",
           'nacre.python().import "numpy" is NumPy itself'
  end
  local said = names.modules[root]
  if said then return nil, said end
  if rawget(_G, root) and alias then return alias .. " = " .. path end
  if rawget(_G, root) then
    return nil, root .. " is available without an import"
  end
  said = refused(root)
  if said then return nil, said end
  local text = module(p, path, alias)
  if text:find "^no module" then return nil, text end
  return text
end

local function import(p)
  local lines, said = {}, {}
  p:take()
  repeat
    local line, note = imported(p)
    lines[#lines + 1], said[#said + 1] = line, note
  until not p:take ","
  local line, note = table.concat(lines, "; "), table.concat(said, "; ")
  if line == "" then say(p, note) end
  say(p, note ~= "" and ("%s  (%s)"):format(line, note) or line)
end
words.import, words.from, words.using = import, import, import

function words.global(p)
  say(p, "variables are global unless declared local")
end
words.nonlocal = words.global

return definitions
