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

-- The name, the expression and the operands of n elements.
local operations = {
  {"product", "a:mm(b)", "local m = math.floor(n ^ 0.5 + 0.5) " ..
   "a, b = nacre.randn(m, m), nacre.randn(m, m)"},
  {"elementwise", "a:exp()", "a = nacre.randn(n)"},
  {"reduction", "a:sum()", "a = nacre.randn(n)"},
}

local options = nacre.options {
  "From which size on is the GPU faster?",
  {"--max", "the most elements", default = 1e8},
  {"--device", "a GPU", default = "cuda:0"},
  {"operations", "what is timed; all if none is named", many = true,
   choices = {"product", "elementwise", "reduction"}, default = {}},
}
local most, device, wanted = options.max, options.device, {}
for _, name in ipairs(options.operations) do wanted[name] = true end

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
