# Tests. Included by the top-level CMakeLists.txt.
#   ctest -L quick    what runs in seconds
#   nacre --test tests/nacre    the sessions alone
#   ctest -L slow     the rest
set(TESTS ${CMAKE_CURRENT_LIST_DIR})

function(add_nacre_test name label)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS ${label}
    SKIP_RETURN_CODE 77 TIMEOUT 1800)
endfunction()

# ---- scripts that the program runs
foreach(name ops layouts folds promotion torch_rules reduce args create view
    index assign pick shape orders turned matmul random distribution npy
    archives texts display display_values
    errors grad_rows grad_families grad_public timestats timing
    einsum linalg nn norms conv
    dry watch summary sort scan special png pictures equivalents indices aliasing
    fuzz_calls fuzz_files serialize vocabulary forms namefields suggest)
  add_nacre_test(${name} quick $<TARGET_FILE:nacre> ${TESTS}/${name}.lua)
endforeach()
foreach(name grad_elements grad_arguments tables errorvalues bytes
    addmethods cycles) # what Lua sees
  add_nacre_test(${name} quick $<TARGET_FILE:nacre> ${TESTS}/${name}.lua)
endforeach()
foreach(name bounds casts sortvalues) # numbers and their types
  add_nacre_test(${name} quick $<TARGET_FILE:nacre> ${TESTS}/${name}.lua)
endforeach()
foreach(name boundary oom autograd collect)
  add_nacre_test(${name} slow $<TARGET_FILE:nacre> ${TESTS}/${name}.lua)
endforeach()
set_tests_properties(collect PROPERTIES RUN_SERIAL ON) # reads /proc/self
foreach(name tour digits autograd)
  add_nacre_test(script_${name} quick
    $<TARGET_FILE:nacre> ${PROJECT_SOURCE_DIR}/scripts/${name}.lua)
endforeach()

# ---- sessions, also those of the documentation, and *_test.lua
add_nacre_test(sessions quick $<TARGET_FILE:nacre> --test ${TESTS}/nacre)
add_nacre_test(documentation quick $<TARGET_FILE:nacre> --test
  ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/docs)

# ---- the reference: its examples, and that it is whole and current
add_nacre_test(reference_examples quick $<TARGET_FILE:nacre> --test
  ${PROJECT_SOURCE_DIR}/repl/reference)
foreach(name reference refusals surplus)
  add_nacre_test(${name} quick $<TARGET_FILE:nacre> ${TESTS}/${name}.lua)
endforeach()

# The loops of lesser machines, and products without a BLAS.
foreach(level v2 v3)
  foreach(name ops folds random casts)
    add_nacre_test(${name}_${level} slow
      $<TARGET_FILE:nacre> ${TESTS}/${name}.lua)
    set_tests_properties(${name}_${level} PROPERTIES
      ENVIRONMENT NACRE_CPU_LEVEL=${level})
  endforeach()
endforeach()
add_nacre_test(matmul_noblas quick $<TARGET_FILE:nacre> ${TESTS}/matmul.lua)
set_tests_properties(matmul_noblas PROPERTIES ENVIRONMENT NACRE_BLAS=none)

# ---- scripts that run the program, with a Python that has the module
function(find_python_with module variable)
  foreach(python python3 /usr/bin/python3)
    execute_process(COMMAND ${python} -c "import ${module}"
      RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
    if(missing EQUAL 0)
      set(${variable} ${python} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${variable} "" PARENT_SCOPE)
  message(STATUS "No Python 3 has ${module}: the tests that need it are "
    "left out")
endfunction()
find_python_with(sys PYTHON)
find_python_with(numpy PYTHON_NUMPY)
find_python_with(pexpect PYTHON_PEXPECT)
find_python_with(torch PYTHON_TORCH)
if(PYTHON)
  add_nacre_test(runner quick ${PYTHON} ${TESTS}/test_runner.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(hints slow ${PYTHON} ${TESTS}/test_hints.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(saved_tests quick ${PYTHON} ${TESTS}/test_save.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(project_tests quick ${PYTHON} ${TESTS}/test_project.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(lost_tests quick ${PYTHON} ${TESTS}/test_units.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(save_signals quick ${PYTHON} ${TESTS}/test_save_signals.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(fuzz_signals quick ${PYTHON} ${TESTS}/fuzz_signals.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(replaced quick ${PYTHON} ${TESTS}/test_replaced.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(streams quick ${PYTHON} ${TESTS}/test_streams.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(history_file quick ${PYTHON} ${TESTS}/test_history_file.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(shell_batch slow ${PYTHON} ${TESTS}/shell/batch.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(what_is_written quick ${PYTHON} ${TESTS}/documentation.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(shell_matrix slow ${PYTHON} ${TESTS}/shell/matrix.py
    $<TARGET_FILE:nacre>)
  add_nacre_test(interrupt slow ${PYTHON} ${TESTS}/test_interrupt.py
    $<TARGET_FILE:nacre>)
  set_tests_properties(interrupt PROPERTIES RUN_SERIAL ON) # sends signals
endif()
if(PYTHON_NUMPY)
  foreach(name diff_numpy npy_numpy files_numpy)
    add_nacre_test(${name} slow ${PYTHON_NUMPY} ${TESTS}/${name}.py
      $<TARGET_FILE:nacre>)
  endforeach()
  add_nacre_test(equivalents_numpy slow ${PYTHON_NUMPY}
    ${TESTS}/equivalents_python.py $<TARGET_FILE:nacre> numpy)
endif()
if(PYTHON_TORCH)
  add_nacre_test(equivalents_torch slow ${PYTHON_TORCH}
    ${TESTS}/equivalents_python.py $<TARGET_FILE:nacre> torch)
  add_nacre_test(diff_torch slow ${PYTHON_TORCH} ${TESTS}/diff_torch.py
    $<TARGET_FILE:nacre> --seed 1 --cases 1500)
  add_nacre_test(autograd_torch slow ${PYTHON_TORCH}
    ${TESTS}/autograd_torch.py $<TARGET_FILE:nacre>)
  add_nacre_test(opinfo_torch slow ${PYTHON_TORCH} ${TESTS}/opinfo_torch.py
    $<TARGET_FILE:nacre> --seed 1 --cases 3000)
endif()
if(PYTHON_PEXPECT)
  add_nacre_test(pictures_terminal slow ${PYTHON_PEXPECT}
    ${TESTS}/shell/pictures.py $<TARGET_FILE:nacre>)
  foreach(name shell signals history commands keys completion debug timing
    samples pitfalls)
    add_nacre_test(terminal_${name} slow ${PYTHON_PEXPECT}
      ${TESTS}/shell/test_${name}.py $<TARGET_FILE:nacre>)
    set_tests_properties(terminal_${name} PROPERTIES RUN_SERIAL ON # keys in time
      ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  endforeach()
  add_nacre_test(terminal_budgets slow ${PYTHON_PEXPECT}
    ${TESTS}/shell/budgets.py $<TARGET_FILE:nacre>)
  set_tests_properties(terminal_budgets PROPERTIES RUN_SERIAL ON
    ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  add_nacre_test(terminal_sigints slow ${PYTHON_PEXPECT}
    ${TESTS}/shell/sigints.py $<TARGET_FILE:nacre>)
  set_tests_properties(terminal_sigints PROPERTIES RUN_SERIAL ON
    ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()

# ---- the sources
add_nacre_test(layers quick ${TESTS}/layers.sh ${PROJECT_SOURCE_DIR})
add_nacre_test(layers_self_test quick ${TESTS}/layers.sh --self-test
  ${PROJECT_SOURCE_DIR})

# ---- C, where Lua does not reach
if(PkgConfig_FOUND)
  pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
endif()
if(TARGET PkgConfig::CMOCKA)
  foreach(name archive blas file npy philox save)
    add_executable(test_${name} ${TESTS}/unit/test_${name}.c)
    target_link_libraries(test_${name} PRIVATE nacre_core_apart
      PkgConfig::CMOCKA)
    set_target_properties(test_${name} PROPERTIES
      INTERPROCEDURAL_OPTIMIZATION OFF
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_nacre_test(unit_${name} quick test_${name})
  endforeach()
  add_nacre_test(unit_blas_given quick test_blas)
  set_tests_properties(unit_blas_given PROPERTIES
    ENVIRONMENT OPENBLAS_CORETYPE=Prescott)
else()
  message(STATUS "cmocka was not found (Debian: libcmocka-dev): the unit "
    "tests in C are left out")
endif()

# ---- the program in docs/guide/embedding.md
add_executable(embedding_example ${PROJECT_SOURCE_DIR}/docs/guide/embedding.c)
target_link_libraries(embedding_example PRIVATE nacre_bindings)
add_nacre_test(embedding_example quick embedding_example)
set_tests_properties(embedding_example PROPERTIES
  PASS_REGULAR_EXPRESSION "^30\n3\n$")

# The same from another project, outside of this one's tree.
set(EMBEDDED ${PROJECT_BINARY_DIR}/tests/embedded)
add_nacre_test(embedding_configures quick ${CMAKE_COMMAND}
  -S ${TESTS}/embedding -B ${EMBEDDED} -G ${CMAKE_GENERATOR}
  -DNACRE=${PROJECT_SOURCE_DIR} -DNACRE_CUDA=OFF -DNACRE_LTO=OFF
  -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}
  -DCMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER})
set_tests_properties(embedding_configures PROPERTIES
  FIXTURES_SETUP embedding_project)
add_nacre_test(embedding_runs slow ${CMAKE_COMMAND} --build ${EMBEDDED}
  --target run --parallel 2)
set_tests_properties(embedding_runs PROPERTIES
  FIXTURES_REQUIRED embedding_project
  PASS_REGULAR_EXPRESSION "\n30\n3\n")

# ---- the CUDA plug-in, in C
include(${TESTS}/cuda.cmake)

# ---- the emulator itself
if(TARGET nacre_cuda_emulated)
  include(${TESTS}/emulation/tests.cmake)
endif()

# ---- a full collection at nearly every chance, which finds what is used after
# it could be freed: ctest -R '^gc_'
if(NACRE_SANITIZE)
  set(collect "collectgarbage('incremental',1,1000,12)")
  foreach(name assign bytes create display errors forms namefields reduce
      serialize tables texts view)
    add_nacre_test(gc_${name} quick $<TARGET_FILE:nacre> -e ${collect}
      ${TESTS}/${name}.lua)
  endforeach()
  add_nacre_test(gc_shell quick sh -c
    "sed -n 's/^>>* //p' \"$2\" \"$3\" \"$4\" | \"$1\" -i --no-history" sh
    $<TARGET_FILE:nacre> ${TESTS}/nacre/errors.nacre
    ${TESTS}/nacre/index.nacre ${TESTS}/nacre/look.nacre)
  add_nacre_test(gc_stdin quick sh -c "echo 'nacre.ones(2) + 1' | \"$1\"" sh
    $<TARGET_FILE:nacre>)
  set_tests_properties(gc_shell gc_stdin PROPERTIES
    ENVIRONMENT LUA_INIT=${collect})
endif()

# ---- what is built for other machines
include(${TESTS}/shipping.cmake)

# ---- CUDA devices
include(${TESTS}/emulated.cmake)
if(TARGET nacre_cuda_emulated AND PYTHON)
  add_nacre_test(sessions_emulated quick $<TARGET_FILE:nacre> --test
    --require cuda ${TESTS}/nacre ${PROJECT_SOURCE_DIR}/README.md
    ${PROJECT_SOURCE_DIR}/repl/reference)
  add_nacre_test(runner_emulated quick ${PYTHON} ${TESTS}/test_runner.py
    $<TARGET_FILE:nacre> Devices)
  set_tests_properties(sessions_emulated runner_emulated PROPERTIES
    ENVIRONMENT NACRE_CUDA=emulated)
endif()

# The longest first, seconds of each: else the last one is waited for alone.
foreach(cost oom_emulated=200 autograd_emulated=190 grad_public=180
    embedding_runs=150 grad_public_emulated=110 boundary_emulated=100
    boundary=100 oom=60 autograd=60 gpu_check_wrong=45 grad_families_emulated=45
    args_emulated=30 matmul_emulated=30)
  string(REPLACE "=" ";" cost ${cost})
  list(GET cost 0 name)
  list(GET cost 1 seconds)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST ${seconds})
  endif()
endforeach()
