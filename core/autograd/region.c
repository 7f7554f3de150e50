/* SPDX-License-Identifier: MIT */
/*
** region.c - the part of the graph that a function recorded, for checkpoints:
** finds the edges that leave this part and redirects them to other tensors.
**
** Nodes are numbered as they are made, so the part is all that the results lead
** to, except leaves and nodes with a number up to `since'.
*/
#include <string.h>

#include "core/tape.h"

typedef struct Walk {
  Node **node; /* those of the part that were met */
  int n;
  int64_t since, noderoom, inputroom;
  Region *r;
  Tensor *const *own; /* known leaves, if r is NULL */
  int nown, others;   /* is there another edge that leaves the part? */
} Walk;

static int is_inside(const Walk *w, const Node *n) {
  return n->number > w->since && !nc_isleafnode(n);
}

/* Adds a node of the part, which no backward pass can have met. */
static int add_node(Walk *w, Node *n) {
  if (n->walk) return NC_OK;
  TRY(nc_grow(&w->node, &w->noderoom, (w->n + 1) * (int64_t)sizeof *w->node));
  w->node[w->n++] = n;
  n->walk = (BackwardPass *)w;
  return NC_OK;
}

/* Adds to the inputs a tensor in place of the one that e leads to, of its
   shape and with its history; its elements are one, without a value. */
static int add_input(Walk *w, const Edge *e) {
  Region *r = w->r;
  Tensor *t;
  for (int i = 0; i < r->n; i++)
    if (r->input[i]->ad->node == e->node && r->input[i]->ad->index == e->index)
      return NC_OK;
  TRY(nc_grow(&r->input, &w->inputroom,
              (r->n + 1) * (int64_t)sizeof *r->input));
  r->room = w->inputroom;
  TRY(nc_new(&t, e->meta.device, e->meta.dtype, 0, NULL));
  r->input[r->n++] = t;
  t->nd = e->meta.nd;
  for (int d = 0; d < t->nd; d++) {
    t->size[d] = e->meta.size[d];
    t->step[d] = 0;
  }
  return nc_borrow_node(t, e->node, e->index);
}

/* Redirects e, which leaves the part, to to[i] if it led to from[i]. */
static int redirect(Edge *e, Tensor *const from[], Tensor *const to[], int n,
                    int64_t since) {
  for (int i = 0; i < n; i++) {
    const Autograd *ad = from[i]->ad;
    if (ad->node != e->node || ad->index != e->index) continue;
    to[i]->ad->node->refs++;
    nc_releasenode(e->node);
    e->node = to[i]->ad->node;
    e->index = to[i]->ad->index;
    return NC_OK;
  }
  if (nc_isleafnode(e->node) && e->node->number > since) return NC_OK;
  return nc_fail(NC_EVALUE,
                 "the function used different tensors when it was called "
                 "again");
}

/* Notes an edge that leaves the part, unless it leads to one of w->own. */
static void note_other(Walk *w, const Edge *e) {
  for (int i = 0; i < w->nown; i++)
    if (w->own[i]->ad && w->own[i]->ad->node == e->node) return;
  w->others = 1;
}

/* Meets all nodes of the part, and adds the inputs unless w->r is NULL. */
static int walk(Walk *w, Tensor *const out[], int n) {
  for (int i = 0; i < n; i++) {
    const Edge e = nc_edgeof(out[i]);
    if (e.node && is_inside(w, e.node)) TRY(add_node(w, e.node));
  }
  for (int i = 0; i < w->n; i++) {
    for (int k = 0; k < w->node[i]->nedge; k++) {
      const Edge *e = &w->node[i]->edge[k];
      if (e->node == NULL) continue;
      if (is_inside(w, e->node)) TRY(add_node(w, e->node));
      else if (w->r) TRY(add_input(w, e));
      else note_other(w, e);
    }
  }
  return NC_OK;
}

static void end_walk(Walk *w) {
  for (int i = 0; i < w->n; i++) w->node[i]->walk = NULL;
  nc_hostfree(w->node, w->noderoom);
}

int nc_region_inputs(Region *r, Tensor *const out[], int n, int64_t since) {
  Walk w = { .since = since, .r = r };
  memset(r, 0, sizeof *r);
  const int status = walk(&w, out, n);
  for (int i = 0; i < w.n && status == NC_OK; i++) nc_dropsaved(w.node[i]);
  end_walk(&w);
  if (status != NC_OK) nc_freeregion(r);
  return status;
}

int nc_region_redirect(Tensor *const out[], int n, int64_t since,
                       Tensor *const from[], Tensor *const to[], int count) {
  Walk w = { .since = since };
  int status = walk(&w, out, n);
  for (int i = 0; i < w.n && status == NC_OK; i++) {
    Node *node = w.node[i];
    for (int k = 0; k < node->nedge && status == NC_OK; k++)
      if (node->edge[k].node && !is_inside(&w, node->edge[k].node))
        status = redirect(&node->edge[k], from, to, count, since);
  }
  end_walk(&w);
  return status;
}

int nc_region_others(int *others, Tensor *const out[], int n, int64_t since,
                     Tensor *const leaf[], int count) {
  Walk w = { .since = since, .own = leaf, .nown = count };
  const int status = walk(&w, out, n);
  end_walk(&w);
  *others = w.others;
  return status;
}

void nc_freeregion(Region *r) {
  for (int i = 0; i < r->n; i++) nc_release(r->input[i]);
  nc_hostfree(r->input, r->room);
  memset(r, 0, sizeof *r);
}
