/* SPDX-License-Identifier: MIT */
/*
** draw.c - the default generator, and what is filled from it.
*/
#define _DEFAULT_SOURCE       /* getentropy */
#include "draw.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "kernels.h"
#include "op.h"
#include "philox.h"

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
int nc_draw(Tensor *y, Draw *w) {
  const Device *d = nc_device(y);
  const int64_t n = nc_numel(y);
  int r = NC_OK;
  TRY(nc_checkout(y, y->dtype, y->nd, y->size));
  w->y = y;
  if (!nc_isdense(y)) TRY(nc_new(&w->y, d, y->dtype, y->nd, y->size));
  w->key = nc_initialseed();
  w->block = take(n, w->wide ? 2 : 4);
  nc_count(n, n * nc_dtypesize(y->dtype));
  if (n > 0) r = d->draw(d, w);
  if (w->y == y) return r;
  if (r == NC_OK) r = nc_copy(y, w->y);
  nc_release(w->y);
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
  Draw d = { .kind = DRAW_UNIFORM, .wide = t == DT_f64 };
  d.bits = nc_precision(t);
  d.a = from;
  d.b = to - from;
  d.limit = below(to, t);
  if (d.limit < from) d.limit = from;
  return d;
}

Draw nc_normal(DType t, double mean, double std) {
  Draw d = { .kind = DRAW_NORMAL, .wide = t == DT_f64 };
  d.a = mean;
  d.b = std;
  return d;
}

Draw nc_integers(int64_t low, uint64_t range) {
  Draw d = { .kind = DRAW_INTEGERS, .low = low, .range = range };
  d.wide = range > (uint64_t)1 << 32;
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
