-- SPDX-License-Identifier: MIT
-- The tables of equivalents in the guides are true: the Nacre cell of every
-- row runs, each with variables of its own.  With a folder as an argument,
-- the values of from-numpy.md are saved there, for equivalents_numpy.py.
local here = arg[0]:match "^(.*/)" or "./"
local guides = here .. "../docs/guide/"
local folder = arg[1]

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- The cells of a row of a table; a bar within backquotes divides nothing.
local function cells(line)
  local list, cell, quoted = {}, {}, false
  for c in line:gmatch "." do
    if c == "`" then quoted = not quoted end
    if c == "|" and not quoted then
      list[#list + 1] = table.concat(cell):match "^%s*(.-)%s*$"
      cell = {}
    else
      cell[#cell + 1] = c
    end
  end
  return { table.unpack(list, 2) }
end

local function variables(setup)
  nacre.manual_seed(1)
  local env = setmetatable({}, { __index = _G })
  assert(load(setup, "=setup", "t", env))()
  return env
end

-- Values that a cell gave, as tensors in files K.npy or text in K.txt.
local function keep(name, k, value)
  local path = ("%s/%d"):format(folder, k)
  if type(value) == "table" and type(value[1]) == "table" then
    value = nacre.tensor(value)
  end
  if nacre.is_tensor(value) then return nacre.save(path .. ".npy", value) end
  local file <close> = assert(io.open(path .. ".txt", "wb"))
  if type(value) == "table" then value = table.concat(value, ",") end
  file:write(tostring(value))
end

local quiet = { write = function() end }

local function run(name, setup, k, code)
  local env = variables(setup)
  local f = load("return " .. code, "=" .. name, "t", env) or
            assert(load(code, "=" .. name, "t", env))
  local stdout = io.stdout
  io.stdout = setmetatable({}, { __index = quiet })
  local ok, value = pcall(f)
  io.stdout = stdout
  assert(ok, ("%s: `%s`: %s"):format(name, code, tostring(value)))
  if folder and name == "from-numpy.md" then keep(name, k, value) end
end

local function check(name)
  local text = read(guides .. name)
  local setup = text:match "<!%-%- setup %-%->\n```lua\n(.-)```"
  assert(setup, name .. " has no setup")
  local rows = 0
  for line in text:gmatch "[^\n]+" do
    local row = line:find "^|" and cells(line)
    if row and row[2]:find "^`" then
      rows = rows + 1
      run(name, setup, rows, row[2]:match "^`(.*)`$")
    end
  end
  print(name, rows)
  return rows
end

local total = 0
for _, name in ipairs { "from-pytorch.md", "from-numpy.md",
                       "from-torch7.md" } do
  total = total + check(name)
end
assert(total > 150, "the tables have lost their rows")
for _, file in ipairs { "f.npy", "f.safetensors", "x.npy", "x.png" } do
  os.remove(file)
end
