-- SPDX-License-Identifier: MIT
--
-- printed_text.lua - takes what a test printed from its file. Of a part that
-- is much longer than what is expected there, only both ends are read.

local process = require "nacre.process"

local printed_text = {}

local PART, LEAST = 1 << 17, 1 << 12 -- bytes kept of one part
local ALL = 1 << 23                  -- and of all of them

-- How many bytes are expected from each position on where a step begins.
local function expected(job, messages)
  local of = {}
  for _, m in ipairs(messages) do
    local step = m[1] == "step" and job.steps and
                 job.steps[math.tointeger(tonumber(m[2]))]
    local n = 0
    for _, line in ipairs(step and step.expect or {}) do n = n + #line + 1 end
    of[m[4]] = (of[m[4]] or 0) + n
  end
  return of
end

-- The positions at which the messages divide the text, in order.
local function places(messages, size)
  local list, seen = {0, size}, {[0] = true, [size] = true}
  for _, m in ipairs(messages) do
    if not seen[m[4]] and m[4] < size then list[#list + 1] = m[4] end
    seen[m[4]] = true
  end
  table.sort(list)
  return list
end

-- The text from a to b, at most about so many bytes of it.
local function part(fd, a, b, most)
  if b - a <= most then return process.read_output(fd, a, b) end
  local half = most // 2
  return ("%s\n... %d bytes left out ...\n%s"):format(
    process.read_output(fd, a, a + half), b - a - 2 * half,
    process.read_output(fd, b - half, b))
end

-- The text in a file, which is closed. The positions in the messages become
-- those in the text.
function printed_text.take(fd, messages, job)
  local size = process.output_size(fd)
  local at, parts, to, length = places(messages, size), {}, {[0] = 0}, 0
  local most = math.max(LEAST, math.min(PART, ALL // #at))
  local wants = expected(job, messages)
  for k = 2, #at do
    local a, b = at[k - 1], at[k]
    parts[#parts + 1] = part(fd, a, b, most + 2 * (wants[a] or 0))
    length = length + #parts[#parts]
    to[b] = length
  end
  for _, m in ipairs(messages) do m[4] = to[math.min(m[4], size)] end
  process.close_output(fd)
  return table.concat(parts)
end

return printed_text
