-- SPDX-License-Identifier: MIT
-- mpi_bench.lua - all_reduce of float32 from Lua, as mpi_raw.c does it:
--
--   mpirun -n 2 nacre scripts/bench/mpi_bench.lua
local dist = nacre.distributed
local clock = require "nacre.host".clock

local function measure(n, calls, batches, what)
  local x, times = nacre.zeros(n), {}
  for b = 0, batches do
    dist.barrier()
    local begin = clock()
    for _ = 1, calls do dist.all_reduce(x) end
    if b > 0 then times[b] = (clock() - begin) / calls end
  end
  table.sort(times)
  if dist.get_rank() == 0 then
    print(("%9d B  %-12s  least %10.2f us  median %10.2f us"):format(
          4 * n, what, 1e6 * times[1], 1e6 * times[batches // 2 + 1]))
  end
end

for _, check in ipairs {false, true} do
  dist.init_process_group{check = check}
  local what = check and "checked" or "unchecked"
  measure(2, 1000, 50, what)
  measure(1 << 18, 10, 20, what)
  measure(1 << 24, 1, 10, what)
  dist.destroy_process_group()
end
