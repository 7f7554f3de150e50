/* SPDX-License-Identifier: MIT */
/* blas.h - matrix products, in memory (blas.c) and of tensors
   (core/ops/bmm.c). */
#ifndef core_cpu_product_blas_h
#define core_cpu_product_blas_h

#include "core/tensor.h"

#define NC_NARROW 16 /* columns of a narrow matrix, at most */

/* c = beta*c + alpha*a*b; rows of c are dense. */
typedef struct Gemm {
  DType type;                 /* float32, float64, int32, int64; or bfloat16
                                 (see nc_multiplies_pairs) */
  int64_t m, n, k;            /* [m x k] [k x n] -> [m x n], all above 0 */
  const void *a, *b;
  void *c;
  int64_t as[2], bs[2];       /* steps to the next row and column */
  int64_t cs;                 /* step to the next row */
  Scalar alpha;
  int beta;                   /* 0 (c need not be set) or 1 */
  int rounded;                /* of bfloat16: c is bfloat16, too; else it is
                                 float32 */
  int halves;                 /* of float32: a and b are float16, in dense rows,
                                 n is above NC_NARROW and alpha 1; our own loops
                                 convert what they pack */
} Gemm;

/* Opens the BLAS at the first call.  Fails only if NACRE_BLAS names a library
   that cannot be used. */
int nc_openblas(void);
void nc_gemm(const Gemm *g);
/* Do our own loops, not the BLAS, compute a product of so many rows and
   columns? Then an element does not depend on the others that are computed with
   it. */
int nc_beats_blas(DType type, int64_t m, int64_t n);
/* Calls bind with the open BLAS, to find other functions in it; returns its
   result, 0 if none is open. */
int nc_bind_blas(int (*bind)(void *handle));
/* Calls find, which opens a library that may have its own threads: it is asked
   for one thread, and the time counts as opening. Returns the result of
   find. */
int nc_open_single(int (*find)(void));
/* Is there memory for a buffer of an OpenBLAS? If memory is limited, makes it
   map its buffers; 0: there is no room, and no function of the library may be
   called.  How many calls at a time have one. */
int nc_has_blas_room(void);
int nc_take_blas_buffers(void *handle);
int nc_blas_buffers(void);
/* Makes a library of linear algebra use only the calling thread. */
void nc_set_one_thread(void *handle);

/* Multiplies bfloat16; alpha is 1, and the processor has nc_multiplies_pairs
   (pair_gemm.c). */
void nc_pair_gemm(const Gemm *g);

/* The product of few rows, or columns, of halves by a matrix; *done = whether
   it is one (half_rows.c). */
int nc_half_rows(const BmmCall *c, int *done);

/* Can a BLAS use a [rows x cols] matrix with these steps without a copy? */
int nc_blasfits(int64_t rows, int64_t cols, const int64_t step[2]);

/* y = alpha*a*b + beta*addend; the addend may be NULL, and is not read if
   beta is 0.  All are of one dtype, not bool; a is [batch.. x m x k], b
   [batch.. x k x n], their batches being equal (a step of 0 repeats one), and
   the addend broadcasts to the result. */
/* p, of complex tensors, by a product of real ones (complex_product.c in
   core/ops/).  Factors are real. */
int nc_complex_product(const BmmCall *p, const Device *d);
int nc_product(Tensor **y, Tensor *a, Tensor *b, Scalar alpha, Tensor *addend,
               Scalar beta);

#endif
