-- SPDX-License-Identifier: MIT
--
-- mpi_build.lua - nacre --build-mpi: compiles the transport of
-- nacre.distributed with the MPI compiler of this machine. The program carries
-- its sources; a plug-in for one MPI does not work with another.

local files = require "nacre.files"
local host = require "nacre.host"

local mpi_build = {}

local quoted, write = files.quoted, files.write

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

-- Writes the sources below the folder; adds their paths to the list.
local function write_sources(folder, paths)
  for i, file in ipairs(host.mpi_sources()) do
    paths[i] = folder .. "/" .. file.name
    make_folder(paths[i]:match "^(.*)/")
    write(paths[i], file.text)
  end
end

-- A folder of this call alone: two may build beside each other, for two MPIs.
local function scratch_folder(folder)
  local unique = os.tmpname()
  os.remove(unique)
  local path = ("%s/build-%s"):format(folder, unique:match "[^/]*$")
  make_folder(path)
  return path
end

local function remove_scratch(scratch, paths)
  for _, path in ipairs(paths) do os.remove(path) end
  for _, path in ipairs(paths) do os.remove(path:match "^(.*)/") end
  os.remove(scratch)
end

-- Compiles the sources to this file.
local function compile(compiler, scratch, paths, to)
  local words = {compiler, "-std=gnu17 -O3 -shared -fPIC -fvisibility=hidden",
                 "-I" .. quoted(scratch), "-o", quoted(to)}
  for _, path in ipairs(paths) do
    if path:find "%.c$" then words[#words + 1] = quoted(path) end
  end
  if not os.execute(table.concat(words, " ") .. " -lpthread") then
    error("the MPI plug-in could not be built: " .. compiler .. " failed", 0)
  end
end

-- Builds in the scratch folder; the plug-in takes its name when it is whole.
local function build_in(scratch, paths, folder)
  local compiler = os.getenv "MPICC"
  compiler = compiler and compiler ~= "" and compiler or "mpicc"
  local kind = kind_of(compiler, scratch)
  write_sources(scratch, paths)
  local new = scratch .. "/" .. kind .. ".so"
  compile(compiler, scratch, paths, new)
  local path = ("%s/libnacre_%s.so"):format(folder, kind)
  assert(os.rename(new, path))
  return path
end

-- Builds the plug-in in this folder, or in that of the user's plug-ins.
function mpi_build.build(folder)
  folder = folder or host.plugin_folder() or error("there is no home folder", 0)
  local scratch, paths = scratch_folder(folder), {}
  local ok, path = pcall(build_in, scratch, paths, folder)
  remove_scratch(scratch, paths)
  if not ok then error(path, 0) end
  io.stdout:write(path, "\n")
end

return mpi_build
