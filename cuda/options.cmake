# Which plug-ins can be built here: for CUDA devices (NACRE_WITH_CUDA) and for
# the emulated one (NACRE_WITH_EMULATED). Neither is needed by the program, and
# what is missing on a machine is left out with a message. Included by the
# top-level CMakeLists.txt, since a language must be enabled for the whole tree.
set(NACRE_CUDA AUTO CACHE STRING "build the plug-in for CUDA: AUTO, ON, OFF")
set_property(CACHE NACRE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(NACRE_CUDA_ARCH "$ENV{NACRE_CUDA_ARCH}" CACHE STRING "CUDA architectures, as 90 or 75-real;90; \
none: of the GPU that is there, else as many as it takes to run on any")
option(NACRE_CUDA_ALL "build for all architectures, compressed" OFF)
option(NACRE_EMULATED "build the plug-in with the emulated device"
  ${NACRE_OWN})

# CMake looks for nvcc in the path only; the toolkit is often beside it.
if(NOT NACRE_CUDA STREQUAL "OFF")
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
if(NOT NACRE_CUDA STREQUAL "OFF" AND CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER
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
elseif(NOT NACRE_CUDA STREQUAL "OFF")
  message(STATUS "The CUDA Toolkit was not found, or sanitizers are on: the "
    "plug-in for CUDA is left out")
endif()

# The flavours of the emulated device:
#   plain   fast, sees only what leaves memory altogether
#   asan    AddressSanitizer and UBSan watch kernels and host code
#   check   every access of kernels, and of host code of the plug-in, is
#           judged: bounds, races, initialisation, order of streams
set(NACRE_EMULATION_FLAVOUR plain CACHE STRING
  "how the emulated CUDA device watches memory: plain, asan or check")
set_property(CACHE NACRE_EMULATION_FLAVOUR PROPERTY STRINGS plain asan check)
if(NACRE_SANITIZE AND NOT NACRE_EMULATION_FLAVOUR STREQUAL "asan")
  message(STATUS "The emulated CUDA device is of the flavour asan, as the "
    "whole program is")
  set(NACRE_EMULATION_FLAVOUR asan)
endif()
if(NACRE_EMULATION_FLAVOUR STREQUAL "asan" AND NOT NACRE_SANITIZE)
  message(FATAL_ERROR "The flavour asan needs the whole program sanitized: "
    "-DNACRE_SANITIZE=ON")
endif()
if(NOT NACRE_EMULATION_FLAVOUR MATCHES "^(plain|asan|check)$")
  message(FATAL_ERROR "NACRE_EMULATION_FLAVOUR must be plain, asan or check, "
    "not ${NACRE_EMULATION_FLAVOUR}")
endif()

# nvcc contracts a*b+c. Off, for the host may have no such instruction.
option(NACRE_EMULATION_FMA "kernels of the emulated device round a*b+c once"
  OFF)

set(NACRE_WITH_EMULATED OFF)
if(NACRE_EMULATED)
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
