-- SPDX-License-Identifier: MIT
-- fused_common.lua - what the tests of fused functions on a device share.

if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
if require "nacre.machine".figure "nvrtc" == 0 then skip "there is no NVRTC" end

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check = O.check
local machine = require "nacre.machine"
local emulated = machine.emulated()
-- Code of a real NVRTC cannot run on an emulated device: see nvrtc_texts.py.
local runs = not (os.getenv "NACRE_NVRTC" or ""):find "%.so"

local tolerance = {float64 = 1e-11, float32 = 1e-5, float16 = 1e-2,
                   bfloat16 = 5e-2}

local function same(a, b, loose)
  if not O.same_layout(a, b) then return false end
  if O.bits(a) == O.bits(b) then return true end
  a, b = a:cpu(), b:cpu()
  local near = tolerance[a.dtype]
  return near and nacre.equal(a:isnan(), b:isnan()) and
         (loose or not emulated) and a:double():nan_to_num():allclose(
           b:double():nan_to_num(), {rtol = near, atol = near})
end

-- Waits for the compiler, which works while the program goes on.
local function settle()
  while machine.figure "fused_waiting" > 0 do nacre.cuda.synchronize() end
end

-- Does the fused function give what f gives, by so many launches (nil: some)?
-- Operands that it overwrites are made anew.
local function compare(what, parts, f, make, loose)
  local fused = nacre.fuse(f)
  local want = table.pack(f(make()))
  fused(make())
  settle()
  for try = 1, 2 do
    local before = machine.figure "fused"
    local got = table.pack(fused(make()))
    local launches = machine.figure "fused" - before
    check(not runs or launches == (parts or math.max(launches, 1)),
          "%s: %d fused launches", what, launches)
    check(got.n == want.n, "%s: %d results", what, got.n)
    for i = 1, want.n do
      check(same(got[i], want[i], loose), "%s: result %d differs", what, i)
    end
  end
end

-- Nothing has failed but, where code cannot run, to load each.
local function finish(name)
  local refused = runs and 0 or machine.figure "fused_compiled"
  check(machine.figure "fused_failed" == refused, "%d programs failed",
        machine.figure "fused_failed" - refused)
  O.done(name)
end

return {O = O, check = check, machine = machine, runs = runs, same = same,
        settle = settle, compare = compare, finish = finish,
        functions = dofile(here .. "../lib/fused.lua")(O)}
