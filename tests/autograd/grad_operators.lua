-- SPDX-License-Identifier: MIT
-- Gradients of the operators of core/operators.def, of indexing and of
-- operations in place: those of the calls in grad_operator_calls.lua are
-- compared with differences, also for second derivatives. An operator with a
-- gradient and without a line fails.
-- Run by: nacre tests/autograd/grad_operators.lua [operation]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local G = dofile(here .. "../lib/gradient_calls.lua")

local lines = G.lines(dofile(here .. "grad_operator_calls.lua"))
local chosen = arg and arg[1]
local calls = 0
for name, list in pairs(lines) do
  if not chosen or chosen == name then
    calls = calls + #list
    G.operation(name, list)
  end
end
assert(calls > 0, "no line for " .. tostring(chosen))

local random = {uniform_ = true, normal_ = true, bernoulli_ = true,
                exponential_ = true, cauchy_ = true, log_normal_ = true,
                geometric_ = true, random_ = true,
                -- tests/distributions/distribution_draws.lua
                _standard_gamma = true}
local file <close> = assert(io.open(here .. "../../core/operators.def"))
local rows = file:read "a":gsub("COMPLEX%((%u+)%)", "%1")
for name, class in rows:gmatch "\nOPERATOR[^\n]-([%w_]+), (%u+)," do
  local covered = lines[name] or lines[name:match "^(.-)_?$"]
  G.check(class == "NOGRAD" or random[name] or covered,
          "no line for the gradient of %s", name)
end

assert(G.failures == 0, G.failures .. " gradients are wrong")
print(("grad_operators: %d calls"):format(calls))
