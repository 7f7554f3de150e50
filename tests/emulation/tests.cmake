# Tests of the emulated CUDA device itself. Included by tests/tests.cmake after
# cuda/emulation/CMakeLists.txt.
set(EMULATION_TESTS ${CMAKE_CURRENT_LIST_DIR})

# The whole program is sanitized or nothing of it: so asan alone, or all.
set(flavours plain asan check)
if(NACRE_SANITIZE)
  set(flavours asan)
endif()

# A program of the given sources, in each of the flavours.
function(add_emulation_program name)
  list(TRANSFORM ARGN PREPEND ${EMULATION_TESTS}/)
  foreach(flavour ${flavours})
    set(target emulation_${name}_${flavour})
    add_executable(${target} ${ARGN})
    set_target_properties(${target} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_compile_options(${target} PRIVATE -O1 -g)
    emulate_cuda(${target} ${flavour})
  endforeach()
endfunction()

# A test of it in each flavour; `levers' may be empty.
function(add_emulation_test name program levers)
  foreach(flavour ${flavours})
    add_nacre_test(emulation_${name}_${flavour} quick
      emulation_${program}_${flavour})
    set_tests_properties(emulation_${name}_${flavour} PROPERTIES
      ENVIRONMENT "NACRE_EMULATION=${levers}")
  endforeach()
endfunction()

# What holds on a real device holds here, in whatever order things run.
add_emulation_program(functional functional.c functional.cu)
add_emulation_test(functional_eager functional
  "memory=64M,order=sequential,streams=eager,devices=1")
add_emulation_test(functional_lazy functional
  "memory=64M,order=reversed,streams=lazy,devices=2")
add_emulation_test(functional_random functional
  "memory=64M,order=random,streams=random,devices=4,seed=5")
add_emulation_test(functional_open functional
  "memory=64M,order=random,streams=lazy,devices=2,seed=6,protect=off")

add_emulation_program(levers levers.c levers.cu)
add_emulation_test(levers levers "")
add_emulation_program(products products.c conform_blas.cu)
add_emulation_test(products_eager products "memory=16M")
add_emulation_test(products_lazy products "memory=16M,streams=lazy")
add_emulation_test(products_parts products "memory=16M,ulps=1")
add_emulation_program(cub cub.cu conform_cub.cu)
add_emulation_test(cub_eager cub "memory=16M")
add_emulation_test(cub_lazy cub "memory=16M,streams=lazy")

# The same in a library that is opened late.
foreach(flavour ${flavours})
  if(flavour STREQUAL "asan" AND NOT NACRE_SANITIZE)
    continue()   # its program would have to be sanitized
  endif()
  set(target emulation_plugin_${flavour})
  add_library(${target} MODULE ${EMULATION_TESTS}/plugin.cu)
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  emulate_cuda(${target} ${flavour})
  if(NOT TARGET emulation_loader)
    add_executable(emulation_loader ${EMULATION_TESTS}/loader.c)
    set_target_properties(emulation_loader PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_include_directories(emulation_loader PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(emulation_loader PRIVATE ${CMAKE_DL_LIBS})
  endif()
  add_nacre_test(emulation_plugin_${flavour} quick emulation_loader
    $<TARGET_FILE:${target}>)
endforeach()

# Seeded defects are found again.
list(REMOVE_ITEM flavours plain)
add_emulation_program(defects defects.c defects_memory.cu defects_race.cu
  defects_stream.cu defects_cub.cu controls.cu)
foreach(flavour ${flavours})
  add_nacre_test(emulation_defects_${flavour} quick
    emulation_defects_${flavour} ${flavour})
  # Names of functions take seconds to find, and no one reads them here.
  set_tests_properties(emulation_defects_${flavour} PROPERTIES
    ENVIRONMENT ASAN_OPTIONS=symbolize=0)
endforeach()

# The API is NVIDIA's; that this compiles is the test.
find_package(CUDAToolkit 12 QUIET)
if(CUDAToolkit_FOUND)
  add_library(emulation_conform OBJECT ${EMULATION_TESTS}/conform.c)
  target_include_directories(emulation_conform PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(emulation_conform SYSTEM PRIVATE
    ${CUDAToolkit_INCLUDE_DIRS})
else()
  message(STATUS "The CUDA Toolkit was not found: the emulated device is not "
    "held against NVIDIA's headers")
endif()

# What CUB is, nvcc alone can read.
if(TARGET nacre_cuda)
  set(made ${PROJECT_BINARY_DIR}/tests/conform_cub.cu)
  file(CONFIGURE OUTPUT ${made} @ONLY
    CONTENT "#include \"@EMULATION_TESTS@/conform_cub.cu\"\n")
  add_library(emulation_conform_cub OBJECT ${made})
  set_property(TARGET emulation_conform_cub PROPERTY COMPILE_OPTIONS
    -Werror=all-warnings)
endif()
