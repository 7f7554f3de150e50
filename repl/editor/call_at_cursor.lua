-- SPDX-License-Identifier: MIT
--
-- call_at_cursor.lua - the call around the cursor: which function, which
-- argument, and the arguments before it. Found from the text; nothing is run.

local expressions = require "nacre.expression_at"
local facts = require "nacre.tensor_facts"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local lua_functions = require "nacre.lua_functions"
local types = require "nacre.expression_type"
local user_hooks = require "nacre.user_hooks"

local call_at_cursor = {}

-- The brackets that are open after the tokens, outermost first: {at = index,
-- word = the bracket}.
local function brackets(tokens)
  local stack = {}
  for i, token in ipairs(tokens) do
    if lexer.opens[token.text] then
      stack[#stack + 1] = {at = i, word = token.text}
    elseif lexer.closes[token.text] then
      stack[#stack] = nil
    end
  end
  return stack
end

-- The callee that ends before token i: the text of its owner, the mark "." or
-- ":" or "", and the name; nil if there is none.
local function callee(text, tokens, i)
  local last, before = tokens[i - 1], tokens[i - 2]
  if not last or last.kind ~= "name" then return nil end
  if before and before.text == "function" then return nil end
  if not before or not before.text:find "^[.:]$" then
    return "", "", last.text
  end
  local owner = text:sub(1, before.from - 1)
  if owner:find "%f[%w_]function%s+[%w_.]*$" then return nil end
  return owner:match "^(.-)%s*$", before.text, last.text
end

-- The function of a callee, its info, the type of the object of a method, and
-- the text that names it.
local function function_at(owner, mark, name)
  if mark == "" then
    local f = rawget(_G, name)
    return f, nil, name
  end
  local object = types.of(owner)
  local path = (expressions.ending(owner) or "?"):gsub("%s", "") .. mark ..
               name
  if object and next(object) == nil and mark == ":" then
    object = {kind = "tensor"} -- most calls give one
  end
  local fields = object and types.fields(object)
  if fields == nil then return nil, object, path end
  return lookup.field(fields, name), object, path
end

-- The same for shell.NAME: the arguments of the command, without its options.
local function of_shell(f, name)
  local shell = rawget(_G, "shell")
  if type(shell) ~= "table" or rawget(shell, name) ~= f then return nil end
  local commands = require "nacre.commands"
  local command, given = commands.function_named(name), ""
  if not command then command, given = commands.find(name) end
  if not command or given ~= "" then return nil end
  local info = {name = "shell." .. name, params = {}, results = ""}
  for _, p in ipairs(commands.params(command)) do
    if not p.byname then info.params[#info.params + 1] = p end
  end
  return info
end

-- The table of nacre._info, or one like it, for a function or a class.
local function info_of(f, name)
  if type(f) ~= "function" and type(f) ~= "table" then return nil end
  return nacre._info(f) or lua_functions.info(f) or of_shell(f, name)
end

-- The parameters of a function written in Lua, as those of a signature.
local function written(f, method)
  if type(f) ~= "function" or debug.getinfo(f, "S").what == "C" then
    return {}
  end
  local list = {}
  for name in lookup.parameters(f):gmatch "[%w_.]+" do
    list[#list + 1] = {name = name, type = "unknown", text = name}
  end
  if method then table.remove(list, 1) end
  return list
end

-- The parameters, without the first of a method.
local function parameters(info, method)
  local list = {}
  for i, p in ipairs(info.params) do
    local own = method and i == 1 and not info.own and
                (p.name == "self" or lua_functions.is(info))
    if not own then list[#list + 1] = p end
  end
  return list
end

-- The parameters with the texts that shell.complete has given for some.
local function with_words(f, params)
  local given = user_hooks.words[f]
  for i, p in ipairs(given and params or {}) do
    local own = given[p.name]
    if own then
      params[i] = setmetatable({type = "own", choices = false, own = own},
                               {__index = p})
    end
  end
  return params
end

-- The texts of the complete arguments before the cursor, and the rest.
local function arguments(text, tokens, bracket)
  local list = expressions.items(text:sub(tokens[bracket.at].to + 1))
  local rest = table.remove(list)
  for i, item in ipairs(list) do list[i] = item:match "^%s*(.-)%s*$" end
  return list, rest
end

-- The names already set in a table of options, and the text behind the last
-- comma; nil if it is a list.
local function option_names(text)
  local list, names = expressions.items(text), {}
  local rest = table.remove(list)
  for _, item in ipairs(list) do
    local name = item:match "^%s*([%a_][%w_]*)%s*="
    if not name then return nil end
    names[name] = true
  end
  return names, rest
end

-- May the next argument be a table of options?
local function options_may_follow(params, typed)
  local required = 0
  for _, p in ipairs(params) do
    if not p.optional and not p.byname and p.name ~= "..." then
      required = required + 1
    end
  end
  return #typed >= required
end

local MORE <const> = {name = "...", type = "unknown", text = "..."}

-- The parameter that is being written, its position, and whether it is given
-- by name; nil if the name of an option is being written, or no parameter is
-- left.
local function current(call)
  if call.options then
    local name = call.rest:match "^%s*([%a_][%w_]*)%s*=%s*[^=]?"
    for i, p in ipairs(call.params) do
      if p.name == name then return p, i end
    end
    return nil
  end
  local i = #call.typed + 1
  local last = call.params[#call.params]
  if last and last.name == "..." and i >= #call.params then
    return MORE, #call.params
  end
  for k, p in ipairs(call.params) do
    if p.byname then return nil end
    if k == i or p.type == "size" then return p, k end
  end
end

local function describe(call, owner, mark, name)
  local f, object, path = function_at(owner, mark, name)
  call.f, call.path, call.method = f, path, mark == ":"
  call.name = name
  call.object = object and facts.istensor(object.value) and object.value or nil
  call.info = info_of(f, name)
  call.params = call.info and parameters(call.info, call.method) or
                written(f, call.method)
  if f ~= nil then call.params = with_words(f, call.params) end
  return call
end

-- The call around the end of `text`: {path =, name =, info =, f =, object = a
-- tensor whose method it is, method =, params =, typed = {texts}, rest = what
-- is written of this argument, options = names given or nil, param = the
-- parameter being written, at = its position}; nil if the cursor is in none.
function call_at_cursor.around(text)
  local tokens = lexer.tokens(text)
  local stack = brackets(tokens)
  local inner, outer = stack[#stack], stack[#stack - 1]
  if not inner or inner.word == "[" then return nil end
  local call, at = {}, inner
  local owner, mark, name = callee(text, tokens, inner.at)
  local options, rest
  if inner.word == "{" then
    options, rest = option_names(text:sub(tokens[inner.at].to + 1))
    if not name and outer and outer.word == "(" then
      at = outer
      owner, mark, name = callee(text, tokens, outer.at)
    end
  end
  if not name then return nil end
  describe(call, owner, mark, name)
  call.typed, call.rest = arguments(text, tokens, at)
  if inner.word == "{" and (not options or at == outer and
                            not options_may_follow(call.params, call.typed) or
                            at == outer and call.rest:find "^%s*[^%s{]") then
    return nil
  end
  if options then call.options, call.rest = options, rest end
  call.param, call.at = current(call)
  return call
end

-- The call whose only argument is a string that begins behind `text`: require
-- "x", t:to "int32"; nil if that is none.
function call_at_cursor.of_string(text)
  local tokens = lexer.tokens(text)
  local owner, mark, name = callee(text, tokens, #tokens + 1)
  if not name then return nil end
  local call = describe({typed = {}, rest = ""}, owner, mark, name)
  if call.f == nil then return nil end
  call.param, call.at = current(call)
  return call
end

-- "mm(mat2) -> tensor", the call's signature, and where in it the argument
-- being written stands: the positions of its first byte and of that behind its
-- last, from 1; nil if the function has no known parameters.
function call_at_cursor.signature(call)
  local known = call.info or #call.params > 0 or type(call.f) == "function" and
                debug.getinfo(call.f, "S").what ~= "C"
  if not known then return nil end
  local text, from, to = call.name .. "(", nil, nil
  local named = false
  for i, p in ipairs(call.params) do
    if i > 1 then text = text .. ", " end
    if p.byname and not named then
      text, named = text .. "*, ", true
    end
    if i == call.at then from, to = #text + 1, #text + 1 + #p.text end
    text = text .. p.text
  end
  local results = call.info and call.info.results or ""
  return text .. ")" .. (results ~= "" and " -> " .. results or ""), from, to
end

return call_at_cursor
