/* SPDX-License-Identifier: MIT */
/* error_flag.h - how kernels raise the flag of their device; see cuda.h. */
#ifndef cuda_runtime_error_flag_h
#define cuda_runtime_error_flag_h

#include "cuda/cuda.h"

/* value is no position along dimension dim of nd, which has `size'. */
NC_DEVICE void flag_index(ErrorFlag *flag, int64_t value, int64_t size, int dim,
                          int nd) {
  if (atomicCAS(&flag->set, 0, 1) != 0) return;
  flag->kind = FLAG_INDEX;
  flag->value = value;
  flag->size = size;
  flag->dim = dim;
  flag->nd = nd;
}

NC_DEVICE void flag_assert(ErrorFlag *flag, int code, int text) {
  if (atomicCAS(&flag->set, 0, 1) != 0) return;
  flag->kind = FLAG_ASSERT;
  flag->code = code;
  flag->text = text;
}

/* The offset of a wrong index: negative, also after others were added, so
   that it is neither read from nor written to. */
#define NOWHERE (INT64_MIN / 16)

#endif
