-- SPDX-License-Identifier: MIT
-- Every allocation fails in turn, once and from then on, while files are read,
-- written, listed, compared and converted: a result or an ENOMEM error; nothing
-- is lost, and the file that is to be replaced stays as it was.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local tools = require "nacre.file_tools"

local base = os.tmpname()
local function path(name) return base .. name end
local x = nacre.arange(600):reshape(20, 30)
local tree = {w = x:float(), v = x:t()}
local formats = {".npy", ".safetensors", ".csv"}
nacre.save(path ".npy", x)
nacre.save(path ".safetensors", tree)
nacre.save(path ".csv", x)
x:tofile(path ".bin")
for _, name in ipairs {".npz", ".pt", ".h5"} do
  if pcall(nacre.save, path(name), tree) then formats[#formats + 1] = name end
end

-- ---- the calls; `keeps' is a file that a failure leaves as it was

local calls = {
  fromfile = {function()
    return nacre.fromfile(path ".bin", "int64", {shape = {20, 30}})
  end},
  mapped = {function()
    return nacre.fromfile(path ".bin", "int64", {mmap = true}):sum()
  end},
  tofile = {function() x:t():tofile(path ".out") end, keeps = path ".out"},
  columns = {function() nacre.load(path ".csv", {columns = true}) end},
}
local null <close> = io.open("/dev/null", "w")
local function tool(...)
  local out, err = io.stdout, io.stderr
  io.stdout, io.stderr = null, null
  local ok, status = pcall(tools.run, ...)
  io.stdout, io.stderr = out, err
  return ok and status == 0
end

for _, name in ipairs(formats) do
  local file = path(name)
  calls["load " .. name] = {function() nacre.load(file) end}
  calls["ls " .. name] = {function() return tool("ls", {"--stats", file}) end}
  calls["diff " .. name] = {function() return tool("diff", {file, file}) end}
  calls["convert " .. name] = {function()
    return tool("convert", {"--force", file, path ".out.safetensors"})
  end, keeps = path ".out.safetensors"}
end

-- ---- the failures

local function is_no_memory(e)
  return type(e) == "table" and e.code == "ENOMEM" or
         tostring(e):find("not enough memory", 1, true)
end

local function try(name, call, n, sticky)
  if call.keeps then C.write(call.keeps, "old") end
  nacre._fail_alloc(n, sticky)
  local ok, result = pcall(call[1])
  nacre._fail_alloc(0)
  if not ok and not is_no_memory(result) then
    error(("%s, allocation %d: %s"):format(name, n, result), 0)
  end
  local done = ok and result ~= false
  if not done and call.keeps then assert(C.read(call.keeps) == "old", name) end
  return done
end

-- Fails each allocation of a call until none is left; a single one may be got
-- over. Returns how many made it fail.
local function fail_each(name, call, sticky)
  local failed, fine, n = 0, 0, 1
  while fine < (sticky and 1 or 12) do
    if try(name, call, n, sticky) then fine = fine + 1
    else failed, fine = failed + 1, 0 end
    n = n + 1
  end
  return failed
end

local count, total = 0, 0
for name, call in pairs(calls) do
  assert(try(name, call, 0), name .. ": fails by itself")
  local before = C.live()
  fail_each(name, call, false)
  local failed = fail_each(name, call, true)
  assert(failed > 0, name .. ": no allocation failed")
  assert(C.live() == before, name .. ": bytes are lost")
  count, total = count + 1, total + failed
end
for _, name in ipairs {"", ".bin", ".out", ".out.safetensors",
                       table.unpack(formats)} do
  os.remove(path(name))
end
print(("no_memory: %d calls, %d failures"):format(count, total))
