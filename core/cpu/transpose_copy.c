/* SPDX-License-Identifier: MIT */
/*
** transpose_copy.c - on the CPU, copies in which the elements that are neighbours in
** the result are not those that are neighbours in the operand: transposed
** matrices, permuted dimensions.
**
** A tile is read by pieces of its rows into a buffer and written by pieces of
** its columns, so that each line of the cache is met once, whatever the sizes;
** rows a power of two apart would push each other out.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/portable.h"

#define PIECE 128   /* bytes of a row, or of a column, of a tile */
#define LEAST 8     /* elements of both dimensions worth it */
#define WORTH 32768 /* elements of a copy worth it */
#define GRAIN 32768 /* elements worth a thread */

typedef struct Turn {
  const TensorIter *k;
  int dim;              /* in which the operand is dense */
  int64_t tile;         /* elements along each side of a tile */
  int64_t down, across; /* tiles along dim, and along dimension 0 */
} Turn;

/* The dimension in which the operand is dense, if there the result is not; 0
   if there is none. */
static int denseat(const TensorIter *k) {
  for (int d = 1; d < k->nd; d++)
    if (k->step[1][d] == 1 && k->size[d] >= LEAST) return d;
  return 0;
}

int nc_cpu_istranspose(const TensorIter *k) {
  return k->op == OP_clone && k->part == 0 && k->n >= WORTH && k->p[1] &&
         k->type[0] == k->type[1] && k->work == k->type[0] &&
         k->step[0][0] == 1 && k->size[0] >= LEAST && denseat(k) > 0;
}

/* Where tile i begins in operand j. */
static char *tileat(const Turn *t, int j, int64_t i, int64_t m, int64_t n) {
  const TensorIter *k = t->k;
  int64_t at = m * t->tile * k->step[j][t->dim] + n * t->tile * k->step[j][0];
  for (int d = 1; d < k->nd; d++) {
    if (d == t->dim) continue;
    at += i % k->size[d] * k->step[j][d];
    i /= k->size[d];
  }
  return (char *)k->p[j] + at * nc_dtypesize(k->type[j]);
}

/* rows pieces of x, `apart' elements from each other, of n elements each, are
   the columns of y, whose own are `beside' elements from each other. */
#define TURN(type)                                                    \
  static void turn_##type(type *y, int64_t beside, const type *x,     \
                          int64_t apart, int64_t rows, int64_t n) {   \
    enum { TILE = PIECE / sizeof(type) };                             \
    _Alignas(64) type tile[TILE][TILE];                               \
    for (int64_t i = 0; i < rows; i++)                                \
      memcpy(tile[i], x + i * apart, (size_t)n * sizeof(type));       \
    for (int64_t j = 0; j < n; j++)                                   \
      NC_IVDEP for (int64_t i = 0; i < rows; i++) y[j * beside + i] = \
          tile[i][j];                                                 \
  }
TURN(uint8_t)
TURN(uint16_t)
TURN(uint32_t)
TURN(uint64_t)
#undef TURN

static void turntile(const Turn *t, int64_t i) {
  const TensorIter *k = t->k;
  const int64_t m = i % t->down, n = i / t->down % t->across;
  const int64_t width = k->size[t->dim] - m * t->tile;
  const int64_t height = k->size[0] - n * t->tile;
  const int64_t w = width < t->tile ? width : t->tile;
  const int64_t h = height < t->tile ? height : t->tile;
  const int64_t beside = k->step[0][t->dim], apart = k->step[1][0];
  void *y = tileat(t, 0, i / t->down / t->across, m, n);
  const void *x = tileat(t, 1, i / t->down / t->across, m, n);
  switch (nc_dtypesize(k->type[0])) {
    case 1: turn_uint8_t(y, beside, x, apart, h, w); break;
    case 2: turn_uint16_t(y, beside, x, apart, h, w); break;
    case 4: turn_uint32_t(y, beside, x, apart, h, w); break;
    default: turn_uint64_t(y, beside, x, apart, h, w);
  }
}

static void turntiles(void *ctx, int64_t begin, int64_t end) {
  const Turn *t = ctx;
  for (int64_t i = begin; i < end; i++) turntile(t, i);
}

int nc_cpu_transpose(const TensorIter *k) {
  const int dim = denseat(k);
  const int64_t tile = PIECE / nc_dtypesize(k->type[0]);
  Turn t = { k, dim, tile, (k->size[dim] - 1) / tile + 1,
             (k->size[0] - 1) / tile + 1 };
  int64_t tiles = t.down * t.across;
  for (int d = 1; d < k->nd; d++)
    if (d != dim) tiles *= k->size[d];
  return nc_parallel(tiles, GRAIN / (tile * tile), turntiles, &t);
}
