-- SPDX-License-Identifier: MIT
-- Streams and events: which one is current, who waits for whom, time.
-- Run by: nacre tests/cuda/cuda_streams.lua, with a device or
-- NACRE_CUDA=emulated

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local cuda, fails = nacre.cuda, C.fails
if not cuda.is_available() then skip(cuda.why()) end

-- ---- which is current

local default = cuda.default_stream()
assert(default == cuda.current_stream() and default == cuda.default_stream(0))
assert(default.device == "cuda:0" and math.type(default.cuda_stream))
local s, t = cuda.Stream(), cuda.Stream {priority = -1}
assert(s ~= t and s ~= default and s.device == "cuda:0")
assert(s.priority == 0 and t.priority == -1)
assert(s.cuda_stream ~= t.cuda_stream)
assert(tostring(s):find("stream.*cuda:0"), tostring(s))

local n, inner = cuda.stream(s, function(...)
  assert(cuda.current_stream() == s)
  cuda.stream(t, function() assert(cuda.current_stream() == t) end)
  assert(cuda.current_stream() == s)
  cuda.stream(nil, function() assert(cuda.current_stream() == s) end)
  return select("#", ...), cuda.current_stream()
end, 1, 2, nil)
assert(n == 3 and inner == s and cuda.current_stream() == default)

-- P18: an error, or the end of a coroutine, brings the old one back
local ok, e = pcall(cuda.stream, s, function() error("mine", 0) end)
assert(not ok and e == "mine" and cuda.current_stream() == default)
local co = coroutine.wrap(function()
  cuda.stream(s, coroutine.yield)
end)
assert(not pcall(co) and cuda.current_stream() == default)
ok, e = pcall(cuda.device, 0, function() error("mine", 0) end)
assert(not ok and e == "mine" and cuda.current_device() == 0)

cuda.set_stream(s)
assert(cuda.current_stream() == s)
cuda.set_stream(default)
assert(cuda.current_stream() == default)

-- the one in use is not collected
cuda.set_stream(cuda.Stream())
local id = cuda.current_stream().cuda_stream
collectgarbage()
collectgarbage()
assert(cuda.current_stream().cuda_stream == id)
assert((nacre.ones(10):cuda() + 1):sum():item() == 20)
cuda.set_stream(default)

-- ---- work on streams

local x = nacre.randn(300, 200)
local g = x:cuda()
s:wait_stream(default)
local y = cuda.stream(s, function() return g * 2 + 1 end)
default:wait_stream(s)
assert((y - 1):cpu() == x * 2 + 1 - 1)
for i = 1, 20 do                 -- to and fro, without the host waiting
  local from, to = i % 2 == 0 and s or t, i % 2 == 0 and t or s
  to:wait_stream(from)
  y = cuda.stream(to, function() return y + 1 end)
end
cuda.synchronize()
assert(nacre.allclose(y:cpu(), x * 2 + 21, 1e-5, 1e-5))
for _, stream in ipairs {s, t, default} do
  stream:synchronize()
  assert(stream:query())
end

-- what is freed on another stream than it was made on is not reused early
for _ = 1, 30 do
  local a = cuda.stream(s, function() return nacre.full({5000}, 3,
      {device = 0}) end)
  t:wait_stream(s)
  local b = cuda.stream(t, function() return a * 2 end)
  a:free()
  local c = cuda.stream(s, function() return nacre.full({5000}, 9,
      {device = 0}) end)
  t:synchronize()
  assert(b:eq(6):all():item())
  s:synchronize()
  assert(c:eq(9):all():item())
end

-- ---- events

local first, last = cuda.Event {enable_timing = true},
                    cuda.Event {enable_timing = true}
first:record()
y = g:mm(g:t())
last:record()
last:synchronize()
assert(first:query() and last:query())
local ms = first:elapsed_time(last)
assert(math.type(ms) == "float" and ms >= 0 and ms < 60000, ms)

local done = s:record_event()
t:wait_event(done)
done:wait(t)
done:wait()
done:synchronize()
assert(done:query() and s:record_event(done) == done)
local event = cuda.Event()
assert(event:query(), "an event that was never recorded is done")
event:record(s)
event:synchronize()
fails("created without timing", "nacre.cuda.Event{enable_timing=true}",
      event.elapsed_time, event, last)
local never = cuda.Event {enable_timing = true}
fails("was never recorded", nil, never.elapsed_time, never, last)
assert(tostring(event):find("^event"))

-- a copy that nobody waits for
local pinned = nacre.zeros(300, 200):pin_memory()
cuda.stream(s, function() pinned:copy_(g, true) end)
done = s:record_event()
done:synchronize()
assert(pinned == x)

-- what a program for PyTorch says of memory and of waiting
g:record_stream(s)
y:record_stream(cuda.current_stream())
fails("the tensor is on cpu", nil, x.record_stream, x, s)
fails("stream must be a stream, not 's'", nil, g.record_stream, g, "s")
cuda.Event {enable_timing = true, blocking = true}:synchronize()

-- ---- mistakes

fails("stream must be a stream, not 't'", nil, s.wait_stream, s, "t")
fails("event must be an event, not ", nil, s.wait_event, s, t)
fails("other is missing: an event expected", nil, first.elapsed_time, first)
fails("other must be an event, not ", nil, first.elapsed_time, first, s)
fails("did you mean 'wait_stream'", nil, function() return s.wait_steam end)
fails("event has no method", nil, function() return event.device end)
fails("fn is missing: a function", nil, cuda.stream, s)
fails("fn must be a function", nil, cuda.stream, s, 3)
fails("stream must be a stream, not an integer", nil, cuda.set_stream, 0)
fails("self is missing: a stream expected", nil, s.query)
fails("self must be an event", nil, first.query, s)
fails("no argument 'enable_timin'", nil, cuda.Event, {enable_timin = true})
fails("is not a CUDA device", nil, cuda.Stream, "cpu")
fails("there is no cuda:99", nil, cuda.Stream, 99)

-- ---- released early

local kept
do
  local mine <close> = cuda.Stream()
  kept = mine
  cuda.set_stream(mine)
end
assert(cuda.current_stream() == default, "a closed stream gives way")
fails("the stream was closed", nil, function() return kept.device end)
fails("the stream was closed", nil, kept.synchronize, kept)
assert(tostring(kept):find("closed"))
do
  local mine <close> = cuda.Event()
  kept = mine
end
fails("the event was closed", nil, kept.query, kept)
for _ = 1, 300 do s = cuda.Stream():record_event() end
collectgarbage()
