/* SPDX-License-Identifier: MIT */
/*
** offsets.h - converts a linear index to the offsets of an element in several
** strided operands without division (as PyTorch's OffsetCalculator): the host
** computes multipliers, and kernels multiply and shift.
**
** Offsets serve up to 2^31 elements and strides from 0 to 2^32 - 1.  The caller
** checks this with nc_fitsoffsets and splits larger work.  Dimension 0 is the
** innermost one.  Strides are in elements.
*/
#ifndef cuda_offsets_h
#define cuda_offsets_h

#include "cuda/device.h"
#include "core/tensor.h"

NC_C_BEGIN

#define NC_VECTOR 16          /* bytes of a vectorized load or store */

/* The types for which kernels that are made of ops.def are compiled; bool is
   stored as u8. */
#define NC_STOREDTYPES(X) INTEGERS(X) FLOAT_TYPES(X)

/* Divides n < 2^31 by d: n / d = (high word of n*mul + n) >> shift (Granlund
   and Montgomery, 1994). */
typedef struct Divisor {
  uint32_t d, mul, shift;
} Divisor;

typedef struct Offsets {
  int nd;
  Divisor size[NC_MAXDIM];
  uint32_t step[NC_MAXIN][NC_MAXDIM];
} Offsets;

/* The same for one operand without a limit on the number of elements. */
typedef struct StridedDims {
  int nd;
  int large;                  /* more than 2^31 elements: `by' is unused */
  Divisor by[NC_MAXDIM];
  int64_t size[NC_MAXDIM];    /* dimension 0 is the innermost */
  int64_t step[NC_MAXDIM];
} StridedDims;

/* Prepares the division by d, which is from 1 to 2^31. */
Divisor nc_divisor(int64_t d);

/* Are these sizes, and the strides of n operands, within the limits above? */
int nc_fitsoffsets(int nd, const int64_t size[], int n,
                 const int64_t step[][NC_MAXDIM]);

/* Fills x.  The caller has checked the limits with nc_fitsoffsets. */
void nc_makeoffsets(Offsets *x, int nd, const int64_t size[], int n,
                  const int64_t step[][NC_MAXDIM]);

/* Adds the next outer dimension to x; merges it with the last one if their
   strides allow it. */
void nc_add_outer_dim(StridedDims *x, int64_t size, int64_t step);
void nc_set_divisors(StridedDims *x);  /* sets `large' and `by' */

NC_C_END

/*
** In kernels
*/
#ifdef __cplusplus

#ifdef __CUDA_ARCH__
#define NC_UNROLL _Pragma("unroll")
#define NC_UNROLL4 _Pragma("unroll 4")
#define NC_NOUNROLL _Pragma("unroll 1")
#else
#define NC_UNROLL
#define NC_UNROLL4
#define NC_NOUNROLL
#endif

NC_DEVICE uint32_t nc_quotient(uint32_t n, Divisor by) {
  uint32_t high = (uint32_t)(((uint64_t)n * by.mul) >> 32);
  return (high + n) >> by.shift;
}

/* at[j] = the offset of element i in operand j, for j from 0 to n-1.  Callers
   pass a constant n, so that the loops unroll. */
NC_DEVICE void nc_offsets_at(uint64_t at[], const Offsets *x, uint32_t i,
                             int n) {
  NC_UNROLL for (int j = 0; j < n; j++) at[j] = 0;
  NC_UNROLL for (int d = 0; d < NC_MAXDIM; d++) {
    uint32_t rest = 0, c = i;
    if (d >= x->nd) break;
    if (d + 1 < x->nd) {      /* for the last one, c is i itself */
      rest = nc_quotient(i, x->size[d]);
      c = i - rest * x->size[d].d;
    }
    NC_UNROLL for (int j = 0; j < n; j++)
      at[j] += (uint64_t)c * x->step[j][d];
    i = rest;
  }
}

/* The offset of element i.  It multiplies if there are at most 2^31 elements,
   and divides otherwise. */
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
