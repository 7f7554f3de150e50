-- SPDX-License-Identifier: MIT
--
-- file_listing.lua - nacre --ls: the names, dtypes, shapes and bytes of the
-- tensors in files, from headers; with --stats also their values in brief.

local files = require "nacre.files"
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
    local ok, dtype, shape, bytes = pcall(file.info, file, i)
    local row = {name = file.names[i], dtype = dtype, shape = shape,
                 bytes = bytes}
    if not ok then
      row.dtype, row.bytes, row.error = nil, 0, tensor_file.why(dtype)
    elseif stats and bytes and not dtype:find "^complex" then
      for key, v in pairs(statistics(file:tensor(i))) do row[key] = v end
    end
    rows[i] = row
  end
  return rows
end

local function total(rows)
  local bytes = 0
  for _, row in ipairs(rows) do bytes = bytes + (row.bytes or 0) end
  return bytes
end

local HEADING <const> = {"name", "dtype", "shape", "bytes", "min", "max",
                         "mean", "nan"}

local function print_rows(path, rows, stats)
  local columns = stats and 8 or 4
  local cells = {{table.unpack(HEADING, 1, columns)}}
  for i, row in ipairs(rows) do
    local cell = {files.shown(row.name), row.dtype or "?",
                  "[" .. table.concat(row.shape or {"?"}, "x") .. "]",
                  row.bytes and units.bytes(row.bytes) or "", "", "", "", ""}
    if stats and row.min then
      cell[5], cell[6] = numbers.brief(row.min), numbers.brief(row.max)
      cell[7], cell[8] = numbers.brief(row.mean), tostring(row.nan)
    end
    cells[i + 1] = cell
  end
  local lines = wrap.columns(cells, ("lllrrrrr"):sub(1, columns), "  ")
  table.insert(lines, 1, ("%s: %s, %s"):format(files.shown(path),
    units.count(#rows, "tensor"), units.bytes(total(rows))))
  for _, row in ipairs(rows) do
    if row.error then lines[#lines + 1] = "  " .. row.error end
  end
  wrap.say(lines)
end

local function rows_in(path, stats)
  return rows_of(tensor_file.open(path), stats)
end

-- Lists the files; of one that cannot be read complain(error) is told. Returns
-- the exit status.
function listing.run(paths, o, complain)
  local all, status = {}, 0
  for _, path in ipairs(paths) do
    local ok, rows = pcall(rows_in, path, o.stats)
    if ok then
      if not o.json then print_rows(path, rows, o.stats) end
      all[#all + 1] = {path = path, bytes = total(rows), tensors = rows}
    elseif type(rows) ~= "table" or rows.code ~= "EFILE" then
      error(rows, 0)
    else
      complain(rows)
      status = 2
    end
  end
  if o.json and all[1] then
    io.stdout:write(require "nacre.json".encode(all))
  end
  return status
end

return listing
