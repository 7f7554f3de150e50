-- SPDX-License-Identifier: MIT
-- Seconds of a training step of four known networks, on the processor and on
-- the GPU: forward, cross entropy, backward, and a step of SGD. The data are
-- random, and on the device already. A time is the least of several steps,
-- after one to warm up.
--
--   nacre scripts/frameworks.lua [cpu,cuda] [STEPS] [--small]
--                                [--threads N] [NETWORK...]
--
-- scripts/bench/suite.py times the same networks beside PyTorch: training.

local usage = "usage: nacre scripts/frameworks.lua [cpu,cuda] [STEPS] " ..
              "[--small] [--threads N] [NETWORK...]"
local here = arg[0]:match "^(.*)/[^/]*$" or "."
local networks = dofile(here .. "/networks.lua")

local function refuse(why)
  io.stderr:write("frameworks.lua: ", why, "\n", usage, "\n")
  os.exit(2)
end

local devices, steps, small, wanted = nil, 3, false, {}
local known = {}
for _, network in ipairs(networks) do
  known[network.name:lower()] = network.name
end
local i = 1
while arg[i] do
  local word = arg[i]
  if word == "--small" then small = true
  elseif word == "--threads" then
    local n = math.tointeger(tonumber(arg[i + 1])) or 0
    if n < 1 then refuse "--threads needs a number of 1 or more" end
    nacre.set_num_threads(n)
    i = i + 1
  elseif math.tointeger(tonumber(word)) and tonumber(word) > 0 then
    steps = math.tointeger(tonumber(word))
  elseif known[word:lower()] then wanted[known[word:lower()]] = true
  elseif word:find "^cpu" or word:find "^cuda" then
    devices = {}
    for name in word:gmatch "[^,]+" do devices[#devices + 1] = name end
  else refuse("no network '" .. word .. "'")
  end
  i = i + 1
end
devices = devices or (nacre.cuda.is_available() and {"cpu", "cuda"} or {"cpu"})
for _, name in ipairs(devices) do
  if name:find "^cuda" and not nacre.cuda.is_available() then
    refuse("no CUDA device: " .. nacre.cuda.why())
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
