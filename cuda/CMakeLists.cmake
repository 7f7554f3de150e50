# The plug-in for CUDA devices, and its twin whose device is emulated. Included
# by the top-level CMakeLists.txt. Neither is needed by the program, and what
# is missing on a machine is left out with a word.
set(NACRE_CUDA AUTO CACHE STRING "build the plug-in for CUDA: AUTO, ON, OFF")
set_property(CACHE NACRE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(NACRE_CUDA_ARCH "$ENV{NACRE_CUDA_ARCH}" CACHE STRING "CUDA architectures, as 90 or 75-real;90; \
none: of the GPU that is there, else as many as it takes to run on any")
option(NACRE_CUDA_ALL "build for all architectures, compressed" OFF)
option(NACRE_EMULATED "build the plug-in with the emulated device"
  ${NACRE_OWN})

include(${CMAKE_CURRENT_LIST_DIR}/sources.cmake)
set(CUDA_FOLDER ${CMAKE_CURRENT_LIST_DIR})
list(TRANSFORM CUDA_SOURCES PREPEND ${CUDA_FOLDER}/)
get_directory_property(CUDA_C_OPTIONS COMPILE_OPTIONS)

# Kernels as files to compile: `variable' lists them, `variable'_EXACT those of
# CUDA_EXACT. Each is a file of a line or two in `folder', since the properties
# of a file hold for all who compile it.
function(list_kernels variable folder types)
  foreach(entry ${CUDA_KERNELS} ${CUDA_TYPED})
    string(REGEX REPLACE ":.*" "" file ${entry})
    string(REGEX REPLACE "\\.cu$" "" name ${file})
    set(some ${types})
    if(entry MATCHES ":(.*)")
      string(REPLACE "," ";" some ${CMAKE_MATCH_1})
    endif()
    if(entry IN_LIST CUDA_KERNELS)
      set(some once)
    endif()
    foreach(type ${some})
      if(type STREQUAL "once")
        set(made ${folder}/${name}.cu)
        set(define "")
      elseif(type IN_LIST types)
        set(made ${folder}/${name}_${type}.cu)
        set(define "#define NC_TYPE ${type}\n")
      else()
        continue()
      endif()
      file(CONFIGURE OUTPUT ${made} @ONLY
        CONTENT "@define@#include \"@CUDA_FOLDER@/@file@\"\n")
      list(APPEND files ${made})
      if(file IN_LIST CUDA_EXACT)
        list(APPEND exact ${made})
      endif()
    endforeach()
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
  set(${variable}_EXACT ${exact} PARENT_SCOPE)
endfunction()

# ---- a real device
# The architectures: all; or those wanted; or, of a GPU that is there, its own;
# or one of each generation, which later ones of it run, too. What is not called
# real is also there as text, which drivers compile for what is newer. nvcc
# knows Blackwell from 12.8 on.
macro(choose_architectures)
  set(newest 90)
  set(newer "")
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
    set(newest 90-real 100-real 120)
    set(newer 120-real)
  endif()
  if(NACRE_CUDA_ALL)
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real ${newest})
  elseif(NACRE_CUDA_ARCH)
    set(CMAKE_CUDA_ARCHITECTURES ${NACRE_CUDA_ARCH})
  elseif(CMAKE_CUDA_ARCHITECTURES_NATIVE MATCHES "^[0-9]")
    set(CMAKE_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
  else()
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90 ${newer})
  endif()
  message(STATUS "CUDA code for ${CMAKE_CUDA_ARCHITECTURES}")
endmacro()

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

if(NOT NACRE_CUDA STREQUAL "OFF" AND CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER
   AND NOT NACRE_SANITIZE)
  if(NACRE_CUDA_ARCH AND NOT NACRE_CUDA_ALL)
    set(CMAKE_CUDA_ARCHITECTURES ${NACRE_CUDA_ARCH})
  endif()
  set(CMAKE_CUDA_STANDARD 17)
  if(CMAKE_C_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  choose_architectures()
  set(compress "")
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
    set(compress --compress-mode=size)
  endif()
  list_kernels(kernels ${PROJECT_BINARY_DIR}/cuda "${CUDA_TYPES}")
  add_library(nacre_cuda MODULE ${CUDA_SOURCES} ${kernels})
  string(REPLACE ";" " " architectures "${CMAKE_CUDA_ARCHITECTURES}")
  target_compile_definitions(nacre_cuda PRIVATE
    NC_ARCHITECTURES="${architectures}")
  target_include_directories(nacre_cuda PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(nacre_cuda SYSTEM PRIVATE
    ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(nacre_cuda PRIVATE CUDA::cudart_static
    ${CMAKE_DL_LIBS})
  target_link_options(nacre_cuda PRIVATE -Wl,--exclude-libs,ALL
    -Wl,-z,defs -static-libstdc++ -static-libgcc)
  set_target_properties(nacre_cuda PROPERTIES
    INTERPROCEDURAL_OPTIMIZATION OFF
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  # Instead of what the whole program is compiled with, which nvcc refuses. Its
  # host compiler sees code that nvcc has rewritten: warnings of that are of no
  # use.
  set(host -fvisibility=hidden -fno-exceptions -fno-rtti -fno-math-errno
    -fwrapv)
  list(JOIN host "," host)
  set(options -Werror=all-warnings ${compress} -Xcompiler=${host})
  # elsewhere CUDA's own division (sm_80) and CUB's sorts (sm_75) spill a little
  if(CMAKE_CUDA_ARCHITECTURES STREQUAL "90")
    list(APPEND options -Xptxas=-warn-spills)
  endif()
  set_property(TARGET nacre_cuda PROPERTY COMPILE_OPTIONS
    "$<$<COMPILE_LANGUAGE:C>:${CUDA_C_OPTIONS}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:${options}>")
  set_source_files_properties(${kernels_EXACT} PROPERTIES
    COMPILE_OPTIONS -fmad=false)
elseif(NOT NACRE_CUDA STREQUAL "OFF")
  message(STATUS "The CUDA Toolkit was not found, or sanitizers are on: the "
    "plug-in for CUDA is left out")
endif()

# ---- the emulated device
if(NACRE_EMULATED)
  include(CheckLanguage)
  check_language(CXX)
  if(NOT CMAKE_CXX_COMPILER)
    message(STATUS "No C++ compiler was found: the emulated CUDA device is "
      "left out")
  endif()
endif()
if(NACRE_EMULATED AND CMAKE_CXX_COMPILER)
  enable_language(CXX)
  include(${CUDA_FOLDER}/emulation/emulation.cmake)
  list_kernels(kernels ${PROJECT_BINARY_DIR}/cuda_emulated "${CUDA_TYPES}")
  # as objects, so that tests in C can have them without the plug-in
  add_library(nacre_cuda_emulated_parts OBJECT ${CUDA_SOURCES} ${kernels})
  set(options ${CUDA_C_OPTIONS})
  list(FILTER options EXCLUDE REGEX "prototypes$")
  set_property(TARGET nacre_cuda_emulated_parts PROPERTY COMPILE_OPTIONS
    "${options}")
  target_include_directories(nacre_cuda_emulated_parts PUBLIC
    ${PROJECT_SOURCE_DIR})
  # how fast it runs depends on the emulator more than on -O; the rows' text
  # compares integers with themselves
  set(options -O1 -Wno-unknown-pragmas -Wno-maybe-uninitialized
    -Wno-tautological-compare)
  target_compile_options(nacre_cuda_emulated_parts PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${options}>")
  emulate_cuda(nacre_cuda_emulated_parts ${NACRE_EMULATION_FLAVOUR})
  set_property(SOURCE ${kernels_EXACT} APPEND PROPERTY COMPILE_OPTIONS
    -ffp-contract=off)
  add_library(nacre_cuda_emulated MODULE
    $<TARGET_OBJECTS:nacre_cuda_emulated_parts>)
  set_target_properties(nacre_cuda_emulated PROPERTIES
    LINKER_LANGUAGE CXX
    INTERPROCEDURAL_OPTIMIZATION OFF
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(nacre_cuda_emulated PRIVATE
    nacre_emulation_${NACRE_EMULATION_FLAVOUR} ${CMAKE_DL_LIBS})
  target_link_options(nacre_cuda_emulated PRIVATE -Wl,--exclude-libs,ALL)
endif()
