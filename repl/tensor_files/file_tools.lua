-- SPDX-License-Identifier: MIT
--
-- file_tools.lua - the command lines of nacre --ls, --diff and --convert.

local host = require "nacre.host"

local file_tools = {}

local function tolerance(text)
  local x = tonumber(text)
  return x and x >= 0 and x < math.huge and x or nil
end

local function text(word) return word end

-- By tool: its help, its options (true: a switch; a function reads the value),
-- the numbers of files it takes, and its module.
local tools = {
  ls = {options = {stats = true, json = true}, least = 1, most = math.huge,
        module = "nacre.file_listing", help = [[
usage: nacre --ls [options] FILE...

Lists the tensors in files: names, dtypes, shapes, bytes.  The data are not read
where the format has a header.  A folder, or a file *.index.json, stands for
all its .safetensors files.

  --stats            least, greatest and mean value, and how many are nan
  --json             print JSON

Exit status: 0, or 2 after an error.
]]},
  diff = {options = {rtol = tolerance, atol = tolerance, json = true},
          defaults = {rtol = 0.0, atol = 0.0}, least = 2, most = 2,
          module = "nacre.file_difference", help = [[
usage: nacre --diff [options] A B

Compares two files tensor by tensor: names, dtypes, shapes and elements.  An
element of A is close if it differs from that of B by at most
atol + rtol * |B|; nan is close to nan only.

  --rtol X, --atol X tolerances (0)
  --json             print JSON

Exit status: 0 if all are equal or close, 1 if not, 2 after an error.
]]},
  convert = {options = {name = text, dtype = text, force = true}, least = 2,
             most = 2, module = "nacre.file_conversion", help = [[
usage: nacre --convert [options] FROM TO

Writes what a file holds in the format that the name of another one ends in.

  --name NAME        the tensor to write, where the new file holds only one;
                     the name of the tensor, where the old one has none
  --dtype T          convert the elements
  --force            replace a file

Exit status: 0, or 2 after an error.
]]},
}

local function complain(what)
  io.stderr:write("nacre: ", what, "\n")
end

-- Reads --name, --name VALUE or --name=VALUE at words[i] into o; returns the
-- index of the next word, or nil and what is wrong.
local function take_option(tool, words, i, o)
  local name, value = words[i]:match "^%-%-([%a-]+)=?(.*)$"
  local reader = name and tool.options[name]
  if not reader then
    local known = {}
    for option in pairs(tool.options) do known[#known + 1] = "--" .. option end
    local near = host.suggest(words[i], known)
    return nil, ("unknown option %s%s"):format(words[i],
      near and ", did you mean " .. near .. "?" or "")
  end
  local given = words[i]:find("=", 1, true)
  if reader == true then
    if given then return nil, words[i] .. ": --" .. name .. " has no value" end
    o[name] = true
    return i + 1
  end
  if not given then
    i = i + 1
    value = words[i]
  end
  o[name] = value and reader(value)
  if o[name] == nil then
    return nil, ("--%s needs a %s"):format(name, reader == text and "name" or
                                                 "number from 0")
  end
  return i + 1
end

-- The files and the options of a command line; nil and what is wrong.
local function parse(tool, words)
  local paths, o, i = {}, {}, 1
  for key, v in pairs(tool.defaults or {}) do o[key] = v end
  local ended
  while words[i] do
    local wrong
    if not ended and words[i] == "--" then
      ended, i = true, i + 1
    elseif not ended and words[i]:find "^%-." then
      i, wrong = take_option(tool, words, i, o)
      if not i then return nil, wrong end
    else
      paths[#paths + 1], i = words[i], i + 1
    end
  end
  if #paths < tool.least or #paths > tool.most then
    return nil, tool.least == 1 and "a file is needed" or
                ("two files are needed, not %d"):format(#paths)
  end
  return paths, o
end

-- The text of an error, with its hint.
local function message(e)
  if type(e) ~= "table" then return tostring(e) end
  local hint = e.hint and e.hint ~= "" and "\n  hint: " .. e.hint or ""
  return (e.message or tostring(e)) .. hint
end

-- Runs a tool with the words that follow its name; returns the exit status.
function file_tools.run(name, words)
  local tool = tools[name]
  if words[1] == "--help" or words[1] == "-h" then
    io.stdout:write(tool.help)
    return 0
  end
  local paths, o = parse(tool, words)
  if not paths then
    complain(o)
    io.stderr:write(tool.help:match "[^\n]*\n")
    return 2
  end
  local function tell(e) complain(message(e)) end
  local ok, status = pcall(require(tool.module).run, paths, o, tell)
  if ok then return status end
  tell(status)
  return 2
end

return file_tools
