/* SPDX-License-Identifier: MIT */
/*
** distribution.c - random operators made of uniform and normal numbers by
** inverse distribution functions: exponential_, cauchy_, log_normal_,
** geometric_, bernoulli, random_, normal, multinomial. random.c has uniform and
** normal numbers and integers.
**
** They are computed in float64, whose 53 random bits reach far into the tails,
** and then converted.
*/
#include <math.h>

#include "core/ops/random_fill.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"
#include "core/indexing/index_select.h"

/* Returns a float64 tensor of the shape of x, filled as d says, from the
   generator of the call. */
static Tensor *draw(Temps *w, const Call *c, const Tensor *x,
                    RandomFillCall d) {
  Tensor *y = NULL;
  int r;
  if (w->status != NC_OK) return NULL;
  if ((r = nc_newdense(&y, nc_device(x), DT_f64, x)) == NC_OK)
    r = nc_draw(y, &d, nc_generatorof(c));
  return nc_temps_add(w, r, &y);
}

static Tensor *draw_uniform(Temps *w, const Call *c, const Tensor *x) {
  return draw(w, c, x, nc_uniform(DT_f64, 0, 1));
}

/* Sets the error "what, not got" unless `holds'. */
static void check_value(Temps *w, int holds, const char *what, double got) {
  if (w->status == NC_OK && !holds)
    w->status = nc_fail(NC_EVALUE, "%s, not %g", what, got);
}

/* Fails with this text unless all elements of the bool tensor x are true. */
static void assert_all(Temps *w, Tensor *x, const char *text) {
  Tensor *all = nc_temps_reduce(w, OP_all, x, ~0u, 0);
  if (w->status != NC_OK) return;
  const AssertCall e = { all, NC_EVALUE, text };
  w->status = nc_device(all)->device_assert(nc_device(all), &e);
}

/* Writes y, converted, to self and finishes the call. */
static int copy_to_self(Temps *w, Call *c, Tensor *y) {
  nc_temps_copyinto(w, c->arg[0].t, y);
  return nc_temps_endinplace(w, c);
}

/* Exponential numbers of mean 1: -log(1 - u). */
static Tensor *draw_exponential(Temps *w, const Call *c, const Tensor *x) {
  Tensor *u = nc_temps_op1(w, OP_neg, draw_uniform(w, c, x));
  return nc_temps_op1(w, OP_neg, nc_temps_op1(w, OP_log1p, u));
}

int nc_op_exponential_(Call *c) {
  const double lambd = nc_tofloat(c->arg[1].s);
  Tensor *x = c->arg[0].t;
  Temps w = { 0 };
  TRY(nc_check_float(x->dtype));
  check_value(&w, lambd > 0, "lambd must be above 0", lambd);
  return copy_to_self(&w, c,
                      nc_temps_opnumber(&w, OP_true_divide,
                                        draw_exponential(&w, c, x),
                                        nc_float(lambd)));
}

int nc_op_cauchy_(Call *c) {
  const double median = nc_tofloat(c->arg[1].s);
  const double sigma = nc_tofloat(c->arg[2].s);
  Tensor *x = c->arg[0].t, *y;
  Temps w = { 0 };
  TRY(nc_check_float(x->dtype));
  check_value(&w, sigma > 0, "sigma must be above 0", sigma);
  y = nc_temps_opnumber(&w, OP_sub, draw_uniform(&w, c, x), nc_float(0.5));
  y = nc_temps_opnumber(&w, OP_mul, y, nc_float(3.14159265358979323846));
  y = nc_temps_opnumber(&w, OP_mul, nc_temps_op1(&w, OP_tan, y),
                        nc_float(sigma));
  return copy_to_self(&w, c,
                      nc_temps_opnumber(&w, OP_add, y, nc_float(median)));
}

int nc_op_log_normal_(Call *c) {
  const double mean = nc_tofloat(c->arg[1].s), std = nc_tofloat(c->arg[2].s);
  Tensor *x = c->arg[0].t;
  Temps w = { 0 };
  TRY(nc_check_float(x->dtype));
  check_value(&w, std > 0, "std must be above 0", std);
  return copy_to_self(
      &w, c,
      nc_temps_op1(&w, OP_exp, draw(&w, c, x, nc_normal(DT_f64, mean, std))));
}

/* The number of the first success: 1 + floor(log(1-u) / log(1-p)). */
int nc_op_geometric_(Call *c) {
  const double p = nc_tofloat(c->arg[1].s);
  Tensor *x = c->arg[0].t, *y;
  Temps w = { 0 };
  check_value(&w, p > 0 && p < 1, "p must lie between 0 and 1", p);
  y = nc_temps_opnumber(&w, OP_true_divide, draw_exponential(&w, c, x),
                        nc_float(-log1p(-p)));
  y = nc_temps_opnumber(&w, OP_add, nc_temps_op1(&w, OP_floor, y), nc_int(1));
  return copy_to_self(&w, c, y);
}

/*
** bernoulli
*/
/* Returns u < p for a uniform number u for each element of x.  p is a number,
   or a tensor that broadcasts to x. */
static Tensor *draw_bernoulli(Temps *w, const Call *c, const Tensor *x,
                              const Arg *p) {
  Arg in[2] = { { .t = draw_uniform(w, c, x) }, { .t = p->t, .s = p->s } };
  if (p->t) {
    Tensor *ge = nc_temps_opnumber(w, OP_ge, p->t, nc_int(0));
    assert_all(w,
               nc_temps_op2(w, OP_logical_and, ge,
                            nc_temps_opnumber(w, OP_le, p->t, nc_int(1))),
               "a probability is not between 0 and 1");
    in[1].t =
        nc_temps_expand(w, nc_temps_cast(w, p->t, DT_f64), x->nd, x->size);
  } else {
    const double v = nc_tofloat(p->s);
    check_value(w, v >= 0 && v <= 1, "p must lie between 0 and 1", v);
  }
  return nc_temps_op(w, OP_lt, in, NULL);
}

int nc_op_bernoulli(Call *c) {
  Tensor *x = c->arg[0].t;
  const Arg own = { .t = x }, *p = c->arg[1].present ? &c->arg[1] : &own;
  Temps w = { 0 };
  if (p == &own) TRY(nc_check_float(x->dtype));
  return nc_temps_endcall(
      &w, c, nc_temps_cast(&w, draw_bernoulli(&w, c, x, p), x->dtype));
}

int nc_op_bernoulli_(Call *c) {
  Temps w = { 0 };
  return copy_to_self(&w, c, draw_bernoulli(&w, c, c->arg[0].t, &c->arg[1]));
}

/*
** random_: the integers from .. to-1, by default all that the type represents
** exactly
*/
int nc_op_random_(Call *c) {
  Tensor *x = c->arg[0].t;
  int64_t low, high;
  nc_exact_range(x->dtype, &low, &high);
  RandomFillCall d = nc_integers(0, (uint64_t)high + 1);
  if (c->arg[1].present) {
    low = c->arg[2].present ? c->arg[1].s.i : 0;
    high = c->arg[2].present ? c->arg[2].s.i : c->arg[1].s.i;
    TRY(nc_check_range(low, high));
    TRY(nc_checkholds(low, x->dtype));
    TRY(nc_checkholds(high - 1, x->dtype));
    d = nc_integers(low, (uint64_t)high - (uint64_t)low);
  }
  TRY(nc_draw(x, &d, nc_generatorof(c)));
  nc_retain(c->out[0] = x);
  return NC_OK;
}

/*
** normal(mean, std): both may be a tensor or a number
*/
int nc_op_normal(Call *c) {
  const Arg *mean = &c->arg[0], *std = &c->arg[1], *size = &c->arg[2];
  const Arg in[2] = { *mean, *std };
  const Tensor *like = mean->t ? mean->t : std->t;
  DType type = like ? nc_resulttype(in, 2) : nc_context->dtype;
  int64_t shape[NC_MAXDIM];
  int nd = 0;
  Tensor *y = NULL;
  Temps w = { 0 };
  RandomFillCall d;
  if (c->arg[3].dtype != DT_NONE) type = c->arg[3].dtype;
  if (like == NULL && !size->present)
    return nc_fail(NC_EVALUE, "needs a size, or a tensor as mean or std");
  if (like && size->present)
    return nc_fail(NC_EVALUE,
                   "size cannot be given if mean or std is a tensor");
  TRY(nc_check_float(type));
  if (like) TRY(nc_broadcast(in, 2, &nd, shape));
  if (std->t)
    assert_all(&w, nc_temps_opnumber(&w, OP_ge, std->t, nc_int(0)),
               "a standard deviation is negative");
  else
    check_value(&w, nc_tofloat(std->s) >= 0, "std must not be negative",
                nc_tofloat(std->s));
  if (w.status != NC_OK) return nc_temps_endcall(&w, c, NULL);
  const Device *where = like               ? nc_device(like)
                        : c->arg[4].device ? c->arg[4].device
                                           : nc_default_device();
  int r =
      nc_new(&y, where, type, like ? nd : size->n, like ? shape : size->list);
  d = like ? nc_normal(type, 0, 1)
           : nc_normal(type, nc_tofloat(mean->s), nc_tofloat(std->s));
  if (r == NC_OK) r = nc_draw(y, &d, nc_generatorof(c));
  y = nc_temps_add(&w, r, &y);
  if (like) {
    Arg by[2] = { { .t = y }, *std }, plus[2] = { { .t = NULL }, *mean };
    plus[0].t = nc_temps_op(&w, OP_mul, by, NULL);
    y = nc_temps_op(&w, OP_add, plus, NULL);
    if (w.status == NC_OK) y = nc_temps_cast(&w, y, type);
  }
  return nc_temps_endcall(&w, c, y);
}

/*
** multinomial
*/
/* Without replacement: the n largest of weight / exponential number
   (Efraimidis and Spirakis, 2006). */
static Tensor *sample_without_replacement(Temps *w, const Call *c, Tensor *p,
                                          int64_t n) {
  Tensor *q = nc_temps_op2(w, OP_true_divide, p, draw_exponential(w, c, p));
  Call topk = nc_callon(OPERATOR_topk, q);
  nc_setint(&topk, 1, n);
  nc_setint(&topk, 2, p->nd);
  nc_setint(&topk, 3, 1);
  nc_setint(&topk, 4, 1);
  nc_temps_call(w, &topk);
  return topk.out[1];
}

/* With replacement: searches a uniform number in the cumulative sums of the
   weights. */
static Tensor *sample_with_replacement(Temps *w, const Call *c, Tensor *p,
                                       int64_t n) {
  int64_t size[2] = { p->size[0], n };
  const int d = p->nd;
  Tensor *sum = nc_temps_call1(w, OPERATOR_cumsum, p, d, 0), *u, *total;
  if (d == 1) size[0] = n;
  u = nc_temps_new(w, p, DT_f64, d, size);
  u = draw_uniform(w, c, u);
  total = nc_temps_narrow(w, sum, d - 1, p->size[d - 1] - 1, 1);
  Call search = nc_callon(OPERATOR_searchsorted, sum);
  search.arg[1].t = nc_temps_op2(w, OP_mul, u, total);
  search.arg[3].present = 1;
  search.arg[3].s = (Scalar){ NC_BOOL, { 1 }, 0, 0 };
  return nc_temps_call(w, &search);
}

int nc_op_multinomial(Call *c) {
  Tensor *x = c->arg[0].t, *p, *at;
  const int64_t n = c->arg[1].s.i;
  const int again = (int)c->arg[2].s.i;
  Temps w = { 0 };
  TRY(nc_check_float(x->dtype));
  if (x->nd < 1 || x->nd > 2)
    return nc_fail(NC_ESHAPE,
                   "needs a vector or a matrix, the tensor has %d dimensions",
                   x->nd);
  if (n < 1)
    return nc_fail(NC_EVALUE,
                   "num_samples is %lld, but must be 1 or "
                   "more",
                   (long long)n);
  if (x->size[x->nd - 1] == 0 || (!again && n > x->size[x->nd - 1]))
    return nc_fail(NC_EVALUE, "cannot draw %lld numbers from %lld categories%s",
                   (long long)n, (long long)x->size[x->nd - 1],
                   again ? "" : " without replacement");
  p = nc_temps_cast(&w, x, DT_f64);
  if (w.status == NC_OK && nc_numel(x) > 0) {
    Tensor *ge = nc_temps_opnumber(&w, OP_ge, p, nc_int(0));
    assert_all(
        &w,
        nc_temps_op2(&w, OP_logical_and, ge, nc_temps_op1(&w, OP_isfinite, p)),
        "a weight is negative, nan or infinite");
    at = nc_temps_reduce(&w, OP_sum, nc_temps_opnumber(&w, OP_gt, p, nc_int(0)),
                         1u << (x->nd - 1), 0);
    assert_all(&w, nc_temps_opnumber(&w, OP_ge, at, nc_int(again ? 1 : n)),
               "too few weights are above 0");
  }
  at = NULL;
  if (w.status == NC_OK)
    at = again ? sample_with_replacement(&w, c, p, n)
               : sample_without_replacement(&w, c, p, n);
  return nc_temps_endcall(&w, c, at);
}
