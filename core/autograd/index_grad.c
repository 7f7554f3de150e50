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

typedef struct Picker { /* an IndexPlan without its tensors, in a node */
  int n, nd;
  int dim[NC_MAXDIM], dims[NC_MAXDIM];
  int64_t size[NC_MAXDIM]; /* of the view */
} Picker;

/* Fills k from the plan p. */
static void describe(Picker *k, const IndexPlan *p) {
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
   the saved index tensors.  Followed by release(), also after a failure. */
static int replan(IndexPlan *p, Tensor *x, const Node *n) {
  const Picker *k = n->info;
  memset(p, 0, sizeof *p);
  p->view = x;
  for (int i = 0; i < k->n; i++) {
    Tensor *t;
    TRY(nc_savedtensor(&t, n, i));
    p->by[p->n++] = (IndexTensor){ t, k->dim[i], k->dims[i], x, k->dim[i] };
  }
  return NC_OK;
}

static void release(IndexPlan *p) {
  for (int i = 0; i < p->n; i++) nc_release(p->by[i].t);
}

/* Begins the recording of an operation with the index tensors of p. */
static int begin(Recording *tr, const NodeKind *kind, Tensor *const in[],
                 int nin, const IndexPlan *p, Tensor *into) {
  int r = NC_OK;
  memset(tr, 0, sizeof *tr);
  if (nc_gradoff) return NC_OK;
  TRY(nc_record_begin(tr, kind, "index", in, nin, 1, p->n, sizeof(Picker),
                      into));
  if (tr->node == NULL) return NC_OK;
  describe(tr->node->info, p);
  for (int i = 0; i < p->n && r == NC_OK; i++)
    r = nc_record_save(tr, i, p->by[i].t);
  if (r != NC_OK) nc_record_cancel(tr);
  return r;
}

static int finish(Recording *tr, int r, Tensor **y) {
  if (r == NC_OK) r = nc_record_commit(tr, y, 1);
  if (r == NC_OK) return NC_OK;
  nc_record_cancel(tr);
  nc_release(*y);
  *y = NULL;
  return r;
}

/*
** Nodes: select, spread (its gradient), and clear (zeros at the selected
** elements)
*/
static int pickback(GradCall *c);
static int spreadback(GradCall *c);
static int clearback(GradCall *c);
static const NodeKind picknode = { pickback, NULL };
static const NodeKind spreadnode = { spreadback, NULL };
static const NodeKind clearnode = { clearback, NULL };

/* *y = the elements of p->view that p selects, recorded. */
static int pick(Tensor **y, const IndexPlan *p) {
  Tensor *x = p->view;
  Recording tr;
  int r;
  *y = NULL;
  TRY(begin(&tr, &picknode, &x, 1, p, NULL));
  nc_gradoff++;
  r = nc_index_select(y, p);
  nc_gradoff--;
  return finish(&tr, r, y);
}

/* *y = zeros in the shape of the view of n, with g added at the selected
   elements. */
static int spread(Tensor **y, Tensor *g, const Node *n) {
  const Picker *k = n->info;
  Recording tr;
  IndexPlan p;
  int r;
  TRY(nc_full(y, nc_device(g), g->dtype, k->nd, k->size, nc_int(0)));
  if ((r = replan(&p, *y, n)) == NC_OK)
    r = begin(&tr, &spreadnode, &g, 1, &p, NULL);
  if (r == NC_OK) {
    nc_gradoff++;
    r = nc_index_put(&p, g, nc_int(0), PUT_ADD);
    nc_gradoff--;
    r = finish(&tr, r, y);
  } else {
    nc_release(*y);
    *y = NULL;
  }
  release(&p);
  return r;
}

/* *y = g with zeros at the selected elements. */
static int clear(Tensor **y, Tensor *g, const Node *n) {
  Recording tr;
  IndexPlan p;
  int r;
  TRY(nc_new(y, nc_device(g), g->dtype, g->nd, g->size));
  if ((r = replan(&p, *y, n)) == NC_OK)
    r = begin(&tr, &clearnode, &g, 1, &p, NULL);
  if (r == NC_OK) {
    nc_gradoff++;
    r = nc_copy(*y, g);
    if (r == NC_OK) r = nc_index_put(&p, NULL, nc_int(0), PUT_SET);
    nc_gradoff--;
    r = finish(&tr, r, y);
  } else {
    nc_release(*y);
    *y = NULL;
  }
  release(&p);
  return r;
}

static int pickfrom(Tensor **y, Tensor *x, const Node *n) {
  IndexPlan p;
  int r = replan(&p, x, n);
  if (r == NC_OK) r = pick(y, &p);
  release(&p);
  return r;
}

static int pickback(GradCall *c) {
  return spread(&c->d[0], c->g[0], c->node);
}

static int spreadback(GradCall *c) {
  return pickfrom(&c->d[0], c->g[0], c->node);
}

static int clearback(GradCall *c) {
  return clear(&c->d[0], c->g[0], c->node);
}

/* The gradients of an assignment: edge 0 is the tensor written to, 1 the
   value. */
static int putback(GradCall *c) {
  if (c->need[0]) TRY(clear(&c->d[0], c->g[0], c->node));
  if (c->need[1]) TRY(pickfrom(&c->d[1], c->g[0], c->node));
  return NC_OK;
}

/* The gradients of an accumulation. */
static int addback(GradCall *c) {
  if (c->need[0]) nc_retain(c->d[0] = c->g[0]);
  if (c->need[1]) TRY(pickfrom(&c->d[1], c->g[0], c->node));
  return NC_OK;
}

static const NodeKind putnode = { putback, NULL };
static const NodeKind addnode = { addback, NULL };

/*
** t[...]
*/
/* Sets p to the plan of t[ix...]; records p->view as a view of t. */
static int plan(IndexPlan *p, Tensor *t, const Index ix[], int n) {
  Tensor *dense;
  Geometry g;
  IndexPlan low;
  int r, yes;
  TRY(nc_requires(&yes, t));
  TRY(nc_index_plan(p, t, ix, n));
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
  if (r == NC_OK) return NC_OK;
  nc_release(p->view);
  p->view = NULL;
  return r;
}

int nc_index_recorded(Tensor **y, Tensor *t, const Index ix[], int n) {
  IndexPlan p;
  int r;
  TRY(plan(&p, t, ix, n));
  if (p.n == 0) {
    *y = p.view;
    return NC_OK;
  }
  r = pick(y, &p);
  nc_release(p.view);
  return nc_error_index(r, t, "index", p.by[0].t);
}

/* Writes to p->view, recorded.  Without index tensors all old values are
   overwritten, and need no edge. */
static int write(const IndexPlan *p, Tensor *value, Scalar number,
                 PutMode put) {
  Tensor *in[2] = { p->n ? p->view : NULL, value }, *view = p->view;
  Recording tr;
  int r;
  if (p->n > 0)
    TRY(begin(&tr, put == PUT_ADD ? &addnode : &putnode, in, 2, p, view));
  else TRY(nc_record_begin(&tr, &nc_inplacenode, "set", in, 2, 1, 0, 0, view));
  nc_gradoff++;
  r = put == PUT_SET ? nc_assign(p, value, number)
                     : nc_index_put(p, value, number, put);
  nc_gradoff--;
  if (r == NC_OK) r = nc_record_commit(&tr, &view, 1);
  nc_record_cancel(&tr);
  return r;
}

int nc_setindex_recorded(Tensor *t, const Index ix[], int n, Tensor *value,
                         Scalar number, PutMode put) {
  IndexPlan p;
  int r = nc_checkinplace(t);
  if (r == NC_OK) r = nc_checkout(t, t->dtype, t->nd, t->size);
  if (r != NC_OK) return nc_error_index(r, t, NULL, NULL);
  TRY(plan(&p, t, ix, n));
  r = write(&p, value, number, put);
  nc_release(p.view);
  return nc_error_index(r, t, "value", value);
}
