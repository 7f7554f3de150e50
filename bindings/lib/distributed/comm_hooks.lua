-- SPDX-License-Identifier: MIT
-- comm_hooks.lua - how DistributedDataParallel may send a bucket of gradients:
-- ddp:register_comm_hook(group, hook), with one of these or the user's.
local all = ...
local blocks = all.blocks
local dist = all.space "distributed"

local SPACE = "distributed.algorithms.ddp_comm_hooks.default_hooks"
local hooks = all.space(SPACE)

-- No all.define: a bucket, which is a table, would be taken for options.
local function define(name, doc, hook)
  hooks[name] = function(state, bucket)
    if type(bucket) ~= "table" or type(bucket.buffer) ~= "function" then
      all.fail(name, "the second argument must be a bucket of gradients",
               "ddp:register_comm_hook(group, hook)")
    end
    return hook(state, bucket)
  end
  all.describe(SPACE .. "." .. name, hooks[name], doc,
               all.parse(name, "state:any, bucket:any -> work"))
end

define("allreduce_hook",
  "averages the bucket, like without a hook; state is the group, or nil",
function(group, bucket)
  return dist.all_reduce(bucket:buffer(), "mean", group, true)
end)

-- Divided first, so that sums of halves stay in their range.
local function compressed(dtype)
  return function(group, bucket)
    local flat = bucket:buffer()
    local t = (flat / dist.get_world_size(group)):to(dtype)
    return blocks.after(dist.all_reduce(t, "sum", group, true), flat,
                        function() flat:copy_(t) end)
  end
end

define("fp16_compress_hook",
  "averages the bucket in float16, which sends fewer bytes",
  compressed "float16")
define("bf16_compress_hook",
  "averages the bucket in bfloat16, which sends fewer bytes",
  compressed "bfloat16")
