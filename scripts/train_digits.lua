-- SPDX-License-Identifier: MIT
-- Trains a network of two convolutions to read handwritten digits, 8x8 pixels
-- each, and prints how many of the held-out 500 images it reads.
--
--   nacre scripts/train_digits.lua [--device cuda] [--epochs 15] [--seed 1]
--                                  [--save FILE.safetensors]
--   mpirun -n 2 nacre scripts/train_digits.lua
--
-- Several ranks share each batch, so that they learn what one learns.

local options = nacre.options {
  "Trains a network of two convolutions to read handwritten digits.",
  {"--device", "where to compute", default = "auto"},
  {"--epochs", "passes over the images", default = 15},
  {"--seed", "of the random numbers", default = 1},
  {"--save", "where the weights go: FILE.safetensors"},
}

local nn, optim, data = nacre.nn, nacre.optim, nacre.utils.data
local dist = nacre.distributed
dist.init_process_group()
local rank, ranks = dist.get_rank(), dist.get_world_size()
local device = nacre.device(options.device)
local seed = options.seed
nacre.manual_seed(seed + rank)            -- dropout differs between ranks

-- print on one rank
local function say(...) if rank == 0 then print(...) end end

-- ---- data: pixels from 0 to 1; class c stands for digit c - 1

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local images = nacre.load(here .. "/data/digits-images.npy"):float()
images = images:reshape(-1, 1, 8, 8) / 16
local classes = nacre.load(here .. "/data/digits-labels.npy"):long() + 1
local ntrain = 1297
local samples = {images[{{1, ntrain}}], classes[{{1, ntrain}}]}
local sampler = data.DistributedSampler(samples, {seed = seed})
local train = data.DataLoader(samples, {batch_size = math.max(32 // ranks, 1),
                                        sampler = sampler, device = device})
local test_images = images[{{ntrain + 1, -1}}]:to(device)
local test_classes = classes[{{ntrain + 1, -1}}]:to(device)

-- ---- the network

local net = nn.Sequential(
  nn.Conv2d(1, 16, 3, {padding = 1}), nn.BatchNorm2d(16), nn.ReLU(),
  nn.Conv2d(16, 32, 3, {padding = 1}), nn.BatchNorm2d(32), nn.ReLU(),
  nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 16, 10))
net:to(device)
say(net)
nn.SyncBatchNorm.convert_sync_batchnorm(net)
local ddp = nn.parallel.DistributedDataParallel(net)

local epochs = options.epochs
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
  sampler:set_epoch(epoch)
  for x, c in rank == 0 and nacre.progress(train, "epoch " .. epoch) or train do
    local loss = loss_of(ddp(x), c)
    opt:zero_grad()
    loss:backward()
    opt:step()
    schedule:step()
    sum:add_(loss:detach())
  end
  return dist.all_reduce(sum, "mean"):item() / #train
end

local start = nacre.clock()
for epoch = 1, epochs do
  local loss = run_epoch(epoch)
  say(("epoch %2d  loss %.4f  accuracy %.2f %%"):format(epoch, loss,
                                                      100 * accuracy()))
end
say(("%.1f s on %s%s"):format(nacre.clock() - start, device,
                              ranks > 1 and " x " .. ranks or ""))
if options.save and rank == 0 then
  nacre.save(options.save, {net = net, opt = opt})
end
dist.destroy_process_group()
