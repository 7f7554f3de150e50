/* SPDX-License-Identifier: MIT */
/* fourier_line.c - the transform of one line, on one thread or on all. */
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/fourier/fourier_plan.h"

/* Bytes of n pairs of lanes. */
static int64_t pair_bytes(const FourierPlan *p, int64_t n) {
  return 2 * n * nc_fourier_kernels(p->type)->lanes * nc_dtypesize(p->type);
}

static int64_t column_blocks(const FourierPlan *p) {
  return nc_ceil_div(p->split.n2, nc_fourier_kernels(p->type)->lanes);
}
static int64_t row_blocks(const FourierPlan *p) {
  return nc_ceil_div(p->split.n1, nc_fourier_kernels(p->type)->lanes);
}

/* Of a matrix, what `columns' writes; and what a block of either step needs. */
static int64_t turned_bytes(const FourierPlan *p) {
  return pair_bytes(p, row_blocks(p) * p->split.n2);
}
static int64_t block_bytes(const FourierPlan *p) {
  return pair_bytes(p, p->split.n2 < 2 * p->split.n1 ? 2 * p->split.n1
                                                     : p->split.n2);
}

int64_t nc_fourier_work(const FourierPlan *p) {
  if (p->chirped) return p->chirped->n * 16 + nc_fourier_work(p->chirped);
  if (p->split.n1) return turned_bytes(p) + block_bytes(p);
  return pair_bytes(p, 2 * p->n);
}

/*
** A matrix
*/
typedef struct LineWork {
  const FourierPlan *plan;
  const void *x;
  void *y, *turned;
  const FourierLayout *xl, *yl;
  double scale;
} LineWork;

static void columns_block(void *ctx, int64_t i, char *buffer) {
  const LineWork *k = ctx;
  nc_fourier_kernels(k->plan->type)
      ->columns(&k->plan->split, k->x, k->xl, k->turned, i, buffer);
}

static void rows_block(void *ctx, int64_t i, char *buffer) {
  const LineWork *k = ctx;
  nc_fourier_kernels(k->plan->type)
      ->rows(&k->plan->split, k->turned, k->y, k->yl, k->scale, i, buffer);
}

static void split_line(LineWork *k, char *work) {
  const int64_t columns = column_blocks(k->plan), rows = row_blocks(k->plan);
  char *buffer = work + turned_bytes(k->plan);
  k->turned = work;
  for (int64_t i = 0; i < columns; i++) columns_block(k, i, buffer);
  for (int64_t i = 0; i < rows; i++) rows_block(k, i, buffer);
}

static int split_by_threads(LineWork *k) {
  const int64_t bytes = turned_bytes(k->plan), buffer = block_bytes(k->plan);
  TRY(nc_hostalloc(&k->turned, bytes));
  int r = nc_cpu_tasks(column_blocks(k->plan), buffer, columns_block, k);
  if (r == NC_OK) r = nc_cpu_tasks(row_blocks(k->plan), buffer, rows_block, k);
  nc_hostfree(k->turned, bytes);
  return r;
}

/*
** A chirp.  Elements become float64 on their way in.
*/
static double number_at(const void *x, DType type, int64_t i) {
  return type == DT_f32 ? (double)((const float *)x)[i]
                        : ((const double *)x)[i];
}

static void put_number(void *y, DType type, int64_t i, double v) {
  if (type == DT_f32) ((float *)y)[i] = (float)v;
  else ((double *)y)[i] = v;
}

/* c = x times the chirp, then zeros */
static void begin_chirp(const LineWork *k, double *c) {
  const FourierPlan *p = k->plan;
  const FourierLayout *l = k->xl;
  const double *w = p->chirp;
  for (int64_t j = 0; j < p->n; j++) {
    const double a = number_at(k->x, p->type, j * l->step);
    const double b =
        l->gap ? number_at(k->x, p->type, j * l->step + l->gap) : 0;
    const double re = l->swap ? b : a, im = l->swap ? a : b;
    c[2 * j] = re * w[2 * j] - im * w[2 * j + 1];
    c[2 * j + 1] = re * w[2 * j + 1] + im * w[2 * j];
  }
  memset(c + 2 * p->n, 0, (size_t)(p->chirped->n - p->n) * 16);
}

/* c = c times the filter, with swapped parts, for the transform back */
static void apply_filter(const FourierPlan *p, double *c) {
  const double *f = p->filter;
  for (int64_t i = 0; i < p->chirped->n; i++) {
    const double re = c[2 * i], im = c[2 * i + 1];
    c[2 * i] = re * f[2 * i + 1] + im * f[2 * i];
    c[2 * i + 1] = re * f[2 * i] - im * f[2 * i + 1];
  }
}

static void end_chirp(const LineWork *k, const double *c) {
  const FourierPlan *p = k->plan;
  const FourierLayout *l = k->yl;
  const double *w = p->chirp;
  for (int64_t j = 0; j < p->n; j++) {
    const double im = c[2 * j] * k->scale, re = c[2 * j + 1] * k->scale;
    const double a = re * w[2 * j] - im * w[2 * j + 1];
    const double b = re * w[2 * j + 1] + im * w[2 * j];
    put_number(k->y, p->type, j * l->step, l->swap ? b : a);
    if (l->gap)
      put_number(k->y, p->type, j * l->step + l->gap, l->swap ? a : b);
  }
}

static const FourierLayout dense = { .step = 2, .gap = 1 };

static void chirped_line(const LineWork *k, char *work) {
  const FourierPlan *p = k->plan;
  double *c = (double *)work;
  char *rest = work + p->chirped->n * 16;
  begin_chirp(k, c);
  nc_fourier_line(p->chirped, c, &dense, c, &dense, 1, rest);
  apply_filter(p, c);
  nc_fourier_line(p->chirped, c, &dense, c, &dense, 1, rest);
  end_chirp(k, c);
}

static int chirped_by_threads(const LineWork *k) {
  const FourierPlan *p = k->plan;
  const int64_t bytes = p->chirped->n * 16;
  void *c = NULL;
  int r;
  TRY(nc_hostalloc(&c, bytes));
  begin_chirp(k, c);
  r = nc_fourier_long_line(p->chirped, c, &dense, c, &dense, 1);
  if (r == NC_OK) {
    apply_filter(p, c);
    r = nc_fourier_long_line(p->chirped, c, &dense, c, &dense, 1);
  }
  if (r == NC_OK) end_chirp(k, c);
  nc_hostfree(c, bytes);
  return r;
}

void nc_fourier_line(const FourierPlan *p, const void *x,
                     const FourierLayout *xl, void *y, const FourierLayout *yl,
                     double scale, void *work) {
  const FourierKernels *f = nc_fourier_kernels(p->type);
  LineWork k = { p, x, y, NULL, xl, yl, scale };
  if (p->chirped) chirped_line(&k, work);
  else if (p->split.n1) split_line(&k, work);
  else {
    f->gather(work, x, xl, p->n, 1);
    f->spread(y, yl,
              f->transform(&p->whole, work, (char *)work + pair_bytes(p, p->n)),
              p->n, 1, scale);
  }
}

int nc_fourier_long_line(const FourierPlan *p, const void *x,
                         const FourierLayout *xl, void *y,
                         const FourierLayout *yl, double scale) {
  LineWork k = { p, x, y, NULL, xl, yl, scale };
  const int64_t bytes = nc_fourier_work(p);
  void *work = NULL;
  if (p->chirped) return chirped_by_threads(&k);
  if (p->split.n1) return split_by_threads(&k);
  TRY(nc_hostalloc(&work, bytes));
  nc_fourier_line(p, x, xl, y, yl, scale, work);
  nc_hostfree(work, bytes);
  return NC_OK;
}
