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
  NC_KERNEL_OF(BLOCK) TYPED(name##_##op)(const Fold f) {       \
    body(&f, truth, init, map, fold, finish);                  \
  }
#define OWN(...)                    \
  KERNEL(along, along, __VA_ARGS__) \
  KERNEL(beside, beside, __VA_ARGS__)
#define TRUTH(...)                          \
  KERNEL(along, TRUTHS(along), __VA_ARGS__) \
  KERNEL(beside, TRUTHS(beside), __VA_ARGS__)
#define PICK(op) \
  kernel = way == FOLD_ALONG ? TYPED(along_##op) : TYPED(beside_##op)
#define LAUNCHER nc_folds_
#define GENERIC "cuda/reduce/reduce.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC
