/* SPDX-License-Identifier: MIT */
/*
** linear.c - linear: the product of rows by the transpose of a matrix, plus a
** bias, as one product over all rows.
*/
#include "core/pointwise/temps.h"
#include "core/cpu/product/blas.h"
#include "core/op.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/tape.h"

static int check_dtype(const Call *c, int i) {
  const DType x = c->arg[0].t->dtype, t = c->arg[i].t->dtype;
  if (x == t && x != DT_b8) return NC_OK;
  if (x == t) return nc_fail(NC_EDTYPE, "bool tensors have no product");
  nc_fail(NC_EDTYPE, "dtypes differ: {0} is %s, %s is %s", nc_dtypename(x),
          nc_operandtext(i), nc_dtypename(t));
  if (!nc_is_exact(x))
    nc_hint("%s:to(\"%s\")", nc_operandtext(i), nc_dtypename(x));
  else nc_hint("{0}:to(\"%s\")", nc_dtypename(t));
  return NC_EDTYPE;
}

static int check_features(const Call *c) {
  const Tensor *x = c->arg[0].t, *weight = c->arg[1].t;
  if (weight->nd != 1 && weight->nd != 2)
    return nc_fail(NC_ESHAPE, "{1} has %d dimensions, not 1 or 2", weight->nd);
  TRY(check_dtype(c, 1));
  if (x->nd == 0)
    return nc_fail(NC_ESHAPE, "{0} has no features, {1} takes %lld",
                   (long long)weight->size[weight->nd - 1]);
  if (x->size[x->nd - 1] != weight->size[weight->nd - 1])
    return nc_fail(NC_ESHAPE, "{0} has %lld features, {1} takes %lld",
                   (long long)x->size[x->nd - 1],
                   (long long)weight->size[weight->nd - 1]);
  return NC_OK;
}

/* Fails unless the bias has a number for each row of weight, or is one. */
static int check_bias(const Call *c) {
  const Tensor *weight = c->arg[1].t, *bias = c->arg[2].t;
  const int64_t n = weight->nd == 2 ? weight->size[0] : 1;
  if (bias == NULL) return NC_OK;
  TRY(check_dtype(c, 2));
  if (bias->nd <= 1 && (nc_numel(bias) == 1 || nc_numel(bias) == n))
    return NC_OK;
  return nc_fail(NC_ESHAPE, "{2} must have %lld element%s", (long long)n,
                 n == 1 ? "" : "s");
}

/* x as a matrix of all its rows; a vector is one row. */
static Tensor *as_matrix(Temps *w, Tensor *x) {
  int64_t size[2] = { 1, 1 };
  if (w->status != NC_OK || x->nd == 2) return x;
  if (x->nd > 0) size[1] = x->size[x->nd - 1];
  for (int d = 0; d < x->nd - 1; d++) size[0] *= x->size[d];
  return nc_temps_reshape(w, x, 2, size);
}

/* All elements of x as one column. */
static Tensor *as_column(Temps *w, Tensor *x) {
  const int64_t size[2] = { nc_numel(x), 1 };
  return w->status == NC_OK ? nc_temps_reshape(w, x, 2, size) : x;
}

int nc_op_linear(Call *c) {
  Tensor *x = c->arg[0].t, *weight = c->arg[1].t, *bias = c->arg[2].t;
  Tensor *y = NULL, *rows, *columns;
  const Device *d;
  int64_t size[NC_MAXDIM];
  Temps w = { 0 };
  TRY(nc_onedevice(&d, c->arg, 3));
  TRY(check_features(c));
  TRY(check_bias(c));
  for (int i = 0; i < x->nd - 1; i++) size[i] = x->size[i];
  if (weight->nd == 2) size[x->nd - 1] = weight->size[0];
  rows = as_matrix(&w, x);
  columns = nc_temps_transposed(&w, as_matrix(&w, weight));
  if (w.status == NC_OK)
    y = nc_temps_add(
        &w,
        nc_product(&y, rows, columns, nc_int(1), bias, nc_int(bias != NULL)),
        &y);
  if (w.status == NC_OK && (x->nd != 2 || weight->nd != 2))
    y = nc_temps_reshape(&w, y, x->nd - (weight->nd == 1), size);
  return nc_temps_end(&w, &c->out[0], y);
}

/* *y = a*b in the type of the gradient, in the shape of operand i. */
static void set_product(Temps *w, OperatorGrad *g, int i, Tensor *a,
                        Tensor *b) {
  const GradMeta *m = &g->in[i].meta;
  Tensor *y = nc_temps_call2(w, OPERATOR_mm, a, b);
  if (w->status == NC_OK && m->nd != 2)
    y = nc_temps_reshape(w, y, m->nd, m->size);
  nc_temps_result(w, &g->d[i], y);
}

/* Operand i in the type of the gradient, as a matrix; conjugated, as the
   gradients of complex products have it. */
static Tensor *grad_factor(Temps *w, OperatorGrad *g, int i) {
  Tensor *t = NULL;
  if (w->status == NC_OK) w->status = nc_operand(g, i, &t);
  t = nc_temps_cast(w, t, g->g[0]->dtype);
  if (w->status == NC_OK && nc_is_complex(t->dtype))
    t = nc_temps_op1(w, OP_conj, t);
  return w->status == NC_OK ? as_matrix(w, t) : t;
}

int nc_grad_linear(OperatorGrad *g) {
  const int isvector = g->in[1].meta.nd == 1;
  Temps w = { 0 };
  Tensor *rows = isvector ? as_column(&w, g->g[0]) : as_matrix(&w, g->g[0]);
  if (g->need[0] && w.status == NC_OK)
    set_product(&w, g, 0, rows, grad_factor(&w, g, 1));
  if (g->need[1] && w.status == NC_OK)
    set_product(&w, g, 1, nc_temps_transposed(&w, rows), grad_factor(&w, g, 0));
  if (g->n > 2 && g->need[2]) nc_temps_result(&w, &g->d[2], rows);
  return nc_temps_finish(&w);
}
