-- SPDX-License-Identifier: MIT
-- Memory of a CUDA device: figures, the cache, collections, too little of it.
-- Run by: nacre tests/cuda/cuda_memory.lua, with a device or
-- NACRE_CUDA=emulated

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local cuda, fails = nacre.cuda, C.fails
if not cuda.is_available() then skip(cuda.why()) end
local K, M = 1 << 10, 1 << 20

local function settled()
  collectgarbage()
  collectgarbage()
  cuda.synchronize()
  cuda.empty_cache()
end

-- ---- the figures

settled()
local base = cuda.memory_allocated()
local free, total = cuda.mem_get_info()
assert(free > 0 and free <= total)
local t = nacre.empty(M, {device = 0})          -- 4 MiB
assert(cuda.memory_allocated() == base + 4 * M)
assert(cuda.max_memory_allocated() >= base + 4 * M)
assert(cuda.memory_reserved() >= cuda.memory_allocated())
assert(cuda.max_memory_reserved() >= cuda.memory_reserved())
local view = t:narrow(1, 1, 10)
assert(cuda.memory_allocated() == base + 4 * M, "views hold nothing")
t:free()
assert(cuda.memory_allocated() == base + 4 * M, "the view holds it")
view:free()
assert(cuda.memory_allocated() == base)
assert(cuda.memory_reserved() >= base + 4 * M, "the cache keeps it")
local reserved = cuda.memory_reserved()
for _ = 1, 50 do nacre.empty(M, {device = 0}):free() end
assert(cuda.memory_reserved() == reserved, "and serves from it")
settled()
assert(cuda.memory_reserved() < reserved, "empty_cache gives it back")
cuda.reset_peak_memory_stats()
assert(cuda.max_memory_allocated() == cuda.memory_allocated())
assert(cuda.max_memory_reserved() == cuda.memory_reserved())
local summary = cuda.memory_summary()
assert(summary:find("cuda:0", 1, true) and summary:find("free", 1, true))

local function of(name)
  for _, m in ipairs(nacre._devices()) do
    if m.name == name then return m end
  end
end
assert(of("cpu") and of("cuda:0").live == cuda.memory_allocated())
assert(of("cuda:0").total == total)

-- ---- garbage does not pile up, though Lua sees none of it

local g = nacre.zeros(256 * K, {device = 0})    -- 1 MiB
settled()
cuda.reset_peak_memory_stats()
base = cuda.memory_allocated()
for _ = 1, 300 do local _ = g + 1 end
local most = cuda.max_memory_allocated() - base
assert(most < 64 * M, ("%d MiB of garbage"):format(most // M))
settled()
assert(cuda.memory_allocated() == base)
for _ = 1, 3000 do local _ = g:narrow(1, 1, 100) + 1 end
settled()
assert(cuda.memory_allocated() == base)
-- copies to the device are garbage as well
local host = nacre.zeros(256 * K)
cuda.reset_peak_memory_stats()
for _ = 1, 200 do local _ = host:cuda() end
most = cuda.max_memory_allocated() - base
assert(most < 64 * M, ("%d MiB of copies"):format(most // M))
settled()
assert(cuda.memory_allocated() == base)

-- ---- too much is asked for

local e = fails("needs", nil, nacre.empty, 1 << 50, {device = 0})
assert(e.code == "ENOMEM", e.code)
for _, word in ipairs {"cuda:0", "free"} do
  assert(e.message:find(word, 1, true), e.message)
end
assert((g + 1):sum():item() == 256 * K, "and everything goes on")

-- an error keeps nothing
settled()
base = cuda.memory_allocated()
for _ = 1, 5 do
  pcall(nacre.empty, 1 << 50, {device = 0})
  pcall(g.view, g, 7)
  pcall(g.add, g, nacre.zeros(3, {device = 0}))
end
settled()
assert(cuda.memory_allocated() == base)

-- garbage goes before memory is said to be short: as much as fits, again and
-- again, without ever calling the collector
free, total = cuda.mem_get_info()
if total <= 4 << 30 then         -- an emulated device
  local half = total * 6 // 10 // 4
  for _ = 1, 4 do
    local big = nacre.empty(half, {device = 0})
    big:narrow(1, 1, 1):fill_(1)
    big = nil
  end
end
settled()
