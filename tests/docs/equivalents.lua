-- SPDX-License-Identifier: MIT
-- The tables of equivalents in the guides are true: the Nacre cell of every
-- row runs, each with variables of its own.
-- Usage: equivalents.lua [PAGE...] [FOLDER]
-- With a folder, the values of each row are saved there for
-- equivalents_python.py, and the tensors of the setup beside them.
local here = arg[0]:match "^(.*/)" or "./"
local guides = here .. "../../docs/guide/"
local pages, folder = {}, nil
for _, word in ipairs(arg) do
  if word:find "%.md$" then pages[#pages + 1] = word else folder = word end
end
if #pages == 0 then
  pages = {"from-python.md", "from-pytorch.md", "from-numpy.md",
           "from-torch7.md", "files.md"}
end

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
  return {table.unpack(list, 2)}
end

local function variables(setup)
  nacre.manual_seed(1)
  local env = setmetatable({}, {__index = _G})
  assert(load(setup, "=setup", "t", env))()
  return env
end

-- One value of a cell, as a tensor in PATH.npy or as text in PATH.txt.
local function keep(path, value)
  local numbers = type(value) == "table" and
    pcall(function() value = nacre.tensor(value) end)
  if numbers or nacre.is_tensor(value) then
    if value.dtype == "bfloat16" then value = value:float() end -- as .npy asks
    return nacre.save(path .. ".npy", value)
  end
  local file <close> = assert(io.open(path .. ".txt", "wb"))
  file:write(tostring(value))
end

-- A table of tensors counts as that many values.
local function keepall(path, values)
  local list = {}
  for k = 1, values.n do
    local value = values[k]
    if type(value) == "table" and nacre.is_tensor(rawget(value, 1)) then
      table.move(value, 1, #value, #list + 1, list)
    else
      list[#list + 1] = value == nil and "nil" or value
    end
  end
  for k, value in ipairs(list) do keep(("%s.%d"):format(path, k), value) end
end

local quiet = {write = function() end}

-- As at the prompt, the value is that of the last expression.
local function compile(name, code, env)
  local value = code:gsub("^local [%a, ]+ = ", "")
  return load("return " .. value, "=" .. name, "t", env) or
         load(code:gsub("^(.*; )", "%1return "), "=" .. name, "t", env) or
         assert(load(code, "=" .. name, "t", env))
end

local function run(name, setup, k, code)
  local env = variables(setup)
  local f = compile(name, code, env)
  env.print = quiet.write
  local stdout = io.stdout
  io.stdout = setmetatable({}, {__index = quiet})
  local values = table.pack(pcall(f))
  io.stdout = stdout
  nacre.set_default_dtype "float32"
  nacre.set_default_device "cpu"
  assert(values[1], ("%s: `%s`: %s"):format(name, code, tostring(values[2])))
  if folder then
    values = table.pack(table.unpack(values, 2, values.n))
    keepall(("%s/%d"):format(folder, k), values)
  end
end

-- What a cell says, apart from settings of the environment.
local function code(cell)
  local text = cell and cell:match "^`(.*)`$"
  if not text or text:find "^NACRE_[A-Z_]*=" then return nil end
  return (text:gsub("`, `", ", "))
end

local function check(name)
  local text = read(guides .. name)
  local setup = text:match "<!%-%- setup %-%->\n```lua\n(.-)```" or
                text:match "<!%-%- setup\n(.-)%-%->"
  assert(setup, name .. " has no setup")
  if folder then
    for key, value in next, variables(setup) do
      if nacre.is_tensor(value) then keep(folder .. "/" .. key, value) end
    end
  end
  local rows, table_row = 0, 0
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    table_row = line:find "^|" and table_row + 1 or 0
    local cell = table_row > 2 and code(cells(line)[2])
    if cell then
      rows = rows + 1
      run(name, setup, rows, cell)
    end
  end
  assert(rows > 5, name .. " has lost its rows")
  print(name, rows)
  return rows
end

local total = 0
for _, name in ipairs(pages) do total = total + check(name) end
assert(total > 150 or #arg > 0, "the tables have lost their rows")
if not folder then
  for _, file in ipairs {"d.npz", "f.npy", "f.safetensors", "l.npz", "w.npy",
                         "x.csv", "x.npy", "x.png", "x.safetensors"} do
    os.remove(file)
  end
end
