/* SPDX-License-Identifier: MIT */
/*
** prod_grad.c - gradients of prod and cumprod, exact where factors are zero.
**
** The gradient to a factor is the product of the others: g*y/x, if no factor is
** zero.  With zeros a division is replaced by a mask, which is constant: so a
** gradient that is itself recorded computes the products of the others without
** division if there is a zero.
*/
#include <string.h>

#include "core/pointwise/temps.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"

static int has_zero(Temps *w, Tensor *x) {
  Tensor *all;
  Scalar v = { NC_BOOL, { 1 }, 0, 0 };
  if (w->status != NC_OK) return 0;
  all = nc_temps_reduce(w, OP_all, x, ~0u, 0);
  if (w->status == NC_OK) w->status = nc_item(&v, all);
  return nc_tofloat(v) == 0;
}

/* Returns the exclusive cumprod of x: for each element the product of those
   before it along dim. */
static Tensor *exclusive_cumprod(Temps *w, Tensor *x, int dim) {
  Tensor *part[2] = { NULL, NULL }, *y;
  int64_t size[NC_MAXDIM];
  if (w->status != NC_OK) return NULL;
  memcpy(size, x->size, sizeof size);
  size[dim] = 1;
  part[0] = nc_temps_full(w, x, x->dtype, x->nd, size, nc_int(1));
  y = nc_temps_call1(w, OPERATOR_cumprod, x, dim + 1, 0);
  if (w->status == NC_OK)
    part[1] = nc_temps_narrow(w, y, dim, 0, x->size[dim] - 1);
  return w->status == NC_OK ? nc_temps_cat(w, part, 2, dim) : NULL;
}

/* dims[] = a permutation of the dimensions of x, 1-based, that moves those
   of the mask to the end; back[] = its inverse. */
static void dim_order(int64_t dims[], int64_t back[], const Tensor *x,
                      unsigned mask) {
  int n = 0;
  for (int last = 0; last < 2; last++)
    for (int d = 0; d < x->nd; d++)
      if ((int)(mask >> d & 1) == last) dims[n++] = d + 1;
  for (int d = 0; d < x->nd; d++) back[dims[d] - 1] = d + 1;
}

static Tensor *permute(Temps *w, Tensor *x, const int64_t dims[]) {
  Call c = nc_callon(OPERATOR_permute, x);
  nc_setlist(&c, 1, w->status == NC_OK ? x->nd : 0, dims);
  return nc_temps_call(w, &c);
}

/* Returns for each element of x the product of the others over the
   dimensions: exclusive cumprods from both ends, multiplied. */
static Tensor *product_of_others(Temps *w, Tensor *x, unsigned mask) {
  int64_t dims[NC_MAXDIM], back[NC_MAXDIM], size[NC_MAXDIM] = { 1 };
  Tensor *moved, *flat, *y;
  int kept = 0;
  dim_order(dims, back, x, mask);
  moved = permute(w, x, dims);
  while (kept < x->nd && !(mask >> (dims[kept] - 1) & 1)) kept++;
  for (int d = 0; d < kept; d++) size[d] = x->size[dims[d] - 1];
  size[kept] = -1;
  flat = nc_temps_reshape(w, moved, kept + 1, size);
  y = exclusive_cumprod(w, flat, kept);
  if (w->status == NC_OK)
    y = nc_temps_op2(
        w, OP_mul, y,
        nc_temps_flip(
            w, exclusive_cumprod(w, nc_temps_flip(w, flat, kept), kept), kept));
  if (w->status == NC_OK) y = nc_temps_reshape(w, y, moved->nd, moved->size);
  return permute(w, y, back);
}

/* Returns g*y/x.  In a slice with a single zero only that element has a
   gradient, in one with more no element has. */
static Tensor *grad_by_division(Temps *w, Tensor *g, Tensor *x, unsigned dims) {
  Tensor *zero = nc_temps_opnumber(w, OP_eq, x, nc_int(0)), *n, *p, *lone;
  n = nc_temps_reduce(w, OP_sum, zero, dims, 1);
  p = nc_temps_wherenumber(w, zero, nc_int(1), x);
  g = nc_temps_op2(w, OP_mul, g, nc_temps_reduce(w, OP_prod, p, dims, 1));
  lone = nc_temps_op2(w, OP_logical_and, zero,
                      nc_temps_opnumber(w, OP_eq, n, nc_int(1)));
  lone = nc_temps_where(w, lone, g, nc_int(0));
  return nc_temps_op3(w, OP_where, nc_temps_opnumber(w, OP_eq, n, nc_int(0)),
                      nc_temps_op2(w, OP_true_divide, g, x), lone);
}

int nc_prod_grad(Tensor **d, Tensor *g, Tensor *x, Tensor *y, unsigned dims) {
  Temps w = { 0 };
  (void)y;
  if (nc_context->no_grad == 0 && x->nd > 0 && nc_numel(x) > 0 &&
      has_zero(&w, x))
    g = nc_temps_op2(&w, OP_mul, g, product_of_others(&w, x, dims));
  else g = grad_by_division(&w, g, x, dims);
  return nc_temps_end(&w, d, g);
}

/*
** cumprod
*/
/* Returns the gradient of cumprod by division.  Before the first zero of a
   slice it is reversed cumsum(g*y)/x; at the first zero the same with
   products that leave out this factor; after it all products are 0. */
static Tensor *cumprod_grad_by_division(Temps *w, Tensor *g, Tensor *x,
                                        Tensor *y, int dim) {
  Tensor *zero = nc_temps_opnumber(w, OP_eq, x, nc_int(0)), *first, *rest;
  Tensor *seen = nc_temps_call1(w, OPERATOR_cumsum, zero, dim + 1, 0);
  first = nc_temps_op2(w, OP_logical_and, zero,
                       nc_temps_opnumber(w, OP_eq, seen, nc_int(1)));
  rest = nc_temps_wherenumber(w, first, nc_int(1), x);
  rest = nc_temps_call1(w, OPERATOR_cumprod, rest, dim + 1, 0);
  rest = nc_temps_reversed(w, OPERATOR_cumsum, nc_temps_op2(w, OP_mul, g, rest),
                           dim);
  rest = nc_temps_where(w, first, rest, nc_int(0));
  y = nc_temps_reversed(w, OPERATOR_cumsum, nc_temps_op2(w, OP_mul, g, y), dim);
  y = nc_temps_op2(w, OP_true_divide, y,
                   nc_temps_wherenumber(w, zero, nc_int(1), x));
  return nc_temps_op3(w, OP_where, nc_temps_opnumber(w, OP_eq, seen, nc_int(0)),
                      y, rest);
}

/* Returns it without division: the sum over i >= k of g[i] * product before
   k * product between k and i; the last product as a matrix. */
static Tensor *cumprod_grad_by_matrix(Temps *w, Tensor *g, Tensor *x, int dim) {
  const int64_t n = x->size[dim], nd = x->nd;
  const int64_t column[] = { n, 1 };
  Tensor *at = nc_temps_range(w, x, 1, n), *down, *m, *s;
  down = nc_temps_reshape(w, at, 2, column);
  s = exclusive_cumprod(w, x, dim);
  x = nc_temps_call1(w, OPERATOR_transpose, x, dim + 1,
                     -1); /* the scanned dimension becomes the last */
  g = nc_temps_call1(w, OPERATOR_transpose, g, dim + 1, -1);
  m = nc_temps_where(w, nc_temps_op2(w, OP_gt, at, down),
                     nc_temps_call1(w, OPERATOR_unsqueeze, x, nd, 0),
                     nc_int(1));
  m = nc_temps_call1(w, OPERATOR_cumprod, m, nd + 1, 0);
  m = nc_temps_where(w, nc_temps_op2(w, OP_ge, at, down), m, nc_int(0));
  m = nc_temps_op2(w, OP_mul, m,
                   nc_temps_call1(w, OPERATOR_unsqueeze, g, nd, 0));
  m = nc_temps_reduce(w, OP_sum, m, 1u << nd, 0);
  return nc_temps_op2(w, OP_mul, s,
                      nc_temps_call1(w, OPERATOR_transpose, m, dim + 1, -1));
}

int nc_grad_cumprod(OperatorGrad *g) {
  Tensor *x, *y, *d;
  Temps w = { 0 };
  int dim;
  TRY(nc_operand(g, 0, &x));
  TRY(nc_result(g, 0, &y));
  TRY(nc_dim(&dim, g->arg[1].s.i, y->nd));
  x = nc_temps_cast(&w, x, y->dtype);
  Tensor *grad = g->g[0]; /* between two conj: see ops.def */
  const int complex = nc_is_complex(y->dtype);
  if (complex) grad = nc_temps_op1(&w, OP_conj, grad);
  if (nc_context->no_grad == 0 && y->nd > 0 && y->nd < NC_MAXDIM &&
      nc_numel(y) > 0 && has_zero(&w, x))
    d = cumprod_grad_by_matrix(&w, grad, x, dim);
  else d = cumprod_grad_by_division(&w, grad, x, y, dim);
  if (complex) d = nc_temps_op1(&w, OP_conj, d);
  return nc_temps_end(&w, &g->d[0], d);
}
