/* SPDX-License-Identifier: MIT */
/*
** fill.c - copies (OP_clone) on the CPU of one number into dense memory.  cpu.c
** takes this way for them: the number is converted once.
*/
#include <math.h>
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/cursor.h"
#include "core/cpu/kernels/kernels.h"
#include "core/tensor.h"

#define GRAIN 262144 /* elements that are worth a thread */

int nc_cpu_isfilling(const TensorIter *k) {
  return k->op == OP_clone && k->grad_index == 0 && k->p[1] == NULL &&
         k->nd <= 1 && (k->nd == 0 || k->step[0][0] == 1);
}

typedef struct Filling {
  char *y;
  int64_t size;
  int zero;
  char number[NC_BLOCK]; /* repeated */
} Filling;

static void fill_range(void *ctx, int64_t begin, int64_t end) {
  const Filling *f = ctx;
  char *y = f->y + begin * f->size;
  int64_t bytes = (end - begin) * f->size, n;
  if (f->zero) {
    memset(y, 0, (size_t)bytes);
    return;
  }
  for (; bytes > 0; bytes -= n, y += n) {
    n = nc_min(bytes, (int64_t)sizeof f->number);
    memcpy(y, f->number, (size_t)n);
  }
}

int nc_cpu_fill(const TensorIter *k) {
  const KernelType c = nc_kernel_type(k->common_dtype);
  const Scalar v = k->number[1];
  Filling f = { .y = k->p[0], .size = nc_dtypesize(k->type[0]) };
  const int64_t n = nc_min(k->n, NC_BLOCK / f.size);
  _Alignas(64) char number[NC_BLOCK * 8];
  f.zero = v.kind == NC_FLOAT ? v.f == 0 && !signbit(v.f) : v.i == 0;
  if (!f.zero) {
    nc_fill_number(number, c, v, n);
    nc_kernels()->store[c][k->type[0]](f.number, number, 1, n);
  }
  return nc_parallel(k->n, GRAIN, fill_range, &f);
}
