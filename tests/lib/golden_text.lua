-- SPDX-License-Identifier: MIT
-- Golden text for how values are shown, for display.lua and
-- display_values.lua: what is shown is compared with what is wanted.

local S = {}

local display = require "nacre.display"

local checks, failures = 0, 0
local device = nacre.get_default_device()

-- Where the text says cpu, the default device may be another.
function S.same(name, got, want)
  checks = checks + 1
  if type(want) == "string" then
    want = want:gsub("%f[%w]cpu%f[%W]", device)
  end
  if got == want then return end
  failures = failures + 1
  io.stderr:write(("FAIL %s\n-- wanted\n%s\n-- got\n%s\n"):format(
    name, want, tostring(got)))
end

function S.check(name, value, opts, want)
  S.same(name, display.show(value, opts), want)
end

-- n numbers between -4 and 4 that every machine computes alike.
function S.V(n) return (nacre.arange(n) * 7919 % 1009 - 504) / 128 end

S.m = nacre.tensor {
  {-50, -13, 24, -40, -3}, {34, 0/0, 7, 44, -20},
  {17, -47, -10, 1/0, -37}, {-1/0, 37, -27, 10, 47}} / 64

-- The end of a test.
function S.done(name)
  if failures > 0 then
    io.stderr:write(("%d of %d checks failed\n"):format(failures, checks))
    os.exit(1)
  end
  print(("%s: %d checks"):format(name, checks))
end

return S
