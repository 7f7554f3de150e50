-- SPDX-License-Identifier: MIT
--
-- errors.lua - errors as the shell shows them: what failed, where, the
-- operands with their names, the rule that was broken, a hint, the call stack.
--
-- capture(err, level) runs in a message handler, while the stack of the error
-- still exists, and returns an object; render(object, options) returns its
-- text.

local display = require "nacre.display"
local frames = require "nacre.stack_frames"
local state = require "nacre.state"
local runtime_errors = require "nacre.runtime_errors"
local networks = require "nacre.network_misuse"
local operand_names = require "nacre.operand_names"
local escape_controls = require "nacre.lua_values".escape_controls
local wrap = require "nacre.wrap_lines"

local nacre = package.loaded.nacre or _G.nacre

-- sources[chunkname] is the text of a chunk that is not a file; remember(f,
-- text) must be called with each block of the session before it runs.
local errors = {sources = frames.sources, remember = frames.remember}

--
-- Capturing
--
local Captured = {}
Captured.__index = Captured

-- "file:line: op: what is wrong", for an error that is printed by itself.
function Captured:__tostring()
  local frame_at = self.file and ("%s:%d: "):format(self.file, self.line) or ""
  local op = self.op and self.op .. ": " or ""
  return frame_at .. op .. self.message
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

-- Where the operation ran whose backward failed, if that was noted and is not
-- the line of the error: {file=, line=, shown=}.
local function forward_place(err, at)
  local listeners = package.loaded["nacre.op_listeners"]
  local f, n = nil, nil
  if err.node and listeners then f, n = listeners.origin(err.node) end
  local place = f and frames.place(f, n)
  if not place or at and at.text == place.text and at.line == n then
    return nil
  end
  place.shown = place.text and runtime_errors.line(place.text, n)
  place.text = nil
  return place
end

-- Splits "chunk:line: text" if the list has a frame of that chunk. The text of
-- an error in a module of the program keeps its position, which is not shown
-- as that of the error.
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
  chunk, line = text:match "^(nacre%.[%w_]+):(%d+): "
  if chunk and list[1] then return chunk, math.tointeger(line), text end
  chunk, line, rest = text:match '^(%[string "[^\n]*"%]):(%d+): (.*)$'
  return chunk, math.tointeger(line), rest or text
end

-- The innermost frame at a position. If that is in a module of the program,
-- the innermost frame of all.
local function place(list, at, line)
  if not at or at:find "^nacre%." then return list[1] end
  for _, f in ipairs(list) do
    if f.file == at and f.line == line then return f end
  end
end

-- The parts of an error object or a text; the frames give the position.
local function describe(err, list)
  local o = {args = {}, frames = list}
  if isours(err) then
    o.op, o.message, o.code = err.op, err.message or "?", err.code
    o.rule, o.hint, o.file, o.line = err.rule, err.hint, err.file, err.line
    o.first, o.cause, o.name, o.got = err.first, err.cause, err.name, err.got
    o.module, o.traceback = err.module, err.traceback
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
  o.message = escape_controls(o.message)
  return setmetatable(o, Captured)
end

-- The stack of the last error with the values of its variables. The next line
-- drops it, so that it does not hold memory for long.
local last_stack

function errors.stack() return last_stack end

function errors.drop() last_stack = nil end

-- Keeps the stack, unless the error comes from the debugger itself.
local function keep_stack(thread, list)
  if state.reader then return end
  last_stack = {gap = list.gap, skipped = list.skipped}
  for i, f in ipairs(list) do
    local variables, globals = frames.variable_list(thread, f)
    last_stack[i] = {name = f.name, file = f.file, line = f.line, main = f.main,
               shown = f.text and runtime_errors.line(f.text, f.line),
               text = f.text, tail = f.tail,
               variables = variables, globals = globals}
  end
end

local function observe(thread, err, level)
  local list = thread and frames.collect(thread, level) or {}
  if thread then keep_stack(thread, list) end
  local o = describe(err, list)
  local text = o.at and o.at.text
  local at = o.at or list[1]
  o.typed = at and at.main and at.file == "stdin" and at.text or nil
  o.source = text and runtime_errors.line(text, o.line) or
             o.file and runtime_errors.line(frames.file(o.file) or "", o.line)
  if o.source and not o.source:find "%S" then o.source = nil end
  local names, there = frames.variables(thread, o.at or list[1])
  if o.object then
    o.args = operand_names.operands(err, o.source or "", names)
    o.hint = operand_names.hint_template(err)
    o.forward = forward_place(err, o.at)
    if err.network then
      local name = operand_names.module(err.network, thread, list)
      o.net = networks.facts(err, o.args, name)
    end
  end
  if o.first then o.hint = require "nacre.nonfinite_hints".hint(err) end
  o.tail_of = thread and frames.lost_forward(thread, level)
  local function value(path) return frames.value_of(path, names) end
  local readable = text and runtime_errors.line(text, o.line) and text
  runtime_errors.explain(o, o.source or "", value,
                 {there = there, text = readable, line = o.line})
  if o.hint then o.hint = operand_names.hint(o, o.source or "") end
  for _, f in ipairs(list) do      -- what is kept must not keep tensors
    f.shown = f.text and runtime_errors.line(f.text, f.line)
    f.block = f.text and f.text:find "\n%s*%S" ~= nil
    f.func, f.text = nil, nil
  end
  if o.typed and o.source ~= runtime_errors.line(o.typed, 1) then
    o.typed = nil                  -- the hint is that of another line
  end
  o.tail_of = nil
  o.hint = o.hint and escape_controls(o.hint)
  return o
end

-- Returns the error with what the stack tells about it. `level' is the stack
-- level of the error, counted from the caller as in debug.getinfo; the caller
-- may use a tail call. Runs on a stack of its own, because the stack examined
-- may be full.
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
  return wrap.cut(line:match "^%s*(.-)%s*$":gsub("%c", " "), width)
end

local function operandlines(lines, args, paint)
  local role, name = 5, 0
  for _, a in ipairs(args) do
    role = math.max(role, #a.role)
    name = math.max(name, a.name and #a.name or 0)
  end
  for _, a in ipairs(args) do
    local text = "  " .. wrap.pad(a.role, role) .. "  "
    if name > 0 then text = text .. wrap.pad(a.name or "", name) .. "  " end
    text = text .. a.what .. (a.note and "  " .. a.note or "") ..
           (a.values and "  " .. a.values or "")
    lines[#lines + 1] = paint(text, "dim")
  end
end

local function location(f, width)
  local text = ("%s:%d"):format(escape_controls(f.file), f.line)
  if not f.shown then return text end
  return text .. "   " .. trimmed(f.shown, width)
end

-- The call stack: "in g, called from ..." for each frame, and "in main chunk"
-- of a script.
local function call_stack(list, script, width)
  local out = {}
  for k, f in ipairs(list) do
    local from = list[k + 1]
    local text = "in " .. escape_controls(f.name)
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

-- Adds the traceback of an exception of Python, the innermost MOST lines.
local function python_lines(lines, text, width)
  local list = {}
  for line in (text or ""):gmatch "[^\n]+" do list[#list + 1] = line end
  if #list > MOST then
    lines[#lines + 1] = ("  ... %d more"):format(#list - MOST)
  end
  for i = math.max(1, #list - MOST + 1), #list do
    lines[#lines + 1] = "  Python at " ..
                        trimmed(escape_controls(list[i]), width + 20)
  end
end

-- Adds the call stack: repeated frames are folded, and at most MOST lines are
-- shown.
local function traceback(lines, list, script, width)
  if #list == 0 or list[1].main then return end
  local rows, out = call_stack(list, script, width), {}
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

-- Is the failing line the one that the user just typed?
local function is_typed_line(o, script)
  if o.object and (o.op or o.args[1]) then return false end
  return not script and o.at and o.at.main and not o.at.block and
         o.at.file == "stdin"
end

local function headline(o, script, paint)
  local text = (o.op and o.op .. ": " or "") .. o.message
  if script and o.file then
    return ("%s:%d: %s"):format(escape_controls(o.file), o.line, text)
  end
  return paint("error:", "red") .. " " .. text
end

-- The full text of an error. opts: color, width, script (not at the prompt).
function errors.render(err, opts)
  opts = opts or {}
  local script = opts.script or opts.prompt == false
  local paint, width = painter(opts.color), (opts.width or 120) - 20
  local o = iscaptured(err) and err or observe(nil, err)
  if not iscaptured(err) and type(err) == "string" then
    local text = require "nacre.syntax_errors".script(err, frames.file, opts,
                                               paint)
    if text then return text end
  end
  local lines = {headline(o, script, paint)}
  if o.file and not is_typed_line(o, script) and
     (o.source or not script and o.file:find "%.lua$") then
    lines[2] = ("  at %s:%d   %s"):format(escape_controls(o.file), o.line,
      trimmed(o.source or "", width)):match "^(.-)%s*$"
  end
  python_lines(lines, o.traceback, width)
  if o.forward then
    lines[#lines + 1] = "  forward at " .. location(o.forward, width)
  end
  if o.module then lines[#lines + 1] = "  in " .. o.module end
  operandlines(lines, o.args, paint)
  if o.first then lines[#lines + 1] = paint("  first  " .. o.first, "dim") end
  if o.rule then lines[#lines + 1] = "  rule: " .. o.rule end
  if o.hint then
    lines[#lines + 1] = "  " .. paint("hint:", "cyan") .. " " .. o.hint
  end
  traceback(lines, o.frames, script, width)
  return table.concat(lines, "\n")
end

-- A warning (an error object that is not raised) in one line, with its
-- position unless the user just typed it.
function errors.warning(err, head)
  local o = describe(err, frames.collect(coroutine.running(), 2))
  local text = ("%s %s: %s"):format(head, o.op, o.message)
  if o.first then
    local note = require "nacre.nonfinite_hints".limit(err)
    text = text .. ", first " .. o.first .. (note and " " .. note or "")
  end
  local at, forward = o.at, forward_place(err, o.at)
  if forward then
    text = ("%s\n  forward at %s"):format(text, location(forward, 100))
  end
  if not at or at.main and at.file == "stdin" then return text end
  local line = at.text and runtime_errors.line(at.text, at.line)
  return ("%s\n  at %s:%d%s"):format(text, at.file, at.line,
    line and "   " .. trimmed(line, 100) or "")
end

-- The text of a syntax error in a block, and the corrected line.
function errors.syntax(message, text, opts)
  opts = opts or {}
  opts.whole = text:find "\n%s*%S" and require "nacre.foreign_blocks".line(text)
  local shown, hint, what = require "nacre.syntax_errors".render(
    message, text, opts, painter(opts.color))
  return shown, what and require "nacre.corrected_line".of(
    {message = what, hint = hint, whole = true}, opts.whole and "" or text)
end

-- The corrected line of an error of a line of the prompt, or nil.
function errors.correction(o)
  return iscaptured(o) and o.typed and
         require "nacre.corrected_line".of(o, o.typed) or nil
end

return errors
