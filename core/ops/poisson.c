/* SPDX-License-Identifier: MIT */
/*
** poisson.c - the operator poisson, on the host.
**
** For small rates uniform numbers are multiplied until the product is
** below exp(-rate) (Knuth); for larger ones the transformed rejection method is
** used (Hoermann, "The transformed rejection method for generating Poisson
** random variables", 1993, algorithm PTRS).
*/
#include <math.h>

#include "core/operators.h"
#include "core/op.h"
#include "core/ops/element_draws.h"

/* For rates below 10: the product of uniform numbers. */
static double small(double rate, Uniforms *u) {
  const double limit = exp(-rate);
  double product = nc_next_uniform(u), n = 0;
  for (; product > limit; n++) product *= nc_next_uniform(u);
  return n;
}

/* For rates from 10 on: algorithm PTRS. */
static double large(double rate, Uniforms *u) {
  const double root = sqrt(rate), b = 0.931 + 2.53 * root;
  const double a = -0.059 + 0.02483 * b, lograte = log(rate);
  const double alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double most = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double x = nc_next_uniform(u) - 0.5, v = 1 - nc_next_uniform(u),
                 us = 0.5 - fabs(x);
    const double k = floor((2 * a / us + b) * x + rate + 0.43);
    if (us >= 0.07 && v <= most) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v) + log(alpha) - log(a / (us * us) + b) <=
        k * lograte - rate - lgamma(k + 1))
      return k;
  }
}

static double draw(const double p[], Uniforms *u) {
  const double rate = p[0];
  return rate == 0 ? 0 : rate < 10 ? small(rate, u) : large(rate, u);
}

static int check(int64_t i, const double p[]) {
  if (p[0] >= 0 && p[0] <= 0x1p62) return NC_OK;
  return nc_fail(NC_EVALUE, "rate %lld is %g, but must be from 0 to 2^62",
                 (long long)i + 1, p[0]);
}

int nc_op_poisson(Call *c) {
  static const ElementDraw poisson = { check, draw };
  return nc_draw_elements(c, 1, &poisson);
}
