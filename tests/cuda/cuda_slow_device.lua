-- SPDX-License-Identifier: MIT
-- A device that takes its time, NACRE_EMULATION=late=40: what was asked for is
-- not done at once, who waits takes the time, events tell it, errors come
-- later.  Times are only bounded from below.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local cuda = nacre.cuda
if not cuda.is_available() then skip(cuda.why()) end
local LATE = tonumber((os.getenv "NACRE_EMULATION" or ""):match "late=(%d+)")
if not LATE then skip("the device does not take its time") end

local g = nacre.arange(6, {dtype = "float32", device = "cuda"}):view(2, 3)
cuda.synchronize()

-- a machine may stand still for as long as the work takes: several attempts
local seen
for _ = 1, 20 do
  local done = cuda.Event()
  local before = nacre.clock()
  local y = (g + 1) * 2
  done:record()
  seen = seen or not done:query()
  done:synchronize()
  assert(done:query(), "done, when it was waited for")
  assert(nacre.clock() - before >= 2 * LATE / 1000, "two operations")
  assert(y:cpu():sum():item() == 42)
  if seen then break end
end
assert(seen, "an event is not done at once")

-- events measure the time of the device
local start, stop = cuda.Event(true), cuda.Event(true)
start:record()
local y = g + 1
y = y * 2
y = y - 3
stop:record()
stop:synchronize()
assert(start:elapsed_time(stop) >= 3 * LATE * 0.999)
assert(y:cpu():sum():item() == 24)

-- streams run beside each other: what one does is not waited for
local s = cuda.Stream()
cuda.synchronize()
local beside, early
for _ = 1, 20 do
  local a, b = cuda.Event(true), cuda.Event(true)
  a:record()
  local side = cuda.stream(s, function() return g * 2 * 2 * 2 * 2 end)
  b:record()
  early = early or select(2, pcall(a.elapsed_time, a, b))
  b:synchronize()
  beside = beside or a:elapsed_time(b) < 4 * LATE
  s:synchronize()
  assert(side:cpu():sum():item() == 240)
  if beside then break end
end
assert(beside, "the default stream does not wait for the other")
assert(tostring(early):find "has not reached both events yet", early)

-- losses and embedding wait for nothing: an operation before them is not done
-- when backward returns
local F = nacre.nn.functional
local function tensor(t) return nacre.tensor(t, {device = "cuda"}) end
local table_of_rows = nacre.ones(5, 3, {device = "cuda", requires_grad = true})
local at, class = tensor {1, 5, 2}, tensor {1, 3, 2}
local logits = nacre.ones(3, 3, {device = "cuda", requires_grad = true})
for name, loss in pairs {
  embedding = function() return F.embedding(at, table_of_rows):sum() end,
  embedding_bag = function()
    return F.embedding_bag(at:view(1, 3), table_of_rows):sum()
  end,
  cross_entropy = function() return F.cross_entropy(logits, class) end,
  nll_loss = function()
    return F.nll_loss(logits, class, {reduction = "sum"})
  end,
  multi_margin = function() return F.multi_margin_loss(logits, class) end,
} do
  local pending
  for _ = 1, 20 do
    cuda.synchronize()
    local before, busy = cuda.Event(), g * 2
    before:record()
    loss():backward()
    pending = not before:query() and busy ~= nil
    if pending then break end
  end
  cuda.synchronize()
  assert(pending, name .. " waits for the device")
end

-- an error comes when something waits
local wrong = g[nacre.tensor({9}, {device = "cuda"})]
local e = C.fails("index 9 is outside dim 1", nil, cuda.synchronize)
assert(e and wrong.shape[1] == 1)
