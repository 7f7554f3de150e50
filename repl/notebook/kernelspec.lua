-- SPDX-License-Identifier: MIT
--
-- kernelspec.lua - nacre --install-kernel: the files by which Jupyter finds the
-- program.

local host = require "nacre.host"
local json = require "nacre.json"
local process = require "nacre.process"
local write = require "nacre.files".write

local kernelspec = {}

local LOGO = [[
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">
  <circle cx="32" cy="32" r="30" fill="#24476b"/>
  <path d="M42 12a22 22 0 1 0 10 30A18 18 0 0 1 42 12z" fill="#f4efe6"/>
  <circle cx="43" cy="27" r="6" fill="#e7c6d4"/>
</svg>
]]

local function variable(name)
  local value = os.getenv(name)
  return value ~= "" and value or nil
end

-- Where Jupyter looks for what a user has installed.
local function users_folder()
  local own = variable "JUPYTER_DATA_DIR"
  if own then return own end
  local home = variable "HOME"
  local data = variable "XDG_DATA_HOME" or home and home .. "/.local/share"
  return data and data .. "/jupyter" or error("there is no home folder", 0)
end

-- Below prefix, such as /usr/local or that of a Python environment; nil: for
-- the user alone.
function kernelspec.install(prefix)
  local data = prefix and prefix .. "/share/jupyter" or users_folder()
  local folder = data .. "/kernels/nacre"
  local ok, why = host.makefolders(folder)
  if not ok then error("cannot make " .. why, 0) end
  local program = process.real_path "/proc/self/exe" or "nacre"
  write(folder .. "/kernel.json", json.encode {
    argv = {program, "--kernel", "{connection_file}"},
    display_name = "Nacre", language = "lua",
    metadata = {debugger = false}})
  write(folder .. "/logo-svg.svg", LOGO)
  io.stdout:write(folder, "\n")
end

return kernelspec
