/* SPDX-License-Identifier: MIT */
/*
** scan.c - scans on the CPU (a part of the request dim_op): cumsum, cumprod,
** logcumsumexp, cummax, cummin.
*/
#include <math.h>

#include "core/cpu/columns.h"
#include "core/cpu/cpu.h"
#include "core/cpu/dim_rows.h"

#define BLOCK 65536 /* elements between two looks at nc_interrupted */

#define EACH(...)                                \
  for (int64_t i = 0; i < n && !nc_interrupted;) \
    for (int64_t end = n - i < BLOCK ? n : i + BLOCK; i < end; i++) __VA_ARGS__

static void cumsum_row(const DimRows *l, void *dst, const void *src) {
  const int64_t n = l->length, size = nc_dtypesize(l->t->dtype);
  double sum = 0;
  if (l->kernel == NULL) {
    const int64_t *x = src;
    int64_t *y = dst, whole = 0;
    EACH(y[i] = whole += x[i];)
    return;
  }
  for (int64_t i = 0; i < n && !nc_interrupted; i += BLOCK)
    sum =
        l->kernel->cumsum((char *)dst + i * size, (const char *)src + i * size,
                          n - i < BLOCK ? n - i : BLOCK, sum);
}

/* Four rows, one after the other in memory. */
static void cumsum_four(const DimRows *l, void *dst, const void *src) {
  const int64_t n = l->length, size = nc_dtypesize(l->t->dtype);
  double sum[4] = { 0 };
  for (int64_t i = 0; i < n && !nc_interrupted; i += BLOCK)
    l->kernel->cumsum_four((char *)dst + i * size, (const char *)src + i * size,
                           n, n - i < BLOCK ? n - i : BLOCK, sum);
}

static void cumprod_row(const DimRows *l, void *dst, const void *src) {
  const int64_t n = l->length;
  const DType type = l->t->dtype;
  double p = 1;
  if (type == DT_i64) {
    const int64_t *x = src;
    int64_t *y = dst, whole = 1;
    EACH(y[i] = whole *= x[i];)
  } else if (type == DT_f32) {
    const float *x = src;
    float *y = dst;
    EACH(y[i] = (float)(p *= (double)x[i]);)
  } else {
    const double *x = src;
    double *y = dst;
    EACH(y[i] = p *= x[i];)
  }
}

static double logadd(double a, double b) {
  double high = a > b || a != a ? a : b, low = a > b || a != a ? b : a;
  if (isinf(high) || high != high) return high;
  return high + log1p(exp(low - high));
}

static void logcumsumexp_row(const DimRows *l, void *dst, const void *src) {
  const int64_t n = l->length;
  double s = -INFINITY;
  if (l->t->dtype == DT_f32) {
    const float *x = src;
    float *y = dst;
    EACH(y[i] = (float)(s = logadd(s, (double)x[i]));)
  } else {
    const double *x = src;
    double *y = dst;
    EACH(y[i] = s = logadd(s, x[i]);)
  }
}

/* at = positions of the largest element so far (the smallest if `low'), the
   last of equals; dst, unless NULL, = these elements.  From the first nan on
   the result is the last nan. */
static void cumextreme_row(const DimRows *l, int64_t *at, void *dst,
                           const void *src, int low) {
  const int64_t n = l->length;
  int64_t best = 1;
#define SCAN(type, beats)    \
  do {                       \
    const type *x = src;     \
    type *y = dst, m = x[0]; \
    EACH({                   \
      const type v = x[i];   \
      if (beats || v != v) { \
        m = v;               \
        best = i + 1;        \
      }                      \
      at[i] = best;          \
      if (y) y[i] = m;       \
    })                       \
  } while (0)
#define BY_ORDER(type)           \
  do {                           \
    if (low) SCAN(type, v <= m); \
    else SCAN(type, v >= m);     \
  } while (0)
  if (l->t->dtype == DT_i64) BY_ORDER(int64_t);
  else if (l->t->dtype == DT_f32) BY_ORDER(float);
  else BY_ORDER(double);
#undef BY_ORDER
#undef SCAN
}

/* Rows of few elements, whose chains do not wait for each other; of four, as
   they are often so many, without a loop. */
#define SCAN_FEW(type, wide, begin, op)                                        \
  NC_INLINE void op##_rows_##type(type *y, const type *x, int64_t rows,        \
                                  int64_t n) {                                 \
    for (; rows > 0; rows--, y += n, x += n) {                                 \
      wide all = begin;                                                        \
      for (int64_t i = 0; i < n; i++) y[i] = (type)(all op##_STEP(wide) x[i]); \
    }                                                                          \
  }                                                                            \
  static void op##_few_##type(type *y, const type *x, int64_t rows,            \
                              int64_t n) {                                     \
    if (n == 4) op##_rows_##type(y, x, rows, 4);                               \
    else op##_rows_##type(y, x, rows, n);                                      \
  }
#define sum_STEP +=
#define prod_STEP *=
SCAN_FEW(float, double, 0, sum)
SCAN_FEW(float, double, 1, prod)
SCAN_FEW(double, double, 0, sum)
SCAN_FEW(double, double, 1, prod)
SCAN_FEW(int64_t, int64_t, 0, sum)
SCAN_FEW(int64_t, int64_t, 1, prod)
#undef sum_STEP
#undef prod_STEP
#undef SCAN_FEW

static void scan_few(const DimRows *l, DimOp op, void *y, const void *x,
                     int64_t rows) {
#define FEW(type) \
  (op == DIM_CUMSUM ? sum_few_##type : prod_few_##type)(y, x, rows, l->length)
  if (l->t->dtype == DT_f32) FEW(float);
  else if (l->t->dtype == DT_f64) FEW(double);
  else FEW(int64_t);
#undef FEW
}

/* One row of complex numbers, in pieces. */
static void complex_row(const DimRows *l, DimOp op, void *dst,
                        const void *src) {
  const ComplexKernels *k = &nc_kernels()->of_complex[l->t->dtype == DT_c128];
  const int64_t n = l->length, size = nc_dtypesize(l->t->dtype);
  double acc[2] = { op == DIM_CUMPROD, 0 };
  for (int64_t i = 0; i < n && !nc_interrupted; i += BLOCK)
    (op == DIM_CUMSUM ? k->sums : k->products)((char *)dst + i * size,
                                               (const char *)src + i * size,
                                               nc_min(n - i, BLOCK), acc);
}

typedef struct ScanWork {
  DimRows in;
  Tensor *out, *at; /* in the shape of in.t; one may be NULL */
  DimOp op;
} ScanWork;

static void scan_rows(void *ctx, int64_t begin, int64_t end) {
  const ScanWork *j = ctx;
  const int64_t n = j->in.length;
  const int64_t size = nc_dtypesize(j->in.t->dtype);
  const int fours = j->op == DIM_CUMSUM && j->in.kernel != NULL;
  const int complex = nc_is_complex(j->in.t->dtype);
  const int few =
      !complex && n <= NC_FEW && (j->op == DIM_CUMSUM || j->op == DIM_CUMPROD);
  for (int64_t i = begin, rows; i < end && !nc_interrupted; i += rows) {
    const char *x = (const char *)nc_data(j->in.t) + i * n * size;
    char *y = j->out ? (char *)nc_data(j->out) + i * n * size : NULL;
    rows = few ? nc_min(BLOCK / n, end - i) : fours && end - i >= 4 ? 4 : 1;
    if (complex) complex_row(&j->in, j->op, y, x);
    else if (few) scan_few(&j->in, j->op, y, x, rows);
    else if (rows == 4) cumsum_four(&j->in, y, x);
    else if (j->op == DIM_CUMSUM) cumsum_row(&j->in, y, x);
    else if (j->op == DIM_CUMPROD) cumprod_row(&j->in, y, x);
    else if (j->op == DIM_LOGCUMSUMEXP) logcumsumexp_row(&j->in, y, x);
    else
      cumextreme_row(&j->in, (int64_t *)nc_data(j->at) + i * n, y, x,
                     j->op == DIM_CUMMIN);
  }
}

int nc_cpu_scan(const DimCall *c) {
  const int dim = nc_dim_of(c);
  ScanWork j = { .op = c->op };
  int done, r = nc_cpu_columns(c, &done);
  if (done) return r;
  r = nc_is_complex(c->x->dtype)
          ? nc_dimrows_of(&j.in, c->x, c->dims, c->x->dtype)
          : nc_dimrows(&j.in, c->x, c->dims);
  if (r == NC_OK)
    r = nc_dimrows_result(&j.out, &j.in, c->y, j.in.t->dtype, dim);
  if (r == NC_OK) r = nc_dimrows_result(&j.at, &j.in, c->at, DT_i64, dim);
  if (r == NC_OK)
    r = nc_parallel(j.in.n, 1 + 16384 / j.in.length, scan_rows, &j);
  nc_release(j.in.t);
  r = nc_dimrows_store(r, c->y, j.out, dim);
  return nc_dimrows_store(r, c->at, j.at, dim);
}
