/* SPDX-License-Identifier: MIT */
/*
** depthwise_conv.c - on the CPU, convolutions whose groups make few channels, and
** so would be products of few rows: frames are summed up as they lie, for
** each element of the kernel one next to the other.  Rows of a frame are
** longer than those of the result: what comes between these is left out.
*/
#include <string.h>

#include "core/cpu/cpu_conv.h"
#include "core/cpu/kernels/kernels.h"

#define FEW 4          /* rows that a product is not worth */
#define PLACES 2048    /* of a tile, about */
#define MOST (1 << 20) /* elements of the frames of a tile */

/* A thread's buffer: frames of a group's channels, places of one channel of
   the result in rows of a frame, and where each element of a patch lies,
   ended by -1. */
typedef struct Parts {
  char *frames, *places;
  int64_t *at;
  int64_t n; /* places, from the first to the last */
} Parts;

static Parts partsof(const ConvWork *w, char *buffer) {
  const Frame *f = &w->frame;
  Parts p;
  int64_t *at = (int64_t *)(void *)buffer;
  p.at = at;
  p.frames = buffer + (w->k + 1) * (int64_t)sizeof *at;
  p.places = p.frames + w->channels * f->size * w->size;
  p.n = (f->rows - 1) * f->wide + f->cols;
  for (int64_t ch = 0; ch < w->channels; ch++)
    for (int64_t i = 0; i < w->w.kernel[0]; i++)
      for (int64_t j = 0; j < w->w.kernel[1]; j++)
        *at++ = ch * f->size + nc_tap(f, i, j);
  *at = -1;
  return p;
}

static void frames(const ConvWork *w, const Parts *p, const char *x,
                   const Tile *t) {
  for (int64_t ch = 0; ch < w->channels; ch++)
    nc_toframe(&w->frame, w->type, p->frames + ch * w->frame.size * w->size,
               x + ch * w->plane * w->size, t->row, t->col);
}

/* Between the result of one channel and places in rows of a frame, which are
   0 behind the end. */
static void rows(const ConvWork *w, const Parts *p, char *y, const Tile *t,
                 int back) {
  const int64_t wide = w->frame.wide * w->size, n = t->cols * w->size;
  if (back) memset(p->places, 0, (size_t)(p->n * w->size));
  y += (t->row * w->w.out[1] + t->col) * w->size;
  for (int64_t r = 0; r < t->rows; r++, y += w->w.out[1] * w->size)
    memcpy(back ? p->places + r * wide : y, back ? y : p->places + r * wide,
           (size_t)n);
}

/*
** The three ways
*/
static const RowKernels *kernels(const ConvWork *w) {
  return &nc_kernels()->line[w->type == DT_f64];
}

static void result(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t tiles = w->down * w->across, line = i / tiles;
  const int64_t s = line / w->c->groups, g = line % w->c->groups;
  const Tile t = nc_tile(w, i % tiles);
  const Parts p = partsof(w, buffer);
  char *y = nc_resultof(w, s, g);
  frames(w, &p, nc_inputof(w, s, g), &t);
  for (int64_t o = 0; o < w->each && !nc_interrupted; o++) {
    kernels(w)->taps(p.places, p.frames,
                     w->weight + (g * w->each + o) * w->k * w->size, p.at, p.n);
    rows(w, &p, y + o * w->places * w->size, &t, 0);
  }
}

static double weightat(const ConvWork *w, int64_t i) {
  return w->type == DT_f32 ? (double)((const float *)(void *)w->weight)[i]
                           : ((const double *)(void *)w->weight)[i];
}

static void input(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t s = i / w->c->groups, g = i % w->c->groups;
  const Parts p = partsof(w, buffer);
  const int64_t frame = w->frame.size * w->size;
  char *x = nc_inputof(w, s, g);
  memset(x, 0, (size_t)(w->channels * w->plane * w->size));
  for (int64_t k = 0; k < w->down * w->across && !nc_interrupted; k++) {
    const Tile t = nc_tile(w, k);
    memset(p.frames, 0, (size_t)(w->channels * frame));
    for (int64_t o = 0; o < w->each; o++) {
      const int64_t from = (g * w->each + o) * w->k;
      rows(w, &p, nc_resultof(w, s, g) + o * w->places * w->size, &t, 1);
      for (int64_t e = 0; e < w->k; e++)
        kernels(w)->add(p.frames + p.at[e] * w->size, p.places,
                        weightat(w, from + e), p.n);
    }
    for (int64_t ch = 0; ch < w->channels; ch++)
      nc_fromframe(&w->frame, w->type, x + ch * w->plane * w->size,
                   p.frames + ch * frame, t.row, t.col);
  }
}

static void addto(const ConvWork *w, char *to, int64_t i, double v) {
  if (w->type == DT_f32) ((float *)(void *)to)[i] += (float)v;
  else ((double *)(void *)to)[i] += v;
}

static void weight(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t part = i / w->c->groups, g = i % w->c->groups;
  const Parts p = partsof(w, buffer);
  char *to = w->partial + (part * w->c->o + g * w->each) * w->k * w->size;
  int64_t s, end;
  memset(to, 0, (size_t)(w->each * w->k * w->size));
  for (nc_partof(w, part, &s, &end); s < end; s++)
    for (int64_t k = 0; k < w->down * w->across && !nc_interrupted; k++) {
      const Tile t = nc_tile(w, k);
      frames(w, &p, nc_inputof(w, s, g), &t);
      for (int64_t o = 0; o < w->each; o++) {
        rows(w, &p, nc_resultof(w, s, g) + o * w->places * w->size, &t, 1);
        for (int64_t e = 0; e < w->k; e++)
          addto(w, to, o * w->k + e,
                kernels(w)->dot(p.frames + p.at[e] * w->size, p.places, p.n));
      }
    }
}

int nc_plandirect(ConvWork *w) {
  static void (*const task[])(const ConvWork *, int64_t,
                              char *) = { result, input, weight };
  const int64_t cols = w->w.out[1] < PLACES ? w->w.out[1] : PLACES;
  const int64_t most = MOST / w->channels; /* elements of a frame */
  int64_t rows = PLACES / cols;
  if (w->each > FEW) return 0;
  if (rows > w->w.out[0]) rows = w->w.out[0];
  w->frame = nc_frame(&w->w, rows, cols);
  if (w->frame.size > most && rows > 1) w->frame = nc_frame(&w->w, 1, cols);
  if (w->frame.size > most) return 0;
  w->bytes =
      (w->k + 1) * (int64_t)sizeof(int64_t) +
      (w->channels * w->frame.size + w->frame.rows * w->frame.wide) * w->size;
  w->task = task[w->c->how];
  return 1;
}
