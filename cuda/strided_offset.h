/* SPDX-License-Identifier: MIT */
/*
** strided_offset.h - the offset of element i of one strided operand, for
** kernels without a limit on the number of elements.  It multiplies (see
** offsets.h) if there are at most 2^31 elements, and divides otherwise.
*/
#ifndef cuda_strided_offset_h
#define cuda_strided_offset_h

#include "cuda/offsets.h"

typedef struct StridedDims {
  int nd;
  int large;                  /* more than 2^31 elements: `by' is unused */
  Divisor by[NC_MAXDIM];
  int64_t size[NC_MAXDIM];    /* dimension 0 is the innermost */
  int64_t step[NC_MAXDIM];
} StridedDims;

NC_C_BEGIN
void nc_set_divisors(StridedDims *x);  /* sets `large' and `by' */
NC_C_END

#ifdef __cplusplus

NC_DEVICE int64_t strided_offset(const StridedDims *x, int64_t i) {
  int64_t at = 0;
  if (x->nd == 1) return i * x->step[0];
  if (x->large) {
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
