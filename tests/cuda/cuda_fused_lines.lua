-- SPDX-License-Identifier: MIT
-- Fused functions on a device: operators along lines and their gradients,
-- random numbers, results that are computed twice. cuda_fused.lua has the rest.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local common = dofile(here .. "fused_common.lua")
local O, check, machine, runs = common.O, common.check, common.machine,
                                common.runs
local same, settle, compare = common.same, common.settle, common.compare
local function finish() common.finish "cuda_fused_lines" end
nacre.manual_seed(3)

local F = nacre.nn.functional
local function on(t) return t:cuda() end

-- ---- operators along lines, and gradients of lines

local along = {
  softmax = function(v) return (v * 2):softmax(-1) end,
  log_softmax = function(v) return (v * 2):log_softmax(-1) + 1 end,
  deviation = function(v)
    return (v - v:mean(-1, true)) / (v:var(-1, true, true) + 1e-5):sqrt(),
           v * v:std(-1, false, true)
  end,
  logsumexp = function(v) return v - v:logsumexp(-1, true) end,
  extremes = function(v)
    return v - v:max(-1, true) + v:min(-1, true) * 2
  end,
  norms = function(v)
    return F.layer_norm(v, {v:size(-1)}) * 2 + F.rms_norm(v, {v:size(-1)})
  end,
}
local function line_gradient(f, v)
  v = v:detach():requires_grad_()
  local y = f(v)
  return y:detach(), (nacre.autograd.grad({(y * y):sum()}, {v}))
end
-- Each is compiled, which takes half a second.
for t, lengths in pairs {float32 = {64, 192, 1024}, float64 = {192}} do
  for _, n in ipairs(lengths) do
    local v = on(nacre.randn(7, n)):to(t)
    for name, f in pairs(along) do
      compare(("%s of %d, %s"):format(name, n, t), 1, f,
              function() return v end, true)
      -- sums of many large floats differ where the order does
      if name ~= "norms" and (n < 1000 or t == "float64") then
        local fused = nacre.fuse(f)
        for _ = 1, 2 do
          line_gradient(fused, v)
          settle()
        end
        local before = machine.figure "fused"
        local y, g = line_gradient(fused, v)
        check(not runs or machine.figure "fused" == before + 2,
              "%s: %d launches", name, machine.figure "fused" - before)
        local want, d = line_gradient(f, v)
        check(same(y, want, true) and same(g, d, true),
              "gradient of %s of %d, %s", name, n, t)
      end
    end
  end
end
local m = nacre.randn(8, 128)
m[3][7], m[5][1] = 0 / 0, math.huge
m = on(m)
compare("nan and inf", 1, along.extremes, function() return m end, true)
compare("infinite", 1, along.logsumexp, function() return -m / 0 end, true)

-- ---- random numbers by their places; a result twice

local function drawn(v)
  return F.dropout(v, 0.3) * 2, nacre.rand(v:size(), {device = v.device}) * v,
         nacre.randn_like(v) + v
end
local function seeded(v)
  return function()
    nacre.manual_seed(4)
    return v
  end
end
for _, size in ipairs {{1003}, {40, 64}, {3, 5, 7}} do
  local v = nacre.randn(size)
  compare("drawn", 1, drawn, seeded(on(v)))
  compare("drawn, float64", 1, drawn, seeded(on(v:double())))
  compare("dropout of bfloat16", 1, function(a)
    return F.dropout(a * 2, 0.3)
  end, seeded(on(v:bfloat16())))
end
compare("drawn in lines", 1, function(a)
  return F.dropout(a - a:mean(-1, true), 0.4) + nacre.rand_like(a)
end, seeded(on(nacre.randn(9, 96))), true)
do -- the gradient draws the same again
  local fused, v = nacre.fuse(drawn), on(nacre.randn(500))
  local function gradient(f)
    nacre.manual_seed(9)
    return line_gradient(f, v)
  end
  for _ = 1, 2 do
    gradient(fused)
    settle()
  end
  local y, g = gradient(fused)
  local want, d = gradient(drawn)
  check(same(y, want, true) and same(g, d, true), "gradient of dropout")
end
local a, b = on(nacre.randn(40, 64)), on(nacre.randn(40, 64))
compare("a result twice", 1, function(v, w)
  return v * w + 1, v * w, v * w + 1
end, function() return a, b end)
do -- halves that are rounded in results alone
  local function f(v, w) return ((v + 64) - 64) * w end
  local fused = nacre.fuse(f, {rounding = "end"})
  local v, w = a:half(), b:half()
  fused(v, w)
  settle()
  local y = fused(v, w)
  check(not runs or same(y, f(v:float(), w:float()):half()), "rounding")
end

finish()
