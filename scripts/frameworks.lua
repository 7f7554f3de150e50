-- SPDX-License-Identifier: MIT
-- Seconds of a training step of four known networks, on the processor and on
-- the GPU: forward, cross entropy, backward, and a step of SGD. The data are
-- random, and on the device already. A time is the least of several steps,
-- after one to warm up.
--
--   nacre scripts/frameworks.lua [--steps N] [--small] [--threads N]
--                                [cpu,cuda] [NETWORK...]
--
-- scripts/bench/suite.py times the same networks beside PyTorch: training.

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local networks = dofile(here .. "/networks.lua")

local names = {}
for i, network in ipairs(networks) do names[i] = network.name end

local function at_least_one(text)
  local n = math.tointeger(tonumber(text))
  if n and n >= 1 then return n end
  return nil, "needs a number of 1 or more"
end

local options = nacre.options {
  "Seconds of a training step of four known networks.",
  {"--steps", "how many are timed", type = at_least_one, default = 3},
  {"--small", "small networks, for a quick look", default = false},
  {"--threads", "of the processor", type = at_least_one},
  {"devices", "cpu, cuda or cpu,cuda", required = false},
  {"networks", "all if none is named", many = true, choices = names,
   default = {}},
}
local steps, small, wanted = options.steps, options.small, {}
for _, name in ipairs(options.networks) do wanted[name] = true end
if options.threads then nacre.set_num_threads(options.threads) end
local devices = {}
for name in (options.devices or nacre.cuda.is_available() and "cpu,cuda" or
             "cpu"):gmatch "[^,]+" do
  devices[#devices + 1] = name
end
for _, name in ipairs(devices) do
  if name:find "^cuda" and not nacre.cuda.is_available() then
    io.stderr:write("frameworks.lua: no CUDA device: ", nacre.cuda.why(), "\n")
    os.exit(2)
  end
end

-- The most bytes that tensors have held on the device, and since when.
local function peak_memory(device)
  if device == "cpu" then return nacre._memory().peak end
  return nacre.cuda.max_memory_allocated(device)
end

-- Seconds of the fastest step, and the peak of memory.
local function time_steps(network, device)
  collectgarbage()
  nacre.manual_seed(1)
  local net, x, y = network.make(small)
  net:to(device)
  x, y = x:to(device), y:to(device)
  local opt = nacre.optim.SGD(net, {lr = 0.01})
  if device == "cpu" then nacre._memory(true)
  else nacre.cuda.reset_peak_memory_stats(device)
  end
  local best = math.huge
  for k = 0, steps do
    nacre.synchronize()
    local start = nacre.clock()
    local loss = nacre.nn.functional.cross_entropy(net(x), y)
    opt:zero_grad()
    loss:backward()
    opt:step()
    nacre.synchronize()
    if k > 0 then best = math.min(best, nacre.clock() - start) end
  end
  return best, peak_memory(device), y:numel()
end

local function text_of_bytes(n)
  if n < 2^30 then return ("%.1f MiB"):format(n / 2^20) end
  return ("%.2f GiB"):format(n / 2^30)
end

local function text_of_time(s)
  return s < 1 and ("%.1f ms"):format(s * 1e3) or ("%.2f s"):format(s)
end

print(("%d thread%s, PyTorch's twin: scripts/bench/suite.py")
      :format(nacre.get_num_threads(), nacre.get_num_threads() == 1 and "" or
              "s"))
if nacre.cuda.is_available() and
   nacre.cuda.get_device_name():find "^Emulated" then
  print("The device is emulated on the CPU: its times say nothing of a GPU.")
end
print(("\n%-10s %-7s %10s %18s %10s %7s"):format("network", "device",
      "a step", "a second", "memory", "faster"))
for _, network in ipairs(networks) do
  if next(wanted) == nil or wanted[network.name] then
    local first
    for _, device in ipairs(devices) do
      local seconds, bytes, items = time_steps(network, device)
      first = first or seconds
      print(("%-10s %-7s %10s %10.0f %-7s %10s %6.2fx")
            :format(network.name, device, text_of_time(seconds),
                    items / seconds, network.items,
                    text_of_bytes(bytes), first / seconds))
    end
  end
end
