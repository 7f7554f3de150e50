/* SPDX-License-Identifier: MIT */
/*
** masked.c - masked_fill, masked_select, masked_scatter.  nonzero.c finds the
** true elements.
*/
#include "core/indexing/advanced_index.h"
#include "core/op.h"
#include "core/indexing/index_select.h"
#include "core/operators.h"
#include "core/ops.h"

static void check_mask(Temps *w, const Tensor *mask) {
  if (w->status != NC_OK || mask->dtype == DT_b8) return;
  w->status = nc_fail(NC_EDTYPE, "the mask must be bool, not %s",
                      nc_dtypename(mask->dtype));
  nc_hint("{1}:to(\"bool\")");
}

/* Returns the value as a 0-d tensor of the type and on the device of x. */
static Tensor *fill_value(Temps *w, const Tensor *x, const Arg *value) {
  if (w->status != NC_OK) return NULL;
  if (value->t == NULL) return nc_temps_full(w, x, x->dtype, 0, NULL, value->s);
  if (value->t->nd > 0) {
    w->status = nc_fail(NC_ESHAPE, "the value must be a number or a tensor "
                                   "without dimensions");
    return NULL;
  }
  return nc_temps_cast(w, nc_temps_todevice(w, value->t, nc_device(x)),
                       x->dtype);
}

/* masked_fill and masked_fill_: where(mask, value, x), a new tensor or x. */
int nc_op_masked_fill(Call *c) {
  Tensor *x = c->arg[0].t, *y = NULL;
  Tensor *out = c->op == OPERATOR_masked_fill_ ? x : NULL;
  Temps w = { 0 };
  check_mask(&w, c->arg[1].t);
  Arg in[3] = { { .t = c->arg[1].t },
                { .t = fill_value(&w, x, &c->arg[2]) },
                { .t = x } };
  if (w.status == NC_OK) {
    int r = nc_apply(&y, OP_where, in, NULL, out);
    y = nc_temps_add(&w, r, &y);
  }
  return nc_temps_endcall(&w, c, y);
}

/* Expands x and the mask to the shape to which they broadcast. */
static void broadcast_mask(Temps *w, Tensor **x, Tensor **mask) {
  const Arg in[2] = { { .t = *x }, { .t = *mask } };
  int64_t size[NC_MAXDIM];
  int nd = 0;
  if (w->status == NC_OK) w->status = nc_broadcast(in, 2, &nd, size);
  *x = nc_temps_expand(w, *x, nd, size);
  *mask = nc_temps_expand(w, *mask, nd, size);
}

int nc_op_masked_select(Call *c) {
  Tensor *x = c->arg[0].t, *mask = c->arg[1].t, *y = NULL;
  Temps w = { 0 };
  check_mask(&w, mask);
  broadcast_mask(&w, &x, &mask);
  if (w.status == NC_OK) {
    const Index ix = { .kind = IX_TENSOR, .t = mask };
    int r = nc_index(&y, x, &ix, 1);
    y = nc_temps_add(&w, r, &y);
  }
  return nc_temps_endcall(&w, c, y);
}

/* Returns the number of true elements of the mask.  Waits for the device. */
static int64_t count_true(Temps *w, Tensor *mask) {
  Scalar n = nc_int(0);
  Tensor *count = nc_temps_reduce(w, OP_count_nonzero, mask, ~0u, 0);
  if (w->status == NC_OK) w->status = nc_item(&n, count);
  return n.i;
}

int nc_op_masked_scatter_(Call *c) {
  Tensor *x = c->arg[0].t, *mask = c->arg[1].t, *src = c->arg[2].t;
  Temps w = { 0 };
  int64_t n;
  check_mask(&w, mask);
  if (w.status == NC_OK && x->dtype != src->dtype)
    w.status = nc_fail(NC_EDTYPE, "source is %s, {0} is %s",
                       nc_dtypename(src->dtype), nc_dtypename(x->dtype));
  mask = nc_temps_expand(&w, mask, x->nd, x->size);
  n = count_true(&w, mask);
  if (w.status == NC_OK && n > nc_numel(src))
    w.status = nc_fail(NC_ESHAPE,
                       "the mask is true at %lld places, but source has only "
                       "%lld elements",
                       (long long)n, (long long)nc_numel(src));
  if (w.status == NC_OK && n > 0) {
    const Index ix = { .kind = IX_TENSOR, .t = mask };
    src = nc_temps_narrow(&w, nc_temps_flatten(&w, src), 0, 0, n);
    if (w.status == NC_OK) w.status = nc_setindex(x, &ix, 1, src, nc_int(0));
  }
  return nc_temps_endcall(&w, c, x);
}

int nc_op_masked_scatter(Call *c) {
  Tensor *x = c->arg[0].t, *mask = c->arg[1].t;
  Call one = *c;
  Temps w = { 0 };
  broadcast_mask(&w, &x, &mask);
  one.op = OPERATOR_masked_scatter_;
  one.arg[0].t = nc_temps_op1(&w, OP_clone, x);
  return nc_temps_endcall(&w, c, nc_temps_call(&w, &one));
}
