/* SPDX-License-Identifier: MIT */
/*
** error_flag.h - device functions that set the error flag of a device; for
** kernels.  The first thread to set the flag wins, later errors are dropped.
** See ErrorFlag in cuda.h.
*/
#ifndef cuda_runtime_error_flag_h
#define cuda_runtime_error_flag_h

#include "cuda/cuda.h"

/* Reports that value is not a valid index of dimension dim (of nd dimensions),
   whose size is `size'. */
NC_DEVICE void flag_index(ErrorFlag *flag, int64_t value, int64_t size, int dim,
                          int nd) {
  if (atomicCAS(&flag->set, 0, 1) != 0) return;
  flag->kind = FLAG_INDEX;
  flag->value = value;
  flag->size = size;
  flag->dim = dim;
  flag->nd = nd;
}

/* Reports that value is not a class from 1 to `classes'. */
NC_DEVICE void flag_class(ErrorFlag *flag, int64_t value, int64_t classes) {
  if (atomicCAS(&flag->set, 0, 1) != 0) return;
  flag->kind = FLAG_CLASS;
  flag->value = value;
  flag->size = classes;
}

NC_DEVICE void flag_assert(ErrorFlag *flag, int code, int text) {
  if (atomicCAS(&flag->set, 0, 1) != 0) return;
  flag->kind = FLAG_ASSERT;
  flag->code = code;
  flag->text = text;
}

/* The offset that stands for an invalid index.  It stays negative if other
   offsets are added, so that kernels can detect it and skip the access. */
#define INVALID_OFFSET (INT64_MIN / 16)

#endif
