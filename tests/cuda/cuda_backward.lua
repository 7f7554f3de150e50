-- SPDX-License-Identifier: MIT
-- Backward on other streams than forward: what PyTorch's manual calls safe
-- ("Stream semantics of backward passes") is right here, and what follows on
-- the streams of forward comes after backward.
-- Run by: nacre tests/cuda/cuda_backward.lua, with a device or
-- NACRE_CUDA=emulated

local cuda = nacre.cuda
if not cuda.is_available() then skip(cuda.why()) end

local n = 200
local host = nacre.randn(n, n, {dtype = "float64"})
local twist = nacre.randn(n, n, {dtype = "float64"})

-- A chain of which each step takes what the one before has made.
local function forward(x, w)
  for _ = 1, 4 do x = (x * w + 1):sin() end
  return x
end

local function expected()
  local x = host:clone():requires_grad_()
  forward(x, twist):sum():backward()
  return x.grad
end
local want = expected()

local function agrees(x, what)
  assert(x:cpu():allclose(want, 1e-12, 1e-12), what)
end

local function given(d)
  local w = twist:to(d or "cuda:0")
  return host:to(d or "cuda:0"):requires_grad_(), w
end

-- f on a stream, after what the current one has been given.
local function on(stream, f)
  stream:wait_stream(cuda.current_stream())
  return cuda.stream(stream, f)
end

-- Each program makes a gradient, and what is used before the host waits.
local programs = {}

function programs.backward_on_a_stream(s, current)
  local x, w = given()
  local loss, used = forward(x, w):sum(), nil
  cuda.stream(s, function()
    loss:backward()
    used = x.grad * 1
  end)
  current:wait_stream(s)
  return x.grad, used
end

-- A loss that stream s is at work on, with the operands.
local function lossof(s)
  local x, w = given()
  return x, on(s, function() return forward(x, w):sum() end), w
end

function programs.forward_on_a_stream(s)
  local x, loss = lossof(s)
  loss:backward()
  return x.grad, x.grad * 1
end

function programs.one_stream_each(s, current, t)
  local x, loss = lossof(s)
  cuda.stream(t, function() loss:backward() end)
  current:wait_stream(t)
  return x.grad, x.grad * 1
end

function programs.two_branches(s, current, t)
  local x, w = given()
  local a = on(s, function() return forward(x, w) end)
  local b = on(t, function() return forward(x, w) end)
  current:wait_stream(s)
  current:wait_stream(t)
  local loss = (a / 2 + b / 2):sum()
  loss:backward()
  return x.grad, x.grad * 1
end

-- Two losses that nobody waited for, differentiated together.
function programs.several_outputs(s, _, t)
  local x, w = given()
  local a = on(s, function() return forward(x, w):sum() / 2 end)
  local b = on(t, function() return forward(x, w):sum() / 2 end)
  local g = {nacre.autograd.grad({a, b}, {x})}
  return g[1], g[1] * 1
end

-- What follows on the stream of forward does not overtake backward.
function programs.written_afterwards(s, current, t)
  local x, loss, w = lossof(s)
  cuda.stream(t, function() loss:backward() end)
  cuda.stream(s, function() w:fill_(1e300) end)
  local used = cuda.stream(s, function() return x.grad * 1 end)
  current:wait_stream(s)
  return x.grad, used
end

-- A gradient onto one that another stream made.
function programs.accumulated(s, _, t)
  local x, w = given()
  for _, stream in ipairs {s, t} do
    on(stream, function() return forward(x, w):sum() / 2 end):backward()
  end
  return x.grad, x.grad * 1
end

function programs.of_gradients(s, _, t)
  local x, loss = lossof(s)
  local g = cuda.stream(t, function()
    return nacre.autograd.grad(loss, x, {create_graph = true})
  end)
  local back = g:sum() * 0 + loss
  back:backward()
  return x.grad, x.grad * 1
end

if cuda.device_count() > 1 then
  function programs.over_devices(s)
    local x, w = given "cuda:0"
    local w1 = twist:to "cuda:1"
    local there, loss = cuda.Stream(1), nil
    there:wait_stream(cuda.current_stream(1))
    on(s, function()
      cuda.stream(there, function()
        local half = (x * w + 1):sin()
        half = (half * w + 1):sin():to "cuda:1"
        half = (half * w1 + 1):sin()
        loss = (half * w1 + 1):sin():sum()
      end)
    end)
    loss:backward()
    return x.grad, x.grad * 1
  end
end

for name, program in pairs(programs) do
  for round = 1, 3 do
    local current = cuda.current_stream()
    local grad, used = program(cuda.Stream(), current, cuda.Stream())
    agrees(used, ("%s, round %d, as it is used"):format(name, round))
    agrees(grad, ("%s, round %d"):format(name, round))
    cuda.synchronize()
  end
end
