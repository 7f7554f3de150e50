/* SPDX-License-Identifier: MIT */
/*
** reduce.cu - reductions over vectors of 16 bytes, for the type of storage
** NC_TYPE; see reduce.h.
*/
#include "cuda/reduce/reduce.h"
#include "cuda/typed_elements.h"
#include "cuda/reduce/reduce_type.h"

#define BODY "cuda/reduce/reduce_vector.inc"
#include "cuda/reduce/reduce_and_count.inc"

#define KERNEL(name, body, op, truth, init, map, fold, finish) \
  NC_KERNEL_OF(BLOCK) TYPED(name##_##op)(const Reduction f) {  \
    body(&f, truth, init, map, fold, finish);                  \
  }
#define OWN(...)                         \
  KERNEL(rows, reduce_rows, __VA_ARGS__) \
  KERNEL(columns, reduce_columns, __VA_ARGS__)
#define TRUTH(...)                               \
  KERNEL(rows, TRUTHS(reduce_rows), __VA_ARGS__) \
  KERNEL(columns, TRUTHS(reduce_columns), __VA_ARGS__)
#define PICK(op) \
  kernel = way == REDUCE_ROWS ? TYPED(rows_##op) : TYPED(columns_##op)
#define LAUNCHER nc_reduce_
#define GENERIC "cuda/reduce/reduce.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC
