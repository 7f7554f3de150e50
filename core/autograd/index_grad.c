/* SPDX-License-Identifier: MIT */
/*
** index_grad.c - recording of t[...], read and assigned, and its gradients.
**
** Numbers and ranges are recorded as a view.  Index tensors then select
** elements of it.  The gradient of select accumulates into zeros (spread), and
** the gradient of that is select again, so that all derivatives are defined.
*/
#include <string.h>

#include "core/indexing/advanced_index.h"
#include "core/tape.h"
#include "core/op.h"

typedef struct SavedPlan { /* an IndexPlan without its tensors, in a node */
  int n, nd;
  int dim[NC_MAXDIM], dims[NC_MAXDIM];
  int64_t size[NC_MAXDIM]; /* of the view */
} SavedPlan;

/* Fills k from the plan p. */
static void save_plan(SavedPlan *k, const IndexPlan *p) {
  memset(k, 0, sizeof *k);
  k->n = p->n;
  k->nd = p->view->nd;
  memcpy(k->size, p->view->size, sizeof k->size);
  for (int i = 0; i < p->n; i++) {
    k->dim[i] = p->by[i].dim;
    k->dims[i] = p->by[i].dims;
  }
}

/* Sets p to the plan of node n for x, which has the shape of the view, with
   the saved index tensors.  Followed by release_tensors, also after a
   failure. */
static int restore_plan(IndexPlan *p, Tensor *x, const Node *n) {
  const SavedPlan *k = n->info;
  memset(p, 0, sizeof *p);
  p->view = x;
  for (int i = 0; i < k->n; i++) {
    Tensor *t;
    TRY(nc_savedtensor(&t, n, i));
    p->by[p->n++] = (IndexTensor){ t, k->dim[i], k->dims[i], x, k->dim[i] };
  }
  return NC_OK;
}

static void release_tensors(IndexPlan *p) {
  for (int i = 0; i < p->n; i++) nc_release(p->by[i].t);
}

/* Begins the recording of an operation with the index tensors of p. */
static int begin_record(Recording *tr, const NodeKind *kind, Tensor *const in[],
                        int nin, const IndexPlan *p, Tensor *into) {
  int r = NC_OK;
  memset(tr, 0, sizeof *tr);
  if (nc_context->no_grad) return NC_OK;
  TRY(nc_record_begin(tr, kind, "index", in, nin, 1, p->n, sizeof(SavedPlan),
                      into));
  if (tr->node == NULL) return NC_OK;
  save_plan(tr->node->info, p);
  for (int i = 0; i < p->n && r == NC_OK; i++)
    r = nc_record_save(tr, i, p->by[i].t);
  if (r != NC_OK) nc_record_cancel(tr);
  return r;
}

/*
** Nodes: select, spread (its gradient), and clear (zeros at the selected
** elements)
*/
static int select_backward(GradCall *c);
static int spread_backward(GradCall *c);
static int clear_backward(GradCall *c);
static int select_add(const GradCall *c, Tensor *sum);
static const NodeKind select_node = { .backward = select_backward,
                                      .add = select_add };
static const NodeKind spread_node = { .backward = spread_backward };
static const NodeKind clear_node = { .backward = clear_backward };

/* *y = the elements of p->view that p selects, recorded. */
static int select_recorded(Tensor **y, const IndexPlan *p) {
  Tensor *x = p->view;
  Recording tr;
  int r;
  *y = NULL;
  TRY(begin_record(&tr, &select_node, &x, 1, p, NULL));
  nc_context->no_grad++;
  r = nc_index_select(y, p);
  nc_context->no_grad--;
  return nc_record_end(&tr, r, y, 1);
}

/* Records the node `kind', spread or clear, for the index tensors of n.
   Spread: *y = zeros in the shape of the view, with g added at the selected
   elements.  Clear: *y = g with zeros at the selected elements. */
static int put_recorded(Tensor **y, Tensor *g, const Node *n,
                        const NodeKind *kind) {
  const int is_spread = kind == &spread_node;
  const SavedPlan *k = n->info;
  Recording tr;
  IndexPlan p;
  int r;
  TRY(nc_new(y, nc_device(g), g->dtype, k->nd, k->size));
  if ((r = restore_plan(&p, *y, n)) == NC_OK &&
      (r = begin_record(&tr, kind, &g, 1, &p, NULL)) == NC_OK) {
    nc_context->no_grad++;
    r = is_spread ? nc_fill(*y, nc_int(0)) : nc_copy(*y, g);
    if (r == NC_OK)
      r = nc_index_put(&p, is_spread ? g : NULL, nc_int(0),
                       is_spread ? PUT_ADD : PUT_SET);
    nc_context->no_grad--;
    r = nc_record_end(&tr, r, y, 1);
  }
  release_tensors(&p);
  return nc_release_failed(r, y, 1);
}

static int select_from(Tensor **y, Tensor *x, const Node *n) {
  IndexPlan p;
  int r = restore_plan(&p, x, n);
  if (r == NC_OK) r = select_recorded(y, &p);
  release_tensors(&p);
  return r;
}

static int select_backward(GradCall *c) {
  return put_recorded(&c->d[0], c->g[0], c->node, &spread_node);
}

static int select_add(const GradCall *c, Tensor *sum) {
  IndexPlan p;
  int r = restore_plan(&p, sum, c->node);
  if (r == NC_OK) r = nc_index_put(&p, c->g[0], nc_int(0), PUT_ADD);
  release_tensors(&p);
  return r;
}

static int spread_backward(GradCall *c) {
  return select_from(&c->d[0], c->g[0], c->node);
}

static int clear_backward(GradCall *c) {
  return put_recorded(&c->d[0], c->g[0], c->node, &clear_node);
}

/* The gradients of an assignment: edge 0 is the tensor written to, 1 the
   value. */
static int put_backward(GradCall *c) {
  if (c->need[0]) TRY(put_recorded(&c->d[0], c->g[0], c->node, &clear_node));
  if (c->need[1]) TRY(select_from(&c->d[1], c->g[0], c->node));
  return NC_OK;
}

/* The gradients of an accumulation. */
static int accumulate_backward(GradCall *c) {
  if (c->need[0]) nc_retain(c->d[0] = c->g[0]);
  if (c->need[1]) TRY(select_from(&c->d[1], c->g[0], c->node));
  return NC_OK;
}

static const NodeKind put_node = { .backward = put_backward };
static const NodeKind accumulate_node = { .backward = accumulate_backward };

/*
** t[...]
*/
/* Whether the view has the elements of t in their order and place. */
static int is_whole(const Tensor *view, const Tensor *t) {
  int same = view->nd == t->nd && view->offset == t->offset;
  for (int d = 0; same && d < t->nd; d++)
    same = view->size[d] == t->size[d] && view->step[d] == t->step[d];
  return same;
}

/* Sets p to the plan of t[ix...]; records p->view as a view of t.  Unless
   it is written to, a view with all elements for index tensors is t itself:
   backward adds to the gradient of t without a step between. */
static int plan_recorded(IndexPlan *p, Tensor *t, const Index ix[], int n,
                         int write) {
  Tensor *dense;
  Geometry g;
  IndexPlan low;
  int r, yes;
  TRY(nc_get_requires_grad(&yes, t));
  TRY(nc_index_plan(p, t, ix, n));
  if (!write && p->n > 0 && is_whole(p->view, t)) {
    nc_release(p->view);
    nc_retain(p->view = t);
    return NC_OK;
  }
  r = nc_setbase(p->view, t);
  if (r == NC_OK && yes && (r = nc_denselike(&dense, t)) == NC_OK) {
    if ((r = nc_index_plan(&low, dense, ix, n)) == NC_OK) {
      nc_geometry(&g, dense, low.view);
      nc_release(low.view);
    }
    nc_release(dense);
    if (r == NC_OK)
      r = nc_record_new(&nc_viewnode, "index", &t, 1, &p->view, 1, &g,
                        sizeof g);
  }
  return nc_release_failed(r, &p->view, 1);
}

int nc_record_index(Call *c) {
  Tensor *t = c->arg[0].t;
  IndexPlan p;
  int r;
  TRY(plan_recorded(&p, t, c->index, c->nindex, 0));
  if (p.n == 0) {
    c->out[0] = p.view;
    return NC_OK;
  }
  r = select_recorded(&c->out[0], &p);
  nc_release(p.view);
  return nc_error_index(r, t, "index", p.by[0].t);
}

/* Writes to p->view, recorded.  Without index tensors all old values are
   overwritten, and need no edge. */
static int write_recorded(const IndexPlan *p, Tensor *value, Scalar number,
                          PutMode put) {
  Tensor *in[2] = { p->n ? p->view : NULL, value }, *view = p->view;
  Recording tr;
  int r;
  if (p->n > 0)
    TRY(begin_record(&tr, put == PUT_ADD ? &accumulate_node : &put_node, in, 2,
                     p, view));
  else TRY(nc_record_begin(&tr, &nc_inplacenode, "set", in, 2, 1, 0, 0, view));
  nc_context->no_grad++;
  r = put == PUT_SET ? nc_assign(p, value, number)
                     : nc_index_put(p, value, number, put);
  nc_context->no_grad--;
  if (r == NC_OK) r = nc_record_commit(&tr, &view, 1);
  nc_record_cancel(&tr);
  return r;
}

int nc_setindex_recorded(Tensor *t, const Index ix[], int n, Tensor *value,
                         Scalar number, PutMode put) {
  IndexPlan p;
  int r = nc_checkinplace(t);
  if (r == NC_OK) r = nc_check_writable(t);
  if (r != NC_OK) return nc_error_index(r, t, NULL, NULL);
  TRY(plan_recorded(&p, t, ix, n, 1));
  r = write_recorded(&p, value, number, put);
  nc_release(p.view);
  return nc_error_index(r, t, "value", value);
}

int nc_record_setindex(Call *c) {
  return nc_setindex_recorded(c->arg[0].t, c->index, c->nindex, c->arg[1].t,
                              c->arg[1].s, PUT_SET);
}
