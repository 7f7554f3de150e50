/* SPDX-License-Identifier: MIT */
/*
** cublas_library.h - cuBLAS, opened when the first product of floats needs it.
** Of products only bmm.c uses it.
*/
#ifndef cuda_product_cublas_library_h
#define cuda_product_cublas_library_h

#include "cuda/cuda.h"

/* A matrix whose rows, or columns if trans, are contiguous and `ld' elements
   apart. */
typedef struct MatrixLayout {
  int trans, ld;
} MatrixLayout;

/* c = beta*c + alpha*a*b for a batch of `count' matrices, [m x k] and [k x
   n], row-major.  The matrices of a batch are `step' elements apart; or, if
   `lists', a, b and c are arrays on the device of pointers to them. */
typedef struct Gemm {
  DType type;                 /* a float type */
  int m, n, k;                /* all above 0 */
  const void *a, *b;
  void *c;
  MatrixLayout la, lb;
  int ldc;
  int count, lists;
  int64_t step[3];            /* of a, b, c, in elements */
  double alpha, beta;
} Gemm;

extern int nc_allowtf32;      /* may float32 be rounded to tf32? */

/* Opens the library at its first call.  Is there one? */
int nc_cublas_open(void);

/* On the current stream of d.  *done = 0: cuBLAS does not support this product,
   and nothing was computed. */
int nc_cublas_gemm(const Device *d, const Gemm *g, int *done);

/* "cuBLAS 13.0.1 (path)", or the reason why cuBLAS is not available. */
const char *nc_cublas_info(void);
void nc_cublas_close(void);   /* destroys all handles */

#endif
