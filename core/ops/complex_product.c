/* SPDX-License-Identifier: MIT */
/*
** complex_product.c - products of complex matrices as one product of real ones,
** of twice the inner size and twice the columns: a row of a is read as its
** parts, and each element u + vi of b becomes
**
**     u  v
**    -v  u
**
** so that the rows of the product are the parts of complex numbers.  That is
** the work of a complex product, by the same kernels as a real one.
*/
#include "core/cpu/product/blas.h"
#include "core/op.h"
#include "core/ops.h"

/* *y = a view of x, whose rows lie dense, with the parts as columns. */
static int parts_as_columns(Tensor **y, const Tensor *x) {
  const int last = x->nd - 1;
  TRY(nc_alias(y, x));
  (*y)->dtype = nc_real_dtype(x->dtype);
  (*y)->offset = 2 * x->offset;
  (*y)->size[last] = 2 * x->size[last];
  (*y)->step[last] = 1;
  for (int d = 0; d < last; d++) (*y)->step[d] = 2 * x->step[d];
  return NC_OK;
}

/* *y = x, of which a matrix that repeats along a batch dimension is there
   once. */
static int without_repeats(Tensor **y, const Tensor *x) {
  TRY(nc_alias(y, x));
  for (int d = 0; d < x->nd - 2; d++)
    if (x->step[d] == 0) (*y)->size[d] = 1;
  return NC_OK;
}

/* The batch dimensions of x, which repeat in y. */
static void repeat(Tensor *y, const Tensor *x) {
  for (int d = 0; d < x->nd - 2; d++) {
    if (y->size[d] != x->size[d]) y->step[d] = 0;
    y->size[d] = x->size[d];
  }
}

/* *y = a as a real matrix. */
static int left(Tensor **y, const Tensor *a) {
  Tensor *once = NULL, *dense = NULL;
  int r = without_repeats(&once, a);
  *y = NULL;
  if (r == NC_OK) r = nc_dense(&dense, once);
  if (r == NC_OK) r = parts_as_columns(y, dense);
  if (r == NC_OK) repeat(*y, a);
  nc_release(once);
  nc_release(dense);
  return r;
}

/* The rows of `pairs' from `first' on, every second one. */
static int every_second_row(Tensor **y, Tensor *pairs, int first) {
  const int row = pairs->nd - 2;
  TRY(nc_alias(y, pairs));
  (*y)->offset += first * pairs->step[row];
  (*y)->size[row] /= 2;
  (*y)->step[row] *= 2;
  return NC_OK;
}

/* Fills pairs with b, and below each row b times i. */
static int fill_pairs(Tensor *pairs, Tensor *b) {
  const Arg in[2] = { { .t = b }, { .s = nc_complex(0, 1) } };
  Tensor *rows = NULL;
  int r = every_second_row(&rows, pairs, 0);
  if (r == NC_OK) r = nc_copy(rows, b);
  nc_release(rows);
  TRY(r);
  TRY(every_second_row(&rows, pairs, 1));
  r = nc_run_pointwise(rows, OP_mul, 0, b->dtype, in, 2, NULL);
  nc_release(rows);
  return r;
}

/* *y = b as a real matrix of twice the rows. */
static int right(Tensor **y, const Tensor *b) {
  Tensor *once = NULL, *pairs = NULL;
  int64_t size[NC_MAXDIM];
  int r = without_repeats(&once, b);
  *y = NULL;
  if (r == NC_OK) {
    for (int d = 0; d < b->nd; d++) size[d] = once->size[d];
    size[b->nd - 2] *= 2;
    r = nc_new(&pairs, nc_device(b), b->dtype, b->nd, size);
  }
  if (r == NC_OK && nc_numel(pairs) > 0) r = fill_pairs(pairs, once);
  if (r == NC_OK) r = parts_as_columns(y, pairs);
  if (r == NC_OK) repeat(*y, b);
  nc_release(once);
  nc_release(pairs);
  return r;
}

int nc_complex_product(const BmmCall *p, const Device *d) {
  Tensor *a = NULL, *b = NULL, *y = NULL;
  int r = left(&a, p->a);
  if (r == NC_OK) r = right(&b, p->b);
  if (r == NC_OK) r = parts_as_columns(&y, p->y);
  if (r == NC_OK) {
    const BmmCall real = { a, b, y, p->alpha, p->beta };
    r = d->bmm(d, &real);
  }
  nc_release(a);
  nc_release(b);
  nc_release(y);
  return r;
}
