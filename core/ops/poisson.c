/* SPDX-License-Identifier: MIT */
/*
** poisson.c - the operator poisson, on the host.
**
** Element i uses block i of the call (see philox.h) and as many retries of that
** block as it needs, so that the result does not depend on the number of
** threads.  For small rates uniform numbers are multiplied until the product is
** below exp(-rate) (Knuth); for larger ones the transformed rejection method is
** used (Hoermann, "The transformed rejection method for generating Poisson
** random variables", 1993, algorithm PTRS).
*/
#include <math.h>

#include "core/pointwise/temps.h"
#include "core/operators.h"
#include "core/ops/random_fill.h"
#include "core/op.h"
#include "core/base/philox.h"

typedef struct Uniforms { /* the uniform numbers of one element, two a block */
  uint64_t key, block;
  uint32_t retry, w[4];
  int used;
} Uniforms;

/* Returns the next uniform number. */
static double next(Uniforms *u) {
  if (u->used == 4) {
    philox_block(u->w, u->key, u->block, u->retry++);
    u->used = 0;
  }
  u->used += 2;
  return philox_uniform2(u->w[u->used - 2], u->w[u->used - 1]);
}

/* For rates below 10: the product of uniform numbers. */
static double small(double rate, Uniforms *u) {
  const double limit = exp(-rate);
  double product = next(u), n = 0;
  for (; product > limit; n++) product *= next(u);
  return n;
}

/* For rates from 10 on: algorithm PTRS. */
static double large(double rate, Uniforms *u) {
  const double root = sqrt(rate), b = 0.931 + 2.53 * root;
  const double a = -0.059 + 0.02483 * b, lograte = log(rate);
  const double alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double most = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double x = next(u) - 0.5, v = 1 - next(u), us = 0.5 - fabs(x);
    const double k = floor((2 * a / us + b) * x + rate + 0.43);
    if (us >= 0.07 && v <= most) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v) + log(alpha) - log(a / (us * us) + b) <=
        k * lograte - rate - lgamma(k + 1))
      return k;
  }
}

typedef struct PoissonFill {
  const double *rate;
  double *y;
  uint64_t key, block;
} PoissonFill;

static void draw(void *ctx, int64_t begin, int64_t end) {
  const PoissonFill *j = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    Uniforms u = { .key = j->key, .block = j->block + (uint64_t)i, .used = 4 };
    const double rate = j->rate[i];
    j->y[i] = rate == 0 ? 0 : rate < 10 ? small(rate, &u) : large(rate, &u);
  }
}

/* Fills y, dense float64, with a number for each rate; g is the generator,
   NULL: the default one. */
static int fill(Tensor *y, const Tensor *rate, Generator *g) {
  const int64_t n = nc_numel(y);
  PoissonFill j = { .rate = nc_data(rate), .y = nc_data(y) };
  if (g == NULL) g = &nc_context->generator;
  for (int64_t i = 0; i < n; i++)
    if (!(j.rate[i] >= 0) || j.rate[i] > 0x1p62)
      return nc_fail(NC_EVALUE, "rate %lld is %g, but must be from 0 to 2^62",
                     (long long)i + 1,
                     j.rate[i] == j.rate[i] ? j.rate[i] : fabs(j.rate[i]));
  j.key = nc_initialseed(g);
  j.block = nc_takeblocks(g, (uint64_t)n);
  return nc_parallel(n, 1024, draw, &j);
}

int nc_op_poisson(Call *c) {
  Tensor *x = c->arg[0].t, *rate, *y;
  Temps w = { 0 };
  if (nc_device(x) != &nc_cpu) return nc_run_on_host(c, nc_device(x));
  TRY(nc_check_float(x->dtype));
  rate = nc_temps_dense(&w, nc_temps_cast(&w, x, DT_f64));
  y = nc_temps_new(&w, x, DT_f64, x->nd, x->size);
  if (w.status == NC_OK) w.status = fill(y, rate, nc_generatorof(c));
  return nc_temps_endcall(&w, c, nc_temps_cast(&w, y, x->dtype));
}
