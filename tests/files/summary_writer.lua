-- SPDX-License-Identifier: MIT
-- nacre.utils.tensorboard.SummaryWriter: frames, checksums and messages, read
-- back here byte by byte. test_tensorboard.py reads them with TensorBoard.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local eq, fails = C.eq, C.fails
local SummaryWriter = nacre.utils.tensorboard.SummaryWriter

local folder = os.tmpname()
os.remove(folder)

-- ---- reading

-- CRC-32C bit by bit, from its definition.
local function crc32c(s)
  local crc = 0xffffffff
  for i = 1, #s do
    crc = crc ~ s:byte(i)
    for _ = 1, 8 do
      crc = crc >> 1 ~ ((crc & 1) * 0x82f63b78)
    end
  end
  return ~crc & 0xffffffff
end
eq(crc32c "123456789", 0xe3069283)      -- the check value of the standard

local function masked(s)
  local c = crc32c(s)
  return (((c >> 15 | c << 17) & 0xffffffff) + 0xa282ead8) & 0xffffffff
end

-- {[number] = list of values} of a message; of 64 and 32 bits as bytes.
local function fields_of(s)
  local fields, at = {}, 1
  local function varint()
    local n, shift = 0, 0
    while true do
      local b = s:byte(at)
      at = at + 1
      n = n | (b & 0x7f) << shift
      if b < 0x80 then return n end
      shift = shift + 7
    end
  end
  while at <= #s do
    local key, v = varint(), nil
    if key & 7 == 0 then v = varint()
    else
      local size = key & 7 == 1 and 8 or key & 7 == 5 and 4 or varint()
      v, at = s:sub(at, at + size - 1), at + size
    end
    local list = fields[key >> 3] or {}
    list[#list + 1] = v
    fields[key >> 3] = list
  end
  return fields
end

local function double(s) return (string.unpack("<d", s)) end

-- The messages of all files in a folder, without those below it.
local function events_in(path)
  local list = {}
  local ls = io.popen(("ls '%s'"):format(path))
  for name in ls:lines() do
    local file = io.open(path .. "/" .. name, "rb")
    local s = name:find "^events%.out%.tfevents%.%d+%." and file:read "a"
    file:close()
    local at = 1
    while s and at <= #s do
      local n, crc = string.unpack("<I8I4", s, at)
      eq(crc, masked(s:sub(at, at + 7)))
      local message = s:sub(at + 12, at + 11 + n)
      eq(#message, n)
      eq(string.unpack("<I4", s, at + 12 + n), masked(message))
      list[#list + 1] = fields_of(message)
      at = at + 16 + n
    end
  end
  ls:close()
  return list
end

-- The fields of the only value of an event.
local function value_of(event)
  return fields_of(fields_of(event[5][1])[1][1])
end

-- ---- what is written

local w = SummaryWriter(folder .. "/a/b")
eq(w:get_logdir(), folder .. "/a/b")
eq(tostring(w), "SummaryWriter of " .. folder .. "/a/b")
w:add_scalar("loss", 0.5, 3)
w:add_scalar("loss", nacre.tensor(0.25), {global_step = 300, walltime = 7})
w:add_scalar("exact", 0.1, {double_precision = true})
w:add_text("note", "hello", 1)
w:add_image("picture", nacre.ones(3, 2, 5) * 0.5, 2)
w:add_image("grey", nacre.zeros(4, 3), {dataformats = "HW"})
w:add_images("several", nacre.zeros(2, 1, 4, 4))
w:add_histogram("weights", nacre.tensor {-1.0, 0, 1, 1, 2}, 5)
w:add_scalars("run/losses", {train = 1, valid = 2}, 4)
w:flush()

local events = events_in(folder .. "/a/b")
eq(#events, 9)
eq(events[1][3][1], "brain.Event:2")
assert(math.abs(double(events[1][1][1]) - os.time()) < 100)
eq(value_of(events[2])[1][1], "loss")
eq(string.unpack("<f", value_of(events[2])[2][1]), 0.5)
eq(events[2][2][1], 3)
eq(events[3][2][1], 300)
eq(double(events[3][1][1]), 7)
eq(string.unpack("<f", value_of(events[3])[2][1]), 0.25)
eq(events[4][2], nil)           -- no step
eq(double(fields_of(value_of(events[4])[8][1])[6][1]), 0.1)
eq(value_of(events[5])[1][1], "note/text_summary")
eq(fields_of(value_of(events[5])[8][1])[8][1], "hello")

local picture = fields_of(value_of(events[6])[4][1])
eq(picture[1][1], 2)
eq(picture[2][1], 5)
eq(picture[3][1], 3)
local pixels = nacre.decode_png(picture[4][1])
eq(table.concat(pixels:size(), "x"), "3x2x5")
eq(pixels:min():item(), 127)
eq(fields_of(value_of(events[7])[4][1])[3][1], 1)
eq(fields_of(value_of(events[8])[4][1])[2][1], 8)

local h = fields_of(value_of(events[9])[5][1])
eq(double(h[1][1]), -1)
eq(double(h[2][1]), 2)
eq(double(h[3][1]), 5)
eq(double(h[4][1]), 3)
eq(double(h[5][1]), 7)
eq(#h[6][1], #h[7][1])
local total = 0
for i = 1, #h[7][1], 8 do
  total = total + string.unpack("<d", h[7][1], i)
end
eq(total, 5)

for name, v in pairs {train = 1, valid = 2} do
  local one = events_in(folder .. "/a/b/run_losses_" .. name)
  eq(#one, 2)
  eq(value_of(one[2])[1][1], "run/losses")
  eq(string.unpack("<f", value_of(one[2])[2][1]), v)
end
w:close()
w:close()
fails("SummaryWriter: the writer is closed", w.add_scalar, w, "loss", 1)

do
  local again <close> = SummaryWriter(folder .. "/c", {purge_step = 9,
                                                       filename_suffix = ".x"})
  again:add_scalar("loss", true)
end
events = events_in(folder .. "/c")
eq(#events, 3)
eq(events[2][2][1], 9)
eq(fields_of(events[2][7][1])[1][1], 1)

-- no folder, and the empty text, is one of its own in runs/ of this folder
for _, path in ipairs {false, ""} do
  local usual <close> = SummaryWriter(path or nil, {comment = "-" .. #folder})
  eq(usual:get_logdir():match "^runs/.*%-%d+$" ~= nil, true)
  os.execute(("rm -r '%s'; rmdir runs 2>/dev/null"):format(usual:get_logdir()))
end

-- a long message: its length takes several bytes
do
  local long <close> = SummaryWriter(folder .. "/d")
  long:add_text("t", ("x"):rep(100000))
end
eq(#fields_of(value_of(events_in(folder .. "/d")[2])[8][1])[8][1], 100000)

-- ---- errors

w = SummaryWriter(folder .. "/e")
fails("add_scalar: a scalar is a number or a tensor of one element, not value",
      w.add_scalar, w, "a", nacre.ones(2))
fails("a scalar is a number or a tensor of one element, not a string",
      w.add_scalar, w, "a", "b")
fails("add_scalar: tag must be a string", w.add_scalar, w, 3, 4)
fails("CHW has 3 dimensions, image has 2", 'dataformats = "HW"', w.add_image, w,
      "a", nacre.ones(2, 2))
fails("an image is of floats from 0 to 1 or of uint8", w.add_image, w, "a",
      nacre.ones(1, 2, 2):int())
fails("dataformats is CHW, HWC or HW, not 'XY'", w.add_image, w, "a",
      nacre.ones(2, 2), {dataformats = "XY"})
fails("there are no values", w.add_histogram, w, "a", nacre.ones(0))
fails("has nan or inf", w.add_histogram, w, "a", nacre.tensor {1, nacre.nan})
fails("no value is within the bins", w.add_histogram, w, "a", nacre.ones(2),
      {bins = nacre.tensor {3.0, 4}})
fails("tag_scalar_dict is a table", w.add_scalars, w, "a", {1, 2})
fails("a method is called with a colon", w.flush)
local plain = assert(io.open(folder .. "/file", "w"))
plain:close()
fails("SummaryWriter: " .. folder .. "/file: ", SummaryWriter,
      folder .. "/file/below")
w:close()
os.execute(("rm -r '%s'"):format(folder))
