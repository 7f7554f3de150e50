-- SPDX-License-Identifier: MIT
-- Timing with a CUDA device: every run has the same operands, a verdict is one
-- of runs that kept to their device, and memory lasts.
-- Run by: nacre tests/cuda/cuda_timing.lua, with a device or
-- NACRE_CUDA=emulated

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local program = dofile(here .. "../lib/program.lua")
if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end

-- What the program says to these lines, all of it.
local function session(lines) return (program("-i", lines)) end

local function has(text, ...)
  for _, what in ipairs {...} do
    assert(text:find(what, 1, true), what .. " is missing in\n" .. text)
  end
  return text
end

local function lacks(text, what)
  assert(not text:find(what, 1, true), what .. " is in\n" .. text)
end

-- in place: copies are changed, the same for each device
do
  local text = session [[
a = nacre.ones(8, 8)
:parity a:add_(1)
:compare --budget 0.02 a:add_(1)
:compare --budget 0.02 a:add_(1) ;; a + 1
print("sum", a:sum():item())
]]
  local _, n = has(text, "both give the same bits", "sum\t64"):gsub(
    "results agree: bit by bit", "")
  assert(n == 2, text)
  has(text, "copies", "vs cpu")
end

-- random numbers are the same ones; float64 draws others
do
  local text = session [[
:compare --budget 0.02 nacre.rand(9)
:parity nacre.rand(9)
]]
  has(text, "results agree: bit by bit", "which differ in float64",
      "both give the same bits")
  lacks(text, "max ulp")
end

-- tensors in tables go along; where a run did not keep to its device there is
-- no verdict
do
  local text = session [[
c = {{a = nacre.ones(8, 8)}}
:compare --budget 0.02 c[1].a:sum()
]]
  has(text, "results agree", "1.0x")
  lacks(text, "no verdict")
  text = session ":compare --budget 0.02 nacre.ones(8):cuda():exp()\n"
  has(text, "no verdict: the run for cpu used a CUDA device")
  for _, expression in ipairs {"1 + 1", "math.sin(2)"} do
    text = session(":compare --budget 0.02 " .. expression .. "\n")
    has(text, "no verdict: the run for cuda:0 did not use it")
    lacks(text, "copies pay")
    lacks(text, "1.0x")
  end
  text = session [[
g = nacre.ones(8)
function f() g:add_(1) return g end
:parity f()
]]
  has(text, "no verdict")
  lacks(text, "ulp")
  text = session ":sweep n=4..16 --budget 0.01 n + 1\n"
  has(text, "no verdict")
end

-- an emulated device is marked wherever times are told
if nacre.cuda.get_device_name():find "mulated" then
  local text = session [[
g = nacre.ones(8, {device = "cuda"})
:compare --budget 0.02 g:exp() ;; g:sin()
]]
  has(text, "cuda:0 is emulated on the cpu")
  for _, line in ipairs {":trace g:exp()", ":profile g:exp()",
                         ":timing on\ng:exp():sum()"} do
    text = session('g = nacre.ones(8, {device = "cuda"})\n' .. line .. "\n")
    has(text, "(CUDA is emulated: not a GPU)")
  end
  has(program "--time -e 'nacre.ones(8):cuda()'", "wall",
      "(CUDA is emulated: not a GPU)")
end

-- what a sample leaves behind is not what memory is short of
do
  local free, total = nacre.cuda.mem_get_info()
  if total <= 4 << 30 then       -- an emulated device
    local a = nacre.ones(free // 12, {device = "cuda"})
    local r = nacre.bench(function() return a + 1 end, {budget = 0.1})
    assert(r.device == "cuda:0" and #r.samples >= 3)
    local ok, e = pcall(nacre.bench, function()
      return nacre.cat {a, a, a, a}
    end, {budget = 0.1})
    assert(not ok and e.code == "ENOMEM", "what never fits fails")
  end
end
