/* SPDX-License-Identifier: MIT */
/*
** fused_args.h - the last parameter of a fused kernel, after the pointers of
** all tensors, operands first.  The kernel and the host share it.
*/
#ifndef cuda_fusion_fused_args_h
#define cuda_fusion_fused_args_h

#include "cuda/offsets.h"

/* Tensors have a bit each in `flat' and `still'.  A flat one is dense, in the
   order of the elements that are computed.  One that stands still is the same
   element along dimension 0, or everywhere if it is flat.  The strides of the
   others are in `step', of dimension 0 those between vectors. */
typedef struct FusedLayout {
  uint64_t flat, still;
  uint64_t first;             /* the number of the first element, row by row */
  uint32_t n, tail;           /* vectors or elements or lines; and elements
                                 after the vectors */
  int32_t nd, unused;
  Divisor size[NC_MAXDIM];    /* in vectors along dimension 0 */
} FusedLayout;

/* In a kernel after it: uint64_t number[NUMBERS], the bits of the numbers in
   the types that are computed in, and uint32_t step[TENSORS][NC_MAXDIM]. */

#endif
