-- SPDX-License-Identifier: MIT
--
-- picture_commands.lua - :plot :scatter :hist :heat :show :png, and the same
-- functions in `shell`.
--
-- A command takes one or more Lua expressions separated by blanks, then
-- options: "a:sum(1) b -y log". The options of the functions are title, width,
-- height, utf8, color, xlog, ylog, bins, center, graphics, file.

local host = require "nacre.host"
local state = require "nacre.state"
local plot = require "nacre.plot"
local data = require "nacre.picture_data"
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
  local o = {xlog = given.x and true, ylog = given.y and true, center = given.z,
             file = given.o}
  local results, names = values(shell, rest)
  if results then guarded(shell, f, results, o, names) end
end

local KINDS = {title = "string", width = "number", height = "number",
               utf8 = "boolean", color = "boolean", xlog = "boolean",
               ylog = "boolean", bins = "number", center = "number",
               graphics = "string", file = "string"}

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

local function say_note(text) require "nacre.wrap_lines".say(text) end

--
-- Curves
--
-- Why values can never be plotted; nil if they can, or may be later, as one
-- that is nil or empty.
function pictures.refused(args, names)
  for i = 1, args.n do
    local v, why = data.tensor(args[i], names[i])
    if not v and args[i] ~= nil and not facts.istensor(args[i]) and
       not training_log.is(args[i]) then
      return why
    end
  end
end

-- The series of a plot of tensors or functions, in at most `columns' columns,
-- as {series =, title =, xlog =, ylog =, notes = lines}; nil and why there is
-- none.
local function scene(args, o, names, columns)
  if args.n == 0 then return nil, "nothing to plot" end
  args, names = data.with_columns(args, names)
  args, names = data.with_functions(args, names, (columns - 1) | 1, o.xlog)
  if not args then return nil, names end
  local list, x, xname = data.collect(args, o, names)
  if not list then return nil, x end
  local s = {series = {}, title = o.title, xlog = o.xlog, ylog = o.ylog,
             notes = data.gaps(list, o)}
  for i, one in ipairs(list) do
    s.series[i] = data.against(one.t, x, columns, o)
    s.series[i].name = one.name
  end
  if #list == 1 and not s.title then
    s.title = xname and ("%s against %s"):format(list[1].name, xname) or
              names[#names]
  end
  return s
end

local function nothing(o)
  return nil, o.xlog and "no finite value above 0 along a logarithmic axis" or
              o.ylog and "no finite value above 0" or "no finite value"
end

-- The lines of a plot of tensors; nil and why if there is none.
function pictures.chart(args, o, names)
  local look = appearance(o)
  local s, why = scene(args, o, names, 2 * look.width - 16)
  if not s then return nil, why end
  s.width, s.height = look.width, o.height or 10
  s.utf8, s.color = look.utf8, look.color
  local lines = plot.chart(s)
  if not lines then return nothing(o) end
  return table.move(s.notes, 1, #s.notes, #lines + 1, lines)
end

-- The output of a notebook's cell; nil in other sessions, and if the output is
-- a text, as in ":plot x > FILE".
local function notebook()
  return not state.held and state.notebook or nil
end

-- Is a picture of pixels wanted, not one of characters?
local function is_drawn(o) return o.file or notebook() end

-- Writes what `draw` makes of a picture's size to the file o.file, or shows it
-- in a notebook, whose front end may show the characters of lines() instead.
-- Then the notes; nil and why it could not be.
local function present(o, notes, draw, lines)
  local picture_file = require "nacre.picture_file"
  local width, height = picture_file.size(o)
  local refused = o.file and picture_file.refused(o.file)
  if refused then return nil, refused end
  local text, why = draw(width, height)
  if not text then return nil, why end
  if not o.file then
    notebook().display {["image/svg+xml"] = text,
                        ["text/plain"] = table.concat(lines() or {}, "\n")}
    return not notes[1] or say(notes)
  end
  local ok, wrong = picture_file.write(o.file, text, width, height)
  if ok and notes[1] then say(notes) end
  return ok, wrong
end

local function drawn_chart(args, o, names)
  local s, why = scene(args, o, names, (require "nacre.picture_file".size(o)))
  if not s then return nil, why end
  return present(o, s.notes, function(width, height)
    s.width, s.height = width, height
    local text = require "nacre.svg_picture".chart(s)
    if not text then return nothing(o) end
    return text
  end, function() return pictures.chart(args, o, names) end)
end

local function curves(args, o, names)
  if is_drawn(o) then return drawn_chart(args, o, names) end
  local lines, why = pictures.chart(args, o, names)
  if not lines then return nil, why end
  return say(lines)
end

-- A function and its range with commas between them: "f -1 1" would be f - 1
-- for Lua.
local function separated(text)
  local first = text:match "^%s*([%a_][%w_.]*)"
  if not first or first ~= "function" and
     type(require "nacre.lookup".value(first)) ~= "function" then
    return text
  end
  local params = require "nacre.commands".params_of "plot"
  local rest = require "nacre.command_options".trailing(params, text)
  local f, low, high = rest:match "^(.-)%s+(%-?[%w_.]+)%s+(%-?[%w_.]+)%s*$"
  if not f then return text end
  return f .. ", " .. low .. ", " .. high .. text:sub(#rest + 1)
end

function pictures.plot(shell, text)
  command(shell, separated(text), "plot", curves)
end

local function dots(args, o, names)
  o.points = true
  return curves(args, o, names)
end

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
               from = low * (1 - (i - 1) / bins) + high * ((i - 1) / bins),
               to = low * (1 - i / bins) + high * (i / bins),
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
  local t, why = data.tensor(args[1], names[1] or "argument 1")
  if not t then return nil, why end
  local bins = args[2] or o.bins
  if bins and not (math.type(bins) == "integer" and bins > 0 and bins <= 100)
  then
    return nil, "the number of bins is 1 to 100"
  end
  local x, bad, thinned = downsample.values(t)
  if x:numel() == 0 then return nil, "no finite value" end
  local rows, notes = bars(t, x, bins), {}
  if thinned then
    notes[1] = ("  ~ a sample of %d of %d"):format(x:numel() + bad, t:numel())
  end
  if bad > 0 then notes[#notes + 1] = ("  ! %d not finite"):format(bad) end
  local function lines()
    local look = appearance(o)
    return plot.bars(rows, {width = look.width, utf8 = look.utf8,
                            log = o.ylog})
  end
  if is_drawn(o) then
    return present(o, notes, function(width, height)
      return require "nacre.svg_picture".bars(rows, {
        title = o.title or names[1], width = width, height = height,
        log = o.ylog})
    end, lines)
  end
  local list = lines()
  return say(table.move(notes, 1, #notes, #list + 1, list))
end

function pictures.hist(shell, text)
  if text:find "[%w_%])]%s+%-%d+%s*$" then -- "x -1" is x - 1 for Lua
    return shell.fail "the number of bins is 1 to 100; a difference is x - 1"
  end
  command(shell, text, "hist", histogram)
end

--
-- Matrices
--
local CELLS <const> = 200     -- along a side of a matrix in a file

local function field(args, o, names)
  local m, why = data.tensor(args[1], names[1] or "argument 1")
  if not m then return nil, why end
  if m:dim() > 2 then m = m:squeeze() end
  while m:dim() < 2 do m = m:unsqueeze(1) end
  if m:dim() ~= 2 then
    return nil, ("a matrix is needed; %s is %s"):format(names[1] or "this",
      facts.kind_and_device(m))
  end
  local function lines()
    local look = appearance(o)
    return require "nacre.heatmap".lines(m, {width = look.width,
      height = o.height, center = o.center, color = look.color and look.utf8,
      exact = require "nacre.character_image".exact()})
  end
  if not is_drawn(o) then return say(lines()) end
  local rows, cells, note = require "nacre.heatmap".cells(m, CELLS, o.center)
  if not rows then return nil, cells end
  return present(o, {note}, function(width, height)
    cells.title, cells.width, cells.height = o.title or names[1], width, height
    return require "nacre.svg_picture".cells(rows, cells)
  end, lines)
end

--
-- Images
--
local function picture(args, o, names)
  local given = args[1]
  if type(given) == "string" then
    given = nacre.load(require "nacre.file_commands".path(given))
  end
  local t, why = data.tensor(given, names[1] or "argument 1")
  if not t then return nil, why end
  local graphics = require "nacre.terminal_image"
  local wanted = o.graphics or require "nacre.settings".get "graphics"
  local way = graphics.way(wanted)
  local img, note = require "nacre.tensor_image".of(t)
  if not img then return nil, note end
  if wanted == "auto" and notebook() then
    notebook().image(img, note)
  elseif way ~= "off" then
    local width = appearance(o).width
    io.stdout:write(graphics.draw(img, way, {width = width}), "\n")
  end
  say_note(note)
  return true
end

-- Is a word the file name of an image? One that begins with a variable is Lua.
local function filename(text)
  local name = text:match "^%s*(%S+)%s*$"
  local format = name and require "nacre.file_formats".of(name)
  if not format or not format.image then return nil end
  local first = name and name:match "^[%a_][%w_]*"
  return (not first or rawget(_G, first) == nil) and name or nil
end

function pictures.show(shell, text)
  local name = filename(text)
  if name then return guarded(shell, picture, {name, n = 1}, {}, {name}) end
  command(shell, text, "show", picture)
end

-- The commands, and the functions, which take so many values.
for name, row in pairs {plot = {curves}, scatter = {dots}, heat = {field, 1},
                        hist = {histogram, 2}, show = {picture, 1}} do
  pictures[name] = pictures[name] or function(shell, text)
    command(shell, text, name, row[1])
  end
  pictures[name .. "call"] = function(...) call(row[1], row[2], ...) end
end

local show_picture = pictures.showcall

-- shell.show(T, f) says how values are shown; false takes that back.
function pictures.showcall(...)
  local of, f = ...
  if type(f) ~= "function" and f ~= false then return show_picture(...) end
  return require "nacre.extensions".show(of, f)
end

local function write(path, t)
  local img, note = require "nacre.tensor_image".of(t, true)
  if not img then return nil, note end
  path = require "nacre.file_commands".path(path)
  nacre.png(path, img)
  local file <close> = assert(io.open(path, "rb"))
  local size = require "nacre.units".bytes(file:seek "end")
  say_note(("%s %s, %s"):format(path, note, size))
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
    return shell.fail((":png writes PNG, but the name %s says %s"):format(
      path, kind))
  end
  local results, names = values(shell, rest)
  if not results then return end
  guarded(shell, function()
    local t, why = data.tensor(results[1], names[1])
    if not t then return nil, why end
    return write(path, t)
  end)
end

function pictures.pngcall(path, t)
  local v, why = data.tensor(t, "argument 2")
  local ok
  if v then ok, why = write(path, v) end
  if not ok then error(why, 2) end
end

return pictures
