# Decides which plug-ins are built: for CUDA devices (NACRE_WITH_CUDA) and for
# the emulated device (NACRE_WITH_EMULATED). Both are optional; one that cannot
# be built on this machine is skipped with a message. The top-level
# CMakeLists.txt includes this file, because a language must be enabled for the
# whole tree.
set(NACRE_CUDA AUTO CACHE STRING "build the plug-in for CUDA: AUTO (where \
there is a GPU), ON, OFF")
set_property(CACHE NACRE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(NACRE_CUDA_ARCH "$ENV{NACRE_CUDA_ARCH}" CACHE STRING "CUDA architectures, as 90 or 75-real;90; \
none: of the GPU that is there, else as many as it takes to run on any")
option(NACRE_CUDA_ALL "build for all architectures, compressed" OFF)
option(NACRE_EMULATED "build the plug-in with the emulated device"
  ${NACRE_OWN})

# Kernels take longer to compile than all the rest: where no GPU is, they are
# only compiled if somebody asks. ./bootstrap looks at the same files.
set(NACRE_GPU OFF)
foreach(sign /proc/driver/nvidia/version /dev/nvhost-gpu /dev/dxg)
  if(EXISTS ${sign})
    set(NACRE_GPU ON)
  endif()
endforeach()
if(NACRE_CUDA STREQUAL "AUTO" AND NACRE_OWN AND NOT NACRE_GPU
   AND NOT NACRE_CUDA_ARCH AND NOT NACRE_CUDA_ALL)
  set(NACRE_SKIP_CUDA ON)
  message(NOTICE "No GPU is here: the plug-in for CUDA is not built. For "
    "another machine: ./bootstrap build -DNACRE_CUDA=ON")
elseif(NACRE_CUDA STREQUAL "OFF")
  set(NACRE_SKIP_CUDA ON)
else()
  set(NACRE_SKIP_CUDA OFF)
endif()

# CMake searches for nvcc only in PATH, which often lacks the toolkit.
if(NOT NACRE_SKIP_CUDA)
  find_package(CUDAToolkit 12 QUIET)
  if(CUDAToolkit_FOUND AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(NACRE_NVCC nvcc HINTS ${CUDAToolkit_BIN_DIR}
      /usr/local/cuda/bin)
    if(NACRE_NVCC)
      set(CMAKE_CUDA_COMPILER ${NACRE_NVCC})
    endif()
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(NACRE_CUDA STREQUAL "ON" AND NOT
     (CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER))
    message(FATAL_ERROR "NACRE_CUDA is ON, but the CUDA Toolkit (12 or newer) "
      "was not found. Install it, set CUDAToolkit_ROOT, or leave NACRE_CUDA "
      "at AUTO.")
  endif()
endif()

set(NACRE_WITH_CUDA OFF)
if(NOT NACRE_SKIP_CUDA AND CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER
   AND NOT NACRE_SANITIZE)
  set(NACRE_WITH_CUDA ON)
  if(NACRE_CUDA_ARCH AND NOT NACRE_CUDA_ALL)
    set(CMAKE_CUDA_ARCHITECTURES ${NACRE_CUDA_ARCH})
  endif()
  set(CMAKE_CUDA_STANDARD 17)
  if(CMAKE_C_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
elseif(NOT NACRE_SKIP_CUDA)
  message(STATUS "The CUDA Toolkit was not found, or sanitizers are on: the "
    "plug-in for CUDA is left out")
endif()

# The build variants of the emulated device:
#   plain   fast; finds only accesses outside of all device memory
#   asan    AddressSanitizer and UBSan check kernels and host code
#   check   checks every access of kernels and of the plug-in's host code:
#           bounds, races, uninitialized memory, order of streams
set(NACRE_EMULATION_FLAVOUR plain CACHE STRING
  "how the emulated CUDA device watches memory: plain, asan or check")
set_property(CACHE NACRE_EMULATION_FLAVOUR PROPERTY STRINGS plain asan check)
if(NACRE_SANITIZE AND NOT NACRE_EMULATION_FLAVOUR STREQUAL "asan")
  message(STATUS "The emulated CUDA device is of the variant asan, as the "
    "whole program is")
  set(NACRE_EMULATION_FLAVOUR asan)
endif()
if(NACRE_EMULATION_FLAVOUR STREQUAL "asan" AND NOT NACRE_SANITIZE)
  message(FATAL_ERROR "The variant asan needs the whole program sanitized: "
    "-DNACRE_SANITIZE=ON")
endif()
if(NOT NACRE_EMULATION_FLAVOUR MATCHES "^(plain|asan|check)$")
  message(FATAL_ERROR "NACRE_EMULATION_FLAVOUR must be plain, asan or check, "
    "not ${NACRE_EMULATION_FLAVOUR}")
endif()

# nvcc contracts a*b+c to an FMA. Off by default: not every host has FMA.
option(NACRE_EMULATION_FMA "kernels of the emulated device round a*b+c once"
  OFF)

set(NACRE_WITH_EMULATED OFF)
if(NACRE_EMULATED)
  if(NOT CMAKE_CXX_COMPILER) # one that came since is looked for again
    unset(CMAKE_CXX_COMPILER CACHE)
  endif()
  include(CheckLanguage)
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    set(NACRE_WITH_EMULATED ON)
    enable_language(CXX)
  else()
    message(STATUS "No C++ compiler was found: the emulated CUDA device is "
      "left out")
  endif()
endif()
