-- SPDX-License-Identifier: MIT
-- Runs the calls that diff_numpy.py made in a folder; writes each result as
-- .npy there and prints "ok" or the error.

local folder = arg[1]

function input(i) return nacre.load(("%s/%d.npy"):format(folder, i)) end

function set(t, value, key)
  t[key] = value
  return t
end

local cases = dofile(folder .. "/cases.lua")
for i, case in ipairs(cases) do
  local ok, y = pcall(case)
  if ok then
    if not nacre.is_tensor(y) then y = nacre.tensor(y) end
    nacre.save(("%s/out%d.npy"):format(folder, i), y, {atomic = false})
    print("ok")
  else
    print((tostring(y):gsub("\n", " ")))
  end
end
