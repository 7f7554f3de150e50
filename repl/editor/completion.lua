-- SPDX-License-Identifier: MIT
--
-- completion.lua - the candidates for the word before the cursor.
--
-- What may stand there is decided by where the word stands: as an argument of a
-- call or a command by its signature (kinds.lua), behind a dot or colon by the
-- fields of what is before it, elsewhere by the grammar. Nothing is run: fields
-- are read raw, and no metamethod is called.

local call_at_cursor = require "nacre.call_at_cursor"
local candidates = require "nacre.candidates"
local command_arguments = require "nacre.command_arguments"
local facts = require "nacre.tensor_facts"
local file_names = require "nacre.file_names"
local kinds = require "nacre.kinds"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local types = require "nacre.expression_type"

local completion = {}

-- Candidates that take the place of the last n bytes of `left'.
local function placed(list, left, n)
  list.start = #left - n + (list.start or 0)
  return list
end

--
-- Members: behind a dot or a colon
--

-- Could a name be a variable of the block that is being written?
local function of_block(before, name)
  for _, token in ipairs(lexer.tokens(before)) do
    if token.text == name and token.to < #before then return true end
  end
end

-- The type of what stands before a dot or colon; {} if only running could tell.
local function owner_type(before)
  local t = types.of(before)
  local name = before:match "%f[%w_]([%a_][%w_]*)$"
  if t == nil and name and rawget(_G, name) == nil and
     of_block(before, name) then
    return {}
  end
  return t
end

local function members(before, separator, add)
  local t = owner_type(before)
  if t == nil then return end
  local method = separator == ":"
  if types.is_tensor(t) and not method then
    for _, name in ipairs(lookup.properties) do add(name) end
    return
  end
  local fields = types.fields(t)
  if fields == nil and method and next(t) == nil then
    fields = nacre._methods -- most calls give a tensor
  end
  if fields == nil then return end
  local how = method and {method = true} or nil
  local list = lookup.members
  if rawequal(fields, nacre._methods) then
    list = function(of, each) for k, v in next, of do each(k, v) end end
  end
  list(fields, function(name, field)
    if not method or lookup.is_callable(field) then add(name, field, how) end
  end)
end

-- Keys of a table: m['we. They are put in with `opening' before them.
local function keys(before, quote, word, right, opening)
  local t = types.of(before)
  local fields = t and not types.is_tensor(t) and types.fields(t)
  if type(fields) ~= "table" or rawequal(fields, nacre) then return {} end
  local closing = right:sub(1, 1) == quote and "" or quote .. "]"
  return candidates.of(word, function(add)
    for name, value in next, fields do
      if type(name) == "string" and not name:find "[%c\"'\\]" then
        local text = opening .. name .. closing
        add(name, nil, {text = text,
                        note = facts.istensor(value) and ("%-20s  %s"):format(
                          text, facts.kind_and_device(value)) or nil})
      end
    end
  end)
end

--
-- Names
--

-- What is there for scripts, or is there twice; but not a user's variable.
local FORSCRIPTS = {arg = true, skip = true, torch = true}

local function globals(add)
  local isbuiltin = require "nacre.state".isbuiltin
  for name, value in next, _G do
    if type(name) == "string" and
       not (FORSCRIPTS[name] and isbuiltin(name)) then
      add(name, value)
    end
  end
end

-- Names of variables in the block, which may be local.
local function locals(left, add)
  for _, name in ipairs(lexer.variables(left)) do
    if rawget(_G, name) == nil then add(name) end
  end
end

-- Keywords that begin an expression, and tokens after which one stands.
local begins = lexer.set "false function nil not true"
local awaits = lexer.set [[and or not return in if elseif while until = == ~= <
  > <= >= + - * / // % ^ # & | ~ << >> .. ( { [ ,]]
-- Behind these stands a value of a list, and no keyword.
local listed = lexer.set "( { [ ,"
local ends = lexer.set "end nil true false ... ) ] }"

-- Is an expression complete behind the token?
local function complete(token)
  if not token then return false end
  if token.kind == "name" or token.kind == "number" then return true end
  return token.kind == "string" or ends[token.text] or false
end

local function names(left, word, right, last, is_value)
  local before = left:sub(1, #left - #word)
  return candidates.of(word, function(add)
    globals(add)
    if word ~= "" then locals(before, add) end
    local expression = is_value and not last or
                       last and awaits[last.text] and last.kind ~= "string"
    for name in next, lexer.keywords do
      if not expression or begins[name] then add(name) end
    end
  end, right)
end

-- Behind "?": whatever there is help for, by its last name alone too.
local function helped(left)
  local word = left:match "^%s*%?+%s*:(%a*)$"
  if word then
    return placed(command_arguments.names(word), left, #word)
  end
  local before
  before, word = left:match "^%s*%?%s*(.-)([%w_]*)$"
  local owner, separator = before:match "^(.*)([.:])$"
  local function fill(add)
    if owner then
      if owner:find "^[%a_][%w_.]*$" and lookup.value(owner) == nil then
        owner = "nacre." .. owner
      end
      return members(owner, separator, add)
    end
    globals(add)
    if word ~= "" then kinds.documented(add) end
  end
  return placed(candidates.of(word, fill, "("), left, #word)
end

--
-- Arguments of calls
--

-- The line above the candidates: the signature, and of which tensor it is a
-- method.
local function head(call)
  local text = call_at_cursor.signature(call)
  if text and call.object then
    text = ("%s    %s is %s"):format(text, call.path:match "^(.*):",
      facts.kind_and_device(call.object))
  end
  return text
end

-- Values of a parameter as Lua writes them: a text in quotes.
local function values(call, word, right)
  local function written(text) return '"' .. text .. '"' end
  return candidates.of(word, function(add)
    kinds.fill(call.param, add, {call = call, param = call.param, word = word},
               written)
  end, right)
end

-- The options of a call that are not given; with a brace where a table of them
-- may begin.
local function option_names(call, word, brace)
  return candidates.of(word, function(add)
    for _, p in ipairs(call.params) do
      local free = call.options and not call.options[p.name] or
                   brace and p.byname
      if free and p.name ~= "..." then
        local text = brace .. p.name .. "="
        local takes = p.choices and not p.open and p.choices or
                      p.type .. (p.choices and "|" .. p.choices or "")
        add(p.name, nil, {text = text,
                          note = ("%-16s  %s"):format(text, takes)})
      end
    end
  end)
end

-- Is the cursor where an argument, an option or its value begins, apart from
-- the word?
local function begins_argument(call)
  return call.rest:find "^%s*$" or
         call.options and call.rest:find "^%s*[%a_][%w_]*%s*=%s*$"
end

-- Completes an argument or an option of a call. Nil: any name may stand there.
local function inside(call, word, right)
  local param = call.param
  local list
  if not param and call.options and call.rest:find "^%s*$" then
    if not call.info then return nil end
    list = option_names(call, word, "")
  elseif not param and call.info and word == "" and call.at == nil then
    list = option_names(call, word, "{")
  elseif param then
    list = values(call, word, right)
  end
  if not list or #list == 0 and word ~= "" then return nil end
  return list
end

-- Completes a string that is open: the text of a parameter, a key, else a file
-- where nothing says what it is.
local function quoted(string, left, right)
  local quote, word = string:match "^([\"'])([^\"']*)$"
  if not word then return {} end
  local before = left:sub(1, #left - #string)
  if before:find "%[%s*$" then
    local owner = before:gsub("%s*%[%s*$", "", 1)
    if owner:find "[%w_%)%]]$" then
      return placed(keys(owner, quote, word, right, ""), left, #word)
    end
  end
  local call = call_at_cursor.around(before)
  if not call or not begins_argument(call) then
    call = not before:find "[=(,{]%s*$" and call_at_cursor.of_string(before) or
           nil
  end
  local param = call and call.param or
                before:find "%.dtype%s*[=~]=%s*$" and {type = "dtype"} or
                before:find "%.device%s*[=~]=%s*$" and {type = "device"}
  local known = param and param.type ~= "unknown"
  if call and not known and call.info then return {head = head(call)} end
  if not known or kinds.file(param) then
    local list = file_names.of(word, {style = "quoted", quote = quote,
                                      right = right})
    list.head = call and head(call)
    return placed(list, left, #word)
  end
  local closing = right:sub(1, 1) == quote and "" or quote
  local function written(text) return text .. closing end
  local list = candidates.of(word, function(add)
    kinds.fill(param, add, {call = call, param = param, word = word,
                            quote = quote, written = written}, written)
  end)
  list.head = call and head(call)
  return placed(list, left, #word)
end

-- Is a name being declared: a parameter, a function, a local variable?
local function declares(before)
  return before:find "%f[%w_]function%s*[%w_.:]*%s*%([%w_%s,.]*$" or
         before:find "%f[%w_]function%s+$" or before:find "%f[%w_]goto%s+$" or
         before:find "%f[%w_]local%s+[%w_%s,]*,%s*$"
end

-- Completes Lua; is_value: it is an expression from its begin.
local function lua(left, right, is_value)
  local tokens = lexer.tokens(left)
  local last = tokens[#tokens]
  if last and last.to == #left then
    if last.kind == "comment" then return {} end
    if last.kind == "string" and not last.closed then
      return quoted(last.text, left, right)
    end
  end
  local word = left:match "[%a_][%w_]*$" or ""
  if word ~= "" then last = tokens[#tokens - 1] end
  local before = left:sub(1, #left - #word)
  local owner, separator = before:match "^(.*)([.:])%s*$"
  if owner and not owner:find "%.$" and last.kind == "op" then
    if owner:find "[%w_]%s*$" and not owner:find "[%a_][%w_]*%s*$" then
      return {}               -- a number
    end
    local list = candidates.of(word, function(add)
      members(owner:match "^(.-)%s*$", separator, add)
    end, right)
    if #list == 0 and separator == "." then -- m["blocks.0.weight"]
      return placed(keys(owner, '"', word, "", '["'), left, #left - #owner)
    end
    return placed(list, left, #word)
  end
  if before:find "%d$" or word == "" and complete(last) then return {} end
  local call = call_at_cursor.around(before)
  if declares(before) then return {} end
  local list = call and begins_argument(call) and inside(call, word, right)
  if not list and word == "" and last and listed[last.text] then
    list = values({param = {type = "unknown"}}, word, right)
  end
  list = list or names(left, word, right, last, is_value)
  list.head = call and word == "" and head(call) or nil
  return placed(list, left, #word)
end

-- The last word of a command of the system; a backslash keeps a blank.
local function system_word(text)
  local from = 1
  for blank in text:gmatch "()%s" do
    if text:sub(blank - 1, blank - 1) ~= "\\" then from = blank + 1 end
  end
  return text:sub(from)
end

-- The code of a command, where files may stand, too.
local function code(text, files, left, right, is_value)
  local list = lua(text, right, is_value)
  if #list == 0 and files then return placed(files, left, #text) end
  list.start = list.start and list.start + #left - #text
  return list
end

-- The name of the file into which a command writes: ":whos > fi"; nil if the
-- line is none, or ">" may compare.
local function redirected(left)
  local command, word = left:match "^%s*([:?][^>]*)%s>>?%s+(%S*)$"
  if not command then return nil end
  local found = require "nacre.commands".of(command)
  return not (found and found.lua) and word or nil
end

-- The candidates for the end of `left`; `right` is the text after the cursor: a
-- list of texts and of {text, note}, the best first. They take the place of
-- what is behind the first `start' bytes, which they need not begin with.
-- `head` is a line to show above them.
function completion.candidates(left, right)
  local reader = require "nacre.state".reader
  local theirs = reader and reader.candidates and reader.candidates(left, right)
  if theirs then return theirs end
  local word = left:match "^%s*[:%%](%a*)$"
  if word then
    return placed(command_arguments.names(word, true), left, #word)
  end
  word = redirected(left)
  if word then
    return placed(file_names.of(word, {style = "word", right = right}), left,
                  #word)
  end
  local list, text, files, is_value = command_arguments.of(left, right)
  if list then
    word = left:match "%S*$"
    return placed(list, left, list.of or #word)
  elseif text then
    return code(text, files, left, right, is_value)
  end
  if left:find "^%s*%?[^?]*$" or left:find "^%s*%?+%s*:%a*$" then
    return helped(left)
  end
  local system = left:match "^%s*!(.*)$"
  if system then
    word = system_word(system)

    return placed(file_names.of(word, {style = "system"}), left, #word)
  end
  local skipped = left:match "^%s*%?+%s*" or ""
  return code(left:sub(#skipped + 1), nil, left, right)
end

-- The signature of the call around the end of `left', and where in it the
-- argument being written stands (its first byte and that behind its last, from
-- 1), or nil.
function completion.signature(left)
  local text = select(2, command_arguments.of(left, "")) or left
  local call = call_at_cursor.around(text)
  if not call then return nil end
  return call_at_cursor.signature(call)
end

return completion
