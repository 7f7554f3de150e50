/* SPDX-License-Identifier: MIT */
/*
** reachable.c - nc_reach: what tensors refer to in the graph, for the collector
** of reference cycles in the binding.
**
** A hook or a custom function may hold the tensor whose node holds it.
** Reference counts cannot free such a cycle, and Lua's collector does not see
** the graph: nc_reach returns the graph that some tensors lead to.  An object
** with more references than the graph and these tensors account for is also
** held from outside; it is left out with all that it refers to.
*/
#include <string.h>

#include "core/tape.h"

typedef struct Object {
  Tensor *t; /* NULL: it is a node */
  Node *n;
  int found;      /* references that the traversal has met */
  int kept;       /* is it referred to from outside? */
  int first, end; /* range of its links */
} Object;

typedef struct Tracing {
  Object *object; /* in the order of discovery */
  int *slot;      /* hash table: index in object plus 1; 0: free */
  int n, nslot;
  int64_t objectroom, slotroom, linkroom, ownerroom, rootroom;
  Reach *r;
} Tracing;

static const void *address(const Object *o) {
  return o->t ? (const void *)o->t : (const void *)o->n;
}

/* Returns the slot of an address in the hash table, or the free one for it. */
static int *place(Tracing *w, const void *p) {
  const uint64_t mixed = (uint64_t)(uintptr_t)p * 0x9E3779B97F4A7C15u;
  int at = (int)((mixed >> 33) % (uint64_t)w->nslot);
  while (w->slot[at] && address(&w->object[w->slot[at] - 1]) != p)
    at = at + 1 == w->nslot ? 0 : at + 1;
  return &w->slot[at];
}

static int rehash(Tracing *w) {
  void *p;
  const int64_t bytes = 2 * w->slotroom + 4096 * (int64_t)sizeof(int);
  TRY(nc_hostalloc(&p, bytes));
  nc_hostfree(w->slot, w->slotroom);
  w->slot = memset(p, 0, (size_t)bytes);
  w->slotroom = bytes;
  w->nslot = (int)(bytes / (int64_t)sizeof(int));
  for (int i = 0; i < w->n; i++) *place(w, address(&w->object[i])) = i + 1;
  return NC_OK;
}

/* Counts a reference to a tensor or a node, whose object is made at the
   first; *at is its number, from 1. */
static int find(Tracing *w, Tensor *t, Node *n, int *at) {
  int *slot;
  if (2 * (w->n + 1) > w->nslot) TRY(rehash(w));
  slot = place(w, t ? (const void *)t : (const void *)n);
  if (*slot == 0) {
    TRY(nc_grow(&w->object, &w->objectroom,
                (w->n + 1) * (int64_t)sizeof(Object)));
    w->object[w->n++] = (Object){ t, n, 0, 0, 0, 0 };
    *slot = w->n;
  }
  w->object[*slot - 1].found++;
  *at = *slot;
  return NC_OK;
}

/* Adds a link from object i (from 1) to a tensor or a node, unless both are
   NULL. */
static int link(Tracing *w, int i, Tensor *t, Node *n) {
  Reach *r = w->r;
  int to;
  if (t == NULL && n == NULL) return NC_OK;
  TRY(find(w, t, n, &to));
  TRY(nc_grow(&r->link, &w->linkroom,
              (r->nlink + 1) * (int64_t)sizeof *r->link));
  r->link[r->nlink].from = i;
  r->link[r->nlink++].to = to;
  return NC_OK;
}

/* Adds a hook or function of the program, known by drop and data, that
   object i owns. */
static int own(Tracing *w, int i, void (*drop)(void *), void *data) {
  Reach *r = w->r;
  if (drop == NULL) return NC_OK;
  TRY(nc_grow(&r->owner, &w->ownerroom,
              (r->nowner + 1) * (int64_t)sizeof *r->owner));
  r->owner[r->nowner].from = i;
  r->owner[r->nowner].drop = drop;
  r->owner[r->nowner++].data = data;
  return NC_OK;
}

/* Follows the references of a node. */
static int expandnode(Tracing *w, int i, Node *n) {
  Custom c;
  for (int k = 0; k < n->nedge; k++) TRY(link(w, i, NULL, n->edge[k].node));
  for (int k = 0; k < n->nsaved; k++) {
    TRY(link(w, i, n->saved[k].t, NULL));
    TRY(link(w, i, NULL, n->saved[k].node));
  }
  for (int k = 0; k < n->nout; k++) {
    TRY(link(w, i, n->out[k].grad, NULL));
    for (Hook *h = n->out[k].hooks; h; h = h->next)
      TRY(own(w, i, h->drop, h->data));
  }
  return nc_customof(&c, n) ? own(w, i, c.drop, c.data) : NC_OK;
}

/* Follows the references of object i. */
static int expand(Tracing *w, int i) {
  const Object o = w->object[i - 1];
  if (o.n) return expandnode(w, i, o.n);
  TRY(link(w, i, o.t->base, NULL));
  return link(w, i, NULL, o.t->ad ? o.t->ad->node : NULL);
}

/* Marks what is referred to from outside, and all that it refers to.  The
   hash table is no longer needed and serves as the stack. */
static void keep(Tracing *w) {
  const Reach *r = w->r;
  int waiting = 0;
  for (int i = 0; i < w->n; i++) {
    Object *o = &w->object[i];
    o->kept = (o->t ? o->t->refs : o->n->refs) > o->found;
    if (o->kept) w->slot[waiting++] = i;
  }
  while (waiting > 0) {
    const Object *o = &w->object[w->slot[--waiting]];
    for (int k = o->first; k < o->end; k++) {
      Object *to = &w->object[r->link[k].to - 1];
      if (!to->kept) w->slot[waiting++] = r->link[k].to - 1;
      to->kept = 1;
    }
  }
}

/* Removes the marked objects from links, owners and roots. */
static void strip(Tracing *w, int nroot) {
  Reach *r = w->r;
  int n = 0;
  for (int k = 0; k < r->nlink; k++)
    if (!w->object[r->link[k].from - 1].kept &&
        !w->object[r->link[k].to - 1].kept)
      r->link[n++] = r->link[k];
  r->nlink = n;
  n = 0;
  for (int k = 0; k < r->nowner; k++)
    if (!w->object[r->owner[k].from - 1].kept) r->owner[n++] = r->owner[k];
  r->nowner = n;
  for (int k = 0; k < nroot; k++)
    if (w->object[r->root[k] - 1].kept) r->root[k] = 0;
}

/* Finds all objects that the tensors lead to, then removes those that are held
   from outside. */
static int trace(Tracing *w, Tensor *const t[], int n) {
  TRY(nc_grow(&w->r->root, &w->rootroom, (n + 1) * (int64_t)sizeof(int)));
  for (int i = 0; i < n; i++) TRY(find(w, t[i], NULL, &w->r->root[i]));
  for (int i = 1; i <= w->n; i++) {
    w->object[i - 1].first = w->r->nlink;
    TRY(expand(w, i));
    w->object[i - 1].end = w->r->nlink;
  }
  keep(w);
  strip(w, n);
  w->r->n = w->n;
  return NC_OK;
}

int nc_reach(Reach *r, Tensor *const t[], int n) {
  Tracing w = { .r = r };
  memset(r, 0, sizeof *r);
  const int status = trace(&w, t, n);
  nc_hostfree(w.object, w.objectroom);
  nc_hostfree(w.slot, w.slotroom);
  r->room[0] = w.rootroom;
  r->room[1] = w.linkroom;
  r->room[2] = w.ownerroom;
  return status;
}

void nc_freereach(Reach *r) {
  nc_hostfree(r->root, r->room[0]);
  nc_hostfree(r->link, r->room[1]);
  nc_hostfree(r->owner, r->room[2]);
  memset(r, 0, sizeof *r);
}

/*
** Nodes by number, for who sees the graph from outside
*/
int nc_node_before(uintptr_t *before, uintptr_t node, int i) {
  const Node *n = (const Node *)node;
  if (i >= n->nedge) return 0;
  *before = (uintptr_t)n->edge[i].node;
  return 1;
}

int nc_node_saved(const Storage **s, uintptr_t node, int i) {
  const Node *n = (const Node *)node;
  if (i >= n->nsaved) return 0;
  *s = n->saved[i].t ? n->saved[i].t->data : NULL;
  return 1;
}
