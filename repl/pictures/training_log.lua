-- SPDX-License-Identifier: MIT
--
-- training_log.lua - nacre.history(): numbers of a training, step by step.
--
--   log = nacre.history()
--   log:add {loss = loss, accuracy = a}
--   log.loss             a tensor of all that was added
--   log:save "run.csv"
--
-- Tensors are not read when they are added, so that a device need not be waited
-- for; those of a column are fetched together when somebody looks.

local training_log = {}

local MOST = 4096             -- tensors that are kept unread
local Log = {}

-- A column: numbers[i] of the i-th step; a step without it has nan. pending[i]
-- are tensors that were not read yet.
local function column_of(self, name)
  local c = self._columns[name]
  if c == nil then
    c = {numbers = {}, pending = {}, count = 0}
    self._columns[name] = c
    self._names[#self._names + 1] = name
  end
  return c
end

-- Reads the tensors of a column, those of a dtype and a device at once.
local function fetch(c)
  local groups = {}
  for step, t in pairs(c.pending) do
    local key = t.dtype .. t.device
    groups[key] = groups[key] or {steps = {}, tensors = {}}
    table.insert(groups[key].steps, step)
    table.insert(groups[key].tensors, t:reshape {})
  end
  for _, group in pairs(groups) do
    local numbers = nacre.stack(group.tensors):double():tolist()
    for i, step in ipairs(group.steps) do c.numbers[step] = numbers[i] end
  end
  c.pending, c.count = {}, 0
end

local function is_number(v)
  return type(v) == "number" or type(v) == "boolean" or
         nacre.is_tensor(v) and v:numel() == 1
end

-- Adds a step: numbers, or tensors of one element, by name.
function Log:add(values)
  if type(values) ~= "table" or nacre.is_tensor(values) then
    error("history: add takes a table, such as {loss = loss}", 2)
  end
  local names = {}
  for name, v in pairs(values) do
    if type(name) ~= "string" or Log[name] then
      error(("history: '%s' cannot be the name of a column")
            :format(tostring(name)), 2)
    elseif not is_number(v) then
      error(("history: %s must be a number, or a tensor of one element")
            :format(name), 2)
    end
    names[#names + 1] = name
  end
  table.sort(names)
  self._steps = self._steps + 1
  for _, name in ipairs(names) do
    local v, c = values[name], column_of(self, name)
    if nacre.is_tensor(v) then
      -- a copy: the tensor may be written to in the next step
      c.pending[self._steps] = v:detach():clone()
      c.count = c.count + 1
      if c.count == MOST then fetch(c) end
    else
      c.numbers[self._steps] = v == true and 1 or v or 0
    end
  end
  local live = require "nacre.settings".get "live"
  if live ~= "off" then require "nacre.live_plot".step(live) end
  return self
end

-- The names of the columns, in the order in which they came.
function Log:names() return {table.unpack(self._names)} end

-- The numbers of a column, nan where a step has none.
local function numbers_of(self, name)
  local c, list = self._columns[name], {}
  if next(c.pending) then fetch(c) end
  for i = 1, self._steps do list[i] = c.numbers[i] or 0 / 0 end
  return list
end

-- Writes a line for each step, with the names first, as CSV.
function Log:save(path)
  if type(path) ~= "string" then
    error("history: save takes the path of a file, such as \"run.csv\"", 2)
  end
  local extension = path:match "%.(%w+)$"
  if extension and extension ~= "csv" and extension ~= "txt" then
    error(("history: it is saved as .csv, not as .%s"):format(extension), 2)
  end
  local columns = {}
  for i, name in ipairs(self._names) do columns[i] = numbers_of(self, name) end
  local lines = {"step," .. table.concat(self._names, ",")}
  for step = 1, self._steps do
    local fields = {tostring(step)}
    for i = 1, #columns do
      local v = columns[i][step]
      fields[i + 1] = v ~= v and "" or ("%.9g"):format(v)
    end
    lines[step + 1] = table.concat(fields, ",")
  end
  local file, why = io.open(path, "w")
  if not file then error("history: " .. why, 2) end
  local ok, reason = file:write(table.concat(lines, "\n"), "\n")
  local closed, late = file:close()
  if not (ok and closed) then
    error("history: " .. tostring(reason or late), 2)
  end
end

require "nacre.suggestion".guard_methods(Log, "history")

function Log.__len(self) return self._steps end

function Log.__index(self, key)
  if Log[key] then return Log[key] end
  if self._columns[key] == nil then
    error(("history: there is no column '%s'"):format(tostring(key)), 2)
  end
  return nacre.tensor(numbers_of(self, key),
                      {dtype = "float64", device = "cpu"})
end

-- The last steps as a table.
function Log.__tostring(self)
  local text = {("history of %d step%s"):format(self._steps,
                                                self._steps == 1 and "" or "s")}
  if #self._names == 0 then return text[1] end
  local head, from = "   step", math.max(1, self._steps - 4)
  local rows = {}
  for step = from, self._steps do rows[step] = ("%7d"):format(step) end
  for _, name in ipairs(self._names) do
    local numbers, width = numbers_of(self, name), math.max(10, #name + 2)
    head = head .. ("%" .. width .. "s"):format(name)
    for step = from, self._steps do
      local v = numbers[step]
      rows[step] = rows[step] .. ("%" .. width .. "s"):format(
        v ~= v and "" or ("%.4g"):format(v))
    end
  end
  text[2] = head
  for step = from, self._steps do text[#text + 1] = rows[step] end
  return table.concat(text, "\n")
end

-- Is v a history? Its fields are columns, and what is none of them fails.
function training_log.is(v)
  return type(v) == "table" and debug.getmetatable(v) == Log
end

function training_log.new()
  return setmetatable({_columns = {}, _names = {}, _steps = 0}, Log)
end

return training_log
