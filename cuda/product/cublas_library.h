/* SPDX-License-Identifier: MIT */
/*
** cublas_library.h - cuBLAS, opened when the first product of floats needs it.  Only
** bmm.c uses it.
*/
#ifndef cuda_product_cublas_library_h
#define cuda_product_cublas_library_h

#include "cuda/cuda.h"

/* A matrix whose rows (or columns, if trans) lie without gaps, `ld' elements
   apart. */
typedef struct Lay {
  int trans, ld;
} Lay;

/* c = beta*c + alpha*a*b of [m x k] and [k x n], row-major, `count' times.
   The matrices of a batch follow each other in steps; or, if `lists', a, b
   and c are arrays of pointers to them, which lie on the device. */
typedef struct Gemm {
  DType type;                 /* a float type */
  int m, n, k;                /* all above 0 */
  const void *a, *b;
  void *c;
  Lay la, lb;
  int ldc;
  int count, lists;
  int64_t step[3];            /* of a, b, c, in elements */
  double alpha, beta;
} Gemm;

extern int nc_allowtf32;      /* may float32 be rounded to tf32? */

/* Opens the library at its first call.  Is there one? */
int nc_blasopen(void);

/* On the current stream of d.  *done = 0: this cuBLAS has no such product,
   and nothing has happened. */
int nc_blas(const Device *d, const Gemm *g, int *done);

const char *nc_blasfact(void);
void nc_blasclose(void);

#endif
