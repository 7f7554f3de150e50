/* SPDX-License-Identifier: MIT */
/*
** half_rows.c - products of a matrix of halves by a few rows, or columns, which
** take as long as it takes to read the matrix: it is read once, as it is
** stored, and sums are float32, rounded once.
**
** The matrix is cut along the side that it shares with the result, so that no
** element of that depends on how it is cut.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/product/blas.h"
#include "core/cpu/kernels/kernels.h"

#define LEAST_BLOCK 64 /* columns of the result, for a task */
#define MOST_SUMS 4096 /* of a task */
#define ENOUGH 500000  /* multiplications that are worth a thread */

/* A product y = x*w of `rows' rows; columns of the call's product if it is
   seen transposed. */
typedef struct HalfProduct {
  const BmmCall *c;
  const Tensor *x, *w;
  int64_t rows, n, k;
  int64_t xstep[2], wstep[2], ystep[2]; /* [rows, k], [k, n], [rows, n] */
  int along;                            /* are columns of w dense? */
  int padded;                           /* rows, for the kernel */
  int64_t block, blocks;                /* columns of a task; tasks */
  const HalfRowsKernels *kernels;
  int pairs;
} HalfProduct;

/* The first element of matrix i of a tensor's batch. */
static char *matrix_at(const Tensor *t, int64_t i) {
  int64_t offset = 0;
  for (int d = t->nd - 3; d >= 0; i /= t->size[d--])
    offset += i % t->size[d] * t->step[d];
  return (char *)nc_data(t) + offset * nc_dtypesize(t->dtype);
}

/* Packs k elements of each row from `from' on, for the kernel. */
static void pack_rows(const HalfProduct *p, void *x, const uint16_t *from,
                      int64_t k) {
  const int64_t size =
      p->pairs ? (int64_t)sizeof(uint16_t) : (int64_t)sizeof(float);
  const int64_t rest = (NC_FEW_PAD - k % NC_FEW_PAD) % NC_FEW_PAD;
  char *to = x;
  for (int64_t i = 0; i < p->padded; i++, to += NC_FEW_STEP * size) {
    const uint16_t *row = from + i * p->xstep[0];
    if (i >= p->rows) memset(to, 0, (size_t)((k + rest) * size));
    else if (p->pairs) nc_copy_strided(to, 2, row, 2 * p->xstep[1], k, 2);
    else nc_kernels()->load[CT_f32][p->x->dtype](to, row, p->xstep[1], k);
    memset(to + k * size, 0, (size_t)(rest * size));
  }
}

/* n columns of y from the sums of a task. */
static void store_rows(const HalfProduct *p, uint16_t *y, float *sum,
                       int64_t n) {
  const DType type = p->x->dtype;
  const float alpha = (float)nc_tofloat(p->c->alpha);
  const float beta = (float)nc_tofloat(p->c->beta);
  float addend[MOST_SUMS];
  for (int64_t i = 0; i < p->rows; i++, sum += p->block) {
    uint16_t *row = y + i * p->ystep[0];
    if (beta != 0)
      nc_kernels()->load[CT_f32][type](addend, row, p->ystep[1], n);
    for (int64_t j = 0; alpha != 1 && j < n; j++) sum[j] *= alpha;
    for (int64_t j = 0; beta != 0 && j < n; j++) sum[j] += beta * addend[j];
    nc_kernels()->store[CT_f32][type](row, sum, p->ystep[1], n);
  }
}

static void run_block(const HalfProduct *p, int64_t batch, int64_t j) {
  _Alignas(64) float x[NC_FEW_ROWS * NC_FEW_STEP];
  _Alignas(64) float sum[MOST_SUMS];
  const uint16_t *from = (const uint16_t *)(void *)matrix_at(p->x, batch);
  const uint16_t *w = (const uint16_t *)(void *)matrix_at(p->w, batch);
  uint16_t *y = (uint16_t *)(void *)matrix_at(p->c->y, batch);
  RowsProduct h = { .rows = p->padded,
                    .n = nc_min(p->n - j, p->block),
                    .wstep = p->wstep[p->along],
                    .sumstep = p->block };
  memset(sum, 0, (size_t)(p->padded * p->block) * sizeof *sum);
  for (int64_t t = 0; t < p->k && !nc_interrupted; t += NC_FEW_DEPTH) {
    h.k = nc_min(p->k - t, NC_FEW_DEPTH);
    pack_rows(p, x, from + t * p->xstep[1], h.k);
    (p->along ? p->kernels->along : p->kernels->across)(
        &h, sum, x, w + t * p->wstep[0] + j * p->wstep[1]);
  }
  store_rows(p, y + j * p->ystep[1], sum, h.n);
}

static void run_blocks(void *ctx, int64_t begin, int64_t end) {
  const HalfProduct *p = ctx;
  for (int64_t t = begin; t < end && !nc_interrupted; t++)
    run_block(p, t / p->blocks, t % p->blocks * p->block);
}

static int64_t batch_size(const Tensor *t) {
  int64_t n = 1;
  for (int d = 0; d < t->nd - 2; d++) n *= t->size[d];
  return n;
}

/* Cuts the columns: where there are not enough blocks for all threads, in
   smaller ones, whose rows are read less well. */
static int run_product(HalfProduct *p) {
  const int64_t batch = batch_size(p->c->y), threads = nc_threads();
  const int64_t wanted = threads == 1 ? 1 : 2 * threads;
  int64_t most = MOST_SUMS / p->padded;
  if (p->along) most = nc_min(most, 4 * LEAST_BLOCK);
  if (batch * nc_ceil_div(p->n, most) < wanted) {
    const int64_t even = nc_ceil_div(p->n, nc_ceil_div(wanted, batch));
    most = nc_min(most, nc_ceil_div(even, LEAST_BLOCK) * LEAST_BLOCK);
  }
  p->block = most;
  p->blocks = nc_ceil_div(p->n, most);
  const double work = (double)nc_min(p->n, most) * (double)p->k;
  return nc_parallel(batch * p->blocks, 1 + (int64_t)(ENOUGH / work),
                     run_blocks, p);
}

/* Sets the operands, of the product as it is or transposed; returns whether
   the rows are few and the matrix is dense along one side. */
static int take_operands(HalfProduct *p, int turned) {
  const BmmCall *c = p->c;
  const Tensor *x = turned ? c->b : c->a, *w = turned ? c->a : c->b;
  const int last = x->nd - 1, row = last - !turned, wide = last - turned;
  const int deep = last - !turned;
  p->x = x;
  p->w = w;
  p->rows = x->size[row];
  p->k = w->size[deep];
  p->n = w->size[wide];
  p->xstep[0] = x->step[row];
  p->xstep[1] = x->step[last - turned];
  p->wstep[0] = p->k == 1 ? 1 : w->step[deep];
  p->wstep[1] = p->n == 1 ? 1 : w->step[wide];
  p->ystep[0] = c->y->step[c->y->nd - 2 + turned];
  p->ystep[1] = c->y->step[c->y->nd - 1 - turned];
  p->along = p->wstep[0] == 1;
  return p->rows <= NC_FEW_ROWS && (p->along || p->wstep[1] == 1);
}

/* The product c, if it is one of few rows of halves; *done = whether it is. */
int nc_half_rows(const BmmCall *c, int *done) {
  const DType type = c->a->dtype;
  HalfProduct p = { .c = c };
  *done = (type == DT_f16 || type == DT_bf16) && c->a->size[c->a->nd - 1] > 0 &&
          (take_operands(&p, 0) || take_operands(&p, 1));
  if (!*done) return NC_OK;
  for (p.padded = 1; p.padded < p.rows;) p.padded *= 2;
  p.pairs = type == DT_bf16 && nc_multiplies_pairs();
  p.kernels = p.pairs ? &nc_kernels()->half_rows_by_pairs
                      : &nc_kernels()->half_rows[type == DT_bf16];
  return run_product(&p);
}
