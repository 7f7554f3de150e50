-- SPDX-License-Identifier: MIT
-- out= is written to, or refused by name: no function takes it and leaves it
-- as it is. Every function that can be reached
-- (tests/lib/public_functions.lua) is called with it, those that need other
-- arguments to succeed below.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local subjects = dofile(here .. "../lib/public_functions.lua") {
  python = true, files = true, images = true, session = true, commands = true,
}

local function refused(name, f, ...)
  local ok, err = pcall(f, ...)
  assert(not ok, name .. " takes out=")
  err = tostring(err)
  local says = name:match "[%w_]+$" .. ": no argument 'out'"
  assert(err:find(says, 1, true), name .. ": " .. err)
  assert(not err:find("did you mean", 1, true), name .. ": " .. err)
end

local count = 0
for _, subject in ipairs(subjects) do
  local out = nacre.ones(2, 3)
  local self = subject.fresh and subject.fresh()
  local ok, y
  if subject.fresh then ok, y = pcall(subject.f, self, {out = out})
  else ok, y = pcall(subject.f, {out = out}) end
  local is_operation = subject.name:find "^nacre%." or
                       subject.name:find "^t:"
  if ok and nacre.is_tensor(y) and not rawequal(y, self) and is_operation then
    assert(rawequal(y, out), subject.name .. " takes out= and leaves it")
    count = count + 1
  end
end
assert(count > 50, count)

local out, x = nacre.zeros(3), nacre.ones(3)
local o = {out = out}
for name, args in pairs {
  ["nacre.tensor"] = {{1, 2, 3}}, ["nacre.frombuffer"] = {("x"):rep(12)},
  ["nacre.fromfile"] = {"/dev/null"}, ["nacre.load"] = {"/dev/null"},
  ["nacre.readpng"] = {"/dev/null"},
} do
  local f = nacre[name:match "[^.]+$"]
  table.insert(args, o)
  refused(name, f, table.unpack(args))
end
for name, args in pairs {
  add_ = {1}, exp_ = {}, clamp_ = {0, 1}, fill_ = {2}, zero_ = {},
  cumsum_ = {1}, uniform_ = {}, type_as = {x}, resize_ = {3},
  requires_grad_ = {}, retain_grad = {}, renorm_ = {2, 1, 1},
} do
  if x[name] then
    table.insert(args, o)
    refused("t:" .. name, x[name], x, table.unpack(args))
  end
end
assert(out:eq(0):all():item() and x:eq(1):all():item())

-- What takes it writes to it.
for name, args in pairs {zeros = {3}, arange = {3}, full = {3, 5}, rand = {3},
                         eye = {3, 1}, linspace = {0, 1, 3}, empty = {3}} do
  local into = name == "eye" and nacre.zeros(3, 1) or nacre.zeros(3)
  table.insert(args, {out = into})
  local ok, y = pcall(nacre[name], table.unpack(args))
  if ok then assert(rawequal(y, into), name)
  else assert(tostring(y):find "no argument 'out'", name .. tostring(y)) end
end
