-- SPDX-License-Identifier: MIT
-- Floats become integers towards zero, those that do not fit the nearest that
-- do, nan becomes 0: of every type, alike in the vectors and the rest of a
-- loop, over gaps, and wherever the number stands.
-- Run by: nacre tests/ops/casts.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")

local ints = {"uint8", "int8", "int16", "int32", "int64"}
local values = {0.0, -0.0, 0.9, -0.9, 1.0, -1.0, -1.5, 2.7, -2.7, 126.9, 127.0,
  127.9, 128.0, -128.0, -128.9, -129.0, 254.9, 255.0, 255.9, 256.0, -255.0,
  300.0, 32767.0, 32767.9, 32768.0, -32768.9, -32769.0, 65504.0, -65504.0,
  0x1p31, 0x1p31 - 1, -0x1p31, -0x1p31 - 1, -0x1p31 - 2, 0x1p31 - 128, 0x1p32,
  0x1p53 + 2, 0x1p63, -0x1p63, -0x1p63 - 2048, 0x1p63 - 1024, 1e10, -1e10, 1e30,
  -1e30, 1e300, -1e300, 5e-324, 1 / 0, -1 / 0, 0 / 0}

-- The tensors that hold these numbers in another way.
local function layouts(x)
  local n = x:numel()
  local gaps = x:new_zeros(n, 3)
  gaps:select(2, 2):copy_(x)
  return {dense = x, gaps = gaps:select(2, 2), turned = x:reshape(n, 1):t()}
end

local function compare(what, x, t, wants)
  local got = x:to(t):reshape(-1):totable()
  for i, want in ipairs(wants) do
    O.check(got[i] == want, "%s as %s: element %d is %s, not %s", what, t, i,
            got[i], want)
  end
end

for _, from in ipairs(O.floats) do
  local x = nacre.tensor(values, {dtype = "float64"}):to(from)
  for _, t in ipairs(ints) do
    local wants = {}
    for i, v in ipairs(x:totable()) do wants[i] = O.cast(v, t) end
    for how, y in pairs(layouts(x)) do
      compare(from .. " " .. how, y, t, wants)
    end
    local into = nacre.zeros(#values, 2, {dtype = t})
    into:select(2, 2):copy_(x)
    compare(from .. " copied", into:select(2, 2), t, wants)
    for length = 1, 35, 2 do     -- each at every place of a short vector
      for i = 1, #values, 5 do
        compare(from .. " repeated",
                x[{{i, i}}]:expand(length):contiguous(), t,
                nacre.full(length, wants[i], {dtype = "int64"}):totable())
      end
    end
  end
end

-- by the operations that convert by themselves
for _, t in ipairs(ints) do
  local big = nacre.tensor({1e30, -1e30, 0 / 0}, {dtype = "float32"})
  local y = nacre.zeros(3, {dtype = t})
  y:copy_(big)
  O.check(y[1] == O.cast(1e30, t) and y[2] == O.cast(-1e30, t) and y[3] == 0,
          "copy_ into %s", t)
  y[{{1, 3}}] = big
  O.check(y[2] == O.cast(-1e30, t), "assignment into %s", t)
end
O.done "casts"
