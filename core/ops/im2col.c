/* SPDX-License-Identifier: MIT */
/*
** im2col.c - _unfold (im2col: the patches under a sliding window as columns)
** and _fold (col2im: the sum of such columns at their elements).  Each is the
** gradient of the other.  unfold and fold in Lua call them.
*/
#include "core/pointwise/temps.h"
#include "core/operator_grads.h"
#include "core/ops/conv.h"
#include "core/tape.h"
#include "core/op.h"

/* Reads kernel_size, dilation, padding and stride from a[0..3]. */
static int read_options(ConvGeometry *w, const int64_t size[2], const Arg *a) {
  TRY(nc_pair(w->kernel, &a[0], "kernel_size", 1));
  TRY(nc_pair(w->dilation, &a[1], "dilation", 1));
  TRY(nc_pair(w->pad, &a[2], "padding", 0));
  TRY(nc_pair(w->stride, &a[3], "stride", 1));
  for (int i = 0; i < 2; i++) {
    w->size[i] = size[i];
    TRY(nc_check_windows(w, i));
  }
  return nc_padded(w);
}

/* Checks that the columns of x are not more elements than a tensor can have. */
static int check_count(const Tensor *x, const ConvGeometry *w) {
  const int64_t all[] = { x->size[0],   x->size[1], w->kernel[0],
                          w->kernel[1], w->out[0],  w->out[1] };
  int64_t n;
  return nc_checksize(&n, x->dtype, 6, all);
}

/* Computes the columns from x, or with p->back x from the columns:
   c->out[0], of this size, from operand 0. */
static int run_im2col(Call *c, Im2colCall *p, int nd, const int64_t size[]) {
  const Tensor **from = p->back ? &p->columns : &p->x;
  const Device *d = nc_device(c->arg[0].t);
  Temps f = { 0 };
  Tensor *y = nc_temps_new(&f, c->arg[0].t, c->arg[0].t->dtype, nd, size);
  Tensor *dense = nc_temps_dense(&f, c->arg[0].t);
  *(p->back ? &p->x : &p->columns) = y;
  *from = dense;
  if (f.status == NC_OK && nc_numel(y) > 0) {
    nc_count(0, (nc_numel(y) + nc_numel(dense)) * nc_dtypesize(y->dtype));
    f.status = d->im2col(d, p);
  }
  return nc_temps_endcall(&f, c, y);
}

/* _unfold(x [n x c x h x w], ..): [n x c*kh*kw x windows] */
int nc_op__unfold(Call *c) {
  const Tensor *x = c->arg[0].t;
  Im2colCall p = { .back = 0 };
  int64_t size[3];
  TRY(nc_check_image_batch(c, 0, NC_OPERAND(0)));
  TRY(read_options(&p.at, x->size + 2, &c->arg[1]));
  TRY(check_count(x, &p.at));
  p.n = size[0] = x->size[0];
  p.c = x->size[1];
  size[1] = p.c * p.at.kernel[0] * p.at.kernel[1];
  size[2] = p.at.out[0] * p.at.out[1];
  return run_im2col(c, &p, 3, size);
}

/* Checks that x has the shape and type of columns of these windows. */
static int check_columns(const Tensor *x, const ConvGeometry *w) {
  const int64_t rows = w->kernel[0] * w->kernel[1];
  const int64_t columns = w->out[0] * w->out[1];
  if (x->nd != 3)
    return nc_fail(NC_ESHAPE, "{0} has %d dimensions, not 3", x->nd);
  if (!nc_is_real(x->dtype))
    return nc_fail(NC_EDTYPE, "{0} is %s, a float dtype is needed",
                   nc_dtypename(x->dtype));
  if (x->size[1] % rows == 0 && x->size[2] == columns) return NC_OK;
  return nc_fail(NC_ESHAPE,
                 "{0} must have a multiple of %lld rows and %lld "
                 "columns",
                 (long long)rows, (long long)columns);
}

/* _fold(columns [n x c*kh*kw x windows], size, ..): [n x c x h x w] */
int nc_op__fold(Call *c) {
  const Tensor *x = c->arg[0].t;
  Im2colCall p = { .back = 1 };
  int64_t size[4];
  TRY(nc_pair(size + 2, &c->arg[1], "size", 1));
  TRY(read_options(&p.at, size + 2, &c->arg[2]));
  TRY(check_columns(x, &p.at));
  p.n = size[0] = x->size[0];
  p.c = size[1] = x->size[1] / (p.at.kernel[0] * p.at.kernel[1]);
  return run_im2col(c, &p, 4, size);
}

/*
** Gradients
*/
/* g->d[0] = op(gradient, size if not NULL, options); the options are those
   of the differentiated call from argument `from' on. */
static int call_for_grad(OperatorGrad *g, Operator op, int64_t *size,
                         int from) {
  Call c = nc_callon(op, g->g[0]);
  int to = 1;
  if (size) nc_setlist(&c, to++, 2, size);
  for (int i = 0; i < 4; i++) c.arg[to + i] = g->arg[from + i];
  return nc_callfirst(&g->d[0], &c);
}

int nc_grad__unfold(OperatorGrad *g) {
  return call_for_grad(g, OPERATOR__fold, g->in[0].meta.size + 2, 1);
}

int nc_grad__fold(OperatorGrad *g) {
  return call_for_grad(g, OPERATOR__unfold, NULL, 2);
}
