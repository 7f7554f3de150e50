/* SPDX-License-Identifier: MIT */
/*
** view_grad.c - gradients of views, and of writes into views.
**
** A view is a linear map given by its geometry: sizes, strides and offset in
** its base.  Its gradient (unview) adds g into zeros of the shape of the base,
** and the gradient of that is the view again.  A write into a view replaces a
** part of the base: the gradient to the old base is zero in that part, the
** gradient to the value is the view of the gradient.
*/
#include <string.h>

#include "core/tape.h"
#include "core/op.h"

void nc_geometry(Geometry *g, const Tensor *x, const Tensor *view) {
  g->xnd = x->nd;
  g->nd = view->nd;
  memcpy(g->xsize, x->size, sizeof g->xsize);
  memcpy(g->xstep, x->step, sizeof g->xstep);
  memcpy(g->size, view->size, sizeof g->size);
  memcpy(g->step, view->step, sizeof g->step);
  g->offset = view->offset - x->offset;
}

int nc_denselike(Tensor **y, const Tensor *x) {
  int64_t n = 1;
  TRY(nc_alias(y, x));
  (*y)->offset = 0;
  for (int d = x->nd - 1; d >= 0; d--) {
    (*y)->step[d] = n;
    n *= x->size[d] > 1 ? x->size[d] : 1;
  }
  return NC_OK;
}

/* *y = the view of x, whose strides are those of the geometry. */
static int viewof(Tensor **y, const Tensor *x, const Geometry *g) {
  TRY(nc_alias(y, x));
  (*y)->nd = g->nd;
  memcpy((*y)->size, g->size, sizeof g->size);
  memcpy((*y)->step, g->step, sizeof g->step);
  (*y)->offset = x->offset + g->offset;
  return NC_OK;
}

/* Returns whether x has the strides of the base. */
static int lies(const Tensor *x, const Geometry *g) {
  for (int d = 0; d < g->xnd; d++)
    if (x->size[d] > 1 && x->step[d] != g->xstep[d]) return 0;
  return 1;
}

/* *y = a new tensor with the sizes and strides of the base, uninitialized. */
static int newbase(Tensor **y, const Tensor *like, const Geometry *g) {
  TRY(nc_new(y, nc_device(like), like->dtype, g->xnd, g->xsize));
  memcpy((*y)->step, g->xstep, sizeof g->xstep);
  return NC_OK;
}

/* *y = x, or a copy with the strides of the base. */
static int laid(Tensor **y, Tensor *x, const Geometry *g) {
  if (lies(x, g)) {
    nc_retain(*y = x);
    return NC_OK;
  }
  TRY(newbase(y, x, g));
  int r = nc_copy(*y, x);
  if (r == NC_OK) return NC_OK;
  nc_release(*y);
  *y = NULL;
  return r;
}

/* *y = g summed over dimensions along which the view repeats elements
   (stride 0); they keep size 1. */
static int unrepeated(Tensor **y, Tensor *g, const Geometry *v) {
  unsigned dims = 0;
  for (int d = 0; d < v->nd; d++)
    if (v->size[d] != 1 && v->step[d] == 0) dims |= 1u << d;
  if (dims) return nc_sumkept(y, g, dims);
  nc_retain(*y = g);
  return NC_OK;
}

/* If the view only permutes dimensions, or adds or drops some of size 1,
   sets *y to g as a view in the shape of the base, and *status.  Returns 0
   if it does not. */
static int reordered(Tensor **y, Tensor *g, const Geometry *v, int *status) {
  unsigned used = 0;
  int64_t step[NC_MAXDIM];
  for (int d = 0; d < v->xnd; d++) {
    int at = 0;
    step[d] = 1;
    if (v->xsize[d] == 1) continue;
    while (at < v->nd && (used >> at & 1 || v->size[at] != v->xsize[d] ||
                          v->step[at] != v->xstep[d]))
      at++;
    if (at == v->nd) return 0;
    used |= 1u << at;
    step[d] = g->step[at];
  }
  for (int d = 0; d < v->nd; d++)
    if (!(used >> d & 1) && g->size[d] != 1) return 0;
  *status = nc_alias(y, g);
  if (*status != NC_OK) return 1;
  (*y)->nd = v->xnd;
  memcpy((*y)->size, v->xsize, sizeof v->xsize);
  memcpy((*y)->step, step, sizeof step);
  return 1;
}

static int isdense(int nd, const int64_t size[], const int64_t step[]) {
  int64_t n = 1;
  for (int d = nd - 1; d >= 0; d--) {
    if (size[d] != 1 && step[d] != n) return 0;
    n *= size[d];
  }
  return 1;
}

static int64_t product(int nd, const int64_t size[]) {
  int64_t n = 1;
  for (int d = 0; d < nd; d++) n *= size[d];
  return n;
}

/* If view and base have the same elements in row-major order, sets *y to g
   reshaped to the base, and *status.  Returns 0 if they do not. */
static int reshaped(Tensor **y, Tensor *g, const Geometry *v, int *status) {
  if (product(v->nd, v->size) != product(v->xnd, v->xsize) ||
      !isdense(v->nd, v->size, v->step) || !isdense(v->xnd, v->xsize, v->xstep))
    return 0;
  *status = nc_reshapeto(y, g, v->xnd, v->xsize);
  return 1;
}

/* part += g.  If elements of part overlap, as in sliding windows,
   recursively slice by slice. */
static int addto(Tensor *part, Tensor *g) {
  Arg in[2] = { { .t = part }, { .t = g } };
  Tensor *sum = NULL, *p = NULL, *q = NULL;
  int least = -1, r = NC_OK;
  if (!nc_overlapsitself(part)) {
    r = nc_apply(&sum, OP_add, in, NULL, part);
    nc_release(sum);
    return r;
  }
  for (int d = 0; d < part->nd; d++)
    if (part->size[d] > 1 && (least < 0 || part->size[d] < part->size[least]))
      least = d;
  for (int64_t i = 0; i < part->size[least] && r == NC_OK; i++) {
    if ((r = nc_alias(&p, part)) == NC_OK && (r = nc_alias(&q, g)) == NC_OK) {
      p->size[least] = q->size[least] = 1;
      p->offset += i * p->step[least];
      q->offset += i * q->step[least];
      r = addto(p, q);
    }
    nc_release(p);
    nc_release(q);
    p = q = NULL;
  }
  return r;
}

/* Adds g to the view v of y. */
static int place(Tensor *y, Tensor *g, const Geometry *v) {
  Tensor *one = NULL, *part = NULL;
  int r;
  if ((r = unrepeated(&one, g, v)) == NC_OK &&
      (r = viewof(&part, y, v)) == NC_OK) {
    for (int d = 0; d < v->nd; d++) part->size[d] = one->size[d];
    if (nc_numel(part) > 0) r = addto(part, one);
  }
  nc_release(one);
  nc_release(part);
  return r;
}

/* *y = the sum of all g[i], each added at the view v[i] of the base; NULL is
   zeros. */
static int unview(Tensor **y, Tensor *const g[], const Geometry v[], int n) {
  Tensor *one, *some = NULL;
  int r;
  *y = NULL;
  for (int i = 0; i < n; i++)
    if (g[i]) some = g[i];
  if (n == 1) {
    TRY(unrepeated(&one, g[0], v));
    int whole = reordered(y, one, v, &r) || reshaped(y, one, v, &r);
    nc_release(one);
    if (whole) return r;
  }
  TRY(newbase(y, some, v));
  r = nc_fill(*y, nc_int(0));
  for (int i = 0; i < n && r == NC_OK; i++)
    if (g[i]) r = place(*y, g[i], &v[i]);
  if (r == NC_OK) return NC_OK;
  nc_release(*y);
  *y = NULL;
  return r;
}

/*
** Nodes: views, and their gradients
*/
static int viewback(GradCall *c);
static int unviewback(GradCall *c);
const NodeKind nc_viewnode = { viewback, NULL };
static const NodeKind unviewnode = { unviewback, NULL };

/* Records *y, made with status r, as a node of this kind with operands in[];
   releases it after a failure. */
static int noted(Tensor **y, int r, const NodeKind *kind, Tensor *const in[],
                 int n, const Geometry v[], int nv) {
  if (r == NC_OK)
    r = nc_record_new(kind, "view", in, n, y, 1, v, (size_t)nv * sizeof *v);
  if (r == NC_OK) return NC_OK;
  nc_release(*y);
  *y = NULL;
  return r;
}

static int viewback(GradCall *c) {
  const Geometry *v = c->node->info;
  const int n = c->node->nout;
  int r;
  nc_gradoff++;
  r = unview(&c->d[0], c->g, v, n);
  nc_gradoff--;
  return noted(&c->d[0], r, &unviewnode, c->g, n, v, n);
}

/* *y = the view of x, recorded. */
static int view(Tensor **y, Tensor *x, const Geometry *v) {
  Tensor *own = NULL;
  int r;
  nc_gradoff++;
  if ((r = laid(&own, x, v)) == NC_OK) r = viewof(y, own, v);
  nc_gradoff--;
  nc_release(own);
  return noted(y, r, &nc_viewnode, &x, 1, v, 1);
}

static int unviewback(GradCall *c) {
  const Geometry *v = c->node->info;
  for (int i = 0; i < c->node->nedge; i++)
    if (c->need[i]) TRY(view(&c->d[i], c->g[0], &v[i]));
  return NC_OK;
}

/*
** Writes into a view
*/
static int clearback(GradCall *c);
static const NodeKind clearnode = { clearback, NULL };

/* *y = x with zeros in the view, recorded. */
static int clear(Tensor **y, Tensor *x, const Geometry *v) {
  Tensor *part = NULL;
  int r;
  *y = NULL;
  nc_gradoff++;
  if ((r = newbase(y, x, v)) == NC_OK && (r = nc_copy(*y, x)) == NC_OK &&
      (r = viewof(&part, *y, v)) == NC_OK)
    r = nc_fill(part, nc_int(0));
  nc_gradoff--;
  nc_release(part);
  return noted(y, r, &clearnode, &x, 1, v, 1);
}

static int clearback(GradCall *c) {
  return clear(&c->d[0], c->g[0], c->node->info);
}

/* Edge 0: the base before the write; edge 1: the value. */
static int setback(GradCall *c) {
  if (c->need[0]) TRY(clear(&c->d[0], c->g[0], c->node->info));
  if (c->need[1]) TRY(view(&c->d[1], c->g[0], c->node->info));
  return NC_OK;
}

const NodeKind nc_setnode = { setback, NULL };

/* Edge 1: the value that overwrote the tensor. */
static int intoback(GradCall *c) {
  nc_retain(c->d[1] = c->g[0]);
  return NC_OK;
}

const NodeKind nc_inplacenode = { intoback, NULL };
