-- SPDX-License-Identifier: MIT
-- module_text.lua - an nn.Module as text: its layers with the number of
-- parameters and their shapes, and the name of the module that runs for errors.
local all = ...
all.require "nacre.module"
local Module = all.Module
local members, is_module = all.members, all.is_module

local function shape(t) return table.concat(t:size(), "x") end

-- A value as it would be typed.
local function value_text(v)
  if type(v) == "string" then return ("%q"):format(v) end
  if nacre.is_tensor(v) then return ("%s[%s]"):format(v.dtype, shape(v)) end
  if is_module(v) then return v:_head() end
  if type(v) == "function" then
    local info = all.info[v]
    return info and "nacre." .. info.name or "function"
  end
  if type(v) ~= "table" then return tostring(v) end
  local list = {}
  for i, element in ipairs(v) do list[i] = value_text(element) end
  return "{" .. table.concat(list, ", ") .. "}"
end

-- The call that made the module, without arguments that have the default.
function Module:_head()
  local values, list, options = rawget(self, "_arguments"), {}, {}
  if not values then return self.__name end
  for i, p in ipairs(self._signature.params) do
    local v = values[i]
    if not p.optional or i == 1 and v ~= p.default and type(v) ~= "table" then
      list[#list + 1] = value_text(v)
    elseif v ~= nil and v ~= p.default then
      options[#options + 1] = p.name .. "=" .. value_text(v)
    end
  end
  if #options > 0 then
    list[#list + 1] = "{" .. table.concat(options, ", ") .. "}"
  end
  return ("%s(%s)"):format(self.__name, table.concat(list, ", "))
end

-- ---- the tree

-- The number and the bytes of all parameters, and the first.
local function totals(self)
  local n, bytes, first = 0, 0, nil
  for _, p in ipairs(self:parameters()) do
    n, bytes = n + p:numel(), bytes + p:numel() * p:element_size()
    first = first or p
  end
  return n, bytes, first
end

-- What is unlike the parameter `usual' in t: the dtype, the device; and that it
-- does not learn.
local function unlike(t, usual)
  local dtype = t.dtype ~= usual.dtype and "  " .. t.dtype or ""
  return dtype .. (t.device ~= usual.device and "  " .. t.device or "")
         .. (t.requires_grad and "" or "  frozen")
end

-- The shapes of the parameters of the module itself, and what is unlike the
-- parameter `usual' in the last of each that are alike; their number.
local function own_parameters(self, usual)
  local shapes, others, n = {}, {}, 0
  for _, m in ipairs(members(self)) do
    if m.kind == "parameter" then
      local t, k = m.value, #shapes + 1
      shapes[k] = t:dim() == 0 and "1" or shape(t)
      others[k] = unlike(t, usual)
      n = n + t:numel()
    end
  end
  for k, other in ipairs(others) do
    if other ~= others[k + 1] then shapes[k] = shapes[k] .. other end
  end
  return table.concat(shapes, ", "), n
end

-- A name without the number of an element of a list; the number.
local function element(name) return name:match "^(.*)%[(%d+)%]$" end

-- Are the parts of rows i and j equal, elements of one list?
local function same_rows(rows, i, j)
  local a, b = rows[i], rows[j]
  if a.head ~= b.head or a.shapes ~= b.shapes or a.below ~= b.below or
     not element(b.name) or element(a.name) ~= element(b.name) then
    return false
  end
  for k = 1, a.below do
    local x, y = rows[i + k], rows[j + k]
    if x.name ~= y.name or x.head ~= y.head or x.shapes ~= y.shapes then
      return false
    end
  end
  return true
end

-- Adds the rows {name, head, n, shapes} of the parts of m; equal elements of a
-- list that are neighbours are one row.
local function add_rows(rows, m, indent, usual)
  local last
  for _, member in ipairs(members(m)) do
    if member.kind == "part" then
      local part, at = member.value, #rows
      local shapes, n = own_parameters(part, usual)
      local row = {indent = indent, name = member.path, head = part:_head(),
                   shapes = shapes, n = n}
      rows[at + 1] = row
      add_rows(rows, part, indent .. "  ", usual)
      row.below = #rows - at - 1
      if last and same_rows(rows, last, at + 1) then
        rows[last].to = select(2, element(row.name))
        for i = #rows, at + 1, -1 do rows[i] = nil end
      else
        last = at + 1
      end
    end
  end
end

-- For a list of variables: what the module is, its bytes, a note.
function Module:_brief()
  local n, bytes, first = totals(self)
  return "module " .. self.__name .. (first and ", " .. first.device or ""),
         bytes,
         n == 0 and "no parameters" or ("%d parameters"):format(n)
end

-- Breaks the text of a row behind commas into lines of at most `most'
-- characters; those after the first are indented further.
local function broken(text, most)
  local indent = text:match "^ *" .. "    "
  local lines, line = {}, ""
  for piece in text:gmatch "[^,]*,? ?" do
    if #(line .. piece:gsub(" $", "")) > most and line:find "%S" then
      lines[#lines + 1] = line:gsub(" $", "")
      line = indent
    end
    line = line .. piece
  end
  lines[#lines + 1] = line
  return lines
end

-- The lines of a row: its text, beside the first line the other columns.
local function row_lines(text, wide, columns)
  local lines = broken(text, wide)
  lines[1] = (lines[1] .. (" "):rep(wide - #lines[1]) .. columns)
             :gsub("%s+$", "")
  return table.concat(lines, "\n")
end

local LEAST = 32              -- characters for the first column

-- The width of the first column: what it needs, or if that is too much what
-- the columns of the terminal leave.
local function first_column(rows, digits)
  local need, others = 0, 0
  for _, r in ipairs(rows) do
    need, others = math.max(need, #r.text), math.max(others, #r.shapes)
  end
  local columns = rawget(nacre, "_columns")
  if not columns then return need end
  local left = columns() - digits - others - 4
  return math.min(need, math.max(left, LEAST))
end

function Module:_text()
  local n, bytes, first = totals(self)
  local own = own_parameters(self, first or {})
  local rows = {{indent = "", name = self:_head(), head = "", n = n}}
  rows[1].shapes = ("%s  %s  %s"):format(
    nacre._bytes_text(bytes), first and first.device or "no parameters",
    self.training and "training" or "evaluation") ..
    (own ~= "" and "  " .. own or "")
  add_rows(rows, self, "  ", first or {})
  for _, r in ipairs(rows) do
    r.text = r.indent ..
             (r.to and r.name:gsub("%]$", ".." .. r.to .. "]") or r.name) ..
             (r.head ~= "" and "  " .. r.head or "")
  end
  local digits = #tostring(n)
  local wide = first_column(rows, digits)
  for i, r in ipairs(rows) do
    local count = (i == 1 or r.n > 0) and tostring(r.n) or ""
    rows[i] = row_lines(r.text, wide, (" "):rep(2 + digits - #count) ..
                                      count .. "  " .. r.shapes)
  end
  return table.concat(rows, "\n")
end

-- ---- the module that runs

-- The path of `part' in the module m: that of a field of m, or of a part of m
-- that does not run itself, as a ModuleList does not. Nil if it is not there.
local function path_in(m, part, seen)
  local names = rawget(m, "_names") or {}
  for _, f in ipairs(m._fields) do           -- as nearly always
    if rawequal(rawget(m, f.key), part) then
      return all.key_path(names[f.key] or f.key)
    end
  end
  local list = members(m)
  for _, member in ipairs(list) do
    if rawequal(member.value, part) then return member.path end
  end
  seen[m] = true
  for _, member in ipairs(list) do
    local below = member.kind == "part" and not seen[member.value] and
                  path_in(member.value, part, seen)
    if below then return all.join_path(member.path, below) end
  end
end

-- For the modules that run, the innermost first: the text of an error; the path
-- of the innermost in its network, and the network; how a trace calls the
-- innermost, and its network.
all.set_describe(function(running)
  local path, top = "", running[#running]
  for i = #running - 1, 1, -1 do
    local below = path_in(running[i + 1], running[i], {})
    path, top = below and all.join_path(path, below) or "",
                below and top or running[i]
  end
  if path == "" then
    return running[1]:_head(), path, top, top.__name, top.__name
  end
  return ("%s: %s, of %s"):format(path, running[1]:_head(), top:_head()),
         path, top, path, top.__name
end)
