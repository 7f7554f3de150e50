/* SPDX-License-Identifier: MIT */
/*
** transpose_copy.c - copies (OP_clone) on the CPU whose operand is dense along
** another dimension than the result: transposed matrices, permuted dimensions.
** cpu.c takes this way for large copies, and for such operands of other large
** loops.
**
** A tile is read by rows into a buffer and written by columns, so that each
** cache line is touched once; without a buffer, rows a power of two apart would
** evict each other.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/ops.h"
#include "core/portable.h"

#define TILEBYTES 128 /* bytes of a row, or a column, of a tile */
#define MINSIZE 8     /* of both dimensions, in elements */
#define MINCOPY 32768 /* elements of a copy */
#define GRAIN 32768   /* elements that are worth a thread */
#define SLAB_BYTES ((int64_t)1 << 20)    /* of an operand, at least one tile */
#define STREAM_BYTES ((int64_t)16 << 20) /* a result too large to cache */

typedef struct TransposeCopy {
  const TensorIter *k;
  int dim;              /* along which the operand is dense */
  int64_t tile;         /* elements along each side of a tile */
  int64_t down, across; /* tiles along dim, and along dimension 0 */
  int stream;           /* is the result written past the cache? */
} TransposeCopy;

/* The dimension other than 0 along which operand j is dense; 0: none. */
static int operand_dense_dim(const TensorIter *k, int j) {
  for (int d = 1; d < k->nd; d++)
    if (k->step[j][d] == 1 && k->size[d] >= MINSIZE) return d;
  return 0;
}

int nc_cpu_istranspose(const TensorIter *k) {
  return k->op == OP_clone && k->grad_index == 0 && k->n >= MINCOPY &&
         k->p[1] && k->type[0] == k->type[1] && k->common_dtype == k->type[0] &&
         k->step[0][0] == 1 && k->step[1][0] > 1 && k->size[0] >= MINSIZE &&
         operand_dense_dim(k, 1) > 0;
}

/* The address of tile (m, n) of matrix i in operand j. */
static char *tile_origin(const TransposeCopy *t, int j, int64_t i, int64_t m,
                         int64_t n) {
  const TensorIter *k = t->k;
  int64_t at = m * t->tile * k->step[j][t->dim] + n * t->tile * k->step[j][0];
  for (int d = 1; d < k->nd; d++) {
    if (d == t->dim) continue;
    at += i % k->size[d] * k->step[j][d];
    i /= k->size[d];
  }
  return (char *)k->p[j] + at * nc_dtypesize(k->type[j]);
}

/* For whole tiles of four bytes an element: y = the transpose of the tile, four
   rows of it in four columns at a time, in registers. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE __builtin_shufflevector
#endif
#endif
#ifdef SHUFFLE
static void transpose_whole(uint32_t *y, int64_t ystep, const uint32_t *tile) {
  typedef uint32_t Four __attribute__((vector_size(16)));
  enum { TILE = TILEBYTES / sizeof(uint32_t) };
  for (int64_t j = 0; j < TILE; j += 4)
    for (int64_t i = 0; i < TILE; i += 4) {
      Four v[4], low[2], high[2];
      for (int k = 0; k < 4; k++) memcpy(&v[k], tile + (i + k) * TILE + j, 16);
      for (int k = 0; k < 2; k++) {
        low[k] = SHUFFLE(v[2 * k], v[2 * k + 1], 0, 4, 1, 5);
        high[k] = SHUFFLE(v[2 * k], v[2 * k + 1], 2, 6, 3, 7);
      }
      v[0] = SHUFFLE(low[0], low[1], 0, 1, 4, 5);
      v[1] = SHUFFLE(low[0], low[1], 2, 3, 6, 7);
      v[2] = SHUFFLE(high[0], high[1], 0, 1, 4, 5);
      v[3] = SHUFFLE(high[0], high[1], 2, 3, 6, 7);
      for (int k = 0; k < 4; k++) memcpy(y + (j + k) * ystep + i, &v[k], 16);
    }
}
#endif

/* y = the transpose of x, `rows' rows of n elements.  Rows of x lie `xstep'
   elements apart, rows of y `ystep'. */
#ifdef SHUFFLE
#define WHOLE_TILE(type)                                 \
  if (sizeof(type) == 4 && rows == TILE && n == TILE) {  \
    transpose_whole((uint32_t *)y, ystep, (void *)tile); \
    return;                                              \
  }
#else
#define WHOLE_TILE(type)
#endif
#define TRANSPOSE_TILE(type)                                             \
  static void transpose_##type(type *y, int64_t ystep, const type *x,    \
                               int64_t xstep, int64_t rows, int64_t n) { \
    enum { TILE = TILEBYTES / sizeof(type) };                            \
    _Alignas(64) type tile[TILE][TILE];                                  \
    for (int64_t i = 0; i < rows; i++)                                   \
      memcpy(tile[i], x + i * xstep, (size_t)n * sizeof(type));          \
    WHOLE_TILE(type)                                                     \
    for (int64_t j = 0; j < n; j++)                                      \
      NC_IVDEP for (int64_t i = 0; i < rows; i++) y[j * ystep + i] =     \
          tile[i][j];                                                    \
  }
TRANSPOSE_TILE(uint8_t)
TRANSPOSE_TILE(uint16_t)
TRANSPOSE_TILE(uint32_t)
TRANSPOSE_TILE(uint64_t)
#undef TRANSPOSE_TILE

static void transpose(const TensorIter *k, void *y, int64_t ystep,
                      const void *x, int64_t xstep, int64_t rows, int64_t n) {
  switch (nc_dtypesize(k->type[0])) {
    case 1: transpose_uint8_t(y, ystep, x, xstep, rows, n); break;
    case 2: transpose_uint16_t(y, ystep, x, xstep, rows, n); break;
    case 4: transpose_uint32_t(y, ystep, x, xstep, rows, n); break;
    default: transpose_uint64_t(y, ystep, x, xstep, rows, n);
  }
}

/* The same for a whole tile, whose rows of TILEBYTES go past the cache. */
static void stream_tile(const TransposeCopy *t, char *y, int64_t ystep,
                        const void *x, int64_t xstep) {
  _Alignas(64) char tile[TILEBYTES * TILEBYTES];
  const int64_t size = nc_dtypesize(t->k->type[0]);
  transpose(t->k, tile, t->tile, x, xstep, t->tile, t->tile);
  for (int64_t j = 0; j < t->tile; j++)
    nc_kernels()->stream(y + j * ystep * size, tile + j * TILEBYTES, TILEBYTES);
}

static void copy_tile(const TransposeCopy *t, int64_t i) {
  const TensorIter *k = t->k;
  const int64_t m = i % t->down, n = i / t->down % t->across;
  const int64_t width = k->size[t->dim] - m * t->tile;
  const int64_t height = k->size[0] - n * t->tile;
  const int64_t w = width < t->tile ? width : t->tile;
  const int64_t h = height < t->tile ? height : t->tile;
  const int64_t ystep = k->step[0][t->dim], xstep = k->step[1][0];
  void *y = tile_origin(t, 0, i / t->down / t->across, m, n);
  const void *x = tile_origin(t, 1, i / t->down / t->across, m, n);
  if (t->stream && h == t->tile && w == t->tile)
    stream_tile(t, y, ystep, x, xstep);
  else transpose(k, y, ystep, x, xstep, h, w);
}

static void copy_tiles(void *ctx, int64_t begin, int64_t end) {
  const TransposeCopy *t = ctx;
  for (int64_t i = begin; i < end; i++) copy_tile(t, i);
  if (t->stream) nc_kernels()->fence();
}

/* Is the result too large for the cache, and does each row of a tile begin a
   cache line? */
static int should_stream(const TensorIter *k) {
  const int64_t size = nc_dtypesize(k->type[0]);
  int aligned = (uintptr_t)k->p[0] % 64 == 0 && k->n * size >= STREAM_BYTES;
  for (int d = 1; d < k->nd; d++) aligned &= k->step[0][d] * size % 64 == 0;
  return aligned;
}

/* Copies; the operand is dense along dimension `dim'. */
static int transpose_along(const TensorIter *k, int dim) {
  const int64_t tile = TILEBYTES / nc_dtypesize(k->type[0]);
  TransposeCopy t = { k,
                      dim,
                      tile,
                      (k->size[dim] - 1) / tile + 1,
                      (k->size[0] - 1) / tile + 1,
                      should_stream(k) };
  int64_t tiles = t.down * t.across;
  for (int d = 1; d < k->nd; d++)
    if (d != dim) tiles *= k->size[d];
  return nc_parallel(tiles, GRAIN / (tile * tile), copy_tiles, &t);
}

int nc_cpu_transpose(const TensorIter *k) {
  return transpose_along(k, operand_dense_dim(k, 1));
}

/*
** Other loops with an operand that is transposed
*/
int nc_cpu_transposed_operand(const TensorIter *k) {
  if (k->n < MINCOPY || k->step[0][0] != 1 || k->size[0] < MINSIZE) return 0;
  for (int j = 1; j < k->nargs; j++)
    if (k->p[j] && k->step[j][0] > 1 && operand_dense_dim(k, j) > 0) return j;
  return 0;
}

/* The part of k whose indices in dimension `dim' are at .. at+m-1. */
static TensorIter slab_of(const TensorIter *k, int dim, int64_t at, int64_t m) {
  TensorIter part = *k;
  part.n = k->n / k->size[dim] * m;
  part.size[dim] = m;
  for (int j = 0; j < k->nargs; j++)
    if (k->p[j])
      part.p[j] =
          (char *)k->p[j] + at * k->step[j][dim] * nc_dtypesize(k->type[j]);
  return part;
}

/* Copies operand j of the slab to `buf' and makes that the operand. */
static int transpose_operand(TensorIter *slab, int j, int dim, void *buf) {
  TensorIter copy = { .op = OP_clone,
                      .nargs = 2,
                      .nd = slab->nd,
                      .n = slab->n,
                      .common_dtype = slab->type[j],
                      .type = { slab->type[j], slab->type[j] },
                      .p = { buf, slab->p[j] } };
  int64_t step = 1;
  memcpy(copy.size, slab->size, sizeof copy.size);
  memcpy(copy.step[1], slab->step[j], sizeof copy.step[1]);
  for (int d = 0; d < slab->nd; d++) {
    copy.step[0][d] = step;
    step *= slab->size[d];
  }
  memcpy(slab->step[j], copy.step[0], sizeof copy.step[0]);
  slab->p[j] = buf;
  return transpose_along(&copy, dim);
}

int nc_cpu_run_transposed(const TensorIter *k, int j,
                          int (*run)(const TensorIter *)) {
  const int dim = operand_dense_dim(k, j);
  const int64_t each = k->n / k->size[dim] * nc_dtypesize(k->type[j]);
  const int64_t tile = TILEBYTES / nc_dtypesize(k->type[j]);
  const int64_t most =
      nc_min(k->size[dim], nc_ceil_div(SLAB_BYTES, each * tile) * tile);
  void *buf;
  int r = NC_OK;
  TRY(nc_hostalloc(&buf, most * each));
  for (int64_t at = 0; r == NC_OK && at < k->size[dim]; at += most) {
    TensorIter slab = slab_of(k, dim, at, nc_min(most, k->size[dim] - at));
    r = transpose_operand(&slab, j, dim, buf);
    if (r == NC_OK) r = run(&slab);
  }
  nc_hostfree(buf, most * each);
  return r;
}
