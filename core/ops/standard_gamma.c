/* SPDX-License-Identifier: MIT */
/*
** standard_gamma.c - gamma random numbers of scale 1, on the host, and their
** derivatives by the shape.
**
** They are drawn as Marsaglia and Tsang do ("A simple method for generating
** gamma variables", 2000). Their derivative is that of the quantile which the
** number is (Figurnov, Mohamed and Mnih, "Implicit reparameterization
** gradients", 2018): dx/da = -(dP(a,x)/da) / density(a,x).
*/
#include <math.h>

#include "core/operator_grads.h"
#include "core/operators.h"
#include "core/op.h"
#include "core/ops.h"
#include "core/ops/element_draws.h"
#include "core/pointwise/temps.h"
#include "core/tape.h"

#define TAU 6.28318530717958647693

/* A normal number (Box and Muller). */
static double next_normal(Uniforms *u) {
  const double radius = sqrt(-2 * log1p(-nc_next_uniform(u)));
  return radius * cos(TAU * nc_next_uniform(u));
}

static double draw_above_1(double a, Uniforms *u) {
  const double d = a - 1. / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    const double x = next_normal(u), t = 1 + c * x, v = t * t * t;
    if (t <= 0) continue;
    if (log1p(-nc_next_uniform(u)) < 0.5 * x * x + d - d * v + d * log(v))
      return d * v;
  }
}

static double draw(const double p[], Uniforms *u) {
  if (p[0] >= 1) return draw_above_1(p[0], u);
  const double power = log1p(-nc_next_uniform(u)) / p[0];
  return exp(power) * draw_above_1(p[0] + 1, u);
}

static int check(int64_t i, const double p[]) {
  if (p[0] > 0 && p[0] < HUGE_VAL) return NC_OK;
  return nc_fail(NC_EVALUE, "shape %lld is %g, but must be above 0",
                 (long long)i + 1, p[0]);
}

int nc_op__standard_gamma(Call *c) {
  static const ElementDraw gamma = { check, draw };
  return nc_draw_elements(c, 1, &gamma);
}

/*
** The derivative; psi is digamma(a + 1)
*/
#define ENOUGH 1e-17 /* terms below this part of their sum change nothing */

/* Below a + 1, by P(a,x) = x^a e^-x / gamma(a+1) * S, where the term n of S is
   x^n / ((a+1)...(a+n)). */
static double by_series(double a, double x, double psi) {
  double term = 1, sum = 1, slope = 0, logs = 0;
  for (double n = 1; term > ENOUGH * sum; n++) {
    term *= x / (a + n);
    logs += 1 / (a + n); /* less the derivative of log(term) */
    sum += term;
    slope -= term * logs;
  }
  return -x / a * (sum * (log(x) - psi) + slope);
}

typedef struct Dual { /* a number and its derivative by a */
  double v, d;
} Dual;

/* Above, by 1 - P = x^a e^-x / gamma(a) * H, where H is the continued fraction
   1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - ...))), from the top (Lentz). */
static double by_fraction(double a, double x, double psi) {
  Dual h, c, d;
  double b = x + 1 - a;
  d.v = 1 / b, d.d = 1 / (b * b);
  h = d, c = (Dual){ HUGE_VAL, 0 };
  for (double n = 1; n < 1e7; n++) {
    const double t = -n * (n - a), dt = n;
    Dual nd, nc, by;
    b += 2;
    nd.v = b + t * d.v, nd.d = -1 + dt * d.v + t * d.d;
    nc.v = b + t / c.v, nc.d = -1 + dt / c.v - t * c.d / (c.v * c.v);
    d.v = 1 / nd.v, d.d = -nd.d / (nd.v * nd.v);
    c = nc;
    by.v = c.v * d.v, by.d = c.d * d.v + c.v * d.d;
    h.d = h.d * by.v + h.v * by.d;
    h.v *= by.v;
    if (fabs(by.v - 1) < 1e-16 && fabs(by.d) < 1e-16 * fabs(h.d / h.v)) break;
  }
  return x * (h.v * (log(x) - (psi - 1 / a)) + h.d);
}

/* For large a, where the quantile of the normal number z is
   a + z sqrt(a) + (z*z - 1)/3 + (z*z*z - 7z)/(36 sqrt(a)) + ... (Cornish and
   Fisher). */
static double by_normal(double a, double x) {
  const double root = sqrt(a);
  double z = (x - a) / root;
  for (int i = 0; i < 4; i++)
    z = (x - a - (z * z - 1) / 3 - (z * z * z - 7 * z) / (36 * root)) / root;
  return 1 + z / (2 * root) - (z * z * z - 7 * z) / (72 * a * root);
}

static double derivative(double a, double x, double psi) {
  if (x == 0) return 0;
  if (!(a > 0 && x > 0 && x < HUGE_VAL)) return (double)NAN;
  if (a > 1e6) return by_normal(a, x);
  return (x < a + 1 ? by_series : by_fraction)(a, x, psi);
}

typedef struct Derivatives {
  const double *a, *x, *psi;
  double *y;
} Derivatives;

static void differentiate(void *ctx, int64_t begin, int64_t end) {
  const Derivatives *j = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i++)
    j->y[i] = derivative(j->a[i], j->x[i], j->psi[i]);
}

int nc_op__standard_gamma_grad(Call *c) {
  Tensor *a = c->arg[0].t, *x = c->arg[1].t, *psi, *y;
  const DType type = nc_resulttype(c->arg, 2);
  int64_t size[NC_MAXDIM];
  Temps w = { 0 };
  int nd;
  if (nc_device(a) != &nc_cpu) return nc_run_on_host(c, nc_device(a));
  TRY(nc_check_float(type));
  TRY(nc_broadcast(c->arg, 2, &nd, size));
  a = nc_temps_expand(&w, nc_temps_cast(&w, a, DT_f64), nd, size);
  x = nc_temps_expand(&w, nc_temps_cast(&w, x, DT_f64), nd, size);
  a = nc_temps_dense(&w, a);
  x = nc_temps_dense(&w, x);
  psi = nc_temps_opnumber(&w, OP_add, a, nc_int(1));
  psi = nc_temps_op1(&w, OP_digamma, psi);
  y = nc_temps_new(&w, x, DT_f64, nd, size);
  if (w.status == NC_OK) {
    Derivatives j = { nc_data(a), nc_data(x), nc_data(psi), nc_data(y) };
    w.status = nc_parallel(nc_numel(y), 64, differentiate, &j);
  }
  return nc_temps_endcall(&w, c, nc_temps_cast(&w, y, type));
}

int nc_grad__standard_gamma(OperatorGrad *g) {
  Tensor *a, *y;
  Temps w = { 0 };
  TRY(nc_operand(g, 0, &a));
  TRY(nc_result(g, 0, &y));
  Call slope = nc_callon(OPERATOR__standard_gamma_grad, a);
  slope.arg[1].t = y;
  nc_temps_call(&w, &slope);
  if (w.status == NC_OK)
    w.status =
        nc_formula(&g->d[0], "g*a", g->g[0], slope.out[0], NULL, NULL, 0);
  return nc_temps_finish(&w);
}
