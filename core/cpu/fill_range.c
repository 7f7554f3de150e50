/* SPDX-License-Identifier: MIT */
/* fill_range.c - the request fill_range on the CPU: arange, linspace. */
#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

#define BLOCK 512 /* values computed at a time */
#define GRAIN 32768

/* Wraps to the same value as int64 does when it is converted. */
#define INT_VALUES(type)                                                   \
  static void values_##type(const FillRangeCall *s, void *v, int64_t from, \
                            int64_t n) {                                   \
    const type step = (type)s->step.i;                                     \
    type *r = v, next = (type)((type)s->start.i + (type)from * step);      \
    for (int64_t i = 0; i < n; i++, next += step) r[i] = next;             \
  }
INT_VALUES(uint32_t)
INT_VALUES(uint64_t)
#undef INT_VALUES

/* r[i] = start + (from + i) * step; the sum of two doubles is exact. */
static void float_values(double *r, int64_t n, double start, double from,
                         double step) {
  for (int i = 0; i < (int)n; i++) r[i] = start + (from + i) * step;
}

/* Counts from both ends to the middle, so that both ends are exact. */
static void linspace_values(const FillRangeCall *s, double *r, int64_t from,
                            int64_t n) {
  const int64_t all = s->y->size[0];
  const int64_t half = all == 1 ? 1 : all / 2;
  const int64_t m = half <= from ? 0 : half - from < n ? half - from : n;
  const double end = s->end.f, step = s->step.f;
  const double back = (double)(all - 1 - from);
  float_values(r, m, s->start.f, (double)from, step);
  for (int i = (int)m; i < (int)n; i++) r[i] = end - (back - i) * step;
}

static void fill_chunk(void *ctx, int64_t begin, int64_t end) {
  const FillRangeCall *s = ctx;
  const DType type = s->y->dtype;
  const int isint = s->step.kind == NC_INT;
  const ConvertKernel store =
      nc_kernels()->store[isint ? CT_i64 : CT_f64][type];
  const int direct = isint ? type == DT_i64 || type == DT_i32 : type == DT_f64;
  const int64_t size = nc_dtypesize(type);
  char *y = nc_data(s->y);
  _Alignas(64) char buf[BLOCK * 8];
  for (int64_t i = begin; i < end; i += BLOCK) {
    const int64_t n = end - i < BLOCK ? end - i : BLOCK;
    void *v = direct ? (void *)(y + i * size) : buf;
    if (isint && type == DT_i32) values_uint32_t(s, v, i, n);
    else if (isint) values_uint64_t(s, v, i, n);
    else if (s->spread) linspace_values(s, v, i, n);
    else float_values(v, n, s->start.f, (double)i, s->step.f);
    if (!direct) store(y + i * size, v, 1, n);
  }
}

int nc_cpu_fill_range(const FillRangeCall *s) {
  FillRangeCall own = *s;
  return nc_parallel(s->y->size[0], GRAIN, fill_chunk, &own);
}
