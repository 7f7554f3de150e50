-- SPDX-License-Identifier: MIT
-- fused_trace.lua - traces a function for nacre.fuse, and watches what it reads
-- besides its arguments: upvalues, the tables and functions in them, and
-- globals. A watch is four elements of a list: 1 function index value, 2 table
-- count copy, or 3 environment name value.

local core = ...
local M = {}

local UPVALUE, TABLE, GLOBAL = 1, 2, 3
local MOST = 2000             -- values that are watched

local Watcher = {}
Watcher.__index = Watcher

local dump = string.dump
local floats = setmetatable({}, {__mode = "k"})

-- What may be numbers among the constants of a function: each of them, and
-- maybe others.
local function constants(f)
  if floats[f] then return floats[f] end
  local list, code = {}, dump(f, true)
  local at = code:find("\x13", 1, true)      -- marks a float
  while at and at + 8 <= #code do
    local v = string.unpack("d", code, at + 1)
    if core.variable(v) then list[#list + 1] = v end
    at = code:find("\x13", at + 1, true)
  end
  floats[f] = list
  return list
end

-- A function may treat a number in a way of its own that it can compare with,
-- or find in a table: in a trace a comparison with a number cannot be seen.
function Watcher:set_apart(v)
  if core.variable(v) then self.special[v] = true end
end

local function add(w, kind, owner, key, value)
  w:set_apart(key)
  w:set_apart(value)
  local list, n = w.list, #w.list
  list[n + 1], list[n + 2], list[n + 3] = kind, owner, key
  list[n + 4] = value
  if value == nil then list[n + 4] = core.none end
  if n > 4 * MOST then w.why = "it reads too many values from outside" end
end

-- Is the table one of nacre's own, such as nacre.nn.functional? Nobody changes
-- what is in it.
local own, foreign = {}, setmetatable({}, {__mode = "k"})

local function add_own(t, depth)
  own[t] = true
  for _, v in next, t do
    if depth > 0 and type(v) == "table" and not own[v] then
      add_own(v, depth - 1)
    end
  end
end

local function is_own(t)
  if not own[t] and not foreign[t] then
    own = {}
    add_own(package.loaded.nacre, 2)
    foreign[t] = not own[t] or nil
  end
  return own[t]
end

-- Watches what a value leads to.
function Watcher:follow(v)
  if v == nil or self.seen[v] or self.why then return end
  if type(v) == "table" then
    if is_own(v) then return end
    self.seen[v] = true
    local copy, count = {}, 0
    for k, x in next, v do
      copy[k] = x
      count = count + 1
      self:set_apart(k)
      self:set_apart(x)
    end
    add(self, TABLE, v, count, copy)
    for _, x in next, copy do
      self:follow(x)
    end
    local meta = debug.getmetatable(v)
    if type(meta) == "table" and not meta.__name then self:follow(meta) end
  elseif type(v) == "function" and debug.getinfo(v, "S").what == "Lua" then
    self.seen[v] = true
    for _, x in ipairs(self.symbolic and constants(v) or {}) do
      self.special[x] = true
    end
    self:follow_function(v)
  elseif type(v) == "userdata" and core.fused(v) then
    self:follow(debug.getuservalue(v, 1))
  end
end

-- A table in place of the environment, which watches the globals that are
-- read in it.
function Watcher:environment(env)
  if not self.proxies[env] then
    self.proxies[env] = setmetatable({}, {
      __index = function(_, name)
        local v = env[name]
        add(self, GLOBAL, env, name, v)
        self:follow(v)
        return self:stand_in(v)
      end,
      __newindex = function(_, name, v)
        self.why = "it sets the global " .. tostring(name)
        self.set[#self.set + 1] = {env, name, rawget(env, name)}
        env[name] = v
      end})
  end
  return self.proxies[env]
end

-- Functions that see that an argument is not the number for which it stands, or
-- whose result is another at each call.
local function seeing(g)
  return function(w)
    return function(v, ...)
      if core.symbol(v) then w.looked = true end
      return g(v, ...)
    end
  end
end

local function changing(g, name)
  return function(w)
    return function(...)
      w.why = ("it calls %s, which returns a different value each time")
        :format(name)
      return g(...)
    end
  end
end

local libraries = {}
local stand_ins = {[type] = seeing(type), [tonumber] = seeing(tonumber),
                   [rawequal] = seeing(rawequal),
                   [math.type] = seeing(math.type)}
-- A tensor is printed by the function itself, not half of a line by the trace.
local print = package.loaded._G.print
stand_ins[print] = function()
  return function(...)
    for i = 1, select("#", ...) do
      if nacre.is_tensor((select(i, ...))) then
        error("it prints a tensor", 0)
      end
    end
    print(...)
  end
end
for name, names in pairs {math = {"random"}, os = {"time", "clock", "date"},
                          io = {"read", "lines"}} do
  if package.loaded[name] then libraries[package.loaded[name]] = true end
  for _, k in ipairs(names) do
    local g = (package.loaded[name] or {})[k]
    if g then stand_ins[g] = changing(g, name .. "." .. k) end
  end
end

-- What a function finds in place of v while it is traced.
function Watcher:stand_in(v)
  if not stand_ins[v] and not libraries[v] then return v end
  if self.shown[v] then return self.shown[v] end
  local w
  if stand_ins[v] then w = stand_ins[v](self)
  else
    w = setmetatable({}, {__index = function(_, k)
      return self:stand_in(v[k])
    end})
  end
  self.shown[v] = w
  return w
end

-- The upvalue i of f is v while it is traced.
function Watcher:join(f, i, was, v)
  local holder = function() return was end        -- keeps the upvalue
  debug.upvaluejoin(holder, 1, f, i)
  debug.upvaluejoin(f, i, function() return v end, 1)
  self.joined[#self.joined + 1] = {f, i, holder}
end

function Watcher:follow_function(f)
  for i = 1, math.huge do
    local name, v = debug.getupvalue(f, i)
    if not name then return end
    if name == "_ENV" and type(v) == "table" then
      self:join(f, i, v, self:environment(v))
    else
      add(self, UPVALUE, f, i, v)
      self:follow(v)
      local shown = self:stand_in(v)
      if shown ~= v then self:join(f, i, v, shown) end
    end
  end
end

-- Gives the functions their environments back.
function Watcher:__close()
  for _, j in ipairs(self.joined) do debug.upvaluejoin(j[1], j[2], j[3], 1) end
  self.joined = {}
end

-- Makes all that was watched what it was: the trace is of no use, and the
-- function runs again.
function Watcher:restore()
  local list = self.list
  for i = #list - 3, 1, -4 do
    local kind, owner, key, value = table.unpack(list, i, i + 3)
    if value == core.none then value = nil end
    if kind == UPVALUE then debug.setupvalue(owner, key, value)
    elseif kind == TABLE then
      for k in next, owner do
        if value[k] == nil then rawset(owner, k, nil) end
      end
      for k, x in next, value do rawset(owner, k, x) end
    end
  end
  for i = #self.set, 1, -1 do rawset(table.unpack(self.set[i], 1, 3)) end
end

-- The libraries of Lua and of nacre change nothing; those of the user may.
local standard = {string = true, table = true, math = true, io = true,
                  os = true, coroutine = true, utf8 = true, debug = true,
                  package = true}

local function watcher(symbolic)
  local w = {list = {}, seen = {}, proxies = {}, joined = {}, shown = {},
             set = {}, special = {}, symbolic = symbolic}
  for name, library in pairs(package.loaded) do
    local own = name:find "^nacre" or name == "_G" or standard[name]
    if own and type(library) == "table" then w.seen[library] = true end
  end
  return setmetatable(w, Watcher)
end

-- Is the trace to end with this error, as the function itself would?
local function is_final(err)
  local code = type(err) == "table" and rawget(err, "code")
  return code == "EINTR" or code == "ENOMEM" or err == "not enough memory"
end

-- Why a function is not fused whose trace failed: the first line of the error,
-- which says where it was.
local function reason(err)
  return (tostring(err):match "^[^\n]*")
end

-- Are numbers that may change not to be told from others by the function?
local function can_change(w, ...)
  if w.looked then return false end
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if core.variable(v) and w.special[v] and not w.known[v] then
      return false
    end
  end
  return true
end

-- A program for the function of a fused function and these arguments. symbolic:
-- numbers among them may change; nil if that trace is of no use. A function
-- that cannot be traced runs as it is: also one that fails, to fail as it does.
function M.trace(fused, symbolic, ...)
  local f = debug.getuservalue(fused, 1)
  local w <close> = watcher(symbolic)
  w:follow(f)
  for i = 1, select("#", ...) do
    w:follow((select(i, ...)))
  end
  w.known = {}
  for v in pairs(w.special) do w.known[v] = true end
  local twins = table.pack(core.begin(symbolic and w.special or nil, ...))
  local program <close> = twins[1]
  local results = table.pack(pcall(f, table.unpack(twins, 2, twins.n)))
  w:__close()
  local ok, err = results[1], results[2]
  if not ok then w.why = reason(err)
  elseif not w.why and not core.unchanged(w.list) then
    w.why = "it changes a value that it reads from outside"
  end
  core.settle(fused, program)
  local is_fused = core.finish(program, w.list, w.why,
                               table.unpack(results, ok and 2 or 3, results.n))
  if not is_fused or not can_change(w, ...) then
    if not ok and is_final(err) then error(err, 0) end
    w:restore()
    if symbolic then return nil end
  end
  return program
end

local function size(bytes)
  if bytes < 1 << 10 then return bytes .. " B" end
  if bytes < 1 << 20 then return ("%.1f KiB"):format(bytes / (1 << 10)) end
  return ("%.1f MiB"):format(bytes / (1 << 20))
end

local function count(n, what)
  return ("%d %s%s"):format(n, what, n == 1 and "" or "s")
end

-- "mul (line 2), add (line 2)"
local function steps(part)
  local list = {}
  for i, s in ipairs(part.steps) do
    list[i] = s.op .. (s.line > 0 and (" (line %d)"):format(s.line) or "")
  end
  return table.concat(list, ", ")
end

local function text(report)
  if report.note then return report.note end
  if report.why then return "not fused: " .. report.why end
  local lines = {}
  for i, p in ipairs(report) do
    local head = ("part %d, %s: ")
                 :format(i, p.views and "views" or "one by one")
    if p.fused then
      head = ("part %d, fused over [%s]%s: "):format(
        i, p.shape, p.waiting and ", once its kernel is compiled" or "")
    end
    lines[#lines + 1] = head .. steps(p)
    if p.fused then
      lines[#lines + 1] = ("  %s, %s, %s; reads and writes %s, unfused %s")
        :format(count(p.operands, "operand"), count(p.results, "result"),
                count(p.buffers, "buffer"), size(p.bytes), size(p.unfused))
    end
  end
  return table.concat(lines, "\n")
end

-- What explain gives: the parts, shown as a text, which has the methods of
-- strings.
local Report = {__name = "explanation", __tostring = text}

function Report:__index(name)
  local method = string[name]
  return method and function(_, ...) return method(text(self), ...) end
end

function M.report(parts, why)
  parts.why = why
  return setmetatable(parts, Report)
end

-- What explain gives of f before the first call. The operands of formulas are
-- called v_a and so on.
function M.uncalled(f)
  local names = {}
  for i = 1, debug.getinfo(f, "u").nparams do
    names[i] = debug.getlocal(f, i):gsub("^v_", "")
  end
  local list = table.concat(names, ", ")
  return setmetatable({note = list == "" and "not called yet" or
    ("not called yet: explain(%s) traces it"):format(list)}, Report)
end

-- What a fused function is shown as. parts and why: of its last call.
function M.describe(f, programs, parts, why)
  local info = debug.getinfo(f, "S")
  local head = "fused function: "
  if info.linedefined > 0 then
    head = ("%s%s:%d, "):format(head, info.short_src, info.linedefined)
  end
  if programs == 0 then return head .. "not called yet" end
  head = head .. count(programs, "trace") .. "; the last call: "
  if why then return head .. "not fused: " .. why end
  local passes, fused, single = 0, 0, 0
  for _, p in ipairs(parts) do
    if p.fused then passes, fused = passes + 1, fused + #p.steps
    elseif not p.views then single = single + #p.steps end
  end
  local list = {}
  if fused > 0 then
    list[1] = count(fused, "operation") .. " in " ..
              (passes == 1 and "one pass" or passes .. " passes")
  end
  if single > 0 or not list[1] then
    list[#list + 1] = count(single, "operation") .. " one by one"
  end
  return head .. table.concat(list, ", ")
end

return M
