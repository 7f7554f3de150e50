/* SPDX-License-Identifier: MIT */
/*
** depthwise_conv.c - convolutions on the CPU whose groups have few output
** channels, for which a matrix product would have few rows: padded planes are
** multiplied by one filter element after the other and summed.  Rows of a
** padded plane are longer than those of the result; the elements between are
** dropped.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/conv/cpu_conv.h"
#include "core/cpu/kernels/kernels.h"

#define MAXROWS 4             /* output channels of a group, at most */
#define POSITIONS 2048        /* output positions of a tile, about */
#define MAXELEMENTS (1 << 20) /* elements of the padded planes of a tile */

/* A thread's buffer: the padded planes of a group, the output positions of one
   channel in rows of a padded plane, the same for the sums of some filter
   elements, and the offset of each element, ended by -1. */
typedef struct DirectBuffers {
  char *padded_planes, *positions, *sums;
  int64_t *at;
  int64_t n; /* elements from the first position to the last */
} DirectBuffers;

static DirectBuffers split_buffer(const ConvWork *w, char *buffer) {
  const PaddedPlane *f = &w->padded;
  DirectBuffers p;
  int64_t *at = (int64_t *)(void *)buffer;
  p.at = at;
  p.padded_planes = buffer + (w->k + 1) * (int64_t)sizeof *at;
  p.positions = p.padded_planes + w->channels * f->size * w->size;
  p.sums = p.positions + f->rows * f->width * w->size;
  p.n = (f->rows - 1) * f->width + f->cols;
  for (int64_t ch = 0; ch < w->channels; ch++)
    for (int64_t i = 0; i < w->w.kernel[0]; i++)
      for (int64_t j = 0; j < w->w.kernel[1]; j++)
        *at++ = ch * f->size + nc_tap_offset(f, i, j);
  *at = -1;
  return p;
}

static void load_planes(const ConvWork *w, const DirectBuffers *p,
                        const char *x, const ConvTile *t) {
  for (int64_t ch = 0; ch < w->channels; ch++)
    nc_plane_load(&w->padded, w->type,
                  p->padded_planes + ch * w->padded.size * w->size,
                  x + ch * w->plane * w->size, t->row, t->col);
}

/* Copies a tile of one output channel y from p->positions, or, `back', to it
   with zeros between the rows. */
static void copy_rows(const ConvWork *w, const DirectBuffers *p, char *y,
                      const ConvTile *t, int back) {
  const int64_t width = w->padded.width * w->size, n = t->cols * w->size;
  if (back) memset(p->positions, 0, (size_t)(p->n * w->size));
  y += (t->row * w->w.out[1] + t->col) * w->size;
  for (int64_t r = 0; r < t->rows; r++, y += w->w.out[1] * w->size)
    memcpy(back ? p->positions + r * width : y,
           back ? y : p->positions + r * width, (size_t)n);
}

/*
** The three products
*/
static const RowKernels *row_kernels(const ConvWork *w) {
  return &nc_kernels()->row[w->type == DT_f64];
}

static double value_of(const ConvWork *w, const char *x, int64_t i) {
  return w->type == DT_f32 ? (double)((const float *)(const void *)x)[i]
                           : ((const double *)(const void *)x)[i];
}

/* The positions of an output channel with these weights: sums of NC_TILE_DEPTH
   filter elements are added up, as in the other ways, since the error of one
   long sum grows with its length. */
static void sum_taps(const ConvWork *w, const DirectBuffers *p,
                     const char *weight) {
  for (int64_t k = 0; k < w->k; k += NC_TILE_DEPTH) {
    const int64_t end = nc_min(k + NC_TILE_DEPTH, w->k), next = p->at[end];
    p->at[end] = -1;
    row_kernels(w)->taps(k ? p->sums : p->positions, p->padded_planes,
                         weight + k * w->size, p->at + k, p->n);
    p->at[end] = next;
    if (k) row_kernels(w)->add(p->positions, p->sums, 1, p->n);
  }
}

static void direct_result(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t tiles = w->down * w->across, unit = i / tiles;
  const int64_t s = unit / w->c->groups, g = unit % w->c->groups;
  const ConvTile t = nc_conv_tile(w, i % tiles);
  const DirectBuffers p = split_buffer(w, buffer);
  char *y = nc_conv_result(w, s, g);
  load_planes(w, &p, nc_conv_input(w, s, g), &t);
  for (int64_t o = 0; o < w->out_channels && !nc_interrupted; o++) {
    sum_taps(w, &p, w->weight + (g * w->out_channels + o) * w->k * w->size);
    if (w->bias)
      row_kernels(w)->shift(p.positions, p.positions, p.n, 0,
                            -value_of(w, w->bias, g * w->out_channels + o));
    copy_rows(w, &p, y + o * w->positions * w->size, &t, 0);
  }
}

static void direct_dinput(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t s = i / w->c->groups, g = i % w->c->groups;
  const DirectBuffers p = split_buffer(w, buffer);
  const int64_t padded = w->padded.size * w->size;
  char *x = nc_conv_input(w, s, g);
  memset(x, 0, (size_t)(w->channels * w->plane * w->size));
  for (int64_t k = 0; k < w->down * w->across && !nc_interrupted; k++) {
    const ConvTile t = nc_conv_tile(w, k);
    memset(p.padded_planes, 0, (size_t)(w->channels * padded));
    for (int64_t o = 0; o < w->out_channels; o++) {
      const int64_t from = (g * w->out_channels + o) * w->k;
      copy_rows(w, &p, nc_conv_result(w, s, g) + o * w->positions * w->size, &t,
                1);
      for (int64_t e = 0; e < w->k; e++)
        row_kernels(w)->add(p.padded_planes + p.at[e] * w->size, p.positions,
                            value_of(w, w->weight, from + e), p.n);
    }
    for (int64_t ch = 0; ch < w->channels; ch++)
      nc_plane_add(&w->padded, w->type, x + ch * w->plane * w->size,
                   p.padded_planes + ch * padded, t.row, t.col);
  }
}

static void add_value(const ConvWork *w, char *to, int64_t i, double v) {
  if (w->type == DT_f32) ((float *)(void *)to)[i] += (float)v;
  else ((double *)(void *)to)[i] += v;
}

static void direct_dweight(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t part = i / w->c->groups, g = i % w->c->groups;
  const DirectBuffers p = split_buffer(w, buffer);
  char *to =
      w->partial + (part * w->c->o + g * w->out_channels) * w->k * w->size;
  int64_t s, end;
  memset(to, 0, (size_t)(w->out_channels * w->k * w->size));
  for (nc_conv_part(w, part, &s, &end); s < end; s++)
    for (int64_t k = 0; k < w->down * w->across && !nc_interrupted; k++) {
      const ConvTile t = nc_conv_tile(w, k);
      load_planes(w, &p, nc_conv_input(w, s, g), &t);
      for (int64_t o = 0; o < w->out_channels; o++) {
        copy_rows(w, &p, nc_conv_result(w, s, g) + o * w->positions * w->size,
                  &t, 1);
        for (int64_t e = 0; e < w->k; e++)
          add_value(w, to, o * w->k + e,
                    row_kernels(w)->dot(p.padded_planes + p.at[e] * w->size,
                                        p.positions, p.n));
      }
    }
}

int nc_conv_plan_direct(ConvWork *w) {
  static void (*const task[])(const ConvWork *, int64_t,
                              char *) = { direct_result, direct_dinput,
                                          direct_dweight };
  const int64_t cols = w->w.out[1] < POSITIONS ? w->w.out[1] : POSITIONS;
  const int64_t most = MAXELEMENTS / w->channels; /* elements of a padded */
  int64_t rows = POSITIONS / cols;
  if (w->out_channels > MAXROWS) return 0;
  if (rows > w->w.out[0]) rows = w->w.out[0];
  w->padded = nc_padded_plane(&w->w, rows, cols);
  if (w->padded.size > most && rows > 1)
    w->padded = nc_padded_plane(&w->w, 1, cols);
  if (w->padded.size > most) return 0;
  w->bytes =
      (w->k + 1) * (int64_t)sizeof(int64_t) +
      (w->channels * w->padded.size + 2 * w->padded.rows * w->padded.width) *
          w->size;
  w->in_rows = 1;
  w->task = task[w->c->product];
  return 1;
}
