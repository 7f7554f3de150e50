/* SPDX-License-Identifier: MIT */
/*
** reduce_dim.c - reductions that are not in ops.def: max and min with
** positions, argmax, argmin, var, std, norm, logsumexp; and their gradients.
*/
#include <math.h>

#include "core/pointwise/temps.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"

/* *y = a new dense tensor of the shape of x reduced along dims. */
static int new_result(Tensor **y, Tensor *x, unsigned dims, int keepdim,
                      DType type) {
  int64_t size[NC_MAXDIM];
  int nd;
  nc_reducedshape(x, dims, keepdim, &nd, size);
  return nc_new(y, nc_device(x), type, nd, size);
}

/* Makes the request dim_op to the device of x, to reduce call->dims. */
static int run_reduction(DimCall *call) {
  const Tensor *x = call->x;
  const Device *d = nc_device(x);
  call->slices = call->length = 1;
  for (int i = 0; i < x->nd; i++)
    *(call->dims >> i & 1 ? &call->length : &call->slices) *= x->size[i];
  nc_count(2 * nc_numel(x), nc_numel(x) * nc_dtypesize(x->dtype));
  return call->slices ? d->dim_op(d, call) : NC_OK;
}

/*
** max, min, argmax, argmin
*/
/* Checks that no reduced dimension is empty. */
static int check_not_empty(const Tensor *x, unsigned dims) {
  for (int d = 0; d < x->nd; d++)
    if ((dims >> d & 1) && x->size[d] == 0)
      return nc_fail(NC_EVALUE, "no elements along dim %d", d + 1);
  return NC_OK;
}

/* *at = the 1-based positions and, unless y is NULL, *y = the elements of
   the maximum, or minimum if `low', over one dimension or all. */
static int extreme(Tensor **y, Tensor **at, Tensor *x, unsigned dims,
                   int keepdim, int low) {
  DimCall l = { .op = low ? DIM_ARGMIN : DIM_ARGMAX, .x = x, .dims = dims };
  int r = check_not_empty(x, dims);
  if (r == NC_OK) r = new_result(&l.at, x, dims, keepdim, DT_i64);
  if (r == NC_OK && y) r = new_result(&l.y, x, dims, keepdim, x->dtype);
  if (r == NC_OK) r = run_reduction(&l);
  nc_release_failed(r, &l.at, 1);
  nc_release_failed(r, &l.y, 1);
  if (y) *y = l.y;
  *at = l.at;
  return r;
}

/* _extreme(x, dim, keepdim, low): values and positions; differentiable. */
int nc_op__extreme(Call *c) {
  Tensor *x = c->arg[0].t;
  int dim;
  TRY(nc_dim(&dim, c->arg[1].s.i, x->nd));
  return extreme(&c->out[0], &c->out[1], x, 1u << dim, (int)c->arg[2].s.i,
                 (int)c->arg[3].s.i);
}

/* max and min along a dimension, by _extreme, which has the gradient. */
static int extreme_along_dim(Call *c, int low) {
  Call one = *c;
  int r;
  one.op = OPERATOR__extreme;
  one.arg[3].s = nc_int(low);
  r = nc_call(&one);
  for (int i = 0; i < NC_MAXOUT; i++) c->out[i] = one.out[i];
  return r;
}

/* max and min: of all elements, along a dimension, or of two tensors. */
int nc_op_max(Call *c) {
  const int low = c->op == OPERATOR_min;
  Tensor *x = c->arg[0].t;
  if (c->arg[1].t)
    return nc_apply2(&c->out[0], low ? OP_minimum : OP_maximum, x, c->arg[1].t);
  if (c->arg[1].present) return extreme_along_dim(c, low);
  return nc_reduce(&c->out[0], low ? OP_amin : OP_amax, x, ~0u,
                   (int)c->arg[2].s.i, DT_NONE, NULL, NULL);
}

/* argmax and argmin */
int nc_op_argmax(Call *c) {
  Tensor *x = c->arg[0].t;
  int dim = 0;
  if (c->arg[1].present) TRY(nc_dim(&dim, c->arg[1].s.i, x->nd));
  else if (nc_numel(x) == 0) return nc_fail(NC_EVALUE, "no elements");
  return extreme(NULL, &c->out[0], x, c->arg[1].present ? 1u << dim : ~0u,
                 (int)c->arg[2].s.i, c->op == OPERATOR_argmin);
}

/*
** var, std
*/
/* *y = the result of the reduction l, in the type of x. */
static int reduce_float(Tensor **y, DimCall *l, int keepdim) {
  TRY(new_result(y, l->x, l->dims, keepdim, l->x->dtype));
  l->y = *y;
  return nc_release_failed(run_reduction(l), y, 1);
}

/* var and std */
/* The variance of complex numbers is the sum of those of their parts. */
static int var_of_parts(Call *c) {
  static const Operator part[] = { OPERATOR_real, OPERATOR_imag };
  Temps w = { 0 };
  Tensor *y, *var[2];
  for (int i = 0; i < 2; i++) {
    Call one = *c, view = nc_callon(part[i], c->arg[0].t);
    one.op = OPERATOR_var;
    one.arg[0].t = nc_temps_call(&w, &view);
    one.out[0] = NULL;
    var[i] = w.status == NC_OK ? nc_temps_call(&w, &one) : NULL;
  }
  y = nc_temps_op2(&w, OP_add, var[0], var[1]);
  if (c->op == OPERATOR_std) y = nc_temps_op1(&w, OP_sqrt, y);
  return nc_temps_endcall(&w, c, y);
}

int nc_op_var(Call *c) {
  if (nc_is_complex(c->arg[0].t->dtype)) return var_of_parts(c);
  DimCall l = { .op = c->op == OPERATOR_var ? DIM_VAR : DIM_STD,
                .x = c->arg[0].t };
  TRY(nc_check_floatself(l.x->dtype));
  TRY(nc_dimmask(&l.dims, &c->arg[1], l.x->nd));
  l.correction = c->arg[4].present ? nc_tofloat(c->arg[4].s)
                                   : (double)(c->arg[2].s.i != 0);
  return reduce_float(&c->out[0], &l, (int)c->arg[3].s.i);
}

/*
** norm, logsumexp
*/
/* *y = the p-norm of x; p = 0 counts the elements other than 0, inf and -inf
   are the largest and the smallest absolute value. */
static int vector_norm(Tensor **y, Tensor *x, double p, unsigned dims,
                       int keepdim) {
  double par[2] = { p, 0 };
  Tensor *t;
  int r;
  if (p < 0) TRY(check_not_empty(x, dims));
  if (!isinf(p) && p != 0)
    return nc_reduce(y,
                     p == 2   ? OP__norm2
                     : p == 1 ? OP__norm1
                              : OP__normp,
                     x, dims, keepdim, DT_NONE, par, NULL);
  if (p == 0) {
    TRY(nc_reduce(&t, OP_count_nonzero, x, dims, keepdim, DT_NONE, NULL, NULL));
    r = nc_cast(y, t, x->dtype);
  } else {
    TRY(nc_apply1(&t, OP_abs, x));
    r = nc_reduce(y, p > 0 ? OP_amax : OP_amin, t, dims, keepdim, DT_NONE, NULL,
                  NULL);
  }
  nc_release(t);
  return r;
}

/* The norm of complex numbers is that of their absolute values. */
static int norm_of_abs(Call *c) {
  Tensor *size;
  int r;
  TRY(nc_apply1(&size, OP_abs, c->arg[0].t));
  c->arg[0].t = size;
  r = nc_op_norm(c);
  nc_release(size);
  return r;
}

int nc_op_norm(Call *c) {
  if (nc_is_complex(c->arg[0].t->dtype)) return norm_of_abs(c);
  Tensor *x = c->arg[0].t, *cast;
  DType type = nc_dtype_or(&c->arg[4], x->dtype);
  unsigned dims;
  int r;
  TRY(nc_dimmask(&dims, &c->arg[2], x->nd));
  TRY(nc_check_floatself(type));
  TRY(nc_cast(&cast, x, type));
  r = vector_norm(&c->out[0], cast, nc_tofloat(c->arg[1].s), dims,
                  (int)c->arg[3].s.i);
  nc_release(cast);
  return r;
}

/* log(sum(exp(x - m))) + m, m being the largest real part, or 0 if that is
   infinite. */
static int complex_logsumexp(Call *c) {
  Tensor *x = c->arg[0].t, *m = NULL, *y;
  const int nd = x->nd;
  int64_t size[NC_MAXDIM];
  Temps w = { 0 };
  unsigned dims;
  TRY(nc_dimmask(&dims, &c->arg[1], nd));
  if (nc_numel(x) > 0) {
    nc_temps_add(&w, nc_real_part(&m, x), &m);
    m = nc_temps_reduce(&w, OP_amax, m, dims, 1);
    m = nc_temps_where(&w, nc_temps_op1(&w, OP_isfinite, m), m, nc_int(0));
  }
  y = nc_temps_op1(&w, OP_exp, m ? nc_temps_op2(&w, OP_sub, x, m) : x);
  y = nc_temps_op1(&w, OP_log, nc_temps_reduce(&w, OP_sum, y, dims, 1));
  if (m) y = nc_temps_op2(&w, OP_add, y, m);
  if (!c->arg[2].s.i && w.status == NC_OK) {
    int n = 0;
    for (int d = 0; d < nd; d++)
      if (!(dims >> d & 1)) size[n++] = x->size[d];
    y = nc_temps_reshape(&w, y, n, size);
  }
  return nc_temps_endcall(&w, c, y);
}

int nc_op_logsumexp(Call *c) {
  if (nc_is_complex(c->arg[0].t->dtype)) return complex_logsumexp(c);
  Tensor *x = c->arg[0].t, *cast;
  DimCall l = { .op = DIM_LOGSUMEXP };
  int r, isint = nc_is_exact(x->dtype);
  TRY(nc_dimmask(&l.dims, &c->arg[1], x->nd));
  TRY(nc_cast(&cast, x, isint ? nc_context->dtype : x->dtype));
  l.x = cast;
  r = reduce_float(&c->out[0], &l, (int)c->arg[2].s.i);
  nc_release(cast);
  return r;
}

/*
** Gradients
*/
static Tensor *unreduce(Temps *w, Tensor *g, const GradMeta *m, unsigned dims) {
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  return nc_temps_add(w, nc_unreduce(&y, g, m, dims), &y);
}

/* Elements that equal an infinite result y share its gradient g: returns g
   divided by how many there are.  The CPU looks first whether there are any;
   another device need not wait for the answer. */
static Tensor *share_infinite(Temps *w, Tensor *g, Tensor *x, Tensor *y,
                              unsigned dims) {
  Tensor *inf = nc_temps_op1(w, OP_isinf, y), *n;
  Scalar any = nc_int(1);
  if (w->status == NC_OK && nc_device(x) == &nc_cpu) {
    n = nc_temps_reduce(w, OP_any, inf, ~0u, 0);
    if (w->status == NC_OK) w->status = nc_item(&any, n);
  }
  if (w->status != NC_OK || !any.i) return g;
  n = nc_temps_op2(w, OP_eq, x, y);
  n = nc_temps_reduce(w, OP_sum, n, dims, 1);
  /* not where(inf, g/n, g), whose gradient is nan where n is 0 */
  n = nc_temps_where(w, inf, n, nc_int(1));
  return nc_temps_op2(w, OP_true_divide, g, n);
}

/* g*conj(exp(x - y)) */
static int complex_logsumexp_grad(OperatorGrad *g, Tensor *x, Tensor *y,
                                  unsigned dims) {
  const GradMeta *m = &g->in[0].meta;
  Temps w = { 0 };
  Tensor *share = nc_temps_op2(&w, OP_sub, x, unreduce(&w, y, m, dims));
  share = nc_temps_op1(&w, OP_conj, nc_temps_op1(&w, OP_exp, share));
  return nc_temps_end(
      &w, &g->d[0],
      nc_temps_op2(&w, OP_mul, unreduce(&w, g->g[0], m, dims), share));
}

int nc_grad_logsumexp(OperatorGrad *g) {
  const GradMeta *m = &g->in[0].meta;
  Tensor *x, *y, *one;
  Temps w = { 0 };
  unsigned dims;
  TRY(nc_operand(g, 0, &x));
  TRY(nc_result(g, 0, &y));
  TRY(nc_dimmask(&dims, &g->arg[1], m->nd));
  if (nc_is_complex(x->dtype)) return complex_logsumexp_grad(g, x, y, dims);
  const DType type = x->dtype == DT_f64 ? DT_f64 : DT_f32;
  x = nc_temps_cast(&w, x, type);
  y = nc_temps_cast(&w, unreduce(&w, y, m, dims), type);
  one = share_infinite(&w, unreduce(&w, g->g[0], m, dims), x, y, dims);
  return nc_temps_end(&w, &g->d[0],
                      nc_temps_op2(&w, OP_mul,
                                   nc_temps_op2(&w, OP__exp_difference, x, y),
                                   one));
}

/* Returns 1 / (n - correction), inf if n is not greater. */
static double inverse_count(const OperatorGrad *g, unsigned dims) {
  const GradMeta *m = &g->in[0].meta;
  double n = 1, correction = (double)(g->arg[2].s.i != 0);
  for (int d = 0; d < m->nd; d++)
    if (dims >> d & 1) n *= (double)m->size[d];
  if (g->arg[4].present) correction = nc_tofloat(g->arg[4].s);
  return 1 / (n > correction ? n - correction : 0);
}

/* The gradient of var and std by a formula of g, x (a), the mean (b), y (c)
   and the weight (n). */
static int var_grad(OperatorGrad *g, const char *text, Tensor *y) {
  const GradMeta *m = &g->in[0].meta;
  Tensor *x, *mean, *wide;
  Temps w = { 0 };
  unsigned dims;
  TRY(nc_operand(g, 0, &x));
  TRY(nc_dimmask(&dims, &g->arg[1], m->nd));
  mean = nc_temps_reduce(&w, OP_mean, x, dims, 1);
  wide = unreduce(&w, g->g[0], m, dims);
  if (y) y = unreduce(&w, y, m, dims);
  if (w.status == NC_OK)
    w.status =
        nc_formula(&g->d[0], text, wide, x, mean, y, inverse_count(g, dims));
  return nc_temps_finish(&w);
}

int nc_grad_var(OperatorGrad *g) {
  return var_grad(g, "2*n*g*(a - b)", NULL);
}

int nc_grad_std(OperatorGrad *g) {
  Tensor *y;
  TRY(nc_result(g, 0, &y));
  return var_grad(g, "where(eq(c, 0), 0, n*g*(a - b)/c)", y);
}

/* The gradient goes to the element at the position of the extreme. */
int nc_grad__extreme(OperatorGrad *g) {
  const GradMeta *m = &g->in[0].meta;
  Tensor *at;
  Call c = nc_callon(OPERATOR_scatter_, NULL);
  Temps w = { 0 };
  int dim;
  TRY(nc_result(g, 1, &at));
  TRY(nc_dim(&dim, g->arg[1].s.i, m->nd));
  c.arg[0].t = nc_temps_full(&w, at, m->dtype, m->nd, m->size, nc_int(0));
  nc_setint(&c, 1, dim + 1);
  c.arg[2].t = unreduce(&w, at, m, 1u << dim);
  c.arg[3].t = unreduce(&w, g->g[0], m, 1u << dim);
  return nc_temps_end(&w, &g->d[0], nc_temps_call(&w, &c));
}
