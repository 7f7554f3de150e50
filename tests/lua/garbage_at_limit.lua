-- SPDX-License-Identifier: MIT
-- No call fails because of garbage: each public function is called with a small
-- tensor while the limit of memory is filled with tensors that nobody holds any
-- more. It may refuse the tensor, but there is memory.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local subjects = dofile(here .. "../lib/public_functions.lua")()
local LIMIT = nacre._memory().live + (1 << 22)

local function fill()
  while nacre._memory().live < LIMIT - 250 do nacre.ones(2, 3) end
end

-- What f says of the lack of memory, if it does.
local function lack(f, ...)
  fill()
  local ok, e = pcall(f, ...)
  local said = ok and "" or select(2, pcall(tostring, e))
  return type(said) == "string" and said:match "^[^\n]*the limit of[^\n]*"
end

-- ---- arguments that fit, and fields that are set

local x = nacre.ones(2, 3)
local leaf = nacre.ones(2, 3, {requires_grad = true})
local calls = {
  function() return nacre.nn.Parameter(x) end,
  function() return x:clone():requires_grad_(true) end,
  function() x:clone().requires_grad = true end,
  function() leaf.grad = x end,
  function() x:clone().data = x end,
  function() return leaf.data, leaf:detach() end,
  function() (leaf * 2):retain_grad() end,
  function() (leaf * 2):detach_() end,
  function() leaf:register_hook(print):remove() end,
  function() return nacre.nn.Linear(3, 2)(x) end,
  function() (leaf * leaf):sum():backward() end,
  function() return x["1, :"], x[1][2], x[{{1, 2}}] end,
  function() x[1] = nacre.zeros(3) end,
  function() return nacre.tensor {{1, 2}, {3, 4}}, x:tolist() end,
  function() return nacre.optim.SGD({leaf}, {lr = 1}):step() end,
}
nacre.set_memory_limit(LIMIT)
collectgarbage "stop"
for i, f in ipairs(calls) do
  fill()
  local ok, e = pcall(f)
  assert(ok, ("call %d: %s"):format(i, tostring(e)))
end

-- ---- all functions, whatever they say of the tensor

local wrong = {}
for _, subject in ipairs(subjects) do
  local self = subject.fresh and subject.fresh()
  local said = self ~= nil and (lack(subject.f, self) or
                                lack(subject.f, self, nacre.ones(2, 3)))
  if not subject.fresh then
    said = lack(subject.f, nacre.ones(2, 3)) or
           lack(subject.f, nacre.ones(2, 3), nacre.ones(2, 3))
  end
  if said then wrong[#wrong + 1] = subject.name .. ": " .. said end
end
assert(#subjects > 900, #subjects)
print(table.concat(wrong, "\n"))
assert(#wrong == 0, #wrong .. " functions")
