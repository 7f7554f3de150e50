-- SPDX-License-Identifier: MIT
--
-- file_difference.lua - nacre --diff: compares two files tensor by tensor.

local files = require "nacre.files"
local difference = require "nacre.tensor_difference"
local tensor_file = require "nacre.tensor_file"
local units = require "nacre.units"
local wrap = require "nacre.wrap_lines"

local nacre = package.loaded.nacre

local file_difference = {}

-- The names of both files, those of a first.
local function all_names(a, b)
  local names = table.move(a.names, 1, #a.names, 1, {})
  for _, name in ipairs(b.names) do
    if not a:find(name) then names[#names + 1] = name end
  end
  return names
end

local function kind(file, i)
  local dtype, shape, bytes = file:info(i)
  if not bytes then
    error(("the dtype %s is not supported"):format(dtype), 0)
  end
  return ("%s[%s]"):format(dtype, table.concat(shape, "x")), dtype
end

-- What differs in the tensors with this name: {name =, why =} if that cannot
-- be measured, else also the numbers of difference.measure. `same` if nothing
-- differs, `close` if nothing does by more than the tolerances, `unread` if one
-- of them cannot be read.
local function compare(a, b, name, o)
  local row = {name = name}
  local i, k = a:find(name), b:find(name)
  if not i or not k then
    row.why = "only in " .. files.shown((i and a or b).path)
    return row
  end
  local ok, kind_a, dtype_a = pcall(kind, a, i)
  local good, kind_b, dtype_b = pcall(kind, b, k)
  if not ok or not good then
    row.why = tensor_file.why(ok and kind_b or kind_a)
    row.unread = true
    return row
  end
  row.kind = kind_a
  local x, y = a:tensor(i), b:tensor(k)
  local d = difference.measure(x, y, nil, o)
  if not d then
    row.why = ("%s and %s"):format(kind_a, kind_b)
    return row
  end
  if dtype_a ~= dtype_b then row.dtypes = dtype_a .. " and " .. dtype_b end
  row.same = not row.dtypes and d.different == 0
  row.close = not row.dtypes and d.beyond == 0
  row.d = d
  return row
end

-- "1.0e-06 at [1,2]"
local function at(d, name)
  local where = d[name .. "at"]
  local text = difference.number(d[name])
  return where and d[name] > 0 and text .. " at " .. where or text
end

local function cells(row)
  local name = files.shown(row.name)
  if row.why then return {name, row.why, "", "", "", ""} end
  local d = row.d
  return {name, row.dtypes or row.kind,
          ("%d of %d"):format(d.different, d.n), at(d, "abs"), at(d, "rel"),
          d.ulpat and ("%.3g"):format(d.ulp) or ""}
end

local function report(rows, o)
  local shown, close, far, unread = {}, 0, 0, 0
  for _, row in ipairs(rows) do
    if not row.same then shown[#shown + 1] = row end
    if row.close and not row.same then close = close + 1 end
    if row.unread then unread = unread + 1
    elseif not row.close then far = far + 1 end
  end
  local lines = {}
  if shown[1] then
    local list = {{"name", "", "differ", "max abs", "max rel", "ulp"}}
    for i, row in ipairs(shown) do list[i + 1] = cells(row) end
    lines = wrap.columns(list, "llrllr", "  ", true)
  end
  local n = units.count(#rows, "tensor")
  lines[#lines + 1] = #shown == 0 and "equal: " .. n or
    unread > 0 and ("%d of %s not compared, %d differ%s"):format(
      unread, n, far, far == 1 and "s" or "") or
    far == 0 and ("close: %s, %d within rtol %g, atol %g"):format(
      n, close, o.rtol, o.atol) or
    ("%d of %s differ%s"):format(far, n, far == 1 and "s" or "") ..
      (close > 0 and (", %d within rtol %g, atol %g"):format(
        close, o.rtol, o.atol) or "")
  wrap.say(lines)
end

local function json_row(row)
  local d = row.d or {}
  return {name = row.name, why = row.why, dtypes = row.dtypes,
          equal = row.same or false, close = row.close or false,
          different = d.different, elements = d.n, abs = d.abs, rel = d.rel,
          ulp = d.ulpat and d.ulp or nil, abs_at = d.absat, rel_at = d.relat}
end

-- Compares the two files; returns the exit status.
function file_difference.run(paths, o)
  local a, b = tensor_file.open(paths[1]), tensor_file.open(paths[2])
  -- the one tensor of a .npy or .csv file has no name of its own
  if #a.names == 1 and #b.names == 1 and
     (a.names[1] == "" or b.names[1] == "") then
    a.names, b.names = {"tensor"}, {"tensor"}
  end
  local names, rows, status = all_names(a, b), {}, 0
  for i in nacre.progress(#names, "diff") do
    rows[i] = compare(a, b, names[i], o)
    if rows[i].unread then status = 2
    elseif not rows[i].close then status = math.max(status, 1) end
  end
  if o.json then
    local list = {}
    for i, row in ipairs(rows) do list[i] = json_row(row) end
    io.stdout:write(require "nacre.json".encode {
      equal = status == 0, rtol = o.rtol, atol = o.atol, tensors = list})
  else
    report(rows, o)
  end
  return status
end

return file_difference
