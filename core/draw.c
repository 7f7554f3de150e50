/* SPDX-License-Identifier: MIT */
/*
** draw.c - the default generator, and what is filled from it.  philox.h says
** which words make which element; nothing here depends on the number of
** threads.
*/
#define _DEFAULT_SOURCE       /* getentropy */
#include "draw.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "op.h"
#include "philox.h"

#define CHUNK (4 * NC_DRAWS)  /* elements made at a time, at most */
#define GRAIN (64 * CHUNK)

/*
** The generator: a seed and the number of the next block
*/
static struct { int seeded; uint64_t seed, next; } generator;

void nc_seed(uint64_t seed) {
  generator.seeded = 1;
  generator.seed = seed;
  generator.next = 0;
}

uint64_t nc_initialseed(void) {
  uint64_t seed;
  if (!generator.seeded) {
    if (getentropy(&seed, sizeof seed) != 0)
      seed = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    nc_seed(seed);
  }
  return generator.seed;
}

/* Takes the blocks for n elements, `per' a block. */
static uint64_t take(int64_t n, int per) {
  uint64_t block = generator.next;
  generator.next += (uint64_t)n / (unsigned)per + (n % per != 0);
  return block;
}

/*
** Filling a tensor
*/
static void uniforms(const Draw *d, void *v, Blocks *x) {
  const float a = (float)d->a, b = (float)d->b, limit = (float)d->limit;
  float *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 4; j++) {
      const float u = a + b * philox_uniform(x->w[j][i], d->bits);
      r[4 * i + j] = u < limit ? u : limit;
    }
}

static void uniforms2(const Draw *d, void *v, Blocks *x) {
  double *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 2; j++) {
      const double u =
          d->a + d->b * philox_uniform2(x->w[2 * j][i], x->w[2 * j + 1][i]);
      r[2 * i + j] = u < d->limit ? u : d->limit;
    }
}

static void normals(const Draw *d, void *v, Blocks *x) {
  const float a = (float)d->a, b = (float)d->b;
  float *r = v;
  d->kernel->normals(r, x->w);
  for (int i = 0; i < 4 * NC_DRAWS; i++) r[i] = a + b * r[i];
}

static void normals2(const Draw *d, void *v, Blocks *x) {
  double *r = v;
  d->kernel->normals2(r, x->w);
  for (int i = 0; i < 2 * NC_DRAWS; i++) r[i] = d->a + d->b * r[i];
}

static void integers(const Draw *d, void *v, Blocks *x) {
  int64_t *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 4; j++)
      r[4 * i + j] = d->low +
                     (int64_t)philox_below(x->w[j][i], d->range, d->key,
                                           x->first + (uint64_t)i, j);
}

static void integers2(const Draw *d, void *v, Blocks *x) {
  uint64_t *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 2; j++)
      r[2 * i + j] = (uint64_t)d->low +
                     philox_below2(x->w[2 * j][i], x->w[2 * j + 1][i],
                                   d->range, d->key, x->first + (uint64_t)i,
                                   j);
}

/* begin is a multiple of CHUNK */
static void chunk(void *ctx, int64_t begin, int64_t end) {
  const Draw *d = ctx;
  const DType type = d->y->dtype;
  const int convert = d->type == CT_i64 && nc_category(type) == NC_FLOAT;
  const Move store = nc_kernels()->store[convert ? CT_f64 : d->type][type];
  const int64_t step = (int64_t)d->per * NC_DRAWS;
  char *y = nc_data(d->y);
  union { float f[CHUNK]; double d[CHUNK]; int64_t i[CHUNK]; } v;
  Blocks x;
  for (int64_t i = begin; i < end; i += step) {
    x.first = d->block + (uint64_t)(i / d->per);
    d->kernel->words(x.w, d->key, x.first, 0);
    d->make(d, &v, &x);
    if (convert)
      for (int k = 0; k < step; k++) v.d[k] = (double)v.i[k];
    store(y + i * nc_dtypesize(type), &v, 1, end - i < step ? end - i : step);
  }
}

int nc_draw(Tensor *y, Draw *d) {
  const int direct = nc_device(y) == &nc_cpu && nc_isdense(y);
  const int64_t n = nc_numel(y);
  int r;
  TRY(nc_checkout(y, y->dtype, y->nd, y->size));
  d->y = y;
  if (!direct) TRY(nc_new(&d->y, &nc_cpu, y->dtype, y->nd, y->size));
  d->kernel = &nc_kernels()->draw;
  d->key = nc_initialseed();
  d->block = take(n, d->per);
  nc_count(n, n * nc_dtypesize(y->dtype));
  r = nc_parallel(n, GRAIN, chunk, d);
  if (r == NC_OK && !direct) r = nc_copy(y, d->y);
  if (!direct) nc_release(d->y);
  return r;
}

/*
** Distributions
*/
int nc_precision(DType t) {
  return t == DT_f16 ? 11 : t == DT_bf16 ? 8 : t == DT_f32 ? 24 : 53;
}

/* The largest number of type t below x, subnormal ones apart. */
static double below(double x, DType t) {
  int e;
  double half = frexp(x, &e), ulp = ldexp(1, e - nc_precision(t)), y;
  if (x == 0) return t == DT_f64 ? -0x1p-1022 : t == DT_f16 ? -0x1p-14
                                                            : -0x1p-126;
  y = floor(x / ulp) * ulp;
  return y < x ? y : x - (half == 0.5 ? ulp / 2 : ulp);
}

Draw nc_uniform(DType t, double from, double to) {
  Draw d = { .make = uniforms, .type = CT_f32, .per = 4 };
  d.bits = nc_precision(t);
  d.a = from;
  d.b = to - from;
  d.limit = below(to, t);
  if (d.limit < from) d.limit = from;
  if (t == DT_f64) {
    d.make = uniforms2;
    d.type = CT_f64;
    d.per = 2;
  }
  return d;
}

Draw nc_normal(DType t, double mean, double std) {
  Draw d = { .make = normals, .type = CT_f32, .per = 4 };
  d.a = mean;
  d.b = std;
  if (t == DT_f64) {
    d.make = normals2;
    d.type = CT_f64;
    d.per = 2;
  }
  return d;
}

Draw nc_integers(int64_t low, uint64_t range) {
  Draw d = { .make = integers, .type = CT_i64, .per = 4, .low = low };
  d.range = range;
  if (range > (uint64_t)1 << 32) {
    d.make = integers2;
    d.per = 2;
  }
  return d;
}

/*
** A permutation: Fisher and Yates' shuffle.  Draw number k, over n-k values,
** chooses the element that goes to position n-1-k.
*/
int nc_shuffle(int64_t *p, int64_t n) {
  const DrawKernels *kernel = &nc_kernels()->draw;
  const int wide = n > (int64_t)1 << 32, per = wide ? 2 : 4;
  const uint64_t key = nc_initialseed(), first = take(n, per);
  Words w;
  for (int64_t i = 0; i < n && !nc_interrupted; i++) p[i] = i + 1;
  for (int64_t k = 0; k < n; k++) {
    const int at = (int)(k / per % NC_DRAWS), j = (int)(k % per);
    const uint64_t block = first + (uint64_t)(k / per);
    const uint64_t left = (uint64_t)(n - k);
    uint64_t to;
    if (at == 0 && j == 0) {
      if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
      kernel->words(w, key, block, 0);
    }
    if (wide)
      to = philox_below2(w[2 * j][at], w[2 * j + 1][at], left, key, block, j);
    else
      to = philox_below(w[j][at], left, key, block, j);
    int64_t last = p[left - 1];
    p[left - 1] = p[to];
    p[to] = last;
  }
  return NC_OK;
}
