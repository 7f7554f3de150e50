/* SPDX-License-Identifier: MIT */
/*
** conform_code.cu - holds what the plug-in calls of NVRTC and of the driver
** (code_abi.h) against NVIDIA's headers: that this file compiles is the test.
** Parameters are as many, of the same sizes, and pointers where those are
** pointers.
*/
#include <type_traits>

#include <cuda.h>
#include <nvrtc.h>

#include "cuda/fusion/code_abi.h"

template <class A, class B> constexpr bool alike() {
  return sizeof(A) == sizeof(B) &&
         std::is_pointer<A>::value == std::is_pointer<B>::value;
}

template <class... A, class R, class... B>
constexpr bool fits(int (*)(A...), R (*)(B...)) {
  static_assert(sizeof...(A) == sizeof...(B), "number of parameters");
  return (alike<A, B>() && ...);
}

#define X(name, symbol, params)                                               \
  static_assert(fits((int(*) params) nullptr, decltype (&::symbol)(nullptr)), \
                #symbol);
NVRTC_FUNCTIONS(X)
DRIVER_FUNCTIONS(X)
#undef X

#define SAME(ours, theirs) static_assert((int)ours == (int)theirs, #theirs);
SAME(NVRTC_DONE, NVRTC_SUCCESS)
SAME(NVRTC_WRONG_TEXT, NVRTC_ERROR_COMPILATION)
SAME(OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY)
SAME(THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
SAME(SHARED, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
SAME(CONSTANT, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)
SAME(LOCAL, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
SAME(REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS)
