# Tests. Included by the top-level CMakeLists.txt.
#   ctest -L quick    what runs in seconds
#   ctest -L slow     the rest
set(TESTS ${CMAKE_CURRENT_LIST_DIR})

function(add_nacre_test name label)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS ${label}
    SKIP_RETURN_CODE 77 TIMEOUT 600)
endfunction()

# ---- scripts that the program runs
if(TARGET nacre)
  foreach(name ops layouts folds promotion torch_rules reduce args create view
      index matmul random npy display errors)
    if(EXISTS ${TESTS}/${name}.lua)
      add_nacre_test(${name} quick $<TARGET_FILE:nacre> ${TESTS}/${name}.lua)
    endif()
  endforeach()
  foreach(name boundary oom collect)
    add_nacre_test(${name} slow $<TARGET_FILE:nacre> ${TESTS}/${name}.lua)
  endforeach()
  set_tests_properties(collect PROPERTIES RUN_SERIAL ON) # reads /proc/self
endif()

# ---- scripts that run the program
find_package(Python3 COMPONENTS Interpreter)
if(TARGET nacre AND Python3_FOUND)
  foreach(name diff_numpy npy_numpy test_interrupt)
    add_nacre_test(${name} slow ${Python3_EXECUTABLE} ${TESTS}/${name}.py
      $<TARGET_FILE:nacre>)
  endforeach()
  set_tests_properties(test_interrupt PROPERTIES RUN_SERIAL ON) # sends signals
  foreach(name batch test_shell)
    if(EXISTS ${TESTS}/shell/${name}.py)
      add_nacre_test(shell_${name} slow ${Python3_EXECUTABLE}
        ${TESTS}/shell/${name}.py $<TARGET_FILE:nacre>)
    endif()
  endforeach()
elseif(NOT Python3_FOUND)
  message(STATUS "Python 3 was not found: the tests of the shell and against "
    "NumPy are left out")
endif()

# ---- the sources
add_nacre_test(layers quick ${TESTS}/layers.sh ${CMAKE_SOURCE_DIR})
add_nacre_test(layers_self_test quick ${TESTS}/layers.sh --self-test
  ${CMAKE_SOURCE_DIR})

# ---- C, where Lua does not reach
if(PkgConfig_FOUND)
  pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
endif()
if(TARGET PkgConfig::CMOCKA)
  foreach(name file npy save)
    if(EXISTS ${TESTS}/unit/test_${name}.c)
      add_executable(test_${name} ${TESTS}/unit/test_${name}.c)
      target_link_libraries(test_${name} PRIVATE nacre_core PkgConfig::CMOCKA)
      set_target_properties(test_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
      add_nacre_test(unit_${name} quick test_${name})
    endif()
  endforeach()
else()
  message(STATUS "cmocka was not found (Debian: libcmocka-dev): the unit "
    "tests in C are left out")
endif()
