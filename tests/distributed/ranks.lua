-- SPDX-License-Identifier: MIT
-- What the tests of several ranks share. Numbers are float64: averages over
-- ranks differ from those of one process by rounding alone.
local dist = nacre.distributed
dist.init_process_group()
nacre.set_default_dtype "float64"

local R = {rank = dist.get_rank(), size = dist.get_world_size(),
           device = os.getenv "NACRE_TEST_DEVICE" or "cpu"}
if R.device ~= "cpu" then      -- each rank has its own
  R.device = ("%s:%d"):format(R.device, R.rank)
  nacre.set_default_device(R.device)
end

-- The samples of rank r, or of this one.
function R.part(x, r)
  local n = x:size(1) // R.size
  return x:narrow(1, (r or R.rank) * n + 1, n)
end

local function value(t, field)
  if field then return t[field] end
  return t
end

-- The tensors of two modules, or their grads, differ by less than 1e-12.
function R.close(what, a, b, field)
  local others = {}
  for name, t in b:named_parameters() do others[name] = t end
  for name, t in b:named_buffers() do others[name] = t end
  local function check(name, t)
    local x, y = value(t, field), value(others[name], field)
    assert((x == nil) == (y == nil), ("%s: %s"):format(what, name))
    if not x then return end
    local most = (x:double() - y:double()):abs():max():item()
    assert(most < 1e-12, ("%s: %s differs by %g on rank %d of %d"):format(
             what, name, most, R.rank, R.size))
  end
  for name, t in a:named_parameters() do check(name, t) end
  if not field then
    for name, t in a:named_buffers() do check(name, t) end
  end
end

local bits = 0                 -- a hash of all parameters that were trained

local function record(t)
  for _, v in ipairs(t:detach():flatten():tolist()) do
    bits = (bits ~ string.unpack("i8", string.pack("d", v))) * 0x100000001b3
  end
end

-- All ranks have the same bits, and each run has: ranks.py compares two.
function R.same_everywhere(what, net)
  for name, t in net:named_parameters() do
    local all = dist.all_gather(t:detach())
    record(t)
    for r = 1, R.size do
      assert(all[r]:equal(t), ("%s: %s of rank %d differs from rank %d")
             :format(what, name, r - 1, R.rank))
    end
  end
end

function R.finish(name)
  dist.barrier()
  if R.rank == 0 then
    print(("%s: ok on %d, bits %016x"):format(name, R.size, bits))
  end
  dist.destroy_process_group()
end

return R
