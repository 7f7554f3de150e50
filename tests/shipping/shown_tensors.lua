-- SPDX-License-Identifier: MIT
-- shown_tensors.lua - prints tensors, in the program and in the module, whose
-- output must be the same.
local nacre = require "nacre"

nacre.manual_seed(1)
local x = nacre.randn(3, 4, {requires_grad = true})
print(x, x * 2)
print(x:t())
print(nacre.tensor(3.5), nacre.zeros(0), nacre.tensor {true, false})
print(nacre.randn(3, 200) * 1e3)
print(nacre.randn(6, 3, 4):to "bfloat16")
print(nacre.tensor({1e-9, 123456.789}, {dtype = "float64"}), nacre.arange(1000))
print(nacre.ones(500, 500))
print(nacre.tensor {1, 0 / 0, 1 / 0, -1 / 0})
print(tostring(nacre.rand(40, 30)))
nacre._dry_graph(function() end, function() print(nacre.ones(3)) end)

local freed <const> = nacre.ones(3)
freed:free()
print(freed)
