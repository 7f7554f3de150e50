-- SPDX-License-Identifier: MIT
-- From which size on is the GPU faster? Sweeps a matrix product, an elementwise
-- operation and a reduction over 10 to 10^8 elements, on the processor and on
-- the GPU, with the operands on the GPU already and with copying them there and
-- the result back.
--
--   nacre scripts/crossover.lua [--max SIZE] [--device NAME] [OPERATION...]
--
-- Operations: product elementwise reduction; all if none is named. A time is a
-- median, as :sweep measures it.

local usage = "usage: nacre scripts/crossover.lua [--max SIZE] " ..
              "[--device NAME] [product] [elementwise] [reduction]"

-- The name, the expression and the operands of n elements.
local operations = {
  {"product", "a:mm(b)", "local m = math.floor(n ^ 0.5 + 0.5) " ..
   "a, b = nacre.randn(m, m), nacre.randn(m, m)"},
  {"elementwise", "a:exp()", "a = nacre.randn(n)"},
  {"reduction", "a:sum()", "a = nacre.randn(n)"},
}

local function refuse(why)
  io.stderr:write("crossover.lua: ", why, "\n", usage, "\n")
  os.exit(2)
end

local most, device, wanted = 1e8, "cuda:0", {}
do
  local known, i = {}, 1
  for _, operation in ipairs(operations) do known[operation[1]] = true end
  while arg[i] do
    local word, value = arg[i], arg[i + 1]
    if word == "--help" then
      print(usage)
      return
    elseif word == "--max" then
      most = tonumber(value) or refuse "--max needs a number"
      i = i + 1
    elseif word == "--device" then
      device = value or refuse "--device needs a value"
      i = i + 1
    else
      wanted[word] = known[word] or refuse("no operation '" .. word .. "'")
    end
    i = i + 1
  end
end

if not nacre.cuda.is_available() then
  print("There is no GPU to compare with: " .. nacre.cuda.why())
  return
end
nacre.cuda.set_device(device)

local sizes, power = {}, 10     -- 10, 30, 100, ...
while power <= most do
  sizes[#sizes + 1] = power
  if 3 * power <= most then sizes[#sizes + 1] = 3 * power end
  power = power * 10
end

print(("%s against %s, %d threads of the processor, float32"):format(device,
  nacre.cuda.get_device_name(device), nacre.get_num_threads()))
for _, operation in ipairs(operations) do
  local name, text, setup = table.unpack(operation)
  if next(wanted) == nil or wanted[name] then
    print(("\n%s, %s\n"):format(name, text))
    print(shell.sweep(sizes, text, {setup = setup}))
  end
end
