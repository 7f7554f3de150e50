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
#include "core/ops.h"

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
  TRY(nc_alias(y, x));
  (*y)->offset = 0;
  nc_set_dense(*y, x->nd, x->size);
  return NC_OK;
}

/* *y = the view of x, whose strides are those of the geometry. */
static int make_view(Tensor **y, const Tensor *x, const Geometry *g) {
  TRY(nc_alias(y, x));
  (*y)->nd = g->nd;
  memcpy((*y)->size, g->size, sizeof g->size);
  memcpy((*y)->step, g->step, sizeof g->step);
  (*y)->offset = x->offset + g->offset;
  return NC_OK;
}

/* Returns whether x has the strides of the base. */
static int has_base_layout(const Tensor *x, const Geometry *g) {
  for (int d = 0; d < g->xnd; d++)
    if (x->size[d] > 1 && x->step[d] != g->xstep[d]) return 0;
  return 1;
}

/* *y = a new tensor with the sizes and strides of the base, uninitialized. */
static int new_base(Tensor **y, const Tensor *like, const Geometry *g) {
  TRY(nc_new(y, nc_device(like), like->dtype, g->xnd, g->xsize));
  memcpy((*y)->step, g->xstep, sizeof g->xstep);
  return NC_OK;
}

/* *y = x, or a copy with the strides of the base. */
static int with_base_layout(Tensor **y, Tensor *x, const Geometry *g) {
  if (has_base_layout(x, g)) {
    nc_retain(*y = x);
    return NC_OK;
  }
  TRY(new_base(y, x, g));
  return nc_release_failed(nc_copy(*y, x), y, 1);
}

/* *y = g summed over dimensions along which the view repeats elements
   (stride 0); they keep size 1. */
static int sum_repeated(Tensor **y, Tensor *g, const Geometry *v) {
  unsigned dims = 0;
  for (int d = 0; d < v->nd; d++)
    if (v->size[d] != 1 && v->step[d] == 0) dims |= 1u << d;
  if (dims) return nc_sum_keepdim(y, g, dims);
  nc_retain(*y = g);
  return NC_OK;
}

/* If the view only permutes dimensions, or adds or drops some of size 1,
   sets *y to g as a view in the shape of the base, and *status.  Returns 0
   if it does not. */
static int try_permute(Tensor **y, Tensor *g, const Geometry *v, int *status) {
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

static int is_dense(int nd, const int64_t size[], const int64_t step[]) {
  int64_t n = 1;
  for (int d = nd - 1; d >= 0; d--) {
    if (size[d] != 1 && step[d] != n) return 0;
    n *= size[d];
  }
  return 1;
}

static int64_t numel_of(int nd, const int64_t size[]) {
  int64_t n = 1;
  for (int d = 0; d < nd; d++) n *= size[d];
  return n;
}

/* If view and base have the same elements in row-major order, sets *y to g
   reshaped to the base, and *status.  Returns 0 if they do not. */
static int try_reshape(Tensor **y, Tensor *g, const Geometry *v, int *status) {
  if (numel_of(v->nd, v->size) != numel_of(v->xnd, v->xsize) ||
      !is_dense(v->nd, v->size, v->step) ||
      !is_dense(v->xnd, v->xsize, v->xstep))
    return 0;
  *status = nc_reshapeto(y, g, v->xnd, v->xsize);
  return 1;
}

/* part += g.  If elements of part overlap, as in sliding windows,
   recursively slice by slice. */
static int add_to(Tensor *part, Tensor *g) {
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
      r = add_to(p, q);
    }
    nc_release(p);
    nc_release(q);
    p = q = NULL;
  }
  return r;
}

/* Adds g to the view v of y. */
static int add_at_view(Tensor *y, Tensor *g, const Geometry *v) {
  Tensor *one = NULL, *part = NULL;
  int r;
  if ((r = sum_repeated(&one, g, v)) == NC_OK &&
      (r = make_view(&part, y, v)) == NC_OK) {
    for (int d = 0; d < v->nd; d++) part->size[d] = one->size[d];
    if (nc_numel(part) > 0) r = add_to(part, one);
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
    TRY(sum_repeated(&one, g[0], v));
    int whole = try_permute(y, one, v, &r) || try_reshape(y, one, v, &r);
    nc_release(one);
    if (whole) return r;
  }
  TRY(new_base(y, some, v));
  r = nc_fill(*y, nc_int(0));
  for (int i = 0; i < n && r == NC_OK; i++)
    if (g[i]) r = add_at_view(*y, g[i], &v[i]);
  return nc_release_failed(r, y, 1);
}

/*
** Nodes: views, and their gradients
*/
static int view_backward(GradCall *c);
static int unview_backward(GradCall *c);
static int view_add(const GradCall *c, Tensor *sum);
const NodeKind nc_viewnode = { .backward = view_backward, .add = view_add };
static const NodeKind unview_node = { .backward = unview_backward };

/* Records *y, made with status r, as a node of this kind with operands in[];
   releases it after a failure. */
static int record_result(Tensor **y, int r, const NodeKind *kind,
                         Tensor *const in[], int n, const Geometry v[],
                         int nv) {
  if (r == NC_OK)
    r = nc_record_new(kind, "view", in, n, y, 1, v, (size_t)nv * sizeof *v);
  return nc_release_failed(r, y, 1);
}

static int view_backward(GradCall *c) {
  const Geometry *v = c->node->info;
  const int n = c->node->nout;
  int r;
  nc_context->no_grad++;
  r = unview(&c->d[0], c->g, v, n);
  nc_context->no_grad--;
  return record_result(&c->d[0], r, &unview_node, c->g, n, v, n);
}

static int view_add(const GradCall *c, Tensor *sum) {
  const Geometry *v = c->node->info;
  Tensor *own = NULL;
  int r = NC_OK;
  if (!has_base_layout(sum, v)) {
    TRY(unview(&own, c->g, v, c->node->nout));
    r = add_to(sum, own);
  }
  for (int i = 0; i < c->node->nout && r == NC_OK && !own; i++)
    if (c->g[i]) r = add_at_view(sum, c->g[i], &v[i]);
  nc_release(own);
  return r;
}

/* *y = the view of x, recorded. */
static int view_recorded(Tensor **y, Tensor *x, const Geometry *v) {
  Tensor *own = NULL;
  int r;
  nc_context->no_grad++;
  if ((r = with_base_layout(&own, x, v)) == NC_OK) r = make_view(y, own, v);
  nc_context->no_grad--;
  nc_release(own);
  return record_result(y, r, &nc_viewnode, &x, 1, v, 1);
}

static int unview_backward(GradCall *c) {
  const Geometry *v = c->node->info;
  for (int i = 0; i < c->node->nedge; i++)
    if (c->need[i]) TRY(view_recorded(&c->d[i], c->g[0], &v[i]));
  return NC_OK;
}

/*
** Writes into a view
*/
static int clear_backward(GradCall *c);
static const NodeKind clear_node = { .backward = clear_backward };

/* *y = x with zeros in the view, recorded. */
static int clear_recorded(Tensor **y, Tensor *x, const Geometry *v) {
  Tensor *part = NULL;
  int r;
  *y = NULL;
  nc_context->no_grad++;
  if ((r = new_base(y, x, v)) == NC_OK && (r = nc_copy(*y, x)) == NC_OK &&
      (r = make_view(&part, *y, v)) == NC_OK)
    r = nc_fill(part, nc_int(0));
  nc_context->no_grad--;
  nc_release(part);
  return record_result(y, r, &clear_node, &x, 1, v, 1);
}

static int clear_backward(GradCall *c) {
  return clear_recorded(&c->d[0], c->g[0], c->node->info);
}

/* Edge 0: the base before the write; edge 1: the value. */
static int set_backward(GradCall *c) {
  if (c->need[0]) TRY(clear_recorded(&c->d[0], c->g[0], c->node->info));
  if (c->need[1]) TRY(view_recorded(&c->d[1], c->g[0], c->node->info));
  return NC_OK;
}

const NodeKind nc_setnode = { .backward = set_backward };

/* Edge 1: the value that overwrote the tensor. */
static int inplace_backward(GradCall *c) {
  nc_retain(c->d[1] = c->g[0]);
  return NC_OK;
}

const NodeKind nc_inplacenode = { .backward = inplace_backward };
