/* SPDX-License-Identifier: MIT */
/*
** max_pool.c - _max_pool: the largest elements of windows over two dimensions
** and their positions; and its gradient _max_pool_back, which adds the gradient
** at these positions.  The gradient of _max_pool_back gathers from them.
** max_pool1d and max_pool2d call it from Lua.
*/
#include "core/pointwise/temps.h"
#include "core/operator_grads.h"
#include "core/ops/conv.h"
#include "core/tape.h"
#include "core/op.h"
#include "core/ops/sort.h"

/* Returns whether the window at this position of dimension i has an element
   of the input.  A dilated window can have all its elements in the padding. */
static int has_element(const ConvGeometry *w, int i, int64_t place) {
  const int64_t from = place * w->stride[i] - w->pad[i];
  const int64_t k = nc_firstin(w, i, from);
  return k < w->kernel[i] && from + k * w->dilation[i] < w->size[i];
}

/* Returns the number of windows with ceil_mode: the last may extend beyond
   the padding, but must begin before the end of the plane, as in PyTorch. */
static int64_t ceil_windows(const ConvGeometry *w, int i) {
  const int64_t reach = w->dilation[i] * (w->kernel[i] - 1) + 1;
  const int64_t room = w->size[i] + 2 * w->pad[i] - reach;
  int64_t n = room < -(w->stride[i] - 1)
                  ? 0
                  : (room + w->stride[i] - 1) / w->stride[i] + 1;
  return n - ((n - 1) * w->stride[i] >= w->size[i] + w->pad[i]);
}

/* Checks dimension i of a plane of known size, and sets the number of
   windows. */
static int set_windows(ConvGeometry *w, int i, int ceil) {
  const int64_t reach = w->dilation[i] * (w->kernel[i] - 1) + 1;
  if (w->pad[i] > w->kernel[i] / 2)
    return nc_fail(NC_EVALUE,
                   "padding is %lld, at most half of the kernel "
                   "size %lld is allowed",
                   (long long)w->pad[i], (long long)w->kernel[i]);
  w->out[i] = 0;
  if (w->size[i] > 0) w->out[i] = ceil ? ceil_windows(w, i) : nc_windows(w, i);
  if (w->out[i] < 1)
    return nc_fail(NC_ESHAPE,
                   "a window of %lld does not fit in %lld elements "
                   "with padding %lld",
                   (long long)reach, (long long)w->size[i],
                   (long long)w->pad[i]);
  for (int64_t k = 0; k < w->out[i]; k++)
    if (!has_element(w, i, k))
      return nc_fail(NC_ESHAPE, "window %lld contains only padding",
                     (long long)k + 1);
  return NC_OK;
}

/* Reads kernel_size, stride, padding, dilation and ceil_mode from a[0..4]. */
static int read_options(ConvGeometry *w, const int64_t size[2], const Arg *a) {
  TRY(nc_pair(w->kernel, &a[0], "kernel_size", 1));
  TRY(nc_pair(w->stride, &a[1], "stride", 1));
  TRY(nc_pair(w->pad, &a[2], "padding", 0));
  TRY(nc_pair(w->dilation, &a[3], "dilation", 1));
  for (int i = 0; i < 2; i++) {
    w->size[i] = size[i];
    TRY(set_windows(w, i, (int)a[4].s.i));
  }
  return NC_OK;
}

/* Returns a new tensor [n x c x size] with n and c of x. */
static Tensor *new_planes(Temps *f, const Tensor *x, DType type,
                          const int64_t size[2]) {
  const int64_t all[4] = { x->size[0], x->size[1], size[0], size[1] };
  return nc_temps_new(f, x, type, 4, all);
}

/* Makes the request, unless a tensor is empty. */
static void run_max_pool(Temps *f, MaxPoolCall *p) {
  const int64_t *k = p->windows.kernel;
  double looks;
  if (f->status != NC_OK) return;
  p->planes = p->y->size[0] * p->y->size[1];
  if (nc_numel(p->back ? p->x : p->y) == 0) return;
  looks = (double)nc_numel(p->y);
  if (!p->back) looks *= (double)k[0] * (double)k[1];
  nc_count(looks < 9e18 ? (int64_t)looks : INT64_MAX,
           (nc_numel(p->x) + nc_numel(p->y)) * nc_dtypesize(p->x->dtype) +
               nc_numel(p->at) * nc_dtypesize(DT_i64));
  f->status = nc_device(p->x)->max_pool(nc_device(p->x), p);
}

int nc_op__max_pool(Call *c) {
  Tensor *x = c->arg[0].t, *y, *at;
  MaxPoolCall p = { .back = 0 };
  Temps f = { 0 };
  TRY(nc_check_image_batch(c, 0, NC_OPERAND(0)));
  TRY(read_options(&p.windows, x->size + 2, &c->arg[1]));
  p.x = nc_temps_dense(&f, x);
  p.y = y = new_planes(&f, x, x->dtype, p.windows.out);
  p.at = at = new_planes(&f, x, DT_i64, p.windows.out);
  run_max_pool(&f, &p);
  nc_temps_result(&f, &c->out[0], y);
  return nc_temps_end(&f, &c->out[1], at);
}

/* Checks that the gradient and the positions fit each other and the windows. */
static int check_fit(const Call *c, const ConvGeometry *w) {
  const Tensor *g = c->arg[0].t, *at = c->arg[1].t;
  const Device *d;
  TRY(nc_samedevice(&d, c->arg, 2));
  if (at->dtype != DT_i64)
    return nc_fail(NC_EDTYPE, "positions are int64, not %s",
                   nc_dtypename(at->dtype));
  for (int i = 0; i < 4; i++)
    if (at->nd != 4 || at->size[i] != g->size[i] ||
        (i > 1 && g->size[i] != w->out[i - 2]))
      return nc_fail(NC_ESHAPE,
                     "such windows give %lld x %lld elements and "
                     "positions",
                     (long long)w->out[0], (long long)w->out[1]);
  return NC_OK;
}

int nc_op__max_pool_back(Call *c) {
  Tensor *g = c->arg[0].t, *x;
  int64_t size[2];
  MaxPoolCall p = { .back = 1 };
  Temps f = { 0 };
  TRY(nc_check_image_batch(c, 0, NC_OPERAND(0)));
  TRY(nc_pair(size, &c->arg[2], "size", 1));
  TRY(read_options(&p.windows, size, &c->arg[3]));
  TRY(check_fit(c, &p.windows));
  p.y = nc_temps_dense(&f, g);
  p.at = nc_temps_dense(&f, c->arg[1].t);
  p.x = x = new_planes(&f, g, g->dtype, size);
  run_max_pool(&f, &p);
  return nc_temps_endcall(&f, c, x);
}

/*
** Gradients
*/
int nc_grad__max_pool(OperatorGrad *g) {
  Call c = nc_callon(OPERATOR__max_pool_back, g->g[0]);
  c.arg[1].present = 1;
  TRY(nc_result(g, 1, &c.arg[1].t));
  nc_setlist(&c, 2, 2, g->in[0].meta.size + 2);
  for (int i = 1; i <= 5; i++) c.arg[2 + i] = g->arg[i];
  return nc_callfirst(&g->d[0], &c);
}

/* Returns t [n x c x h x w] as [n x c x h*w]. */
static Tensor *join_plane(Temps *f, Tensor *t) {
  const int64_t size[3] = { t->size[0], t->size[1], t->size[2] * t->size[3] };
  return nc_temps_reshape(f, t, 3, size);
}

int nc_grad__max_pool_back(OperatorGrad *g) {
  Tensor *at, *x, *row, *y = NULL;
  Temps f = { 0 };
  TRY(nc_operand(g, 1, &at));
  x = join_plane(&f, g->g[0]);
  row = join_plane(&f, at);
  if (f.status == NC_OK) nc_temps_add(&f, nc_gatherdim(&y, x, row, 2), &y);
  return nc_temps_end(&f, &g->d[0], nc_temps_reshape(&f, y, at->nd, at->size));
}
