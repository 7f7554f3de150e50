/* SPDX-License-Identifier: MIT */
/*
** matmul.c - products of vectors, matrices and batches of matrices: mm, bmm,
** mv, dot, outer, addmm, matmul.  They check the operands, view them as two
** batches of matrices, and call nc_product (bmm.c).
*/
#include <string.h>

#include "core/cpu/blas.h"
#include "core/tape.h"
#include "core/op.h"

/* y = a*b */
static int multiply(Tensor **y, Tensor *a, Tensor *b) {
  return nc_product(y, a, b, nc_int(1), NULL, nc_int(0));
}

/*
** Checks
*/
/* Checks that operands i and j have one type, and not bool. */
static int sametype(const Call *c, int i, int j) {
  const DType a = c->arg[i].t->dtype, b = c->arg[j].t->dtype;
  const char *op = nc_operators[c->op].name;
  if (a == b && a != DT_b8) return NC_OK;
  if (a == b) {
    nc_fail(NC_EDTYPE, "bool tensors have no product");
    if (j == 1) nc_hint("{0}:to(\"int64\"):%s({1}:to(\"int64\"))", op);
    return NC_EDTYPE;
  }
  nc_fail(NC_EDTYPE, "dtypes differ: %s is %s, %s is %s", nc_operandtext(i),
          nc_dtypename(a), nc_operandtext(j), nc_dtypename(b));
  if (j == 1 && nc_category(a) != NC_FLOAT && nc_promote(a, b) == b)
    nc_hint("{0}:to(\"%s\"):%s({1})", nc_dtypename(b), op);
  else if (j == 1) nc_hint("{0}:%s({1}:to(\"%s\"))", op, nc_dtypename(a));
  return NC_EDTYPE;
}

static int hasdims(const Call *c, int i, int nd) {
  const Tensor *t = c->arg[i].t;
  if (t->nd == nd) return NC_OK;
  return nc_fail(NC_ESHAPE, "%s has %d dimension%s, not %d", nc_operandtext(i),
                 t->nd, t->nd == 1 ? "" : "s", nd);
}

static const char *plural(int64_t n) {
  return n == 1 ? "" : "s";
}

/* Adds a hint: which transpose of a (a matrix) or b would fit. */
static void suggest(const Call *c, const Tensor *a, const Tensor *b) {
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
  else nc_hint("none of {0}:t(), {1}:t() fits");
}

/* Checks that the inner sizes of operands i and j are equal. */
static int inner(const Call *c, int i, int j) {
  const Tensor *a = c->arg[i].t, *b = c->arg[j].t;
  const int64_t k = a->size[a->nd - 1], l = b->size[b->nd > 1 ? b->nd - 2 : 0];
  if (k == l) return NC_OK;
  nc_fail(NC_ESHAPE, "inner sizes differ: %s has %lld %s%s, %s has %lld %s%s",
          nc_operandtext(i), (long long)k, a->nd > 1 ? "column" : "element",
          plural(k), nc_operandtext(j), (long long)l,
          b->nd > 1 ? "row" : "element", plural(l));
  if (i == 0) suggest(c, a, b);
  return NC_ESHAPE;
}

/* Checks operands i and j, of nd and nd2 dimensions, for a product. */
static int check(const Call *c, int i, int nd, int j, int nd2) {
  TRY(hasdims(c, i, nd));
  TRY(hasdims(c, j, nd2));
  TRY(sametype(c, i, j));
  return inner(c, i, j);
}

/*
** Views
*/
/* *y = a view of vector x as a matrix of one row, or one column. */
static int asmatrix(Tensor **y, const Tensor *x, int column) {
  TRY(nc_alias(y, x));
  (*y)->nd = 2;
  (*y)->size[column] = 1;
  (*y)->size[1 - column] = x->size[0];
  (*y)->step[column] = column ? 1 : x->size[0];
  (*y)->step[1 - column] = x->step[0];
  return NC_OK;
}

/* Changes the shape of y, dense and not yet visible to others, in place. */
static void reshape(Tensor *y, int nd, const int64_t size[]) {
  int64_t n = 1;
  y->nd = nd;
  for (int d = nd - 1; d >= 0; d--) {
    y->size[d] = size[d];
    y->step[d] = n;
    n *= size[d] > 1 ? size[d] : 1;
  }
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

/*
** Operators
*/
int nc_op_mm(Call *c) {
  int r = check(c, 0, 2, 1, 2);
  if (r == NC_OK) r = multiply(&c->out[0], c->arg[0].t, c->arg[1].t);
  return r;
}

int nc_op_bmm(Call *c) {
  const Tensor *a = c->arg[0].t, *b = c->arg[1].t;
  int r = check(c, 0, 3, 1, 3);
  if (r == NC_OK && a->size[0] != b->size[0]) {
    r = nc_fail(NC_ESHAPE,
                "batch sizes differ: {0} has %lld matri%s, {1} "
                "has %lld",
                (long long)a->size[0], a->size[0] == 1 ? "x" : "ces",
                (long long)b->size[0]);
    nc_hint("matmul broadcasts batches of one");
  }
  if (r == NC_OK) r = multiply(&c->out[0], c->arg[0].t, c->arg[1].t);
  return r;
}

/* *y = a*b where one or both may be vectors; their dimension is removed from
   the result. */
static int withvectors(Tensor **y, Tensor *a, Tensor *b) {
  Tensor *m[2] = { NULL, NULL };
  int64_t size[NC_MAXDIM];
  int nd = 0, r = NC_OK;
  if (a->nd == 1) r = asmatrix(&m[0], a, 0);
  if (r == NC_OK && b->nd == 1) r = asmatrix(&m[1], b, 1);
  if (r == NC_OK) r = multiply(y, m[0] ? m[0] : a, m[1] ? m[1] : b);
  if (r == NC_OK) {
    if (a->nd == 2) size[nd++] = a->size[0];
    if (b->nd == 2) size[nd++] = b->size[1];
    reshape(*y, nd, size);
  }
  nc_release(m[0]);
  nc_release(m[1]);
  return r;
}

int nc_op_mv(Call *c) {
  int r = check(c, 0, 2, 1, 1);
  if (r == NC_OK) r = withvectors(&c->out[0], c->arg[0].t, c->arg[1].t);
  return r;
}

int nc_op_dot(Call *c) {
  int r = check(c, 0, 1, 1, 1);
  if (r == NC_OK) r = withvectors(&c->out[0], c->arg[0].t, c->arg[1].t);
  return r;
}

/* Like torch.outer, a broadcast product that promotes its operands. */
int nc_op_outer(Call *c) {
  Tensor *a = NULL, *b = NULL;
  int r = hasdims(c, 0, 1);
  if (r == NC_OK) r = hasdims(c, 1, 1);
  if (r == NC_OK) r = asmatrix(&a, c->arg[0].t, 1);
  if (r == NC_OK) r = asmatrix(&b, c->arg[1].t, 0);
  if (r == NC_OK) r = nc_apply2(&c->out[0], OP_mul, a, b);
  nc_release(a);
  nc_release(b);
  return r;
}

static int checkfactor(const char *name, Scalar v, DType t) {
  if (nc_category(t) == NC_FLOAT || v.kind != NC_FLOAT) return NC_OK;
  return nc_fail(NC_EDTYPE, "%s is %g, and %s tensors need an integer", name,
                 v.f, nc_dtypename(t));
}

/* Checks that self broadcasts to the product. */
static int checkaddend(const Call *c) {
  const Tensor *x = c->arg[0].t;
  const int64_t size[2] = { c->arg[1].t->size[0], c->arg[2].t->size[1] };
  char have[NC_TEXT], want[NC_TEXT];
  int ok = x->nd <= 2;
  for (int d = 0; ok && d < x->nd; d++)
    ok = x->size[d] == 1 || x->size[d] == size[2 - x->nd + d];
  if (ok) return NC_OK;
  return nc_fail(NC_ESHAPE, "{0} [%s] does not broadcast to the product [%s]",
                 nc_shapetext(have, x->nd, x->size),
                 nc_shapetext(want, 2, size));
}

int nc_op_addmm(Call *c) {
  const Scalar beta = c->arg[3].s, alpha = c->arg[4].s;
  int r = check(c, 1, 2, 2, 2);
  if (r == NC_OK) r = sametype(c, 0, 1);
  if (r == NC_OK) r = checkaddend(c);
  if (r == NC_OK) r = checkfactor("beta", beta, c->arg[0].t->dtype);
  if (r == NC_OK) r = checkfactor("alpha", alpha, c->arg[0].t->dtype);
  if (r == NC_OK)
    r = nc_product(&c->out[0], c->arg[1].t, c->arg[2].t, alpha, c->arg[0].t,
                   beta);
  return r;
}

/*
** matmul
*/
/* Sets the batch sizes (nb of them) to which the operands broadcast. */
static int batch(Tensor *a, Tensor *b, int *nb, int64_t size[]) {
  Tensor *x[2] = { NULL, NULL };
  Arg in[2] = { { .t = NULL } };
  int r;
  if ((r = nc_alias(&x[0], a)) == NC_OK && (r = nc_alias(&x[1], b)) == NC_OK) {
    for (int i = 0; i < 2; i++) {
      x[i]->nd -= 2;
      in[i].t = x[i];
    }
    r = nc_broadcast(in, 2, nb, size);
    if (r == NC_ESHAPE) nc_rule("batches broadcast, matrices do not");
  }
  nc_release(x[0]);
  nc_release(x[1]);
  return r;
}

/* Returns whether the batch dimensions of x and its rows can be viewed as
   the rows of one matrix. */
static int foldable(const Tensor *x) {
  int last = x->nd - 2; /* sizes of 1 do not matter */
  for (int d = last - 1; d >= 0; d--) {
    if (x->size[d] == 1) continue;
    if (x->step[d] != x->step[last] * x->size[last]) return 0;
    last = d;
  }
  return nc_numel(x) > 0;
}

/* *y = a*b for a batch of matrices a and one matrix b, as one product. */
static int folded(Tensor **y, Tensor *a, Tensor *b) {
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
  if (r == NC_OK) reshape(*y, nd, size);
  nc_release(rows);
  return r;
}

/* *y = a*b for matrices in batches that broadcast. */
static int batched(Tensor **y, Tensor *a, Tensor *b) {
  int64_t size[NC_MAXDIM];
  Tensor *x[2] = { NULL, NULL };
  int nb, r;
  if (b->nd == 2 && a->nd > 2 && foldable(a)) return folded(y, a, b);
  TRY(batch(a, b, &nb, size));
  if ((r = expand(&x[0], a, nb, size)) == NC_OK &&
      (r = expand(&x[1], b, nb, size)) == NC_OK)
    r = multiply(y, x[0], x[1]);
  nc_release(x[0]);
  nc_release(x[1]);
  return r;
}

/* Removes dimension dim, of size 1, from y. */
static void drop(Tensor *y, int dim) {
  int64_t size[NC_MAXDIM];
  int nd = 0;
  for (int d = 0; d < y->nd; d++)
    if (d != dim) size[nd++] = y->size[d];
  reshape(y, nd, size);
}

static int matmul(Tensor **y, Tensor *a, Tensor *b) {
  Tensor *row = NULL, *column = NULL;
  int r = NC_OK;
  if (a->nd <= 2 && b->nd <= 2) return withvectors(y, a, b);
  if (a->nd == 1) r = asmatrix(&row, a, 0);
  if (b->nd == 1) r = asmatrix(&column, b, 1);
  if (r == NC_OK) r = batched(y, row ? row : a, column ? column : b);
  if (r == NC_OK && row) drop(*y, (*y)->nd - 2);
  if (r == NC_OK && column) drop(*y, (*y)->nd - 1);
  nc_release(row);
  nc_release(column);
  return r;
}

int nc_op_matmul(Call *c) {
  int r = NC_OK;
  for (int i = 0; i < 2 && r == NC_OK; i++)
    if (c->arg[i].t->nd == 0)
      r = nc_fail(NC_ESHAPE, "%s has no dimensions, a vector has 1",
                  nc_operandtext(i));
  if (r == NC_OK) r = sametype(c, 0, 1);
  if (r == NC_OK) r = inner(c, 0, 1);
  if (r == NC_OK) r = matmul(&c->out[0], c->arg[0].t, c->arg[1].t);
  return r;
}

/*
** Gradients of y = a*b: g*b' and a'*g.  The caller (nc_fit) sums over the batch
** dimensions that were broadcast.
*/
/* *y = a*b in the type of the gradient, which is a or b. */
static int product(Tensor **y, Tensor *a, Tensor *b, DType type) {
  Tensor *x[2] = { NULL, NULL };
  int r;
  *y = NULL;
  if ((r = nc_cast(&x[0], a, type)) == NC_OK &&
      (r = nc_cast(&x[1], b, type)) == NC_OK)
    r = nc_call2(y, OPERATOR_matmul, x[0], x[1]);
  nc_release(x[0]);
  nc_release(x[1]);
  return r;
}

/* *y = x with a dimension of size 1 inserted: last (dim -1) or last but one
   (-2). */
static int widened(Tensor **y, Tensor *x, int dim) {
  Call c;
  int r;
  memset(&c, 0, sizeof c);
  c.op = OPERATOR_unsqueeze;
  c.arg[0].t = x;
  c.arg[1].s = nc_int(dim);
  r = nc_call(&c);
  *y = c.out[0];
  return r;
}

/* *y = x without its last dimension, which has size 1. */
static int narrowed(Tensor **y, Tensor *x) {
  return nc_reshapeto(y, x, x->nd - 1, x->size);
}

/* *d = g*b', the gradient to the left operand. */
static int left(Tensor **d, Tensor *g, Tensor *b) {
  Tensor *t;
  int r;
  TRY(nc_transposed(&t, b));
  r = product(d, g, t, g->dtype);
  nc_release(t);
  return r;
}

/* *d = a'*g, the gradient to the right operand. */
static int right(Tensor **d, Tensor *a, Tensor *g) {
  Tensor *t;
  int r;
  TRY(nc_transposed(&t, a));
  r = product(d, t, g, g->dtype);
  nc_release(t);
  return r;
}

int nc_grad_mm(OperatorGrad *g) {
  Tensor *x;
  if (g->need[0]) {
    TRY(nc_operand(g, 1, &x));
    TRY(left(&g->d[0], g->g[0], x));
  }
  if (g->need[1]) {
    TRY(nc_operand(g, 0, &x));
    TRY(right(&g->d[1], x, g->g[0]));
  }
  return NC_OK;
}

int nc_grad_bmm(OperatorGrad *g) {
  return nc_grad_mm(g);
}

/* The gradients of matmul.  `row' and `column' say which operand is a
   vector, and is viewed as a matrix of one row or column; `wide' is the
   gradient of the result viewed accordingly. */
static int matgrad(OperatorGrad *g, Tensor *wide, int row, int column) {
  Tensor *x, *m = NULL, *d = NULL;
  int r = NC_OK;
  if (g->need[0]) {
    TRY(nc_operand(g, 1, &x));
    if (column) r = widened(&m, x, -1);
    if (r == NC_OK) r = left(&g->d[0], wide, m ? m : x);
    nc_release(m);
    m = NULL;
  }
  if (r != NC_OK || !g->need[1]) return r;
  TRY(nc_operand(g, 0, &x));
  if (row) r = widened(&m, x, -2);
  if (r == NC_OK) r = right(column ? &d : &g->d[1], m ? m : x, wide);
  if (r == NC_OK && column) r = narrowed(&g->d[1], d);
  nc_release(m);
  nc_release(d);
  return r;
}

int nc_grad_matmul(OperatorGrad *g) {
  const int row = g->in[0].meta.nd == 1, column = g->in[1].meta.nd == 1;
  Tensor *one = NULL, *two = NULL;
  int r = NC_OK;
  if (column) r = widened(&one, g->g[0], -1);
  if (r == NC_OK && row) r = widened(&two, one ? one : g->g[0], -2);
  if (r == NC_OK) r = matgrad(g, two ? two : one ? one : g->g[0], row, column);
  nc_release(one);
  nc_release(two);
  return r;
}

int nc_grad_mv(OperatorGrad *g) {
  return nc_grad_matmul(g);
}

int nc_grad_dot(OperatorGrad *g) {
  Tensor *x;
  for (int i = 0; i < 2; i++) {
    if (!g->need[i]) continue;
    TRY(nc_operand(g, 1 - i, &x));
    TRY(nc_apply2(&g->d[i], OP_mul, g->g[0], x));
  }
  return NC_OK;
}

int nc_grad_outer(OperatorGrad *g) {
  const DType type = g->g[0]->dtype;
  Tensor *x, *t;
  int r;
  if (g->need[0]) {
    TRY(nc_operand(g, 1, &x));
    TRY(product(&g->d[0], g->g[0], x, type));
  }
  if (!g->need[1]) return NC_OK;
  TRY(nc_operand(g, 0, &x));
  TRY(nc_transposed(&t, g->g[0]));
  r = product(&g->d[1], t, x, type);
  nc_release(t);
  return r;
}

int nc_grad_addmm(OperatorGrad *g) {
  const double beta = nc_tofloat(g->arg[3].s), alpha = nc_tofloat(g->arg[4].s);
  Tensor *x, *scaled;
  int r = NC_OK;
  if (g->need[0] && beta != 0)
    TRY(nc_formula(&g->d[0], "g*n", g->g[0], NULL, NULL, NULL, beta));
  if (!g->need[1] && !g->need[2]) return NC_OK;
  TRY(nc_formula(&scaled, "g*n", g->g[0], NULL, NULL, NULL, alpha));
  if (g->need[1] && (r = nc_operand(g, 2, &x)) == NC_OK)
    r = left(&g->d[1], scaled, x);
  if (r == NC_OK && g->need[2] && (r = nc_operand(g, 1, &x)) == NC_OK)
    r = right(&g->d[2], x, scaled);
  nc_release(scaled);
  return r;
}
