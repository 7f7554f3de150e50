-- SPDX-License-Identifier: MIT
-- Gradients: what is recorded, what backward makes of it, and a network of two
-- layers that learns to read handwritten digits with nothing else.
--
--   nacre scripts/autograd.lua

-- ---- a graph, and its gradient

-- What is computed from a leaf that requires a gradient is recorded: every
-- result knows the operation that made it.
local x = nacre.tensor({1, 2, 3}, {dtype = "float64", requires_grad = true})
local y = (x^2):sin()
local z = y:sum()
print("x", x)
print("z = sum of sin(x^2)", z)
print(("x is a leaf; x^2 is made by %s, its sine by %s, the sum by %s"):format(
      (x^2).grad_fn, y.grad_fn, z.grad_fn))

-- backward walks from z to x and leaves dz/dx there.
z:backward()
print("dz/dx by backward", x.grad)
print("2x cos(x^2)", 2 * x:detach() * (x:detach()^2):cos())

-- Gradients can be recorded, too, and be differentiated again.
local first = nacre.autograd.grad((x^3):sum(), x, {create_graph = true})
local second = nacre.autograd.grad(first:sum(), x)
print("the second derivative of x^3", second)

-- Differences agree with it: gradcheck says so, or where not.
print("gradcheck:", nacre.autograd.gradcheck(function(t)
  return (t^2):sin():softmax(1)
end, x))

-- ---- a network that reads digits

local batch, epochs, rate = 100, 40, 0.01
local here = arg[0]:match("^(.*)/[^/]*$") or "."
local start = nacre.clock()
nacre.manual_seed(1)
local images = nacre.load(here .. "/data/digits-images.npy"):to("float32") / 16
local labels = nacre.load(here .. "/data/digits-labels.npy"):to("int64") + 1
local apart = (nacre.range(1, #images) % 4):eq(0) -- every fourth is the test
local test, truth = images[apart], labels[apart]
images, labels = images[apart:logical_not()], labels[apart:logical_not()]
local ntrain = #images

-- 64 pixels -> 48 hidden values -> 10 digits
local function weights(rows, columns)
  local w = nacre.randn(rows, columns) * (2 / rows)^0.5
  return w:requires_grad_()
end
local parameters = {
  weights(64, 48), nacre.zeros(48, {requires_grad = true}),
  weights(48, 10), nacre.zeros(10, {requires_grad = true}),
}

local function network(images)
  local w1, b1, w2, b2 = table.unpack(parameters)
  local hidden = (images:mm(w1) + b1):relu()
  return (hidden:mm(w2) + b2):log_softmax(2)
end

-- The mean of -log p of the right digits, which are picked one a row.
local function loss(images, labels)
  local rows = nacre.range(1, #images)
  return -network(images)[{rows, labels}]:mean()
end

-- Adam: steps by the mean of recent gradients over the root of the mean of
-- their squares.
local mean, square = {}, {}
for i, p in ipairs(parameters) do
  mean[i], square[i] = p:zeros_like(), p:zeros_like()
end
local function step(t)
  local correction = (1 - 0.999^t)^0.5 / (1 - 0.9^t)
  nacre.no_grad(function()
    for i, p in ipairs(parameters) do
      mean[i]:lerp_(p.grad, 0.1)
      square[i]:lerp_(p.grad^2, 0.001)
      p:sub_(mean[i] / (square[i]:sqrt() + 1e-8), {alpha = rate * correction})
      p.grad = nil
    end
  end)
end

local steps = 0
for epoch = 1, epochs do
  local order = nacre.randperm(ntrain)
  local total = 0
  for first = 1, ntrain, batch do
    local picked = order[{{first, math.min(first + batch - 1, ntrain)}}]
    local mistake = loss(images[picked], labels[picked])
    mistake:backward()
    steps = steps + 1
    step(steps)
    total = total + mistake:item() * #picked
  end
  if epoch % 10 == 0 then
    print(("epoch %2d: loss %.4f"):format(epoch, total / ntrain))
  end
end

local accuracy = nacre.no_grad(function()
  return network(test):argmax(2):eq(truth):to("float32"):mean():item()
end)
print(("%d steps in %.2f s: %.1f %% of %d digits that it had not seen are read "
       .. "right"):format(steps, nacre.clock() - start, 100 * accuracy, #test))
if accuracy < 0.95 then
  error(("accuracy %.3f is below 0.95"):format(accuracy), 0)
end
