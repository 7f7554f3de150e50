/* SPDX-License-Identifier: MIT */
/*
** byte_product.c - products by matrices of int8: _int_mm, whose sums are int32,
** and _weight_int8pack_mm, whose weight has a scale for each row.
*/
#include "core/cpu/product/blas.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/pointwise/temps.h"

static int check_matrix(const Call *c, int i, DType type) {
  const Tensor *t = c->arg[i].t;
  if (type != t->dtype)
    return nc_fail(NC_EDTYPE, "%s is %s, not %s", nc_operandtext(i),
                   nc_dtypename(t->dtype), nc_dtypename(type));
  if (t->nd != 2)
    return nc_fail(NC_ESHAPE, "%s has %d dimensions, not 2", nc_operandtext(i),
                   t->nd);
  return NC_OK;
}

static void count(const ByteProductCall *p) {
  const int64_t m = p->x->size[0], n = p->w->size[0], k = p->w->size[1];
  nc_count(2 * m * n * k, m * k * nc_dtypesize(p->x->dtype) + n * k +
                              m * n * nc_dtypesize(p->y->dtype));
}

/* *y = the product by the device's own loops, a new tensor. */
static int run_own(Tensor **y, const Device *d, ByteProductCall *p,
                   DType type) {
  const int64_t size[] = { p->x->size[0], p->w->size[0] };
  int r;
  TRY(nc_new(y, d, type, 2, size));
  p->y = *y;
  if (nc_numel(*y) == 0) return NC_OK;
  if (p->w->size[1] == 0) r = nc_fill(*y, nc_int(0));
  else {
    count(p);
    r = d->byte_product(d, p);
  }
  return nc_release_failed(r, y, 1);
}

int nc_op__int_mm(Call *c) {
  Tensor *a = c->arg[0].t, *b = c->arg[1].t, *y = NULL;
  const Device *d;
  Temps w = { 0 };
  TRY(nc_onedevice(&d, c->arg, 2));
  for (int i = 0; i < 2; i++) TRY(check_matrix(c, i, DT_i8));
  if (a->size[1] != b->size[0])
    return nc_fail(NC_ESHAPE,
                   "inner sizes differ: {0} has %lld columns, {1} has %lld "
                   "rows",
                   (long long)a->size[1], (long long)b->size[0]);
  if (d->byte_product) {
    Tensor *columns = nc_temps_dense(&w, nc_temps_transposed(&w, b));
    ByteProductCall p = { .x = a, .w = columns };
    if (w.status == NC_OK) y = nc_temps_add(&w, run_own(&y, d, &p, DT_i32), &y);
  } else {
    a = nc_temps_cast(&w, a, DT_i32);
    b = nc_temps_cast(&w, b, DT_i32);
    if (w.status == NC_OK)
      y = nc_temps_add(&w, nc_product(&y, a, b, nc_int(1), NULL, nc_int(0)),
                       &y);
  }
  return nc_temps_end(&w, &c->out[0], y);
}

static int check_scaled(const Call *c) {
  const Tensor *x = c->arg[0].t, *weight = c->arg[1].t, *scale = c->arg[2].t;
  if (!nc_is_real(x->dtype))
    return nc_fail(NC_EDTYPE, "{0} is %s, not floating point",
                   nc_dtypename(x->dtype));
  TRY(check_matrix(c, 0, x->dtype));
  TRY(check_matrix(c, 1, DT_i8));
  if (scale->dtype != x->dtype)
    return nc_fail(NC_EDTYPE, "dtypes differ: {0} is %s, {2} is %s",
                   nc_dtypename(x->dtype), nc_dtypename(scale->dtype));
  if (x->size[1] != weight->size[1])
    return nc_fail(NC_ESHAPE, "{0} has %lld features, {1} takes %lld",
                   (long long)x->size[1], (long long)weight->size[1]);
  if (scale->nd == 1 && scale->size[0] == weight->size[0]) return NC_OK;
  return nc_fail(NC_ESHAPE,
                 "{2} must have %lld elements, one for each row of "
                 "{1}",
                 (long long)weight->size[0]);
}

int nc_op__weight_int8pack_mm(Call *c) {
  Tensor *x = c->arg[0].t, *weight = c->arg[1].t, *y = NULL;
  const Device *d;
  Temps w = { 0 };
  TRY(nc_onedevice(&d, c->arg, 3));
  TRY(check_scaled(c));
  if (d->byte_product && x->dtype != DT_f64) {
    ByteProductCall p = { .x = x,
                          .w = nc_temps_dense(&w, weight),
                          .scale = c->arg[2].t };
    if (w.status == NC_OK)
      y = nc_temps_add(&w, run_own(&y, d, &p, x->dtype), &y);
  } else {
    weight = nc_temps_transposed(&w, nc_temps_cast(&w, weight, x->dtype));
    if (w.status == NC_OK)
      y = nc_temps_add(
          &w, nc_product(&y, x, weight, nc_int(1), NULL, nc_int(0)), &y);
    y = nc_temps_op2(&w, OP_mul, y, c->arg[2].t);
  }
  return nc_temps_end(&w, &c->out[0], y);
}
