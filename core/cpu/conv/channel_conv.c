/* SPDX-License-Identifier: MIT */
/*
** channel_conv.c - convolutions in the tiles of a product (see tiled_conv.c)
** whose vectors are of output channels: a tile multiplies a few neighbouring
** positions, which are read from the padded planes, by a panel of the weights.
** So short rows of a plane cost nothing. The sums of a position are adjacent,
** and are transposed at the end.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/conv/cpu_conv.h"
#include "core/cpu/kernels/kernels.h"

#define PLANES (1 << 19) /* bytes of the padded planes of a task, the most */
#define SHORTEST_SUM 128 /* else transposing the sums takes too long */
#define GAIN 1.1         /* at least, over the other way */
#define FEWEST_SUMS 4    /* rows of a tile that take as long as fewer */
#define TASKS 8          /* for some threads */

/* Output channels of a panel. */
static int64_t panel_width(const ConvWork *w) {
  return nc_kernels()->tile_bytes / w->size;
}

static int64_t panels_of(const ConvWork *w) {
  return nc_ceil_div(w->out_channels, panel_width(w));
}

static char *packed_panel(const ConvWork *w, int64_t group, int64_t panel) {
  return w->packed +
         (group * panels_of(w) + panel) * w->k * panel_width(w) * w->size;
}

/* A panel: for each filter element, the weights of its channels; 0 for missing
   ones. */
static void pack_panel(const ConvWork *w, int64_t i) {
  const int64_t width = panel_width(w), panels = panels_of(w);
  const int64_t first = i % panels * width;
  const int64_t n = nc_min(w->out_channels - first, width);
  char *to = packed_panel(w, i / panels, i % panels);
  if (n < width) memset(to, 0, (size_t)(w->k * width * w->size));
  for (int64_t k = 0; k < w->k; k += NC_TILE_DEPTH)
    for (int64_t j = 0; j < n; j++)
      nc_conv_filter(w, to + (k * width + j) * w->size, width, i / panels,
                     first + j, k, nc_min(w->k - k, NC_TILE_DEPTH));
}

/* sums = the bias of the panel's channels at all positions of a tile. */
static void begin_panel(const ConvWork *w, const ConvTile *t, char *sums,
                        int64_t group, int64_t panel) {
  const int64_t width = panel_width(w), bytes = width * w->size;
  const int64_t first = panel * width;
  const int64_t n = nc_min(w->out_channels - first, width);
  memset(sums, 0, (size_t)bytes);
  memcpy(sums, w->bias + (group * w->out_channels + first) * w->size,
         (size_t)(n * w->size));
  for (int64_t i = 1; i < t->rows * t->cols; i++)
    memcpy(sums + i * bytes, sums, (size_t)bytes);
}

/* sums = the panel's channels at all positions of a tile, by filter elements
   k..k+n-1; what they hold is added to if k > 0, or if there is a bias. */
static void multiply_panel(const ConvWork *w, const ConvTile *t,
                           const char *planes, const char *panel, char *sums,
                           int64_t k, int64_t n) {
  const int64_t width = panel_width(w);
  const int64_t pieces = nc_ceil_div(t->cols, nc_kernels()->tile_rows);
  const TileKernel *tile = nc_kernels()->row[w->type == DT_f64].near_tile;
  for (int64_t r = 0; r < t->rows; r++)
    for (int64_t p = 0; p < pieces; p++) {
      const int64_t at = t->cols * p / pieces;
      const int64_t cols = t->cols * (p + 1) / pieces - at;
      tile[cols](sums + (r * t->cols + at) * width * w->size, width,
                 planes + (r * w->padded.width + at) * w->size, w->at + k,
                 panel + k * width * w->size, w->in_order, n, k > 0 || w->bias);
    }
}

/* Copies the sums of n output channels, y being the first of them. */
#define TURN(T)                                                      \
  static void turn_##T(const ConvWork *w, const ConvTile *t, T *y,   \
                       const T *sums, int64_t n) {                   \
    const int64_t width = panel_width(w);                            \
    for (int64_t r = 0; r < t->rows; r++, sums += t->cols * width) { \
      T *row = y + (t->row + r) * w->w.out[1] + t->col;              \
      for (int64_t j = 0; j < n; j++)                                \
        for (int64_t i = 0; i < t->cols; i++)                        \
          row[j * w->positions + i] = sums[i * width + j];           \
    }                                                                \
  }
TURN(float)
TURN(double)
#undef TURN

static void store_panel(const ConvWork *w, const ConvTile *t, char *y,
                        const char *sums, int64_t panel) {
  const int64_t first = panel * panel_width(w);
  const int64_t n = nc_min(w->out_channels - first, panel_width(w));
  y += first * w->positions * w->size;
  if (w->type == DT_f32)
    turn_float(w, t, (float *)(void *)y, (const float *)(void *)sums, n);
  else turn_double(w, t, (double *)(void *)y, (const double *)(void *)sums, n);
}

/* The bytes of the planes of a sample, with room for the vectors that reach
   beyond them; of the sums of a panel. */
static int64_t sample_bytes(const ConvWork *w) {
  return nc_conv_planes(w) + 2 * nc_kernels()->tile_bytes;
}

static int64_t sums_bytes(const ConvWork *w) {
  return w->padded.rows * w->padded.cols * panel_width(w) * w->size;
}

/* A task: some samples, a tile of positions, some panels.  A part of a panel
   stays in the cache for all samples. */
static void channel_result(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t tiles = w->down * w->across, cut = i % w->splits;
  const int64_t unit = i / w->splits / tiles, group = unit % w->c->groups;
  const int64_t first = unit / w->c->groups * w->samples;
  const int64_t samples = nc_min(w->samples, w->c->n - first);
  const ConvTile t = nc_conv_tile(w, i / w->splits % tiles);
  const int64_t panels = panels_of(w), last = panels * (cut + 1) / w->splits;
  char *sums = buffer + w->samples * sample_bytes(w);
  for (int64_t s = 0; s < samples; s++)
    nc_conv_load(w, buffer + s * sample_bytes(w),
                 nc_conv_input(w, first + s, group), &t);
  for (int64_t p = panels * cut / w->splits; p < last && !nc_interrupted; p++) {
    for (int64_t s = 0; s < samples && w->bias; s++)
      begin_panel(w, &t, sums + s * sums_bytes(w), group, p);
    for (int64_t k = 0; k < w->k; k += NC_TILE_DEPTH)
      for (int64_t s = 0; s < samples; s++)
        multiply_panel(w, &t, buffer + s * sample_bytes(w),
                       packed_panel(w, group, p), sums + s * sums_bytes(w), k,
                       nc_min(w->k - k, NC_TILE_DEPTH));
    for (int64_t s = 0; s < samples; s++)
      store_panel(w, &t, nc_conv_result(w, first + s, group),
                  sums + s * sums_bytes(w), p);
  }
}

/* The fraction of the multiplications that is useful. */
static double share_used(const ConvWork *w) {
  const int64_t cols = w->padded.cols;
  const int64_t pieces = nc_ceil_div(cols, nc_kernels()->tile_rows);
  int64_t most = nc_ceil_div(cols, pieces);
  if (most < FEWEST_SUMS) most = FEWEST_SUMS;
  return (double)cols / (double)(pieces * most) * (double)w->out_channels /
         (double)(panels_of(w) * panel_width(w));
}

int nc_conv_plan_channels(ConvWork *w, double share) {
  const PaddedPlane before = w->padded;
  const int64_t units = w->c->n * w->c->groups;
  w->padded = nc_padded_plane(&w->w, w->w.out[0], w->w.out[1]);
  if (w->k < SHORTEST_SUM || share_used(w) < GAIN * share ||
      nc_conv_planes(w) > PLANES) {
    w->padded = before;
    return 0;
  }
  w->samples = nc_min(PLANES / nc_conv_planes(w), units / TASKS);
  w->samples = nc_min(w->samples < 1 ? 1 : w->samples, w->c->n);
  w->splits = nc_min(nc_ceil_div(TASKS, units), panels_of(w));
  w->bytes = w->samples * (sample_bytes(w) + sums_bytes(w));
  w->wstep = panel_width(w);
  w->pack_parts = w->c->groups * panels_of(w);
  w->packed_bytes = w->pack_parts * w->k * panel_width(w) * w->size;
  w->pack = pack_panel;
  w->task = channel_result;
  return 1;
}
