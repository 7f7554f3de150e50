-- SPDX-License-Identifier: MIT
--
-- match_test.lua - what matches expected text and what does not.

local match = require "nacre.match_output"

local function lines(text) return match.split(text) end

local function says(t, want, expected, printed, options)
  local got = match.lines(lines(expected), lines(printed), options)
  t.ok(got == want, ("%q %s %q"):format(expected, want and "should match" or
                                        "should not match", printed))
end

local function cases(list)
  return function(t)
    for _, case in ipairs(list) do says(t, table.unpack(case)) end
  end
end

-- Lines of a tensor's display, of one dtype.
local function shown(dtype, row)
  return dtype .. "[3] cpu  12 B\n  " .. row
end

local function elements(dtype, list)
  local out = {}
  for k, case in ipairs(list) do
    out[k] = {case[1], shown(dtype, case[2]), shown(dtype, case[3]), case[4]}
  end
  return cases(out)
end

test("digits as written, of what the display rounded", elements("float32", {
  {true, "0.3333  0.4967", "0.333333  0.49671"},
  {false, "0.3333", "0.33341"},
  {false, "0.3333", "0.3334"},
  {true, "1.2346e+06", "1.23456e+06"},
  {false, "1.2346e+06", "1.2347e+06"},
  {true, "1.0000", "1.0"},
  {true, "[1]  0.4967  -0.1383", "[1]  0.49671  -0.13829"},
  {false, "[1]  0.4967", "[2]  0.4967"},
}))

test("what is shown in full goes by the dtype", elements("float32", {
  {false, "1.0  2.0  3.0", "1.0400  2.0400  2.9600"},
  {false, "1.0", "1.0001"},
  {true, "1.0", "1.0000004"},
  {false, "1.0", "1.0000"}, -- may be 1.00004
  {false, "0", "3e-06"},
  {true, "0", "0.0"},
  {true, "0", "3e-06", {atol = 1e-5}},
}))

test("half the digits, another precision", elements("bfloat16", {
  {true, "1.0", "1.01"}, {false, "1.0", "1.1"}, {true, "0.333", "0.334"},
}))

test("scalars of a tensor", cases {
  {true, "0.3333  float32[] cpu", "0.333333  float32[] cpu"},
  {false, "1.0  float32[] cpu", "0.9600  float32[] cpu"},
  {false, "{1.0  float64[] cpu, 2}", "{1.00001  float64[] cpu, 2}"},
  {true, "{1.0  float32[] cpu, 2}", "{1.0000004  float32[] cpu, 2}"},
})

test("other numbers go by float64", cases {
  {true, "x1 = 3.0", "x1 = 3.0000001"},
  {false, "x1 = 3.0", "x2 = 3.0"},
  {false, "1.0", "1.04"},
  {false, "5.0", "5.001"},
  {false, "0.0", "0.04"},
  {false, "0.0001", "0.00014"},
  {false, "0.333", "0.3333333"},
  {true, "0.33333333333333", "0.33333333333339"},
  {false, "mean 1.5e-3", "mean 0.00152"},
  {true, "-0.0", "0.0"},
  {true, "1e-05", "0.00001"},
  {true, ".5", "0.5"},
})

-- A line behind the elements is none of them.
test("where a tensor ends", cases {
  {false, shown("float32", "1.0") .. "\n0.0001",
   shown("float32", "1.0") .. "\n0.00014"},
  {true, shown("float32", "1.0") .. "\nmin 0.1234  max 2",
   shown("float32", "1.0") .. "\nmin 0.12341  max 2.000001"},
  {false, shown("float32", "1.0") .. "\nmin 0.1234  max 2",
   shown("float32", "1.0") .. "\nmin 0.1234  max 2.001"},
})

test("integers", cases {
  {false, "count 10", "count 11"},
  {true, "count 10", "count 10"},
  {false, "3", "3.4"},
  {false, "3", "3.0"},
  {false, "3.0", "3"},
  {false, "0", "0.0"},
  {false, "0", "3e-06"},
  {false, "0", "3e-06", {atol = 1e-5}},
  {false, "count 10", "count 11", {rtol = 1}},
  {true, "count 10 #~ rtol=1", "count 11"},
  {false, "9007199254740993", "9007199254740992"},
  {false, "90071992547409930000001", "90071992547409930000002"},
})

test("shapes and dtypes are text", cases {
  {false, "float32[3x4] cpu", "float32[3x5] cpu"},
  {false, "float32[3x4] cpu", "float64[3x4] cpu"},
  {false, "float32[30] cpu", "float32[31] cpu", {rtol = 1}},
  {true, "float32[3x4] cpu", "float64[3x4] cpu",
   {written = "float32", dtype = "float64"}},
  {true, "float32[4] cpu  16 B", "float64[4] cpu  32 B",
   {written = "float32", dtype = "float64"}},
  {false, "float32[4] cpu  16 B", "float32[4] cpu  32 B",
   {written = "float32", dtype = "float32"}},
})

test("nan and inf", cases {
  {true, "nan  inf", "nan  inf"},
  {false, "nan  1.0", "0.0  1.0"},
  {true, "nan", "-nan"},
  {false, "inf", "-inf"},
  {false, "inf", "1e308", {rtol = 1}},
  {false, "1.0", "inf", {rtol = 1}},
})

test("devices in a header", cases {
  {true, "float32[2] cpu  8 B", "float32[2] cuda:0  8 B",
   {device = "cuda:0"}},
  {true, "float32[2] cuda:0  8 B", "float32[2] cpu  8 B", {device = "cpu"}},
  {false, "float32[2] cpu  8 B", "float32[2] cuda:0  8 B", {device = "cpu"}},
  {true, "float32[2] cpu  8 B", "float32[2] cpu  8 B", {device = "cuda:0"}},
  {false, "the cpu", "the cuda:0", {device = "cuda:0"}},
})

test("blanks", cases {
  {true, "1.0  2.0", "1.0  2.0   "},
  {true, "  1.0 2.0", "1.0     2.0"},
  {false, "1.0 2.0", "1.02.0"},
})

test("gaps", cases {
  {true, "a\n...\nz", "a\nb\nc\nz"},
  {true, "a\n...\nz", "a\nz"},
  {false, "a\n...\nz", "a\nb"},
  {true, "...", ""},
  {true, "...\nb\n...\nb", "a\nb\nc\nb\nb"},
  {true, "took <...> ms", "took 1.25 ms"},
  {true, "<...>", "anything 1 2 3"},
  {false, "took <...> ms", "took 1.25 s"},
  {true, "table: 0x<...>", "table: 0x55c1a0"},
  {true, "/a/b<...>d.lua:<...>", "/a/bcd.lua:12: x"},
  {false, "/a/b<...>", "/a/c"},
  {true, "<...>b<...> c", "abc x c"},
  {true, "1.0  ...  2.0", "1.0  ...  2.0"},
  {false, "1.0  ...  2.0", "1.0  1.5  2.0"},
})

test("tolerances", cases {
  {true, "2.0000 #~ rtol=1e-2", "2.0150"},
  {false, "2.0000 #~ rtol=1e-3", "2.0150"},
  {true, "0.0000 #~ atol=1e-3", "0.0009"},
  {true, "2.0000", "2.0150", {rtol = 1e-2}},
  {true, "2.0000", "2.0150", {atol = 0.02}},
  {false, "2.0000 #~ rtol=1e-3", "2.0150", {rtol = 1}},
})

-- They may ask for more than the digits do.
test("a tolerance replaces the rule", cases {
  {false, shown("float32", "0.3333"), shown("float32", "0.33333"),
   {rtol = 1e-6}},
  {false, "1.0  float32[] cpu", "1.000001  float32[] cpu", {rtol = 0}},
  {false, "1.0  float32[] cpu  #~ atol=0", "1.000001  float32[] cpu"},
  {false, "1.0  float32[] cpu", "1.0000  float32[] cpu", {rtol = 1e-6}},
  {true, "1.0  float32[] cpu", "1.0000  float32[] cpu", {rtol = 1e-3}},
  {true, "0.3333", "0.3333", {rtol = 0, atol = 0}},
})

test("where the values are known, digits may round the other way", cases {
  {true, shown("float32", "0.3333"), shown("float32", "0.3334"),
   {values_match = true}},
  {true, "6.0  float32[] cpu", "6.0000  float32[] cpu", {values_match = true}},
  {false, shown("float32", "0.3333"), shown("float32", "0.3336"),
   {values_match = true}},
  {false, "6.0  float32[] cpu", "6.0002  float32[] cpu", {values_match = true}},
  {false, "0.1", "0.10001", {values_match = true}},
})

test("what is missing or too much", cases {
  {false, "1.0", ""},
  {false, "", "1.0"},
  {true, "", ""},
  {false, "1.0", "1.0\n2.0"},
  {false, "1.0\n2.0", "1.0"},
  {false, "1.0", "1.0 x"},
})

test("alignment finds what differs", function(t)
  local steps = match.align(lines "a\nb\nc", lines "a\nx\nc\nd")
  local same, pairs_, new = 0, 0, 0
  for _, s in ipairs(steps) do
    if s.same then same = same + 1
    elseif s.e and s.a then pairs_ = pairs_ + 1
    elseif s.a then new = new + 1 end
  end
  t.eq({same, pairs_, new}, {2, 1, 1})
end)

-- The only step of two lines.
local function step(expected, printed, options)
  return match.align({expected}, {printed}, options)[1]
end

test("the tolerance that covers a difference", function(t)
  for _, case in ipairs {
    {"-41.2907", "-41.2911"}, {"1.0 2.0", "1.0 2.5"}, {"x 1e-9", "x 3e-9"},
    {"6.0  float32[] cpu", "6.0000  float32[] cpu"},
  } do
    local rtol = match.covers(step(case[1], case[2]))
    t.ok(rtol, case[1])
    says(t, true, case[1] .. " #~ rtol=" .. rtol, case[2])
  end
  t.eq(match.covers(step("a 1.0", "b 1.0")), nil)
  t.eq(match.covers(step("0.0", "1.0")), nil)
  t.eq(match.covers(step("a", "a")), nil)
  local on = {device = "cuda:0"}
  t.eq(match.covers(step("1.0  float32[] cpu", "1.5  float32[] cuda:0", on),
                    on), "5e-1")
end)

test("the last digit", function(t)
  local on = {device = "cuda:0"}
  t.eq(match.lastdigit(step("-0.9406  float32[] cpu",
                            "-0.9405  float32[] cuda:0", on), on), "1e-4")
  t.eq(match.lastdigit(step("6.0  float32[] cpu", "6.0000  float32[] cpu")),
       "1e-4")
  for _, case in ipairs {
    {"1.2000  float32[] cpu", "1.2002  float32[] cpu"}, {"1.20", "1.21"},
    {"5", "6"}, {"a 1.0", "b 1.1"}, {"1.0", "1.0"}, {"1.0", "1.1 2"},
  } do
    t.eq(match.lastdigit(step(case[1], case[2])), nil)
  end
end)
