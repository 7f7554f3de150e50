-- SPDX-License-Identifier: MIT
--
-- completion_kinds.lua - what completes at each place: the words that every
-- parameter of every operation, class, function of Lua, command and setting
-- takes, and nothing else there, no file; and the order of candidates.

local completion = require "nacre.completion"
local commands = require "nacre.commands"
local options = require "nacre.command_options"
local lua_functions = require "nacre.lua_functions"
local settings = require "nacre.settings"

require "nacre.shell".start(false)
t = nacre.ones(3, 4)
opt = {}

local DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 " ..
               "float64 complex64 complex128 uint16 uint32 uint64 " ..
               "float8_e4m3fn float8_e5m2"

local function set(text, closing)
  local words = {}
  for word in text:gmatch "[^%s|]+" do words[word .. (closing or "")] = true end
  return words
end

-- The texts of the candidates behind `left`.
local function offered(left, right)
  local list = {}
  for i, item in ipairs(completion.candidates(left, right or "")) do
    list[i] = type(item) == "table" and item[1] or item
  end
  return list
end

-- Are these the candidates, in any order?
local function same(left, expected)
  local missing = {}
  for word in pairs(expected) do missing[word] = true end
  for _, text in ipairs(offered(left)) do
    assert(expected[text], left .. " offers " .. text)
    missing[text] = nil
  end
  assert(next(missing) == nil, left .. " lacks " .. tostring(next(missing)))
end

-- The words that a parameter takes; nil if these are not known.
local function words_of(p)
  local text = ""
  if p.type == "file" or p.type == "lua" then return nil end
  if p.type == "dtype" then text = DTYPES end
  if p.type == "device" then text = "cpu cuda" end
  for word in (p.choices or ""):gmatch "[^|]+" do
    if word == "dtype" then word = DTYPES end
    if word == "device" then word = "cpu cuda" end
    if word == "file" or word == "lua" then return nil end
    text = text .. " " .. word
  end
  return text ~= "" and text or nil
end

-- "f(t, t, " before the parameter at position i.
local function call_before(head, i, method)
  local text = head .. "("
  for _ = method and 2 or 1, i - 1 do text = text .. "t, " end
  return text
end

-- Checks a parameter where it stands by position and by name.
local function check_parameter(head, info, i, method)
  local p = info.params[i]
  local words = words_of(p)
  if not words then return 0 end
  local places = {}
  if not p.byname then places[1] = call_before(head, i, method) end
  local required = method and 1 or 0
  for k, other in ipairs(info.params) do
    if not other.optional and not other.byname and other.name ~= "..." then
      required = math.max(required, k)
    end
  end
  if i > required then
    places[#places + 1] = call_before(head, required + 1, method) .. "{" ..
                          p.name .. "="
  end
  for _, place in ipairs(places) do
    same(place .. '"', set(words, '"'))
    same(place .. "'", set(words, "'"))
    for word in pairs(set(words)) do
      local short = word:sub(1, math.max(1, #word - 2))
      local found = false
      for _, text in ipairs(offered(place .. '"' .. short)) do
        found = found or text == word .. '"'
      end
      assert(found, place .. '"' .. short)
    end
  end
  return #places
end

-- ---- every operation, module, optimizer

local places = 0
for _, path in ipairs(nacre._names(true)) do
  local info = nacre._info(path)
  local head, method = "nacre." .. path, false
  if info and not info["function"] and info.method and not path:find "[.:]" then
    head, method = "t:" .. path, true
  end
  local owner = path:match "^(.-):"
  local function_of_class = owner ~= nil
  for i = 1, info and not function_of_class and #info.params or 0 do
    places = places + check_parameter(head, info, i, method)
  end
  if info and info.method and info["function"] and not path:find "[.:]" then
    for i = 2, #info.params do
      places = places + check_parameter("t:" .. path, info, i, true)
    end
  end
end
assert(places > 400, places)

-- ---- Lua's library

places = 0
for _, name in ipairs(lua_functions.names()) do
  local f = require "nacre.lookup".value(name)
  local info = assert(lua_functions.info(f), name)
  assert(info.doc ~= "", name)
  for i = 1, #info.params do
    places = places + check_parameter(name, info, i)
  end
end
assert(places >= 6, places)

-- ---- commands, their options and settings

-- Text before the options of a command, where they stand behind the code.
local function before_options(command)
  return ":" .. command.name .. " " .. (command.trailing and "t " or "")
end

for _, command in ipairs(commands.list) do
  local names, first = {}, nil
  for _, p in ipairs(commands.params(command)) do
    first = first or not p.byname and p
    if p.byname then
      local word = options.word(p)
      names[word .. " "] = true
      assert(p.doc and p.doc ~= "", command.name .. word)
      local words = words_of(p)
      if words then
        same(before_options(command) .. word .. " ", set(words))
      end
    end
  end
  if next(names) then same(before_options(command) .. "-", names) end
  local words = first and words_of(first)
  if words then same(":" .. command.name .. " ", set(words)) end
end

for _, row in ipairs(settings.list) do
  local words = words_of(settings.param(row[1]))
  if words then
    same(":set " .. row[1] .. " ", set(words))
    same(":set " .. row[1] .. " = ", set(words))
    same('shell.set("' .. row[1] .. '", "', set(words, '"'))
  end
end
for _, line in ipairs {":dev ", ":device ", ":set device "} do
  same(line, set "cpu cuda")
end
same(":timing ", set "on off")

-- ---- one place after the other

opt.weight, opt["we are"] = t, 1
net = {fc1 = nacre.nn.Linear(2, 3)}
function mine(first, second) return first, second end

local function first_of(left) return offered(left)[1] end

for left, text in pairs {
  ['t:to("cu'] = 'cuda"', ["t:to 'fl"] = "float16'",
  ["t:to(fl"] = '"float16"', ["nacre.zeros(3, {dtype="] = '"bfloat16"',
  ["t:Sum"] = "sum(", ["t:sfm"] = "softmax(", ["t:lgsft"] = "log_softmax(",
  ["string.rep('a', 3):up"] = "upper(", ["('x'):rep(2):up"] = "upper(",
  ["io.open('x'):re"] = "read(", ["nacre.nn.Linear(2, 3):forw"] = "forward(",
  ["nacre.optim.SGD({t}):zero"] = "zero_grad(",
  ["t:t():softma"] = "softmax(", ["f(t):softma"] = "softmax(",
  ["opt['wei"] = "weight']", ["net.fc1.wei"] = "weight",
  ["net.fc1.weight:softma"] = "softmax(", ["?:be"] = "bench",
  [":hel"] = "help ", [":help :be"] = ":bench", [":help benc"] = "bench",
  [":edit min"] = "mine", ["require 'strin"] = "string'",
  ["t:pad({1, 1}, '"] = "circular'", ["t:norm('"] = "fro'",
  ["local answer = 1 print(answ"] = "answer", ["x = nacre.zer"] = "zero_(",
  [":bench -s \"a = nacre.zer"] = "zero_(", [":watch 2 nacre.zer"] = "zero_(",
  [":sweep n=1..9 nacre.zer"] = "zero_(", [":plot t -y log"] = "log",
  ["t.dtype == 'floa"] = "float16'", ["collectgarbage('cou"] = "count'",
  ["for i = 1, 3 do pri"] = "print(",
} do
  assert(first_of(left) == text, left .. " gives " .. tostring(first_of(left)))
end
assert(first_of("opt['wei") == "weight']" and
       offered("opt['wei", "']")[1] == "weight")
assert(offered("t:to('cu", "')")[1] == "cuda", "the quote is there")
assert(offered("t:su", "(1)")[1] == "sub", "the parenthesis is there")

-- a file behind a sign that diverts the output, and where a file is meant
local path = os.tmpname()
for _, left in ipairs {":whos > ", "?mm >> ", ":save ", ":run ", ":plot t -o ",
                       "!cat ", "nacre.load('", "f = '", "mine('"} do
  local found = first_of(left .. path:sub(1, -2))
  assert(found and found:find(path:match "[^/]*$", 1, true), left)
end
for _, left in ipairs {":cd ", ":nan ", ":set color ", "t:to('", "require('",
                       "t:norm('", ":bench "} do
  local found = first_of(left .. path:sub(1, -2))
  assert(not found, left .. " offers " .. tostring(found))
end
os.remove(path)

-- nothing can follow, or nothing is known
for _, left in ipairs {"t:sum()", "t", "1", "x = 1.", "t.shape[1]", "-- a",
                       "function f(", "local function f(a, ", "nosuch.x",
                       "nacre.einsum('", ":bench -c cold -c cold x ) "} do
  local text = offered(left)
  assert(left == "t" or #text == 0, left .. " offers " .. tostring(text[1]))
end

-- values stand alone where they are fitting, without keywords
for _, left in ipairs {"mine(", "t[{1, ", "print(t, "} do
  for _, text in ipairs(offered(left)) do
    assert(set "mine net opt t" [text], left .. " offers " .. text)
  end
  assert(#offered(left) == 4, left)
end

-- options that are given are not offered again
same("t:sum{dim=1, ", set "keepdim= dtype=")
same(":bench -n -c cold --save x --against y --budget 1 -s 'a' --", {
  ["--export-json "] = true, ["--export-markdown "] = true})

-- of Lua's library nothing is called to see what fits
local called = {}
debug.sethook(function()
  called[debug.getinfo(2, "f").func] = true
end, "c")
for _, left in ipairs {"print(", "print(t, ", "io.write(t, ", "pcall(mine, "} do
  offered(left)
end
debug.sethook()
assert(not called[print] and not called[io.write] and not called[mine])

assert(first_of ":sweep n=1..9 --ag" == "--against ")
assert(first_of ":sweep n=1..9 -n -s 'a' --ag" == "--against ")
assert(first_of ":sweep n=1..9 -n nacre.zer" == "zero_(")
assert(#offered ":watch 2 --" == 0 and first_of ":watch -" == "-n ")

-- devices are not opened by asking for their names
assert(#nacre._devices() == 1)

-- the order: what fits, what was typed, the rest
local log = require "nacre.shell".log
log[#log + 1] = {text = "y = t:softplus()"}
local list = offered "t:softp"
assert(list[1] == "softplus(" and list[2] == "softplus_(")
assert(offered "t:soft"[1] == "softplus(" and offered "t:soft"[2] == "softmax(")

-- the signature, and the argument that is written
local function argument(left)
  local text, from, to = completion.signature(left)
  return text and from and text:sub(from, to - 1)
end

assert(argument "t:sum(1, " == "keepdim=false")
assert(argument "t:sum(1, tr" == "keepdim=false")
assert(argument "t:sum{keepdim=" == "keepdim=false")
assert(argument "nacre.zeros(3, 4" == "size...")
assert(argument "mine(1, " == "second")
assert(argument "io.open('x', " == 'mode="r"')
assert(argument ":bench t:sum(" == "dim=nil")
assert(completion.signature "t:sum(" ==
       "sum(dim=nil, keepdim=false, *, dtype=nil) -> tensor")
assert(completion.signature "t" == nil)
assert(completion.signature "nosuch(" == nil)

-- 20,000 globals: all are there, the first ones in order
for i = 1, 20000 do _G[("gl%05d"):format(i * 7919 % 20011)] = i end
list = offered "gl"
assert(#list == 20000)
for i = 2, 300 do assert(list[i - 1] < list[i]) end
assert(#offered "gl0000" == 9 or #offered "gl0000" == 10)
