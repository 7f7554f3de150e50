-- SPDX-License-Identifier: MIT
-- From which size on is the GPU faster? Times a matrix product, an elementwise
-- operation and a reduction on the processor and on the GPU, for 10 to 10^8
-- elements, with the operands on the GPU already and with copying them there
-- and the result back.
--
--   nacre scripts/crossover.lua [--max SIZE] [--device NAME] [OPERATION...]
--
-- Operations: product elementwise reduction; all if none is named. A time is
-- the median of several calls, after a warm-up, from the call until its result
-- is there.

local usage = "usage: nacre scripts/crossover.lua [--max SIZE] " ..
              "[--device NAME] [product] [elementwise] [reduction]"

local function refuse(why)
  io.stderr:write("crossover.lua: ", why, "\n", usage, "\n")
  os.exit(2)
end

local most, device, wanted = 1e8, "cuda:0", {}
do
  local known = {product = true, elementwise = true, reduction = true}
  local i = 1
  while arg[i] do
    local word, value = arg[i], arg[i + 1]
    if word == "--help" then
      print(usage)
      return
    elseif word == "--max" or word == "--device" then
      if not value then refuse(word .. " needs a value") end
      if word == "--device" then device = value end
      if word == "--max" then
        most = tonumber(value) or refuse "--max needs a number"
      end
      i = i + 2
    else
      if not known[word] then refuse("no operation '" .. word .. "'") end
      wanted[word] = true
      i = i + 1
    end
  end
end

local LONG <const> = 1 -- seconds of a call: what is larger is left out

if not nacre.cuda.is_available() then
  print("There is no GPU to compare with: " .. nacre.cuda.why())
  return
end

local operations = {
  {"product", "a:mm(b)", function(a, b) return a:mm(b) end, 2},
  {"elementwise", "a:exp()", function(a) return a:exp() end, 1},
  {"reduction", "a:sum()", function(a) return a:sum() end, 1},
}

-- Elements of an operand: 10, 30, 100, ... A matrix is square.
local function shape(name, n)
  if name ~= "product" then return {n} end
  local side = math.floor(math.sqrt(n) + 0.5)
  return {side, side}
end

local function sizes()
  local list, power = {}, 10
  while power <= most do
    list[#list + 1] = power
    if 3 * power <= most then list[#list + 1] = 3 * power end
    power = power * 10
  end
  return list
end

-- Seconds of a call until its result is there. A fifth of a second is spent,
-- but 3 to 101 calls are made.
local function time(f)
  local list, start = {}, nacre.clock()
  f()
  nacre.cuda.synchronize()
  repeat
    local before = nacre.clock()
    f()
    nacre.cuda.synchronize()
    list[#list + 1] = nacre.clock() - before
  until #list >= 3 and (nacre.clock() - start > 0.2 or #list > 100)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function measure(name, f, operands, n)
  local cpu = {device = "cpu"}
  local a, b = nacre.randn(shape(name, n), cpu), nil
  if operands == 2 then b = nacre.randn(shape(name, n), cpu) end
  local here = time(function() f(a, b):free() end)
  local there, also = a:to(device), b and b:to(device)
  local gpu = time(function() f(there, also):free() end)
  local copied = time(function()
    local x, y = a:to(device), b and b:to(device)
    local z = f(x, y)
    z:cpu():free()
    z:free()
    x:free()
    if y then y:free() end
  end)
  return {n = n, cpu = here, gpu = gpu, copied = copied}
end

local function duration(seconds)
  if seconds < 1e-3 then return ("%.1f us"):format(seconds * 1e6) end
  if seconds < 1 then return ("%.2f ms"):format(seconds * 1e3) end
  return ("%.2f s"):format(seconds)
end

-- The least size from which on the GPU won every time.
local function overtakes(rows, how)
  local at
  for i = #rows, 1, -1 do
    if rows[i][how] >= rows[i].cpu then break end
    at = rows[i].n
  end
  return at
end

local function verdict(rows, how, words)
  local at = overtakes(rows, how)
  if not at then
    return ("%s the GPU is not faster at any size up to %d."):format(words,
      rows[#rows].n)
  end
  return ("%s the GPU is faster from %d elements on."):format(words, at)
end

local accelerator = nacre.cuda.get_device_name(device)
print(("%s against %s, %d threads of the processor, float32"):format(device,
  accelerator, nacre.get_num_threads()))
if accelerator:lower():find("emulated") then
  print("This device is emulated: its times say nothing about a GPU.")
end

for _, operation in ipairs(operations) do
  local name, text, f, operands = table.unpack(operation)
  if next(wanted) == nil or wanted[name] then
    print(("\n%s, %s\n%12s %12s %12s %12s"):format(name, text, "elements",
      "processor", "GPU", "with copies"))
    local rows = {}
    for _, n in ipairs(sizes()) do
      local row = measure(name, f, operands, n)
      rows[#rows + 1] = row
      print(("%12d %12s %12s %12s"):format(n, duration(row.cpu),
        duration(row.gpu), duration(row.copied)))
      collectgarbage()
      if math.max(row.cpu, row.gpu, row.copied) > LONG then
        print "What would take longer is left out."
        break
      end
    end
    print(verdict(rows, "gpu", "Operands on it:"))
    print(verdict(rows, "copied", "With the copies:"))
  end
end
