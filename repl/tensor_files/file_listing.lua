-- SPDX-License-Identifier: MIT
--
-- file_listing.lua - nacre --ls: the names, dtypes, shapes and bytes of the
-- tensors in files, from headers; with --stats also their values in brief.

local numbers = require "nacre.number_text"
local tensor_file = require "nacre.tensor_file"
local units = require "nacre.units"
local wrap = require "nacre.wrap_lines"

local nacre = package.loaded.nacre

local listing = {}

local PIECE = 1 << 20         -- elements

-- Least, greatest and mean of the numbers in t, and how many are nan. Computed
-- in pieces, so that it needs little memory.
local function statistics(t)
  local flat, n = t:reshape(-1), t:numel()
  local s = {min = math.huge, max = -math.huge, nan = 0}
  local sum = 0.0
  for first = 1, n, PIECE do
    local x = flat[{{first, math.min(first + PIECE - 1, n)}}]:double()
    local bad = x:isnan()
    s.nan = s.nan + bad:sum():item()
    s.min = math.min(s.min, x:masked_fill(bad, math.huge):min():item())
    s.max = math.max(s.max, x:masked_fill(bad, -math.huge):max():item())
    sum = sum + x:masked_fill(bad, 0):sum():item()
  end
  local count = n - s.nan
  if count == 0 then return {min = 0 / 0, max = 0 / 0, mean = 0 / 0,
                             nan = s.nan} end
  s.mean = sum / count
  return s
end

-- {name =, dtype =, shape =, bytes =} of each tensor, and of the statistics.
local function rows_of(file, stats)
  local rows = {}
  for i in nacre.progress(#file.names, file.path) do
    local dtype, shape, bytes = file:info(i)
    local row = {name = file.names[i], dtype = dtype, shape = shape,
                 bytes = bytes}
    if stats then
      for key, v in pairs(statistics(file:tensor(i))) do row[key] = v end
    end
    rows[i] = row
  end
  return rows
end

local function total(rows)
  local bytes = 0
  for _, row in ipairs(rows) do bytes = bytes + row.bytes end
  return bytes
end

local HEADING <const> = {"name", "dtype", "shape", "bytes", "min", "max",
                         "mean", "nan"}

local function print_rows(path, rows, stats)
  local columns = stats and 8 or 4
  local cells = {{table.unpack(HEADING, 1, columns)}}
  for i, row in ipairs(rows) do
    local cell = {tensor_file.shown(row.name), row.dtype,
                  "[" .. table.concat(row.shape, "x") .. "]",
                  units.bytes(row.bytes)}
    if stats then
      cell[5], cell[6] = numbers.brief(row.min), numbers.brief(row.max)
      cell[7], cell[8] = numbers.brief(row.mean), tostring(row.nan)
    end
    cells[i + 1] = cell
  end
  local lines = wrap.columns(cells, ("lllrrrrr"):sub(1, columns), "  ")
  table.insert(lines, 1, ("%s: %s, %s"):format(tensor_file.shown(path),
    units.count(#rows, "tensor"), units.bytes(total(rows))))
  wrap.say(lines)
end

-- Lists the files; returns the exit status.
function listing.run(paths, o)
  local all = {}
  for i, path in ipairs(paths) do
    local rows = rows_of(tensor_file.open(path), o.stats)
    if not o.json then print_rows(path, rows, o.stats) end
    all[i] = {path = path, bytes = total(rows), tensors = rows}
  end
  if o.json then io.stdout:write(require "nacre.json".encode(all)) end
  return 0
end

return listing
