-- SPDX-License-Identifier: MIT
--
-- file_tools.lua - the command lines of nacre --ls, --diff and --convert.

local readers = require "nacre.value_readers"

local file_tools = {}

local function tolerance(text)
  local x = tonumber(text)
  return x and x >= 0 and x < math.huge and x or nil
end

local function name_of(field) return {field, readers.text, "a name"} end

local function tolerance_of(field)
  return {field, tolerance, "a number from 0"}
end

-- By tool: its help, its options, rows of command_line.lua, the numbers of
-- files it takes, and its module.
local tools = {
  ls = {options = {["--stats"] = {"stats", true}, ["--json"] = {"json", true}},
        least = 1, most = math.huge,
        module = "nacre.file_listing", help = [[
usage: nacre --ls [options] FILE...

Lists the tensors in files: names, dtypes, shapes, bytes.  The data are not read
where the format has a header.  A folder, or a file *.index.json, stands for
all its .safetensors files.

  --stats            least, greatest and mean value, and how many are nan
  --json             print JSON

Exit status: 0, or 2 after an error.
]]},
  diff = {options = {["--rtol"] = tolerance_of "rtol",
                     ["--atol"] = tolerance_of "atol",
                     ["--json"] = {"json", true}},
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
  convert = {options = {["--name"] = name_of "name",
                        ["--dtype"] = name_of "dtype",
                        ["--force"] = {"force", true}},
             least = 2, most = 2, module = "nacre.file_conversion", help = [[
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

-- The files and the options of a command line; nil and what is wrong.
local function parse(tool, words)
  local o = {}
  for key, v in pairs(tool.defaults or {}) do o[key] = v end
  local paths, wrong = require "nacre.command_line".read(words, tool.options,
                                                         o)
  if wrong then return nil, wrong end
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
