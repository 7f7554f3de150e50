/* SPDX-License-Identifier: MIT */
/*
** bmm.c - the product of two batches of matrices: allocates the result and
** makes the request `bmm' to the device.  Called by matmul.c.
*/
#include "core/cpu/product/blas.h"
#include "core/op.h"
#include "core/ops.h"

/* Counts flops and bytes for the timing.  In double, because the sizes of
   expanded views may multiply to more than an int64 holds. */
static void count(const BmmCall *p) {
  const Tensor *const x[3] = { p->a, p->b, p->y };
  double flops = 2.0 * (double)p->a->size[p->a->nd - 1];
  int64_t bytes = 0;
  for (int i = 0; i < p->y->nd; i++) flops *= (double)p->y->size[i];
  for (int j = 0; j < 3; j++)
    bytes += nc_numel(x[j]) * nc_dtypesize(x[j]->dtype);
  nc_count(flops < 9e18 ? (int64_t)flops : INT64_MAX, bytes);
}

/* y = beta * addend.  With products of no elements BLAS adds 0, which makes 0
   of -0. */
static int scale(Tensor *y, Tensor *addend, Scalar beta) {
  const Arg in[2] = { { .t = y }, { .s = beta } };
  Tensor *result = NULL;
  int r = nc_copy(y, addend);
  if (r == NC_OK && nc_tofloat(beta) != 1)
    r = nc_apply(&result, OP_mul, in, NULL, y);
  nc_release(result);
  return r;
}

/* Fills p->y, a new tensor.  An addend with beta = 0 is not read, nor are
   matrices with alpha = 0, so that their nan and inf do not reach the result
   (as in BLAS): such a product is one of inner size 0. */
static int fill(BmmCall *p, const Device *d, Tensor *addend) {
  Tensor a = *p->a, b = *p->b;
  if (nc_tofloat(p->alpha) == 0) {
    a.size[a.nd - 1] = b.size[b.nd - 2] = 0;
    p->a = &a;
    p->b = &b;
  }
  if (nc_numel(p->y) == 0) return NC_OK;
  if (addend && nc_tofloat(p->beta) != 0) {
    if (p->a->size[a.nd - 1] == 0) return scale(p->y, addend, p->beta);
    TRY(nc_copy(p->y, addend));
  } else p->beta = nc_int(0);
  count(p);
  return nc_is_complex(p->y->dtype) ? nc_complex_product(p, d) : d->bmm(d, p);
}

/* *y = alpha * a*b + beta * addend, a new tensor.  a and b are [.. x n x k]
   and [.. x k x m] with equal batch dimensions; addend broadcasts to the
   result, or is NULL.  The caller has checked shapes and types; devices are
   checked here. */
int nc_product(Tensor **y, Tensor *a, Tensor *b, Scalar alpha, Tensor *addend,
               Scalar beta) {
  const Arg in[3] = { { .t = addend ? addend : a }, /* as in the call */
                      { .t = addend ? a : b },
                      { .t = addend ? b : NULL } };
  BmmCall p = { .a = a, .b = b, .alpha = alpha, .beta = beta };
  int64_t size[NC_MAXDIM];
  const Device *d;
  *y = NULL;
  TRY(nc_samedevice(&d, in, 3));
  for (int i = 0; i < a->nd - 1; i++) size[i] = a->size[i];
  size[a->nd - 1] = b->size[b->nd - 1];
  TRY(nc_new(y, d, a->dtype, a->nd, size));
  p.y = *y;
  return nc_release_failed(fill(&p, d, addend), y, 1);
}
