-- SPDX-License-Identifier: MIT
-- 2^31 + 7 elements, which go in parts as counts of MPI are an int: 2 GB a
-- rank, half a minute. Skipped unless NACRE_NIGHTLY is set and there is the
-- memory.
local NEEDED = 12         -- GB on two ranks, with what MPI takes

local f = os.getenv "NACRE_NIGHTLY" and io.open "/proc/meminfo"
local free = f and tonumber(f:read "a":match "MemAvailable:%s*(%d+)") or 0
if f then f:close() end
if free < NEEDED << 20 then skip "NACRE_NIGHTLY=1, with 12 GB of memory" end

local dist = nacre.distributed
dist.init_process_group()
local rank, size = dist.get_rank(), dist.get_world_size()
local N = (1 << 31) + 7
local x = nacre.full({N}, rank + 1, {dtype = "uint8"})

-- The elements at both ends, and at the bounds of the parts, differ.
local at = {1, 2, 1 << 28, (1 << 28) + 1, 1 << 31, (1 << 31) + 1, N}
for k, i in ipairs(at) do x[i] = 10 * k + rank end

local function check(first, each, rest, least)
  for k, i in ipairs(at) do
    assert(x[i] == first * 10 * k + each, ("element %d is %d"):format(i, x[i]))
    x[i] = rest
  end
  assert(x:min():item() == least and x:max():item() == least)
  for k, i in ipairs(at) do x[i] = 10 * k + rank end
end

local sum = size * (size + 1) // 2
dist.all_reduce(x)
check(size, size * (size - 1) // 2, sum, sum)
x:fill_(rank + 1)
for k, i in ipairs(at) do x[i] = 10 * k + rank end
dist.broadcast(x, size - 1)
check(1, size - 1, size, size)
if rank == 0 then dist.send(x, 1)
elseif rank == 1 then
  x:zero_()
  dist.recv(x, 0)
  for k, i in ipairs(at) do assert(x[i] == 10 * k) end
end
dist.barrier()
if rank == 0 then print "ok" end
