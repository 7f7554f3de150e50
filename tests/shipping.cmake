# Tests of what is built for other machines: the code inside the plug-in, the
# bundle, the checks that run there. Included by tests.cmake.
if(NOT PYTHON)
  return()
endif()

# ---- the kernels inside the plug-in
if(TARGET nacre_cuda)
  add_nacre_test(ptx quick ${PYTHON} ${TESTS}/ptx.py
    $<TARGET_FILE:nacre_cuda>)
  # It loads, and is of this build: what is missing is at most a driver.
  add_nacre_test(cuda_loads quick $<TARGET_FILE:nacre> -e
    "why = nacre.cuda.why() print(why) assert(not (why and why:find 'plug.in'))")
  set_tests_properties(cuda_loads PROPERTIES ENVIRONMENT NACRE_CUDA=)
  add_nacre_test(ptx_self_test quick ${PYTHON} ${TESTS}/ptx.py --self-test
    ${CMAKE_CUDA_COMPILER})
endif()

# ---- the bundle runs elsewhere, and its checks run on the emulated device and
# report whatever goes wrong
add_nacre_test(gpu_check_wrong slow ${PYTHON} ${TESTS}/gpu_check.py
  ${PROJECT_SOURCE_DIR})
set(GPU_CHECK ${PROJECT_SOURCE_DIR}/scripts/gpu-check)
if(NOT NACRE_SANITIZE)
  add_nacre_test(bundle slow ${PYTHON} ${TESTS}/bundle.py
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
endif()
if(TARGET nacre_cuda_emulated)
  add_nacre_test(gpu_check slow ${PYTHON} ${GPU_CHECK} --emulated
    --build ${PROJECT_BINARY_DIR} --out ${PROJECT_BINARY_DIR}/gpu-check
    --minutes 4)
  foreach(blas "" none)
    add_nacre_test(cuda_products${blas} emulated $<TARGET_FILE:nacre>
      ${TESTS}/cuda_products.lua)
    set_tests_properties(cuda_products${blas} PROPERTIES
      ENVIRONMENT "NACRE_CUDA=emulated;NACRE_CUBLAS=${blas}")
  endforeach()
endif()
