/* SPDX-License-Identifier: MIT */
/*
** pair_gemm.c - our own product of bfloat16 matrices, by instructions that
** multiply pairs of them and add up in float: packed as in tiled_gemm.inc, two
** rows of b side by side.  A tile is of vectors, or of AMX.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/product/blas.h"
#include "core/cpu/kernels/kernels.h"

#define PAIRS 256   /* of rows of b that are packed at once */
#define COLUMNS 256 /* of b */
#define ROWS 1024   /* of a result whose sums are kept until the end */
#define MOST_WIDTH 32

/* A block of a product: columns j0..j0+n-1 of b, its rows k0..k0+k-1. */
typedef struct PairBlock {
  const Gemm *g;
  int amx;
  int64_t width, height; /* of a tile */
  int64_t j0, n, k0, k;
  int64_t pairs; /* of the k; those that are none are 0 */
  int64_t xat[PAIRS], wat[PAIRS];
  _Alignas(64) uint32_t rows[NC_AMX_ROWS * NC_TILE_STEP];
  _Alignas(64) uint32_t panels[PAIRS * COLUMNS];
  /* of a result that is rounded at the end, and rows of the last tile */
  _Alignas(64) float sums[(ROWS + NC_AMX_ROWS) * COLUMNS];
} PairBlock;

/* A tile: rows i..i+m-1 of a, columns j..j+n-1 of the block. */
typedef struct PairTile {
  int64_t i, m, j, n;
} PairTile;

/*
** Packing
*/
/* The pairs first..last-1 of a panel, whose columns are those of b from column
   j on; what b lacks is 0. */
static void pack_panel(PairBlock *p, int64_t j, int64_t first, int64_t last) {
  const int64_t *step = p->g->bs, n = nc_min(p->n - j, p->width);
  const int64_t count = nc_min(p->k / 2, last) - first;
  const uint16_t *b = (const uint16_t *)p->g->b +
                      (p->k0 + 2 * first) * step[0] + (p->j0 + j) * step[1];
  uint32_t *to = p->panels + j * p->pairs + first * p->width;
  if (n < p->width || last > p->k / 2)
    memset(to, 0, (size_t)((last - first) * p->width) * sizeof *to);
  if (step[1] == 1)
    nc_kernels()->pack_pairs(to, p->width, b, step[0], count, n);
  else nc_kernels()->turn_pairs(to, p->width, b, step[1], n, count);
  for (int64_t i = 0; i < n && p->k % 2 && last > p->k / 2; i++)
    to[count * p->width + i] = b[2 * count * step[0] + i * step[1]];
}

/* All panels, some rows of b at a time: these are what lies together, or, where
   its columns are dense, what lies together in one of them. */
static void pack_panels(PairBlock *p) {
  const int64_t some = p->g->bs[1] == 1 ? 4 : p->pairs;
  for (int64_t t = 0; t < p->pairs; t += some)
    for (int64_t j = 0; j < p->n; j += p->width)
      pack_panel(p, j, t, nc_min(p->pairs, t + some));
}

/* p->rows = m rows of a, whose columns are dense. */
static void turn_rows(PairBlock *p, const uint16_t *a, int64_t m) {
  const int64_t step = p->g->as[1], count = p->k / 2;
  uint32_t pairs[NC_AMX_ROWS * PAIRS];
  nc_kernels()->pack_pairs(pairs, NC_AMX_ROWS, a, step, count, m);
  nc_kernels()->turn_pairs(p->rows, NC_TILE_STEP, pairs, 2 * NC_AMX_ROWS, count,
                           m);
  for (int64_t i = 0; i < m && p->k % 2; i++)
    p->rows[i * NC_TILE_STEP + count] = a[(p->k - 1) * step + i];
}

static void pack_rows(PairBlock *p, int64_t i0, int64_t m) {
  const Gemm *g = p->g;
  const uint16_t *a = (const uint16_t *)g->a + i0 * g->as[0] + p->k0 * g->as[1];
  const int64_t rest = 2 * p->pairs - p->k;
  uint16_t *to = (uint16_t *)(void *)p->rows;
  if (g->as[1] != 1) turn_rows(p, a, m);
  for (int64_t i = 0; i < m; i++, a += g->as[0], to += 2 * NC_TILE_STEP) {
    if (g->as[1] == 1) memcpy(to, a, (size_t)p->k * sizeof *to);
    if (rest) memset(to + p->k, 0, (size_t)rest * sizeof *to);
  }
}

/*
** Tiles
*/
static void run_kernel(const PairBlock *p, float *y, int64_t ystep, int64_t m,
                       const uint32_t *panel, int beta) {
  const Kernels *k = nc_kernels();
  const TileKernel tile =
      p->amx ? k->amx.tile[m > NC_AMX_ROWS / 2] : k->pair_tile[m];
  tile(y, ystep, p->rows, p->xat, panel, p->wat, p->pairs, beta);
}

/* c = beta*c + rows * panel, in float. */
static void add_tile(PairBlock *p, const PairTile *t, const uint32_t *panel) {
  const int64_t cs = p->g->cs, width = p->width;
  const int beta = p->g->beta || p->k0 > 0;
  float *c = (float *)p->g->c + t->i * cs + p->j0 + t->j;
  float edge[NC_AMX_ROWS * MOST_WIDTH];
  if (t->n == width && (!p->amx || t->m == p->height)) {
    run_kernel(p, c, cs, t->m, panel, beta);
    return;
  }
  for (int64_t i = 0; beta && i < t->m; i++)
    memcpy(edge + i * width, c + i * cs, (size_t)t->n * sizeof *c);
  run_kernel(p, edge, width, t->m, panel, beta);
  for (int64_t i = 0; i < t->m; i++)
    memcpy(c + i * cs, edge + i * width, (size_t)t->n * sizeof *c);
}

/* The same for a c of bfloat16; sums are kept until the last rows of b. */
static void add_rounded(PairBlock *p, const PairTile *t,
                        const uint32_t *panel) {
  const Gemm *g = p->g;
  const int last = p->k0 + p->k == g->k, only = last && p->k0 == 0;
  const int64_t step = only ? MOST_WIDTH : COLUMNS;
  uint16_t *c = (uint16_t *)g->c + t->i * g->cs + p->j0 + t->j;
  float *sums = only ? p->sums : p->sums + t->i * COLUMNS + t->j;
  for (int64_t i = 0; g->beta && p->k0 == 0 && i < t->m; i++)
    nc_kernels()->load[CT_f32][DT_bf16](sums + i * step, c + i * g->cs, 1,
                                        t->n);
  run_kernel(p, sums, step, t->m, panel, g->beta || p->k0 > 0);
  if (last) nc_kernels()->round_rows(c, g->cs, sums, step, t->m, t->n);
}

static void multiply_block(PairBlock *p) {
  const Gemm *g = p->g;
  const int64_t strips = nc_ceil_div(g->m, p->height);
  for (int64_t t = 0; t < p->pairs; t++) {
    p->wat[t] = t * p->width;
    p->xat[t] = t;
  }
  pack_panels(p);
  for (int64_t s = 0; s < strips && !nc_interrupted; s++) {
    PairTile t = { .i = p->amx ? s * p->height : g->m * s / strips };
    t.m =
        nc_min(g->m, p->amx ? t.i + p->height : g->m * (s + 1) / strips) - t.i;
    pack_rows(p, t.i, t.m);
    for (; t.j < p->n; t.j += p->width) {
      t.n = nc_min(p->n - t.j, p->width);
      (g->rounded ? add_rounded : add_tile)(p, &t, p->panels + t.j * p->pairs);
    }
  }
}

/* At most ROWS rows, if c is rounded. */
static void multiply_rows(const Gemm *g, int amx) {
  PairBlock p;
  p.g = g;
  p.amx = amx;
  p.width = nc_kernels()->tile_bytes / (int64_t)sizeof(float);
  p.height = amx ? NC_AMX_ROWS : nc_kernels()->tile_rows;
  for (p.j0 = 0; p.j0 < g->n; p.j0 += COLUMNS) {
    p.n = nc_min(g->n - p.j0, COLUMNS);
    for (p.k0 = 0; p.k0 < g->k && !nc_interrupted; p.k0 += 2 * PAIRS) {
      p.k = nc_min(g->k - p.k0, 2 * PAIRS);
      p.pairs = nc_ceil_div(p.k, 2);
      if (amx) p.pairs = nc_ceil_div(p.pairs, NC_AMX_DEPTH) * NC_AMX_DEPTH;
      multiply_block(&p);
    }
  }
}

void nc_pair_gemm(const Gemm *g) {
  const int amx = nc_multiplies_pairs() == NC_PAIRS_BY_AMX;
  const int64_t most = g->rounded ? ROWS : g->m;
  Gemm part = *g;
  AmxState before;
  if (amx) nc_kernels()->amx.begin(&before);
  for (int64_t i = 0; i < g->m; i += most) {
    part.m = nc_min(most, g->m - i);
    part.a = (const uint16_t *)g->a + i * g->as[0];
    if (g->rounded) part.c = (uint16_t *)g->c + i * g->cs;
    multiply_rows(&part, amx);
  }
  if (amx) nc_kernels()->amx.end(&before);
}
