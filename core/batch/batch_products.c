/* SPDX-License-Identifier: MIT */
/*
** batch_products.c - rules for products, and for operators that join tensors or
** choose elements by positions.
*/
#include "core/batch/batching.h"
#include "core/operators.h"
#include "core/ops.h"

/* An operand of a product: its value, the dimensions of a sample, whether it is
   the same for all samples. */
typedef struct Factor {
  Tensor *t;
  int nd, mapped;
} Factor;

static Factor factor(Batching *b, Tensor *t) {
  Tensor *value = nc_batch_value(b, t);
  return (Factor){ value ? value : t, t->nd, value != NULL };
}

/* A vector becomes a matrix, a row (at -2) or a column (at -1). */
static Factor as_matrix(Batching *b, Factor f, int at) {
  if (f.nd != 1) return f;
  f.t = nc_temps_call1(&b->w, OPERATOR_unsqueeze, f.t, at, 0);
  f.nd = 2;
  return f;
}

/* f with dimensions of size 1 behind the batch until a sample has nd. */
static Factor with_rank(Batching *b, Factor f, int nd) {
  for (; f.mapped && f.nd < nd; f.nd++)
    f.t = nc_temps_call1(&b->w, OPERATOR_unsqueeze, f.t, 2, 0);
  return f;
}

/* The product of the values. */
static Tensor *product(Batching *b, Factor x, Factor y) {
  const int row = x.nd == 1, column = y.nd == 1;
  Tensor *z;
  if (x.nd < 1 || y.nd < 1) {
    b->w.status = nc_fail(NC_ESHAPE, "a tensor without dimensions");
    return NULL;
  }
  if (x.mapped && !y.mapped && y.nd <= 2) /* rows of one product */
    return nc_temps_call2(&b->w, OPERATOR_matmul, x.t, y.t);
  if (column && !x.mapped && x.nd <= 2) /* the same, transposed */
    return nc_temps_call2(&b->w, OPERATOR_matmul, y.t,
                          row ? x.t : nc_temps_transposed(&b->w, x.t));
  x = as_matrix(b, x, -2);
  y = as_matrix(b, y, -1);
  x = with_rank(b, x, y.nd > 2 ? y.nd : 2);
  y = with_rank(b, y, x.nd > 2 ? x.nd : 2);
  z = nc_temps_call2(&b->w, OPERATOR_matmul, x.t, y.t);
  if (row) z = nc_temps_call1(&b->w, OPERATOR_select, z, -2, 1);
  if (column) z = nc_temps_call1(&b->w, OPERATOR_select, z, -1, 1);
  return z;
}

int nc_batch_product(Batching *b) {
  const Arg *a = b->c->arg;
  const Factor x = factor(b, a[0].t), y = factor(b, a[1].t);
  const int op = b->c->op;
  if ((op == OPERATOR_mm && (x.nd != 2 || y.nd != 2)) ||
      (op == OPERATOR_bmm && (x.nd != 3 || y.nd != 3)) ||
      (op == OPERATOR_mv && (x.nd != 2 || y.nd != 1)) ||
      (op == OPERATOR_dot && (x.nd != 1 || y.nd != 1)))
    return nc_batch_loop(b); /* which fails */
  return nc_batch_end(b, product(b, x, y));
}

/* z + y, where a sample of z has nd dimensions, and y broadcasts to it. */
static Tensor *plus(Batching *b, Tensor *z, Factor y, int nd) {
  if (z == NULL) return NULL;
  return nc_temps_op2(&b->w, OP_add, z, with_rank(b, y, nd).t);
}

int nc_batch_linear(Batching *b) {
  const Arg *a = b->c->arg;
  const Factor x = factor(b, a[0].t);
  Factor w = factor(b, a[1].t);
  if (x.nd < 1 || w.nd != 2) return nc_batch_loop(b);
  if (!w.mapped && !nc_batch_value(b, a[2].t)) {
    Call low = *b->c;
    low.arg[0].t = x.t;
    return nc_batch_run(b, &low);
  }
  Tensor *z = NULL;
  if (!x.mapped || !w.mapped || !nc_batch_shared(b, &z, x.t, w.t)) {
    w.t = nc_temps_transposed(&b->w, w.t);
    z = product(b, x, w);
  }
  if (a[2].t) z = plus(b, z, factor(b, a[2].t), x.nd);
  return nc_batch_end(b, z);
}

/* beta*self + alpha*(a b) */
int nc_batch_addmm(Batching *b) {
  const Arg *a = b->c->arg;
  const Scalar beta = a[3].s, alpha = a[4].s;
  const int nd = a[1].t->nd - (a[2].t->nd == 1);
  Tensor *z = product(b, factor(b, a[1].t), factor(b, a[2].t));
  Factor self = factor(b, a[0].t);
  if (nc_tofloat(beta) == 0 && !nc_batch_value(b, a[1].t) &&
      !nc_batch_value(b, a[2].t))
    return nc_batch_loop(b); /* self is not read */
  if (z && nc_tofloat(alpha) != 1)
    z = nc_temps_opnumber(&b->w, OP_mul, z, alpha);
  if (z == NULL || nc_tofloat(beta) == 0) return nc_batch_end(b, z);
  if (nc_tofloat(beta) != 1)
    self.t = nc_temps_opnumber(&b->w, OP_mul, self.t, beta);
  return nc_batch_end(b, plus(b, z, self, nd));
}

int nc_batch_outer(Batching *b) {
  const Arg *a = b->c->arg;
  if (a[0].t->nd != 1 || a[1].t->nd != 1) return nc_batch_loop(b);
  const Factor x = as_matrix(b, factor(b, a[0].t), -1);
  const Factor y = as_matrix(b, factor(b, a[1].t), -2);
  return nc_batch_end(b, nc_temps_op2(&b->w, OP_mul, x.t, y.t));
}

/*
** Lists
*/
/* cat, stack: what is the same for all samples is repeated. */
int nc_batch_join(Batching *b) {
  const Arg *a = b->c->arg;
  const int extra = b->c->op == OPERATOR_stack;
  Call low = *b->c;
  Tensor *t[NC_MAXTEMPS / 2];
  int d;
  if (a[0].n == 0 || a[0].n > NC_MAXTEMPS / 2 ||
      a[0].tensors[0]->nd + extra == 0)
    return nc_batch_loop(b);
  TRY(nc_dim(&d, a[1].s.i, a[0].tensors[0]->nd + extra));
  for (int i = 0; i < a[0].n; i++) {
    if (a[0].tensors[i]->nd != a[0].tensors[0]->nd) return nc_batch_loop(b);
    t[i] = nc_batch_expanded(b, a[0].tensors[i]);
  }
  low.arg[0].tensors = t;
  nc_setint(&low, 1, d + 2);
  return nc_batch_run(b, &low);
}

/*
** Positions
*/
int nc_batch_gather(Batching *b) {
  Call low = *b->c;
  const int nd = low.arg[0].t->nd;
  int d;
  if (nd == 0 || low.arg[2].t->nd != nd) return nc_batch_loop(b);
  TRY(nc_dim(&d, low.arg[1].s.i, nd));
  low.arg[0].t = nc_batch_expanded(b, low.arg[0].t);
  low.arg[2].t = nc_batch_expanded(b, low.arg[2].t);
  nc_setint(&low, 1, d + 2);
  return nc_batch_run(b, &low);
}

/* Rows of a matrix at positions of each sample: one choice of all of them. */
static int select_rows(Batching *b, Tensor *x, Tensor *at) {
  int64_t size[NC_MAXDIM] = { at->size[0], at->size[1] };
  Call low = *b->c;
  low.arg[2].t = nc_temps_flatten(&b->w, at);
  Tensor *y = nc_temps_call(&b->w, &low);
  TRY(nc_check_maxdim(x->nd + 1));
  for (int i = 1; i < x->nd; i++) size[i + 1] = x->size[i];
  return nc_batch_end(b, nc_temps_reshape(&b->w, y, x->nd + 1, size));
}

int nc_batch_index_select(Batching *b) {
  const Arg *a = b->c->arg;
  Tensor *at = nc_batch_value(b, a[2].t);
  int d;
  if (at == NULL) return nc_batch_shift(b);
  if (a[0].t->nd == 0 || at->nd != 2) return nc_batch_loop(b);
  TRY(nc_dim(&d, a[1].s.i, a[0].t->nd));
  if (d == 0 && nc_batch_value(b, a[0].t) == NULL)
    return select_rows(b, a[0].t, at);
  return nc_batch_loop(b);
}
