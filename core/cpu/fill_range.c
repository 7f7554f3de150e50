/* SPDX-License-Identifier: MIT */
/* fill_range.c - the request fill_range on the CPU: arange, linspace. */
#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

#define BLOCK 512 /* values computed at a time */
#define GRAIN 32768

static void int_values(const FillRangeCall *s, void *v, int64_t from,
                       int64_t n) {
  uint64_t *r = v, start = (uint64_t)s->start.i, step = (uint64_t)s->step.i;
  for (int64_t i = 0; i < n; i++) r[i] = start + (uint64_t)(from + i) * step;
}

static void float_values(const FillRangeCall *s, void *v, int64_t from,
                         int64_t n) {
  double *r = v;
  for (int64_t i = 0; i < n; i++)
    r[i] = s->start.f + (double)(from + i) * s->step.f;
}

/* Counts from both ends to the middle, so that both ends are exact. */
static void linspace_values(const FillRangeCall *s, void *v, int64_t from,
                            int64_t n) {
  double *r = v;
  const int64_t all = s->y->size[0];
  int64_t half = all / 2 > from ? all / 2 - from : 0;
  for (int64_t i = 0; i < n; i++)
    r[i] = i < half || all == 1
               ? s->start.f + (double)(from + i) * s->step.f
               : s->end.f - (double)(all - 1 - from - i) * s->step.f;
}

static void fill_chunk(void *ctx, int64_t begin, int64_t end) {
  const FillRangeCall *s = ctx;
  const int isint = s->step.kind == NC_INT;
  const ConvertKernel store =
      nc_kernels()->store[isint ? CT_i64 : CT_f64][s->y->dtype];
  char *y = nc_data(s->y);
  union {
    int64_t i[BLOCK];
    double f[BLOCK];
  } v;
  for (int64_t i = begin; i < end; i += BLOCK) {
    int64_t n = end - i < BLOCK ? end - i : BLOCK;
    if (isint) int_values(s, &v, i, n);
    else if (s->spread) linspace_values(s, &v, i, n);
    else float_values(s, &v, i, n);
    store(y + i * nc_dtypesize(s->y->dtype), &v, 1, n);
  }
}

int nc_cpu_fill_range(const FillRangeCall *s) {
  FillRangeCall own = *s;
  return nc_parallel(s->y->size[0], GRAIN, fill_chunk, &own);
}
