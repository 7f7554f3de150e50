-- SPDX-License-Identifier: MIT
-- Conversion from every dtype to every other: floats become integers towards
-- zero, those that do not fit the nearest that do, nan becomes 0. Alike in the
-- vectors and the rest of a loop, with strides, and at every position.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")

local values = {0.0, -0.0, 0.9, -0.9, 1.0, -1.0, -1.5, 2.7, -2.7, 126.9, 127.0,
  127.9, 128.0, -128.0, -128.9, -129.0, 254.9, 255.0, 255.9, 256.0, -255.0,
  300.0, 32767.0, 32767.9, 32768.0, -32768.9, -32769.0, 65504.0, -65504.0,
  0x1p31, 0x1p31 - 1, -0x1p31, -0x1p31 - 1, -0x1p31 - 2, 0x1p31 - 128, 0x1p32,
  0x1p53 + 2, 0x1p63, -0x1p63, -0x1p63 - 2048, 0x1p63 - 1024, 1e10, -1e10, 1e30,
  -1e30, 1e300, -1e300, 65519.0, 65520.0, 6e-8, 0.1, 3e9, 5e-324,
  1 / 0, -1 / 0, 0 / 0}

-- The tensors that hold these numbers in another way.
local function layouts(x)
  local n = x:numel()
  local gaps = x:new_zeros(n, 3)
  gaps:select(2, 2):copy_(x)
  return {dense = x, gaps = gaps:select(2, 2), transposed = x:reshape(n, 1):t()}
end

local function compare(what, x, t, wants)
  local got = x:to(t):reshape(-1):totable()
  for i, want in ipairs(wants) do
    local same = got[i] == want or got[i] ~= got[i] and want ~= want
    O.check(same, "%s as %s: element %d is %s, not %s", what, t, i,
            got[i], want)
  end
end

for _, from in ipairs(O.dtypes) do
  local x = nacre.tensor(values, {dtype = "float64"}):to(from)
  for _, t in ipairs(O.dtypes) do
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
        local alike = {}
        for k = 1, length do alike[k] = wants[i] end
        compare(from .. " repeated",
                x[{{i, i}}]:expand(length):contiguous(), t, alike)
      end
    end
  end
end

-- by an assignment
for _, t in ipairs(O.dtypes) do
  local y = nacre.zeros(1, {dtype = t})
  y[{{1, 1}}] = nacre.tensor {-0x1p100}
  O.check(y[1] == O.cast(-0x1p100, t), "assignment into %s", t)
end
O.done "casts"
