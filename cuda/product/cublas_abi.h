/* SPDX-License-Identifier: MIT */
/*
** cublas_abi.h - the functions of cuBLAS that cublas_library.c calls, for a
** build without its headers.  Types are those of cuBLAS, with enumerations as
** int; a test compares all of it with the headers.
*/
#ifndef cuda_product_cublas_abi_h
#define cuda_product_cublas_abi_h

#include "cuda/device.h"

typedef struct BlasHandle *Handle;

/* cudaDataType, cublasComputeType_t, cublasGemmAlgo_t, cublasMath_t,
   cublasPointerMode_t, cublasStatus_t */
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_FAST_TF32 = 77 };
enum { ALGO_DEFAULT = -1 };
enum { DEFAULT_MATH = 0, NO_REDUCED_REDUCTION = 16 };
enum { POINTERS_HOST = 0, POINTERS_DEVICE = 1 };
enum {
  SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, EXECUTION_FAILED = 13,
  INTERNAL_ERROR = 14, NOT_SUPPORTED = 15
};

/* clang-format off */
#define BLAS_FUNCTIONS(X)                                                     \
  X(create,       cublasCreate_v2,           (Handle *h))                     \
  X(destroy,      cublasDestroy_v2,          (Handle h))                      \
  X(setstream,    cublasSetStream_v2,        (Handle h, cudaStream_t s))      \
  X(setworkspace, cublasSetWorkspace_v2,     (Handle h, void *p, size_t n))   \
  X(setmathmode,  cublasSetMathMode,         (Handle h, int mode))            \
  X(setpointers,  cublasSetPointerMode_v2,   (Handle h, int mode))            \
  X(dot,          cublasDotEx,                                                \
    (Handle h, int n, const void *x, int xtype, int xstep, const void *y,     \
     int ytype, int ystep, void *result, int type, int compute))              \
  X(gemm,         cublasGemmEx,                                               \
    (Handle h, int ta, int tb, int m, int n, int k, const void *alpha,        \
     const void *a, int atype, int lda, const void *b, int btype, int ldb,    \
     const void *beta, void *c, int ctype, int ldc, int compute, int algo))   \
  X(strided,      cublasGemmStridedBatchedEx,                                 \
    (Handle h, int ta, int tb, int m, int n, int k, const void *alpha,        \
     const void *a, int atype, int lda, long long astep,                      \
     const void *b, int btype, int ldb, long long bstep, const void *beta,    \
     void *c, int ctype, int ldc, long long cstep, int count, int compute,    \
     int algo))                                                               \
  X(listed,       cublasGemmBatchedEx,                                        \
    (Handle h, int ta, int tb, int m, int n, int k, const void *alpha,        \
     const void *const *a, int atype, int lda, const void *const *b,          \
     int btype, int ldb, const void *beta, void *const *c, int ctype,         \
     int ldc, int count, int compute, int algo))
/* clang-format on */

#endif
