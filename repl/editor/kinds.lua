-- SPDX-License-Identifier: MIT
--
-- kinds.lua - what may stand where a parameter of a signature is written: one
-- row for each type of parameter, of operations, of Lua's library, of commands
-- and of settings.
--
-- A row is a function fill(add, at): add(name, value, how) as in candidates.lua
-- for what may stand there. `texts' holds the rows whose names are texts: Lua
-- writes them in quotes, a command without. at: the fields
--   param    the parameter          call     the call, see call_at_cursor.lua
--   word     what is typed of it    before   the words before it in a command
-- A type without a row (a number, a size) has a signature and no candidates.

local facts = require "nacre.tensor_facts"
local file_names = require "nacre.file_names"
local lookup = require "nacre.lookup"
local shape_fits = require "nacre.shape_fits"
local user_hooks = require "nacre.user_hooks"

local kinds = {}
local rows, texts = {}, {}

local FITS <const> = {fits = true, bare = true}

-- The session's variables that `fits' accepts; all without it.
local function variables(add, fits)
  local isbuiltin = require "nacre.state".isbuiltin
  for name, value in next, _G do
    if type(name) == "string" and (not fits or fits(value)) and
       not isbuiltin(name) then
      add(name, value, FITS)
    end
  end
end

local function of_type(...)
  local wanted = {}
  for _, name in ipairs {...} do wanted[name] = true end
  return function(add)
    variables(add, function(v)
      return wanted[type(v)] and not facts.istensor(v)
    end)
  end
end

--
-- Values of Lua
--

-- Tensors: those that the operation takes, or all if that is not known.
function rows.tensor(add, at)
  local list = at.call and shape_fits.list(at.call)
  if not list then return variables(add, facts.istensor) end
  for _, var in ipairs(list) do
    add(var.name, var.value, FITS)
  end
end

rows.operand, rows.dimortensor = rows.tensor, rows.tensor

function rows.tensors(add)
  variables(add, function(v)
    return facts.istensor(v) or type(v) == "table"
  end)
end

rows.several, rows.gradients = rows.tensors, rows.tensors

function rows.any(add) variables(add) end
rows.unknown, rows.lua = rows.any, rows.any

rows.table = of_type "table"
rows.fn = of_type("function", "table")

function rows.generator(add)
  variables(add, function(v)
    return type(v) == "userdata" and not facts.istensor(v)
  end)
end

function rows.bool(add)
  for _, word in ipairs {"true", "false"} do add(word, nil, {text = word}) end
end

-- The tensor whose dimensions an argument of the call names.
local function subject(call)
  if not call then return nil end
  local v = call.object or call.typed[1] and lookup.value(call.typed[1])
  return facts.istensor(v) and v or nil
end

function rows.dim(add, at)
  local t = subject(at.call)
  if not t then return end
  local whole = facts.kind_and_device(t):match "%[.-%]"
  for i, size in ipairs(t.shape) do
    local note = ("%-4d  size %d of %s"):format(i, size, whole)
    add(tostring(i), nil, {text = tostring(i), note = note})
  end
  if #t.shape == 0 then return end
  add("-1", nil, {text = "-1", note = "-1    the last"})
end

rows.dims = rows.dim

--
-- Texts
--

-- A row of words.
local function words(list)
  return function(add)
    for _, word in ipairs(list) do add(word) end
  end
end

texts.dtype = words(nacre._dtypes())

-- The devices that are known without opening one.
function texts.device(add)
  add "cuda"
  for _, d in ipairs(nacre._devices()) do add(d.name) end
end

function texts.module(add, at) file_names.modules(at.word, add) end

function texts.environment(add)
  for _, name in ipairs {"HOME", "PATH", "PWD", "USER", "TMPDIR"} do
    add(name)
  end
end

-- The names of options and of their values in `shell.set' and `:set'.
function texts.setting(add)
  for _, row in ipairs(require "nacre.settings".list) do
    add(row[1], nil, {note = ("%-12s  %s"):format(row[1], row[6])})
  end
end

function texts.value(add, at)
  local typed = at.call and at.call.typed[1]
  local name = typed and typed:match "^[\"'](.*)[\"']$" or
               at.before and at.before[1]
  local param = require "nacre.settings".param(name)
  if param then kinds.fill(param, add, at, at.written) end
end

-- The days of :history, from the last one on.
function texts.day(add)
  for _, word in ipairs {"today", "yesterday"} do add(word) end
  for _, day in ipairs(require "nacre.input_history".days()) do add(day) end
end

-- Saved measurements, of :bench --save.
function texts.measurement(add)
  local list = require "nacre.process".list_folder ".nacre-bench"
  for _, entry in ipairs(list or {}) do
    local name = entry[1]:match "^(.*)%.json$"
    if name then add(name) end
  end
end

-- Names that have help without being global: functions of the library by their
-- last name, topics, properties of tensors.
function kinds.documented(add)
  local functions = nacre._functions
  for _, path in ipairs(nacre._names(true)) do
    add(path:match "[%w_]+$", rawget(functions, path))
  end
  for _, row in ipairs(require "nacre.topics".list) do add(row[1]) end
  for _, name in ipairs(lookup.properties) do add(name) end
end

-- What :help explains.
function texts.topic(add, at)
  local colon = at.word:match "^:?"
  for _, command in ipairs(require "nacre.commands".list) do
    local name = colon .. command.name
    add(name, nil, {note = ("%-12s  %s"):format(name, command.doc)})
  end
  if colon == ":" then return end
  variables(function(name) add(name) end)
  if at.word ~= "" then kinds.documented(function(name) add(name) end) end
end

-- The user's variables, by name.
function texts.variable(add)
  variables(function(name) add(name) end)
end

-- Functions that were typed or have a file.
function texts.source(add)
  variables(function(name) add(name) end, function(v)
    return type(v) == "function" and debug.getinfo(v, "S").what ~= "C"
  end)
end

-- Files and folders are completed by file_names.lua, texts of Lua by
-- completion.lua.
kinds.files = {file = "files", folder = "folders", source = "files"}
local code = {lua = true, setup = true}

-- Is a parameter code of Lua?
function kinds.iscode(param)
  for word in (param.choices or ""):gmatch "[^|]+" do
    if code[word] then return true end
  end
  return code[param.type] or false
end

-- Has a type texts as values?
function kinds.istext(name)
  return texts[name] ~= nil or kinds.files[name] ~= nil
end

-- What shell.complete has given for a parameter: texts and {text, note}.
local function own_words(own, put, word)
  local ok, list = true, own
  if type(own) == "function" then
    ok, list = user_hooks.call_quietly("shell.complete", own, word)
  end
  for _, item in ipairs(ok and type(list) == "table" and list or {}) do
    local text, note = item, nil
    if type(item) == "table" then text, note = item[1], item[2] end
    if type(text) == "string" then
      put(text, nil, note and {note = ("%-20s  %s"):format(text, note)})
    end
  end
end

-- Calls add for what a parameter takes. written(word, how): how a text is put
-- in; nil in a command, where it is as it is.
function kinds.fill(param, add, at, written)
  local function put(word, value, how)
    how = how or {}
    if written then
      how = {text = written(word), note = how.note, fits = true}
    else
      how = {text = how.text or word, note = how.note, fits = true}
    end
    add(word, value, how)
  end
  if param.own then return own_words(param.own, put, at.word) end
  local function row(name)
    if texts[name] then return texts[name](put, at) end
    if rows[name] and not at.quote then return rows[name](add, at) end
  end
  local choose = param.choices and param.type == "any" and at.word == ""
  if not choose then row(param.type) end
  for word in (param.choices or ""):gmatch "[^|]+" do
    if kinds.istext(word) then
      row(word)
    elseif not code[word] then
      put(word)
    end
  end
end

-- The kind of file that a parameter takes, "files" or "folders", or nil.
function kinds.file(param)
  if param.own then return nil end
  local kind = kinds.files[param.type]
  for word in (param.choices or ""):gmatch "[^|]+" do
    kind = kind or kinds.files[word]
  end
  return kind
end

return kinds
