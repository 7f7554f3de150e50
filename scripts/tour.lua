-- SPDX-License-Identifier: MIT
-- The first ten minutes: every idea once. Each line that begins with ">" is
-- run as it stands; what follows is what the prompt would show. Try them:
--
--   nacre scripts/tour.lua

local function say(text)
  print("\n-- " .. text:gsub("\n%s*", "\n-- "))
end

-- Prints a line, runs it, prints its values or its error.
local function try(line)
  print("> " .. line)
  local f = load("return " .. line, "=tour") or assert(load(line, "=tour"))
  local results = table.pack(pcall(f))
  if not results[1] then
    print("error: " .. tostring(results[2]):gsub("^tour:%d+: ", ""))
  elseif results.n > 2 and tostring(results[results.n]):find "\n" then
    for i = 2, results.n do print(results[i]) end
  elseif results.n > 1 then
    print(table.unpack(results, 2, results.n))
  end
end

say "A tensor is an array of numbers of one type, in any number of dimensions."
try "a = nacre.tensor{{1, 2, 3}, {4, 5, 6}}"
try "a"
try "a.dtype, #a, a:numel()"
try "table.concat(a:size(), ' x ')"
try "nacre.tensor{1, 2.5}.dtype, nacre.tensor{true, false}.dtype"
try "nacre.zeros(2, 3, {dtype = 'float64'})"

say [[Indices begin at 1 and ranges include both ends, as everywhere in Lua.
Negative ones count from the end. A full index gives a number.]]
try "a[1]"
try "a[{2, 3}], a[-1][-1]"
try "a[{{1, 2}, 2}]"
try "a['2, ::2']"
try "a[a:gt(2)]"

say "Arithmetic goes element by element, and a number counts as a tensor."
try "a * 10 + 1"
try "(a / 2):exp()"

say "Shapes that differ are broadcast: sizes of 1 are stretched to fit."
try "row = nacre.tensor{0, 100, 200}"
try "a + row"
try "column = nacre.tensor{{0.5}, {0.25}}"
try "a * column"
try "row:unsqueeze(2):sub(row)"

say [[A view has a shape of its own and shares the memory: reshaping,
transposing and slicing copy nothing, and writing to one shows in the other.]]
try "v = a:t()"
try "v[{3, 1}] = -3"
try "a"
try "a[{{}, 2}] = 0"
try "v"

say "A name that ends in _ changes its tensor instead of making a new one."
try "x = nacre.ones(3)"
try "x:mul_(5):add_(row)"
try "x"

say "Reductions fold all elements, or those along one dimension."
try "a:sum(), a:to('float32'):mean()"
try "a:sum(1)"
try "a:max(2)"
try "a:sum():item() + 1"

say "Random numbers follow the seed: the same ones on every machine."
try "nacre.manual_seed(1)"
try "nacre.randint(1, 7, {10})"

say [[A device is a name, and code that takes it from one place runs on any.
Without a usable GPU that place says "cpu".]]
try [[device = nacre.device("auto")]]
try [[m = nacre.rand(512, 512, {device = device})]]
try [[m:to("cpu").device]]
print(device ~= "cpu" and "-- There is a GPU here: m lies on it."
      or "-- There is no GPU that Nacre can use here: m is on the CPU.")

say "How long does a matrix product take? Your figures will differ."
try "p = m:mm(m) -- the first one also loads the library"
try [[
start = nacre.clock()
  for i = 1, 10 do p = m:mm(m) end
  nacre.synchronize()
  seconds = (nacre.clock() - start) / 10]]
print(("-- %.2f ms, %.1f GFLOP/s (at the prompt: \":time m:mm(m)\")")
      :format(seconds * 1e3, 2 * 512 ^ 3 / seconds / 1e9))

say "An error says what disagrees; in a script pcall catches it."
try "b = nacre.zeros(5, 3, {dtype = 'int64'})"
try "a:mm(b)"
try "a[0]"
try "a:summ()"
try "ok, e = pcall(nacre.zeros, 2, -1)"
try "ok, e.op, e.message"

say "Files that NumPy reads, and writes."
file = os.tmpname()
try "nacre.save(file, a)"
try "nacre.load(file) == a"
os.remove(file)

print("\n-- Next: scripts/digits.lua. At the prompt, ?sum explains sum.")
