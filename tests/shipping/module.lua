-- SPDX-License-Identifier: MIT
-- module.lua - nacre.so in a Lua that is not Nacre's:
--   LUA_CPATH=FOLDER/?.so lua5.4 tests/shipping/module.lua [cuda]
-- It works, in coroutines that are older, too; and of the host nothing changes.
-- With the word cuda there must be a CUDA device.

-- ---- what the host has: globals, modules, strings, signals, locale, collector
-- The signals up to 32 that are blocked, ignored and caught. (The C library
-- catches one of those above, as soon as there are threads.)
local function signals()
  local file = assert(io.open "/proc/self/status")
  local list = {}
  for mask in file:read "a":gmatch "Sig%u%l%l:%s*%x*(%x%x%x%x%x%x%x%x)\n" do
    list[#list + 1] = mask
  end
  file:close()
  assert(#list == 4, #list)                             -- and those pending
  return table.concat(list, " ")
end

local function copy(t)
  local c = {}
  for k, v in pairs(t) do c[k] = v end
  return c
end

local function host()
  local mode = collectgarbage "incremental"
  collectgarbage(mode)
  return {
    _G = copy(_G), loaded = copy(package.loaded),
    preload = copy(package.preload), searchers = copy(package.searchers),
    string = copy(getmetatable "".__index), meta = copy(getmetatable ""),
    debug = copy(debug), signals = {signals()},
    locale = {os.setlocale(nil, "all")}, collector = {mode},
    environment = {os.getenv "OPENBLAS_NUM_THREADS",
                   os.getenv "OPENBLAS_CORETYPE"},
  }
end

local function same(a, b, path, except)
  for k, v in pairs(a) do
    local at = path .. "." .. tostring(k)
    if type(v) == "table" and path == "host" then
      same(v, b[k], at, except)
      same(b[k], v, at, except)
    else
      assert(except[at] or rawequal(v, b[k]), at)
    end
  end
end

local function unchanged(before)
  same(before, host(), "host", {["host.loaded.nacre"] = true})
end

local older = coroutine.wrap(function()
  local nacre = coroutine.yield()
  coroutine.yield((nacre.ones(2) + 1):sum():item())
  error("not reached twice")
end)
older()

local before = host()
local nacre = require "nacre"
unchanged(before)
assert(rawget(_G, "nacre") == nil and require "nacre" == nacre)
assert(older(nacre) == 4)
collectgarbage()

-- ---- it works: operations, networks, gradients, files, errors
local x = nacre.tensor{{1, 2, 3}, {4, 5, 6}}:float()
assert((x + 1):sum():item() == 27 and x[{2, 3}] == 6)
assert(nacre.linalg.norm(x:mm(x:t())):item() > 0)
for i, row in pairs(x) do assert(row[1] == 3 * i - 2) end

local net = nacre.nn.Sequential(nacre.nn.Linear(3, 4), nacre.nn.ReLU(),
                                nacre.nn.Linear(4, 1))
local optimizer = nacre.optim.Adam(net:parameters(), {lr = 0.1})
local first, last
for _ = 1, 50 do
  optimizer:zero_grad()
  local loss = nacre.nn.functional.mse_loss(net(x), nacre.ones(2, 1))
  loss:backward()
  optimizer:step()
  first, last = first or loss:item(), loss:item()
end
assert(last < first)

local file = os.tmpname()
nacre.save(file, net:state_dict(), {format = "safetensors"})
net:load_state_dict(nacre.load(file, {format = "safetensors"}))
assert(os.remove(file))

-- ---- tensors are shown as in the program (see also shown_tensors.lua)
assert(tostring(x + 0.5) == [[
float32[2x3] cpu  24 B
  1.5000  2.5000  3.5000
  4.5000  5.5000  6.5000]])
assert(tostring(nacre.ones(300, 300)):find "^float32%[300x300%] cpu .* all 1$")
assert(not pcall(require, "nacre.tensor_text"))         -- no module of the host

local ok, e = pcall(function() return x:mm(x) end)
assert(not ok and e.code == "ESHAPE" and e.op == "mm")
assert(tostring(e):find "module.lua:%d+: mm: inner sizes differ")
assert(e.hint:find("t()", 1, true), e.hint)
ok, e = pcall(function() return nacre.sofmax end)
assert(not ok and tostring(e):find "did you mean")

-- ---- in a coroutine, with an error through it
local co = coroutine.create(function()
  coroutine.yield(x:exp():sum():item())
  return x:mm(x)
end)
assert(select(2, coroutine.resume(co)) > 0)
ok, e = coroutine.resume(co)
assert(not ok and e.op == "mm" and coroutine.close(co) == false)

-- ---- opened once more, it goes on: defaults and tensors of before count
nacre.set_default_dtype "float64"
package.loaded.nacre = nil
local again = require "nacre"
assert(again.ones(1).dtype == "float64" and (again.ones(2, 3) + x):numel() == 6)
again.set_default_dtype "float32"
package.loaded.nacre = nacre

-- ---- memory follows the tensors in each mode of the host's collector
local function resident()
  local f = assert(io.open "/proc/self/statm")
  local _, pages = f:read("n", "n")
  f:close()
  return pages * 4096
end
for _, mode in ipairs {"incremental", "generational"} do
  collectgarbage(mode)
  for _ = 1, 2000 do x = nacre.ones(512, 512) end      -- 2 GB in all
  assert(resident() < 300e6, ("%s: %d MB"):format(mode, resident() // 1e6))
end
collectgarbage(before.collector[1])
unchanged(before)

-- ---- a CUDA device is found and opened late
if arg[1] == "cuda" then
  assert(nacre.cuda.is_available(), nacre.cuda.why())
  local y = nacre.ones(3, {device = "cuda"})
  assert((y + y):sum():item() == 6 and y.device == "cuda:0")
else
  assert(nacre.cuda.device_count() >= 0)
end
print "ok"
