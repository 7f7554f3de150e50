-- SPDX-License-Identifier: MIT
-- module_text.lua - an nn.Module as text: its layers with the number of
-- parameters and their shapes, and the name of the module that runs for errors.
local all = ...
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

-- The number and the bytes of all parameters, and the device of the first.
local function totals(self)
  local n, bytes, device = 0, 0, nil
  for _, p in ipairs(self:parameters()) do
    n, bytes = n + p:numel(), bytes + p:numel() * p:element_size()
    device = device or p.device
  end
  return n, bytes, device
end

-- The shapes of the parameters of the module itself, and their number.
local function own_parameters(self)
  local shapes, n = {}, 0
  for _, m in ipairs(members(self)) do
    if m.kind == "parameter" then
      shapes[#shapes + 1] = m.value:dim() == 0 and "1" or shape(m.value)
      n = n + m.value:numel()
    end
  end
  return table.concat(shapes, ", "), n
end

-- Are the parts of rows i and j equal, elements of one list?
local function same_rows(rows, i, j)
  local a, b = rows[i], rows[j]
  if a.head ~= b.head or a.shapes ~= b.shapes or a.below ~= b.below or
     a.name:gsub("%d+$", "") ~= b.name:gsub("%d+$", "") or
     not b.name:find "%d$" then
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
local function add_rows(rows, m, indent)
  local last
  for name, part in m:named_children() do
    local shapes, n = own_parameters(part)
    local head, at = part:_head(), #rows
    local row = {indent = indent, name = name, head = head, shapes = shapes,
                 n = n}
    rows[at + 1] = row
    add_rows(rows, part, indent .. "  ")
    row.below = #rows - at - 1
    if last and same_rows(rows, last, at + 1) then
      rows[last].to = name
      for i = #rows, at + 1, -1 do rows[i] = nil end
    else
      last = at + 1
    end
  end
end

-- For a list of variables: what the module is, its bytes, a note.
function Module:_brief()
  local n, bytes, device = totals(self)
  return "module " .. self.__name .. (device and ", " .. device or ""), bytes,
         n == 0 and "no parameters" or ("%d parameters"):format(n)
end

function Module:_text()
  local n, bytes, device = totals(self)
  local rows = {{indent = "", name = self:_head(), head = "", shapes = "",
                 n = n}}
  add_rows(rows, self, "  ")
  local wide, digits = 0, #tostring(n)
  for _, r in ipairs(rows) do
    r.text = r.indent .. r.name .. (r.to and ".." .. r.to or "") ..
             (r.head ~= "" and "  " .. r.head or "")
    wide = math.max(wide, #r.text)
  end
  local own = own_parameters(self)
  rows[1].shapes = ("%s  %s  %s"):format(
    all.bytes_text(bytes), device or "no parameters",
    self.training and "training" or "evaluation") ..
    (own ~= "" and "  " .. own or "")
  for i, r in ipairs(rows) do
    local count = (i == 1 or r.n > 0) and tostring(r.n) or ""
    rows[i] = (r.text .. (" "):rep(wide - #r.text + 2) ..
               (" "):rep(digits - #count) .. count .. "  " .. r.shapes)
              :gsub("%s+$", "")
  end
  return table.concat(rows, "\n")
end

-- ---- the module that runs

-- The name of `part' in the module m as Lua writes it, "fc1" or "layers[2]",
-- and as a state does, "fc1" or "layers.1".
local function name_in(m, part)
  for _, f in ipairs(m._fields) do
    local v = rawget(m, f.key)
    local name = type(f.key) == "string" and f.key or ("[%s]"):format(f.key)
    if rawequal(v, part) then return name, all.label(f.key) end
    if type(v) == "table" and not is_module(v) then
      for i, element in ipairs(v) do
        if rawequal(element, part) then
          return ("%s[%d]"):format(name, i),
                 all.label(f.key) .. "." .. all.label(i)
        end
      end
    end
  end
end

local function joined(path, name)
  if path == "" or name:sub(1, 1) == "[" then return path .. name end
  return path .. "." .. name
end

-- The text for the modules that run, the innermost first; the path of the
-- innermost as a state writes it, or its class; the class of the network.
all.set_describe(function(running)
  local path, dotted, top = "", "", running[#running]
  for i = #running - 1, 1, -1 do
    local name, label = name_in(running[i + 1], running[i])
    if name then path, dotted = joined(path, name), joined(dotted, label)
    else path, dotted, top = "", "", running[i] end
  end
  if path == "" then return running[1]:_head(), top.__name, top.__name end
  return ("%s: %s, of %s"):format(path, running[1]:_head(), top:_head()),
         dotted, top.__name
end)
