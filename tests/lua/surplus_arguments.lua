-- SPDX-License-Identifier: MIT
-- The law of arguments: what a function does not take it does not pass over.
-- Every call that the examples of the reference make is made first with one
-- argument more than it takes, and with one of a name that it does not have:
-- both are errors.
-- Run by: nacre tests/lua/surplus_arguments.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local reference = require "nacre.reference"
local play = dofile(here .. "../lib/play_example.lua")
local NAME = "no_such_argument"

local failures, tried = 0, {}

local function check(ok, ...)
  if ok then return end
  failures = failures + 1
  print((...):format(select(2, ...)))
end

-- ---- what has no limit, as it hands arguments on

local function open(info)
  return not info or (info.signature or ""):find("...)", 1, true) or
         (info.signature or ""):find "%.%.%., "
end

local function message(e)
  return type(e) == "table" and e.message or tostring(e)
end

-- The last argument with one more name in it, or a table of that name alone.
local function named(args)
  local last, out = args[args.n], table.move(args, 1, args.n, 1, {})
  local names = type(last) == "table" and getmetatable(last) == nil and
                type(next(last)) == "string"
  local options = {[NAME] = 1}
  for key, v in pairs(names and last or {}) do options[key] = v end
  out.n = names and args.n or args.n + 1
  out[out.n] = options
  return out
end

local function refuses(name, f, info, args)
  local more = table.move(args, 1, args.n, 1, {})
  local last = math.max(args.n, #info.params) + 1
  more[last] = io.stdout
  check(not pcall(f, table.unpack(more, 1, last)),
        "%s: takes %d arguments, a file at the end", name, last)
  local with = named(args)
  local ok, e = pcall(f, table.unpack(with, 1, with.n))
  local why = ok and "no error" or message(e)
  check(why:find("no argument '" .. NAME .. "'", 1, true) or
        why:find "element %d+ of the list is a table", -- of any number
        "%s{%s=1}: %s", name, NAME, why)
end

-- ---- the calls of the examples

local inside = false

local function wrapped(name, f)
  local info = nacre._info(f)
  if open(info) or name:find "^_" then return nil end
  return function(...)
    if inside or tried[name] then return f(...) end
    inside, tried[name] = true, true
    refuses(name, f, info, table.pack(...))
    inside = false
    return f(...)
  end
end

local spaces = {
  [""] = nacre._functions, ["t:"] = nacre._methods,
  ["linalg."] = nacre.linalg, ["nn.functional."] = nacre.nn.functional,
  ["autograd."] = nacre.autograd, ["cuda."] = nacre.cuda,
}

local function wrap()
  local undo, original, info = {}, {}, nacre._info
  for prefix, space in pairs(spaces) do
    local list = {}
    for name, f in next, space do
      if type(f) == "function" then list[name] = f end
    end
    for name, f in pairs(list) do
      local w = wrapped(prefix .. name, f)
      if w then
        original[w] = f
        undo[#undo + 1] = {space, name, f}
        rawset(space, name, w)
      end
    end
  end
  nacre._info = function(x) return info(original[x] or x) end
  return function()
    for _, u in ipairs(undo) do rawset(u[1], u[2], u[3]) end
    nacre._info = info
  end
end

local unwrap = wrap()
for _, page in ipairs(reference.pages()) do
  for _, entry in ipairs(page.entries) do
    play(entry, function() inside = false end)
  end
end
unwrap()
for _, file in ipairs {"v.npy", "m.npy", "m.safetensors", "t.csv", "t.tsv",
                       "x.png"} do
  os.remove(file)             -- what the examples write
end

local n = 0
for _ in pairs(tried) do n = n + 1 end
check(n > 500, "only %d functions were called", n)

-- ---- what the examples do not call

local g = nacre.Generator()
for _, name in ipairs {"seed", "initial_seed", "get_state", "clone"} do
  refuses("Generator:" .. name, g[name], nacre._info(g[name]),
          table.pack(g))
end
if nacre.cuda.is_available() then
  for _, v in ipairs {nacre.cuda.Stream(), nacre.cuda.Event()} do
    refuses("query", v.query, nacre._info(v.query), table.pack(v))
    refuses("synchronize", v.synchronize, nacre._info(v.synchronize),
            table.pack(v))
  end
end

assert(failures == 0, failures .. " arguments are passed over")
print(("surplus: %d functions refuse what they do not take"):format(n))
