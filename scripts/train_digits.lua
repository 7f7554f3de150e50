-- SPDX-License-Identifier: MIT
-- Trains a network of two convolutions to read handwritten digits, 8x8 pixels
-- each, and prints how many of the held-out 500 images it reads.
--
--   nacre scripts/train_digits.lua [--device cuda] [--epochs 15] [--seed 1]
--                                  [--save FILE.safetensors]

local options = {device = "auto", epochs = "15", seed = "1"}
for i = 1, #arg, 2 do
  local name = arg[i]:match "^%-%-(%w+)$"
  if not (options[name] or name == "save") or not arg[i + 1] then
    io.stderr:write("usage: nacre scripts/train_digits.lua [--device D] "
                    .. "[--epochs N] [--seed N] [--save FILE]\n")
    os.exit(2)
  end
  options[name] = arg[i + 1]
end

local nn, optim, data = nacre.nn, nacre.optim, nacre.utils.data
local device = nacre.device(options.device)
nacre.manual_seed(tonumber(options.seed))

-- ---- data: pixels from 0 to 1; class c stands for digit c - 1

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local images = nacre.load(here .. "/data/digits-images.npy"):float()
images = images:reshape(-1, 1, 8, 8) / 16
local classes = nacre.load(here .. "/data/digits-labels.npy"):long() + 1
local ntrain = 1297
local train = data.DataLoader({images[{{1, ntrain}}], classes[{{1, ntrain}}]},
                              {batch_size = 32, shuffle = true,
                               device = device})
local test_images = images[{{ntrain + 1, -1}}]:to(device)
local test_classes = classes[{{ntrain + 1, -1}}]:to(device)

-- ---- the network

local net = nn.Sequential(
  nn.Conv2d(1, 16, 3, {padding = 1}), nn.BatchNorm2d(16), nn.ReLU(),
  nn.Conv2d(16, 32, 3, {padding = 1}), nn.BatchNorm2d(32), nn.ReLU(),
  nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 16, 10))
net:to(device)
print(net)

local epochs = tonumber(options.epochs)
local loss_of = nn.CrossEntropyLoss()
local opt = optim.AdamW(net, {lr = 3e-3})
local schedule = optim.lr_scheduler.OneCycleLR(opt, 1e-2,
                                               {epochs = epochs,
                                                steps_per_epoch = #train})

local function accuracy()
  net:eval()
  local guess = nacre.no_grad(net, test_images):argmax(2)
  net:train()
  return guess:eq(test_classes):float():mean():item()
end

-- The mean loss of an epoch; the losses are added where they are computed.
local function run_epoch(epoch)
  local sum = nacre.zeros({}, {device = device})
  for x, c in nacre.progress(train, "epoch " .. epoch) do
    local loss = loss_of(net(x), c)
    opt:zero_grad()
    loss:backward()
    opt:step()
    schedule:step()
    sum:add_(loss:detach())
  end
  return sum:item() / #train
end

local start = nacre.clock()
for epoch = 1, epochs do
  local loss = run_epoch(epoch)
  print(("epoch %2d  loss %.4f  accuracy %.2f %%"):format(epoch, loss,
                                                        100 * accuracy()))
end
print(("%.1f s on %s"):format(nacre.clock() - start, device))
if options.save then nacre.save(options.save, {net = net, opt = opt}) end
