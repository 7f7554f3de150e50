-- SPDX-License-Identifier: MIT
--
-- stack_frames.lua - the user's frames on the call stack: their source text,
-- their names, the variables visible in them.

local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local runtime_errors = require "nacre.runtime_errors"

-- sources[chunkname]: the text of a chunk that is not a file.
local frames = {sources = {}}

-- The text of chunks. All blocks of a session are named "=stdin"; they are
-- told apart by their _ENV, which all functions of a block share.
local KEPT = 1000

local blocks = {first = 1, last = 0}    -- {id, text, f}, oldest first
local texts = {}                        -- by the identity of _ENV

-- Must be called with each block of the session before it runs.
function frames.remember(f, text)
  local id = debug.upvalueid(f, 1)
  blocks.last = blocks.last + 1
  blocks[blocks.last] = {id = id, text = text, f = f}
  texts[id] = text
  if blocks.last - blocks.first < KEPT then return end
  local old = blocks[blocks.first]
  if texts[old.id] == old.text then texts[old.id] = nil end
  blocks[blocks.first] = nil
  blocks.first = blocks.first + 1
end

-- The code of a function without names and its position; that of a function
-- contains that of the functions in it. Before it stands Lua's header: marks of
-- 15 bytes, an integer, a number, and the number of upvalues.
local dump, HEADER = string.dump, 16 + string.packsize "jn"

local function code(f)
  local ok, text = pcall(dump, f, true)
  return ok and text:sub(HEADER + 1) or ""
end

-- The block of a function. One without globals has no _ENV: then the last
-- block that has the same code on the same lines.
local function blockof(info)
  local i = 1
  while true do
    local name = debug.getupvalue(info.func, i)
    if name == "_ENV" then return texts[debug.upvalueid(info.func, i)] end
    if not name then break end
    i = i + 1
  end
  local own = code(info.func)
  for k = blocks.last, blocks.first, -1 do
    local text = blocks[k].text
    local line = runtime_errors.line(text, info.linedefined)
    if line and line:find "%f[%w_]function%f[^%w_]" and
       runtime_errors.line(text, info.lastlinedefined) and
       dump(blocks[k].f, true):find(own, 1, true) then
      return text
    end
  end
end

function frames.file(path)
  if frames.sources["@" .. path] then return frames.sources["@" .. path] end
  local f = io.open(path, "rb")
  local text = f and f:read(1 << 22)
  if f then f:close() end
  return text
end

local function sourceof(info)
  local source = info.source
  if frames.sources[source] then return frames.sources[source] end
  if source:sub(1, 1) == "@" then return frames.file(source:sub(2)) end
  if source == "=stdin" then return blockof(info) end
  return source:sub(1, 1) ~= "=" and source or nil
end

-- The text of the chunk of a function; info is debug.getinfo(f, "Sf").
frames.textof = sourceof

-- Line n of a function as a place of the list of frames: {file=, line=, text=}.
function frames.place(f, n)
  local info = debug.getinfo(f, "Sf")
  return {file = info.short_src, line = n, text = sourceof(info)}
end

--
-- The stack
--
local EACH = 20         -- frames looked at on either end of a deep stack

-- The last level of a stack, seen from where this is called. Looking at a level
-- takes time in proportion to its depth, so levels are not counted one by one:
-- after a stack overflow there are 200000.
function frames.depth(thread, level)
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

-- The shortest name of f among the globals and the fields of global tables.
function frames.global_name(f)
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

local function function_name(info)
  if info.namewhat == "metamethod" then return "metamethod " .. info.name end
  return info.name or frames.global_name(info.func) or
         ("function <%s:%d>"):format(info.short_src, info.linedefined)
end

-- The user's frame at a level: a Lua function outside the program's own
-- modules, or nil.
local function user_frame(thread, level)
  local info = debug.getinfo(thread, level, "nSltf")
  if info.what == "C" or info.source:find "^=nacre%." then return nil end
  local text = sourceof(info)
  return {level = level, file = info.short_src, line = info.currentline,
          main = info.what == "main", tail = info.istailcall,
          func = info.func, text = text, source = info.source,
          name = info.what == "main" and "main chunk" or function_name(info)}
end

-- The user's frames, innermost first. If the stack is deep, `skipped' levels
-- are missing after frame `gap'.
function frames.collect(thread, level)
  local list, last = {}, frames.depth(thread, level)
  local gap = last - level > 2 * EACH and level + EACH or nil
  while level <= last do
    if level == gap then
      list.gap, list.skipped = #list, last - EACH - level
      level = last - EACH
    end
    list[#list + 1] = user_frame(thread, level)
    level = level + 1
  end
  return list
end

-- The user's forward of the innermost module whose call waits on the stack, if
-- its own frame is gone: it ended in a tail call.
function frames.lost_forward(thread, level)
  for at = level, level + EACH do
    local info = debug.getinfo(thread, at, "Sf")
    if not info or not info.source:find "^=nacre%." and info.what ~= "C" then
      return nil
    end
    for i = 1, 4 do
      local _, v = debug.getlocal(thread, at, i)
      local f = type(v) == "table" and rawget(v, "_fields") and
                lookup.field(v, "forward")
      if f and not rawequal(f, info.func) and
         not debug.getinfo(f, "S").source:find "^=nacre%." then
        return f
      end
    end
  end
end

--
-- Names
--

-- Calls each(name, value, outer) for the locals of a frame, then for the
-- upvalues of its function.
local function each_variable(thread, at, each)
  for i = 1, thread and 255 or 0 do
    local name, value = debug.getlocal(thread, at.level, i)
    if not name then break end
    if name:find "^[%a_]" then each(name, value, false) end
  end
  for name, value in lookup.upvalues(at.func) do
    if name ~= "" then each(name, value, true) end
  end
end

-- The visible variables of a frame by name, locals before upvalues; and the
-- set of their names, including those that are nil. A table of globals may
-- itself stand for the variables of another frame.
function frames.variables(thread, at)
  local names, there, meta = {}, {}, nil
  if not at then return names, there end
  each_variable(thread, at, function(name, value, outer)
    if outer and name == "_ENV" then
      meta = debug.getmetatable(value)
    elseif not (outer and there[name]) then
      names[name], there[name] = value, true
    end
  end)
  for _, var in ipairs(type(meta) == "table" and meta.variables or {}) do
    if not there[var.name] then names[var.name] = var.value end
  end
  return names, there
end

-- The same as a list of {name =, value =, outer =}, locals first; and the
-- globals of the frame.
function frames.variable_list(thread, at)
  local list, globals, known = {}, _G, {}
  each_variable(thread, at, function(name, value, outer)
    if outer and name == "_ENV" and type(value) == "table" then
      globals = value
    elseif name ~= "__keep" and not (outer and known[name]) then
      local var = known[name] or {name = name}
      if not known[name] then list[#list + 1] = var end
      known[name], var.value, var.outer = var, value, outer
    end
  end)
  return list, globals
end

-- The field of a tensor that is a tensor, too. Reading it runs no user code.
local views = lexer.set "grad data"

local function tensor_field(v, path, at)
  if type(v) ~= "userdata" then return nil end
  local name, stop = path:match("^%.([%a_][%w_]*)()", at)
  local ok, field = pcall(function() return views[name] and v[name] end)
  return ok and field or nil, stop
end

-- The value of a path such as "x.y[1]", found without calling anything, among
-- some names, if given, and the globals.
function frames.value_of(path, names)
  local first, at = path:match "^([%a_][%w_]*)()"
  if not first then return nil end
  local v = names and names[first]
  if v == nil then v = rawget(_G, first) end
  while at <= #path do
    local field, behind = tensor_field(v, path, at)
    if field then
      v, at = field, behind
      goto continue
    end
    if type(v) ~= "table" then return nil end
    local key, stop = path:match("^%.([%a_][%w_]*)()", at)
    if not key then
      key, stop = path:match("^%[(%d+)%]()", at)
      key = math.tointeger(key)
    end
    if not stop or key == nil then return nil end
    v, at = rawget(v, key), stop
    ::continue::
  end
  return v
end

-- Calls each(path) for all paths on a line that may be variables, the longest
-- first.
function frames.paths(line, each)
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

return frames
