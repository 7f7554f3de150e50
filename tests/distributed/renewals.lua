-- SPDX-License-Identifier: MIT
-- A hundred times, a rank fails in the middle of an operation of the others,
-- and all renew the world. The memory of what was given up does not add up.
-- Started once for each rank.
local dist = nacre.distributed
dist.init_process_group()
local rank, size = dist.get_rank(), dist.get_world_size()

-- Kilobytes that this process has; nil where nobody says it.
local function resident()
  local f = io.open "/proc/self/status"
  local n = f and f:read "a":match "VmRSS:%s*(%d+)"
  if f then f:close() end
  return tonumber(n)
end

local ELEMENTS = 1 << 18  -- a megabyte, which MPI may still read
local before
for i = 1, 100 do
  local bad = i % size
  if rank == bad then
    for _ = 2, size do dist.recv(nacre.ones(1)) end -- what was before is done
    dist._tell "on purpose"
  else
    dist.send(nacre.ones(1), bad)
    local ok, e = pcall(dist.all_reduce, nacre.ones(ELEMENTS),
                        {group = dist.group.WORLD})
    assert(not ok and e.code == "EPEER" and e.rank == bad, tostring(e))
  end
  dist.renew()
  assert(dist.all_reduce(nacre.ones(2))[1] == size)
  collectgarbage()
  if i == 20 then before = resident() end
end
local more = before and (resident() - before) / 1024 or 0
assert(more < 24, ("80 renewals keep %.1f MB on rank %d"):format(more, rank))
dist.barrier()
if rank == 0 then print(("ok, %.1f MB more"):format(more)) end
