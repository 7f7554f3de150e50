/* SPDX-License-Identifier: MIT */
/*
** parts_iter.h - a loop over complex elements as one over their parts, for all
** devices: where an operation does the same to both, as copies and sums do.
*/
#ifndef core_pointwise_parts_iter_h
#define core_pointwise_parts_iter_h

#include "core/tensor.h"

static inline DType nc_part_dtype(DType t) {
  return t == DT_c64 ? DT_f32 : t == DT_c128 ? DT_f64 : t;
}

/* The loop k over the parts: of real numbers, or with part = int64 over the
   bits of those of complex128.  All operands are complex.  Returns 0 if that
   takes more dimensions than there are. */
static inline int nc_parts_iter(TensorIter *parts, const TensorIter *k,
                                DType part) {
  if (k->nd == NC_MAXDIM) return 0;
  *parts = *k;
  parts->common_dtype = part;
  parts->nd = k->nd + 1;
  parts->n = 2 * k->n;
  parts->uniform = parts->numbers = 0;
  parts->size[0] = 2;
  for (int d = 0; d < k->nd; d++) parts->size[d + 1] = k->size[d];
  for (int j = 0; j < k->nargs; j++) {
    parts->type[j] = part == DT_i64 ? part : nc_part_dtype(k->type[j]);
    parts->step[j][0] = 1;
    for (int d = 0; d < k->nd; d++) parts->step[j][d + 1] = 2 * k->step[j][d];
  }
  return 1;
}

#endif
