/* SPDX-License-Identifier: MIT */
/*
** hooks.c - what receives the gradient of a tensor: hooks, and results that
** keep it (retain_grad). backward.c calls them.
*/
#include <string.h>

#include "core/tape.h"

void nc_releasehook(Hook *h) {
  if (--h->refs > 0) return;
  nc_removehook(h);
  nc_hostfree(h, sizeof *h);
}

void nc_removehook(Hook *h) {
  void (*drop)(void *) = h->drop;
  h->call = NULL;
  h->drop = NULL;
  if (drop) drop(h->data);
}

static int check_required(Tensor *t) {
  int yes;
  TRY(nc_get_requires_grad(&yes, t));
  if (yes) return NC_OK;
  nc_fail(NC_EVALUE, "the tensor does not require a gradient");
  nc_hint("{0}:requires_grad_() before it is used");
  return NC_EVALUE;
}

int nc_retaingrad(Tensor *t) {
  TRY(check_required(t));
  t->ad->node->out[t->ad->index].retain = 1;
  return NC_OK;
}

static int check_leaf(Tensor *t) {
  int yes;
  TRY(nc_isleaf(&yes, t));
  if (yes) return NC_OK;
  nc_fail(NC_EVALUE, "the tensor is a result, not a leaf: it accumulates no "
                     "gradient");
  nc_hint("{0}:register_hook(f) is called with its gradient");
  return NC_EVALUE;
}

int nc_addhook(Tensor *t, int after, Hook **out) {
  Output *o;
  void *p;
  Hook *h, **last;
  *out = NULL;
  TRY(check_required(t));
  if (after) TRY(check_leaf(t));
  o = &t->ad->node->out[t->ad->index];
  TRY(nc_hostalloc(&p, sizeof *h));
  h = memset(p, 0, sizeof *h);
  h->refs = 2;
  h->after = after;
  for (last = &o->hooks; *last; last = &(*last)->next) {
  }
  *out = *last = h;
  return NC_OK;
}
