-- SPDX-License-Identifier: MIT
--
-- picture_data.lua - the values of :plot, :scatter and others as series of
-- numbers: tensors, lists, columns of matrices and of histories, functions.

local downsample = require "nacre.downsample"
local facts = require "nacre.tensor_facts"
local training_log = require "nacre.training_log"

local nacre = package.loaded.nacre or _G.nacre

local data = {}

local POINTS <const> = 20000  -- that :scatter draws of a series

-- Says that a history is not a tensor, and which of its columns are.
local function of_history(log, what)
  local names = log:names()
  for i, name in ipairs(names) do
    names[i] = what:find "^[%a_][%w_.]*$" and what .. "." .. name or name
  end
  if not names[1] then return what .. " is a history without columns" end
  return ("%s is a history; a column is %s"):format(what,
    table.concat(names, " or ", 1, math.min(#names, 6)))
end

-- The numbers of a list of numbers and of tensors with one element, losses for
-- instance; nil if v is not such a list.
local function numbers(v)
  local list = {}
  for i, x in ipairs(getmetatable(v) == nil and type(v) == "table" and v or
                     {}) do
    if facts.istensor(x) and x:numel() == 1 then x = x:item() end
    if type(x) ~= "number" then return nil end
    list[i] = x
  end
  return list[1] and list
end

-- A detached tensor from a tensor or such a list.
function data.tensor(v, what)
  if training_log.is(v) then return nil, of_history(v, what) end
  if type(v) == "table" and next(v) == nil and not getmetatable(v) then
    return nil, what .. " is empty"
  end
  local list = not facts.istensor(v) and numbers(v)
  if list then v = nacre.tensor(list) end
  if not facts.istensor(v) then
    local kind = v == nil and "nil" or type(v) == "table" and
                 rawget(v, "_fields") and "a network" or "a " .. type(v)
    return nil, ("%s is %s, not a tensor"):format(what, kind)
  elseif v:numel() == 0 then
    return nil, what .. " is empty"
  elseif v:is_complex() then
    return nil, ("%s is complex; %s:abs(), %s:angle() and %s.real are real")
           :format(what, what, what, what)
  end
  return facts.computable(v:detach())
end

--
-- Curves
--
-- Does a vector rise? Equal neighbours may be several values at one place.
local function rises(x)
  if x:dim() ~= 1 or x:size(1) < 2 then return false end
  local n = x:size(1)
  return x[n] > x[1] and
         x:narrow(1, 2, n - 1):ge(x:narrow(1, 1, n - 1)):all():item()
end

-- The arguments with the columns of histories in their place, and their names.
-- The other columns are not plotted against the first one.
function data.with_columns(args, names)
  local list, called = {n = 0}, {}
  local function add(v, name)
    list.n = list.n + 1
    list[list.n], called[list.n] = v, name
  end
  for i = 1, args.n do
    local columns = training_log.is(args[i]) and args[i]:names() or {}
    list.columns = list.columns or i == 1 and columns[1] ~= nil
    for _, name in ipairs(columns) do
      add(args[i][name], names[i] and names[i] .. "." .. name or name)
    end
    if #columns == 0 then add(args[i], names[i]) end
  end
  return list, called
end

--
-- Functions
--
local function is_function(v) return type(v) == "function" end

-- Evenly spaced numbers; on a logarithmic axis evenly spaced there.
local function spaced(low, high, n, log)
  local list = {}
  for i = 0, n - 1 do
    local part = i / (n - 1)
    list[i + 1] = log and low * (high / low) ^ part or
                  low * (1 - part) + high * part
  end
  return list
end

-- The values of a function of numbers, or of one of tensors; nil and why there
-- are none. A value that is not a number is a gap.
local function values_of(f, xs, name)
  local ok, first = pcall(f, xs[1])
  if ok and type(first) == "number" or first == nil then
    local list = {first or 0 / 0}
    for i = 2, #xs do list[i] = tonumber((f(xs[i]))) or 0 / 0 end
    return nacre.tensor(list, {dtype = "float64", device = "cpu"})
  end
  local x = nacre.tensor(xs, {device = "cpu"})
  local well, t = pcall(f, x)
  if well and facts.istensor(t) and t:numel() == #xs then return t end
  return nil, ok and ("%s gives a %s, not a number"):format(name,
                                                           type(first)) or
              ("%s of %g: %s"):format(name, xs[1], tostring(first))
end

-- Functions and the two ends of a range, as x and the values: n of each. Other
-- arguments as they are; nil and why that cannot be.
function data.with_functions(args, names, n, log)
  if not is_function(args[1]) then return args, names end
  local low, high = tonumber(args[args.n - 1]), tonumber(args[args.n])
  if not low or not high or args.n < 3 then
    return nil, ("a function is drawn over a range: %s 0 1"):format(
      names[1] or "f")
  elseif not (low < high) or high - low == math.huge or log and low <= 0 then
    return nil, ("%s to %s is not a range%s"):format(low, high,
      log and " of a logarithmic axis" or "")
  end
  local xs = spaced(low, high, n, log)
  local list = {n = args.n - 1, nacre.tensor(xs, {dtype = "float64",
                                                  device = "cpu"})}
  local called = {""}         -- x has no name
  for i = 1, args.n - 2 do
    local name, why = names[i] or "f" .. i, nil
    if not is_function(args[i]) then
      return nil, name .. " is not a function"
    end
    list[i + 1], why = values_of(args[i], xs, name)
    if why then return nil, why end
    called[i + 1] = name
  end
  return list, called
end

-- Adds a vector, or the columns of a matrix.
local function addseries(list, v, name, o)
  if v:dim() == 0 then v = v:reshape(1) end
  if v:dim() == 2 and v:size(2) <= 6 then
    for i = 1, v:size(2) do
      list[#list + 1] = {t = v[{{}, i}], name = ("%s[:,%d]"):format(name, i)}
    end
  elseif v:dim() == 1 or v:numel() == v:size(1) then
    list[#list + 1] = {t = v:reshape(-1), name = name}
  else
    local lies = v:dim() == 2 and v:size(1) <= 6
    return nil, ("a curve is a vector, or a matrix with up to 6 columns; " ..
                 "%s is %s%s"):format(name, facts.kind_and_device(v),
                 lies and ": try its :t()" or "")
  end
  return #list <= 6 or nil, "6 curves at most"
end

-- The points of t against x, or a part of them at even distances.
local function points(t, x)
  local s, step = {points = true}, math.ceil(t:size(1) / POINTS)
  local function part(v)
    return v[{{1, v:size(1), step}}]:to "float64":totable()
  end
  s.y, s.x = part(t), x and part(x) or nil
  return s
end

-- The series of t against x: positions, or the values of a tensor.
function data.against(t, x, columns, o)
  if o.points then return points(t, x) end
  local s = downsample.series(t, columns, o.ylog)
  if not x then return s end
  if s.y then
    s.x = x:to "float64":totable()
  else
    for i, at in ipairs(s.x) do s.x[i] = x[math.floor(at + 0.5)] end
  end
  return s
end

-- The first of the arguments, if it is what the others are plotted against; or
-- nil and why it cannot be.
local function abscissa(args, o, names)
  local x = args[1]
  if args.n == 1 or args.columns then return nil end
  if o.points and x:dim() ~= 1 then
    return nil, ("x is a vector; %s is %s"):format(names[1] or "argument 1",
                                                  facts.kind_and_device(x))
  end
  return (o.points or rises(x)) and x or nil
end

-- A matrix of points as its columns.
local function matrix_columns(args, names)
  local m = args[1]
  if args.n ~= 1 or m:dim() ~= 2 or m:size(2) < 2 then return args, names end
  local list, called = {n = m:size(2)}, {}
  for i = 1, list.n do
    list[i] = m[{{}, i}]
    called[i] = ("%s[:,%d]"):format(names[1] or "m", i)
  end
  return list, called
end

-- The series {t =, name =} of tensors, and what they are plotted against, if
-- there is such a tensor, with its name.
function data.collect(args, o, names)
  local list, first = {}, 1
  for i = 1, args.n do
    local what = names[i] or "argument " .. i
    local v, why = data.tensor(args[i], what)
    if not v then return nil, why end
    args[i] = v
  end
  if o.points then args, names = matrix_columns(args, names) end
  local x, why = abscissa(args, o, names)
  if why then return nil, why end
  first = x and 2 or 1
  for i = first, args.n do
    local name = names[i] or ("y%d"):format(i - first + 1)
    local ok, wrong = addseries(list, args[i], name, o)
    if not ok then return nil, wrong end
  end
  for _, s in ipairs(list) do
    if x and s.t:size(1) ~= x:size(1) then
      return nil, ("%s has %d elements, x has %d"):format(s.name, s.t:size(1),
                                                          x:size(1))
    end
  end
  return list, x, x and names[1] ~= "" and names[1] or nil
end

-- A note on the elements that the curves cannot show.
function data.gaps(list, o)
  local infinite, below, lines, n = 0, 0, {}, list[1].t:size(1)
  if o.points and n > POINTS then
    lines[1] = ("  ~ a sample of %d of %d"):format(
      math.ceil(n / math.ceil(n / POINTS)), n)
  end
  for _, s in ipairs(list) do
    local a, b = downsample.unseen(s.t, o.ylog)
    infinite, below = infinite + a, below + b
  end
  if infinite > 0 then
    lines[#lines + 1] = ("  ! %d not finite, left out"):format(infinite)
  end
  if below > 0 then
    lines[#lines + 1] = ("  ! %d not above 0, left out"):format(below)
  end
  return lines
end

return data
