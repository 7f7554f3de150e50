-- SPDX-License-Identifier: MIT
-- A function ignores no argument: every call that the examples of the reference
-- make is made first with one argument more than it takes, and with one of a
-- name that it does not have. Both are errors.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local each_call = dofile(here .. "../lib/example_calls.lua")
local NAME = "no_such_argument"

local failures, tried = 0, {}

local function check(ok, ...)
  if ok then return end
  failures = failures + 1
  print((...):format(select(2, ...)))
end

-- ---- what has no limit, as it hands arguments on

local function open(info)
  return (info.signature or ""):find("...)", 1, true) or
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

each_call(function(name, f, info, args)
  if tried[name] or open(info) then return end
  tried[name] = true
  refuses(name, f, info, args)
end)
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
print(("surplus_arguments: %d functions refuse what they do not take")
      :format(n))
