-- SPDX-License-Identifier: MIT
-- Without a device that can be used: one clear error for whatever needs one,
-- and everything else as ever.
-- Run by: NACRE_CUDA=off nacre tests/cuda/cuda_none.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local cuda = nacre.cuda

assert(not cuda.is_initialized(), "nothing is opened at the start")
assert(nacre.get_default_device() == "cpu")
assert(nacre.zeros(2).device == "cpu" and not nacre.zeros(2).is_cuda)
assert(nacre.zeros(2):get_device() == -1)

-- ---- what asks gets an answer

assert(cuda.is_available() == false)
assert(cuda.device_count() == 0)
local why = cuda.why()
assert(why:find("no usable CUDA device", 1, true), why)
assert(nacre.device("auto") == "cpu" and nacre.device("cpu") == "cpu")
assert(cuda.is_initialized() == false)

-- ---- what needs one raises the one error

local t = nacre.arange(4)
local calls = {
  function() return t:cuda() end,
  function() return t:cuda(0) end,
  function() return t:to("cuda") end,
  function() return t:to {device = "cuda:0"} end,
  function() return t:to(0) end,
  function() return t:pin_memory() end,
  function() return nacre.zeros(2, {device = "cuda"}) end,
  function() return nacre.tensor({1}, {device = "cuda:0"}) end,
  function() return nacre.device("cuda") end,
  function() return nacre.device("cuda", 1) end,
  function() return nacre.set_default_device("cuda") end,
  function() return cuda.stream(cuda.Stream(), print) end,
  function()
    return cuda.kernel('extern "C" __global__ void f() {}', "f")
  end,
}
for name, f in pairs(cuda) do
  local asks = {is_available = 1, is_initialized = 1, device_count = 1,
                why = 1, empty_cache = 1, manual_seed = 1,
                manual_seed_all = 1, stream = 1, set_stream = 1, kernel = 1}
  if not asks[name] then
    local args = {}
    for i, p in ipairs(name == "Event" and {} or nacre._info(f).params) do
      if i <= 2 then args[i] = p.type == "fn" and print or 0 end
    end
    calls[#calls + 1] = function() return f(table.unpack(args)) end
  end
end
assert(#calls > 30)
for i, f in ipairs(calls) do
  local e = C.fails(why, nil, f)
  assert(i == 6 or e.hint:find("nacre --doctor", 1, true), e.hint)
  assert(e.code == "EDEVICE", ("call %d: %s"):format(i, tostring(e)))
end

-- ---- nothing else is touched

assert(t.device == "cpu" and t:sum():item() == 6)
assert(rawequal(t:cpu(), t) and rawequal(t:to("cpu"), t))
assert(t:is_pinned() == false)
cuda.empty_cache()
cuda.manual_seed(7)
local a = nacre.rand(3)
cuda.manual_seed_all(7)
assert(a == nacre.rand(3), "one generator")
nacre.synchronize()
assert(cuda.stream(nil, function(x) return x + 1, x end, 4) == 5)

-- a program may choose before it asks
local matmul = nacre.backends.cuda.matmul
assert(matmul.allow_tf32 == false)
matmul.allow_tf32 = true
assert(matmul.allow_tf32 == true)
matmul.allow_tf32 = false
C.fails("there is allow_tf32", nil, function() matmul.tf32 = true end)
C.fails("true or false", nil, function() matmul.allow_tf32 = 1 end)

-- what is not a device at all
C.fails("no device is named 'gpu'", nil, nacre.device, "gpu")
C.fails("neither a dtype nor a device", nil, t.to, t, "gpu")
C.fails("a name or a number", nil, nacre.device, {})
C.fails("did you mean 'non_blocking'", nil, t.to, t, {nonblocking = true})
C.fails("copy must be true or false", nil, t.to, t, {copy = 1})
C.fails("device must be the name of a device", nil, t.to, t, {device = {}})
C.fails("must be a dtype, a device or a tensor, not a table", nil, t.to, t,
        {"cpu"})

-- each has a line of documentation
for name in pairs(cuda) do
  local info = nacre._info("cuda." .. name)
  assert(info and #info.doc > 5 and info.signature:find("^cuda%." .. name),
         name)
  assert(nacre._info(cuda[name]), name)
end
for _, name in ipairs {"Stream:wait_stream", "Event:elapsed_time"} do
  assert(nacre._info(name).method, name)
end
local help = require "nacre.help".text
assert(help "nacre.cuda.Stream":find("^cuda.Stream%(device=nil, priority=0%)"))
assert(help "cuda.synchronize":find("waits until", 1, true))
assert(help "nacre.cuda":find("device_count", 1, true))
local list = require "nacre.completion".candidates("nacre.cuda.syn", "")
assert(list[1][1] == "synchronize(" and #list == 1)
assert(list[1][2]:find("^synchronize%(device=nil%)  +waits"), list[1][2])
