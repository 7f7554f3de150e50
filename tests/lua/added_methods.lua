-- SPDX-License-Identifier: MIT
-- nacre.Tensor: methods that a program adds to tensors.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local fails = dofile(here .. "../lib/common.lua").fails
local Tensor = nacre.Tensor

local function set(name, f) Tensor[name] = f end

function Tensor:mean_square(by) return (self * self):mean() * (by or 1) end
assert(nacre.tensor {1., 2.}:mean_square():item() == 2.5)
assert(nacre.tensor {1., 2.}:mean_square(2):item() == 5)
assert(Tensor.mean_square(nacre.ones(3)):item() == 1)
Tensor.mean_square = function() return "another" end
assert(nacre.ones(1):mean_square() == "another")
Tensor.mean_square = nil
fails("no method 'mean_square'",
      function() return nacre.ones(1):mean_square() end)

assert(Tensor.sum(nacre.ones(2)):item() == 2 and Tensor.view and
       Tensor.pad and Tensor.nothing == nil and Tensor[1] == nil)
do
  local n = 0
  for name, f in pairs(Tensor) do
    n = n + (type(name) == "string" and type(f) == "function" and 1 or 0)
  end
  assert(n > 300)
end
for _, name in ipairs {"sum", "add_", "view", "backward", "pad", "softmin"} do
  if Tensor[name] then
    fails("tensors already have a method " .. name, set, name, print)
  end
end
for _, name in ipairs {"shape", "dtype", "grad", "T"} do
  fails(name .. " is a field", set, name, print)
end
for _, name in ipairs {"1:2", "a b", "", 1, true, "x\0"} do
  fails("a method needs a name", set, name, print)
end
fails("must be a function, not a number", set, "foo", 3)
fails("does not create tensors", "nacre.zeros(2, 3), or nacre.tensor{1, 2}",
      Tensor, 2, 3)
assert(tostring(Tensor) == "nacre.Tensor" and rawequal(Tensor, nacre.Tensor))
