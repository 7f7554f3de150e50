-- SPDX-License-Identifier: MIT
--
-- picture_commands.lua - :plot :hist :heat :show :png, and the same functions
-- in `shell`.
--
-- A command takes one or more Lua expressions separated by blanks, then
-- options: "a:sum(1) b -y log". The options of the functions are title, width,
-- height, utf8, color, xlog, ylog, bins, center, graphics.

local host = require "nacre.host"
local styled = require "nacre.styled_output"
local plot = require "nacre.plot"
local downsample = require "nacre.downsample"
local facts = require "nacre.tensor_facts"
local training_log = require "nacre.training_log"

local nacre = package.loaded.nacre or _G.nacre

local pictures = {}

-- Adds the expressions of a comma-separated list; each one alone is valid in
-- parentheses.
local function single(list, text)
  for comma in text:gmatch "()," do
    local head = text:sub(1, comma - 1)
    if load("return (" .. head .. "\n)") then
      list[#list + 1] = head:match "^%s*(.-)%s*$"
      return single(list, text:sub(comma + 1))
    end
  end
  list[#list + 1] = text:match "^%s*(.-)%s*$"
end

-- Splits at blanks or commas into expressions, each as long as possible.
local function split(text)
  local list = {}
  while text:find "%S" do
    local taken
    local cut = #text
    while cut and cut > 0 do
      local part = text:sub(1, cut)
      if load("return " .. part) then
        taken = part
        break
      end
      cut = part:match "^.*()%s+%S" -- before the last word
      cut = cut and cut - 1
    end
    if not taken then return nil end
    single(list, taken)
    text = text:sub(#taken + 1)
  end
  return list
end

-- The values of expressions and their texts; nil after reporting an error. An
-- expression gives one value.
local function values(shell, text)
  local list = split(text)
  local unit = shell.compile(list and table.concat(list, ", ") or text)
  local results = unit and shell.run(unit)
  for i = list and #list + 1 or 1, results and list and results.n or 0 do
    results[i], results.n = nil, #list
  end
  return results, list
end

-- Calls f and reports its errors.
local function guarded(shell, f, ...)
  shell.protected(function(...)
    local ok, why = f(...)
    if ok == nil then shell.fail(why) end
  end, ...)
end

-- Runs a command: f(values, options, their texts).
local function command(shell, text, name, f)
  local params = require "nacre.commands".params_of(name)
  local rest, given = require "nacre.command_options".trailing(params, text)
  local o = {xlog = given.x and true, ylog = given.y and true, center = given.z}
  local results, names = values(shell, rest)
  if results then guarded(shell, f, results, o, names) end
end

local KINDS = {title = "string", width = "number", height = "number",
               utf8 = "boolean", color = "boolean", xlog = "boolean",
               ylog = "boolean", bins = "number", center = "number",
               graphics = "string"}

local function call(f, n, ...)
  local o = {}
  local args = table.pack(...)
  local last = args[args.n]
  if type(last) == "table" and not facts.istensor(last) and #last == 0 and
     next(last) ~= nil then
    args[args.n], args.n, o = nil, args.n - 1, last
  end
  require "nacre.suggestion".check(o, KINDS, "")
  if n and args.n > n then error(("%d values at most"):format(n), 3) end
  local ok, why = f(args, o, {})
  if ok == nil then error(why, 3) end
end

local function appearance(o)
  local color = host.has_color "stdout" and host.is_terminal "stdout"
  return setmetatable({}, {__index = function(_, k)
    if o[k] ~= nil then return o[k] end
    if k == "width" then return host.columns() end
    if k == "utf8" then return host.has_utf8() end
    if k == "color" then return color end
  end})
end

local function say(lines)
  io.stdout:write(table.concat(lines, "\n"), "\n")
  return true
end

-- Why a history is no tensor: what of it is one.
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
-- instance; nil if it is none.
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
local function tensor(v, what)
  if training_log.is(v) then return nil, of_history(v, what) end
  local list = not facts.istensor(v) and numbers(v)
  if list then v = nacre.tensor(list) end
  if not facts.istensor(v) then
    local kind = v == nil and "nil" or type(v) == "table" and
                 rawget(v, "_fields") and "a network" or "a " .. type(v)
    return nil, ("%s is %s, not a tensor"):format(what, kind)
  elseif v:numel() == 0 then
    return nil, what .. " is empty"
  end
  return v:detach()
end

--
-- Curves
--
local function increases(x)
  if x:dim() ~= 1 or x:size(1) < 2 then return false end
  local n = x:size(1)
  return (x:narrow(1, 2, n - 1):gt(x:narrow(1, 1, n - 1))):all():item()
end

-- The arguments with the columns of histories in their place, and their names.
-- Of columns the first is none that others are plotted against.
local function with_columns(args, names)
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

-- The series of t against x: positions, or the values of a tensor.
local function against(t, x, columns, o)
  local s = downsample.series(t, columns, o.ylog)
  if not x then return s end
  if s.y then
    s.x = x:to "float64":totable()
  else
    for i, at in ipairs(s.x) do s.x[i] = x[math.floor(at + 0.5)] end
  end
  return s
end

local function collect(args, o, names)
  local list, x, first = {}, nil, 1
  for i = 1, args.n do
    local what = names[i] or "argument " .. i
    local v, why = tensor(args[i], what)
    if not v then return nil, why end
    args[i] = v
  end
  if args.n > 1 and not args.columns and increases(args[1]) then
    x, first = args[1], 2
  end
  for i = first, args.n do
    local name = names[i] or ("y%d"):format(i - first + 1)
    local ok, why = addseries(list, args[i], name, o)
    if not ok then return nil, why end
  end
  for _, s in ipairs(list) do
    if x and s.t:size(1) ~= x:size(1) then
      return nil, ("%s has %d elements, x has %d"):format(s.name, s.t:size(1),
                                                          x:size(1))
    end
  end
  return list, x
end

-- A note on the elements that the curves cannot show.
local function gaps(list, o)
  local infinite, below, lines = 0, 0, {}
  for _, s in ipairs(list) do
    local a, b = downsample.unseen(s.t, o.ylog)
    infinite, below = infinite + a, below + b
  end
  if infinite > 0 then
    lines[1] = ("  ! %d not finite, left out"):format(infinite)
  end
  if below > 0 then
    lines[#lines + 1] = ("  ! %d not above 0, left out"):format(below)
  end
  return lines
end

-- Why values can never be plotted; nil if they can, or may be later, as one
-- that is nil or empty.
function pictures.refused(args, names)
  for i = 1, args.n do
    local v, why = tensor(args[i], names[i])
    if not v and args[i] ~= nil and not facts.istensor(args[i]) and
       not training_log.is(args[i]) then
      return why
    end
  end
end

-- The lines of a plot of tensors; nil and why if there is none.
function pictures.chart(args, o, names)
  if args.n == 0 then return nil, "nothing to plot" end
  args, names = with_columns(args, names)
  local list, x = collect(args, o, names)
  if not list then return nil, x end
  local look = appearance(o)
  local series = {}
  for i, s in ipairs(list) do
    series[i] = against(s.t, x, 2 * look.width - 16, o)
    series[i].name = s.name
  end
  local title = o.title or #series == 1 and names[#names]
  if x and names[1] and not o.title and #series == 1 then
    title = ("%s against %s"):format(names[2], names[1])
  end
  local lines = plot.chart {series = series, title = title or nil,
    width = look.width, height = o.height or 10, xlog = o.xlog, ylog = o.ylog,
    utf8 = look.utf8, color = look.color}
  if not lines then
    return nil, o.xlog and "no finite value above 0 along a logarithmic axis" or
                o.ylog and "no finite value above 0" or "no finite value"
  end
  local left = gaps(list, o)
  return table.move(left, 1, #left, #lines + 1, lines)
end

local function curves(args, o, names)
  local lines, why = pictures.chart(args, o, names)
  if not lines then return nil, why end
  return say(lines)
end

function pictures.plot(shell, text)
  command(shell, text, "plot", curves)
end

function pictures.plotcall(...) call(curves, nil, ...) end

-- How many digits distinguish the edges of bins.
local function edges(low, high, bins)
  local step = high / bins - low / bins
  local top = math.max(math.abs(low), math.abs(high))
  local digits = math.max(0, math.min(8, math.ceil(1.3 - math.log(step, 10))))
  local format = (top >= 1e6 or step < 1e-6) and "%.3e" or "%." .. digits .. "f"
  local list, width = {}, 0
  for i = 0, bins do
    local text = format:format(low * (1 - i / bins) + high * (i / bins))
    list[i] = text:gsub("^%-(0%.?0*)$", "%1")
    width = math.max(width, #list[i])
  end
  for i = 0, bins do list[i] = (" "):rep(width - #list[i]) .. list[i] end
  return list
end

local function equalbins(x, low, high, bins)
  local counts = nacre.histc(x, bins, low, high):to "float64":totable()
  local text, rows = edges(low, high, bins), {}
  for i, n in ipairs(counts) do
    local close = i < bins and ")" or "]"
    rows[i] = {label = ("[%s, %s%s"):format(text[i - 1], text[i], close),
               count = math.tointeger(n)}
  end
  return rows
end

-- One bar for each integer.
local function integers(x, low, high)
  local n = math.tointeger(high - low) + 1
  local counts = nacre.histc(x, n, low - 0.5, high + 0.5):to "float64":totable()
  local rows, width = {}, math.max(#("%d"):format(low), #("%d"):format(high))
  for i = 1, n do
    rows[i] = {label = ("%" .. width .. "d"):format(low + i - 1),
               count = math.tointeger(counts[i])}
  end
  return rows
end

local function bars(t, x, bins)
  local low, high = x:min():item(), x:max():item()
  if t.dtype == "bool" then
    local yes = math.tointeger(x:sum():item())
    return {{label = "false", count = x:numel() - yes},
            {label = "true ", count = yes}}
  elseif low == high then
    return {{label = ("%.6g"):format(low), count = x:numel()}}
  elseif not bins and not t.dtype:find "float" and high - low < 20 then
    return integers(x, low, high)
  end
  return equalbins(x, low, high, bins or 8)
end

local function histogram(args, o, names)
  local t, why = tensor(args[1], names[1] or "argument 1")
  if not t then return nil, why end
  local bins = args[2] or o.bins
  if bins and not (math.type(bins) == "integer" and bins > 0 and bins <= 100)
  then
    return nil, "the number of bins is 1 to 100"
  end
  local x, bad, thinned = downsample.values(t)
  if x:numel() == 0 then return nil, "no finite value" end
  local look = appearance(o)
  local lines = plot.bars(bars(t, x, bins), {width = look.width,
                                             utf8 = look.utf8, log = o.ylog})
  if thinned then
    lines[#lines + 1] = ("  ~ a sample of %d of %d"):format(x:numel() + bad,
                                                             t:numel())
  end
  if bad > 0 then lines[#lines + 1] = ("  ! %d not finite"):format(bad) end
  return say(lines)
end

function pictures.hist(shell, text)
  if text:find "[%w_%])]%s+%-%d+%s*$" then -- "x -1" is x - 1 for Lua
    return shell.fail "the number of bins is 1 to 100; a difference is x - 1"
  end
  command(shell, text, "hist", histogram)
end

function pictures.histcall(...) call(histogram, 2, ...) end

--
-- Matrices
--
local function field(args, o, names)
  local m, why = tensor(args[1], names[1] or "argument 1")
  if not m then return nil, why end
  if m:dim() > 2 then m = m:squeeze() end
  while m:dim() < 2 do m = m:unsqueeze(1) end
  if m:dim() ~= 2 then
    return nil, ("a matrix is needed; %s is %s"):format(names[1] or "this",
      facts.kind_and_device(m))
  end
  local look = appearance(o)
  return say(require "nacre.heatmap".lines(m, {width = look.width,
    height = o.height, center = o.center, color = look.color and look.utf8,
    exact = require "nacre.character_image".exact()}))
end

function pictures.heat(shell, text)
  command(shell, text, "heat", field)
end

function pictures.heatcall(...) call(field, 1, ...) end

--
-- Images
--
local function picture(args, o, names)
  local given = args[1]
  if type(given) == "string" then
    given = nacre.readpng(require "nacre.file_commands".path(given))
  end
  local t, why = tensor(given, names[1] or "argument 1")
  if not t then return nil, why end
  local graphics = require "nacre.terminal_image"
  local way = graphics.way(o.graphics or
                           require "nacre.settings".get "graphics")
  local img, note = require "nacre.tensor_image".of(t)
  if not img then return nil, note end
  if way ~= "off" then
    local width = appearance(o).width
    io.stdout:write(graphics.draw(img, way, {width = width}), "\n")
  end
  io.stdout:write(note, "\n")
  return true
end

-- Is a word a file name? One that begins with a variable is Lua.
local function filename(text)
  local name = text:match "^%s*(%S+%.[pP][nN][gG])%s*$"
  local first = name and name:match "^[%a_][%w_]*"
  return (not first or rawget(_G, first) == nil) and name or nil
end

function pictures.show(shell, text)
  local name = filename(text)
  if name then return guarded(shell, picture, {name, n = 1}, {}, {name}) end
  command(shell, text, "show", picture)
end

function pictures.showcall(...) call(picture, 1, ...) end

local function write(path, t)
  local img, note = require "nacre.tensor_image".of(t, true)
  if not img then return nil, note end
  path = require "nacre.file_commands".path(path)
  nacre.png(path, img)
  local file <close> = assert(io.open(path, "rb"))
  local size = require "nacre.units".bytes(file:seek "end")
  io.stdout:write(("%s %s, %s\n"):format(path, note, size))
  return true
end

-- Names that promise another format.
local OTHERS = {jpg = true, jpeg = true, gif = true, bmp = true, webp = true,
                tif = true, tiff = true, svg = true, pdf = true}

-- The file name is a word or a quoted string.
function pictures.png(shell, text)
  local path, rest = text:match "^([\"'])(.-)%1%s+(.+)$"
  if path then
    path, rest = text:match "^[\"'](.-)[\"']%s+(.+)$"
  else
    path, rest = text:match "^(%S+)%s+(.+)$"
  end
  if not path then return shell.fail ":png needs a file and an image" end
  local kind = (path:match "%.(%a+)$" or ""):lower()
  if OTHERS[kind] then
    return shell.fail((":png writes PNG, and %s says that it is %s"):format(
      path, kind))
  end
  local results, names = values(shell, rest)
  if not results then return end
  guarded(shell, function()
    local t, why = tensor(results[1], names[1])
    if not t then return nil, why end
    return write(path, t)
  end)
end

function pictures.pngcall(path, t)
  local v, why = tensor(t, "argument 2")
  local ok
  if v then ok, why = write(path, v) end
  if not ok then error(why, 2) end
end

return pictures
