-- SPDX-License-Identifier: MIT
-- fit_line.lua - the example of the module: lua5.4 fit_line.lua
local nacre = require "nacre"
local nn = nacre.nn

-- A line through points, fitted by an optimizer.
local x = nacre.tensor{1.0, 2, 3, 4}:reshape(4, 1)
local y = 3 * x
local line = nn.Linear(1, 1, {bias = false})
local optimizer = nacre.optim.SGD(line:parameters(), {lr = 0.05})
for _ = 1, 50 do
  optimizer:zero_grad()
  nn.functional.mse_loss(line(x), y):backward()
  optimizer:step()
end
print(("slope %.3f"):format(line.weight:item()))

-- An error is an object with a text; the host program goes on.
local ok, e = pcall(x.mm, x, x)
print(ok, e.message)
