/* SPDX-License-Identifier: MIT */
/*
** copy.c - operators that copy, fill, compare and limit whole tensors (copy_,
** equal, isclose, div, clamp).
*/
#include <math.h>

#include "core/base/mapping.h"
#include "core/pointwise/temps.h"
#include "core/cpu/kernels/kernels.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/pointwise/scalar.h"
#include "core/tensor.h"
#include "core/trace.h"

/* Returns the first operand, with a reference, as the result. */
static int return_self(Call *c) {
  nc_retain(c->out[0] = c->arg[0].t);
  return NC_OK;
}

int nc_op_copy_(Call *c) {
  Tensor *y = c->arg[0].t, *x = c->arg[1].t;
  TRY(x ? nc_copyto(y, x, c->arg[2].s.i ? NC_NOWAIT : 0)
        : nc_fill(y, c->arg[1].s));
  return return_self(c);
}

int nc_op_fill_(Call *c) {
  TRY(nc_fill(c->arg[0].t, c->arg[1].s));
  return return_self(c);
}

int nc_op_zero_(Call *c) {
  TRY(nc_fill(c->arg[0].t, nc_int(0)));
  return return_self(c);
}

int nc_op_contiguous(Call *c) {
  return nc_dense(&c->out[0], c->arg[0].t);
}

/* *v = whether all elements of b are true.  Releases b. */
static int all_true(Scalar *v, Tensor *b) {
  Tensor *all;
  int r = nc_reduce(&all, OP_all, b, ~0u, 0, DT_NONE, NULL, NULL);
  nc_release(b);
  if (r != NC_OK) return r;
  r = nc_item(v, all);
  nc_release(all);
  v->kind = NC_BOOL;
  return r;
}

int nc_op_equal(Call *c) {
  Tensor *a = c->arg[0].t, *b = c->arg[1].t, *eq;
  c->value = (Scalar){ NC_BOOL, { 0 }, 0, 0 };
  if (a->nd != b->nd) return NC_OK;
  for (int d = 0; d < a->nd; d++)
    if (a->size[d] != b->size[d]) return NC_OK;
  TRY(nc_apply2(&eq, OP_eq, a, b));
  return all_true(&c->value, eq);
}

/* *y = |a - b| <= atol + rtol*|b| for int64, whose differences a double may
   not represent: they are computed as integers, and are negative where they
   are 2^63 or more.  par is rtol, atol. */
static int is_close_int64(Tensor **y, Tensor *a, Tensor *b,
                          const double par[2]) {
  Temps w = { 0 };
  Tensor *most = nc_temps_op2(&w, OP_maximum, a, b);
  Tensor *apart =
      nc_temps_op2(&w, OP_sub, most, nc_temps_op2(&w, OP_minimum, a, b));
  Tensor *allowed = nc_temps_op1(&w, OP_abs, nc_temps_cast(&w, b, DT_f64)),
         *close, *far;
  allowed = nc_temps_opnumber(&w, OP_mul, allowed, nc_float(par[0]));
  allowed = nc_temps_opnumber(&w, OP_add, allowed, nc_float(par[1]));
  close = nc_temps_op2(&w, OP_le, apart, nc_temps_cast(&w, allowed, DT_i64));
  close = nc_temps_op2(&w, OP_logical_and, close,
                       nc_temps_opnumber(&w, OP_ge, apart, nc_int(0)));
  far = nc_temps_opnumber(&w, OP_add, nc_temps_cast(&w, apart, DT_f64),
                          nc_float(0x1p64));
  far = nc_temps_op2(&w, OP_logical_and,
                     nc_temps_opnumber(&w, OP_lt, apart, nc_int(0)),
                     nc_temps_op2(&w, OP_le, far, allowed));
  return nc_temps_end(&w, y, nc_temps_op2(&w, OP_logical_or, close, far));
}

/* *y = isclose of any two types.  Integers up to int32 are compared in
   float64, which represents them exactly; int64 in is_close_int64. */
static int is_close(Tensor **y, Tensor *a, Tensor *b, const double par[2]) {
  Arg in[2] = { { .t = a }, { .t = b } };
  const DType t = nc_resulttype(in, 2);
  Temps w = { 0 };
  for (int i = 0; i < 2 && nc_is_exact(t); i++)
    in[i].t = nc_temps_cast(&w, in[i].t, t == DT_i64 ? DT_i64 : DT_f64);
  *y = NULL;
  if (w.status == NC_OK)
    w.status = t == DT_i64 ? is_close_int64(y, in[0].t, in[1].t, par)
                           : nc_apply(y, OP__isclose, in, par, NULL);
  return nc_temps_finish(&w);
}

/* y |= isnan(a) & isnan(b), in place. */
static int or_both_nan(Tensor *y, Tensor *a, Tensor *b) {
  Temps w = { 0 };
  Tensor *z = NULL,
         *nan = nc_temps_op2(&w, OP_bitwise_and, nc_temps_op1(&w, OP_isnan, a),
                             nc_temps_op1(&w, OP_isnan, b));
  const Arg in[2] = { { .t = y }, { .t = nan } };
  if (w.status == NC_OK)
    nc_temps_add(&w, nc_apply(&z, OP_bitwise_or, in, NULL, y), &z);
  return nc_temps_finish(&w);
}

int nc_op_isclose(Call *c) {
  Tensor *x[2] = { c->arg[0].t, c->arg[1].t };
  double par[2] = { nc_tofloat(c->arg[2].s), nc_tofloat(c->arg[3].s) };
  int r;
  if (par[0] < 0 || par[1] < 0)
    return nc_fail(NC_EVALUE, "tolerances must not be negative");
  r = is_close(&c->out[0], x[0], x[1], par);
  if (r == NC_OK && c->arg[4].s.i) r = or_both_nan(c->out[0], x[0], x[1]);
  return r;
}

int nc_op_allclose(Call *c) {
  Tensor *b;
  TRY(nc_op_isclose(c));
  b = c->out[0];
  c->out[0] = NULL;
  return all_true(&c->value, b);
}

int nc_op_div(Call *c) {
  static const Op rounded[] = { OP_floor_divide, OP_trunc_divide };
  Op op = c->arg[2].present ? rounded[c->arg[2].s.i] : OP_true_divide;
  return nc_apply(&c->out[0], op, c->arg, NULL, c->into);
}

/* Returns whether limits, of which none is a tensor, can be the parameters of
   _clamp_numbers for elements of type t. */
static int are_plain_limits(const Arg *low, const Arg *high, DType t,
                            const double par[2]) {
  return nc_is_real(t) && low->t == NULL && high->t == NULL && par[0] <= par[1];
}

int nc_op_clamp(Call *c) {
  const Arg *low = &c->arg[1], *high = &c->arg[2];
  const DType type = c->arg[0].t->dtype;
  const double par[2] = { low->present ? nc_tofloat(low->s) : -HUGE_VAL,
                          high->present ? nc_tofloat(high->s) : HUGE_VAL };
  Arg one[2] = { c->arg[0], low->present ? *low : *high };
  if (!low->present && !high->present)
    return nc_fail(NC_EVALUE, "min or max must be given");
  if (are_plain_limits(low, high, type, par))
    return nc_apply(&c->out[0], OP__clamp_numbers, c->arg, par, c->into);
  if (low->present && high->present)
    return nc_apply(&c->out[0], OP__clamp, c->arg, NULL, NULL);
  return nc_apply(&c->out[0], low->present ? OP_maximum : OP_minimum, one, NULL,
                  NULL);
}
