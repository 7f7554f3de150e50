/* SPDX-License-Identifier: MIT */
/*
** conv.c - on the CPU, a convolution as a product: what a kernel sees at
** some places becomes the columns of a matrix (Chellapilla et al. 2006), a
** tile at a time and for some channels, so that they stay in the cache.  If
** planes are small, a tile has several samples.
**
** How the work is cut depends on the sizes only, so the result does not
** depend on the number of threads.
*/
#include <string.h>

#include "core/cpu/blas.h"
#include "core/cpu/cpu.h"
#include "core/cpu/cpu_conv.h"
#include "core/cpu/kernels/kernels.h"

#define PARTIALS 8        /* sums over samples that are kept apart */
#define COLUMNS 512       /* of a matrix of patches, about */
#define PATCHES (1 << 18) /* elements of it, about */

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t quotientup(int64_t a, int64_t b) {
  return (a - 1) / b + 1;
}

/* The size of pieces of n, of at most `most', that are nearly equal. */
static int64_t even(int64_t n, int64_t most) {
  return quotientup(n, quotientup(n, most < 1 ? 1 : most));
}

/*
** Shared with the direct way
*/
Tile nc_tile(const ConvWork *w, int64_t i) {
  const Frame *f = &w->frame;
  Tile t = { i / w->across * f->rows, i % w->across * f->cols, 0, 0 };
  t.rows = lesser(f->rows, w->w.out[0] - t.row);
  t.cols = lesser(f->cols, w->w.out[1] - t.col);
  return t;
}

char *nc_inputof(const ConvWork *w, int64_t sample, int64_t group) {
  return w->input +
         (sample * w->c->c + group * w->channels) * w->plane * w->size;
}

char *nc_resultof(const ConvWork *w, int64_t sample, int64_t group) {
  return w->result + (sample * w->c->o + group * w->each) * w->places * w->size;
}

void nc_partof(const ConvWork *w, int64_t part, int64_t *from, int64_t *to) {
  *from = w->c->n * part / w->parts;
  *to = w->c->n * (part + 1) / w->parts;
}

/* A thread takes tasks until there are none. */
static void take(void *ctx, int64_t begin, int64_t end) {
  ConvWork *w = ctx;
  for (int64_t s = begin; s < end; s++)
    for (int64_t i; (i = atomic_fetch_add(&w->next, 1)) < w->tasks;)
      if (nc_interrupted) return;
      else w->task(w, i, w->buffer + s * w->bytes);
}

int nc_tasks(ConvWork *w) {
  const int64_t slots = lesser(w->tasks, nc_threads());
  void *p = NULL;
  int r;
  w->bytes = (w->bytes + 63) / 64 * 64;
  if (w->bytes) TRY(nc_hostalloc(&p, w->bytes * slots));
  w->buffer = p;
  atomic_init(&w->next, 0);
  r = nc_parallel(slots, 1, take, w);
  if (p) nc_hostfree(p, w->bytes * slots);
  return r;
}

/*
** Tiles: samples, from `first' on, of a group; of their channels some
*/
typedef struct Piece {
  const ConvWork *w;
  Tile t;
  int64_t first, samples, group;
  int64_t channel, channels;
  int64_t each, columns;          /* places in a sample, in all */
  char *frame, *patches, *turned; /* the thread's */
} Piece;

static Piece pieceof(const ConvWork *w, int64_t batch, int64_t group,
                     int64_t tile, char *buffer) {
  Piece p = {
    .w = w, .first = batch * w->samples, .group = group, .channels = w->channels
  };
  p.t = nc_tile(w, tile);
  p.samples = lesser(w->samples, w->c->n - p.first);
  p.each = p.t.rows * p.t.cols;
  p.columns = p.samples * p.each;
  p.frame = buffer;
  p.patches = buffer + w->frame.size * w->size;
  p.turned = p.patches + w->block * w->elements * w->columns * w->size;
  return p;
}

/* Goes over the frames of the channels and their columns, to these or back. */
static void patches(const Piece *p, int back) {
  const ConvWork *w = p->w;
  const Frame *f = &w->frame;
  const RowKernels *line = &nc_kernels()->line[w->type == DT_f64];
  const int64_t wide = f->wide * w->size, cols = p->t.cols;
  char *to = p->patches;
  for (int64_t ch = 0; ch < p->channels; ch++)
    for (int64_t s = 0; s < p->samples && !nc_interrupted; s++) {
      char *x = nc_inputof(w, p->first + s, p->group) +
                (p->channel + ch) * w->plane * w->size;
      if (back) memset(p->frame, 0, (size_t)(f->size * w->size));
      else nc_toframe(f, w->type, p->frame, x, p->t.row, p->t.col);
      for (int64_t e = 0; e < w->elements; e++) {
        char *col =
            to + ((ch * w->elements + e) * p->columns + s * p->each) * w->size;
        char *from =
            p->frame +
            nc_tap(f, e / w->w.kernel[1], e % w->w.kernel[1]) * w->size;
        for (int64_t r = 0; r < p->t.rows; r++, from += wide) {
          if (back) line->add(from, col, 1, cols);
          else memcpy(col, from, (size_t)(cols * w->size));
          col += cols * w->size;
        }
      }
      if (back) nc_fromframe(f, w->type, x, p->frame, p->t.row, p->t.col);
    }
}

/* Where the first of these channels lies in the input, or result, of the
   first sample. */
static char *inputat(const Piece *p) {
  const ConvWork *w = p->w;
  return nc_inputof(w, p->first, p->group) +
         (p->channel * w->plane + p->t.row * w->w.size[1] + p->t.col) * w->size;
}

static char *resultat(const Piece *p, int64_t sample, int64_t o) {
  const ConvWork *w = p->w;
  return nc_resultof(w, p->first + sample, p->group) +
         (o * w->places + p->t.row * w->w.out[1] + p->t.col) * w->size;
}

/* Between the result and p->turned, in which samples lie side by side. */
static void turn(const Piece *p, int64_t o, int64_t n, int back) {
  const ConvWork *w = p->w;
  const int64_t bytes = p->each * w->size;
  for (int64_t i = 0; i < n; i++)
    for (int64_t s = 0; s < p->samples; s++) {
      char *a = p->turned + (i * p->samples + s) * bytes;
      char *b = resultat(p, s, o + i);
      memcpy(back ? b : a, back ? a : b, (size_t)bytes);
    }
}

/* The result as an operand, with the step of its rows. */
static const char *turned(const Piece *p, int64_t *step) {
  *step = p->w->samples > 1 ? p->columns : p->w->places;
  if (p->w->samples == 1) return resultat(p, 0, 0);
  turn(p, 0, p->w->each, 0);
  return p->turned;
}

/* Takes the next channels; 0 if there are none. */
static int nextblock(Piece *p) {
  p->channel += p->channels;
  p->channels = lesser(p->w->block, p->w->channels - p->channel);
  return p->channels > 0;
}

/* The channels of block i. */
static void blockof(Piece *p, int64_t i) {
  p->channel = i * p->w->block;
  p->channels = lesser(p->w->block, p->w->channels - p->channel);
}

/* The weight of the channels, from the result's channel o on. */
static char *weightat(const Piece *p, char *weight, int64_t o) {
  const ConvWork *w = p->w;
  return weight +
         ((p->group * w->each + o) * w->k + p->channel * w->elements) * w->size;
}

/*
** The three products
*/
static void result(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t tiles = w->down * w->across, cut = i % w->cuts;
  const int64_t line = i / w->cuts / tiles;
  const int64_t o = w->each * cut / w->cuts;
  Piece p = pieceof(w, line / w->c->groups, line % w->c->groups,
                    i / w->cuts % tiles, buffer);
  Gemm g = { .type = w->type,
             .m = w->each * (cut + 1) / w->cuts - o,
             .n = p.columns,
             .as = { w->k, 1 },
             .alpha = nc_int(1) };
  g.c = w->samples > 1 ? p.turned : resultat(&p, 0, o);
  g.cs = w->samples > 1 ? p.columns : w->places;
  p.channels = 0;
  while (nextblock(&p) && !nc_interrupted) {
    if (!w->plain) patches(&p, 0);
    g.k = p.channels * w->elements;
    g.a = weightat(&p, w->weight, o);
    g.b = w->plain ? inputat(&p) : p.patches;
    g.bs[0] = w->plain ? w->plane : p.columns;
    g.bs[1] = 1;
    nc_gemm(&g);
    g.beta = 1;
  }
  if (w->samples > 1) turn(&p, o, g.m, 1);
}

static void input(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t blocks = quotientup(w->channels, w->block);
  const int64_t line = i / blocks, tiles = w->down * w->across;
  for (int64_t k = 0; k < tiles && !nc_interrupted; k++) {
    Piece p = pieceof(w, line / w->c->groups, line % w->c->groups, k, buffer);
    Gemm g = { .type = w->type,
               .n = p.columns,
               .k = w->each,
               .as = { 1, w->k },
               .alpha = nc_int(1) };
    blockof(&p, i % blocks);
    for (int64_t s = 0; s < p.samples && k == 0 && !w->plain; s++)
      memset(nc_inputof(w, p.first + s, p.group) +
                 p.channel * w->plane * w->size,
             0, (size_t)(p.channels * w->plane * w->size));
    g.m = p.channels * w->elements;
    g.a = weightat(&p, w->weight, 0);
    g.b = turned(&p, &g.bs[0]);
    g.bs[1] = 1;
    g.c = w->plain ? inputat(&p) : p.patches;
    g.cs = w->plain ? w->plane : p.columns;
    nc_gemm(&g);
    if (!w->plain) patches(&p, 1);
  }
}

static void weight(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t blocks = quotientup(w->channels, w->block);
  const int64_t line = i / blocks, part = line / w->c->groups;
  int64_t s, end;
  Gemm g = { .type = w->type, .m = w->each, .cs = w->k, .alpha = nc_int(1) };
  for (nc_partof(w, part, &s, &end); s < end; s += w->samples)
    for (int64_t k = 0; k < w->down * w->across && !nc_interrupted; k++) {
      Piece p = pieceof(w, 0, line % w->c->groups, k, buffer);
      p.first = s;
      p.samples = lesser(w->samples, end - s);
      p.columns = p.samples * p.each;
      blockof(&p, i % blocks);
      if (!w->plain) patches(&p, 0);
      g.n = p.channels * w->elements;
      g.k = p.columns;
      g.as[1] = g.bs[0] = 1;
      g.a = turned(&p, &g.as[0]);
      g.b = w->plain ? inputat(&p) : p.patches;
      g.bs[1] = w->plain ? w->plane : p.columns;
      g.c = weightat(&p, w->partial + part * w->c->o * w->k * w->size, 0);
      nc_gemm(&g);
      g.beta = 1;
    }
}

/*
** Plans
*/
/* Places of a tile, and samples in it. */
static void plantiles(ConvWork *w) {
  const int64_t most = w->plain ? 2 * COLUMNS : COLUMNS;
  const int64_t cols = even(w->w.out[1], 2 * COLUMNS);
  const int64_t rows = cols < w->w.out[1] ? 1 : even(w->w.out[0], most / cols);
  w->frame = nc_frame(&w->w, rows, cols);
  w->samples = 1;
  if (w->places <= COLUMNS / 2 && !w->plain)
    w->samples = even(w->c->n, COLUMNS / 2 / w->places);
  w->columns = w->samples * rows * cols;
}

/* What is worked on at a time, so that there are tasks for some threads. */
static void planproduct(ConvWork *w) {
  static void (*const task[])(const ConvWork *, int64_t,
                              char *) = { result, input, weight };
  const int64_t least = quotientup(64, w->elements);
  const int64_t lines = quotientup(w->c->n, w->samples) * w->c->groups;
  int64_t want = quotientup(PARTIALS, lines);
  w->block = even(w->channels, PATCHES / (w->columns * w->elements));
  if (w->plain) w->block = w->channels;
  if (w->c->how != CONV_RESULT && w->block > least && want > 1) {
    int64_t less = quotientup(w->channels, want);
    w->block = lesser(w->block, less > least ? less : least);
  }
  if (w->c->how == CONV_RESULT) {
    want = quotientup(PARTIALS / 2, lines * w->down * w->across);
    w->cuts = lesser(want, quotientup(w->each, 128));
  }
  if (!w->plain)
    w->bytes = (w->frame.size + w->block * w->elements * w->columns +
                (w->samples > 1 ? w->each * w->columns : 0)) *
               w->size;
  w->task = task[w->c->how];
}

static void plan(ConvWork *w) {
  const ConvCall *c = w->c;
  w->w = c->at;
  w->size = nc_dtypesize(w->type);
  w->channels = c->c / c->groups;
  w->each = c->o / c->groups;
  w->elements = w->w.kernel[0] * w->w.kernel[1];
  w->k = w->channels * w->elements;
  w->plane = w->w.size[0] * w->w.size[1];
  w->places = w->w.out[0] * w->w.out[1];
  w->plain = w->elements == 1 && w->plane == w->places && w->w.pad[0] == 0 &&
             w->w.pad[1] == 0;
  w->samples = w->cuts = w->parts = 1;
  w->block = w->channels;
  if (!nc_plandirect(w)) plantiles(w);
  w->down = quotientup(w->w.out[0], w->frame.rows);
  w->across = quotientup(w->w.out[1], w->frame.cols);
  if (w->task == NULL) planproduct(w);
}

/*
** The request
*/
typedef struct Sum {
  const ConvWork *w;
  int64_t n;
} Sum;

static void add(void *ctx, int64_t begin, int64_t end) {
  const Sum *s = ctx;
  const ConvWork *w = s->w;
  char *y = w->weight + begin * w->size;
  memcpy(y, w->partial + begin * w->size, (size_t)((end - begin) * w->size));
  for (int64_t i = 1; i < w->parts; i++)
    nc_kernels()->line[w->type == DT_f64].add(
        y, w->partial + (i * s->n + begin) * w->size, 1, end - begin);
}

/* In as many parts as there are threads worth it. */
static int toweight(ConvWork *w) {
  const int64_t lines = w->c->groups * quotientup(w->channels, w->block);
  Sum s = { .w = w, .n = w->c->o * w->k };
  int64_t bytes;
  void *p = NULL;
  int r;
  w->parts = lesser(quotientup(PARTIALS, lines), w->c->n);
  w->tasks = w->parts * lines;
  bytes = w->parts * s.n * w->size;
  if (w->parts > 1) TRY(nc_hostalloc(&p, bytes));
  w->partial = p ? p : w->weight;
  r = nc_tasks(w);
  if (p) {
    if (r == NC_OK) r = nc_parallel(s.n, 1 << 15, add, &s);
    nc_hostfree(p, bytes);
  }
  return r;
}

static int run(ConvWork *w) {
  TRY(nc_openblas());
  plan(w);
  if (w->c->how == CONV_WEIGHT) return toweight(w);
  w->tasks = quotientup(w->c->n, w->samples) * w->c->groups;
  if (w->c->how == CONV_RESULT) w->tasks *= w->down * w->across * w->cuts;
  else w->tasks *= quotientup(w->channels, w->block);
  return nc_tasks(w);
}

/* Halves are worked on as float32. */
int nc_cpu_conv(const Device *d, const ConvCall *c) {
  const Tensor *const all[3] = { c->result, c->input, c->weight };
  const DType type = c->input->dtype == DT_f64 ? DT_f64 : DT_f32;
  Tensor *t[3] = { NULL, NULL, NULL };
  ConvWork w = { .c = c, .type = type };
  int r = NC_OK;
  (void)d;
  for (int i = 0; i < 3 && r == NC_OK; i++)
    if (i != (int)c->how) r = nc_cast(&t[i], (Tensor *)all[i], type);
    else if (all[i]->dtype == type) r = nc_alias(&t[i], (Tensor *)all[i]);
    else r = nc_new(&t[i], &nc_cpu, type, 4, all[i]->size);
  if (r == NC_OK) {
    w.result = nc_data(t[0]);
    w.input = nc_data(t[1]);
    w.weight = nc_data(t[2]);
    r = run(&w);
  }
  if (r == NC_OK && c->input->dtype != type)
    r = nc_copy((Tensor *)all[c->how], t[c->how]);
  for (int i = 0; i < 3; i++) nc_release(t[i]);
  return r;
}
