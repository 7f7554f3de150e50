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

/* Do the complex elements along the innermost dimension lie side by side? */
static inline int nc_parts_lie_dense(const TensorIter *k) {
  if (k->nd - k->nfold < 1) return 0;
  for (int j = 0; j < k->nargs; j++)
    if (k->step[j][0] != 1) return 0;
  return 1;
}

/* The loop k over the parts: of real numbers, or with part = int64 over the
   bits of those of complex128.  All operands are complex.  Returns 0 if that
   takes more dimensions than there are. */
static inline int nc_parts_iter(TensorIter *parts, const TensorIter *k,
                                DType part) {
  const int more = !nc_parts_lie_dense(k); /* dimensions */
  if (k->nd + more > NC_MAXDIM) return 0;
  *parts = *k;
  parts->common_dtype = part;
  parts->nd = k->nd + more;
  parts->n = 2 * k->n;
  parts->uniform = parts->numbers = 0;
  for (int d = 0; d < k->nd; d++) parts->size[d + more] = k->size[d];
  parts->size[0] = more ? 2 : 2 * k->size[0];
  for (int j = 0; j < k->nargs; j++) {
    parts->type[j] = part == DT_i64 ? part : nc_part_dtype(k->type[j]);
    for (int d = 0; d < k->nd; d++)
      parts->step[j][d + more] = 2 * k->step[j][d];
    parts->step[j][0] = 1;
  }
  return 1;
}

#endif
