-- SPDX-License-Identifier: MIT
--
-- errors.lua - errors as the shell shows them: what, where, the operands with
-- their names, a rule, a hint, the way there.
--
-- capture(err, level) runs in a message handler, while the stack still
-- stands, and gives an object; render(object, options) gives its text.

local display = require "nacre.display"
local habits = require "nacre.habits"

local nacre = package.loaded.nacre or _G.nacre

-- sources[chunkname]: the text of a chunk that is no file.
local errors = {sources = {}}

--
-- The text of chunks.  All blocks of a session are called "=stdin"; what
-- tells them apart is their _ENV, which their functions share.
--
local KEPT = 1000

local blocks = {first = 1, last = 0}    -- {id, text}, oldest first
local texts = {}                        -- by the identity of _ENV

-- To be called with each block of the session before it runs.
function errors.remember(f, text)
  local id = debug.upvalueid(f, 1)
  blocks.last = blocks.last + 1
  blocks[blocks.last] = {id = id, text = text}
  texts[id] = text
  if blocks.last - blocks.first < KEPT then return end
  local old = blocks[blocks.first]
  if texts[old.id] == old.text then texts[old.id] = nil end
  blocks[blocks.first] = nil
  blocks.first = blocks.first + 1
end

-- A function without globals has no _ENV: the last block that has a
-- function on its lines.
local function blockof(info)
  local i = 1
  while true do
    local name = debug.getupvalue(info.func, i)
    if name == "_ENV" then return texts[debug.upvalueid(info.func, i)] end
    if not name then break end
    i = i + 1
  end
  for k = blocks.last, blocks.first, -1 do
    local text = blocks[k].text
    local line = habits.line(text, info.linedefined)
    if line and line:find "%f[%w_]function%f[^%w_]" and
       habits.line(text, info.lastlinedefined) then
      return text
    end
  end
end

local function file(path)
  local f = io.open(path, "rb")
  local text = f and f:read(1 << 22)
  if f then f:close() end
  return text
end

local function sourceof(info)
  local source = info.source
  if errors.sources[source] then return errors.sources[source] end
  if source:sub(1, 1) == "@" then return file(source:sub(2)) end
  if source == "=stdin" then return blockof(info) end
  return source:sub(1, 1) ~= "=" and source or nil
end

--
-- The stack
--
local EACH = 20         -- frames looked at on either end of a deep stack

local function depth(thread, level)
  local low, step = level - 1, 1
  while debug.getinfo(thread, low + step, "l") do
    low, step = low + step, 2 * step
  end
  while step > 1 do
    step = step // 2
    if debug.getinfo(thread, low + step, "l") then low = low + step end
  end
  return low
end

-- The least name of f among the globals and in their tables.
local function globalname(f)
  local best
  local function look(t, prefix)
    for name, v in next, t do
      local full = rawequal(v, f) and type(name) == "string" and prefix .. name
      if full and (not best or full < best) then best = full end
    end
  end
  look(_G, "")
  for name, t in next, _G do
    if type(name) == "string" and type(t) == "table" and not best and
       t ~= _G then
      look(t, name .. ".")
    end
  end
  return best
end

local function nameof(info)
  if info.namewhat == "metamethod" then return "metamethod " .. info.name end
  return info.name or globalname(info.func) or
         ("function <%s:%d>"):format(info.short_src, info.linedefined)
end

-- The user's frame at a level: Lua, and not of our own modules.
local function frame(thread, level)
  local info = debug.getinfo(thread, level, "nSltf")
  if info.what == "C" or info.source:find "^=nacre%." then return nil end
  local text = sourceof(info)
  return {level = level, file = info.short_src, line = info.currentline,
          main = info.what == "main", tail = info.istailcall,
          func = info.func, text = text, source = info.source,
          name = info.what == "main" and "main chunk" or nameof(info)}
end

-- The user's frames, innermost first; `skipped' levels follow frame `gap'.
local function frames(thread, level)
  local list, last = {}, depth(thread, level)
  local gap = last - level > 2 * EACH and level + EACH or nil
  while level <= last do
    if level == gap then
      list.gap, list.skipped = #list, last - EACH - level
      level = last - EACH
    end
    list[#list + 1] = frame(thread, level)
    level = level + 1
  end
  return list
end

--
-- Names
--

-- The variables in sight of a frame by name: locals over upvalues.
local function variables(thread, at)
  local names = {}
  if not at then return names end
  local i = 1
  while true do
    local name, value = debug.getupvalue(at.func, i)
    if not name then break end
    if name ~= "_ENV" and name ~= "" then names[name] = value end
    i = i + 1
  end
  i = 1
  while thread do
    local name, value = debug.getlocal(thread, at.level, i)
    if not name then break end
    if name:find "^[%a_]" then names[name] = value end
    i = i + 1
  end
  return names
end

-- What "x.y[1]" stands for, found without calling anything.
local function valueof(path, names)
  local first, at = path:match "^([%a_][%w_]*)()"
  local v = names[first]
  if v == nil then v = rawget(_G, first) end
  while at <= #path do
    if type(v) ~= "table" then return nil end
    local key, stop = path:match("^%.([%a_][%w_]*)()", at)
    if not key then
      key, stop = path:match("^%[(%d+)%]()", at)
      key = math.tointeger(key)
    end
    v, at = rawget(v, key), stop
  end
  return v
end

-- Calls each(path) for what may be a variable on a line, longest first.
local function paths(line, each)
  for at, rest in line:gmatch "%f[%w_]()([%a_][%w_%.%[%]]*)" do
    local path = rest:match "^[%a_][%w_]*"
    local list = {path}
    while true do
      local more = rest:match("^%.[%a_][%w_]*", #path + 1) or
                   rest:match("^%[%d+%]", #path + 1)
      if not more then break end
      path = path .. more
      table.insert(list, 1, path)
    end
    if not line:sub(1, at - 1):find "[%.:]%s*$" then
      for _, p in ipairs(list) do
        if each(p) then return p end
      end
    end
  end
end

-- The name of a tensor: on the line, in sight, of the session.
local function named(t, line, names)
  if t == nil then return nil end
  local found = paths(line, function(p)
    return rawequal(valueof(p, names), t)
  end)
  local function least(list)
    local best
    for name, v in next, list do
      if rawequal(v, t) and type(name) == "string" and
         name:find "^%a[%w_]*$" and name ~= "ans" and
         (not best or name < best) then
        best = name
      end
    end
    return best
  end
  return found or least(names) or least(_G)
end

local function istensor(v)
  return type(v) == "userdata" and nacre.is_tensor(v)
end

-- The operands of an error object: role, name, what, note.
local function operands(err, line, names)
  local list = {}
  for i, a in ipairs(err.args or {}) do
    local note = a.note
    if istensor(a.tensor) then
      local ok, base = pcall(display.baseof, a.tensor, names)
      base = ok and base or nil
      if not base then
        ok, base = pcall(display.baseof, a.tensor)
        base = ok and base or nil
      end
      note = base and "view of " .. base or note
    end
    list[i] = {role = a.role or "", name = named(a.tensor, line, names),
               note = note,
               what = ("%s[%s] %s"):format(a.dtype,
                 table.concat(a.shape or {}, "x"), a.device)}
  end
  return list
end

-- Text with the roles in it replaced by the operands' names.
local function withnames(text, args)
  local same = {left = "self", right = "arg 1"}
  local function replace(role, name)
    text = text:gsub("%f[%w_]" .. role .. "%f[^%w_]",
                     (name:gsub("%%", "%%%%")))
  end
  for _, a in ipairs(args) do
    if a.name and a.role:find "^[%a][%w ]*$" then
      if a.name ~= a.role then replace(a.role, a.name) end
      if same[a.role] then replace(same[a.role], a.name) end
    end
  end
  return text
end

--
-- Capturing
--
local Captured = {}
Captured.__index = Captured

-- What stands alone: "file:line: op: what is wrong".
function Captured:__tostring()
  local place = self.file and ("%s:%d: "):format(self.file, self.line) or ""
  local op = self.op and self.op .. ": " or ""
  return place .. op .. self.message
end

local function iscaptured(v)
  return type(v) == "table" and debug.getmetatable(v) == Captured
end

local function isours(err)
  local meta = type(err) == "table" and debug.getmetatable(err)
  return meta and rawget(meta, "__name") == "nacre.error"
end

-- An error value of any type as text.
local function textof(err)
  if type(err) == "string" then return err end
  if err == nil then return "nil (error was called without a message)" end
  local ok, text = pcall(display.show, err, {width = 80})
  text = ok and text or type(err)
  local meta = debug.getmetatable(err)
  if type(err) == "table" and not (meta and rawget(meta, "__tostring")) then
    return "the error is a table: " .. text
  end
  return text
end

-- Splits "chunk:line: text" if the chunk is one that can be.
local function position(text, list)
  for _, f in ipairs(list) do
    if text:sub(1, #f.file + 1) == f.file .. ":" then
      local line, rest = text:match("^(%d+): (.*)$", #f.file + 2)
      if line then return f.file, math.tointeger(line), rest end
    end
  end
  local chunk, line, rest = text:match "^([^\n:]+):(%d+): (.*)$"
  if chunk and (chunk:find "%.lua$" or chunk == "stdin" or
                chunk == "(command line)") then
    return chunk, math.tointeger(line), rest
  end
  chunk, line, rest = text:match '^(%[string "[^\n]*"%]):(%d+): (.*)$'
  return chunk, math.tointeger(line), rest or text
end

-- The innermost frame at a position; any, if that is in a module of ours.
local function place(list, at, line)
  if not at or at:find "^nacre%." then return list[1] end
  for _, f in ipairs(list) do
    if f.file == at and f.line == line then return f end
  end
end

-- What an error object says, or a text; the frames give the place.
local function describe(err, list)
  local o = {args = {}, frames = list}
  if isours(err) then
    o.op, o.message, o.code = err.op, err.message or "?", err.code
    o.rule, o.hint, o.file, o.line = err.rule, err.hint, err.file, err.line
    o.at = place(list, o.file, o.line)
    o.object = true
  else
    local text = textof(err)
    o.file, o.line, o.message = position(text, list)
    if o.file then o.at = place(list, o.file, o.line) end
    if type(err) ~= "string" and not o.file then o.at = list[1] end
  end
  if o.at then o.file, o.line = o.at.file, o.at.line end
  if o.op == "" then o.op = nil end
  return setmetatable(o, Captured)
end

local function observe(thread, err, level)
  local list = thread and frames(thread, level) or {}
  local o = describe(err, list)
  local text = o.at and o.at.text
  o.source = text and habits.line(text, o.line) or
             o.file and habits.line(file(o.file) or "", o.line)
  if o.source and not o.source:find "%S" then o.source = nil end
  local names = variables(thread, o.at or list[1])
  if o.object then o.args = operands(err, o.source or "", names) end
  habits.running(o, o.source or "", function(path)
    return valueof(path, names)
  end)
  if o.hint then o.hint = withnames(o.hint, o.args) end
  if o.hint and o.hint:find "%f[%w]arg %d" then o.hint = nil end
  for _, f in ipairs(list) do      -- what is kept must not keep tensors
    f.shown = f.text and habits.line(f.text, f.line)
    f.block = f.text and f.text:find "\n%s*%S" ~= nil
    f.func, f.text = nil, nil
  end
  return o
end

-- The error with what the stack knows of it.  `level' is where it was
-- raised, counted as in debug.getinfo by the caller, who may call in tail
-- position.  Works on a stack of its own: the one looked at may be full.
function errors.capture(err, level)
  if iscaptured(err) then return err end
  local co = coroutine.create(observe)
  local tail = debug.getinfo(1, "t").istailcall
  local ok, o = coroutine.resume(co, coroutine.running(), err,
                                 (level or 1) + (tail and 0 or 1))
  return ok and o or describe(err, {})
end

--
-- Rendering
--
local codes = {red = "1;31", dim = "2", cyan = "36"}

local function painter(color)
  return function(text, kind)
    if not color then return text end
    return "\27[" .. codes[kind] .. "m" .. text .. "\27[0m"
  end
end

local function trimmed(line, width)
  line = line:gsub("^%s+", ""):gsub("%s+$", ""):gsub("[%c]", " ")
  if #line <= width then return line end
  return line:sub(1, utf8.offset(line, 0, width - 2) - 1) .. "..."
end

local function pad(s, width)
  return s .. (" "):rep(width - (utf8.len(s) or #s))
end

local function operandlines(lines, args, paint)
  local role, name = 5, 0
  for _, a in ipairs(args) do
    role = math.max(role, #a.role)
    name = math.max(name, a.name and #a.name or 0)
  end
  for _, a in ipairs(args) do
    local text = "  " .. pad(a.role, role) .. "  "
    if name > 0 then text = text .. pad(a.name or "", name) .. "  " end
    text = text .. a.what .. (a.note and "  " .. a.note or "")
    lines[#lines + 1] = paint(text, "dim")
  end
end

local function location(f, width)
  local text = ("%s:%d"):format(f.file, f.line)
  if not f.shown then return text end
  return text .. "   " .. trimmed(f.shown, width)
end

-- "in g, called from ..." for each frame, and "in main chunk" of a script.
local function way(list, script, width)
  local out = {}
  for k, f in ipairs(list) do
    local from = list[k + 1]
    local text = "in " .. f.name
    if f.main and not script then break end
    if from and from.main and not script then
      text = text .. ", called from the prompt"
    elseif from then
      text = text .. ", called from " .. location(from, width)
    elseif f.tail and not script then
      text = text .. ", called from the prompt"
    end
    if from and f.tail then text = text .. "  (by a tail call)" end
    out[#out + 1] = {text = text, gap = k == list.gap and list.skipped}
  end
  return out
end

local MOST = 10

-- Repeated frames are folded, and no more than MOST lines shown.
local function traceback(lines, list, script, width)
  if #list == 0 or list[1].main then return end
  local rows, out = way(list, script, width), {}
  for i, row in ipairs(rows) do
    local last = out[#out]
    if last and last.text == row.text then
      last.times = last.times + 1 + (rows[i - 1].gap or 0)
    else
      if i > 1 and rows[i - 1].gap then
        out[#out + 1] = {text = ("... %d more"):format(rows[i - 1].gap),
                         times = 1}
      end
      out[#out + 1] = {text = row.text, times = 1}
    end
  end
  for i, row in ipairs(out) do
    local left = #out - i
    if i < MOST or left == 0 then
      lines[#lines + 1] = "  " .. row.text
      if row.times > 1 then
        lines[#lines + 1] = ("  ... %d x same frame"):format(row.times - 1)
      end
    elseif i == MOST then
      lines[#lines + 1] = ("  ... %d more"):format(left)
    end
  end
end

-- Is the line where it failed in front of the user's eyes?
local function plain(o, script)
  if o.object and (o.op or o.args[1]) then return false end
  return not script and o.at and o.at.main and not o.at.block
end

local function headline(o, script, paint)
  local text = (o.op and o.op .. ": " or "") .. o.message
  if script and o.file then
    return ("%s:%d: %s"):format(o.file, o.line, text)
  end
  return paint("error:", "red") .. " " .. text
end

-- The whole block.  opts: color, width, script (not at the prompt).
function errors.render(err, opts)
  opts = opts or {}
  local script = opts.script or opts.prompt == false
  local paint, width = painter(opts.color), (opts.width or 120) - 20
  local o = iscaptured(err) and err or observe(nil, err)
  if not iscaptured(err) and type(err) == "string" then
    local text = habits.script(err, file, opts, paint)
    if text then return text end
  end
  local lines = {headline(o, script, paint)}
  if o.source and not plain(o, script) then
    lines[2] = ("  at %s:%d   %s"):format(o.file, o.line,
                                          trimmed(o.source, width))
  end
  operandlines(lines, o.args, paint)
  if o.rule then lines[#lines + 1] = "  rule: " .. o.rule end
  if o.hint then
    lines[#lines + 1] = "  " .. paint("hint:", "cyan") .. " " .. o.hint
  end
  traceback(lines, o.frames, script, width)
  return table.concat(lines, "\n")
end

-- A block that does not compile.
function errors.syntax(message, text, opts)
  opts = opts or {}
  return habits.syntax(message, text, opts, painter(opts.color))
end

return errors
