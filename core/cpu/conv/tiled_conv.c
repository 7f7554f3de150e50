/* SPDX-License-Identifier: MIT */
/*
** tiled_conv.c - convolutions on the CPU without im2col: the element of a
** padded plane that a filter element multiplies lies at a fixed offset for all
** output positions, so the tiles of a product (kernels/tile.inc) read the
** planes where they are.  For the result and, with stride 1, for the gradient
** of the input, which is a convolution with the filter reversed.
**
** Here vectors are of positions, which run through the rows of the padded
** plane; the few between two rows of the result are computed and dropped.
** Where planes are so narrow that these are many, vectors are of output
** channels (channel_conv.c).
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/conv/cpu_conv.h"
#include "core/cpu/kernels/kernels.h"

#define PLANES (1 << 18)      /* bytes of the padded planes of a tile, about */
#define MOST_PLANES (1 << 20) /* the most */
#define WEIGHTS (3 << 21)     /* bytes of all weights, which each tile reads */
#define STRIP 8               /* tiles of positions */
#define TASKS 8               /* for some threads */
#define FEWEST_ROWS 4 /* output channels of a group: else depthwise_conv.c */

/* How many positions are worked on at once: a few tiles of the product. */
static int64_t strip_size(const ConvWork *w) {
  return STRIP * nc_kernels()->tile_bytes / w->size;
}

int64_t nc_conv_planes(const ConvWork *w) {
  return w->channels * w->padded.size * w->size;
}

/* Chooses the output positions of a tile. */
static void choose_tile(ConvWork *w) {
  const int64_t units = w->c->n * w->c->groups;
  const int64_t want = nc_ceil_div(TASKS, units);
  int64_t rows = nc_ceil_div(w->w.out[0], nc_min(want, w->w.out[0]));
  int64_t cols = nc_min(w->w.out[1], 1024);
  w->padded = nc_padded_plane(&w->w, rows, cols);
  while (nc_conv_planes(w) > PLANES && rows > 1) {
    rows = (rows + 1) / 2;
    w->padded = nc_padded_plane(&w->w, rows, cols);
  }
  while (nc_conv_planes(w) > PLANES && cols > 64) {
    cols = (cols + 1) / 2;
    w->padded = nc_padded_plane(&w->w, rows, cols);
  }
}

/* Packed weights: of each group, block of output channels and block of
   NC_TILE_DEPTH filter elements, a row for each output channel. */
static int64_t blocks_of(const ConvWork *w) {
  return nc_ceil_div(w->out_channels, nc_kernels()->tile_rows);
}

static int64_t depths_of(const ConvWork *w) {
  return nc_ceil_div(w->k, NC_TILE_DEPTH);
}

/* The output channels of block b: from *first to before the result. */
static int64_t block_end(const ConvWork *w, int64_t b, int64_t *first) {
  const int64_t blocks = blocks_of(w);
  *first = w->out_channels * b / blocks;
  return w->out_channels * (b + 1) / blocks;
}

static char *packed_block(const ConvWork *w, int64_t group, int64_t b,
                          int64_t depth) {
  const int64_t at = (group * blocks_of(w) + b) * depths_of(w) + depth;
  return w->packed + at * nc_kernels()->tile_rows * NC_TILE_STEP * w->size;
}

#define FILTER(T)                                                            \
  static void filter_##T(const ConvWork *w, T *to, int64_t step, const T *x, \
                         int64_t k, int64_t n) {                             \
    const int64_t last = w->elements - 1;                                    \
    int64_t ch = k / w->elements, e = k % w->elements;                       \
    for (int64_t i = 0; i < n; i++) {                                        \
      to[i * step] = x[ch * w->win + (w->turned ? last - e : e)];            \
      if (e++ == last) ch++, e = 0;                                          \
    }                                                                        \
  }
FILTER(float)
FILTER(double)
#undef FILTER

/* Shared with channel_conv.c */
void nc_conv_filter(const ConvWork *w, char *to, int64_t step, int64_t group,
                    int64_t o, int64_t k, int64_t n) {
  const char *x = w->weight + (group * w->wgroup + o * w->wout) * w->size;
  if (step == 1 && !w->turned && w->win == w->elements)
    memcpy(to, x + k * w->size, (size_t)(n * w->size));
  else if (w->type == DT_f32)
    filter_float(w, (float *)(void *)to, step, (const float *)(void *)x, k, n);
  else
    filter_double(w, (double *)(void *)to, step, (const double *)(void *)x, k,
                  n);
}

static void pack_part(const ConvWork *w, int64_t i) {
  const int64_t depths = depths_of(w), blocks = blocks_of(w);
  const int64_t group = i / depths / blocks, b = i / depths % blocks;
  const int64_t k = i % depths * NC_TILE_DEPTH;
  char *to = packed_block(w, group, b, i % depths);
  int64_t o;
  for (int64_t last = block_end(w, b, &o); o < last; o++) {
    nc_conv_filter(w, to, 1, group, o, k, nc_min(w->k - k, NC_TILE_DEPTH));
    to += NC_TILE_STEP * w->size;
  }
}

/* The parts of a thread's buffer: the padded planes, with room for the vectors
   that reach beyond them, and the sums of a strip. */
static char *sums_of(const ConvWork *w, char *buffer) {
  return buffer + nc_conv_planes(w) + 2 * nc_kernels()->tile_bytes;
}

void nc_conv_load(const ConvWork *w, char *planes, const char *x,
                  const ConvTile *t) {
  for (int64_t ch = 0; ch < w->channels; ch++)
    nc_plane_load(&w->padded, w->type, planes + ch * w->padded.size * w->size,
                  x + ch * w->plane * w->size, t->row, t->col);
  memset(planes + nc_conv_planes(w), 0, (size_t)(2 * nc_kernels()->tile_bytes));
}

/* Copies positions first..last-1 of an output channel, which lie at sums, to
   their places in y; those between two rows are dropped. */
static void store_positions(const ConvWork *w, const ConvTile *t, char *y,
                            const char *sums, int64_t first, int64_t last) {
  const int64_t width = w->padded.width, size = w->size;
  for (int64_t i = first; i < last;) {
    const int64_t row = i / width, col = i % width;
    const int64_t whole = col == 0 ? (last - i) / width : 0;
    const int64_t m = whole ? whole * width : nc_min(width - col, last - i);
    if (col < t->cols)
      nc_kernels()->row[w->type == DT_f64].copy_rows(
          y + ((t->row + row) * w->w.out[1] + t->col + col) * size, w->w.out[1],
          sums + (i - first) * size, width, whole ? whole : 1,
          whole ? t->cols : nc_min(m, t->cols - col));
    i += m;
  }
}

/* sums = the output channels of block b at n positions from `first' on. */
static void multiply_block(const ConvWork *w, int64_t group, int64_t b,
                           const char *planes, char *sums, int64_t n) {
  const int64_t width = nc_kernels()->tile_bytes / w->size;
  const int64_t step = strip_size(w);
  int64_t first;
  const int64_t rows = block_end(w, b, &first) - first;
  const TileKernel tile = nc_kernels()->row[w->type == DT_f64].tile[rows];
  for (int64_t o = first; o < first + rows && w->bias; o++)
    nc_conv_fill(w, sums + o * step * w->size, group, o,
                 nc_ceil_div(n, width) * width);
  for (int64_t k = 0; k < w->k; k += NC_TILE_DEPTH)
    for (int64_t i = 0; i < n; i += width)
      tile(sums + (first * step + i) * w->size, step,
           packed_block(w, group, b, k / NC_TILE_DEPTH), w->in_order,
           planes + i * w->size, w->at + k, nc_min(w->k - k, NC_TILE_DEPTH),
           k > 0 || w->bias);
}

/* All output channels of a strip of positions, which read the same elements of
   the planes. */
static void tiled_strip(const ConvWork *w, const ConvTile *t, int64_t group,
                        char *y, char *buffer, int64_t first, int64_t n) {
  const int64_t step = strip_size(w), blocks = blocks_of(w);
  char *sums = sums_of(w, buffer);
  for (int64_t b = 0; b < blocks && !nc_interrupted; b++)
    multiply_block(w, group, b, buffer + first * w->size, sums, n);
  for (int64_t o = 0; o < w->out_channels; o++)
    store_positions(w, t, y + o * w->positions * w->size,
                    sums + o * step * w->size, first, first + n);
}

static void tiled_result(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t tiles = w->down * w->across, unit = i / tiles;
  const int64_t s = unit / w->c->groups, g = unit % w->c->groups;
  const int64_t step = strip_size(w);
  const ConvTile t = nc_conv_tile(w, i % tiles);
  const int64_t n = (t.rows - 1) * w->padded.width + t.cols;
  nc_conv_load(w, buffer, nc_conv_input(w, s, g), &t);
  for (int64_t first = 0; first < n && !nc_interrupted; first += step)
    tiled_strip(w, &t, g, nc_conv_result(w, s, g), buffer, first,
                nc_min(step, n - first));
}

static void set_offsets(const ConvWork *w) {
  int64_t *at = w->at;
  for (int64_t ch = 0; ch < w->channels; ch++)
    for (int64_t i = 0; i < w->w.kernel[0]; i++)
      for (int64_t j = 0; j < w->w.kernel[1]; j++)
        *at++ = ch * w->padded.size + nc_tap_offset(&w->padded, i, j);
  for (int64_t k = 0; k < NC_TILE_DEPTH; k++) w->in_order[k] = k * w->wstep;
}

/* The fraction of the multiplications that is useful. */
static double share_used(const ConvWork *w) {
  const int64_t rows = w->padded.rows, cols = w->padded.cols;
  const int64_t width = nc_kernels()->tile_bytes / w->size;
  const int64_t n = (rows - 1) * w->padded.width + cols;
  return (double)(rows * cols) / (double)(nc_ceil_div(n, width) * width);
}

int nc_conv_plan_tiled(ConvWork *w) {
  if (w->pointwise || w->out_channels <= FEWEST_ROWS) return 0;
  choose_tile(w);
  if (nc_conv_plan_channels(w, share_used(w))) return 1;
  if (nc_conv_planes(w) > MOST_PLANES ||
      w->out_channels * w->k * w->size > WEIGHTS)
    return 0;
  w->bytes = nc_conv_planes(w) + 2 * nc_kernels()->tile_bytes +
             w->out_channels * strip_size(w) * w->size;
  w->pack_parts = w->c->groups * blocks_of(w) * depths_of(w);
  w->packed_bytes =
      w->pack_parts * nc_kernels()->tile_rows * NC_TILE_STEP * w->size;
  w->pack = pack_part;
  w->wstep = 1;
  w->task = tiled_result;
  return 1;
}

static void pack_parts(void *ctx, int64_t begin, int64_t end) {
  const ConvWork *w = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) w->pack(w, i);
}

int nc_conv_run_tiled(ConvWork *w) {
  const int64_t offsets = w->k + NC_TILE_DEPTH;
  const int64_t bytes = w->packed_bytes + offsets * (int64_t)sizeof *w->at;
  void *p;
  int r;
  TRY(nc_hostalloc(&p, bytes));
  w->packed = p;
  w->at = (int64_t *)(void *)(w->packed + w->packed_bytes);
  w->in_order = w->at + w->k;
  set_offsets(w);
  r = nc_parallel(w->pack_parts,
                  1 + (1 << 16) / (w->packed_bytes / w->pack_parts), pack_parts,
                  w);
  w->tasks = nc_ceil_div(w->c->n, w->samples) * w->c->groups * w->down *
             w->across * w->splits;
  if (r == NC_OK) r = nc_conv_tasks(w);
  nc_hostfree(p, bytes);
  return r;
}
