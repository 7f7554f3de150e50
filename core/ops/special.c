/* SPDX-License-Identifier: MIT */
/*
** special.c - special functions and activations that check or reshape their
** arguments before pointwise operations: nan_to_num, polygamma, mvlgamma, glu,
** prelu and others.
*/
#include <math.h>

#include "core/pointwise/temps.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"

int nc_op_nan_to_num(Call *c);

/* That of complex numbers is that of their parts. */
static int nan_to_num_of_parts(Call *c) {
  Temps w = { 0 };
  Call parts = *c, view = nc_callon(OPERATOR_view_as_real, c->arg[0].t);
  Tensor *x = nc_temps_call(&w, &view), *y = NULL;
  parts.arg[0].t = x;
  parts.out[0] = NULL;
  if (w.status == NC_OK) w.status = nc_op_nan_to_num(&parts);
  y = nc_temps_add(&w, w.status, &parts.out[0]);
  view = nc_callon(OPERATOR_view_as_complex, y);
  return nc_temps_endcall(&w, c,
                          w.status == NC_OK ? nc_temps_call(&w, &view) : NULL);
}

int nc_op_nan_to_num(Call *c) {
  Tensor *x = c->arg[0].t;
  const double most = nc_largest(x->dtype);
  const Arg *high = &c->arg[2], *low = &c->arg[3];
  double par[2] = { nc_tofloat(c->arg[1].s), 0 };
  Arg in[3] = { { .t = x }, { .s = nc_float(most) }, { .s = nc_float(-most) } };
  if (nc_is_complex(x->dtype)) return nan_to_num_of_parts(c);
  if (!nc_is_real(x->dtype)) return nc_apply1(&c->out[0], OP_clone, x);
  if (high->present) in[1].s = nc_float(nc_tofloat(high->s));
  if (low->present) in[2].s = nc_float(nc_tofloat(low->s));
  return nc_apply(&c->out[0], OP__nan_to_num, in, par, NULL);
}

/* The bits of x, dense and of 16-bit elements, as elements of another such
   type. */
static Tensor *reinterpret(Temps *w, Tensor *x, DType type) {
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  y = nc_temps_add(w, nc_alias(&y, x), &y);
  if (y) y->dtype = type;
  return y;
}

/* nextafter of halves, by their bits, which count up away from 0. */
static int next_half(Call *c, DType t) {
  Temps w = { 0 };
  const Scalar zero = nc_int(0);
  Tensor *b = nc_temps_cast(&w, c->arg[1].t, t);
  Tensor *a = nc_temps_cast(&w, c->arg[0].t, t), *away, *bits, *y;
  a = nc_temps_op3(&w, OP_where, nc_temps_op1(&w, OP_isnan, b), b, a);
  away = nc_temps_op2(&w, OP_eq, nc_temps_op2(&w, OP_lt, a, b),
                      nc_temps_opnumber(&w, OP_gt, a, zero));
  away = nc_temps_opnumber(&w, OP_sub,
                           nc_temps_opnumber(&w, OP_mul, away, nc_int(2)),
                           nc_int(1)); /* 1 or -1 */
  bits = nc_temps_op2(&w, OP_add, reinterpret(&w, a, DT_i16),
                      nc_temps_cast(&w, away, DT_i16));
  y = nc_temps_opnumber(&w, OP_lt, b, zero);
  y = nc_temps_opnumber(&w, OP_mul, nc_temps_cast(&w, y, DT_i16),
                        nc_int(-32768));
  y = nc_temps_opnumber(&w, OP_add, y, nc_int(1)); /* the least, signed */
  y = nc_temps_op3(&w, OP_where, nc_temps_opnumber(&w, OP_eq, a, zero), y,
                   bits);
  y = reinterpret(&w, nc_temps_dense(&w, y), t);
  y = nc_temps_op3(&w, OP_where, nc_temps_op2(&w, OP_eq, a, b), b, y);
  y = nc_temps_op3(&w, OP_where, nc_temps_op1(&w, OP_isnan, a), a, y);
  return nc_temps_endcall(&w, c, y);
}

int nc_op_nextafter(Call *c) {
  const DType t = nc_resulttype(c->arg, 2);
  if (t == DT_f16 || t == DT_bf16) return next_half(c, t);
  return nc_apply(&c->out[0], OP__nextafter, c->arg, NULL, NULL);
}

int nc_op_float_power(Call *c) {
  Arg in[2] = { c->arg[0], c->arg[1] };
  Temps w = { 0 };
  for (int i = 0; i < 2; i++) {
    if (in[i].t)
      in[i].t = nc_temps_cast(&w, in[i].t,
                              nc_is_complex(in[i].t->dtype) ? DT_c128 : DT_f64);
    else if (in[i].s.kind != NC_COMPLEX)
      in[i].s = nc_float(nc_tofloat(in[i].s));
  }
  return nc_temps_endcall(&w, c, nc_temps_op(&w, OP_pow, in, NULL));
}

/*
** Gamma functions
*/
/* Returns polygamma(n, x) = (-1)^(n+1) * n! * zeta(n+1, x). */
static Tensor *polygamma(Temps *w, Tensor *x, int64_t n) {
  Arg in[2] = { { .s = nc_int(n + 1) }, { .t = x } };
  const double factor = (n % 2 ? 1 : -1) * tgamma((double)n + 1);
  return nc_temps_opnumber(w, OP_mul, nc_temps_op(w, OP_zeta, in, NULL),
                           nc_float(factor));
}

/* polygamma(n, x), the order of torch.polygamma, or x:polygamma(n). */
int nc_op_polygamma(Call *c) {
  const int swap = c->arg[0].t == NULL;
  Tensor *x = c->arg[swap].t;
  const Scalar n = c->arg[!swap].s;
  Temps w = { 0 };
  if (x == NULL || c->arg[!swap].t || n.kind != NC_INT || n.i < 0)
    return nc_fail(NC_EVALUE, "needs an integer of 0 or more and a tensor");
  return nc_temps_endcall(&w, c,
                          n.i == 0   ? nc_temps_op1(&w, OP_digamma, x)
                          : n.i == 1 ? nc_temps_op1(&w, OP__trigamma, x)
                                     : polygamma(&w, x, n.i));
}

/* The sum of lgamma(x - k/2) for k = 0 .. p-1, plus p*(p-1)/4 * log(pi). */
int nc_op_mvlgamma(Call *c) {
  Tensor *x = c->arg[0].t, *shift;
  const int64_t p = c->arg[1].s.i;
  Temps w = { 0 };
  Call line = nc_callon(OPERATOR_linspace, NULL);
  if (p < 1)
    return nc_fail(NC_EVALUE, "p is %lld, but must be 1 or more", (long long)p);
  if (!nc_is_real(x->dtype)) x = nc_temps_cast(&w, x, nc_context->dtype);
  line.arg[0].s = nc_float(0);
  line.arg[1].s = nc_float(-0.5 * (double)(p - 1));
  nc_setint(&line, 2, p);
  if (w.status == NC_OK) {
    line.arg[3].dtype = x->dtype;
    line.arg[4].device = nc_device(x);
  }
  shift = nc_temps_call(&w, &line);
  x = nc_temps_op2(&w, OP_add, nc_temps_call1(&w, OPERATOR_unsqueeze, x, -1, 0),
                   shift);
  x = nc_temps_op1(&w, OP_lgamma, x);
  if (w.status == NC_OK)
    x = nc_temps_reduce(&w, OP_sum, x, 1u << (x->nd - 1), 0);
  x = nc_temps_opnumber(
      &w, OP_add, x,
      nc_float((double)p * (double)(p - 1) / 4 * 1.1447298858494001741));
  return nc_temps_endcall(&w, c, x);
}

/*
** Activations
*/
int nc_op_threshold(Call *c) {
  const double par[2] = { nc_tofloat(c->arg[1].s), nc_tofloat(c->arg[2].s) };
  return nc_apply(&c->out[0], OP__threshold, c->arg, par, NULL);
}

int nc_op_glu(Call *c) {
  Tensor *x = c->arg[0].t, *gate;
  Temps w = { 0 };
  int dim;
  int64_t half;
  TRY(nc_dim(&dim, c->arg[1].s.i, x->nd));
  if (x->nd == 0) return nc_fail(NC_ESHAPE, "needs at least one dimension");
  half = x->size[dim] / 2;
  if (x->size[dim] != 2 * half)
    return nc_fail(NC_ESHAPE, "dim %d cannot be halved, it has %lld elements",
                   dim + 1, (long long)x->size[dim]);
  TRY(nc_check_float(x->dtype));
  gate = nc_temps_op1(&w, OP_sigmoid, nc_temps_narrow(&w, x, dim, half, half));
  nc_temps_result(
      &w, &c->out[0],
      nc_temps_op2(&w, OP_mul, nc_temps_narrow(&w, x, dim, 0, half), gate));
  return nc_temps_finish(&w);
}

/* One weight for all elements, or one for each position of dimension 2. */
int nc_op_prelu(Call *c) {
  Tensor *x = c->arg[0].t, *weight = c->arg[1].t;
  const int64_t n = nc_numel(weight), channels = x->nd > 1 ? x->size[1] : 1;
  int64_t size[NC_MAXDIM] = { 1, 1, 1, 1, 1, 1, 1, 1 };
  Temps w = { 0 };
  if (n != 1 && (x->nd < 1 || n != channels))
    return nc_fail(NC_ESHAPE, "%lld weights, but dim 2 has %lld elements",
                   (long long)n, (long long)channels);
  if (weight->nd > 1) return nc_fail(NC_ESHAPE, "the weights must be a vector");
  if (weight->dtype != x->dtype)
    return nc_fail(NC_EDTYPE, "the weights are %s, {0} is %s",
                   nc_dtypename(weight->dtype), nc_dtypename(x->dtype));
  size[1] = n;
  weight = nc_temps_reshape(&w, weight, n == 1 ? 0 : x->nd, size);
  return nc_temps_endcall(&w, c, nc_temps_op2(&w, OP__prelu, x, weight));
}

int nc_op_softmin(Call *c) {
  Temps w = { 0 };
  Call soft = *c;
  soft.op = OPERATOR_softmax;
  soft.arg[0].t = nc_temps_op1(&w, OP_neg, c->arg[0].t);
  return nc_temps_endcall(&w, c, nc_temps_call(&w, &soft));
}
