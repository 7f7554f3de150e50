/* SPDX-License-Identifier: MIT */
/*
** matmul.c - products of vectors, matrices and batches of matrices: mm, bmm,
** mv, dot, outer, matmul, and those that are added to a tensor: addmm, baddbmm,
** addmv, addbmm.  They check the operands, view them as two batches of
** matrices, and call nc_product (bmm.c).
*/
#include <string.h>

#include "core/pointwise/temps.h"
#include "core/cpu/product/blas.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"

/* y = a*b */
static int multiply(Tensor **y, Tensor *a, Tensor *b) {
  return nc_product(y, a, b, nc_int(1), NULL, nc_int(0));
}

/*
** Checks
*/
/* Adds a hint: operand j, of the operands i and j, converted to the dtype.  The
   whole call is shown if these are all operands. */
static void hint_convert(const Call *c, int i, int j, DType t) {
  const char *op = nc_operators[c->op].name, *type = nc_dtypename(t);
  if (c->arg[2].t) nc_hint("%s:to(\"%s\")", nc_operandtext(j), type);
  else if (i < j) nc_hint("{0}:%s({1}:to(\"%s\"))", op, type);
  else nc_hint("{0}:to(\"%s\"):%s({1})", type, op);
}

/* Checks that operands i and j have one type, and not bool. */
static int check_same_dtype(const Call *c, int i, int j) {
  const DType a = c->arg[i].t->dtype, b = c->arg[j].t->dtype;
  const char *op = nc_operators[c->op].name;
  if (a == b && a != DT_b8) return NC_OK;
  if (a == b) {
    nc_fail(NC_EDTYPE, "bool tensors have no product");
    if (c->arg[2].t == NULL)
      nc_hint("{0}:to(\"int64\"):%s({1}:to(\"int64\"))", op);
    return NC_EDTYPE;
  }
  nc_fail(NC_EDTYPE, "dtypes differ: %s is %s, %s is %s", nc_operandtext(i),
          nc_dtypename(a), nc_operandtext(j), nc_dtypename(b));
  if (nc_is_exact(a) && nc_promote(a, b) == b) hint_convert(c, j, i, b);
  else hint_convert(c, i, j, a);
  return NC_EDTYPE;
}

static int check_ndim(const Call *c, int i, int nd) {
  const Tensor *t = c->arg[i].t;
  if (t->nd == nd) return NC_OK;
  return nc_fail(NC_ESHAPE, "%s has %d dimension%s, not %d", nc_operandtext(i),
                 t->nd, t->nd == 1 ? "" : "s", nd);
}

static const char *plural(int64_t n) {
  return n == 1 ? "" : "s";
}

/* Adds a hint: which transpose of a (a matrix) or b would fit. */
static void hint_transpose(const Call *c, const Tensor *a, const Tensor *b) {
  const char *op = nc_operators[c->op].name, *type = nc_dtypename(a->dtype);
  const long long rows = a->size[0], cols = a->size[1];
  if (a->nd != 2) return;
  if (b->nd == 1 && rows == b->size[0])
    nc_hint("{0}:t():%s({1}) gives %s[%lld]", op, type, cols);
  if (b->nd != 2) return;
  if (cols == b->size[1])
    nc_hint("{0}:%s({1}:t()) gives %s[%lldx%lld]", op, type, rows,
            (long long)b->size[0]);
  else if (rows == b->size[0])
    nc_hint("{0}:t():%s({1}) gives %s[%lldx%lld]", op, type, cols,
            (long long)b->size[1]);
  else nc_hint("neither {0}:t() nor {1}:t() fits");
}

/* Checks that the inner sizes of operands i and j are equal. */
static int check_inner(const Call *c, int i, int j) {
  const Tensor *a = c->arg[i].t, *b = c->arg[j].t;
  const int64_t k = a->size[a->nd - 1], l = b->size[b->nd > 1 ? b->nd - 2 : 0];
  if (k == l) return NC_OK;
  nc_fail(NC_ESHAPE, "inner sizes differ: %s has %lld %s%s, %s has %lld %s%s",
          nc_operandtext(i), (long long)k, a->nd > 1 ? "column" : "element",
          plural(k), nc_operandtext(j), (long long)l,
          b->nd > 1 ? "row" : "element", plural(l));
  if (i == 0) hint_transpose(c, a, b);
  return NC_ESHAPE;
}

/* Checks operands i and j, of nd and nd2 dimensions, for a product. */
static int check_product(const Call *c, int i, int nd, int j, int nd2) {
  TRY(check_ndim(c, i, nd));
  TRY(check_ndim(c, j, nd2));
  TRY(check_same_dtype(c, i, j));
  return check_inner(c, i, j);
}

/*
** Views
*/
/* *y = a view of vector x as a matrix of one row, or one column. */
static int as_matrix(Tensor **y, const Tensor *x, int column) {
  TRY(nc_alias(y, x));
  (*y)->nd = 2;
  (*y)->size[column] = 1;
  (*y)->size[1 - column] = x->size[0];
  (*y)->step[column] = column ? 1 : x->size[0];
  (*y)->step[1 - column] = x->step[0];
  return NC_OK;
}

/* *y = a view of x with its batch dimensions expanded to nb sizes; the last
   two dimensions stay. */
static int expand(Tensor **y, const Tensor *x, int nb, const int64_t size[]) {
  TRY(nc_alias(y, x));
  (*y)->nd = nb + 2;
  for (int d = nb + 1; d >= 0; d--) {
    const int own = d - nb - 2 + x->nd;
    const int64_t have = own < 0 ? 1 : x->size[own];
    (*y)->size[d] = d < nb ? size[d] : have;
    (*y)->step[d] = own < 0 || (d < nb && have == 1) ? 0 : x->step[own];
  }
  return NC_OK;
}

/* Removes dimension dim, of size 1, from y. */
static void drop_dim(Tensor *y, int dim) {
  int64_t size[NC_MAXDIM];
  int nd = 0;
  for (int d = 0; d < y->nd; d++)
    if (d != dim) size[nd++] = y->size[d];
  nc_set_dense(y, nd, size);
}

/*
** Operators
*/
int nc_op_mm(Call *c) {
  TRY(check_product(c, 0, 2, 1, 2));
  return multiply(&c->out[0], c->arg[0].t, c->arg[1].t);
}

/* Checks operands i and j, two batches of matrices, for their products. */
static int check_batches(const Call *c, int i, int j) {
  const Tensor *a = c->arg[i].t, *b = c->arg[j].t;
  TRY(check_product(c, i, 3, j, 3));
  if (a->size[0] == b->size[0]) return NC_OK;
  nc_fail(NC_ESHAPE, "batch sizes differ: %s has %lld matri%s, %s has %lld",
          nc_operandtext(i), (long long)a->size[0],
          a->size[0] == 1 ? "x" : "ces", nc_operandtext(j),
          (long long)b->size[0]);
  if (i == 0) nc_hint("matmul broadcasts batches of one");
  return NC_ESHAPE;
}

int nc_op_bmm(Call *c) {
  TRY(check_batches(c, 0, 1));
  return multiply(&c->out[0], c->arg[0].t, c->arg[1].t);
}

/* Like torch.outer, a broadcast product that promotes its operands. */
int nc_op_outer(Call *c) {
  Tensor *a = NULL, *b = NULL;
  int r = check_ndim(c, 0, 1);
  if (r == NC_OK) r = check_ndim(c, 1, 1);
  if (r == NC_OK) r = as_matrix(&a, c->arg[0].t, 1);
  if (r == NC_OK) r = as_matrix(&b, c->arg[1].t, 0);
  if (r == NC_OK) r = nc_apply2(&c->out[0], OP_mul, a, b);
  nc_release(a);
  nc_release(b);
  return r;
}

/*
** Products that are added to operand 0: beta*self + alpha*(a b)
*/
static int check_factor(const char *name, Scalar v, DType t) {
  if (v.kind == NC_COMPLEX && !nc_is_complex(t)) {
    nc_fail(NC_EDTYPE, "%s is a complex number, but the tensors are %s", name,
            nc_dtypename(t));
    nc_hint("{0}:to(\"%s\") is complex", nc_dtypename(nc_complex_dtype(t)));
    return NC_EDTYPE;
  }
  if (!nc_is_exact(t) || nc_is_exact_kind(v.kind)) return NC_OK;
  return nc_fail(NC_EDTYPE, "%s is %g, but %s tensors need an integer", name,
                 v.f, nc_dtypename(t));
}

/* Checks operand 0, which broadcasts to the product, of nd sizes, and the
   factors. */
static int check_addend(const Call *c, int nd, const int64_t size[]) {
  const Tensor *x = c->arg[0].t;
  char have[NC_TEXT], want[NC_TEXT];
  int ok = x->nd <= nd;
  TRY(check_same_dtype(c, 0, 1));
  for (int d = 0; ok && d < x->nd; d++)
    ok = x->size[d] == 1 || x->size[d] == size[nd - x->nd + d];
  if (!ok)
    return nc_fail(NC_ESHAPE, "{0} [%s] does not broadcast to the product [%s]",
                   nc_shapetext(have, x->nd, x->size),
                   nc_shapetext(want, nd, size));
  TRY(check_factor("beta", c->arg[3].s, x->dtype));
  return check_factor("alpha", c->arg[4].s, x->dtype);
}

/* Multiplies operands 0 and 1 of *c, which is a copy of a call, by factors that
   are complex, so that those left are real. */
static void take_complex_factors(Temps *w, Call *c) {
  for (int i = 0; i < 2; i++) {
    Scalar *by = &c->arg[3 + i].s;
    if (w->status != NC_OK || nc_imag(*by) == 0) continue;
    c->arg[i].t = nc_temps_opnumber(w, OP_mul, c->arg[i].t, *by);
    *by = nc_int(1);
  }
}

/* addmv: operand 0 and the vector are columns, as is the product. */
static int add_matrix_vector(Call *c) {
  Tensor *x = c->arg[0].t, *a = c->arg[1].t, *v = c->arg[2].t;
  Tensor *column = NULL, *addend = NULL;
  int r;
  TRY(check_product(c, 1, 2, 2, 1));
  TRY(check_addend(c, 1, a->size));
  r = as_matrix(&column, v, 1);
  if (r == NC_OK && x->nd == 1) r = as_matrix(&addend, x, 1);
  if (r == NC_OK)
    r = nc_product(&c->out[0], a, column, c->arg[4].s, addend ? addend : x,
                   c->arg[3].s);
  if (r == NC_OK) drop_dim(c->out[0], 1);
  nc_release(column);
  nc_release(addend);
  return r;
}

/* addmm, baddbmm and addmv with factors that have imaginary parts */
static int add_complex_product(Call *c) {
  Call real = *c;
  Temps w = { 0 };
  TRY(check_factor("beta", c->arg[3].s, c->arg[0].t->dtype));
  TRY(check_factor("alpha", c->arg[4].s, c->arg[1].t->dtype));
  take_complex_factors(&w, &real);
  if (w.status == NC_OK) w.status = nc_op_addmm(&real);
  c->out[0] = real.out[0];
  return nc_temps_finish(&w);
}

/* addmm, baddbmm and addmv */
int nc_op_addmm(Call *c) {
  const int nd = c->op == OPERATOR_addmm ? 2 : 3;
  Tensor *a = c->arg[1].t, *b = c->arg[2].t;
  int64_t size[3];
  if (nc_imag(c->arg[3].s) != 0 || nc_imag(c->arg[4].s) != 0)
    return add_complex_product(c);
  if (c->op == OPERATOR_addmv) return add_matrix_vector(c);
  TRY(nd == 2 ? check_product(c, 1, 2, 2, 2) : check_batches(c, 1, 2));
  for (int d = 0; d < nd - 1; d++) size[d] = a->size[d];
  size[nd - 1] = b->size[nd - 1];
  TRY(check_addend(c, nd, size));
  return nc_product(&c->out[0], a, b, c->arg[4].s, c->arg[0].t, c->arg[3].s);
}

/* The sum of the products of two batches is one product: of the matrices of the
   first side by side, and those of the second below each other. */
int nc_op_addbmm(Call *c) {
  const Tensor *a = c->arg[1].t, *b = c->arg[2].t;
  Call add = *c;
  Temps w = { 0 };
  TRY(check_batches(c, 1, 2));
  const int64_t n = a->size[1], m = b->size[2], k = a->size[0] * a->size[2];
  TRY(check_addend(c, 2, (int64_t[]){ n, m }));
  add.op = OPERATOR_addmm;
  add.arg[1].t = nc_temps_reshape(
      &w, nc_temps_call1(&w, OPERATOR_transpose, c->arg[1].t, 1, 2), 2,
      (int64_t[]){ n, k });
  add.arg[2].t = nc_temps_reshape(&w, c->arg[2].t, 2, (int64_t[]){ k, m });
  return nc_temps_endcall(&w, c, nc_temps_call(&w, &add));
}

/*
** matmul
*/
/* Sets the batch sizes (nb of them) to which the operands broadcast. */
static int broadcast_batch(const Tensor *a, const Tensor *b, int *nb,
                           int64_t size[]) {
  Tensor x[2] = { { .nd = a->nd - 2 }, { .nd = b->nd - 2 } }; /* shapes only */
  const Arg in[2] = { { .t = &x[0] }, { .t = &x[1] } };
  int r;
  memcpy(x[0].size, a->size, sizeof a->size);
  memcpy(x[1].size, b->size, sizeof b->size);
  r = nc_broadcast(in, 2, nb, size);
  if (r == NC_ESHAPE) nc_rule("batches broadcast, matrices do not");
  return r;
}

/* Returns whether the batch dimensions of x and its rows can be viewed as
   the rows of one matrix. */
static int can_fold(const Tensor *x) {
  int last = x->nd - 2; /* sizes of 1 do not matter */
  for (int d = last - 1; d >= 0; d--) {
    if (x->size[d] == 1) continue;
    if (x->step[d] != x->step[last] * x->size[last]) return 0;
    last = d;
  }
  return nc_numel(x) > 0;
}

/* *y = a*b for a batch of matrices a and one matrix b, as one product. */
static int multiply_folded(Tensor **y, Tensor *a, Tensor *b) {
  int64_t size[NC_MAXDIM];
  const int nd = a->nd;
  Tensor *rows;
  int r;
  TRY(nc_alias(&rows, a));
  memcpy(size, a->size, sizeof size);
  size[nd - 1] = b->size[1];
  rows->nd = 2;
  rows->size[0] = nc_numel(a) / a->size[nd - 1];
  rows->size[1] = a->size[nd - 1];
  rows->step[0] = a->step[nd - 2];
  rows->step[1] = a->step[nd - 1];
  r = multiply(y, rows, b);
  if (r == NC_OK) nc_set_dense(*y, nd, size);
  nc_release(rows);
  return r;
}

/* *y = a*b for matrices in batches that broadcast. */
static int multiply_batches(Tensor **y, Tensor *a, Tensor *b) {
  int64_t size[NC_MAXDIM];
  Tensor *x[2] = { NULL, NULL };
  int nb, r;
  if (a->nd == 2 && b->nd == 2) return multiply(y, a, b);
  if (b->nd == 2 && a->nd > 2 && can_fold(a)) return multiply_folded(y, a, b);
  TRY(broadcast_batch(a, b, &nb, size));
  if ((r = expand(&x[0], a, nb, size)) == NC_OK &&
      (r = expand(&x[1], b, nb, size)) == NC_OK)
    r = multiply(y, x[0], x[1]);
  nc_release(x[0]);
  nc_release(x[1]);
  return r;
}

/* *y = a*b where one or both may be vectors; their dimension is removed from
   the result. */
static int matmul(Tensor **y, Tensor *a, Tensor *b) {
  Tensor *row = NULL, *column = NULL;
  int r = NC_OK;
  if (a->nd == 1) r = as_matrix(&row, a, 0);
  if (r == NC_OK && b->nd == 1) r = as_matrix(&column, b, 1);
  if (r == NC_OK) r = multiply_batches(y, row ? row : a, column ? column : b);
  if (r == NC_OK && row) drop_dim(*y, (*y)->nd - 2);
  if (r == NC_OK && column) drop_dim(*y, (*y)->nd - 1);
  nc_release(row);
  nc_release(column);
  return r;
}

/* mv and dot */
int nc_op_mv(Call *c) {
  TRY(check_product(c, 0, c->op == OPERATOR_mv ? 2 : 1, 1, 1));
  return matmul(&c->out[0], c->arg[0].t, c->arg[1].t);
}

int nc_op_matmul(Call *c) {
  for (int i = 0; i < 2; i++)
    if (c->arg[i].t->nd == 0)
      return nc_fail(NC_ESHAPE, "%s has no dimensions, a vector has 1",
                     nc_operandtext(i));
  TRY(check_same_dtype(c, 0, 1));
  TRY(check_inner(c, 0, 1));
  return matmul(&c->out[0], c->arg[0].t, c->arg[1].t);
}

/*
** Gradients of y = a*b: g*b' and a'*g.  The caller sums over the
** batch dimensions that were broadcast (nc_sum_to_size).
*/
/* Returns a*b, in the type of the gradient. */
static Tensor *product(Temps *w, const OperatorGrad *g, Tensor *a, Tensor *b) {
  const DType type = g->g[0]->dtype;
  a = nc_temps_cast(w, a, type);
  b = nc_temps_cast(w, b, type);
  return nc_temps_call2(w, OPERATOR_matmul, a, b);
}

/* Operand i of the product, conjugated: the gradients of complex products have
   the adjoint where those of real ones have the transpose. */
static int conjugated_operand(Temps *w, OperatorGrad *g, int i, Tensor **x) {
  if ((w->status = nc_operand(g, i, x)) == NC_OK && nc_is_complex((*x)->dtype))
    *x = nc_temps_op1(w, OP_conj, *x);
  return w->status == NC_OK;
}

/* Views a batch of matrices as one matrix with all their rows. */
static Tensor *all_rows(Temps *w, Tensor *x) {
  int64_t size[2];
  if (w->status != NC_OK) return NULL;
  size[1] = x->size[x->nd - 1];
  size[0] = nc_numel(x) / size[1];
  return nc_temps_reshape(w, x, 2, size);
}

/* Returns a'*y, the gradient to the right operand.  If that was one matrix for
   a whole batch (`shared'), this is one product over all rows; a batch of
   products would need as many times the memory, and a sum. */
static Tensor *right_grad(Temps *w, OperatorGrad *g, Tensor *a, Tensor *y,
                          int shared) {
  if (w->status != NC_OK) return NULL;
  if (shared && a->nd > 2 && y->nd == a->nd && nc_numel(a) > 0 &&
      nc_numel(y) > 0) {
    a = all_rows(w, a);
    y = all_rows(w, y);
  }
  return product(w, g, nc_temps_transposed(w, a), y);
}

/* Sets the gradients to operands i (the left one) and i+1 of a product; y is
   the gradient to the product.  `row' and `column' say which operand is a
   vector, and is viewed as a matrix of one row or column; y is viewed
   accordingly. */
static int product_grad(Temps *w, OperatorGrad *g, int i, Tensor *y, int row,
                        int column) {
  Tensor *x;
  if (column) y = nc_temps_call1(w, OPERATOR_unsqueeze, y, -1, 0);
  if (row) y = nc_temps_call1(w, OPERATOR_unsqueeze, y, -2, 0);
  if (g->need[i] && w->status == NC_OK && conjugated_operand(w, g, i + 1, &x)) {
    if (column) x = nc_temps_call1(w, OPERATOR_unsqueeze, x, -1, 0);
    nc_temps_result(w, &g->d[i], product(w, g, y, nc_temps_transposed(w, x)));
  }
  if (g->need[i + 1] && w->status == NC_OK && conjugated_operand(w, g, i, &x)) {
    if (row) x = nc_temps_call1(w, OPERATOR_unsqueeze, x, -2, 0);
    x = right_grad(w, g, x, y, g->in[i + 1].meta.nd <= 2);
    if (column && w->status == NC_OK)
      x = nc_temps_reshape(w, x, x->nd - 1, x->size); /* the last size is 1 */
    nc_temps_result(w, &g->d[i + 1], x);
  }
  return nc_temps_finish(w);
}

int nc_grad_matmul(OperatorGrad *g) {
  Temps w = { 0 };
  return product_grad(&w, g, 0, g->g[0], g->in[0].meta.nd == 1,
                      g->in[1].meta.nd == 1);
}

int nc_grad_mm(OperatorGrad *g) {
  return nc_grad_matmul(g);
}

int nc_grad_bmm(OperatorGrad *g) {
  return nc_grad_matmul(g);
}

int nc_grad_mv(OperatorGrad *g) {
  return nc_grad_matmul(g);
}

int nc_grad_dot(OperatorGrad *g) {
  Temps w = { 0 };
  Tensor *x;
  for (int i = 0; i < 2; i++)
    if (g->need[i] && w.status == NC_OK && conjugated_operand(&w, g, 1 - i, &x))
      nc_temps_result(&w, &g->d[i], nc_temps_op2(&w, OP_mul, g->g[0], x));
  return nc_temps_finish(&w);
}

int nc_grad_outer(OperatorGrad *g) {
  Temps w = { 0 };
  Tensor *x;
  if (g->need[0] && conjugated_operand(&w, g, 1, &x))
    nc_temps_result(&w, &g->d[0], product(&w, g, g->g[0], x));
  if (g->need[1] && w.status == NC_OK && conjugated_operand(&w, g, 0, &x))
    nc_temps_result(&w, &g->d[1],
                    product(&w, g, nc_temps_transposed(&w, g->g[0]), x));
  return nc_temps_finish(&w);
}

/* g times the conjugate of a factor */
static Tensor *scaled(Temps *w, Tensor *g, Scalar by) {
  const double re = nc_tofloat(by);
  Tensor *y = NULL;
  if (w->status != NC_OK) return g;
  if (nc_imag(by) != 0)
    return nc_temps_opnumber(w, OP_mul, g, nc_complex(re, -nc_imag(by)));
  if (re == 1) return g;
  return nc_temps_add(w, nc_formula(&y, "g*n", g, NULL, NULL, NULL, re), &y);
}

static int is_zero(Scalar v) {
  return nc_tofloat(v) == 0 && nc_imag(v) == 0;
}

/* Zeros in the shape of operand i. */
static Tensor *no_grad(Temps *w, const OperatorGrad *g, int i) {
  const GradMeta *m = &g->in[i].meta;
  return nc_temps_full(w, g->g[0], g->g[0]->dtype, m->nd, m->size, nc_int(0));
}

/* What has the factor 0 is not read, as in the product: its gradient is 0 even
   if g or the other matrix has nan. */
static int add_product_grad(OperatorGrad *g, int column) {
  const Scalar beta = g->arg[3].s, alpha = g->arg[4].s;
  Temps w = { 0 };
  if (g->need[0])
    nc_temps_result(&w, &g->d[0],
                    is_zero(beta) ? no_grad(&w, g, 0)
                                  : scaled(&w, g->g[0], beta));
  for (int i = 1; i <= 2 && is_zero(alpha); i++)
    if (g->need[i]) nc_temps_result(&w, &g->d[i], no_grad(&w, g, i));
  if (is_zero(alpha) || (!g->need[1] && !g->need[2]))
    return nc_temps_finish(&w);
  return product_grad(&w, g, 1, scaled(&w, g->g[0], alpha), 0, column);
}

int nc_grad_addmm(OperatorGrad *g) {
  return add_product_grad(g, 0);
}

int nc_grad_baddbmm(OperatorGrad *g) {
  return add_product_grad(g, 0);
}

int nc_grad_addmv(OperatorGrad *g) {
  return add_product_grad(g, 1);
}
