/* SPDX-License-Identifier: MIT */
/*
** pair_gemm.c - our own product of bfloat16 matrices, by the instruction that
** multiplies pairs of them and adds up in float: packed as in tiled_gemm.inc,
** two rows of b side by side.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/product/blas.h"
#include "core/cpu/kernels/kernels.h"

#define PAIRS 256   /* of rows of b that are packed at once */
#define COLUMNS 256 /* of b */
#define MOST_WIDTH 32

/* A block of a product: columns j0..j0+n-1 of b, its rows k0..k0+k-1. */
typedef struct PairBlock {
  const Gemm *g;
  int64_t j0, n, k0, k, width, pairs;
  int64_t xat[PAIRS], wat[PAIRS];
  _Alignas(64) uint32_t rows[NC_TILE_MOST * NC_TILE_STEP];
  _Alignas(64) uint32_t panels[PAIRS * COLUMNS];
} PairBlock;

/* The same of columns that are dense: there pairs lie side by side. */
static void pack_turned(uint32_t *to, int64_t width, const uint16_t *b,
                        int64_t step, int64_t count, int64_t n) {
  enum { STRIP = 16 };
  for (int64_t t = 0; t < count; t += STRIP, to += STRIP * width)
    for (int64_t i = 0; i < n; i++)
      for (int64_t l = 0; l < STRIP && t + l < count; l++)
        memcpy(&to[l * width + i], b + i * step + 2 * (t + l), sizeof *to);
}

/* A panel of n columns of b from column j on; what b lacks is 0. */
static void pack_panel(const PairBlock *p, uint32_t *to, int64_t j, int64_t n) {
  const int64_t *step = p->g->bs, count = p->k / 2;
  const uint16_t *b = (const uint16_t *)p->g->b + p->k0 * step[0] + j * step[1];
  if (n < p->width) memset(to, 0, (size_t)(p->pairs * p->width) * sizeof *to);
  if (step[1] == 1)
    nc_kernels()->pack_pairs(to, p->width, b, step[0], count, n);
  else pack_turned(to, p->width, b, step[1], count, n);
  for (int64_t i = 0; i < n && p->k % 2; i++)
    to[count * p->width + i] = b[(p->k - 1) * step[0] + i * step[1]];
}

static void pack_rows(PairBlock *p, int64_t i0, int64_t m) {
  const Gemm *g = p->g;
  const uint16_t *a = (const uint16_t *)g->a + i0 * g->as[0] + p->k0 * g->as[1];
  for (int64_t i = 0; i < m; i++, a += g->as[0]) {
    uint16_t *to = (uint16_t *)(p->rows + i * NC_TILE_STEP);
    if (g->as[1] == 1) memcpy(to, a, (size_t)p->k * sizeof *to);
    else
      for (int64_t k = 0; k < p->k; k++) to[k] = a[k * g->as[1]];
    if (p->k % 2) to[p->k] = 0;
  }
}

/* c [m x n], at most a tile, = beta*c + rows * panel */
static void multiply_tile(const PairBlock *p, float *c, int64_t m, int64_t n,
                          const uint32_t *panel) {
  const TileKernel tile = nc_kernels()->pair_tile[m];
  const int64_t cs = p->g->cs, width = p->width;
  const int beta = p->g->beta || p->k0 > 0;
  float edge[NC_TILE_MOST * MOST_WIDTH];
  if (n == width) {
    tile(c, cs, p->rows, p->xat, panel, p->wat, p->pairs, beta);
    return;
  }
  for (int64_t i = 0; beta && i < m; i++)
    memcpy(edge + i * width, c + i * cs, (size_t)n * sizeof *c);
  tile(edge, width, p->rows, p->xat, panel, p->wat, p->pairs, beta);
  for (int64_t i = 0; i < m; i++)
    memcpy(c + i * cs, edge + i * width, (size_t)n * sizeof *c);
}

static void multiply_block(PairBlock *p) {
  const Gemm *g = p->g;
  const int64_t strips = nc_ceil_div(g->m, nc_kernels()->tile_rows);
  for (int64_t t = 0; t < p->pairs; t++) {
    p->wat[t] = t * p->width;
    p->xat[t] = t;
  }
  for (int64_t j = 0; j < p->n; j += p->width)
    pack_panel(p, p->panels + j * p->pairs, p->j0 + j,
               nc_min(p->n - j, p->width));
  for (int64_t s = 0; s < strips && !nc_interrupted; s++) {
    const int64_t i = g->m * s / strips, m = g->m * (s + 1) / strips - i;
    pack_rows(p, i, m);
    for (int64_t j = 0; j < p->n; j += p->width)
      multiply_tile(p, (float *)g->c + i * g->cs + p->j0 + j, m,
                    nc_min(p->n - j, p->width), p->panels + j * p->pairs);
  }
}

void nc_pair_gemm(const Gemm *g) {
  PairBlock p;
  p.g = g;
  p.width = nc_kernels()->tile_bytes / (int64_t)sizeof(float);
  for (p.j0 = 0; p.j0 < g->n; p.j0 += COLUMNS) {
    p.n = nc_min(g->n - p.j0, COLUMNS);
    for (p.k0 = 0; p.k0 < g->k && !nc_interrupted; p.k0 += 2 * PAIRS) {
      p.k = nc_min(g->k - p.k0, 2 * PAIRS);
      p.pairs = nc_ceil_div(p.k, 2);
      multiply_block(&p);
    }
  }
}
