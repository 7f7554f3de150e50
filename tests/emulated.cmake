# Tests of CUDA devices that the program runs, on the emulated one: they need no
# GPU. Included by tests.cmake.
#   ctest -L emulated

# Without a device there is one clear error, whatever was built.
add_nacre_test(cuda_none quick $<TARGET_FILE:nacre> ${TESTS}/cuda_none.lua)
set_tests_properties(cuda_none PROPERTIES ENVIRONMENT NACRE_CUDA=off)
if(NOT TARGET nacre_cuda_emulated)
  return()
endif()

# settings: of the emulator, in the words of cuda/emulation/settings.c
function(add_emulated_test name settings)
  string(REPLACE " " "," settings "${settings}")
  add_nacre_test(${name} emulated $<TARGET_FILE:nacre> ${ARGN})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT
    "NACRE_CUDA=emulated;NACRE_EMULATION=${settings}")
endfunction()

# ---- what CUDA devices alone have
foreach(streams eager lazy random)
  foreach(name cuda cuda_streams cuda_errors)
    add_emulated_test(${name}_${streams} "devices=1 streams=${streams}"
      ${TESTS}/${name}.lua)
  endforeach()
  add_emulated_test(cuda_memory_${streams}  # fills the device several times
    "devices=1 memory=128M streams=${streams}" ${TESTS}/cuda_memory.lua)
endforeach()
foreach(streams eager lazy random)
  add_emulated_test(cuda_backward_${streams} "devices=2 streams=${streams}"
    ${TESTS}/cuda_backward.lua)
endforeach()
add_emulated_test(grad_launches "streams=lazy" ${TESTS}/grad_launches.lua)
foreach(order reversed random)
  add_emulated_test(cuda_order_${order} "order=${order} streams=lazy"
    ${TESTS}/cuda.lua)
endforeach()
foreach(devices 2 3 4)
  foreach(peer 0 1)
    add_emulated_test(cuda_several_${devices}_${peer}
      "devices=${devices} peer=${peer} streams=random"
      ${TESTS}/cuda_several.lua)
  endforeach()
endforeach()
if(NOT NACRE_SANITIZE AND NOT NACRE_EMULATION_FLAVOUR STREQUAL "check")
  # 9 GB, of which 3 pages are used; and 4 GB
  add_emulated_test(cuda_pieces "" ${TESTS}/cuda_pieces.lua)
  add_emulated_test(cuda_large "memory=6G fill=0" ${TESTS}/cuda_large.lua)
  set_tests_properties(cuda_large PROPERTIES RUN_SERIAL ON LABELS slow)
endif()
add_emulated_test(cuda_large_trial "" ${TESTS}/cuda_large.lua 65536)
add_emulated_test(equivalents_cuda "devices=2" ${TESTS}/equivalents.lua
  cuda.md)
add_emulated_test(cuda_late "devices=1 late=40" ${TESTS}/cuda_late.lua)
add_emulated_test(cuda_timing "devices=1 memory=67108864"
  ${TESTS}/cuda_timing.lua)
foreach(streams eager lazy)
  add_emulated_test(cuda_uncached_${streams} "streams=${streams}"
    ${TESTS}/cuda.lua)
  set_property(TEST cuda_uncached_${streams} APPEND PROPERTY ENVIRONMENT
    NACRE_CUDA_CACHE=off)
endforeach()
add_emulated_test(cuda_sync "" ${TESTS}/cuda.lua)
set_property(TEST cuda_sync APPEND PROPERTY ENVIRONMENT NACRE_CUDA_SYNC=1)

# ---- what the CPU is tested with, where new tensors go to the device
set(on_device ops layouts folds promotion torch_rules reduce args create view
  index assign random npy archives texts display
  display_values errors grad_rows grad_families scan sort
  dry watch indices vocabulary conv norms orders surplus namefields
  aliasing distribution einsum linalg nn shape special forms)
list(APPEND on_device bounds casts)
if(NOT NACRE_EMULATION_FLAVOUR STREQUAL "check") # minutes each, where judged
  list(APPEND on_device autograd matmul boundary oom)
  if(NOT NACRE_SANITIZE) # ten minutes, of kernels that others run there
    list(APPEND on_device grad_public)
  endif()
endif()
foreach(name ${on_device})
  add_emulated_test(${name}_emulated "" --device cuda:0 ${TESTS}/${name}.lua)
endforeach()

# ---- the page of the guide that needs a device
add_emulated_test(guide_emulated "devices=2" --test --require cuda
  ${PROJECT_SOURCE_DIR}/docs/guide/cuda.md)

# ---- the device against the CPU, and against PyTorch
foreach(streams eager random)
  add_emulated_test(parity_${streams} "streams=${streams} order=random seed=3"
    ${TESTS}/parity.lua rounds=1)
endforeach()
foreach(seed 1 2)
  add_emulated_test(parity_programs_${seed}
    "streams=random order=random seed=${seed}"
    ${TESTS}/parity_programs.lua seed=${seed})
endforeach()
if(PYTHON_TORCH AND NOT NACRE_EMULATION_FLAVOUR STREQUAL "check")
  foreach(name diff_torch opinfo_torch)
    add_nacre_test(${name}_emulated emulated ${PYTHON_TORCH}
      ${TESTS}/${name}.py $<TARGET_FILE:nacre> --device cuda:0 --cases 800)
    set_tests_properties(${name}_emulated PROPERTIES
      ENVIRONMENT NACRE_CUDA=emulated)
  endforeach()
endif()

# ---- functions with errors as CUDA's have them, products in parts: no test of
# a device may ask for the host's last bits
foreach(name special vocabulary torch_rules folds scan norms conv einsum linalg
    distribution display_values)
  add_emulated_test(${name}_ulps "ulps=1" --device cuda:0
    ${TESTS}/${name}.lua)
endforeach()
add_emulated_test(ops_ulps "ulps=2" --device cuda:0 ${TESTS}/ops.lua
  acosh acos asin tan erfc lgamma digamma pow round ldexp exp2 log2 tanhshrink
  logaddexp softplus mish atan2 hypot)
add_emulated_test(parity_ulps "ulps=3" ${TESTS}/parity.lua rounds=1)
add_emulated_test(parity_programs_ulps "ulps=4" ${TESTS}/parity_programs.lua
  seed=3)
add_emulated_test(sessions_ulps "ulps=5" --test --require cuda --device cuda:0
  -j 2 ${TESTS}/nacre)

# ---- at a terminal
if(PYTHON_PEXPECT)
  add_nacre_test(terminal_cuda emulated ${PYTHON_PEXPECT}
    ${TESTS}/shell/test_cuda.py $<TARGET_FILE:nacre>)
  set_tests_properties(terminal_cuda PROPERTIES RUN_SERIAL ON
    ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()
