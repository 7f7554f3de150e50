/* SPDX-License-Identifier: MIT */
/*
** cpuconv.c - on the CPU, a convolution: rows of the result at a time, the
** patches that a kernel sees there become the columns of a matrix, and the
** rest is a product of matrices (Chellapilla et al. 2006).
**
** How the work is cut depends on the sizes only, so the result does not
** depend on the number of threads.
*/
#include <string.h>

#include "blas.h"
#include "conv.h"

#define PARTIALS 8            /* sums over samples that are kept apart */
#define COLUMNS 2048          /* of a matrix of patches, about */
#define PATCHES (1 << 19)     /* elements of it, about */

#define T float
#define NAME(f) f##_f32
#include "patches.inc"
#undef T
#undef NAME
#define T double
#define NAME(f) f##_f64
#include "patches.inc"
#undef T
#undef NAME

typedef struct Work {
  const Conv *c;
  int64_t rows, tiles;        /* of the result, in a tile; tiles */
  int64_t k, places;          /* elements of a patch; patches of a sample */
  int64_t tasks, slots, parts, each;
  int plain;                  /* are patches columns of the input already? */
  char *buffer, *partial;
  int64_t bytes;              /* of one slot's buffer */
} Work;

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static void plan(Work *w, const Conv *c) {
  const int64_t ow = c->out[1];
  int64_t columns;
  memset(w, 0, sizeof *w);
  w->c = c;
  w->k = c->c / c->groups * c->kernel[0] * c->kernel[1];
  w->places = c->out[0] * ow;
  columns = lesser(COLUMNS, PATCHES / w->k + 1);
  w->rows = columns / ow > 0 ? columns / ow : 1;
  w->rows = lesser(w->rows, c->out[0]);
  w->tiles = (c->out[0] - 1) / w->rows + 1;
  w->plain = c->kernel[0] * c->kernel[1] == 1 && c->stride[0] == 1 &&
             c->stride[1] == 1 && c->pad[0] == 0 && c->pad[1] == 0;
}

static int start(Work *w, int64_t tasks, void (*fn)(void *, int64_t, int64_t)) {
  const int64_t size = nc_dtypesize(w->c->type);
  void *p = NULL;
  int r;
  TRY(nc_openblas());
  w->tasks = tasks;
  w->slots = lesser(tasks, nc_threads());
  w->bytes = w->plain ? 0 : w->k * w->rows * w->c->out[1] * size;
  if (w->bytes) TRY(nc_hostalloc(&p, w->bytes * w->slots));
  w->buffer = p;
  r = nc_parallel(w->slots, 1, fn, w);
  if (p) nc_hostfree(p, w->bytes * w->slots);
  return r;
}

/* A tile: rows of the result of one group of one sample. */
typedef struct Tile {
  int64_t sample, group, row, rows, columns;
} Tile;

static Tile tileof(const Work *w, int64_t sample, int64_t group, int64_t i) {
  Tile t = { sample, group, i * w->rows, 0, 0 };
  t.rows = lesser(w->rows, w->c->out[0] - t.row);
  t.columns = t.rows * w->c->out[1];
  return t;
}

/* Where the input of a group of a sample begins, in elements. */
static int64_t inputat(const Conv *c, const Tile *t) {
  return (t->sample * c->c + t->group * (c->c / c->groups)) * c->size[0] *
         c->size[1];
}

static int64_t resultat(const Work *w, const Tile *t) {
  const Conv *c = w->c;
  return (t->sample * c->o + t->group * (c->o / c->groups)) * w->places +
         t->row * c->out[1];
}

/* The patches of a tile, [k x columns], and the step of their rows. */
static const char *patches(const Work *w, const Tile *t, const void *x,
                           char *buffer, int64_t *step) {
  const Conv *c = w->c;
  const int64_t size = nc_dtypesize(c->type), at = inputat(c, t);
  if (w->plain) {
    *step = w->places;
    return (const char *)x + (at + t->row * c->out[1]) * size;
  }
  if (c->type == DT_f32)
    gather_f32(c, (const float *)x + at, t->row, t->rows, (float *)buffer);
  else
    gather_f64(c, (const double *)x + at, t->row, t->rows, (double *)buffer);
  *step = t->columns;
  return buffer;
}

static void forward(void *ctx, int64_t begin, int64_t end) {
  const Work *w = ctx;
  const Conv *c = w->c;
  const int64_t size = nc_dtypesize(c->type), o = c->o / c->groups;
  for (int64_t s = begin; s < end; s++)
    for (int64_t i = s; i < w->tasks && !nc_interrupted; i += w->slots) {
      const int64_t line = i / w->tiles;
      const Tile t = tileof(w, line / c->groups, line % c->groups,
                            i % w->tiles);
      Gemm g = { .type = c->type, .m = o, .n = t.columns, .k = w->k,
                 .as = { w->k, 1 }, .cs = w->places, .alpha = nc_int(1) };
      g.a = (const char *)c->b + t.group * o * w->k * size;
      g.bs[1] = 1;
      g.b = patches(w, &t, c->a, w->buffer + s * w->bytes, &g.bs[0]);
      g.c = (char *)c->y + resultat(w, &t) * size;
      nc_gemm(&g);
    }
}

int nc_convolve(const Conv *c) {
  Work w;
  plan(&w, c);
  return start(&w, c->n * c->groups * w.tiles, forward);
}

/* Patches of the input's gradient are added where they came from. */
static void toinput(void *ctx, int64_t begin, int64_t end) {
  const Work *w = ctx;
  const Conv *c = w->c;
  const int64_t size = nc_dtypesize(c->type), o = c->o / c->groups;
  const int64_t plane = c->c / c->groups * c->size[0] * c->size[1];
  for (int64_t s = begin; s < end; s++)
    for (int64_t i = s; i < w->tasks; i += w->slots) {
      Tile t = tileof(w, i / c->groups, i % c->groups, 0);
      char *x = (char *)c->y + inputat(c, &t) * size;
      if (!w->plain) memset(x, 0, (size_t)(plane * size));
      for (int64_t k = 0; k < w->tiles && !nc_interrupted; k++) {
        char *buffer = w->buffer + s * w->bytes;
        Gemm g = { .type = c->type, .m = w->k, .k = o, .as = { 1, w->k },
                   .bs = { w->places, 1 }, .alpha = nc_int(1) };
        t = tileof(w, t.sample, t.group, k);
        g.n = t.columns;
        g.a = (const char *)c->b + t.group * o * w->k * size;
        g.b = (const char *)c->a + resultat(w, &t) * size;
        g.c = w->plain ? x + t.row * c->out[1] * size : buffer;
        g.cs = w->plain ? w->places : t.columns;
        nc_gemm(&g);
        if (w->plain) continue;
        if (c->type == DT_f32)
          scatter_f32(c, (float *)x, t.row, t.rows, (float *)buffer);
        else
          scatter_f64(c, (double *)x, t.row, t.rows, (double *)buffer);
      }
    }
}

int nc_convinput(const Conv *c) {
  Work w;
  plan(&w, c);
  return start(&w, c->n * c->groups, toinput);
}

/* The sum over some samples of what a group's weight gets. */
static void toweight(void *ctx, int64_t begin, int64_t end) {
  const Work *w = ctx;
  const Conv *c = w->c;
  const int64_t size = nc_dtypesize(c->type), o = c->o / c->groups;
  for (int64_t s = begin; s < end; s++)
    for (int64_t i = s; i < w->tasks; i += w->slots) {
      const int64_t part = i / c->groups, group = i % c->groups;
      const int64_t last = lesser(c->n, (part + 1) * w->each);
      Gemm g = { .type = c->type, .m = o, .n = w->k, .as = { w->places, 1 },
                 .bs = { 1, 0 }, .cs = w->k, .alpha = nc_int(1) };
      g.c = w->partial + (part * c->o + group * o) * w->k * size;
      for (int64_t n = part * w->each; n < last; n++)
        for (int64_t k = 0; k < w->tiles && !nc_interrupted; k++) {
          const Tile t = tileof(w, n, group, k);
          g.k = t.columns;
          g.a = (const char *)c->a + resultat(w, &t) * size;
          g.b = patches(w, &t, c->b, w->buffer + s * w->bytes, &g.bs[1]);
          nc_gemm(&g);
          g.beta = 1;
        }
    }
}

int nc_convweight(const Conv *c) {
  const int64_t size = nc_dtypesize(c->type);
  int64_t n, bytes;
  Work w;
  void *p = NULL;
  int r;
  plan(&w, c);
  n = c->o * w.k;
  if (c->n == 0) {
    memset(c->y, 0, (size_t)(n * size));
    return NC_OK;
  }
  w.each = (c->n - 1) / PARTIALS + 1;
  w.parts = (c->n - 1) / w.each + 1;
  bytes = w.parts * n * size;
  if (w.parts > 1) TRY(nc_hostalloc(&p, bytes));
  w.partial = p ? p : c->y;
  r = start(&w, w.parts * c->groups, toweight);
  if (p) {
    if (r == NC_OK && c->type == DT_f32) total_f32(c->y, p, n, w.parts);
    else if (r == NC_OK) total_f64(c->y, p, n, w.parts);
    nc_hostfree(p, bytes);
  }
  return r;
}

/*
** Windows
*/
static void windows(void *ctx, int64_t begin, int64_t end) {
  const Pool *p = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    const int64_t from = i * p->size[0] * p->size[1];
    int64_t *at = p->at + i * p->out[0] * p->out[1];
    if (p->type == DT_f32) largest_f32(p, (const float *)p->x + from, at);
    else largest_f64(p, (const double *)p->x + from, at);
  }
}

int nc_poolplaces(const Pool *p) {
  const int64_t work = p->out[0] * p->out[1] * p->kernel[0] * p->kernel[1];
  return nc_parallel(p->planes, 1 + 100000 / work, windows, (void *)p);
}
