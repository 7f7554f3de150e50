# The emulated CUDA device: its library in three flavours, and what compiles
# .cu files against it. Included by the top-level CMakeLists.txt.
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

enable_language(CXX)
set(EMULATION_DIR ${CMAKE_CURRENT_LIST_DIR})
set(EMULATION_SANITIZERS -fsanitize=address,undefined
  -fno-sanitize-recover=all -fno-omit-frame-pointer)

# The emulator itself is never instrumented: it may touch what it guards.
function(emulation_library flavour)
  set(target nacre_emulation_${flavour})
  if(TARGET ${target})
    return()
  endif()
  set(sources arena block copy cub cublas device event fiber gemm launch maths
    memory report settings stream warp shadow_${flavour})
  if(flavour STREQUAL "check")
    list(APPEND sources tsan)
  endif()
  list(TRANSFORM sources PREPEND ${EMULATION_DIR}/)
  list(TRANSFORM sources APPEND .c)
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}
    ${EMULATION_DIR}/include)
  target_compile_definitions(${target} PUBLIC NC_EMULATED)
  target_compile_options(${target} PRIVATE -O2 -g -fno-sanitize=all)
  target_link_libraries(${target} PUBLIC m)
  if(flavour STREQUAL "check")
    # Copies by code of the host go to the checker.
    target_link_options(${target} INTERFACE
      LINKER:--wrap=memcpy,--wrap=memmove,--wrap=memset)
  endif()
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
    INTERPROCEDURAL_OPTIMIZATION OFF)
endfunction()

# Makes the .cu files of a target C++, instruments all of the target as the
# flavour wants, and links the emulator.
function(emulate_cuda target flavour)
  emulation_library(${flavour})
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX
    COMPILE_OPTIONS "-x;c++")
  target_compile_features(${target} PRIVATE cxx_std_17)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions;-fno-rtti>)
  if(NACRE_EMULATION_FMA)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-mfma;-ffp-contract=fast>)
  endif()
  if(flavour STREQUAL "asan" AND NOT NACRE_SANITIZE)
    target_compile_options(${target} PRIVATE ${EMULATION_SANITIZERS})
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  elseif(flavour STREQUAL "check")
    # Copies by code of the host stay calls, which the linker can redirect.
    target_compile_options(${target} PRIVATE -fsanitize=thread
      $<$<COMPILE_LANGUAGE:C>:-fno-builtin-memcpy>
      $<$<COMPILE_LANGUAGE:C>:-fno-builtin-memmove>
      $<$<COMPILE_LANGUAGE:C>:-fno-builtin-memset>)
  endif()
  target_link_libraries(${target} PRIVATE nacre_emulation_${flavour})
  set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF
    POSITION_INDEPENDENT_CODE ON)
endfunction()
