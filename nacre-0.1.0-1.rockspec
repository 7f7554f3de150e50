-- The module for Lua as a rock: luarocks make. It needs a C compiler and CMake.
rockspec_format = "3.0"
package = "nacre"
version = "0.1.0-1"
source = {
  url = "git+https://localhost/nacre.git",
}
description = {
  summary = "Tensors with gradients, networks and files",
  detailed = [[
Operations under PyTorch's names on the CPU and on CUDA devices, gradients,
networks and optimizers, files of NumPy, PyTorch and HDF5. The same library as in
the interactive shell of that name.]],
  license = "MIT",
}
dependencies = {
  "lua >= 5.4, < 5.5",
}
build = {
  type = "cmake",
  variables = {
    CMAKE_BUILD_TYPE = "Release",
    CMAKE_INSTALL_PREFIX = "$(PREFIX)",
    NACRE_LUA_CMODDIR = "$(LIBDIR)",
    LUA_INCLUDE_DIR = "$(LUA_INCDIR)",
    NACRE_PROGRAM = "OFF",
    NACRE_LIBRARY = "OFF",
    NACRE_EMULATED = "OFF",
    BUILD_TESTING = "OFF",
  },
}
