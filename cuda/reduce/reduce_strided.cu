/* SPDX-License-Identifier: MIT */
/*
** reduce_strided.cu - reductions of elements one by one, any types and steps, that
** are folded in NC_TYPE (i64, f32 or f64), and those of values which other
** kernels left; see reduce.h.
*/
#include "cuda/reduce/reduce.h"
#include "cuda/typed_elements.h"
#include "cuda/reduce/reduce_type.h"

#define BODY "cuda/reduce/reduce_strided.inc"
#include "cuda/reduce/reduce_and_count.inc"

#define OWN(op, ...)                                  \
  NC_KERNEL_OF(BLOCK) TYPED(any_##op)(const Fold f) { \
    onebyone(&f, __VA_ARGS__);                        \
  }
#define TRUTH(op, ...)                                \
  NC_KERNEL_OF(BLOCK) TYPED(any_##op)(const Fold f) { \
    TRUTHS(onebyone)(&f, __VA_ARGS__);                \
  }
#define PICK(op) kernel = TYPED(any_##op)
#define LAUNCHER nc_foldsany_
#define GENERIC "cuda/reduce/reduce.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC
