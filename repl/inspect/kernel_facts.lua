-- SPDX-License-Identifier: MIT
-- kernel_facts.lua - the command :kernel: what a kernel of the user's own CUDA
-- C++ takes of a device, and how many of its blocks run at once.

local facts = require "nacre.tensor_facts"
local units = require "nacre.units"
local kernel_facts = {}

local SIZES = {32, 64, 128, 256, 512, 1024}

-- Text for the facts of a kernel: a line, then one for each size of blocks.
local function lines(k)
  local a = k:attributes(256)
  local out = {
    tostring(k),
    ("  %d registers, %s of local memory%s, %s shared, blocks of at most %d")
      :format(a.registers, units.bytes(a.local_bytes),
              a.local_bytes > 0 and " (spills, or arrays)" or "",
              units.bytes(a.shared_bytes), a.max_threads)}
  for _, n in ipairs(SIZES) do
    if n <= a.max_threads then
      local blocks = k:attributes(n).blocks_per_multiprocessor
      out[#out + 1] = ("  %4d threads: %2d blocks, %4d threads on a " ..
                       "multiprocessor"):format(n, blocks, n * blocks)
    end
  end
  return out
end

local function is_kernel(v)
  local meta = debug.getmetatable(v)
  return type(v) == "table" and meta and meta.__name == "nacre.cuda.kernel"
end

local WHAT <const> = "shows a kernel of nacre.cuda.kernel, not %s"

-- What v is, if it is none.
local function kind(v)
  local meta = debug.getmetatable(v)
  local name = type(meta) == "table" and meta.__name
  if name == "nacre.kernel" or name == "nacre.fused" then
    return "a fused function, see :explain"
  end
  return v == nil and "nil" or "a " .. facts.typename(v)
end

function kernel_facts.run(shell, text)
  local unit = shell.compile(text)
  local got = unit and shell.run(unit)
  if not got then return end
  if not is_kernel(got[1]) then
    return shell.fail(":kernel " .. WHAT:format(kind(got[1])))
  end
  shell.protected(function()
    for _, line in ipairs(lines(got[1])) do io.stdout:write(line, "\n") end
    return true
  end)
end

-- shell.kernel(k): the lines
function kernel_facts.call(k)
  if not is_kernel(k) then error(WHAT:format(kind(k)), 2) end
  return table.concat(lines(k), "\n")
end

return kernel_facts
