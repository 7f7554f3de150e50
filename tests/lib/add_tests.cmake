# The functions with which the folders of tests/ register their tests. A test
# that exits with 77 was skipped.

# Seconds of the long tests: ctest starts the longest first, else it waits for
# the last one alone. They have the label `long', too: `./bootstrap test' leaves
# them out and so takes 4 minutes on two cores, .ci/run runs them.
set(TEST_COSTS adding_operations=300 oom_emulated=250
  extreme_arguments_emulated=250 extreme_arguments=150 cuda_fused=130
  cuda_fused_lines=110 cuda_large=60 oom=60 gpu_check_wrong=50
  opinfo_torch_strided=40 terminal_signals=39 cuda_fused_float16=29
  lost_tests=29 nvrtc_texts_bfloat16=22 nvrtc_texts_int32=22
  unit_file_faults=27 notebook_protocol=27
  strided_copies_emulated=23 hints=20 embedding_runs=20 gpu_check=20
  pointwise_layouts_emulated=20 arguments_emulated=20 matmul_emulated=20
  parity_sizes_eager=20 parity_sizes_random=20 parity_sizes_reversed=20
  terminal_sigints=20 terminal_viewer=18 shell_batch=17
  sweep_layouts_emulated=14 sort_emulated=14 sessions_emulated=14
  runner_processes=14 terminal_pictures=13 narrow=13 session_openmpi=11
  terminal_editor=49 terminal_cuda=17 bad_files=19 bench_torch=23
  nvrtc_texts_float32=20 sweep_rows_emulated=20
  opinfo_torch_second=16 opinfo_torch_emulated=16 norms_emulated=15
  reproducible_tests=15 attention_emulated=14 reductions_emulated=12
  test_nvrtc_exit=12 scan_emulated=10 fused_rows_v3=9 fused_rows_v2=9
  reductions_ulps=9 optimizers_torch_emulated=8 integer_bounds_emulated=8
  sweep_layouts_v2=6 sweep_layouts_v3=6
  cuda_slow_device=11 grad_public_emulated=11 faults_openmpi=10 test_nvrtc=9
  fuzz_calls=8 pointwise_emulated=8 parity_random=7 grad_pointwise_emulated=7)

# Labels a test: quick (seconds), slow, emulated; and long, if it is.
function(label_test name label)
  set(cost ${TEST_COSTS})
  list(FILTER cost INCLUDE REGEX "^${name}=")
  if(cost)
    string(REGEX REPLACE ".*=" "" cost ${cost})
    set_tests_properties(${name} PROPERTIES COST ${cost})
    list(APPEND label long)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${label}")
endfunction()

# The test `name': a command, in a folder of its own: several write files.
function(add_nacre_test name label)
  set(folder ${PROJECT_BINARY_DIR}/tests/run/${name})
  file(MAKE_DIRECTORY ${folder})
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${folder})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800)
  label_test(${name} ${label})
endfunction()

# The tests NAME...: NAME.lua of this folder, run by the program.
function(add_script_tests label)
  foreach(name ${ARGN})
    add_nacre_test(${name} ${label} $<TARGET_FILE:nacre>
      ${CMAKE_CURRENT_SOURCE_DIR}/${name}.lua)
  endforeach()
endfunction()

# The test `name': a script of this folder, with the program and more as its
# arguments. There is no test if `python', a path, is empty.
function(add_python_test name label python script)
  if(python)
    add_nacre_test(${name} ${label} ${python}
      ${CMAKE_CURRENT_SOURCE_DIR}/${script} $<TARGET_FILE:nacre> ${ARGN})
  endif()
endfunction()

# The test `name': the program with these arguments and an emulated device,
# which the preset emulated also runs.
# settings: of the emulator, in the words of cuda/emulation/settings.c
function(add_emulated_test name settings)
  add_plain_test(${name} "${settings}" ${ARGN})
  label_test(${name} emulated)
endfunction()

# The same for a test that the preset emulated leaves out.
function(add_plain_test name settings)
  string(REPLACE " " "," settings "${settings}")
  add_nacre_test(${name} slow $<TARGET_FILE:nacre> ${ARGN})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT
    "NACRE_CUDA=emulated;NACRE_EMULATION=${settings}")
endfunction()

# The path of a Python 3 that has the module, or nothing.
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
