/* SPDX-License-Identifier: MIT */
/*
** conform_blas.cu - holds what the plug-in calls of cuBLAS (cublas_abi.h)
** against the emulation's declarations, which conform.c holds against NVIDIA's:
** that this file compiles is the test.  Parameters are as many, of the same
** sizes, and pointers where those are pointers.
*/
#include <type_traits>

#include "cuda/product/cublas_abi.h"
#include "cuda/emulation/libraries/cublas.h"

template <class A, class B> constexpr bool alike() {
  return sizeof(A) == sizeof(B) &&
         std::is_pointer<A>::value == std::is_pointer<B>::value &&
         std::is_floating_point<A>::value == std::is_floating_point<B>::value;
}

template <class... A, class... B>
constexpr bool fits(int (*)(A...), cublasStatus_t (*)(B...)) {
  static_assert(sizeof...(A) == sizeof...(B), "number of parameters");
  return (alike<A, B>() && ...);
}

#define X(name, symbol, params)                                             \
  static_assert(fits((int(*) params) nullptr, decltype (&symbol)(nullptr)), \
                #symbol);
BLAS_FUNCTIONS(X)
#undef X

#define SAME(ours, theirs) static_assert((int)ours == (int)theirs, #theirs);
SAME(0, CUBLAS_OP_N)
SAME(1, CUBLAS_OP_T)
SAME(R_32F, CUDA_R_32F)
SAME(R_64F, CUDA_R_64F)
SAME(R_16F, CUDA_R_16F)
SAME(R_16BF, CUDA_R_16BF)
SAME(COMPUTE_32F, CUBLAS_COMPUTE_32F)
SAME(COMPUTE_64F, CUBLAS_COMPUTE_64F)
SAME(COMPUTE_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_TF32)
SAME(ALGO_DEFAULT, CUBLAS_GEMM_DEFAULT)
SAME(DEFAULT_MATH, CUBLAS_DEFAULT_MATH)
SAME(NO_REDUCED_REDUCTION, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)
SAME(POINTERS_HOST, CUBLAS_POINTER_MODE_HOST)
SAME(POINTERS_DEVICE, CUBLAS_POINTER_MODE_DEVICE)
SAME(SUCCESS, CUBLAS_STATUS_SUCCESS)
SAME(NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED)
SAME(ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED)
SAME(NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED)
