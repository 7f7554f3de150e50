/* SPDX-License-Identifier: MIT */
/*
** strided_offset.h - where element i of one strided operand lies, for kernels that may
** see any number of elements: by multiplication if there are at most 2^31 of
** them (see offsets.h), else by division.
*/
#ifndef cuda_strided_offset_h
#define cuda_strided_offset_h

#include "cuda/offsets.h"

typedef struct Dims {
  int nd, wide;
  Divisor by[NC_MAXDIM];
  int64_t size[NC_MAXDIM];    /* dimension 0 is the innermost */
  int64_t step[NC_MAXDIM];
} Dims;

#if defined(__CUDACC__) || (defined(NC_EMULATED) && defined(__cplusplus))

NC_DEVICE int64_t place(const Dims *x, int64_t i) {
  int64_t at = 0;
  if (x->nd == 1) return i * x->step[0];
  if (x->wide) {
    for (int d = 0; d < x->nd; d++) {
      const int64_t rest = i / x->size[d];
      at += (i - rest * x->size[d]) * x->step[d];
      i = rest;
    }
  } else {
    uint32_t left = (uint32_t)i;
    for (int d = 0; d < x->nd; d++) {
      const uint32_t rest = nc_quotient(left, x->by[d]);
      at += (int64_t)(left - rest * x->by[d].d) * x->step[d];
      left = rest;
    }
  }
  return at;
}

#endif
#endif
