-- SPDX-License-Identifier: MIT
--
-- What is shown beyond the samples of display.lua: limits, colours, samples,
-- one line, and values that are no tensors.

local display = require "nacre.display"

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local S = dofile(here .. "../lib/golden_text.lua")
local same, check, V, m = S.same, S.check, S.V, S.m
local device = nacre.get_default_device()

check("integers are exact",
      nacre.tensor {9007199254740993, math.mininteger}, {}, [[
int64[2] cpu  16 B
      9007199254740993  -9223372036854775808]])

check("a large integer everywhere", nacre.full({101}, 12345678901), {},
      "int64[101] cpu  808 B  all 12345678901")

check("an identity needs no statistics", nacre.eye(5), {}, [[
float32[5x5] cpu  100 B
  1.0  0.0  0.0  0.0  0.0
  0.0  1.0  0.0  0.0  0.0
  0.0  0.0  1.0  0.0  0.0
  0.0  0.0  0.0  1.0  0.0
  0.0  0.0  0.0  0.0  1.0]])
assert(display.show(nacre.eye(11)):find "zero 90.9%%")
assert(display.show(nacre.linspace(0, 1, 21)):find "mean 0.5")

-- A number that counts as shown in full is; in full it reads back.
do
  local grid, numbers = require "nacre.tensor_grid", require "nacre.number_text"
  nacre.manual_seed(3)
  local same = 0
  for _, dtype in ipairs {"float64", "float32", "float16", "bfloat16"} do
    local x = nacre.randn(3000, {dtype = "float64"}) *
              (nacre.rand(3000, {dtype = "float64"}) * 40 - 20):exp()
    x = nacre.cat {x, x:round(), x:trunc() / 8}:to(dtype):to "cpu"
    for _, row in ipairs(x:view(-1, 3):unbind(1)) do
      local v = row:totable()
      local texts = grid.column(v, dtype, 4)
      local full = grid.column(v, dtype, "full")
      for i, text in ipairs(texts) do
        local finite = v[i] - v[i] == 0
        assert(not finite or numbers.rounded(text) or text == "0" or
               tonumber(text) == v[i], text)
        for k = 1, i - 1 do     -- what four decimals tell apart is apart
          assert(text ~= texts[k] or
                 ("%.4f"):format(v[i]) == ("%.4f"):format(v[k]), text)
        end
        same = same + (tonumber(text) == v[i] and 1 or 0)
        local back = nacre.tensor(tonumber(full[i]) or v[i], {dtype = dtype})
        assert(not finite or back:item() == v[i], full[i])
        assert(#full[i] <= 24)
      end
    end
  end
  assert(same > 1000)
  assert(numbers.rounded "0.3333" and numbers.rounded "1.2346e+08")
  assert(numbers.rounded "3e-06" and not numbers.rounded "250000.0")
  assert(not numbers.rounded "7" and not numbers.rounded "2.276")
  assert(numbers.rounded("2.276", true) and not numbers.rounded("2.5", true))
end

check("bfloat16 in fixed decimals",
      nacre.tensor({1.765625, 0.25, 1/3}, {dtype = "bfloat16"}), {}, [[
bfloat16[3] cpu  6 B
  1.7656  0.2500  0.3340]])

check("what does not fit is left out, never cut", V(99):view(9, 11),
      {width = 24}, [[
float32[9x11] cpu  396 B
  -3.9375  ...
  -1.3203  ...
   1.2969  ...
   3.9141  ...
  -1.3516  ...
   1.2656  ...
   3.8828  ...
  -1.3828  ...
   1.2344  ...
min -3.938  max 3.914]])

check("a column that is too wide is shown", nacre.full({2, 3}, 1e-30),
      {width = 10}, [[
float32[2x3] cpu  24 B
  1.0000e-30  ...
  1.0000e-30  ...]])

check("infinities alone", nacre.full({25}, 1/0), {}, [=[
float32[25] cpu  100 B
[ 1]  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf
[16]  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf
all inf
! 25 inf of 25 (100%), first at [1]]=])

check("an expanded tensor takes the memory of one",
      nacre.ones(1):expand(1 << 40, 2):narrow(1, 1, 2), {}, [[
float32[2x2] cpu  4 B  strides 0,0
  1.0  1.0
  1.0  1.0]])

local red = display.show(m, {color = true})
same("nan is red", select(2, red:gsub("\27%[31mnan\27%[0m", "")), 1)
same("infinities are red", select(2, red:gsub("\27%[31m%-?inf\27%[0m", "")), 2)
same("the line on them is red", red:find("\n\27[31m! 1 nan", 1, true) ~= nil,
     true)
same("nothing else is coloured",
     red:gsub("\27%[%d+m", ""), display.show(m, {}))

-- The summary of a sample says so: 2^40 elements are too many to read.
local huge = nacre.zeros(1):expand(1 << 20, 1 << 20)
local text = display.show(huge, {})
same("a sample says so", text:match "min[^\n]*$",
     "min ~0  max ~0  mean ~0  std ~0  (sampled: nan not counted)  zero ~100%")

-- No tensor takes more than 25 lines, or lines that are too long.
local function lines(s) return select(2, s:gsub("\n", "")) + 1 end
local most, longest = 0, 0
for _, size in ipairs {{30, 3}, {3, 8, 8}, {4, 8, 8}, {4, 100, 100}, {2, 8, 9},
                       {2, 2, 5, 5}, {1, 7, 7}, {5, 7, 7}, {100}, {2, 100}} do
  local n = 1
  for _, s in ipairs(size) do n = n * s end
  local t = V(n) * 1e-7
  t:narrow(1, 1, 1):fill_(0/0)
  for width = 24, 104, 16 do
    local shown = display.show(t:view(size), {width = width, utf8 = false})
    most = math.max(most, lines(shown))
    for l in shown:gmatch "[^\n]+" do
      if not l:find "^!" and not l:find("] " .. device, 1, true) then
        longest = math.max(longest, #l - width)
      end
    end
  end
end
local one = nacre.zeros(10000)
one[5] = 1
same("one that is not zero", display.show(one):match "zero %S+",
     "zero >99.9%")
same("one that is false", display.show(one:eq(0)):match "%b()",
     "(>99.9% true)")
same("at most 25 lines", most <= 25, true)
same("never wider than the terminal", longest <= 0, true)

-- print and tostring: 80 columns, no statistics.
same("tostring", display.tostring(V(30)), display.show(V(30), {stats = false}))
same("in one line", display.summary(V(30)),
     "float32[30] cpu  min -3.938  max 3.688  mean 0.01406  std 2.317")
same("in one line without dimensions", display.brief(nacre.tensor(2.5)),
     "2.5000  float32[] cpu")

-- The variable that a view looks into.
local base = nacre.zeros(3, 4)
local scope = {base = base, part = base:narrow(1, 1, 2), other = m}
same("the base of a part", display.baseof(scope.part, scope), "base")
same("the base of a transpose", display.baseof(base:t(), scope), "base")
same("a base has none", display.baseof(base, scope), nil)

--
-- Other values
--
check("a string", "a\tb\n\"\\\27[31m", {}, [["a\tb\n\"\\\x1B[31m"]])
check("UTF-8 stays", "\u{e9}", {}, '"\u{e9}"')
check("without UTF-8 it is escaped", "\u{e9}", {utf8 = false}, [["\xC3\xA9"]])
check("what is not UTF-8 is escaped", "\xff", {}, [["\xFF"]])
check("a long string is cut", ("x"):rep(3000), {},
      '"' .. ("x"):rep(2000) .. '"... (3000 bytes)')
check("nil", nil, {}, "nil")
check("a boolean", true, {}, "true")
check("a float", 2.0, {}, "2.0")
check("an empty table", {}, {}, "{}")
check("tables are sorted", {3, 1, b = 2, a = "x", [2.5] = true, ["end"] = 0},
      {}, [[{3, 1, [2.5] = true, a = "x", b = 2, ["end"] = 0}]])
check("tables inside tables", {{{{1}}}}, {}, "{{{{...}}}}")
local cycle = {}
cycle[1] = cycle
check("a cycle", cycle, {}, "{<cycle>}")
local many = {}
for i = 1, 33 do many[i] = 0 end
check("thirty items", many, {width = 200},
      "{" .. ("0, "):rep(30) .. "... 3 more}")
check("tensors inside", {m, x = nacre.tensor(1)}, {},
      "{float32[4x5] cpu, x = 1  int64[] cpu}")
check("one item a line if it does not fit", {"aaaaaaaa", "bbbbbbbb"},
      {width = 20}, '{\n  "aaaaaaaa",\n  "bbbbbbbb"\n}')
check("an object with __tostring",
      setmetatable({}, {__tostring = function() return "object" end}), {},
      "object")
check("an object whose __tostring fails",
      setmetatable({}, {__tostring = function() error "no" end}), {},
      "table (its __tostring fails)")

-- Lines on a narrow screen
do
  local fit = require "nacre.wrap_lines".fit
  local function fitted(line, width)
    return table.concat(fit(line, width), "\n")
  end
  same("what fits stays", fitted("  a   b", 7), "  a   b")
  same("between columns", fitted("  median 1 ms    min 2 ms    max 3 ms", 24),
       "  median 1 ms  min 2 ms\n    max 3 ms")
  same("between words", fitted("warning: do not trust any digit", 20),
       "warning: do not\n  trust any digit")
  same("a long word", fitted("a " .. ("x"):rep(30), 20),
       "a\n  " .. ("x"):rep(30))
  same("colours have no width", fitted("\27[31mred\27[0m word", 8),
       "\27[31mred\27[0m word")
  nacre.manual_seed(5)
  for _ = 1, 300 do
    local list, width = {}, math.random(12, 60)
    for i = 1, math.random(1, 20) do
      list[i] = ("w"):rep(math.random(1, 8)) .. (" "):rep(math.random(1, 4))
    end
    local text = (" "):rep(math.random(0, 3)) .. table.concat(list)
    for _, line in ipairs(fit(text, width)) do
      assert(#line:match "^.-%s*$":gsub("%s+$", "") <= width, line)
    end
    same("no word is lost", (table.concat(fit(text, width)):gsub("%s", "")),
         (text:gsub("%s", "")))
  end
end

S.done "display_values"
