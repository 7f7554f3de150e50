# Tests in C of the CUDA plug-in, on the emulated device. Included by
# tests.cmake.
#   ctest -L emulated
if(NOT TARGET PkgConfig::CMOCKA)
  return()
endif()

function(add_c_program name)
  add_executable(${name} ${TESTS}/unit/${name}.c ${ARGN})
  target_link_libraries(${name} PRIVATE nacre_core_apart PkgConfig::CMOCKA)
  set_target_properties(${name} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()

# ---- finding a plug-in, and a driver
add_library(fakecuda MODULE ${TESTS}/unit/fakecuda.c)
set_target_properties(fakecuda PROPERTIES C_VISIBILITY_PRESET default
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
target_compile_options(fakecuda PRIVATE -fvisibility=default)
add_library(nodriver MODULE ${PROJECT_SOURCE_DIR}/core/base/dtype.c)
target_include_directories(nodriver PRIVATE ${PROJECT_SOURCE_DIR})
set_target_properties(nodriver PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

set(plugin "")
if(TARGET nacre_cuda_emulated)
  set(plugin $<TARGET_FILE:nacre_cuda_emulated>)
endif()
add_c_program(test_plugin)
add_nacre_test(unit_plugin quick test_plugin $<TARGET_FILE:fakecuda>
  ${plugin})
add_c_program(test_cuda_probe ${PROJECT_SOURCE_DIR}/cuda/runtime/probe.c)
add_nacre_test(unit_cuda_probe quick test_cuda_probe
  $<TARGET_FILE:fakecuda> $<TARGET_FILE:nodriver>)

add_c_program(test_cuda_libraries ${PROJECT_SOURCE_DIR}/cuda/runtime/libraries.c)
add_nacre_test(unit_cuda_libraries quick test_cuda_libraries
  $<TARGET_FILE:fakecuda>)

if(NOT TARGET nacre_cuda_emulated)
  return()
endif()

# A program with all of the plug-in and the emulator in it: tests/unit/NAME.c.
function(add_cuda_program name)
  add_c_program(${name} $<TARGET_OBJECTS:nacre_cuda_emulated_parts>)
  target_link_libraries(${name} PRIVATE
    nacre_emulation_${NACRE_EMULATION_FLAVOUR})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX
    INTERPROCEDURAL_OPTIMIZATION OFF)
endfunction()

# The test NAME_MODE: the program, with levers of the emulator.
function(add_cuda_test program mode levers)
  string(REPLACE "test_" "unit_" name ${program})
  add_nacre_test(${name}_${mode} emulated ${program})
  set_tests_properties(${name}_${mode} PROPERTIES
    ENVIRONMENT "NACRE_EMULATION=${levers}")
endfunction()

foreach(name memory copy streams failures leaves sort calls)
  add_cuda_program(test_cuda_${name})
endforeach()
add_cuda_test(test_cuda_memory lazy memory=128M)
add_cuda_test(test_cuda_calls eager streams=eager)
add_cuda_test(test_cuda_streams lazy devices=2)
add_cuda_test(test_cuda_copy eager devices=1)
add_cuda_test(test_cuda_copy random "devices=2,streams=random,seed=3")
add_cuda_test(test_cuda_copy lazy "devices=4,streams=lazy")
add_cuda_test(test_cuda_copy apart "devices=4,peer=0,streams=lazy")
foreach(mode eager lazy random)
  add_cuda_test(test_cuda_failures ${mode} "devices=2,fill=0,streams=${mode}")
endforeach()
foreach(name leaves sort)
  add_cuda_test(test_cuda_${name} eager streams=eager)
  add_cuda_test(test_cuda_${name} random "streams=random,order=random,seed=5")
  add_cuda_test(test_cuda_${name} reversed "streams=lazy,order=reversed")
endforeach()
foreach(name run folds)
  add_cuda_program(test_cuda_${name})
  add_cuda_test(test_cuda_${name} eager "order=reversed")
  add_cuda_test(test_cuda_${name} random
    "streams=random,order=random,seed=5")
endforeach()
