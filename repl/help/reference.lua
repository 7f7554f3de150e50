-- SPDX-License-Identifier: MIT
--
-- reference.lua - the texts of the reference, for help and for the pages in
-- docs/reference.
--
-- Signature, formula, gradient and dtypes come from the tables of the core,
-- through nacre._info. The rest is in repl/reference/*.nacre, one file for
-- each page. These are sessions, so every example runs as a test:
--
--   -- Title                a page begins with its title, a description,
--   -- about ...            and fields for all of its entries
--
--   -- name                 then the entries: the name as in nacre._names,
--   -- shape: ...           fields, and an example
--   > nacre.name(...)
--   ...

local host = require "nacre.host"
local signature = require "nacre.display".signature

local reference = {}

local pages, entries

-- Adds "label: text" to fields; a line without a label continues the last, a
-- label that is there already adds to its text.
local function field(fields, line, last)
  local label, text = line:match "^%-%- (%l+): (.+)$"
  if label then
    fields[label] = fields[label] and fields[label] .. "; " .. text or text
    return label
  end
  local more = last and line:match "^%-%-   (.+)$"
  if more then fields[last] = fields[last] .. " " .. more end
  return more and last
end

local function head(page, line)
  local says = line:match "^%-%-(:.*)$"
  page.last = field(page.fields, line, page.last)
  if says then
    page.directives[#page.directives + 1] = says
  elseif not page.last and not line:find "SPDX" then
    local text = line:match "^%-%- (.*)$"
    if page.title then
      page.about[#page.about + 1] = text
    else
      page.title = text
    end
  end
end

local function begin(page, name)
  local entry = {name = name, page = page, fields = {}, example = {}}
  page.entries[#page.entries + 1] = entry
  assert(not entries[name], name .. " is in the reference twice")
  entries[name] = entry
  return entry
end

local function parse(name, text)
  local page = {name = name, fields = {}, about = {}, entries = {},
                directives = {}}
  local entry, last, blank
  for line in text:gmatch "([^\n]*)\n" do
    local heading = blank and line:match "^%-%- ([%w_.:]+)$"
    if heading then
      entry, last = begin(page, heading), nil
    elseif not entry then
      if line ~= "" then head(page, line) end
    elseif line:find "^%-%-" then
      last = field(entry.fields, line, last)
    else
      entry.example[#entry.example + 1] = line
    end
    blank = line == ""
  end
  for _, e in ipairs(page.entries) do
    e.example = table.concat(e.example, "\n"):gsub("\n+$", "")
  end
  return page
end

local function load()
  if pages then return end
  pages, entries = {}, {}
  for i, page in ipairs(host.reference_pages()) do
    pages[i] = parse(page.name:match "[^.]+$", page.text)
  end
end

function reference.pages()
  load()
  return pages
end

-- The entry of an operation by its name in _info, or nil.
function reference.entry(name)
  load()
  return entries[name]
end

--
-- What the tables say
--
local DTYPES = {
  ANY = "all", NUMERIC = "all except bool", NO_BOOL = "all except bool",
  BOOL_AS_INT = "all; bool counts as int64", DIVISION = "all except bool",
  ROUNDING = "floats; integers are returned unchanged",
  INT_OR_BOOL = "bool and integers", INTEGER = "integers",
  FLOAT_ONLY = "floats",
  FLOAT = "floats; bool and integers become the default float dtype",
  TO_BOOL = "all; gives bool, for uint8 uint8", COUNT = "all; gives int64",
}

local function dtype(info)
  local text = DTYPES[info.class] .. (info.complex and "; also complex" or "")
  if info.kind == "test" or info.kind == "compare" then
    return text .. "; gives bool"
  elseif info.kind == "reduce" and info.class == "BOOL_AS_INT" then
    return "all; bool and integers give int64"
  elseif info.kind ~= "unary" and info.kind ~= "reduce" then
    return text .. "; operands are promoted to a common one"
  end
  return text
end

local ARITY = {unary = 1, test = 1, binary = 2, compare = 2, ternary = 3,
               choose = 3}

local function shape(info)
  if info.kind == "reduce" then
    return "the dims in dim are removed (size 1 with keepdim); without dim " ..
           "all are"
  elseif ARITY[info.kind] == 1 then
    return "that of self"
  elseif info.inplace then
    return "that of self, to which the others broadcast"
  end
  return "the shape to which the operands broadcast"
end

-- The formula of an operation with the names of its parameters in place of
-- single letters.
local function readable(info, text)
  local names, letters = {}, {"a", "b", "c"}
  local n = ARITY[info.kind] or 4
  for i = 2, n do names[letters[i - 1]] = info.params[i - 1].name end
  if ARITY[info.kind] and n > 1 then names[letters[n]] = info.params[n].name end
  for i, letter in ipairs {"p", "q"} do
    names[letter] = info.params[n + i] and info.params[n + i].name
  end
  if info.kind == "reduce" then names.a, names.b, names.c = nil, nil, nil end
  return (text:gsub("K(%b())", function(c) return c:sub(2, -2) end)
              :gsub("%f[%w_][%a_][%w_]*", names))
end

local function value(info)
  local text = readable(info, info.value)
  if text:match "^[%w_]+%f[(]" == info.name and info.kind ~= "reduce" and
     text:find "^[%w_]+%b()$" then
    return nil                -- tanh(x) says no more than the name
  elseif info.kind ~= "reduce" then
    return text
  end
  local fold = info.fold:gsub("%f[%w_][ab]%f[^%w_]",
                              {a = "s", b = readable(info, info.map)})
  return ("%s; s = %s at first, s = %s for each x"):format(text, info.init,
                                                           fold)
end

-- The gradients by operand; a single operand is not named.
local function gradients(info, add)
  local found = false
  for i = 1, 3 do
    local text = info.grad and info.grad[i]
    if text then
      local to = (ARITY[info.kind] or 1) > 1 and "  to " .. info.params[i].name
      add("grad", readable(info, text) .. (to or ""))
      found = true
    end
  end
  return found
end

local MISTAKES = {
  dim = "dim out of range, or 0", index = "index out of range, or 0",
}
MISTAKES.dims, MISTAKES.dimortensor = MISTAKES.dim, MISTAKES.dim

local function mistakes(info, add)
  local said = {}
  for _, p in ipairs(info.params or {}) do
    local text = MISTAKES[p.type]
    if text and not said[text] then add("error", text) end
    said[text or ""] = true
  end
  if (ARITY[info.kind] or 1) > 1 then
    add("error", "shapes that do not broadcast")
  end
  if info.class == "DIVISION" then add("error", "an integer divisor of 0") end
end

local function forms(info, add)
  local list = {}
  local last = info.name:match "[%w_]+$"
  local result, more = (info.results or ""):match "^(%w+)(,?)"
  if info.method and info["function"] and not info.inplace then
    list[1] = ("t:%s(...)"):format(last)
  end
  if info.into and not info.inplace then
    list[#list + 1] = ("t:%s_(...)"):format(last)
  end
  if result == "tensor" and (info.out or info.kind ~= "function") and
     not (info.view or info.inplace or last:find "_$") then
    list[#list + 1] = more == "" and "{out=r}" or "{out={r, ...}}"
  end
  for _, name in ipairs(info.aliases or {}) do
    list[#list + 1] = (info["function"] and "nacre." or "t:") .. name
  end
  if #list > 0 then add("also", table.concat(list, ", ")) end
end

-- The facts about an operation besides its signature and description: a list
-- of {label, text}.
function reference.facts(info)
  local facts, entry = {}, reference.entry(info.alias or info.name)
  local own = entry and entry.fields or {}
  local common = entry and entry.page.fields or {}
  local row = info.class and true
  local function add(label, text)
    if text and text ~= "-" then facts[#facts + 1] = {label, text} end
  end
  add("value", row and value(info) or own.value)
  add("about", own.about)
  if not (row and gradients(info, add)) and info.differentiable ~= nil then
    local takes = info.params[1] and info.params[1].type:find "^tensor" or
                  info.params[1] and info.params[1].type == "operand"
    add("grad", own.grad or (info.differentiable and "yes") or
                (takes and "none") or nil)
  elseif not row then
    add("grad", own.grad or common.grad)
  end
  local gives = (info.results or "") ~= "" and common or {}
  add("shape", own.shape or row and shape(info) or gives.shape)
  add("dtype", own.dtype or row and dtype(info) or gives.dtype)
  mistakes(info, add)
  add("error", own.error or common.error)
  add("from", own.from or common.from)
  forms(info, add)
  return facts
end

--
-- As text
--

-- Wraps a text, each line indented.
local function wrapped(text, indent, width)
  local lines, line, room = {}, "", math.max(20, width - #indent)
  for word in text:gmatch "%S+" do
    if line ~= "" and #line + 1 + #word > room then
      lines[#lines + 1] = indent .. line
      line = ""
    end
    line = line == "" and word or line .. " " .. word
  end
  lines[#lines + 1] = indent .. line
  return table.concat(lines, "\n")
end

reference.wrapped = wrapped

-- Folds lines that are too long, the rest indented further.
local function folded(text, width)
  return (text:gsub("[^\n]+", function(line)
    if #line <= width then return line end
    local first = line:sub(1, width + 1):match "^(.*%S)%s+%S*$"
    if not first or first:find "^>+$" then
      first = line:match "^%s*>*%s*%S+"
    end
    local rest = line:sub(#first + 1)
    return rest:find "%S" and first .. "\n" .. wrapped(rest, "    ", width)
           or line
  end))
end

reference.folded = folded

-- How an operation is called and what it does.
function reference.brief(info, method, width)
  local lines = {folded(signature(info, method), width)}
  if info.doc and info.doc ~= "" then
    for part in info.doc:gmatch "[^\n]+" do
      lines[#lines + 1] = wrapped(part, "  ", width)
    end
  end
  if info.inplace then
    lines[#lines + 1] = wrapped("in place: self takes the result", "  ", width)
  end
  return table.concat(lines, "\n")
end

-- Everything about an operation, or a command, except its example.
function reference.text(info, method, width)
  if info.command then
    return require "nacre.command_help".facts(info.command, width)
  end
  local lines, before = {reference.brief(info, method, width)}
  for _, fact in ipairs(reference.facts(info)) do
    local label, text = fact[1], wrapped(fact[2], (" "):rep(9), width)
    if label == before then label = "" end
    lines[#lines + 1] = ("  %-5s  %s"):format(label, text:sub(10))
    before = fact[1]
  end
  return table.concat(lines, "\n")
end

-- The same with the example.
function reference.help(info, method, width)
  local entry = reference.entry(info.alias or info.name)
  local text = reference.text(info, method, width)
  return entry and text .. "\n" .. folded(entry.example, width) or text
end

-- For names that no table has (a field of tensors, a function of the shell): a
-- table like that of _info, made from their entry; of a command, ":bench", one
-- with its row; nil if there is none.
function reference.described(name)
  local entry = reference.entry(name)
  local command = entry and name:match "^:(.*)$"
  if command then
    command = require "nacre.commands".find(command)
    return command and {name = name, command = command, doc = command.doc}
  end
  local own = entry and entry.fields
  return own and own.doc and {name = name, signature = own.form or name,
                              doc = own.doc}
end

--
-- As pages
--
local WIDTH = 78

local function about(entry)
  return reference.described(entry.name) or nacre._info(entry.name)
end

function reference.page(page)
  local parts = {("# %s\n"):format(page.title)}
  if #page.about > 0 then
    parts[#parts + 1] = table.concat(page.about, "\n") .. "\n"
  end
  for _, says in ipairs(page.directives) do
    parts[#parts + 1] = ("<!--%s -->\n"):format(says)
  end
  for _, entry in ipairs(page.entries) do
    parts[#parts + 1] = ("## %s\n\n```text\n%s\n```\n\n```nacre\n%s\n```\n")
      :format(entry.name, reference.text(about(entry), false, WIDTH),
              entry.example)
  end
  return table.concat(parts, "\n")
end

local INDEX = [[
# Reference

Every operation and command, by subject; `?name` and `:help NAME` show the same
at the prompt. The pages are
written by the program: `nacre scripts/reference.lua docs/reference`.

In a formula `x` is a lone operand, `y` the result, `n` the number of elements,
and `g` the gradient of what is computed from the result. `where(c, a, b)` is a
where c holds, else b; `eq ne lt le gt ge` compare; `both` and `either` are
logical; `larger`, `smaller`, `absval`, `sgn` and `rint` are max, min, |x|, the
sign of x and x rounded to an integer; `lowest` and `highest` are the ends of
the dtype.

Dims and positions count from 1, from the end with -1. Operands are on one
device. A name_ form writes into self, which must have the shape and take the
dtype of the result.
]]

function reference.index()
  local parts = {INDEX}
  for _, page in ipairs(reference.pages()) do
    local names = {}
    for i, entry in ipairs(page.entries) do
      names[i] = ("[`%s`](%s.md#%s)"):format(entry.name, page.name,
        entry.name:lower():gsub("[^%w_-]", ""))
    end
    parts[#parts + 1] = ("## [%s](%s.md)\n\n%s\n"):format(page.title,
      page.name, wrapped(table.concat(names, " "), "", 100))
  end
  return table.concat(parts, "\n")
end

-- Every file of the reference: a list of {name, text}.
function reference.files()
  local list = {{name = "README.md", text = reference.index()}}
  for _, page in ipairs(reference.pages()) do
    list[#list + 1] = {name = page.name .. ".md", text = reference.page(page)}
  end
  return list
end

return reference
