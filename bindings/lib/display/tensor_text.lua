-- SPDX-License-Identifier: MIT
--
-- tensor_text.lua - tensors as text: header, elements, statistics.
--
-- The cost and the size of the text are bounded: only the elements that fit
-- are read (tensor_grid.lua); statistics take one pass over all elements, or
-- over a sample if the tensor is large.
--
-- opts, everywhere: width, color, utf8, stats, precision, edge, maxlines, and
-- nameof(t), the name of what t is a view of.

local facts = require "nacre.tensor_facts"
local grid = require "nacre.tensor_grid"
local numbers = require "nacre.number_text"

local kind = facts.kind_and_device

local tensors = {}

local FULL, SAMPLE = 1 << 24, 1 << 20  -- elements: about 50 ms; when above

local defaults = {width = 80, utf8 = true, stats = true, precision = 4,
                  edge = 5, maxlines = 25}

tensors.defaults = defaults         -- a program may change what they are

-- The options with the defaults for those that are not given.
function tensors.options(opts)
  return setmetatable({}, {__index = function(_, k)
    local v = opts and opts[k]
    if v == nil then return defaults[k] end
    return v
  end})
end

-- A number in the statistics, in full if the elements are; `dtype' if it is an
-- element itself.
local function shorten(x, opts, dtype)
  if opts.precision == "full" then return numbers.shortest(x, dtype) end
  return numbers.brief(x)
end

local bars = {}
for c = 0x2581, 0x2588 do bars[#bars + 1] = utf8.char(c) end

-- Rounds to the nearest integer, halves to even.
local function round(x)
  local y = math.floor(x + 0.5)
  return y - x == 0.5 and y % 2 == 1 and y - 1 or y
end

local function sparkline(h)
  local top, list = math.max(table.unpack(h)), {}
  for i, n in ipairs(h) do
    list[i] = bars[n == 0 and 1 or math.min(7, round(7 * n / top)) + 1]
  end
  return table.concat(list)
end

tensors.sparkline = sparkline       -- of any list of counts

-- The common value of all elements, if there is one.
local function constant(t, s, opts)
  if facts.iscomplex(t) or not s.constant or s.constant == 0 or
     s.seen < s.n then
    return nil
  end
  if not facts.isfloat(t) then return numbers.integer(s.imin, t.dtype) end
  if s.posinf > 0 then return "inf" end
  if s.neginf > 0 then return "-inf" end
  local text = shorten(s.min, opts, t.dtype)
  if numbers.same(text, s.min, t.dtype) then return text end
  return grid.column({s.min}, t.dtype, opts.precision)[1]
end

-- A percentage with three digits; "100" only if it is exact.
local function share(part, whole)
  local p = 100 * part / whole
  return part < whole and p > 99.9 and ">99.9" or plain_format("%.3g", p)
end

-- min, max, ... as a list of texts; "~" marks what a sample gives.
local function moment_fields(t, s, opts)
  local about = s.seen < s.n and "~" or ""
  if t.dtype == "bool" then
    local yes = s.seen - s.zero
    local percent = ("(%s%s%% true)"):format(about, share(yes, s.seen))
    if about ~= "" then return {percent:sub(2, -2)} end
    return {("true %d"):format(yes), ("false %d"):format(s.zero), percent}
  end
  local same = constant(t, s, opts)
  if same then return {"all " .. same} end
  local known = s.seen - s.nan - s.posinf - s.neginf
  if known == 0 then return {} end
  local complex = facts.iscomplex(t)          -- the statistics are of abs
  if not facts.isfloat(t) and not complex then
    local mean = about == "" and numbers.mean or numbers.brief
    return {"min " .. about .. numbers.integer(s.imin, t.dtype),
            "max " .. about .. numbers.integer(s.imax, t.dtype),
            "mean " .. about .. mean(s.mean)}
  end
  local list = {}
  for i, name in ipairs {"min", "max", "mean", "std"} do
    local dtype = i <= 2 and (facts.parts[t.dtype] or t.dtype) or nil
    list[i] = name .. " " .. about .. shorten(s[name], opts, dtype)
  end
  if complex then list[1] = "abs: " .. list[1] end
  if about ~= "" then list[5] = "(sampled: nan not counted)" end
  if s.zero / known > 0.2 then
    list[#list + 1] = ("zero %s%s%%"):format(about, share(s.zero, known))
  end
  if opts.utf8 and known >= 20 and s.min < s.max and s.max - s.min < 1 / 0 then
    list[#list + 1] = sparkline(s.histogram)
  end
  return list
end

-- Joins as many of the fields as fit.
local function fit(list, width)
  local n, total = 0, -2
  for i, s in ipairs(list) do
    total = total + 2 + (utf8.len(s) or #s)
    if total > width and i > 1 then break end
    n = i
  end
  return table.concat(list, "  ", 1, n)
end

-- "2 nan, 1 inf", or nil
local function bad_counts(s)
  local list = {}
  local function add(n, name)
    if n > 0 then list[#list + 1] = ("%d %s"):format(n, name) end
  end
  add(s.nan, "nan")
  add(s.posinf, "inf")
  add(s.neginf, "-inf")
  return list[1] and table.concat(list, ", ")
end

-- A percentage with two digits; "100" only if it is exact.
local function percent(part, whole)
  local p = 100 * part / whole
  if p < 99.5 then return plain_format("%.2g", p) end
  return part < whole and ">99" or "100"
end

local function bad_line(size, s, opts)
  local text = bad_counts(s)
  if not text then return nil end
  local at = facts.index(s.firstbad + 1, size)
  if s.seen < s.n then
    text = ("! %s in a sample of %d, one at %s"):format(text, s.seen, at)
  else
    text = ("! %s of %d (%s%%), first at %s"):format(
      text, s.n, percent(s.nan + s.posinf + s.neginf, s.n), at)
  end
  return opts.color and "\27[31m" .. text .. "\27[0m" or text
end

-- Are all elements zeros and ones that the screen shows, as in a mask?
local function is_mask(t, s)
  return t.dtype ~= "bool" and s.n <= 100 and s.min == 0 and s.max == 1 and
         s.nan + s.posinf + s.neginf == 0 and
         math.abs(s.mean * s.n - (s.n - s.zero)) < 1e-6
end

local function statistics(lines, t, size, s, opts)
  if s.n >= 20 and not is_mask(t, s) then
    local list = moment_fields(t, s, opts)
    if list[1] then lines[#lines + 1] = fit(list, opts.width) end
  end
  if s.n > 1 then lines[#lines + 1] = bad_line(size, s, opts) end
end

-- The statistics of all elements or of a sample; nil if they are unavailable.
local function summarize(t, n)
  local ok, s = pcall(nacre._summary, t, n > FULL and SAMPLE or 0)
  return ok and s or nil
end

--
-- Tensors
--
-- "view of a, strides 1,1000"
local function notes(t, opts)
  local list = {}
  local base = opts.nameof and opts.nameof(t)
  if base then list[1] = "view of " .. base end
  if not t:is_contiguous() then
    list[#list + 1] = "strides " .. table.concat(t:stride(), ",")
  end
  if t:is_pinned() then list[#list + 1] = "pinned" end
  if t.grad_fn then list[#list + 1] = "grad " .. tostring(t.grad_fn)
  elseif t.requires_grad then list[#list + 1] = "requires_grad" end
  return list[1] and "  " .. table.concat(list, ", ") or ""
end

-- The header with the memory of the elements; repeated elements of an expanded
-- dimension count once.
local function header(t, size, opts)
  local bytes, strides = t:element_size(), t:stride()
  for d, s in ipairs(size) do
    if strides[d] > 0 or s == 0 then bytes = bytes * s end
  end
  return kind(t) .. "  " .. nacre._bytes_text(bytes) .. notes(t, opts)
end

-- Are the elements at the ends equal? If not, the tensor is not constant, and
-- the rest need not be read.
local function maybe_constant(t, size)
  local a, b = t, t
  for d = 1, #size do
    a, b = a:narrow(d, 1, 1), b:narrow(d, size[d], 1)
  end
  return a:item() == b:item()
end

-- "3.1416  float32[] cpu"
local function scalar(t, opts)
  local text = grid.column({grid.values(t)}, t.dtype, opts.precision)
  return text[1] .. "  " .. kind(t)
end

-- "float32[3] cpu, a sample of vmap (level 1, 128 samples)": its values differ
-- from sample to sample. nil for another tensor.
local function sample(t)
  local A = rawget(nacre, "autograd")
  local value, depth
  if A then value, depth = A._open(t) end
  if not value then return nil end
  if depth == 0 then return kind(t) .. ", of a vmap that has ended" end
  return ("%s, a sample of vmap (level %d, %d samples)")
         :format(kind(t), depth, value:size(1))
end

local function whole(t, opts)
  local size, n = t:size(), 1
  local text = sample(t)
  if text then return text end
  for _, s in ipairs(size) do n = n * s end
  if nacre._isdry(t) then
    local dry = t.device == "meta" and "" or "of a dry run, "
    return kind(t) .. "  " .. dry .. "no values"
  end
  if #size == 0 then return scalar(t, opts) end
  local lines = {header(t, size, opts)}
  if n == 0 then return lines[1] .. " (empty)" end
  local check = n > 100 and n <= FULL and t.dtype ~= "bool"
  local s = (opts.stats or check and maybe_constant(t, size)) and
            summarize(t, n)
  local same = check and s and constant(t, s, opts)
  if same then return lines[1] .. "  all " .. same end
  if #size == 1 then grid.vector(lines, t, n, opts)
  elseif #size == 2 then grid.plane(lines, t, size, opts)
  else grid.slices(lines, t, size, opts) end
  if opts.stats and s then statistics(lines, t, size, s, opts) end
  return table.concat(lines, "\n")
end

-- A test that stores the values of what is shown sets watch(t, text).
local function report_shown(t, text)
  if tensors.watch then tensors.watch(t, text) end
  return text
end

-- A tensor with the options of tensors.options.
function tensors.tensor(t, opts) return report_shown(t, whole(t, opts)) end

-- One line without statistics, for tables and lists.
function tensors.brief(t)
  return report_shown(t, sample(t) or
                    (t:dim() > 0 or nacre._isdry(t)) and kind(t) or
                    scalar(t, defaults))
end

-- nacre.summary: one line with statistics. It is called from machine.c, so
-- that errors name the right function.
function tensors.summary(t)
  if not facts.istensor(t) then
    error(t == nil and
          "summary: self must be a tensor, not nothing" or
          ("summary: self must be a tensor, not a %s"):format(type(t)), 3)
  end
  local n = t:numel()
  local s = t:dim() > 0 and n > 0 and summarize(t, n)
  if not s then return tensors.brief(t) end
  local list = moment_fields(t, s, {})
  table.insert(list, 1, kind(t))
  list[#list + 1] = bad_counts(s)
  return report_shown(t, table.concat(list, "  "))
end

-- Header and elements, as tostring and print show them everywhere.
function tensors.tostring(t)
  return tensors.tensor(t, tensors.options {stats = false})
end

return tensors
