-- SPDX-License-Identifier: MIT
-- summary_writer.lua - nacre.utils.tensorboard.SummaryWriter: what a training
-- says of itself, as files that TensorBoard shows. A file is a sequence of
-- records: length, checksum, the bytes of an Event, checksum. An Event is a
-- message of Protocol Buffers, written here field by field.
local all = ...
all.require("nacre.guards", "nacre.json_values")
local fail, events = all.fail, all.events
local tensorboard = all.space "utils.tensorboard"

-- ---- Protocol Buffers

local function varint(n)
  local bytes = {}
  repeat
    local low = n & 0x7f
    n = n >> 7
    bytes[#bytes + 1] = string.char(n == 0 and low or low | 0x80)
  until n == 0
  return table.concat(bytes)
end

-- A field of each kind, by its number.
local function integer(field, n) return varint(field << 3) .. varint(n) end

local function double(field, x)
  return varint(field << 3 | 1) .. string.pack("<d", x)
end

local function float(field, x)
  return varint(field << 3 | 5) .. string.pack("<f", x)
end

local function bytes(field, s)
  return varint(field << 3 | 2) .. varint(#s) .. s
end

-- A list of doubles, a tensor of float64.
local function doubles(field, t)
  local list = {}
  for i, x in ipairs(t:tolist()) do list[i] = string.pack("<d", x) end
  return bytes(field, table.concat(list))
end

-- ---- messages

local function event(what, step, time)
  local out = double(1, time or events.time())
  if step then out = out .. integer(2, step) end
  return out .. what
end

-- An Event with a Summary of one Value.
local function value_event(tag, value, step, time)
  return event(bytes(5, bytes(1, bytes(1, tag) .. value)), step, time)
end

local function image_value(pixels)
  local size = pixels:size()
  local channels = #size == 3 and size[1] or 1
  return bytes(4, integer(1, size[#size - 1]) .. integer(2, size[#size]) ..
                  integer(3, channels) .. bytes(4, nacre.encode_png(pixels)))
end

-- A tensor of one text, of TensorBoard's plugin of this name.
local function text_value(text, plugin)
  local shape = bytes(2, bytes(2, integer(1, 1)))
  return bytes(8, integer(1, 7) .. shape .. bytes(8, text)) ..
         bytes(9, bytes(1, bytes(1, plugin)))
end

-- The edges of TensorBoard's bins, each a tenth wider than the one before.
local function default_edges()
  local list, x = {}, 1e-12
  while x < 1e20 do
    list[#list + 1] = x
    x = x * 1.1
  end
  local right = nacre.tensor(list, {dtype = "float64", device = "cpu"})
  return nacre.cat {-right:flip(1), nacre.zeros(1, {dtype = "float64",
                                                    device = "cpu"}), right}
end

-- Without the empty bins at both ends but one.
local function trimmed(counts, edges)
  local filled = counts:gt(0):nonzero():reshape(-1)
  if filled:numel() == 0 then
    fail("add_histogram", "no value is within the bins")
  end
  local first, last = filled[1], filled[-1]
  if first > 1 then first = first - 1
  else
    counts = nacre.cat {nacre.zeros(1, {dtype = "float64", device = "cpu"}),
                        counts}
    return counts:narrow(1, 1, last + 1), edges:narrow(1, 1, last + 1)
  end
  return counts:narrow(1, first, last - first + 1),
         edges:narrow(1, first + 1, last - first + 1)
end

local function histogram_value(v, bins)
  local counts, edges = nacre.histogram(v, bins)
  counts, edges = trimmed(counts, edges)
  return bytes(5, double(1, v:min():item()) .. double(2, v:max():item()) ..
    double(3, v:numel()) .. double(4, v:sum():item()) ..
    double(5, v:dot(v):item()) .. doubles(6, edges) .. doubles(7, counts))
end

-- ---- files

local function make_folders(path)
  local at = path:match "^/*"
  for part in path:gmatch "[^/]+" do
    at = at .. part
    local ok, why = events.make_folder(at)
    if not ok then fail("SummaryWriter", ("%s: %s"):format(at, why)) end
    at = at .. "/"
  end
end

local files = 0                 -- of this process

-- A new file of events, {file=, flushed=}, in a folder.
local function open_file(folder, suffix)
  make_folders(folder)
  local host, process = events.writer()
  local path = ("%s/events.out.tfevents.%010d.%s.%d.%d%s"):format(folder,
    math.floor(events.time()), host, process, files, suffix)
  files = files + 1
  local file, why = io.open(path, "wb")
  if not file then fail("SummaryWriter", why) end
  return {file = file, flushed = events.time(), path = path}
end

local function check_written(f, ok, why)
  if not ok then
    fail("SummaryWriter", ("%s: %s"):format(f.path, tostring(why)))
  end
end

local function write_event(f, message)
  local length = string.pack("<I8", #message)
  check_written(f, f.file:write(length,
    string.pack("<I4", events.masked_crc(length)), message,
    string.pack("<I4", events.masked_crc(message))))
end

-- ---- the writer

local Writer = {__name = "SummaryWriter"}
Writer.__index = Writer

-- The file of events in the folder below that of the writer ("" is its own).
local function file_of(self, below)
  if self.is_closed then
    fail("SummaryWriter", "the writer is closed")
  end
  local f = self.files[below]
  if not f then
    f = open_file(self.log_dir .. (below == "" and "" or "/" .. below),
                  self.filename_suffix)
    self.files[below] = f
    write_event(f, event(bytes(3, "brain.Event:2")))
    if self.purge_step then
      write_event(f, event(bytes(7, integer(1, 1)), self.purge_step))
    end
  end
  return f
end

local function write(self, below, message)
  local f = file_of(self, below)
  write_event(f, message)
  local now = events.time()
  if now - f.flushed >= self.flush_secs then
    f.flushed = now
    check_written(f, f.file:flush())
  end
end

-- The number in v, of any kind that has one.
local function number_of(op, v)
  if nacre.is_tensor(v) then
    if v:numel() ~= 1 then
      fail(op, "a scalar is a number or a tensor of one element, not {value}",
           nil, "value", v)
    end
    v = v:item()
  end
  if type(v) == "boolean" then v = v and 1 or 0 end
  if type(v) ~= "number" then
    fail(op, ("a scalar is a number or a tensor of one element, not a %s")
             :format(type(v)))
  end
  return v + 0.0
end

-- A tensor of v on the CPU, without its history.
local function host_tensor(op, v)
  if type(v) == "table" or type(v) == "number" then v = nacre.tensor(v) end
  if not nacre.is_tensor(v) then
    fail(op, ("a tensor is expected, not a %s"):format(type(v)))
  end
  return v:detach():cpu()
end

function Writer:add_scalar(tag, value, step, time, new, precise)
  local x = number_of("add_scalar", value)
  write(self, "", value_event(tag, (new or precise) and
    bytes(8, integer(1, 2) .. bytes(2, "") .. bytes(6, string.pack("<d", x))) ..
    bytes(9, bytes(1, bytes(1, "scalars"))) or float(2, x), step, time))
end

-- A file for each, as TensorBoard draws lines in one picture.
function Writer:add_scalars(main_tag, values, step, time)
  if type(values) ~= "table" or nacre.is_tensor(values) then
    fail("add_scalars", "tag_scalar_dict is a table {name = number}")
  end
  local names = {}
  for name in pairs(values) do
    if type(name) ~= "string" then
      fail("add_scalars", "tag_scalar_dict is a table {name = number}")
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local x = number_of("add_scalars", values[name])
    write(self, main_tag:gsub("/", "_") .. "_" .. name,
          value_event(main_tag, float(2, x), step, time))
  end
end

function Writer:add_histogram(tag, values, step, bins, time)
  local op = "add_histogram"
  local v = host_tensor(op, values):double():reshape(-1)
  if v:numel() == 0 then fail(op, "there are no values") end
  if not v:isfinite():all():item() then
    fail(op, "{values} has nan or inf", nil, "values", v)
  end
  if bins == nil or bins == "tensorflow" then bins = default_edges() end
  if nacre.is_tensor(bins) then bins = bins:double():cpu()
  elseif not math.tointeger(bins) then
    fail(op, 'bins is "tensorflow", a number or a tensor of edges')
  end
  write(self, "", value_event(tag, histogram_value(v, bins), step, time))
end

-- From each order of dimensions to that of channel, row, column.
local ORDERS <const> = {CHW = {1, 2, 3}, HWC = {3, 1, 2}, HW = {1, 2},
                        WH = {2, 1}, CWH = {1, 3, 2}, WHC = {3, 2, 1}}

local function add_image(self, tag, image, step, time, dataformats)
  local op, order = "add_image", ORDERS[dataformats:upper()]
  local t = host_tensor(op, image)
  if not order then
    fail(op, ("dataformats is CHW, HWC or HW, not '%s'"):format(dataformats))
  end
  if t:dim() ~= #order then
    fail(op, ("%s has %d dimensions, {image} has %d"):format(dataformats,
               #order, t:dim()), 'dataformats = "HW"', "image", image)
  end
  t = t:permute(order)
  if t:is_floating_point() then
    t = (t:clamp(0, 1) * 255):byte()
  elseif t.dtype ~= "uint8" and t.dtype ~= "bool" then
    fail(op, "an image is of floats from 0 to 1 or of uint8, {image} is not",
         nil, "image", image)
  end
  write(self, "", value_event(tag, image_value(t:contiguous()), step, time))
end

Writer.add_image = add_image

-- [n x c x h x w]: the images in rows of eight.
function Writer:add_images(tag, images, step, time)
  local t = host_tensor("add_images", images)
  if t:dim() ~= 4 then
    fail("add_images", "images are [n x c x h x w], {images} is not", nil,
         "images", images)
  end
  if not t:is_floating_point() then t = t:float() / 255 end
  local grid = nacre.utils.make_grid(t, {padding = 0})
  add_image(self, tag, grid, step, time, "CHW")
end

function Writer:add_text(tag, text, step, time)
  write(self, "", value_event(tag .. "/text_summary", text_value(text, "text"),
                              step, time))
end

function Writer:flush()
  for _, f in pairs(self.files) do
    f.flushed = events.time()
    check_written(f, f.file:flush())
  end
end

function Writer:get_logdir() return self.log_dir end

function Writer:close()
  if self.is_closed then return end
  self.is_closed = true
  for _, f in pairs(self.files) do check_written(f, f.file:close()) end
end

Writer.__close = Writer.close

function Writer:__tostring()
  return ("SummaryWriter of %s"):format(self.log_dir)
end

local STEP <const> = ", global_step:int=nil"
local TIME <const> = ", walltime:num=nil"
all.guard_methods(Writer, function(v) return getmetatable(v) == Writer end,
                  "writer", {
  add_scalar = "tag:text, scalar_value:any" .. STEP .. TIME
    .. ", new_style:bool=false, double_precision:bool=false",
  add_scalars = "main_tag:text, tag_scalar_dict:any" .. STEP .. TIME,
  add_histogram = "tag:text, values:any" .. STEP .. ", bins:any=nil" .. TIME,
  add_image = "tag:text, img_tensor:any" .. STEP .. TIME
    .. ", dataformats:text=CHW",
  add_images = "tag:text, img_tensor:any" .. STEP .. TIME,
  add_text = "tag:text, text_string:text" .. STEP .. TIME,
})

local signature = all.parse("utils.tensorboard.SummaryWriter",
  "log_dir:text=nil, comment:text=nil, purge_step:int=nil, max_queue:int=10, "
  .. "flush_secs:num=120, filename_suffix:text=nil -> writer")

function tensorboard.SummaryWriter(...)
  local v = all.read("SummaryWriter", signature, ...)
  local self = {files = {}, purge_step = v[3], flush_secs = v[5],
                filename_suffix = v[6] or "", log_dir = v[1]}
  if not self.log_dir or self.log_dir == "" then
    self.log_dir = ("runs/%s_%s%s"):format(os.date "%b%d_%H-%M-%S",
                                           (events.writer()), v[2] or "")
  end
  if #self.log_dir > 1 then self.log_dir = self.log_dir:gsub("/+$", "") end
  setmetatable(self, Writer)
  file_of(self, "")
  return self
end
all.describe("utils.tensorboard.SummaryWriter", tensorboard.SummaryWriter,
             "writes numbers, histograms, images and texts of a training for "
             .. "TensorBoard", signature)
