-- SPDX-License-Identifier: MIT
-- data_parallel.lua - nn.DataParallel: the samples of a batch on several
-- devices. Each call copies the parameters by recorded operations, so gradients
-- add up in the module; one thread starts the work of all devices.
local all = ...
all.require("nacre.module", "nacre.module_tensors")
local fail, layer, map = all.fail, all.layer, all.map_tensors

function all.device_name(d)
  return type(d) == "number" and "cuda:" .. d or tostring(d)
end

-- All CUDA devices, or those given, by name.
local function device_names(ids)
  local list = {}
  if ids == nil then
    local n = nacre.cuda.is_available() and nacre.cuda.device_count() or 0
    for i = 0, n - 1 do list[#list + 1] = "cuda:" .. i end
  else
    for i, d in ipairs(type(ids) == "table" and ids or {ids}) do
      list[i] = all.device_name(d)
    end
  end
  return list
end

-- The first tensor in v.
local function first_tensor(v)
  local found
  map(v, function(t) found = found or t return t end)
  return found
end

-- A copy of the module on device d, whose parameters are results of the
-- module's.
local function replicate(module, d)
  return all.copy_module(module, function(t)
    return (all.is_parameter(t) and t or t:detach()):to(d)
  end)
end

-- The k-th of n parts of each tensor along dim, on device d.
local function scatter(args, k, n, dim, d)
  return map(args, function(t)
    if t:dim() == 0 then return t:to(d) end
    local parts = t:chunk(n, dim)
    if #parts < n then
      fail("DataParallel", ("{argument} has %d samples, too few for %d devices")
           :format(t:size(dim), n), nil, "argument", t)
    end
    return parts[k]:to(d)
  end)
end

-- Joins results of the devices: tensors along dim, 0-d ones to a vector.
local function gather(list, dim, d)
  local first = list[1]
  if nacre.is_tensor(first) then
    local parts = {}
    for i, t in ipairs(list) do parts[i] = t:to(d) end
    return first:dim() == 0 and nacre.stack(parts) or nacre.cat(parts, dim)
  elseif type(first) ~= "table" then return first end
  local new = {}
  for k in pairs(first) do
    local parts = {}
    for i, t in ipairs(list) do parts[i] = t[k] end
    new[k] = gather(parts, dim, d)
  end
  return new
end

local Parallel = layer("DataParallel",
  "module:table, device_ids:any=nil, output_device:any|device=nil, dim:int=1",
  "runs the module on several devices, each with a part of the batch", nil,
function(self, module, ids, output, dim)
  if not all.is_module(module) then
    fail("DataParallel", "module is not an nn.Module")
  end
  rawset(self, "device_ids", device_names(ids))
  rawset(self, "output_device",
         output ~= nil and all.device_name(output) or self.device_ids[1])
  rawset(self, "dim", dim)
  self.module = module
end)

all.alias("nn.parallel.DataParallel", Parallel)

function Parallel:forward(...)
  local ids, dim = self.device_ids, self.dim
  local args = table.pack(...)
  local x = first_tensor(args)
  if #ids < 2 or x == nil then return self.module(...) end
  for name, p in self.module:named_parameters() do
    if p.device ~= ids[1] then
      fail("DataParallel", ("%s is on %s, the first device is %s")
           :format(name, p.device, ids[1]), ('net:to("%s")'):format(ids[1]))
    end
  end
  local n = math.min(#ids, x:size(dim))
  n = n > 0 and #x:chunk(n, dim) or 1
  local results = {}
  for k = 1, n do
    local replica = k == 1 and self.module or replicate(self.module, ids[k])
    local part = scatter({table.unpack(args, 1, args.n)}, k, n, dim, ids[k])
    results[k] = table.pack(replica(table.unpack(part, 1, args.n)))
  end
  local joined = {}
  for i = 1, results[1].n do
    local list = {}
    for k = 1, n do list[k] = results[k][i] end
    joined[i] = gather(list, dim, self.output_device)
  end
  return table.unpack(joined, 1, results[1].n)
end
