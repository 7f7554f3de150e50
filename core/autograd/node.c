/* SPDX-License-Identifier: MIT */
/*
** node.c - nodes of the graph, their links to tensors, recording (nc_record_*)
** and saved tensors.  backward.c traverses the graph.
**
** Releasing is iterative: a node that is freed puts its predecessors on a list,
** so that a chain of a million nodes does not overflow the stack.
*/
#include "core/batch.h"
#include "core/fusion_notes.h"
#include "core/ops.h"
#include "core/tape.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/op.h"

static Slab ads = { sizeof(Autograd), NULL, NULL };

/*
** Nodes
*/
static size_t round_up(size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

/* Makes a node, with all its arrays in one block.  `sizes' is the total
   number of dimensions of the operands, whose sizes the edges store; a
   result gets room for NC_MAXDIM. */
static int64_t newest; /* the number of the newest node */

int64_t nc_newest_node(void) {
  return newest;
}

int nc_newnode(Node **out, const NodeKind *kind, const char *name, int nedge,
               int nout, int nsaved, size_t info, int64_t sizes) {
  const size_t at = round_up(sizeof(Node));
  const size_t edges = round_up((size_t)nedge * sizeof(Edge));
  const size_t outs = round_up((size_t)nout * sizeof(Output));
  const size_t saved = round_up((size_t)nsaved * sizeof(Saved));
  const size_t bytes =
      at + edges + outs + saved + round_up(info) +
      ((size_t)sizes + (size_t)nout * NC_MAXDIM) * sizeof(int64_t);
  int64_t *size;
  char *p;
  void *block;
  Node *n;
  *out = NULL;
  TRY(nc_hostalloc(&block, (int64_t)bytes));
  p = memset(block, 0, bytes);
  n = (Node *)block;
  n->refs = 1;
  n->nedge = nedge;
  n->nout = nout;
  n->nsaved = nsaved;
  n->kind = kind;
  n->name = name;
  n->bytes = (int64_t)bytes;
  n->number = ++newest;
  n->edge = (Edge *)(p += at);
  n->out = (Output *)(p += edges);
  n->saved = (Saved *)(p += outs);
  n->info = p += saved;
  size = (int64_t *)(p + round_up(info));
  for (int i = 0; i < nout; i++, size += NC_MAXDIM) n->out[i].meta.size = size;
  if (nedge > 0) n->edge[0].meta.size = size; /* room of all */
  *out = n;
  return NC_OK;
}

void nc_dropsaved(Node *n) {
  for (int i = 0; i < n->nsaved; i++) {
    Saved *s = &n->saved[i];
    nc_release(s->t);
    nc_releasenode(s->node);
    s->t = NULL;
    s->node = NULL;
  }
  n->freed = 1;
}

/* Frees a node whose last reference is gone.  Hooks that others still hold
   are emptied. */
static void destroy(Node *n) {
  for (int i = 0; i < n->nedge; i++) nc_releasenode(n->edge[i].node);
  nc_dropsaved(n);
  for (int i = 0; i < n->nout; i++) {
    Hook *next;
    nc_release(n->out[i].grad);
    for (Hook *h = n->out[i].hooks; h; h = next) {
      next = h->next;
      nc_removehook(h); /* calls it no more */
      nc_releasehook(h);
    }
  }
  if (n->kind && n->kind->drop) n->kind->drop(n->info);
  nc_hostfree(n, n->bytes);
}

void nc_releasenode(Node *n) {
  static _Thread_local Node *list;
  static _Thread_local int busy;
  if (n == NULL || --n->refs > 0) return;
  n->next = list;
  list = n;
  if (busy) return; /* the outermost call empties the list */
  busy = 1;
  while ((n = list) != NULL) {
    list = n->next;
    destroy(n);
  }
  busy = 0;
}

/* Frees the Autograd of a tensor that is being freed.  Its gradient is
   released too: no one can read it any more, and it may refer to the node
   (create_graph). */
static void drop_autograd(Autograd *ad) {
  if (ad->node && !ad->borrowed) {
    Output *o = &ad->node->out[ad->index];
    Tensor *grad = o->grad;
    o->grad = NULL;
    nc_release(grad);
  }
  nc_releasenode(ad->node);
  nc_slabfree(&ads, ad);
}

/*
** Tensors
*/
int nc_newad(Tensor *t) {
  if (t->ad) return NC_OK;
  if ((t->ad = nc_slaballoc(&ads)) == NULL)
    return nc_fail(NC_ENOMEM, "no memory for a gradient");
  memset(t->ad, 0, sizeof *t->ad);
  t->ad->drop = drop_autograd;
  return NC_OK;
}

static void set_meta(GradMeta *m, const Tensor *t) {
  m->device = nc_device(t);
  m->dtype = t->dtype;
  m->nd = t->nd;
  m->stream = nc_streamnumber(m->device);
  memcpy(m->size, t->size, (size_t)t->nd * sizeof *t->size);
}

/* Gives a leaf its node, which holds its gradient. */
static int make_leaf_node(Tensor *t) {
  TRY(nc_newad(t));
  if (t->ad->node) return NC_OK;
  TRY(nc_newnode(&t->ad->node, NULL, NULL, 0, 1, 0, 0, 0));
  set_meta(&t->ad->node->out[0].meta, t);
  return NC_OK;
}

/* Returns whether t is a leaf: not the result of a recorded operation. */
static int is_leaf(const Tensor *t) {
  return t->ad == NULL || t->ad->node == NULL || nc_isleafnode(t->ad->node);
}

Edge nc_edgeof(const Tensor *t) {
  Edge e = { .node = NULL };
  if (t->ad == NULL || t->ad->node == NULL) return e;
  if (nc_isleafnode(t->ad->node) && !t->ad->required) return e;
  e.node = t->ad->node;
  e.index = t->ad->index;
  return e;
}

int nc_get_requires_grad(int *yes, Tensor *t) {
  *yes = 0;
  TRY(nc_refresh(t));
  *yes = nc_edgeof(t).node != NULL;
  return NC_OK;
}

int nc_isleaf(int *yes, Tensor *t) {
  *yes = 1;
  TRY(nc_refresh(t));
  *yes = is_leaf(t);
  return NC_OK;
}

int nc_gradname(const char **name, Tensor *t) {
  *name = NULL;
  TRY(nc_refresh(t));
  if (!is_leaf(t)) *name = t->ad->node->name;
  return NC_OK;
}

uintptr_t nc_gradnode(const Tensor *t) {
  return is_leaf(t) ? 0 : (uintptr_t)t->ad->node;
}

int nc_set_requires_grad(Tensor *t, int yes) {
  TRY(nc_refresh(t));
  if (!is_leaf(t)) {
    if (yes) return NC_OK;
    nc_fail(NC_EVALUE,
            "the tensor is a result of %s, and only leaves can "
            "stop requiring a gradient",
            t->ad->node->name);
    nc_hint("{0}:detach() has no history");
    return NC_EVALUE;
  }
  if (!yes) {
    if (t->ad) t->ad->required = 0;
    return NC_OK;
  }
  if (!nc_is_differentiable(t->dtype)) {
    nc_fail(NC_EDTYPE,
            "only float tensors%s can require a gradient, this is %s",
            nc_is_real(t->dtype) ? " that are computed with" : "",
            nc_dtypename(t->dtype));
    nc_hint("{0}:to(\"float32\") first");
    return NC_EDTYPE;
  }
  TRY(make_leaf_node(t));
  t->ad->required = 1;
  return NC_OK;
}

Tensor *nc_grad(const Tensor *t) {
  if (t->ad == NULL || t->ad->node == NULL) return NULL;
  return t->ad->node->out[t->ad->index].grad;
}

/* Checks that g has the type, shape and device of t. */
static int check_grad(const Tensor *t, const Tensor *g) {
  char have[NC_TEXT], want[NC_TEXT];
  int same = g->nd == t->nd && g->dtype == t->dtype;
  for (int d = 0; same && d < t->nd; d++) same = g->size[d] == t->size[d];
  if (same && nc_device(g) == nc_device(t)) return NC_OK;
  nc_shapetext(have, g->nd, g->size);
  nc_shapetext(want, t->nd, t->size);
  return nc_fail(NC_ESHAPE,
                 "the gradient of a %s[%s] on %s cannot be a "
                 "%s[%s] on %s",
                 nc_dtypename(t->dtype), want, nc_device(t)->name,
                 nc_dtypename(g->dtype), have, nc_device(g)->name);
}

int nc_setgrad(Tensor *t, Tensor *g) {
  Tensor *old;
  if (g == NULL && nc_grad(t) == NULL) return NC_OK;
  if (g) {
    TRY(check_grad(t, g));
    if (g == t)
      return nc_fail(NC_EVALUE, "a tensor cannot be its own gradient");
    TRY(make_leaf_node(t));
    nc_retain(g);
  }
  old = nc_grad(t);
  t->ad->node->out[t->ad->index].grad = g;
  nc_release(old);
  return NC_OK;
}

/* *y = a sample whose value is detached. */
static int detach_sample(Tensor **y, const Tensor *x) {
  Tensor *value, *plain;
  int depth, r;
  nc_batch_open(&value, &depth, x);
  TRY(nc_detach(&plain, value));
  r = nc_batch_wrap(y, plain, depth);
  nc_release(plain);
  return r;
}

int nc_detach(Tensor **y, Tensor *x) {
  if (nc_is_sample(x)) return detach_sample(y, x);
  TRY(nc_alias(y, x));
  return nc_context->fusion
             ? nc_release_failed(nc_fusion_note_detach(x, *y), y, 1)
             : NC_OK;
}

int nc_detach_inplace(Tensor *t) {
  if (t->base) {
    nc_fail(NC_EVALUE, "a view cannot be detached in place");
    nc_hint("{0}:detach() gives a tensor without history");
    return NC_EVALUE;
  }
  if (t->ad == NULL) return NC_OK;
  nc_releasenode(t->ad->node);
  t->ad->node = NULL;
  t->ad->index = t->ad->required = 0;
  t->ad->epoch++;
  return NC_OK;
}

/*
** Recording
*/
int nc_checkinplace(Tensor *into) {
  const Tensor *root = into->base ? into->base : into;
  const Autograd *ad = root->ad;
  if (nc_context->no_grad || ad == NULL || !ad->required || !is_leaf(root))
    return NC_OK;
  nc_fail(NC_EVALUE,
          root == into
              ? "a leaf that requires a gradient cannot be changed in place"
              : "a view of a leaf that requires a gradient cannot be changed "
                "in place");
  nc_hint("nacre.no_grad(function() ... end) to change it unrecorded, or "
          "clone it first");
  return NC_EVALUE;
}

/* Sets e to the edge to t, with a reference to its node; *size is the room for
   the sizes, and is advanced. */
static void set_edge(Edge *e, const Tensor *t, int64_t **size) {
  *e = nc_edgeof(t);
  if (e->node) e->node->refs++;
  e->meta.size = *size;
  set_meta(&e->meta, t);
  *size += t->nd;
}

/* Fails for a view of the parts of a complex tensor, or of pairs as complex
   numbers: what changes in place there is not recorded. */
static int check_base_dtype(const Tensor *t) {
  if (t->base->dtype == t->dtype) return NC_OK;
  nc_fail(NC_EVALUE,
          "a change in place of a %s view of %s numbers cannot be "
          "recorded for gradients",
          nc_dtypename(t->dtype), nc_dtypename(t->base->dtype));
  nc_hint("nacre.complex(re, im) makes a new tensor of parts");
  return NC_EVALUE;
}

/* Allocates what an operation in place on tr->into needs, so that
   nc_record_commit cannot fail: its Autograd, and for a view a node `set' of
   the base and a node `view' of its own. */
static int prepare_inplace(Recording *tr) {
  Tensor *t = tr->into, *base = t->base;
  TRY(nc_newad(t));
  if (base == NULL) return NC_OK;
  TRY(check_base_dtype(t));
  TRY(nc_newad(base));
  TRY(nc_newnode(&tr->set, &nc_setnode, "set", 2, 1, 0, sizeof(Geometry),
                 base->nd + t->nd));
  return nc_newnode(&tr->view, &nc_viewnode, "view", 1, 1, 0, sizeof(Geometry),
                    base->nd);
}

int nc_record_begin(Recording *tr, const NodeKind *kind, const char *name,
                    Tensor *const in[], int nin, int nout, int nsaved,
                    size_t info, Tensor *into) {
  int64_t *size, sizes = 0;
  int any = 0, yes = 0, r;
  memset(tr, 0, sizeof *tr);
  for (int i = 0; i < nin; i++) {
    if (in[i] == NULL) continue;
    TRY(nc_get_requires_grad(&yes, in[i]));
    any |= yes;
    sizes += in[i]->nd;
  }
  if (into) {
    TRY(nc_checkinplace(into));
    TRY(nc_get_requires_grad(&yes, into));
    if (!nc_is_differentiable(into->dtype) || !(any || yes)) return NC_OK;
    tr->into = into;
    if ((r = prepare_inplace(tr)) != NC_OK) {
      nc_record_cancel(tr);
      return r;
    }
  }
  if (!any) return NC_OK;
  r = nc_newnode(&tr->node, kind, name, nin, nout, nsaved, info, sizes);
  if (r != NC_OK) {
    nc_record_cancel(tr);
    return r;
  }
  size = nin > 0 ? tr->node->edge[0].meta.size : NULL;
  for (int i = 0; i < nin; i++)
    if (in[i]) set_edge(&tr->node->edge[i], in[i], &size);
  return NC_OK;
}

void nc_record_cancel(Recording *tr) {
  nc_releasenode(tr->node);
  nc_releasenode(tr->set);
  nc_releasenode(tr->view);
  memset(tr, 0, sizeof *tr);
}

/* Makes t result `index' of node n; takes over the reference to n. */
static void set_node(Tensor *t, Node *n, int index) {
  Node *old = t->ad->node;
  t->ad->node = n;
  t->ad->index = index;
  t->ad->required = 0;
  nc_releasenode(old);
}

/* After a write to a view: the base becomes the result of `set' (old base,
   value written), the view becomes a view of it. */
static void commit_view(Recording *tr) {
  Tensor *t = tr->into, *base = t->base;
  int64_t *size = tr->set->edge[0].meta.size;
  nc_geometry(tr->set->info, base, t);
  nc_geometry(tr->view->info, base, t);
  set_edge(&tr->set->edge[0], base, &size);
  tr->set->edge[1].meta.size = size;
  set_meta(&tr->set->edge[1].meta, t);
  tr->set->edge[1].node = tr->node;
  set_meta(&tr->set->out[0].meta, base);
  set_node(base, tr->set, 0);
  size = tr->view->edge[0].meta.size;
  set_edge(&tr->view->edge[0], base, &size);
  set_meta(&tr->view->out[0].meta, t);
  set_node(t, tr->view, 0);
  t->ad->epoch = ++base->ad->epoch;
}

/* Stores the types and shapes of the results, and the versions of saved
   results, which are known now that they have been written. */
static void set_outputs(Node *n, Tensor *const out[], int nout) {
  for (int i = 0; i < nout; i++)
    if (out[i]) set_meta(&n->out[i].meta, out[i]);
  for (int i = 0; i < n->nsaved; i++)
    if (n->saved[i].own)
      n->saved[i].saved_version = n->saved[i].t->data->version;
}

int nc_record_commit(Recording *tr, Tensor *const out[], int nout) {
  int r = NC_OK;
  if (tr->node) set_outputs(tr->node, out, nout);
  if (tr->into == NULL) {
    for (int i = 0; i < nout && tr->node && r == NC_OK; i++) {
      if (out[i] == NULL || !nc_is_differentiable(out[i]->dtype)) continue;
      if ((r = nc_newad(out[i])) != NC_OK) break;
      tr->node->refs++;
      set_node(out[i], tr->node, i);
    }
    nc_record_cancel(tr);
    return r;
  }
  if (tr->into->base) commit_view(tr);
  else {
    set_node(tr->into, tr->node, 0);
    tr->into->ad->epoch++;
  }
  memset(tr, 0, sizeof *tr);
  return NC_OK;
}

int nc_record_end(Recording *tr, int r, Tensor *out[], int nout) {
  if (r == NC_OK) r = nc_record_commit(tr, out, nout);
  if (r == NC_OK) return r;
  nc_record_cancel(tr);
  return nc_release_failed(r, out, nout);
}

int nc_record_new(const NodeKind *kind, const char *name, Tensor *const in[],
                  int nin, Tensor *const out[], int nout, const void *info,
                  size_t size) {
  Recording tr;
  if (nc_context->no_grad) return NC_OK;
  TRY(nc_record_begin(&tr, kind, name, in, nin, nout, 0, size, NULL));
  if (tr.node == NULL) return NC_OK;
  if (size > 0) memcpy(tr.node->info, info, size);
  return nc_record_commit(&tr, out, nout);
}

/* Gives a view whose base was changed in place since a new history: a view
   of what the base is now. */
int nc_refresh(Tensor *t) {
  const Autograd *base = t->base ? t->base->ad : NULL;
  int64_t *size;
  Node *n;
  if (base == NULL || base->epoch == (t->ad ? t->ad->epoch : 0)) return NC_OK;
  TRY(check_base_dtype(t));
  TRY(nc_newad(t));
  if (nc_edgeof(t->base).node == NULL || !nc_is_differentiable(t->dtype)) {
    set_node(t, NULL, 0);
  } else {
    TRY(nc_newnode(&n, &nc_viewnode, "view", 1, 1, 0, sizeof(Geometry),
                   t->base->nd));
    nc_geometry(n->info, t->base, t);
    size = n->edge[0].meta.size;
    set_edge(&n->edge[0], t->base, &size);
    set_meta(&n->out[0].meta, t);
    set_node(t, n, 0);
  }
  t->ad->epoch = base->epoch;
  return NC_OK;
}

/*
** Saved tensors
*/
/* Saves x with its current version. */
static int save_tensor(Saved *s, Tensor *x) {
  TRY(nc_alias(&s->t, x));
  s->saved_version = x->data->version;
  return NC_OK;
}

int nc_record_save(Recording *tr, int i, Tensor *x) {
  Saved *s = &tr->node->saved[i];
  const Edge e = nc_edgeof(x);
  Tensor *copy;
  int r;
  if (tr->into && nc_sharesmemory(tr->into, x)) {
    nc_context->no_grad++;
    r = nc_apply1(&copy, OP_clone, x);
    nc_context->no_grad--;
    TRY(r);
    r = save_tensor(s, copy);
    nc_release(copy);
    TRY(r);
  } else TRY(save_tensor(s, x));
  s->node = e.node;
  s->index = e.index;
  if (e.node) e.node->refs++;
  return NC_OK;
}

int nc_record_saveresult(Recording *tr, int i, Tensor *y, int index) {
  Saved *s = &tr->node->saved[i];
  TRY(save_tensor(s, y));
  s->own = 1;
  s->index = index;
  return NC_OK;
}

/* Fails: a saved tensor was changed in place. */
static int fail_changed(const Node *n, const Saved *s) {
  char shape[NC_TEXT];
  nc_fail(NC_EVALUE,
          "%s of %s, a %s[%s], was changed in place after %s saved it for its "
          "gradient: it is at version %d, expected %d",
          s->own ? "the result" : "an operand", n->name,
          nc_dtypename(s->t->dtype), nc_shapetext(shape, s->t->nd, s->t->size),
          n->name, s->t->data->version, s->saved_version);
  nc_hint("change a :clone() instead, or use the form without _");
  return NC_EVALUE;
}

int nc_borrow_node(Tensor *t, Node *node, int index) {
  TRY(nc_newad(t));
  node->refs++;
  set_node(t, node, index);
  t->ad->required = nc_isleafnode(node);
  t->ad->borrowed = 1;
  return NC_OK;
}

int nc_savedtensor(Tensor **t, const Node *n, int i) {
  const Saved *s = &n->saved[i];
  Node *node = s->own ? (Node *)n : s->node;
  int r;
  *t = NULL;
  if (n->freed) {
    nc_fail(NC_EVALUE, "the graph was freed by an earlier backward");
    nc_hint("backward({retain_graph=true}) keeps it, and so does "
            "nacre.autograd.grad(y, x, {retain_graph=true})");
    return NC_EVALUE;
  }
  if (s->t == NULL) return NC_OK;
  if (s->t->data->version != s->saved_version) return fail_changed(n, s);
  if (nc_context->no_grad || node == NULL) {
    nc_retain(*t = s->t);
    return NC_OK;
  }
  TRY(nc_alias(t, s->t));
  if ((r = nc_borrow_node(*t, node, s->index)) != NC_OK)
    return nc_release_failed(r, t, 1);
  return NC_OK;
}

/*
** The graph as a dry run sees it
*/
int nc_borrow_history(Tensor *t, Tensor *from) {
  Edge e;
  TRY(nc_refresh(from));
  e = nc_edgeof(from);
  return e.node ? nc_borrow_node(t, e.node, e.index) : NC_OK;
}
