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

#define PAIRS 128   /* of a slice: what a tile reads of it stays near */
#define COLUMNS 512 /* of b that are packed at once; or half as many, */
#define DEPTH 512   /* and so many pairs of its rows; or twice as many */
#define ROWS 1024   /* of a result whose sums are kept until the end */
#define MOST_WIDTH 32

/* A block of a product: columns j0..j0+n-1 of b, its rows k0..k0+k-1. */
typedef struct PairBlock {
  const Gemm *g;
  int amx;
  int64_t width, height;  /* of a tile */
  int64_t columns, depth; /* of a block, at most */
  int64_t j0, n, k0, k;
  int64_t xat[PAIRS], wat[PAIRS];
  _Alignas(64) uint32_t rows[NC_AMX_ROWS * NC_TILE_STEP];
  _Alignas(64) uint32_t panels[DEPTH * COLUMNS];
  /* of a result that is rounded at the end, and rows of the last tile */
  _Alignas(64) float sums[(ROWS + NC_AMX_ROWS) * COLUMNS / 2];
} PairBlock;

/* Rows k0..k0+k-1 of b, of a block, and where they are packed. */
typedef struct PairSlice {
  int64_t k0, k;
  int64_t pairs; /* of the k; missing ones are 0 */
  uint32_t *panels;
} PairSlice;

/* A tile: rows i..i+m-1 of a, columns j..j+n-1 of the block. */
typedef struct PairTile {
  int64_t i, m, j, n;
} PairTile;

/* The slice that begins k rows after the first of the block. */
static PairSlice slice_at(PairBlock *p, int64_t k) {
  PairSlice s = { .k0 = p->k0 + k, .k = nc_min(p->k - k, 2 * PAIRS) };
  const int64_t panels = nc_ceil_div(p->n, p->width);
  s.pairs = nc_ceil_div(s.k, 2);
  if (p->amx) s.pairs = nc_ceil_div(s.pairs, NC_AMX_DEPTH) * NC_AMX_DEPTH;
  s.panels = p->panels + k / 2 * panels * p->width;
  return s;
}

/*
** Packing
*/
/* The pairs first..last-1 of a panel, whose columns are those of b from column
   j on; what b lacks is 0. */
static void pack_panel(const PairBlock *p, const PairSlice *s, int64_t j,
                       int64_t first, int64_t last) {
  const int64_t *step = p->g->bs, n = nc_min(p->n - j, p->width);
  const int64_t count = nc_min(s->k / 2, last) - first;
  const uint16_t *b = (const uint16_t *)p->g->b +
                      (s->k0 + 2 * first) * step[0] + (p->j0 + j) * step[1];
  uint32_t *to = s->panels + j * s->pairs + first * p->width;
  if (n < p->width || last > s->k / 2)
    memset(to, 0, (size_t)((last - first) * p->width) * sizeof *to);
  if (step[1] == 1)
    nc_kernels()->pack_pairs(to, p->width, b, step[0], count, n);
  else nc_kernels()->turn_pairs(to, p->width, b, step[1], n, count);
  for (int64_t i = 0; i < n && s->k % 2 && last > s->k / 2; i++)
    to[count * p->width + i] = b[2 * count * step[0] + i * step[1]];
}

/* All panels, some rows of b at a time, which are adjacent in memory; or, where
   its columns are dense, adjacent within one of them. */
static void pack_panels(PairBlock *p) {
  for (int64_t k = 0; k < p->k; k += 2 * PAIRS) {
    const PairSlice s = slice_at(p, k);
    const int64_t some = p->g->bs[1] == 1 ? 4 : s.pairs;
    for (int64_t t = 0; t < s.pairs; t += some)
      for (int64_t j = 0; j < p->n; j += p->width)
        pack_panel(p, &s, j, t, nc_min(s.pairs, t + some));
  }
}

/* p->rows = m rows of a, whose columns are dense. */
static void turn_rows(PairBlock *p, const PairSlice *s, const uint16_t *a,
                      int64_t m) {
  const int64_t step = p->g->as[1], count = s->k / 2;
  uint32_t pairs[NC_AMX_ROWS * PAIRS];
  nc_kernels()->pack_pairs(pairs, NC_AMX_ROWS, a, step, count, m);
  nc_kernels()->turn_pairs(p->rows, NC_TILE_STEP, pairs, 2 * NC_AMX_ROWS, count,
                           m);
  for (int64_t i = 0; i < m && s->k % 2; i++)
    p->rows[i * NC_TILE_STEP + count] = a[(s->k - 1) * step + i];
}

/* p->rows = what a slice multiplies of m rows of a, from row i0 on. */
static void pack_rows(PairBlock *p, const PairSlice *s, int64_t i0, int64_t m) {
  const Gemm *g = p->g;
  const uint16_t *a = (const uint16_t *)g->a + i0 * g->as[0] + s->k0 * g->as[1];
  const int64_t rest = 2 * s->pairs - s->k;
  uint16_t *to = (uint16_t *)(void *)p->rows;
  if (g->as[1] != 1) turn_rows(p, s, a, m);
  for (int64_t i = 0; i < m; i++, a += g->as[0], to += 2 * NC_TILE_STEP) {
    if (g->as[1] == 1) memcpy(to, a, (size_t)s->k * sizeof *to);
    if (rest) memset(to + s->k, 0, (size_t)rest * sizeof *to);
  }
}

/*
** Tiles
*/
/* y = beta*y + rows * the tile's panel, in float. */
static void run_kernel(const PairBlock *p, const PairSlice *s, float *y,
                       int64_t ystep, const PairTile *t, int beta) {
  const Kernels *k = nc_kernels();
  const TileKernel tile =
      p->amx ? k->amx.tile[t->m > NC_AMX_ROWS / 2] : k->pair_tile[t->m];
  tile(y, ystep, p->rows, p->xat, s->panels + t->j * s->pairs, p->wat, s->pairs,
       beta);
}

/* c = beta*c + rows * panel, in float. */
static void add_tile(PairBlock *p, const PairSlice *s, const PairTile *t) {
  const int64_t cs = p->g->cs, width = p->width;
  const int beta = p->g->beta || s->k0 > 0;
  float *c = (float *)p->g->c + t->i * cs + p->j0 + t->j;
  float edge[NC_AMX_ROWS * MOST_WIDTH];
  if (t->n == width && (!p->amx || t->m == p->height)) {
    run_kernel(p, s, c, cs, t, beta);
    return;
  }
  for (int64_t i = 0; beta && i < t->m; i++)
    memcpy(edge + i * width, c + i * cs, (size_t)t->n * sizeof *c);
  run_kernel(p, s, edge, width, t, beta);
  for (int64_t i = 0; i < t->m; i++)
    memcpy(c + i * cs, edge + i * width, (size_t)t->n * sizeof *c);
}

/* The same for a c of bfloat16.  Sums are kept until the last rows of b: those
   of a tile, if there is one slice; of a strip, if there is one block. */
static void add_rounded(PairBlock *p, const PairSlice *s, const PairTile *t) {
  const Gemm *g = p->g;
  const int only = g->k <= 2 * PAIRS;
  const int64_t step = only ? MOST_WIDTH : p->columns;
  uint16_t *c = (uint16_t *)g->c + t->i * g->cs + p->j0 + t->j;
  float *sums = p->sums + (only ? 0 : t->j);
  if (g->k > p->depth) sums += t->i * step;
  for (int64_t i = 0; g->beta && s->k0 == 0 && i < t->m; i++)
    nc_kernels()->load[CT_f32][DT_bf16](sums + i * step, c + i * g->cs, 1,
                                        t->n);
  run_kernel(p, s, sums, step, t, g->beta || s->k0 > 0);
  if (s->k0 + s->k == g->k)
    nc_kernels()->round_rows(c, g->cs, sums, step, t->m, t->n);
}

/* m rows of the result, from row i on. */
static void multiply_strip(PairBlock *p, int64_t i, int64_t m) {
  for (int64_t k = 0; k < p->k; k += 2 * PAIRS) {
    const PairSlice s = slice_at(p, k);
    PairTile t = { .i = i, .m = m };
    pack_rows(p, &s, i, m);
    for (; t.j < p->n; t.j += p->width) {
      t.n = nc_min(p->n - t.j, p->width);
      (p->g->rounded ? add_rounded : add_tile)(p, &s, &t);
    }
  }
}

static void multiply_block(PairBlock *p) {
  const int64_t m = p->g->m, strips = nc_ceil_div(m, p->height);
  pack_panels(p);
  for (int64_t s = 0; s < strips && !nc_interrupted; s++) {
    const int64_t i = p->amx ? s * p->height : m * s / strips;
    const int64_t end = p->amx ? i + p->height : m * (s + 1) / strips;
    multiply_strip(p, i, nc_min(m, end) - i);
  }
}

/* At most ROWS rows, if c is rounded. */
static void multiply_rows(const Gemm *g, int amx) {
  const int deep = g->k > 2 * DEPTH;
  PairBlock p;
  p.g = g;
  p.amx = amx;
  p.width = nc_kernels()->tile_bytes / (int64_t)sizeof(float);
  p.height = amx ? NC_AMX_ROWS : nc_kernels()->tile_rows;
  p.columns = deep ? COLUMNS / 2 : COLUMNS;
  p.depth = deep ? 4 * DEPTH : 2 * DEPTH;
  for (int64_t t = 0; t < PAIRS; t++) {
    p.wat[t] = t * p.width;
    p.xat[t] = t;
  }
  for (p.j0 = 0; p.j0 < g->n; p.j0 += p.columns) {
    p.n = nc_min(g->n - p.j0, p.columns);
    for (p.k0 = 0; p.k0 < g->k && !nc_interrupted; p.k0 += p.depth) {
      p.k = nc_min(g->k - p.k0, p.depth);
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
