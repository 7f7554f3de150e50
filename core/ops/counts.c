/* SPDX-License-Identifier: MIT */
/*
** counts.c - the operators poisson and binomial, on the host.
**
** Poisson numbers of small rates: uniform numbers are multiplied until the
** product is below exp(-rate) (Knuth); of larger ones: transformed rejection
** (Hoermann, "The transformed rejection method for generating Poisson random
** variables", 1993, algorithm PTRS).
** Binomial numbers with p at most 1/2 (else failures are counted): if fewer
** than 10 successes are expected, their distances, which are geometric, are
** added up (Devroye, "Non-uniform random variate generation", 1986, X.4.3);
** else by transformed rejection (Hoermann, "The generation of binomial random
** variates", 1993, algorithm BTRS).
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

static double draw_poisson(const double p[], Uniforms *u) {
  const double rate = p[0];
  return rate == 0 ? 0 : rate < 10 ? small(rate, u) : large(rate, u);
}

static int check_rate(int64_t i, const double p[]) {
  if (p[0] >= 0 && p[0] <= 0x1p62) return NC_OK;
  return nc_fail(NC_EVALUE, "rate %lld is %g, but must be from 0 to 2^62",
                 (long long)i + 1, p[0]);
}

int nc_op_poisson(Call *c) {
  static const ElementDraw poisson = { check_rate, draw_poisson };
  return nc_draw_elements(c, 1, &poisson);
}

static double few(double n, double p, Uniforms *u) {
  const double rest = log1p(-p);
  double at = 0, successes = -1;
  for (; at <= n; successes++)
    at += floor(log1p(-nc_next_uniform(u)) / rest) + 1;
  return successes;
}

/* log(k!) less Stirling's (k+1/2) log(k+1) - (k+1) + log(2 pi)/2 */
static double stirling_rest(double k) {
  static const double first[] = { 0.08106146679532726,  0.04134069595540929,
                                  0.02767792568499834,  0.02079067210376509,
                                  0.01664469118982119,  0.01387612882307075,
                                  0.01189670994589177,  0.01041126526197209,
                                  0.009255462182712733, 0.008330563433362871 };
  const double s = 1 / ((k + 1) * (k + 1));
  if (k < 10) return first[(int)k];
  return (1. / 12 - (1. / 360 - s / 1260) * s) / (k + 1);
}

static double many(double n, double p, Uniforms *u) {
  const double root = sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * root, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5, most = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * root, odds = p / (1 - p);
  const double m = floor((n + 1) * p);
  for (;;) {
    const double x = nc_next_uniform(u) - 0.5, us = 0.5 - fabs(x);
    double v = 1 - nc_next_uniform(u), bound;
    const double k = floor((2 * a / us + b) * x + c);
    if (us >= 0.07 && v <= most) return k;
    if (k < 0 || k > n) continue;
    v = log(v * alpha / (a / (us * us) + b));
    bound = (m + 0.5) * log((m + 1) / (odds * (n - m + 1))) +
            (n + 1) * log1p((k - m) / (n - k + 1)) +
            (k + 0.5) * log(odds * (n - k + 1) / (k + 1)) + stirling_rest(m) +
            stirling_rest(n - m) - stirling_rest(k) - stirling_rest(n - k);
    if (v <= bound) return k;
  }
}

static double draw_binomial(const double arg[], Uniforms *u) {
  const double n = arg[0], p = arg[1] <= 0.5 ? arg[1] : 1 - arg[1];
  double y = 0;
  if (n > 0 && p > 0) y = n * p < 10 ? few(n, p, u) : many(n, p, u);
  return arg[1] <= 0.5 ? y : n - y;
}

static int check_trials(int64_t i, const double p[]) {
  if (!(p[0] >= 0 && p[0] <= 0x1p53) || floor(p[0]) != p[0])
    return nc_fail(NC_EVALUE,
                   "count %lld is %g, but must be an integer from 0 to 2^53",
                   (long long)i + 1, p[0]);
  if (!(p[1] >= 0 && p[1] <= 1))
    return nc_fail(NC_EVALUE, "probability %lld is %g, but must be from 0 to 1",
                   (long long)i + 1, p[1]);
  return NC_OK;
}

int nc_op_binomial(Call *c) {
  static const ElementDraw binomial = { check_trials, draw_binomial };
  return nc_draw_elements(c, 2, &binomial);
}
