/* SPDX-License-Identifier: MIT */
/*
** node_order.c - the order in which backward visits the nodes.
**
** nc_sort_nodes sorts topologically (depth first, postorder); in reverse order
** all that adds to the gradients of a node comes before it.  A pass restores
** what it has changed in a node (walk, slot), because a hook may start another
** pass through the same graph.
*/
#include <string.h>

#include "core/autograd/backward_pass.h"

int nc_grow(void *p, int64_t *room, int64_t need) {
  int64_t want = *room ? 2 * *room : 1024;
  void *old = *(void **)p, *new;
  if (need <= *room) return NC_OK;
  while (want < need) want *= 2;
  TRY(nc_hostalloc(&new, want));
  memset(new, 0, (size_t)want);
  if (old) memcpy(new, old, (size_t)*room);
  nc_hostfree(old, *room);
  memcpy(p, &new, sizeof new);
  *room = want;
  return NC_OK;
}

/* Pushes n on the stack, unless this pass has met it. */
static int push(BackwardPass *w, Node *n) {
  if (n->walk == w) return NC_OK;
  TRY(nc_grow(&w->frame, &w->frameroom,
              (w->nframe + 1) * (int64_t)sizeof(Frame)));
  w->frame[w->nframe++] = (Frame){ n, n->walk, n->slot, 0 };
  n->walk = w;
  n->slot = -1;
  return NC_OK;
}

/* Appends the node of f, whose predecessors are listed, as an entry. */
static int add_entry(BackwardPass *w, const Frame *f) {
  Node *n = f->node;
  TRY(nc_grow(&w->entry, &w->entryroom, (w->n + 1) * (int64_t)sizeof(Entry)));
  w->entry[w->n] =
      (Entry){ n, f->oldwalk, f->oldslot, w->nsum, 0, 0, -1, 0, 0 };
  n->slot = w->n++;
  w->nsum += n->nout;
  nc_notestreams(&w->streams, n);
  return NC_OK;
}

int nc_sort_nodes(BackwardPass *w, Node *n) {
  TRY(push(w, n));
  while (w->nframe > 0) {
    Frame *f = &w->frame[w->nframe - 1];
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    if (f->next < f->node->nedge) {
      Node *to = f->node->edge[f->next++].node;
      if (to) TRY(push(w, to));
    } else {
      const Frame done = *f;
      TRY(add_entry(w, &done));
      w->nframe--;
    }
  }
  return NC_OK;
}

void nc_end_pass(BackwardPass *w) {
  for (int i = 0; i < w->n; i++) {
    w->entry[i].node->walk = w->entry[i].oldwalk;
    w->entry[i].node->slot = w->entry[i].oldslot;
  }
  for (int i = 0; i < w->nframe; i++) {
    if (w->frame[i].node->slot >= 0) continue; /* restored as an entry */
    w->frame[i].node->walk = w->frame[i].oldwalk;
    w->frame[i].node->slot = w->frame[i].oldslot;
  }
  for (int i = 0; w->sum && i < w->nsum; i++) nc_release(w->sum[i]);
  nc_hostfree(w->entry, w->entryroom);
  nc_hostfree(w->frame, w->frameroom);
  nc_hostfree(w->sum, w->sumroom);
  nc_hostfree(w->end, w->endroom);
}

int nc_mark_useful(BackwardPass *w) {
  const Backward *b = w->b;
  void *p;
  for (int i = 0; i < b->ninput; i++) {
    Node *n = b->input[i]->ad->node;
    if (n->walk == w) w->entry[n->slot].target = 1;
  }
  for (int i = 0; i < w->n; i++) { /* predecessors come first */
    Entry *e = &w->entry[i];
    const Node *n = e->node;
    e->useful = b->ninput == 0 || e->target;
    for (int k = 0; k < n->nedge; k++) {
      if (n->edge[k].node == NULL) continue;
      Entry *from = &w->entry[n->edge[k].node->slot];
      e->useful |= from->useful;
      if (from->last < 0) from->last = i; /* visited from n - 1 down to 0 */
    }
  }
  TRY(nc_hostalloc(&p, (w->nsum + 1) * (int64_t)sizeof(Tensor *)));
  w->sumroom = (w->nsum + 1) * (int64_t)sizeof(Tensor *);
  w->sum = memset(p, 0, (size_t)w->sumroom);
  return NC_OK;
}
