/* SPDX-License-Identifier: MIT */
/*
** random_fill.c - generators of random numbers, and the request random_fill,
** for all random operators.  A generator is a seed, the key of Philox, and the
** number of the next block.
*/
#define _DEFAULT_SOURCE /* getentropy */
#include "core/ops/random_fill.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "core/cpu/kernels/kernels.h"
#include "core/op.h"
#include "core/base/philox.h"

/*
** Generators
*/
void nc_seed(Generator *g, uint64_t seed) {
  g->seeded = 1;
  g->seed = seed;
  g->next = 0;
}

uint64_t nc_newseed(Generator *g) {
  uint64_t seed;
  if (getentropy(&seed, sizeof seed) != 0)
    seed = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
  nc_seed(g, seed);
  return seed;
}

uint64_t nc_initialseed(Generator *g) {
  return g->seeded ? g->seed : nc_newseed(g);
}

Generator *nc_generatorof(const Call *c) {
  for (int i = 0; i < NC_MAXARG; i++)
    if (c->arg[i].generator) return c->arg[i].generator;
  return NULL;
}

uint64_t nc_takeblocks(Generator *g, uint64_t blocks) {
  uint64_t block = g->next;
  g->next += blocks;
  return block;
}

/* Reserves the blocks for n elements, `per' in each; returns the first. */
static uint64_t take_blocks(Generator *g, int64_t n, int per) {
  return nc_takeblocks(g, (uint64_t)n / (unsigned)per + (n % per != 0));
}

/*
** Filling a tensor
*/
int nc_draw(Tensor *y, RandomFillCall *w, Generator *g) {
  const Device *d = nc_device(y);
  const int64_t n = nc_numel(y);
  int r = NC_OK;
  if (g == NULL) g = &nc_context->generator;
  TRY(nc_check_writable(y));
  if (d == &nc_meta) return NC_OK; /* nothing is drawn */
  w->y = y;
  if (!nc_isdense(y)) TRY(nc_newdense(&w->y, d, y->dtype, y));
  w->key = nc_initialseed(g);
  w->block = take_blocks(g, n, w->wide ? 2 : 4);
  nc_count(n, n * nc_dtypesize(y->dtype));
  if (n > 0) r = nc_countwrite(w->y, d->random_fill(d, w));
  if (w->y == y) return r;
  if (r == NC_OK) r = nc_copy(y, w->y);
  nc_release(w->y);
  return r;
}

/*
** Distributions
*/
/* Returns the largest number of type t below x; subnormal numbers do not
   count. */
static double largest_below(double x, DType t) {
  int e;
  double half = frexp(x, &e), ulp = ldexp(1, e - nc_precision(t)), y;
  if (x == 0)
    return t == DT_f64 ? -0x1p-1022 : t == DT_f16 ? -0x1p-14 : -0x1p-126;
  y = floor(x / ulp) * ulp;
  return y < x ? y : x - (half == 0.5 ? ulp / 2 : ulp);
}

RandomFillCall nc_uniform(DType t, double from, double to) {
  RandomFillCall d = { .kind = RANDOM_UNIFORM, .wide = t == DT_f64 };
  d.bits = nc_precision(t);
  d.a = from;
  d.b = to - from;
  d.limit = largest_below(to, t);
  if (d.limit < from) d.limit = from;
  return d;
}

RandomFillCall nc_normal(DType t, double mean, double std) {
  RandomFillCall d = { .kind = RANDOM_NORMAL, .wide = t == DT_f64 };
  d.a = mean;
  d.b = std;
  return d;
}

RandomFillCall nc_integers(int64_t low, uint64_t range) {
  RandomFillCall d = { .kind = RANDOM_INTEGERS, .low = low, .range = range };
  d.wide = range > (uint64_t)1 << 32;
  return d;
}

/*
** The shuffle of Fisher and Yates (Durstenfeld, 1964).  Random number k, below
** n-k, chooses the element that goes to position n-1-k.
*/
int nc_shuffle(int64_t *p, int64_t n, Generator *g) {
  const RandomKernels *kernel = &nc_kernels()->random;
  const int wide = n > (int64_t)1 << 32, per = wide ? 2 : 4;
  if (g == NULL) g = &nc_context->generator;
  const uint64_t key = nc_initialseed(g), first = take_blocks(g, n, per);
  RandomWords w;
  for (int64_t i = 0; i < n && !nc_interrupted; i++) p[i] = i + 1;
  for (int64_t k = 0; k < n; k++) {
    const int at = (int)(k / per % NC_RANDOM_BATCH), j = (int)(k % per);
    const uint64_t block = first + (uint64_t)(k / per);
    const uint64_t left = (uint64_t)(n - k);
    uint64_t to;
    if (at == 0 && j == 0) {
      if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
      kernel->words(w, key, block, 0);
    }
    if (wide)
      to = philox_below2(w[2 * j][at], w[2 * j + 1][at], left, key, block, j);
    else to = philox_below(w[j][at], left, key, block, j);
    int64_t last = p[left - 1];
    p[left - 1] = p[to];
    p[to] = last;
  }
  return NC_OK;
}
