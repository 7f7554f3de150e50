/* SPDX-License-Identifier: MIT */
/*
** distance.c - _distance and _normalize: vectors of a difference, or of x, and
** their norms.  Both, and their gradients, work block by block, so that what
** is between them stays in the cache, and takes no memory of the size of the
** operands.
*/
#include <math.h>

#include "core/op.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/pointwise/temps.h"
#include "core/tape.h"

typedef struct Vectors { /* parameters: vectors lie along dims */
  unsigned dims;
  double p, eps;
} Vectors;

/* A formula of tensors x[], which have one size in the dimensions that are not
   in v->dims.  So has its result, which may be `out', if that is not NULL. */
typedef Tensor *Formula(Temps *w, const Vectors *v, Tensor *const x[],
                        Tensor *out);

/* The elements of a block.  On the CPU it fits in the cache of the threads that
   a tensor of n elements is worth: it must not depend on how many there are, as
   sums are cut by the shape of their operand.  Elsewhere memory is all. */
static int64_t block_size(const Tensor *x, int64_t n) {
  const int64_t least = 1 << 16, share = n / 64;
  if (nc_device(x) != &nc_cpu) return (int64_t)1 << 26;
  return share > least ? share : least;
}

/* The dimension that is cut into blocks; -1: none. */
static int block_dim(const Tensor *x, unsigned dims) {
  for (int d = 0; d < x->nd; d++)
    if (!(dims >> d & 1) && x->size[d] > 1) return d;
  return -1;
}

/* Elements first..first+count-1 along d of y = f of those of x[].  Returns a
   status. */
static int run_block(Tensor *y, Formula *f, const Vectors *v, Tensor *const x[],
                     int n, int d, int64_t first, int64_t count) {
  Temps w = { 0 };
  Tensor *part[4], *t;
  Tensor *out = nc_temps_narrow(&w, y, d, first, count);
  for (int i = 0; i < n; i++)
    part[i] = nc_temps_narrow(&w, x[i], d, first, count);
  t = w.status == NC_OK ? f(&w, v, part, out) : NULL;
  if (t && t != out) nc_temps_copyinto(&w, out, t);
  return nc_temps_finish(&w);
}

/* Returns f(x[]), by blocks unless it is recorded.  Of the shape of x[0], which
   that of the others has too outside of v->dims, the result has all dimensions,
   or, `reduced', v->dims of size 1. */
static Tensor *by_blocks(Temps *w, Formula *f, const Vectors *v,
                         Tensor *const x[], int n, int reduced) {
  const int64_t all = nc_numel(x[0]);
  const int d = block_dim(x[0], v->dims);
  int recorded = 0;
  int64_t size[NC_MAXDIM], step = 1;
  for (int i = 0; i < n && w->status == NC_OK && !recorded; i++)
    w->status = nc_recording(&recorded, x[i]);
  if (w->status != NC_OK) return NULL;
  if (d >= 0) step += block_size(x[0], all) / (1 + all / x[0]->size[d]);
  if (recorded || d < 0 || step >= x[0]->size[d]) return f(w, v, x, NULL);
  for (int i = 0; i < x[0]->nd; i++)
    size[i] = reduced && v->dims >> i & 1 ? 1 : x[0]->size[i];
  Tensor *y = nc_temps_new(w, x[0], x[0]->dtype, x[0]->nd, size);
  for (int64_t r = 0, rest; w->status == NC_OK; r += step) {
    rest = x[0]->size[d] - r;
    if (rest <= 0) break;
    w->status = run_block(y, f, v, x, n, d, r, step < rest ? step : rest);
  }
  return y;
}

/* Returns op(a, b), written to `out' unless that is NULL. */
static Tensor *last(Temps *w, Op op, Tensor *a, Tensor *b, Tensor *out) {
  const Arg in[2] = { { .t = a }, { .t = b } };
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  y = nc_temps_add(w, nc_apply(&y, op, in, NULL, out), &y);
  return w->status == NC_OK && out ? out : y;
}

/* Returns the norms of x, with dims of size 1. */
static Tensor *norms(Temps *w, const Vectors *v, Tensor *x) {
  int64_t dims[NC_MAXDIM];
  Call c = nc_callon(OPERATOR_norm, x);
  int n = 0;
  if (w->status != NC_OK) return NULL;
  for (int d = 0; d < x->nd; d++)
    if (v->dims >> d & 1) dims[n++] = d + 1;
  c.arg[1].s = nc_float(v->p);
  nc_setlist(&c, 2, n, dims);
  nc_setint(&c, 3, 1);
  return nc_temps_call(w, &c);
}

static Tensor *formula(Temps *w, const char *text, Tensor *g, Tensor *a,
                       Tensor *b, double n) {
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  return nc_temps_add(w, nc_formula(&y, text, g, a, b, NULL, n), &y);
}

/* Returns the gradient to x from that to its norms y.  The extremes share
   it. */
static Tensor *norm_gradient(Temps *w, const Vectors *v, Tensor *x, Tensor *y,
                             Tensor *g, Tensor *out) {
  if (v->p == 2)
    return last(w, OP_mul, x, nc_temps_op2(w, OP__divided, g, y), out);
  if (v->p == 1) return last(w, OP_mul, nc_temps_op1(w, OP_sgn, x), g, out);
  if (v->p == 0) return formula(w, "0*g*a", g, x, NULL, 0);
  if (isinf(v->p)) {
    Tensor *is = nc_temps_op2(w, OP_eq, nc_temps_op1(w, OP_abs, x), y);
    Tensor *n = nc_temps_reduce(w, OP_sum, is, v->dims, 1);
    return formula(w, "g*sgn(a)*b", nc_temps_op2(w, OP_true_divide, g, n), x,
                   is, 0);
  }
  return formula(w,
                 "where(either(eq(a, 0), eq(b, 0)), 0, "
                 "g*sgn(a)*power(absval(a)/b, n-1))",
                 g, x, y, v->p);
}

/* Reads p, and eps if it is there; dims: those of the vectors. */
static Vectors read_parameters(const Arg *p, const Arg *eps, unsigned dims) {
  const Vectors v = { dims, nc_tofloat(p->s), nc_tofloat(eps->s) };
  return v;
}

/*
** _distance
*/
static Tensor *difference_norms(Temps *w, const Vectors *v, Tensor *const x[],
                                Tensor *out) {
  (void)out; /* it is small */
  const Arg in[2] = { { .t = x[0] }, { .t = x[1] } };
  const double par[2] = { v->eps, 0 };
  return norms(w, v, nc_temps_op(w, OP__absolute_difference, in, par));
}

/* x: x1, x2, the gradient to their distances, these */
static Tensor *difference_gradient(Temps *w, const Vectors *v,
                                   Tensor *const x[], Tensor *out) {
  Tensor *d = nc_temps_op2(w, OP_sub, x[0], x[1]);
  if (v->eps != 0) d = nc_temps_opnumber(w, OP_add, d, nc_float(v->eps));
  return norm_gradient(w, v, d, x[3], x[2], out);
}

/* x[] = x1 and x2 in their common type and shape, which *v knows. */
static int read_operands(Temps *w, Tensor *x[], Vectors *v, Tensor *x1,
                         Tensor *x2, const Arg *p, const Arg *eps) {
  const Arg in[2] = { { .t = x1 }, { .t = x2 } };
  DType type = nc_resulttype(in, 2);
  int64_t size[NC_MAXDIM];
  int nd, dim;
  if (!nc_is_real(type)) type = nc_context->dtype;
  TRY(nc_broadcast(in, 2, &nd, size));
  TRY(nc_dim(&dim, -1, nd));
  *v = read_parameters(p, eps, nd ? 1u << dim : 1u);
  for (int i = 0; i < 2; i++)
    x[i] = nc_temps_expand(w, nc_temps_cast(w, in[i].t, type), nd, size);
  return w->status;
}

int nc_op__distance(Call *c) {
  Tensor *x[2], *y;
  Temps w = { 0 };
  Vectors v;
  if (read_operands(&w, x, &v, c->arg[0].t, c->arg[1].t, &c->arg[2],
                    &c->arg[3]) != NC_OK)
    return nc_temps_finish(&w);
  y = by_blocks(&w, difference_norms, &v, x, 2, 1);
  if (!c->arg[4].s.i && w.status == NC_OK && y->nd > 0)
    y = nc_temps_reshape(&w, y, y->nd - 1, y->size);
  return nc_temps_endcall(&w, c, y);
}

int nc_grad__distance(OperatorGrad *g) {
  Tensor *x1, *x2, *y, *x[4], *d;
  Temps w = { 0 };
  Vectors v;
  TRY(nc_operand(g, 0, &x1));
  TRY(nc_operand(g, 1, &x2));
  TRY(nc_result(g, 0, &y));
  if (read_operands(&w, x, &v, x1, x2, &g->arg[2], &g->arg[3]) != NC_OK)
    return nc_temps_finish(&w);
  x[2] = g->g[0];
  x[3] = y;
  for (int i = 2; i < 4 && y->nd < x[0]->nd; i++)
    x[i] = nc_temps_call1(&w, OPERATOR_unsqueeze, x[i], -1, 0);
  d = by_blocks(&w, difference_gradient, &v, x, 4, 0);
  if (g->need[0]) nc_temps_result(&w, &g->d[0], d);
  if (g->need[1]) nc_temps_result(&w, &g->d[1], nc_temps_op1(&w, OP_neg, d));
  return nc_temps_finish(&w);
}

/*
** _normalize
*/
static Tensor *normalized(Temps *w, const Vectors *v, Tensor *const x[],
                          Tensor *out) {
  Tensor *n = norms(w, v, x[0]);
  n = nc_temps_opnumber(w, OP_maximum, n, nc_float(v->eps));
  return last(w, OP_true_divide, x[0], n, out);
}

/* x: x, the gradient to the normalized x.  Norms below eps are constants. */
static Tensor *normalized_gradient(Temps *w, const Vectors *v,
                                   Tensor *const x[], Tensor *out) {
  Tensor *n = norms(w, v, x[0]), *d;
  Tensor *m = nc_temps_opnumber(w, OP_maximum, n, nc_float(v->eps));
  d = nc_temps_reduce(w, OP_sum, nc_temps_op2(w, OP_mul, x[0], x[1]), v->dims,
                      1);
  d = formula(w, "where(ge(b, n), -a/b/b, 0*a)", NULL, d, n, v->eps);
  return last(w, OP_add, nc_temps_op2(w, OP_true_divide, x[1], m),
              norm_gradient(w, v, x[0], n, d, NULL), out);
}

int nc_op__normalize(Call *c) {
  Tensor *x = c->arg[0].t;
  Temps w = { 0 };
  unsigned dims;
  TRY(nc_check_floatself(x->dtype));
  TRY(nc_dimmask(&dims, &c->arg[2], x->nd));
  const Vectors v = read_parameters(&c->arg[1], &c->arg[3], dims);
  return nc_temps_endcall(&w, c, by_blocks(&w, normalized, &v, &x, 1, 0));
}

int nc_grad__normalize(OperatorGrad *g) {
  Tensor *x[2];
  Temps w = { 0 };
  unsigned dims;
  TRY(nc_operand(g, 0, &x[0]));
  TRY(nc_dimmask(&dims, &g->arg[2], x[0]->nd));
  const Vectors v = read_parameters(&g->arg[1], &g->arg[3], dims);
  x[1] = g->g[0];
  return nc_temps_end(&w, &g->d[0],
                      by_blocks(&w, normalized_gradient, &v, x, 2, 0));
}
