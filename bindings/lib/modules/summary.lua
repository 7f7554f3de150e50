-- SPDX-License-Identifier: MIT
-- summary.lua - net:summary(input): what each layer gives, computes and keeps
-- for backward. The network is called in a dry run, so nothing is computed and
-- no memory is needed.
local all = ...
all.require "nacre.module"
local fail, Module = all.fail, all.Module

-- ---- the inputs

local function is_size(v)
  if type(v) ~= "table" or getmetatable(v) or #v == 0 then return false end
  for _, n in ipairs(v) do
    if math.type(n) ~= "integer" then return false end
  end
  return true
end

-- A tensor for a size, of the dtype and device of the parameters.
local function example(self, v)
  if not is_size(v) then return v end
  local options = {}
  for _, p in ipairs(self:parameters()) do
    options.device = options.device or p.device
    if p:is_floating_point() then options.dtype = options.dtype or p.dtype end
  end
  return nacre.empty(v, options)
end

-- Calls each(t) for the tensors in a value and the tables in it, each once.
local function each_tensor(v, each, seen)
  seen = seen or {}
  if nacre.is_tensor(v) then each(v)
  elseif type(v) == "table" and not all.is_module(v) and not seen[v] then
    seen[v] = true
    for _, element in pairs(v) do each_tensor(element, each, seen) end
  end
end

-- ---- counting

local Count = {}
Count.__index = Count

-- Adds to a field of the modules that run, to each once.
function Count:add(field, n)
  local added = {}
  for _, row in ipairs(self.running) do
    if not added[row] then row[field] = row[field] + n end
    added[row] = true
  end
end

-- Adds the memory that the operations before these values keep, unless it was
-- seen. The values stay alive, so that no node or memory is taken for another.
function Count:add_kept(values)
  self.alive[#self.alive + 1] = values
  each_tensor(values, function(t)
    for id, bytes in pairs(nacre._graph_saved(t, self.nodes)) do
      if not self.seen[id] then self:add("kept", bytes) end
      self.seen[id] = true
    end
  end)
end

function Count:enter(row, args)
  self:add_kept(args)
  if row.calls == 0 then self.rows[#self.rows + 1] = row end
  row.calls = row.calls + 1
  table.insert(self.running, row)
end

function Count:leave(row, ...)
  local results = {...}
  self:add_kept(results)
  table.remove(self.running)
  row.output, row.dtype = nil, nil
  each_tensor(results, function(t)
    row.output, row.dtype = row.output or t:size(), row.dtype or t.dtype
  end)
end

-- The rows of a network by module, with hooks that count its calls; and the
-- list of these hooks.
function Count:watch(net)
  local hooks, all_rows = {}, {}
  for path, m in all.each_module(net) do
    local row = {path = path, layer = m:_head(), module = m, parameters = 0,
                 flops = 0, kept = 0, calls = 0}
    for _, p in ipairs(m:parameters()) do
      row.parameters = row.parameters + p:numel()
    end
    all_rows[#all_rows + 1] = row
    hooks[#hooks + 1] = m:register_forward_pre_hook(function(_, args)
      self:enter(row, args)
    end)
    hooks[#hooks + 1] = m:register_forward_hook(function(_, _, ...)
      self:leave(row, ...)
    end)
  end
  return all_rows, hooks
end

-- Calls the network in a dry run. The memory of its inputs does not count.
function Count:run(net, ...)
  local args = table.pack(...)
  for i = 1, args.n do args[i] = example(net, args[i]) end
  each_tensor(args, function(t)
    self.seen[nacre._storage_id(t)] = true
    table.insert(self.rows.inputs, ("%s[%s] %s"):format(t.dtype,
      table.concat(t:size(), "x"), t.device))
  end)
  net(table.unpack(args, 1, args.n))
end

-- ---- the table

local SCALES = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}

-- "1.36 GFLOP"
local function flop_text(n)
  if n == 0 then return "" end
  for _, s in ipairs(SCALES) do
    if n >= 0.9995 * s[1] then
      return ("%.3g %sFLOP"):format(n / s[1], s[2])
    end
  end
end

local HEAD = {"layer", "", "output", "parameters", "work", "kept"}
local RIGHT = {false, false, false, true, true, true}

local function cells(row)
  return {
    row.path == "" and "(all)" or row.path,
    row.layer .. (row.calls > 1 and (" %d times"):format(row.calls) or ""),
    row.output and table.concat(row.output, "x") or "",
    row.parameters > 0 and ("%d"):format(row.parameters) or "",
    flop_text(row.flops), row.kept > 0 and nacre._bytes_text(row.kept) or "",
  }
end

local function aligned(rows)
  local wide, lines = {}, {}
  for _, row in ipairs(rows) do
    for k, text in ipairs(row) do wide[k] = math.max(wide[k] or 0, #text) end
  end
  for i, row in ipairs(rows) do
    local parts = {}
    for k, text in ipairs(row) do
      local space = (" "):rep(wide[k] - #text)
      parts[k] = RIGHT[k] and space .. text or text .. space
    end
    lines[i] = table.concat(parts, "  "):gsub("%s+$", "")
  end
  return lines
end

local function text(summary)
  local rows = {HEAD}
  for _, row in ipairs(summary) do rows[#rows + 1] = cells(row) end
  local lines = aligned(rows)
  lines[#lines + 1] = ("for %s; nothing was computed"):format(
    table.concat(summary.inputs, ", "))
  if #summary.unused > 0 then
    lines[#lines + 1] = "not called: " .. table.concat(summary.unused, ", ")
  end
  return table.concat(lines, "\n")
end

-- The layers that no call reached: neither they nor a part of theirs.
local function unused(all_rows)
  local list, reached = {}, {}
  for i = #all_rows, 1, -1 do
    local row = all_rows[i]
    for part in row.module:children() do
      reached[row] = reached[row] or reached[part]
    end
    reached[row.module] = row.calls > 0 or reached[row]
    if not reached[row.module] then table.insert(list, 1, row.path) end
  end
  return list
end

-- A list of the layers in the order of their calls, each {path=, layer=,
-- output=, dtype=, parameters=, flops=, kept=, calls=, module=}, in which the
-- parts of a layer count too; the first is the network. An input is a tensor,
-- of which only the shape matters, or a size.
function Module:summary(...)
  if select("#", ...) == 0 then
    fail("summary", "takes the input of the network, or its size",
         "net:summary{32, 1, 28, 28}")
  end
  local rows = setmetatable({inputs = {}}, {__tostring = text})
  local count = setmetatable({rows = rows, running = {}, seen = {},
                              nodes = {}, alive = {}}, Count)
  local all_rows, hooks = count:watch(self)
  local function told(steps)
    for _, step in ipairs(steps) do count:add("flops", step.flops) end
  end
  local ok, err = pcall(nacre._dry_graph, told, count.run, count, self, ...)
  for _, hook in ipairs(hooks) do hook.remove() end
  if not ok then error(err, 0) end
  rows.unused = unused(all_rows)
  return rows
end
