/* SPDX-License-Identifier: MIT */
/*
** byte_rows.c - the request byte_product on the CPU: products by a matrix of
** int8 that is read as it is stored, eight rows at a time; sums are int32, or
** float32 that is scaled and rounded once.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

#define BLOCK 128     /* rows of w, for a task */
#define ENOUGH 500000 /* multiplications that are worth a thread */

typedef struct ByteProduct {
  const ByteProductCall *c;
  int64_t m, n, k, wstep;
  int64_t block, blocks;
} ByteProduct;

typedef union RowElements {
  int16_t ints[NC_FEW_ROWS * NC_FEW_STEP];
  float floats[NC_FEW_ROWS * NC_FEW_STEP];
} RowElements;
typedef union RowSums {
  int32_t ints[NC_FEW_ROWS * BLOCK];
  float floats[NC_FEW_ROWS * BLOCK];
} RowSums;

/* Packs k elements of `rows' rows of x, from row i and element t on: as int16
   to ints, or as float. */
static void pack_rows(const ByteProduct *p, RowElements *to, int64_t i,
                      int64_t t, int64_t rows, int64_t padded, int64_t k) {
  const Tensor *x = p->c->x;
  const int64_t rest = (NC_FEW_PAD - k % NC_FEW_PAD) % NC_FEW_PAD;
  const int64_t size = nc_dtypesize(x->dtype), all = k + rest;
  for (int64_t r = 0; r < padded; r++) {
    const char *row = (const char *)nc_data(x) +
                      ((i + r) * x->step[0] + t * x->step[1]) * size;
    int16_t *ints = to->ints + r * NC_FEW_STEP;
    float *floats = to->floats + r * NC_FEW_STEP;
    if (p->c->scale) {
      if (r < rows)
        nc_kernels()->load[CT_f32][x->dtype](floats, row, x->step[1], k);
      memset(floats + (r < rows ? k : 0), 0,
             (size_t)(r < rows ? rest : all) * sizeof *floats);
    } else {
      for (int64_t e = 0; e < all; e++)
        ints[e] = r < rows && e < k ? ((const int8_t *)row)[e * x->step[1]] : 0;
    }
  }
}

/* y = sums times the scales of their columns, which begin at column j. */
static void store_row(const ByteProduct *p, char *y, const float *sum,
                      int64_t j, int64_t n) {
  const Tensor *s = p->c->scale;
  const DType type = p->c->y->dtype;
  float scaled[BLOCK];
  nc_kernels()->load[CT_f32][type](
      scaled, (const char *)nc_data(s) + j * s->step[0] * nc_dtypesize(type),
      s->step[0], n);
  for (int64_t e = 0; e < n; e++) scaled[e] *= sum[e];
  nc_kernels()->store[CT_f32][type](y, scaled, 1, n);
}

/* `rows' rows of the result from row i on, its columns j .. j+n-1. */
static void run_rows(const ByteProduct *p, int64_t i, int64_t rows, int64_t j,
                     int64_t n) {
  _Alignas(64) RowElements x;
  _Alignas(64) RowSums sum;
  const Kernels *kernels = nc_kernels();
  const int8_t *w = (const int8_t *)nc_data(p->c->w) + j * p->wstep;
  const int64_t size = nc_dtypesize(p->c->y->dtype);
  RowsProduct f = { .rows = 1, .n = n, .wstep = p->wstep, .sumstep = BLOCK };
  while (f.rows < rows) f.rows *= 2;
  memset(&sum, 0, sizeof sum);
  for (int64_t t = 0; t < p->k && !nc_interrupted; t += NC_FEW_DEPTH) {
    f.k = nc_min(p->k - t, NC_FEW_DEPTH);
    pack_rows(p, &x, i, t, rows, f.rows, f.k);
    if (p->c->scale) kernels->byte_rows(&f, sum.floats, x.floats, w + t);
    else
      (nc_multiplies_bytes() ? kernels->int_rows_vnni
                             : kernels->int_rows)(&f, sum.ints, x.ints, w + t);
  }
  for (int64_t r = 0; r < rows; r++) {
    char *y = (char *)nc_data(p->c->y) + ((i + r) * p->n + j) * size;
    if (p->c->scale) store_row(p, y, sum.floats + r * BLOCK, j, n);
    else memcpy(y, sum.ints + r * BLOCK, (size_t)(n * size));
  }
}

static void run_blocks(void *ctx, int64_t begin, int64_t end) {
  const ByteProduct *p = ctx;
  for (int64_t t = begin; t < end && !nc_interrupted; t++) {
    const int64_t j = t * p->block, n = nc_min(p->n - j, p->block);
    for (int64_t i = 0; i < p->m && !nc_interrupted; i += NC_FEW_ROWS)
      run_rows(p, i, nc_min(p->m - i, NC_FEW_ROWS), j, n);
  }
}

int nc_cpu_byte_product(const ByteProductCall *c) {
  ByteProduct p = { .c = c,
                    .m = c->x->size[0],
                    .n = c->w->size[0],
                    .k = c->w->size[1],
                    .wstep = c->w->step[0],
                    .block = BLOCK };
  while (p.block > 16 && nc_ceil_div(p.n, p.block) < 4 * nc_threads())
    p.block /= 2;
  p.blocks = nc_ceil_div(p.n, p.block);
  const double work = (double)p.block * (double)p.k * (double)p.m;
  return nc_parallel(p.blocks, 1 + (int64_t)(ENOUGH / (work + 1)), run_blocks,
                     &p);
}
