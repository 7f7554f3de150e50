-- SPDX-License-Identifier: MIT
-- Reads handwritten digits: the k nearest neighbours of an image vote on what
-- it is. Nothing is trained; everything is tensor operations.
--
--   nacre scripts/digits.lua [k]          (k is 3 if it is not given)

local k = tonumber(arg[1] or 3)
local ntrain = 1297 -- of 1,797; the others are the test
local here = arg[0]:match("^(.*)/[^/]*$") or "."

local start = nacre.clock()
local images = nacre.load(here .. "/data/digits-images.npy"):to("float32")
local labels = nacre.load(here .. "/data/digits-labels.npy"):to("int64")
local n = #images
local train, known = images[{{1, ntrain}}], labels[{{1, ntrain}}]
local test, truth = images[{{ntrain + 1, n}}], labels[{{ntrain + 1, n}}]
print(("%d images of 8x8 pixels: %d are known, %d are to be read")
      :format(n, #train, #test))

-- Squared distances between all pairs: |x-y|^2 = |x|^2 - 2 x.y + |y|^2, where
-- the products of all pairs are one matrix product. [test x train]
local distance = test:square():sum(2, true) - 2 * test:mm(train:t())
               + train:square():sum(2)

-- The nearest one is a vote for its digit; then it is put out of the way, and
-- the next nearest is looked for. A one-hot vote is a row of 0 with one 1.
local digits = nacre.arange(10)
local place = nacre.range(1, ntrain)
local votes = nacre.zeros(#test, 10)
for _ = 1, k do
  local nearest = distance:argmin(2, true)
  local vote = known[nearest]:eq(digits)
  votes:add_(vote:to("float32"))
  distance[place:eq(nearest)] = math.huge
end
local guess = votes:argmax(2) - 1 -- position 1 stands for digit 0

local right = guess:eq(truth)
local accuracy = right:to("float32"):mean():item()
local seconds = nacre.clock() - start

print(("k = %d: %d of %d right, accuracy %.1f %%, in %.0f ms")
      :format(k, right:sum():item(), #test, 100 * accuracy, 1e3 * seconds))

-- Which digit is taken for which? Rows: what it is; columns: what is read.
local confusion = nacre.zeros(10, 10, {dtype = "int64"})
for digit = 0, 9 do
  local read = guess[truth:eq(digit)]
  confusion[digit + 1] = read:unsqueeze(2):eq(digits):sum(1)
end
print(confusion)

-- One that was misread, as ink on paper.
local wrong = right:logical_not():to("int64"):argmax():item()
if not right[wrong] then
  print(("image %d is a %d and was read as %d:")
        :format(ntrain + wrong, truth[wrong], guess[wrong]))
  local picture = test[wrong]:reshape(8, 8)
  for i = 1, 8 do
    local line = {}
    for j = 1, 8 do
      local ink = picture[{i, j}] // 4 + 1
      line[j] = ("  ..ooOO##"):sub(2 * ink - 1, 2 * ink):gsub("^%s*$", "  ")
    end
    print("  " .. table.concat(line))
  end
end

if accuracy < 0.96 then
  error(("accuracy %.3f is below 0.96"):format(accuracy), 0)
end
