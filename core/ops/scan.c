/* SPDX-License-Identifier: MIT */
/*
** scan.c - scans along a dimension: cumsum, cumprod, cummax, cummin,
** logcumsumexp; and diff; with gradients.
*/
#include <string.h>

#include "core/pointwise/temps.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"
#include "core/ops/dim_op.h"
#include "core/ops/sort.h"

/* cumsum of complex numbers: that of their parts. */
static Tensor *cumsum_of_parts(Temps *w, Tensor *x, int dim) {
  Call c = nc_callon(OPERATOR_view_as_real, x);
  Tensor *parts = nc_temps_call(w, &c), *y = NULL;
  if (w->status != NC_OK) return NULL;
  parts = nc_temps_add(w, nc_dim_op(&y, NULL, parts, dim, DIM_CUMSUM, 1), &y);
  c = nc_callon(OPERATOR_view_as_complex, parts);
  return nc_temps_call(w, &c);
}

/* y from `at' on takes in by op as many slices from `from' on. */
static int take_in(Tensor *y, int dim, Op op, int64_t at, int64_t from,
                   int64_t n) {
  Temps w = { 0 };
  Tensor *to = nc_temps_narrow(&w, y, dim, at, n), *both = NULL;
  const Arg in[2] = { { .t = nc_temps_narrow(&w, y, dim, from, n) },
                      { .t = to } };
  if (w.status == NC_OK)
    nc_temps_add(&w, nc_apply(&both, op, in, NULL, NULL), &both);
  if (w.status == NC_OK) w.status = nc_copy(to, both);
  return nc_temps_finish(&w);
}

/* A scan of complex numbers by op: products in as many steps as their number
   has binary digits; logarithms, whose branch depends on the order, one after
   the other. */
static Tensor *complex_scan(Temps *w, Tensor *x, int dim, Op op) {
  Tensor *y = nc_temps_op1(w, OP_clone, x);
  const int64_t n = w->status == NC_OK && x->nd > 0 ? x->size[dim] : 0;
  const int doubles = op == OP_mul;
  for (int64_t i = 1; i < n && w->status == NC_OK; i += doubles ? i : 1)
    w->status =
        take_in(y, dim, op, i, doubles ? 0 : i - 1, doubles ? n - i : 1);
  return y;
}

/* Does the device scan complex numbers itself? */
static int scans_complex(const Tensor *x) {
  return nc_device(x) == &nc_cpu;
}

/* cumsum and cumprod.  Integers are computed in int64 and then converted to
   the dtype of the result. */
int nc_op_cumsum(Call *c) {
  const DimOp op = c->op == OPERATOR_cumsum ? DIM_CUMSUM : DIM_CUMPROD;
  Tensor *x = c->arg[0].t, *y = NULL;
  const DType given = nc_dtype_or(&c->arg[2], x->dtype);
  const DType work = nc_is_exact(given) ? DT_i64 : given;
  const DType type = c->arg[2].dtype == DT_NONE ? work : given;
  Temps w = { 0 };
  int dim;
  TRY(nc_dim(&dim, c->arg[1].s.i, x->nd));
  x = nc_temps_cast(&w, nc_temps_cast(&w, x, type), work);
  if (w.status == NC_OK && nc_is_complex(work) && x->nd == 0)
    y = nc_temps_op1(&w, OP_clone, x);
  else if (w.status == NC_OK && nc_is_complex(work) && !scans_complex(x))
    y = op == DIM_CUMSUM ? cumsum_of_parts(&w, x, dim)
                         : complex_scan(&w, x, dim, OP_mul);
  else if (w.status == NC_OK)
    nc_temps_add(&w, nc_dim_op(&y, NULL, x, dim, op, 1), &y);
  return nc_temps_endcall(&w, c, nc_temps_cast(&w, y, type));
}

int nc_op_logcumsumexp(Call *c) {
  Tensor *x = c->arg[0].t;
  int dim;
  TRY(nc_dim(&dim, c->arg[1].s.i, x->nd));
  if (nc_is_complex(x->dtype)) {
    Temps w = { 0 };
    return nc_temps_endcall(&w, c, complex_scan(&w, x, dim, OP_logaddexp));
  }
  TRY(nc_check_floatself(x->dtype));
  return nc_dim_op(&c->out[0], NULL, x, dim, DIM_LOGCUMSUMEXP, 1);
}

/* cummax and cummin.  If a gradient is recorded the values are gathered by
   their positions, so that gather records it. */
int nc_op_cummax(Call *c) {
  const DimOp op = c->op == OPERATOR_cummax ? DIM_CUMMAX : DIM_CUMMIN;
  Tensor *x = c->arg[0].t;
  int dim, recorded = 0, r = nc_dim(&dim, c->arg[1].s.i, x->nd);
  if (r == NC_OK) r = nc_recording(&recorded, x);
  if (r == NC_OK)
    r = nc_dim_op(recorded ? NULL : &c->out[0], &c->out[1], x, dim, op, 1);
  if (r == NC_OK && recorded) r = nc_gatherdim(&c->out[0], x, c->out[1], dim);
  return r;
}

/*
** diff
*/
/* Returns x with `prepend' (argument 3) and `append' (4). */
static Tensor *with_ends(Temps *w, const Call *c, Tensor *x, int dim) {
  Tensor *part[3];
  int n = 0;
  if (c->arg[3].t) part[n++] = c->arg[3].t;
  part[n++] = x;
  if (c->arg[4].t) part[n++] = c->arg[4].t;
  return n == 1 ? x : nc_temps_cat(w, part, n, dim);
}

int nc_op_diff(Call *c) {
  Tensor *x = c->arg[0].t;
  const int64_t times = c->arg[1].s.i;
  Temps w = { 0 };
  int dim;
  TRY(nc_dim(&dim, c->arg[2].s.i, x->nd));
  if (x->nd == 0) return nc_fail(NC_ESHAPE, "needs at least one dimension");
  TRY(nc_check_notnegative("n", times));
  if (times > 0) x = with_ends(&w, c, x, dim);
  for (int64_t i = 0; w.status == NC_OK && i < times && x->size[dim] > 0; i++) {
    const int64_t n = x->size[dim] - 1;
    Temps step = { 0 };
    Tensor *y = nc_temps_op2(&step, x->dtype == DT_b8 ? OP_logical_xor : OP_sub,
                             nc_temps_narrow(&step, x, dim, 1, n),
                             nc_temps_narrow(&step, x, dim, 0, n));
    int r = nc_temps_end(&step, &y, y);
    if (i > 0) nc_release(w.t[--w.n]); /* the result of the round before */
    x = nc_temps_add(&w, r, &y);
  }
  if (w.status == NC_OK && times == 0) x = nc_temps_op1(&w, OP_clone, x);
  return nc_temps_endcall(&w, c, x);
}

/*
** Gradients
*/
Tensor *nc_temps_reversed(Temps *w, Operator op, Tensor *x, int dim) {
  return nc_temps_flip(
      w, nc_temps_call1(w, op, nc_temps_flip(w, x, dim), dim + 1, 0), dim);
}

/* Returns y with 0 for -inf: sums of elements that are all -inf, which get
   no gradient. */
static Tensor *zero_where_inf(Temps *w, Tensor *y) {
  const double none = -1 / (double)0;
  return nc_temps_wherenumber(w, nc_temps_opnumber(w, OP_eq, y, nc_float(none)),
                              nc_int(0), y);
}

/* Returns the part of the gradient from the positive elements of g: exp(x) *
   reversed cumsum(g * exp(-y)), in logarithms, so that exp does not
   overflow.  For the negative elements it is called with -g. */
static Tensor *grad_by_logs(Temps *w, Tensor *g, Tensor *x, Tensor *y,
                            int dim) {
  Tensor *t =
      nc_temps_op1(w, OP_log, nc_temps_opnumber(w, OP_maximum, g, nc_int(0)));
  t = nc_temps_reversed(w, OPERATOR_logcumsumexp, nc_temps_op2(w, OP_sub, t, y),
                        dim);
  return nc_temps_op1(w, OP_exp, nc_temps_op2(w, OP_add, t, x));
}

/* Returns the gradient without logarithms, whose second derivative does not
   exist at 0.  For a y that is_moderate() accepts, else exp overflows. */
static Tensor *grad_by_exp(Temps *w, Tensor *g, Tensor *x, Tensor *y, int dim) {
  Tensor *base = nc_temps_narrow(w, y, dim, 0, 1), *t;
  t = nc_temps_op1(w, OP_exp, nc_temps_op2(w, OP_sub, base, y));
  t = nc_temps_reversed(w, OPERATOR_cumsum, nc_temps_op2(w, OP_mul, g, t), dim);
  return nc_temps_op2(
      w, OP_mul, t, nc_temps_op1(w, OP_exp, nc_temps_op2(w, OP_sub, x, base)));
}

/* Returns the gradient by a matrix of exp(x[k] - y[i]), i >= k.  No element
   is above 1, so that nothing overflows. */
static Tensor *grad_by_matrix(Temps *w, Tensor *g, Tensor *x, Tensor *y,
                              int dim) {
  const int64_t nd = x->nd, size[] = { x->size[dim], 1 };
  Tensor *at = nc_temps_range(w, x, 1, size[0]), *m;
  Tensor *down = nc_temps_reshape(w, at, 2, size);
  x = nc_temps_call1(w, OPERATOR_transpose, x, dim + 1,
                     -1); /* the scanned dimension becomes the last */
  y = nc_temps_call1(w, OPERATOR_transpose, y, dim + 1, -1);
  g = nc_temps_call1(w, OPERATOR_transpose, g, dim + 1, -1);
  m = nc_temps_op2(w, OP_sub,
                   nc_temps_call1(w, OPERATOR_unsqueeze, x, nd + 1, 0),
                   nc_temps_call1(w, OPERATOR_unsqueeze, y, nd, 0));
  m = nc_temps_where(w, nc_temps_op2(w, OP_ge, at, down), m,
                     nc_float(-1 / (double)0));
  m = nc_temps_op2(w, OP_mul, nc_temps_op1(w, OP_exp, m),
                   nc_temps_call1(w, OPERATOR_unsqueeze, g, nd, 0));
  m = nc_temps_reduce(w, OP_sum, m, 1u << nd, 0);
  return nc_temps_call1(w, OPERATOR_transpose, m, dim + 1, -1);
}

/* Returns whether y, or its real part, grows along dim by no more than exp can
   represent.  Waits for the device. */
static int is_moderate(Temps *w, Tensor *y, int dim) {
  const DType t = nc_real_dtype(y->dtype);
  const double most = t == DT_f64 ? 600 : t == DT_f16 ? 8 : 80;
  Scalar v = nc_float(1 / (double)0);
  Tensor *real = NULL, *rise;
  if (t != y->dtype) y = nc_temps_add(w, nc_real_part(&real, y), &real);
  if (w->status != NC_OK) return 0;
  rise =
      nc_temps_op2(w, OP_sub, nc_temps_narrow(w, y, dim, y->size[dim] - 1, 1),
                   nc_temps_narrow(w, y, dim, 0, 1));
  rise = nc_temps_reduce(w, OP_amax, rise, ~0u, 0);
  if (w->status == NC_OK) w->status = nc_item(&v, rise);
  return nc_tofloat(v) < most;
}

/* Returns the gradient in a form that is itself differentiable. */
static Tensor *grad_recorded(Temps *w, Tensor *g, Tensor *x, Tensor *y,
                             int dim) {
  if (nc_numel(y) == 0 || y->nd == 0) return nc_temps_op1(w, OP_clone, g);
  if (y->nd == NC_MAXDIM || is_moderate(w, y, dim))
    return grad_by_exp(w, g, x, y, dim);
  return grad_by_matrix(w, g, x, zero_where_inf(w, y), dim);
}

int nc_grad_cumsum(OperatorGrad *g) {
  Temps w = { 0 };
  int dim;
  TRY(nc_dim(&dim, g->arg[1].s.i, g->g[0]->nd));
  return nc_temps_end(&w, &g->d[0],
                      nc_temps_reversed(&w, OPERATOR_cumsum, g->g[0], dim));
}

int nc_grad_logcumsumexp(OperatorGrad *g) {
  Temps w = { 0 };
  Tensor *x, *y, *plus, *minus;
  int dim;
  TRY(nc_operand(g, 0, &x));
  TRY(nc_result(g, 0, &y));
  TRY(nc_dim(&dim, g->arg[1].s.i, y->nd));
  if (nc_is_complex(x->dtype)) { /* between two conj, as in ops.def */
    x = grad_recorded(&w, nc_temps_op1(&w, OP_conj, g->g[0]), x, y, dim);
    return nc_temps_end(&w, &g->d[0], nc_temps_op1(&w, OP_conj, x));
  }
  if (nc_context->no_grad == 0) /* create_graph: the gradient is recorded */
    return nc_temps_end(&w, &g->d[0], grad_recorded(&w, g->g[0], x, y, dim));
  y = zero_where_inf(&w, y);
  plus = grad_by_logs(&w, g->g[0], x, y, dim);
  minus = grad_by_logs(&w, nc_temps_op1(&w, OP_neg, g->g[0]), x, y, dim);
  return nc_temps_end(&w, &g->d[0], nc_temps_op2(&w, OP_sub, plus, minus));
}
