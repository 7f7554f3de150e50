-- SPDX-License-Identifier: MIT
-- program_options.lua - nacre.options: the options of a script, as argparse of
-- Python reads them.
--
-- A row is the names of an option, or the name of a positional argument, then
-- its description, and fields: default, type, choices, required, many, metavar.
local all = ...
local fail = all.fail

local OP <const> = "options"

-- ---- what a row says

local FIELDS <const> = {"default", "type", "choices", "required", "many",
                        "metavar"}

-- The types, each with what a value must be in an error.
local TYPES <const> = {
  integer = {"an integer", function(s) return math.tointeger(tonumber(s)) end},
  number = {"a number", function(s) return tonumber(s) end},
  string = {"a text", function(s) return s end},
}

local function type_of(default)
  if type(default) == "boolean" then return "flag" end
  return math.type(default) == "integer" and "integer" or
         type(default) == "number" and "number" or "string"
end

local function fail_row(i, text)
  fail(OP, ("row %d %s; {\"--epochs\", \"passes\", default = 5} is one")
           :format(i, text))
end

local function check_fields(i, row)
  for key in pairs(row) do
    local known = math.type(key) == "integer"
    for _, name in ipairs(FIELDS) do known = known or key == name end
    if not known then
      local near = all.nearest(tostring(key), FIELDS)
      fail_row(i, ("has no field '%s'%s"):format(key,
        near and (", did you mean '%s'?"):format(near) or ""))
    end
  end
end

-- Splits the words of a row into names and the description.
local function names_of(i, row)
  local names, n = {}, #row
  for k, word in ipairs(row) do
    if type(word) ~= "string" then fail_row(i, "has a name that is no text") end
    if word:find "^%-" then
      if k > #names + 1 then
        fail_row(i, "has a name behind the description")
      end
      names[k] = word
    end
  end
  if #names == 0 then names[1] = row[1] end
  if #names < n - 1 or #names == 0 then
    fail_row(i, "is made of names, then one description")
  end
  return names, n > #names and row[n] or ""
end

-- The key of the result: that of the first long name.
local function key_of(names)
  local long = names[1]
  for k = #names, 1, -1 do
    if names[k]:find "^%-%-" then long = names[k] end
  end
  return (long:gsub("^%-+", ""):gsub("%-", "_"))
end

local function read_row(i, row)
  if type(row) ~= "table" then fail_row(i, "is not a table") end
  check_fields(i, row)
  local names, about = names_of(i, row)
  local o = {names = names, about = about, key = key_of(names),
             positional = not names[1]:find "^%-"}
  for _, field in ipairs(FIELDS) do o[field] = row[field] end
  local sample = o.default
  if sample == nil then sample = (o.choices or {})[1] end
  if o.many and type(sample) == "table" then sample = sample[1] end
  o.type = o.type or type_of(sample)
  if o.type ~= "flag" and not TYPES[o.type] and type(o.type) ~= "function" then
    fail_row(i, ("has the type '%s': it is integer, number, string, flag or a "
                 .. "function"):format(tostring(o.type)))
  end
  if o.positional and o.type == "flag" then
    fail_row(i, "is a flag, whose name begins with -")
  end
  if o.type == "flag" and o.default == nil then o.default = false end
  return o
end

-- {list=, by=}: all options, and those that are not positional by their names.
local function read_rows(rows)
  local known = {list = {}, by = {}, names = {"--help"}}
  for i, row in ipairs(rows) do
    if not (i == 1 and type(row) == "string") then
      local o = read_row(i, row)
      known.list[#known.list + 1] = o
      for _, name in ipairs(o.positional and {} or o.names) do
        if known.by[name] or name == "--help" or name == "-h" then
          fail_row(i, ("has the name %s a second time"):format(name))
        end
        known.by[name] = o
        known.names[#known.names + 1] = name
        if o.type == "flag" and name:find "^%-%-" then
          known.by["--no-" .. name:sub(3)] = o
        end
      end
    end
  end
  return known
end

-- ---- help

local function metavar(o)
  if o.metavar then return o.metavar end
  if o.choices then return "{" .. table.concat(o.choices, ",") .. "}" end
  if o.positional then return o.names[1] end
  return o.key:upper()
end

local function usage_of(o)
  local value = metavar(o)
  if o.positional then
    local text = o.many and value .. "..." or value
    return (o.default ~= nil or o.required == false) and "[" .. text .. "]" or
           text
  end
  local text = o.names[1]
  if o.type ~= "flag" then text = text .. " " .. value end
  return o.required and text or "[" .. text .. "]"
end

-- The words in lines of at most 78 columns, those after the first indented.
local function wrapped(words, indent)
  local lines, line = {}, table.remove(words, 1)
  for _, word in ipairs(words) do
    if #line + 1 + #word > 78 then
      lines[#lines + 1] = line
      line = (" "):rep(indent) .. word
    else line = line .. " " .. word end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

local function usage(program, known)
  local head = "usage: " .. program
  local words = {head, "[--help]"}
  for _, positional in ipairs {false, true} do
    for _, o in ipairs(known.list) do
      if o.positional == positional then words[#words + 1] = usage_of(o) end
    end
  end
  return wrapped(words, math.min(#head + 1, 20))
end

local function describe(o)
  local left = table.concat(o.names, ", ")
  if not o.positional and o.type ~= "flag" then left = left .. " " .. metavar(o)
  end
  local about, default = o.about, o.default
  if default ~= nil and default ~= false and type(default) ~= "table" then
    about = ("%s (%s)"):format(about, default == true and
      "--no-" .. o.names[#o.names]:gsub("^%-+", "") .. " turns it off" or
      tostring(default))
  end
  if o.required then about = about .. " (needed)" end
  if #left > 22 then left = left .. "\n" .. (" "):rep(24) end
  return ("  %-22s  %s"):format(left, about)
end

local function help(program, known, about)
  local lines = {usage(program, known), ""}
  if about then lines[#lines + 1] = about .. "\n" end
  for _, o in ipairs(known.list) do lines[#lines + 1] = describe(o) end
  lines[#lines + 1] = ("  %-22s  %s"):format("-h, --help",
                                             "show this text and end")
  return (table.concat(lines, "\n"):gsub(" +\n", "\n"))
end

-- ---- arguments

local function shown(o) return o.positional and o.names[1] or
                               o.names[#o.names] end

-- The value of a word for an option; wrong(text) does not return.
local function value_of(o, word, wrong)
  local v, why
  if type(o.type) == "function" then v, why = o.type(word)
  else
    v = TYPES[o.type][2](word)
    why = "needs " .. TYPES[o.type][1]
  end
  if v == nil then
    wrong(("%s %s, not '%s'"):format(shown(o), why or "needs another value",
                                     word))
  end
  for _, choice in ipairs(o.choices or {}) do
    if choice == v then return v end
  end
  if not o.choices then return v end
  local names = {}
  for k, choice in ipairs(o.choices) do names[k] = tostring(choice) end
  local near = all.nearest(word, names)
  wrong(("%s is one of %s, not '%s'%s"):format(shown(o),
    table.concat(names, ", "), word,
    near and (": did you mean %s?"):format(near) or ""))
end

-- The option of this name, and whether the name begins with "no-".
local function find_option(known, name, wrong)
  local o = known.by[name]
  if o then
    local negated = true
    for _, own in ipairs(o.names) do negated = negated and own ~= name end
    return o, negated
  end
  local near = all.nearest(name, known.names)
  wrong(("no option %s%s"):format(name,
    near and (", did you mean %s?"):format(near) or ""))
end

-- The next word of the arguments as an option: sets its value; returns the
-- position of the last word that it took.
local function take_option(known, values, list, i, wrong)
  local name, value = list[i]:match "^(%-%-[^=]*)=(.*)$"
  local o, negated = find_option(known, name or list[i], wrong)
  if o.type == "flag" then
    if value then wrong(shown(o) .. " takes no value") end
    values[o.key] = not negated
    return i
  end
  if not name then
    i = i + 1
    value = list[i]
    if value == nil then wrong(shown(o) .. " needs a value") end
  end
  value = value_of(o, value, wrong)
  if not o.many then values[o.key] = value
  else
    values[o.key] = values[o.key] or {}
    table.insert(values[o.key], value)
  end
  return i
end

-- Is the word an option? A negative number is one only if its digit is a name.
local function is_option(known, word)
  return word:find "^%-." and
         (known.by[word] or not tonumber(word)) and true or false
end

-- The values of the options, and the list of the other words; nil for --help.
local function read_words(known, list, wrong)
  local values, others, i = {}, {}, 1
  while list[i] do
    local word = tostring(list[i])
    if word == "--help" or word == "-h" then return nil end
    if word == "--" then
      table.move(list, i + 1, #list, #others + 1, others)
      break
    elseif is_option(known, word) then
      i = take_option(known, values, list, i, wrong)
    else others[#others + 1] = word end
    i = i + 1
  end
  return values, others
end

-- Gives the words to the positional arguments, in their order; one of `many'
-- leaves one to each of those behind it.
local function take_positionals(known, values, words, wrong)
  local at, open = 1, {}
  for _, o in ipairs(known.list) do
    if o.positional then open[#open + 1] = o end
  end
  for k, o in ipairs(open) do
    if o.many then
      local last = #words - (#open - k)
      if last >= at then values[o.key] = {} end
      for i = at, last do
        values[o.key][i - at + 1] = value_of(o, words[i], wrong)
      end
      at = math.max(at, last + 1)
    elseif words[at] then
      values[o.key] = value_of(o, words[at], wrong)
      at = at + 1
    end
  end
  if words[at] then
    wrong(("'%s' is an argument too many"):format(words[at]))
  end
end

local function fill_in(known, values, wrong)
  for _, o in ipairs(known.list) do
    if values[o.key] == nil then values[o.key] = o.default end
    local needed = o.required or o.positional and o.required == nil
    if values[o.key] == nil and needed then wrong(shown(o) .. " is missing") end
  end
  return values
end

-- ---- the function

-- The words of the program, and how its script is called in Lua's manner.
local function program_words()
  local list = load "return arg" ()
  if type(list) ~= "table" then
    fail(OP, "there is no table arg with the words of the program: they are "
             .. "the second argument")
  end
  return list
end

local function program_name(list)
  return list[0] and "nacre " .. tostring(list[0]) or "PROGRAM"
end

-- Ends the program with a text.
local function finish(file, text, status)
  file:write(text, "\n")
  os.exit(status, true)
end

all.define("options", "rows:table, arguments:table=nil -> table",
           "the options of a script by their names, from the words behind it",
function(rows, arguments)
  local list = arguments or program_words()
  local known, program = read_rows(rows), program_name(list)
  local function wrong(text)
    if arguments then fail(OP, text) end
    finish(io.stderr, ("%s\n%s: %s"):format(usage(program, known),
      program:match "[^/ ]*$", text), 2)
  end
  local values, others = read_words(known, list, wrong)
  if not values then
    local about = type(rows[1]) == "string" and rows[1] or nil
    local text = help(program, known, about)
    if arguments then return {help = text} end
    finish(io.stdout, text, 0)
  end
  take_positionals(known, values, others, wrong)
  return fill_in(known, values, wrong)
end)
