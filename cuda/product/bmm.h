/* SPDX-License-Identifier: MIT */
/*
** bmm.h - batches of matrix products: by cuBLAS, or by our own kernels (bmm.cu)
** for integers, for sizes beyond int and without cuBLAS.
*/
#ifndef cuda_product_bmm_h
#define cuda_product_bmm_h

#include "cuda/cuda.h"

#define NC_MAXBATCH (NC_MAXDIM - 2)

/* A batch of products.  Steps are in elements; y is dense. */
typedef struct BmmPlan {
  const void *a, *b;
  void *y;
  int64_t m, n, k;
  int64_t astep[2], bstep[2]; /* to the next row and column */
  int nb;                     /* dimensions of the batch, outermost first */
  int64_t size[NC_MAXBATCH];
  int64_t step[2][NC_MAXBATCH];             /* of a and b */
  int64_t count;              /* products */
} BmmPlan;

NC_C_BEGIN

/* y = beta*y + alpha*a*b for any type but bool */
int nc_bmm_own(const Device *d, DType type, const BmmPlan *t, Scalar alpha,
               Scalar beta);

/* The same for float types, by cuBLAS if possible.  The batch is not empty;
   dimensions of t may be merged. */
int nc_bmm_float(const Device *d, DType type, BmmPlan *t, Scalar alpha,
                 Scalar beta);

/* Fills three arrays on the device, of t->count each, with the addresses of the
   matrices of a, b and y; elements have `size' bytes. */
int nc_bmm_pointers(const Device *d, const BmmPlan *t, int64_t size,
                    void **list);

NC_C_END

#endif
