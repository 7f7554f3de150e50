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

local function add(w, kind, owner, key, value)
  local list, n = w.list, #w.list
  list[n + 1], list[n + 2], list[n + 3] = kind, owner, key
  list[n + 4] = value
  if value == nil then list[n + 4] = core.none end
  if n > 4 * MOST then w.why = "it reads too many values from outside" end
end

-- Watches what a value leads to.
function Watcher:follow(v)
  if v == nil or self.seen[v] or self.why then return end
  if type(v) == "table" then
    self.seen[v] = true
    local copy, count = {}, 0
    for k, x in next, v do copy[k] = x count = count + 1 end
    add(self, TABLE, v, count, copy)
    for _, x in next, copy do
      self:follow(x)
    end
  elseif type(v) == "function" and debug.getinfo(v, "S").what == "Lua" then
    self.seen[v] = true
    self:follow_function(v)
  elseif type(v) == "userdata" and core.fused(v) then
    self:follow(debug.getuservalue(v, 1))
  end
end

-- A table in the place of the environment, which watches the globals that are
-- read in it.
function Watcher:environment(env)
  if not self.proxies[env] then
    self.proxies[env] = setmetatable({}, {
      __index = function(_, name)
        local v = env[name]
        add(self, GLOBAL, env, name, v)
        self:follow(v)
        return v
      end,
      __newindex = function(_, name, v)
        self.why = "it sets the global " .. tostring(name)
        env[name] = v
      end})
  end
  return self.proxies[env]
end

function Watcher:follow_function(f)
  for i = 1, math.huge do
    local name, v = debug.getupvalue(f, i)
    if not name then return end
    if name == "_ENV" and type(v) == "table" then
      local proxy = self:environment(v)
      local holder = function() return v end      -- keeps the upvalue
      debug.upvaluejoin(holder, 1, f, i)
      debug.upvaluejoin(f, i, function() return proxy end, 1)
      self.joined[#self.joined + 1] = {f, i, holder}
    else
      add(self, UPVALUE, f, i, v)
      self:follow(v)
    end
  end
end

-- Gives the functions their environments back.
function Watcher:__close()
  for _, j in ipairs(self.joined) do debug.upvaluejoin(j[1], j[2], j[3], 1) end
  self.joined = {}
end

local function watcher()
  local w = {list = {}, seen = {}, proxies = {}, joined = {}}
  for _, library in pairs(package.loaded) do
    if type(library) == "table" then w.seen[library] = true end
  end
  return setmetatable(w, Watcher)
end

-- A program for the function of a fused function and these arguments. symbolic:
-- numbers among them may change.
function M.trace(fused, symbolic, ...)
  local f = debug.getuservalue(fused, 1)
  local w <close> = watcher()
  w:follow(f)
  for i = 1, select("#", ...) do
    w:follow((select(i, ...)))
  end
  local twins = table.pack(core.begin(symbolic, ...))
  local program <close> = twins[1]
  local results = table.pack(f(table.unpack(twins, 2, twins.n)))
  w:__close()
  if not w.why and not core.unchanged(w.list) then
    w.why = "it changes what it reads from outside"
  end
  core.finish(program, w.list, w.why, table.unpack(results, 1, results.n))
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

-- The text of explain.
function M.text(parts, why)
  if why then return "not fused: " .. why end
  local lines = {}
  for i, p in ipairs(parts) do
    local head = "part " .. i .. ", one by one: "
    if p.fused then
      head = ("part %d, fused over [%s]: "):format(i, p.shape)
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

return M
