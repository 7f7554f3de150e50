/* SPDX-License-Identifier: MIT */
/*
** advanced_index.h - how advanced_index.cu describes an IndexCall
** (core/devices.h) to its kernels, and how it splits large ones.
*/
#ifndef cuda_indexing_advanced_index_h
#define cuda_indexing_advanced_index_h

#include "cuda/cuda.h"
#include "cuda/offsets.h"

NC_C_BEGIN

#define NC_MAXUNITS ((int64_t)1 << 30) /* units of a launch */

typedef struct IndexPlan {
  char *x, *other;
  const int64_t *offset;
  int64_t n, esize;           /* number of units; bytes of an element */
  int out;                    /* copy from x to other, not to x */
  int distinct;               /* no element of x is written twice */
  int nd, picked;             /* dimensions, 0 is the innermost; the one that
                                 the offsets replace */
  Divisor by[NC_MAXDIM + 1];
  int64_t size[NC_MAXDIM + 1];
  int64_t xstep[NC_MAXDIM + 1], ostep[NC_MAXDIM + 1]; /* in bytes */
} IndexPlan;

/* If k has few enough units for one launch, sets n and by and returns 1.  Else
   returns 0: *half is now its first half, k the second one; call it again for
   both. */
int nc_split_index(IndexPlan *k, IndexPlan *half);

/* x[offset[i]] fold= other[i], in order, for n dense elements of the type of x;
   offsets count elements of x, and a negative one is left out.  Other and
   offset are scratch memory. */
int nc_accumulate_elements(const Device *d, const Tensor *x, const void *other,
                           const int64_t *offset, int64_t n,
                           IndexReduce fold);

NC_C_END

#endif
