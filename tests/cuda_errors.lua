-- SPDX-License-Identifier: MIT
-- What goes wrong on a CUDA device, and where that is said: a device works
-- later than it is asked, so its errors come with the next thing that waits.
-- Run by: nacre tests/cuda_errors.lua, with a device or NACRE_CUDA=emulated

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "common.lua")
local cuda, fails = nacre.cuda, C.fails
if not cuda.is_available() then skip(cuda.why()) end

local g = nacre.arange(12, { device = 0 }):view(3, 4)
local function index(...) return nacre.tensor({ ... }, { device = 0 }) end

-- The work raises text, at the latest when the device is waited for, and is
-- then forgotten.
local function late(text, f, ...)
  local e = fails(text, nil, function(...)
    f(...)
    cuda.synchronize()
  end, ...)
  cuda.synchronize()
  assert((g + 1):sum():item() == 78, "everything goes on")
  return e
end

-- ---- wrong indices, found by the device

local e = late("index 4 is outside dim 1 of size 3", function()
  return g[index(1, 4)]
end)
assert(e.code == "EINDEX")
late("index -4 is outside dim 1 of size 3", function() return g[index(-4)] end)
late("index 0", function() return g[index(1, 0, 2)] end)
late("index 5 is outside dim 2 of size 4", function()
  return g[{ {}, index(5) }]
end)
local copy = g:clone()
late("index 9", function() copy[index(9)] = 1 end)
late("index 9", function() return g[index(9)]:sum():item() end)
late("index 9", function() return g[index(9)]:cpu() end)
late("index 9", function() return g[index(9)]:totable() end)
late("index 9", function() return tostring(g[index(9)]) end)
-- the first of several is told
late("index 9", function()
  local _ = g[index(9)]
  cuda.synchronize()
end)

-- ---- what is known at once is said at once

fails("index 4 is outside dim 1", nil, function() return g[4] end)
fails("index 0", nil, function() return g[0] end)
fails("do not broadcast", nil, function() return g + index(1, 2) end)
fails("inner sizes", nil, g.mm, g, g)
fails("has 12", nil, g.view, g, 5)
fails("randn", nil, nacre.randn, 2, { dtype = "int32", device = 0 })
fails("a tensor of one element", nil, function() return g:item() end)
local small = index(200):to("uint8")
fails("", nil, function() small[1] = 300 end)
fails("", nil, nacre.bitwise_and, g:float(), g:float())
e = late("integer division by zero", function()
  return index(7, 7) // index(2, 0)
end)
assert(e.code == "EVALUE", e.code)

-- ---- a script learns of it at its end

local program = arg[-1]
for i = -1, -20, -1 do if arg[i] then program = arg[i] end end
local function run(code, options)
  local path = os.tmpname()
  local ok, how, status = os.execute(("'%s' %s -e '%s' > %s 2>&1"):format(
    program, options or "", code, path))
  local f <close> = io.open(path)
  local text = f:read "a"
  os.remove(path)
  return status, text, ok, how
end
local bad = "local g = nacre.zeros(3, {device=0}); "
local wrong = "x = g[nacre.tensor({9}, {device=0})] "
local status, text = run(bad .. wrong)
assert(status == 1 and text:find("index 9", 1, true), text)
status, text = run(bad .. wrong .. "os.exit(0)")
assert(status == 1 and text:find("index 9", 1, true), text)
status = run(bad .. wrong .. "os.exit(3)")
assert(status == 3)
status, text = run(bad .. "x = g + 1")
assert(status == 0 and text == "", text)
status, text = run("print(nacre.ones(2).device)", "--device cuda")
assert(status == 0 and text == "cuda:0\n", text)
status, text = run("print(nacre.get_default_device())", "--device auto")
assert(status == 0 and text == "cuda:0\n", text)
status, text = run("print(1)", "--device cuda:99")
assert(status == 1 and text:find("there is no cuda:99", 1, true), text)
status, text = run("print(1)", "--device toaster")
assert(status == 2 and text:find("no device is called", 1, true), text)

-- ---- at the prompt it belongs to its line

local function transcript(lines, options)
  local path = os.tmpname()
  local f = io.open(path, "w")
  f:write(lines)
  f:close()
  local p = io.popen(("'%s' -i %s < %s 2>&1"):format(program, options or "",
      path))
  local out = p:read "a"
  p:close()
  os.remove(path)
  return out
end
local out = transcript(([[
g = nacre.zeros(3, {device=0})
x = g[nacre.tensor({9}, {device=0})]
1 + 1
]]), "-q")
local at = out:find("index 9", 1, true)
assert(at and at < out:find("1 + 1", 1, true), out)
assert(not out:find("index 9", at + 1, true), "once: " .. out)
assert(out:find("\n2\n"), out)
out = transcript(":dev cuda\nnacre.ones(2)\n:dev cpu\nnacre.ones(2)\n", "-q")
assert(out:find("default device cuda:0 (was cpu)", 1, true), out)
assert(out:find("\ncuda:0> nacre.ones(2)\nfloat32[2] cuda:0  8 B\n", 1, true),
       out)
assert(out:find("\n> nacre.ones(2)\nfloat32[2] cpu  8 B\n", 1, true), out)
out = transcript("g = nacre.ones(1000):cuda()\n:whos\n:mem\n:time g + g\n" ..
                 ":doctor\n:gc\n", "-q")
assert(out:find("float32%[1000%] cuda:0%s+3.9 KiB"), out)
assert(out:find("cuda:0%s+3.*in use.*free of"), out)
assert(out:find("cuda:0 .*capability"), out)
assert(out:find("\n%a+ed [%d.]+ %a+ o[fn] "), out)
out = transcript("a = nacre.ones(2)\nb = nacre.ones(2):cuda()\n" ..
                 ":shape a:cuda() + b\n:shape a + b\n", "-q")
assert(out:find("float32[2] cuda:0, ", 1, true), out)
assert(out:find("operands are on different devices", 1, true), out)
out = transcript("a = nacre.ones(2)\nb = nacre.ones(2):cuda()\na + b\n", "-q")
assert(out:find("operands are on different devices", 1, true), out)
assert(out:find("left   a  float32[2] cpu", 1, true), out)
assert(out:find("right  b  float32[2] cuda:0", 1, true), out)
assert(out:find("hint: .*b:to") or out:find("hint: .*a:to"), out)
print "ok"
