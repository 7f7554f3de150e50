-- SPDX-License-Identifier: MIT
-- Pictures of tensors of every value, dtype, layout and width: no line is wider
-- than asked, and they show the values that are there.
local here = arg[0]:match "^(.*/)" or ""
local C = dofile(here .. "../lib/common.lua")
local graphics = require "nacre.terminal_image"
local heat = require "nacre.heatmap"
local image = require "nacre.tensor_image"
local plot = require "nacre.plot"
local raster = require "nacre.character_image"
local sampling = require "nacre.downsample"
local sixel = require "nacre.sixel"

nacre.manual_seed(1)
local inf, nan = math.huge, 0 / 0

local function columns(line)
  return utf8.len((line:gsub("\27%[[%d;]*m", "")))
end

-- Lines no wider than `width`, with escapes only if `color`.
local function checked(lines, width, color)
  assert(#lines > 0)
  for _, line in ipairs(lines) do
    assert(columns(line) <= width,
           ("%d columns, not %d: %s"):format(columns(line), width, line))
    assert(color or not line:find "\27", line)
    assert(not line:find "\n")
  end
  return table.concat(lines, "\n")
end

-- What io.stdout gets while f runs.
local function printed(f, ...)
  local parts, stdout = {}, io.stdout
  io.stdout = {write = function(_, ...)
    for _, s in ipairs {...} do parts[#parts + 1] = s end
  end}
  local ok, e = pcall(f, ...)
  io.stdout = stdout
  return ok, ok and table.concat(parts) or tostring(e)
end

-- ---- curves

local odd = {
  {0}, {1, 1, 1}, {1, 2}, {nan}, {inf, -inf}, {nan, 1, nan}, {1, nan, 3},
  {-1e308, 1e308}, {5e-324, 0}, {1e300, 1e-300, -1e-300}, {1, 1 + 1e-15},
  {0, -0.0}, {-5, -3, -4}, {1e9, 1e9 + 1}, {inf, 1, 2}, {123456789012345678},
}
for _, y in ipairs(odd) do
  for _, width in ipairs {20, 33, 80, 200} do
    for _, utf8 in ipairs {true, false} do
      for _, log in ipairs {true, false} do
        local lines = plot.chart {series = {{y = y}}, width = width, height = 5,
                                  utf8 = utf8, ylog = log, xlog = log}
        local some = false
        for _, v in ipairs(y) do
          some = some or v - v == 0 and (not log or v > 0)
        end
        assert(some == (lines ~= nil))
        if lines then
          local text = checked(lines, math.max(width, 30), false)
          assert(#lines == 7)
          assert(text:find(utf8 and "[\u{2801}-\u{28ff}]" or "*"))
        end
      end
    end
  end
end

-- Several in colours, or told apart by marks.
local two = {{y = {1, 2, 3}, name = "up"}, {y = {3, 2, 1}, name = "down"}}
local text = checked(plot.chart {series = two, width = 40, utf8 = true}, 40)
assert(text:find "%* up   %+ down" and text:find "%+%+" and text:find "%*%*")
text = checked(plot.chart {series = two, width = 40, utf8 = true, color = true},
               40, true)
assert(text:find "\27%[36m" and text:find "\27%[33m" and not text:find "%*")

-- Exact places: a line from corner to corner, and one that stays.
assert(checked(plot.chart {series = {{y = {0, 1, 2, 3}}}, width = 13,
                           height = 4}, 13) ==
       "3 |       ***\n  |    ****\n  | ****\n0 |**\n" ..
       "  +----------\n   1        4")

-- Labels between the ends of a long logarithmic axis
text = checked(plot.chart {series = {{x = {1, 1e6}, y = {1, 1e6}}}, width = 60,
                           height = 19, xlog = true, ylog = true,
                           xticks = {1, 1e2, 1e4, 1e6}}, 60)
for _, label in ipairs {"\n *1000000 |", "\n *10000 |", "\n *100 |",
                        "1 +100 +10000 +1000000"} do
  assert(("\n" .. text):find(label), label .. text)
end

-- ---- what is taken of long vectors

local long = nacre.zeros(100003)
long[5], long[50000], long[100003] = 3, nan, -7
local s = sampling.series(long, 100)
assert(#s.low <= 101 and #s.low == #s.high and #s.low == #s.x)
assert(s.x[1] == 1 and s.x[#s.x] == 100003)
assert(math.max(table.unpack(s.high)) == 3)
assert(math.min(table.unpack(s.low)) == -7)
for i, v in ipairs(s.low) do assert(v == v and s.high[i] >= v) end
s = sampling.series(nacre.cat {nacre.ones(600) * -1, nacre.ones(600)}, 100,
                    true)
assert(s.low[1] ~= s.low[1] and s.high[#s.high] == 1)
for _, dtype in ipairs(C.dtypes) do
  local t = nacre.ones(1000):to(dtype)
  s = sampling.series(t, 10)
  assert(s.low[3] == 1 and s.high[3] == 1)
  assert(sampling.series(t[{{1, 9}}], 10).y[9] == 1)
end

-- ---- cells

local function near(t, want)
  assert(t:allclose(nacre.tensor(want, {dtype = "float64"})), tostring(t))
end
near(sampling.cells(nacre.arange(24):reshape(4, 6), 2, 3),
     {{3.5, 5.5, 7.5}, {15.5, 17.5, 19.5}})
near(sampling.cells(nacre.arange(5):reshape(1, 5), 1, 2), {{0.5, 3}})
local cells, bad = sampling.cells(nacre.tensor {{nan, 1}, {inf, 3}}, 1, 2)
assert(bad == 2 and cells[{1, 1}] ~= cells[{1, 1}] and cells[{1, 2}] == 2)
local wide = nacre.ones(3, 3000000) -- more than are sampled
near(sampling.cells(wide, 1, 2), {{1, 1}})
assert(sampling.thin(wide, 1000):numel() <= 1100)
assert(sampling.thin(wide, 1 << 40) == wide)

-- ---- bars, matrices, images of every dtype, in every layout

for _, dtype in ipairs(C.dtypes) do
  local base = (nacre.rand(12, 10) * 9):to(dtype)
  for _, t in ipairs {base, base:t(), base[{{2, 9, 3}, {}}],
                      base[1]:expand(4, 10), base[{{1, 1}, {1, 1}}]} do
    for _, width in ipairs {30, 80} do
      local o = {width = width, utf8 = false, color = false}
      for _, name in ipairs {"hist", "heat", "show", "plot"} do
        local v = name == "plot" and t:reshape(-1) or t
        local ok, out = printed(shell[name], v, o)
        assert(ok, ("%s of %s: %s"):format(name, dtype, out))
        if name == "show" then out = out:gsub("\n[^\n]*\n$", "\n") end
        for line in out:gmatch "[^\n]+" do
          assert(columns(line) <= width, name .. ": " .. line)
        end
      end
      checked(heat.lines(t, {width = width, color = true, exact = true}), 80,
              true)
      checked(heat.lines(t, {width = width, color = true}), 80, true)
    end
  end
end

-- In 256 colours the lightness of a field rises with its values, or falls on
-- both sides of the centre.
local STEPS = {0, 95, 135, 175, 215, 255}
local function lightness(index)
  local function linear(v)
    v = v / 255
    return v <= 0.04045 and v / 12.92 or ((v + 0.055) / 1.055) ^ 2.4
  end
  assert(index >= 16 and index < 232, index)
  local i = index - 16
  return 0.2126 * linear(STEPS[i // 36 + 1]) +
         0.7152 * linear(STEPS[i // 6 % 6 + 1]) +
         0.0722 * linear(STEPS[i % 6 + 1])
end
local function ramp(low, high)
  local field, list = nacre.linspace(low, high, 60):view(1, 60), {}
  local line = heat.lines(field, {width = 80, color = true})[1]
  for index in line:gmatch "38;5;(%d+)" do
    list[#list + 1] = lightness(tonumber(index))
  end
  return list
end
local rising = ramp(1, 2)
assert(#rising >= 10)
for i = 2, #rising do assert(rising[i] > rising[i - 1]) end
local both = ramp(-3, 3)
local middle = (#both + 1) // 2
assert(#both >= 13 and #both % 2 == 1)
for i = 2, middle do assert(both[i] > both[i - 1]) end
for i = middle + 1, #both do assert(both[i] < both[i - 1]) end

-- Curves: no glyph of a font where there is nothing, and a line at 0.
local function plotted(utf8, ...)
  local t = nacre.tensor {...}
  local ok, out = printed(shell.plot, t, {utf8 = utf8, width = 40})
  assert(ok, out)
  return out
end
local curve = plotted(true, -1, 3, 0, 2)
assert(not curve:find "\u{2800}" and curve:find "\n *0 │[^\n]*┄")
assert(plotted(false, -1, 3, 0, 2):find "\n *0 |[^\n]*%-%-%-")
assert(not plotted(true, 1, 3, 2):find "┄")
assert(plotted(true, 0, 100):find "\n *50 │" and
       plotted(true, 3e38, -3e38) and plotted(true, 1, 1 + 1e-6))

local function count(t, ...)
  local ok, out = printed(shell.hist, t, ...)
  assert(ok, out)
  local n = 0
  for k in out:gmatch "(%d+)\n" do n = n + tonumber(k) end
  return n, out
end
for _, bins in ipairs {1, 2, 7, 100} do
  assert(count(nacre.randn(5000), bins) == 5000)
end
assert(count(nacre.randint(-3, 4, {500})) == 500)
assert(count(nacre.tensor {2 ^ 53, 2 ^ 53 + 2}, 3) == 2)
assert(select(2, count(nacre.zeros(5000000) + nacre.rand(1)))
       :find "~ a sample of %d+ of 5000000")

-- ---- images

local function of(t)
  local img, note = image.of(t, true)
  return img and C.text(img:size()) .. " " .. note or note
end
local function shaped(want, ...) -- uint8, of these sizes
  local got = of(nacre.zeros(..., {dtype = "uint8"}))
  assert(got == want, got)
end
shaped("{1,4,5} 5x4 grey, 0..255", {4, 5})
shaped("{3,4,5} 5x4 rgb, 0..255", {3, 4, 5})
shaped("{3,6,5} 5x6 rgb, 0..255", {6, 5, 3})
shaped("{4,6,5} 5x6 rgba, 0..255", {6, 5, 4})
shaped("{1,9,17} 6 images of 5x4 grey, 0..255", {6, 4, 5})
shaped("{3,9,7} 3 images of 3x4 rgb, 0..255", {3, 3, 4, 3})
shaped("{1,71,71} the first 64 of 100 images of 8x8 grey, 0..255",
       {100, 1, 8, 8})
assert(of(nacre.zeros(3)):find "an image is HxW")
assert(of(nacre.zeros(0, 4)):find "an image is HxW")
assert(of(nacre.zeros(2, 7, 4, 4)):find "7 channels, not 1, 3 or 4")
assert(of(nacre.tensor {{0, 2.5}}):find "0..2.5 mapped to 0..255")
assert(of(nacre.tensor {{0, 300}}):find "0..300 mapped to 0..255")
assert(of(nacre.tensor {{-1, 1}}):find "-1..1 mapped to 0..255")
C.is(image.of(nacre.tensor {{0, 0.5, 1}, {nan, 1, 0}}),
     "{{{0,128,255},{0,255,0}}}")
C.is(image.of(nacre.tensor {{-2.0, 0, inf}}), "{{{0,255,255}}}")
C.is(image.of(nacre.tensor {{true, false}}), "{{{255,0}}}")
assert(image.of(nacre.zeros(3000, 2000)):size(2) <= 1024)
assert(image.of(nacre.zeros(3000, 2000), true):size(2) == 3000)

-- Alpha is shown over black.
local clear = nacre.tensor({{{200}}, {{100}}, {{0}}, {{128}}},
                           {dtype = "uint8"})
assert(("%d %d %d"):format(image.pixels(clear, 1, 1)(1, 1)) == "100 50 0")

-- ---- the terminal's formats

assert(graphics.base64 "" == "" and graphics.base64 "f" == "Zg==")
assert(graphics.base64 "fo" == "Zm8=" and graphics.base64 "foo" == "Zm9v")
assert(graphics.base64 "\0\255\254foobar" == "AP/+Zm9vYmFy")
local large = graphics.kitty(("x"):rep(10000), 4, 2)
local pieces = {}
for head, data in large:gmatch "\27_G([^;]*);([^\27]*)\27\\" do
  assert(#data <= 4096)
  pieces[#pieces + 1] = head
end
assert(table.concat(pieces, " ") == "f=100,a=T,q=2,c=4,r=2,m=1 m=1 m=1 m=0")
assert(raster.blocks(function(_, y) return y == 1 and 0xff0000 or nil end, 2, 3,
                     true)[1] == "\27[0;38;2;255;0;0m▀▀\27[0m")
-- two red pixels, one above the other, then a white one
assert(sixel.encode(function(x) return 255, x > 1 and 255 or 0,
                                       x > 1 and 255 or 0 end, 2, 2)
       :find("#180B$#215?B-\27\\", 1, true))

-- ---- progress counts, and says nothing here
C.fails("no loop of nacre.progress runs", nil, nacre.progress.set, {loss = 1})
for i in nacre.progress(2) do
  nacre.progress.set {loss = nacre.tensor(1 / i), right = true}
  C.fails("loss must be a number", nil, nacre.progress.set, {loss = "x"})
  for _ in nacre.progress(1) do nacre.progress.set {inner = i} end
end
do
  local log = nacre.history()
  for i = 1, 3 do
    local loss = nacre.tensor(0.5 * i)
    log:add {loss = loss, accuracy = i ~= 2 and i or nil}
    loss:zero_()              -- what was added stays
  end
  assert(#log == 3 and log.loss:equal(nacre.tensor({0.5, 1, 1.5},
                                                   {dtype = "float64"})))
  assert(log.accuracy[2] ~= log.accuracy[2] and log.accuracy[3] == 3)
  assert(table.concat(log:names(), " ") == "accuracy loss")
  C.fails("there is no column 'los'", nil, function() return log.los end)
  C.fails("cannot be the name of a column", nil, log.add, log, {save = 1})
  C.fails("loss must be a number", nil, log.add, log, {loss = nacre.ones(2)})
  local path = os.tmpname()
  log:save(path)
  local file <close> = assert(io.open(path))
  assert(file:read "a" == "step,accuracy,loss\n1,1,0.5\n2,,1\n3,3,1.5\n")
  os.remove(path)
  C.fails("it is saved as .csv, not as .json", nil, log.save, log, "l.json")
end

local list = {}
for i in nacre.progress(4) do list[#list + 1] = i end
C.is({totable = function() return list end}, "{1,2,3,4}")
for _ in nacre.progress(0) do error "no step" end
C.fails("the number of steps is an integer", nil, nacre.progress, "x")
C.fails("the number of steps is an integer", nil, nacre.progress, -1)
