/* SPDX-License-Identifier: MIT */
/*
** reduce_strided.cu - reductions one element at a time, of any types and
** strides, accumulated in NC_TYPE (i64, f32 or f64); also merges the pieces
** that other kernels left.  See reduce.h.
*/
#include "cuda/reduce/reduce.h"
#include "cuda/typed_elements.h"
#include "cuda/reduce/reduce_type.h"

#define BODY "cuda/reduce/reduce_strided.inc"
#include "cuda/reduce/reduce_and_count.inc"

#define OWN(op, ...)                                       \
  NC_KERNEL_OF(BLOCK) TYPED(any_##op)(const Reduction f) { \
    reduce_strided(&f, __VA_ARGS__);                       \
  }
#define TRUTH(op, ...)                                     \
  NC_KERNEL_OF(BLOCK) TYPED(any_##op)(const Reduction f) { \
    TRUTHS(reduce_strided)(&f, __VA_ARGS__);               \
  }
#define PICK(op) kernel = TYPED(any_##op)
#define LAUNCHER nc_reduce_strided_
#define GENERIC "cuda/reduce/reduce.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC
