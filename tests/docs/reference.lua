-- SPDX-License-Identifier: MIT
-- The reference is whole, current and true: every public function has an
-- entry with an example, what is said of dtypes is so, examples stand alone,
-- help fits its screen, and docs/reference is what the program would write.
-- That each example prints what it says is tested as a session is:
-- nacre --test repl/reference.

local here = arg[0]:match "^(.*/)" or ""
local C = dofile(here .. "../lib/common.lua")
local reference = require "nacre.reference"

local function fail(...) error((...):format(select(2, ...)), 0) end

--
-- Whole
--
local REMEDY = ": write one into repl/reference/*.nacre, then " ..
  "nacre --test --update on that file"

local function covered(path, f)
  local info = f and nacre._info(f) or nacre._info(path) or
               reference.described((path:gsub("^t:", "")))
  if not info then fail("%s: nothing is known of it", path) end
  if not reference.entry(info.alias or info.name) then
    fail("%s (%s) has no entry%s", path, info.name, REMEDY)
  end
end

local function walk(path, t)
  for name, f in next, t do
    if type(name) == "string" and type(f) == "function" and
       not name:find "^_" then
      covered(path .. name, f)
    end
  end
end

for _, name in ipairs(nacre._names(true)) do covered(name) end
walk("", nacre._functions)
walk("t:", nacre._methods)
for _, space in ipairs {"linalg", "nn.functional", "autograd", "cuda"} do
  local t = nacre
  for word in space:gmatch "[^.]+" do t = t[word] end
  walk(space .. ".", t)
end

for _, command in ipairs(require "nacre.commands".list) do
  local entry = reference.entry(":" .. command.name)
  if not (entry and entry.fields.about and entry.example:find "^>") then
    fail(":%s has no entry with an example, or nothing is said about it%s",
         command.name, REMEDY)
  end
end

local leaf = nacre.ones(1, 1):requires_grad_()
for _, name in ipairs(require "nacre.lookup".properties) do
  local ok = pcall(function() return leaf[name] end)
  if not (ok and reference.described("t." .. name)) then
    fail("t.%s: no field, or it has no entry%s", name, REMEDY)
  end
end

-- Several texts with the same label are one.
local value = reference.entry "load".fields.value
for _, option in ipairs {"mmap", "usecols", "slice", "format"} do
  assert(value:find(option, 1, true), option .. ": of load nothing is said")
end

-- What gives tensors says of which shape and dtype.
local function complete(entry, info)
  local said = {}
  for _, fact in ipairs(reference.facts(info)) do said[fact[1]] = true end
  local gives = (info.results or ""):match "%w+"
  if gives ~= "tensor" and gives ~= "tensors" then return end
  local silent = entry.fields
  if not said.shape and silent.shape ~= "-" then
    fail("%s: nothing is said of the shape", entry.name)
  end
  if not said.dtype and silent.dtype ~= "-" and
     entry.page.name ~= "tensors" and entry.page.name ~= "autograd" then
    fail("%s: nothing is said of dtypes", entry.name)
  end
end

--
-- Examples
--
-- The inputs of an example, each with the lines that go on, but those that
-- are said to fail.
local function inputs(example)
  local list = {}
  for line in example:gmatch "[^\n]+" do
    local text, more = line:match "^> (.*)$", line:match "^>> (.*)$"
    if text then
      list[#list + 1] = text
    elseif more then
      list[#list] = list[#list] .. "\n" .. more
    elseif line:find "^error: " then
      list[#list] = nil
    end
  end
  return list
end

-- Calls the inputs of an example as functions; false and why if one fails.
local function play(entry, env)
  local list = inputs(entry.example)
  if #list == 0 then fail("%s has no example%s", entry.name, REMEDY) end
  for _, text in ipairs(list) do
    local f = load("return " .. text, "=example", "t", env) or
              load(text, "=example", "t", env)
    if not f then fail("%s: no Lua: %s", entry.name, text) end
    local ok, e = pcall(f)
    if not ok then return false, ("%s: %s"):format(text, tostring(e)) end
  end
  return true
end

-- An example needs nothing of the examples before it.
local known = setmetatable({print = function() end}, {__index = function(_, k)
  return _G[k] or error("no variable " .. k, 2)
end})

local function alone(entry)
  local ok, why = play(entry, setmetatable({}, {__index = known}))
  if not ok then fail("%s: %s", entry.name, why) end
end

--
-- What is said of dtypes is so: every dtype that an operation is said to
-- take, it takes in its example, too, and those of the core no other.
--
local groups = {
  floats = {"float16", "bfloat16", "float32", "float64"},
  integers = {"uint8", "int8", "int16", "int32", "int64"},
  all = C.dtypes, bool = {"bool"},
}

local function takes(text)
  local set = {}
  local function add(word, yes)
    for _, d in ipairs(groups[word] or {word}) do set[d] = yes end
  end
  local first, rest = text:match "^([^;,]*)[;,]?%s*(.*)$"
  local plain = first:gsub(" except .*$", "")
  for word in plain:gmatch "%w+" do add(word, true) end
  local except = first:match " except (%w+)"
  if except then add(except, nil) end
  local more = rest:match "^(.*) become the default" or
               rest:match "^(.*) are returned"
  for word in (more or ""):gmatch "%w+" do add(word, true) end
  return set
end

local creators = {}
for name in ("tensor ones zeros eye range arange full linspace"):gmatch "%a+" do
  creators[name] = true
end

-- nacre, but that tensors it makes go through `change`.
local function changing(change)
  return setmetatable({}, {__index = function(_, name)
    local f = nacre[name]
    return creators[name] and function(...) return change(f(...)) end or f
  end})
end

-- The same example, in which the floats, or if there are none the integers,
-- are of another dtype; nil if it makes no tensor.
local function variant(entry)
  local isfloat
  play(entry, setmetatable({nacre = changing(function(t)
    isfloat = isfloat or t:is_floating_point()
    return t
  end)}, {__index = known}))
  return isfloat ~= nil and function(dtype)
    return play(entry, setmetatable({nacre = changing(function(t)
      if t.dtype == "bool" or isfloat ~= t:is_floating_point() then return t end
      return t:to(dtype)
    end)}, {__index = known}))
  end
end

local ARITY = {unary = 1, test = 1, reduce = 1, binary = 2, compare = 2,
               ternary = 3}

-- A row is tried with nothing but tensors: a number may promote an operand.
local function row(name, arity)
  return function(dtype)
    local x = nacre.ones(2, {dtype = dtype})
    return C.works(nacre[name], table.unpack({x, x, x}, 1, arity))
  end
end

local function checkdtypes(entry, info)
  local text
  for _, fact in ipairs(reference.facts(info)) do
    if fact[1] == "dtype" then text = fact[2] end
  end
  if not text or text:find " for " or text:find "^dtype" or
     text:find "^that" or text:find "^int64" then
    return
  end
  local arity = ARITY[info.kind]
  local set, try = takes(text), arity and row(entry.name, arity)
  if not try then try = variant(entry) end
  if not try then return end
  for _, dtype in ipairs(C.dtypes) do
    local ok, why = try(dtype)
    if ok ~= (set[dtype] or false) and (info.kind ~= "function" or not ok) then
      fail("%s: said to take %s; but %s: %s", entry.name, text, dtype,
           why or ok and "works, too" or "fails")
    end
  end
end

--
-- Help fits
--
local function fits(name, text, width)
  for line in text:gmatch "[^\n]+" do
    local words = line:gsub("^>+ ", ""):gsub("^  %l+ +", "")  -- a label
    if utf8.len(line) > width and words:find "^%s*%S+%s" then
      fail("%s: wider than %d columns: %s", name, width, line)
    end
  end
end

-- What the machine may lack, as "needs" says in those pages.
local possible = {
  cuda = nacre.cuda.is_available(),
  cuda_kernels = nacre.cuda.is_available() and
                 require "nacre.machine".figure "nvrtc" == 1,
  images = (pcall(nacre.encode_png, nacre.zeros(1, 1))),
  python = nacre._python_has "numpy",
}

for _, page in ipairs(reference.pages()) do
  assert(page.title and #page.about > 0, page.name .. ": no title")
  for _, entry in ipairs(page.entries) do
    local name = entry.name
    local info = reference.described(name) or nacre._info(name)
    if not info then fail("%s: there is no such function", name) end
    complete(entry, info)
    for line in entry.example:gmatch "[^\n]+" do
      if utf8.len(line) > 80 then fail("%s: too wide: %s", name, line) end
    end
    if possible[page.name] ~= false and not info.command then
      alone(entry)
      checkdtypes(entry, info)
    end
    for _, width in ipairs {40, 80} do
      fits(name, reference.help(info, false, width), width)
      if info.method then
        fits(name, reference.help(info, true, width), width)
      end
    end
  end
end
for _, file in ipairs {"v.npy", "m.npy", "m.safetensors", "t.csv", "t.tsv",
                       "x.png"} do
  os.remove(file)
end

--
-- Current
--
local folder = here .. "../../docs/reference/"
local written = {}
for _, page in ipairs(reference.files()) do
  local f = io.open(folder .. page.name, "rb")
  if not f or f:read "a" ~= page.text then
    fail("docs/reference/%s is not current: " ..
         "nacre scripts/reference.lua docs/reference", page.name)
  end
  f:close()
  written[page.name] = true
end
for _, entry in ipairs(require "nacre.process".list_folder(folder)) do
  if not written[entry[1]] and not entry[2] then
    fail("docs/reference/%s is no page of the reference", entry[1])
  end
end

--
-- Ideas point into the guide
--
for _, row in ipairs(require "nacre.topics".list) do
  local f = io.open(here .. "../../" .. row[3], "rb")
  local text = f and "\n" .. f:read "a" or ""
  if f then f:close() end
  if not text:find("\n#+ " .. row[4]:gsub("%p", "%%%0") .. "\n") then
    fail("?%s points to %s, %q, which is not there", row[1], row[3], row[4])
  end
  fits(row[1], require "nacre.help".text(row[1]), 80)
end
