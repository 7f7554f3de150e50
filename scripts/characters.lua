-- SPDX-License-Identifier: MIT
-- Trains an LSTM to predict the next character of a text, then lets it recite:
-- it gets the first word and goes on with what it finds most likely.
--
--   nacre scripts/characters.lua [--device cuda] [--epochs 60] [--seed 1]
--                                [--text FILE]

local options = nacre.options {
  "Trains an LSTM to predict the next character of a text.",
  {"--device", "where to compute", default = "auto"},
  {"--epochs", "passes over the text", default = 60},
  {"--seed", "of the random numbers", default = 1},
  {"--text", "a file to learn, instead of a sonnet"},
}

-- William Shakespeare, Sonnet 18.
local TEXT = [[
Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;
But thy eternal summer shall not fade,
Nor lose possession of that fair thou ow'st;
Nor shall death brag thou wander'st in his shade,
When in eternal lines to time thou grow'st:
So long as men can breathe or eyes can see,
So long lives this, and this gives life to thee.
]]

local nn, optim, data = nacre.nn, nacre.optim, nacre.utils.data
local device = nacre.device(options.device)
nacre.manual_seed(options.seed)
local text = options.text and assert(io.open(options.text)):read "a" or TEXT

-- ---- characters as classes from 1

local classes, characters = {}, {}
for c in text:gmatch "." do
  if not classes[c] then
    characters[#characters + 1] = c
    classes[c] = #characters
  end
end
local function encode(s)
  local list = {}
  for c in s:gmatch "." do list[#list + 1] = classes[c] end
  return nacre.tensor(list, {device = device})
end

-- Windows of LENGTH characters, and the same moved by one.
local LENGTH = 48
local all = encode(text)
local windows = all:unfold(1, LENGTH + 1, 3):contiguous()
local loader = data.DataLoader({windows[{{}, {1, LENGTH}}],
                                windows[{{}, {2, LENGTH + 1}}]},
                               {batch_size = 32, shuffle = true})

-- ---- the network

local Reciter = nn.Module "Reciter"
function Reciter:init(n, hidden)
  self.embedding = nn.Embedding(n, 32)
  self.lstm = nn.LSTM(32, hidden, {batch_first = true})
  self.out = nn.Linear(hidden, n)
end
function Reciter:forward(x, state)
  local y
  y, state = self.lstm(self.embedding(x), state)
  return self.out(y), state
end

local net = Reciter(#characters, 128):to(device)
print(net)
local opt = optim.Adam(net, {lr = 5e-3})
local loss_of = nn.CrossEntropyLoss()
local epochs = options.epochs
local schedule = optim.lr_scheduler.CosineAnnealingLR(opt, epochs)

for epoch = 1, epochs do
  local sum = nacre.zeros({}, {device = device})
  for x, y in nacre.progress(loader, "epoch " .. epoch) do
    local loss = loss_of(net(x):flatten(1, 2), y:flatten())
    opt:zero_grad()
    loss:backward()
    nn.utils.clip_grad_norm_(net, 1)
    opt:step()
    sum:add_(loss:detach())
  end
  schedule:step()
  if epoch % 10 == 0 then
    print(("epoch %2d  loss %.4f"):format(epoch, sum:item() / #loader))
  end
end

-- ---- the recital

net:eval()
local given = text:match "^%S+%s+"
local spoken = {given}
nacre.no_grad(function()
  local y, state = net(encode(given):unsqueeze(1))
  for _ = #given + 1, #text do
    local class = y[{{1, 1}, {-1, -1}}]:argmax(3)
    spoken[#spoken + 1] = characters[class:item()]
    y, state = net(class:reshape(1, 1), state)
  end
end)
spoken = table.concat(spoken)
io.write("\n", spoken, "\n")
local right = 0
for i = 1, #text do
  right = right + (spoken:byte(i) == text:byte(i) and 1 or 0)
end
print(("%d of %d characters are those of the text"):format(right, #text))
