-- SPDX-License-Identifier: MIT
--
-- mpi_build.lua - nacre --build-mpi: compiles the transport of
-- nacre.distributed with the MPI compiler of this machine. The program carries
-- its sources; a plug-in for one MPI does not work with another.

local host = require "nacre.host"

local mpi_build = {}

-- The word for the shell.
local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function write(path, text)
  local ok, why = host.write_file(path, text)
  if not ok then error("cannot write " .. why, 0) end
end

local function make_folder(path)
  local ok, why = host.makefolders(path)
  if not ok then error("cannot make " .. why, 0) end
end

-- What the preprocessor makes of this names the MPI of a compiler.
local PROBE = [[
#include <mpi.h>
#if defined(OPEN_MPI)
the_mpi_is openmpi
#elif defined(MPICH_VERSION) || defined(MPICH_NUMVERSION) || \
  defined(MPICH_NAME) || defined(I_MPI_VERSION) || defined(MVAPICH2_VERSION)
the_mpi_is mpich
#else
the_mpi_is mpi
#endif
]]

-- "openmpi", "mpich" or, for another one, "mpi".
local function kind_of(compiler, folder)
  local path = folder .. "/probe.c"
  write(path, PROBE)
  local pipe = io.popen(("%s -E %s 2>&1"):format(compiler, quoted(path)))
  local text = pipe:read "a"
  local ok = pipe:close()
  os.remove(path)
  local kind = text:match "\nthe_mpi_is (%w+)"
  if not ok or not kind then
    error(("the MPI compiler does not work: %s\n%s\n  hint: install one " ..
           "(Debian: libopenmpi-dev or libmpich-dev), or name it in MPICC")
          :format(compiler, text:sub(1, 2000)), 0)
  end
  return kind
end

-- Writes the sources below the folder; gives those to be compiled.
local function write_sources(folder)
  local list = {}
  for _, file in ipairs(host.mpi_sources()) do
    local path = folder .. "/" .. file.name
    make_folder(path:match "^(.*)/")
    write(path, file.text)
    if path:find "%.c$" then list[#list + 1] = quoted(path) end
  end
  return table.concat(list, " ")
end

-- Builds the plug-in in this folder, or in that of the user's plug-ins.
function mpi_build.build(folder)
  folder = folder or host.plugin_folder() or error("there is no home folder", 0)
  local source = folder .. "/mpi-source"
  local compiler = os.getenv "MPICC"
  compiler = compiler and compiler ~= "" and compiler or "mpicc"
  make_folder(source)
  local kind = kind_of(compiler, source)
  local files = write_sources(source)
  local path = ("%s/libnacre_%s.so"):format(folder, kind)
  local command = ("%s -std=gnu17 -O3 -shared -fPIC -fvisibility=hidden -I%s "
                   .. "-o %s %s -lpthread"):format(compiler, quoted(source),
                   quoted(path .. ".new"), files)
  if not os.execute(command) then
    error("the MPI plug-in could not be built: " .. compiler .. " failed", 0)
  end
  assert(os.rename(path .. ".new", path))
  io.stdout:write(path, "\n")
end

return mpi_build
