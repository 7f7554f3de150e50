-- SPDX-License-Identifier: MIT
-- Our side of torch_bench.py.
--
--   nacre torch_bench.lua --list        the cases, a line each, tabs between
--   nacre torch_bench.lua THREADS       reads lines from stdin, answers each:
--     "case N", then "forward CALLS" or "backward CALLS": the seconds of a call

local here = arg[0]:match("^(.*)/[^/]*$") or "."
local cases = dofile(here .. "/torch_cases.lua")
local F = nacre.nn.functional

if arg[1] == "--list" then
  for _, c in ipairs(cases) do
    local fields = {}
    for i = 1, 7 do fields[i] = tostring(c[i] or "") end
    print(table.concat(fields, "\t"))
  end
  return
end

local function operand(sizes, limit)
  local size = {}
  for n in sizes:gmatch "%d+" do size[#size + 1] = tonumber(n) end
  if limit then return nacre.randint(1, tonumber(limit) + 1, size) end
  return nacre.randn(size)
end

-- The operands by name, and those that a gradient goes to.
local function prepared(c)
  local values, leaves = {nacre = nacre, F = F}, {}
  for name, sizes, limit in c[3]:gmatch "(%w+)=([%dx]+)<?(%d*)" do
    values[name] = operand(sizes, limit ~= "" and limit)
    if limit == "" then leaves[#leaves + 1] = values[name] end
  end
  return values, leaves
end

local function timed(calls, f)
  local y
  local start = nacre.clock()
  for _ = 1, calls do y = f() end
  local seconds = (nacre.clock() - start) / calls
  return y and seconds
end

nacre.set_num_threads(tonumber(arg[1]))
nacre.manual_seed(1)
local forward, backward, leaves
for line in io.lines() do
  local word, n = line:match "^(%l+) (%d+)$"
  n = tonumber(n)
  if word == "case" then
    forward, backward = nil, nil
    collectgarbage()
    local values
    values, leaves = prepared(cases[n])
    forward = assert(load("return " .. cases[n][4], "=case", "t", values))
  elseif word == "forward" then
    print(("%.9g"):format(timed(n, forward)))
  else
    if not backward then
      for _, t in ipairs(leaves) do t:requires_grad_() end
      local y = forward()
      local options = {grad_outputs = y:detach():clone(),
                       retain_graph = true}
      function backward()
        return nacre.autograd.grad(y, leaves, options)
      end
    end
    print(("%.9g"):format(timed(n, backward)))
  end
  io.stdout:flush()
end
