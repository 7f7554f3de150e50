-- SPDX-License-Identifier: MIT
-- on_device.lua - collective operations on tensors of a CUDA device, which pass
-- through the memory of the host.
local dist = nacre.distributed
dist.init_process_group()
local rank, size = dist.get_rank(), dist.get_world_size()
if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
local function on_device(...) return nacre.tensor({...}, {device = "cuda"}) end

local x = on_device(rank, 2 * rank, 1)
assert(rawequal(dist.all_reduce(x), x) and x.is_cuda)
assert(x[1] == size * (size - 1) // 2 and x[3] == size)

local m = nacre.zeros(4, 4, {device = "cuda"})
local column = m:t():narrow(1, 2, 1)
column:add_(rank)
local work = dist.all_reduce(column, {op = "max", async_op = true})
work:wait()
assert(m:sum():item() == 4 * (size - 1) and m:t()[2]:min():item() == size - 1)

local all = dist.all_gather(on_device(rank, rank))
assert(all.is_cuda and all:sum():item() == size * (size - 1))
local y = on_device(0, 0)
dist.scatter(y, rank == 0 and nacre.arange(2 * size, {device = "cuda"})
                                   :view(size, 2) or nil)
assert(y[2] == 2 * rank + 1)
if size > 1 then
  if rank == 0 then dist.send(on_device(5, 6), 1)
  elseif rank == 1 then
    dist.recv(y, 0)
    assert(y[1] == 5 and y[2] == 6)
  end
end
local v = dist.broadcast_object(rank == 0 and {w = on_device(1, 2)} or nil)
assert(v.w[2] == 2)

-- ---- in several parts through page-locked memory, each 4 MB
local n = (9 << 20) // 4 + 5
local counted = nacre.arange(n, {dtype = "int32", device = "cuda"})
local big = counted + rank
dist.all_reduce(big)
assert((big - counted * size - size * (size - 1) // 2):abs():max():item() == 0)
big = counted + rank
dist.broadcast(big, size - 1)
assert((big - counted):min():item() == size - 1 and
       (big - counted):max():item() == size - 1)
big = counted:clone()
dist.reduce(big, 0, "max")
assert((big - counted):abs():max():item() == 0)
big = counted:double()
assert(dist.all_reduce(big, {op = "mean", async_op = true}):wait()[n] == n - 1)
dist.all_reduce(big, "mean")
assert(big[n] == n - 1 and big[1] == 0)
if size > 1 then
  assert(dist.info().gpu == "ranks 0 and 1 use one GPU", dist.info().gpu)
end
dist.barrier()
