/* SPDX-License-Identifier: MIT */
/*
** backward_pass.h - the state of a walk through the graph, between
** node_order.c and backward.c.
*/
#ifndef core_autograd_backward_pass_h
#define core_autograd_backward_pass_h

#include "core/tape.h"
#include "core/autograd.h"

typedef struct Entry {
  Node *node;
  BackwardPass *oldwalk; /* node->walk and slot before this pass */
  int oldslot;
  int first;      /* index of its gradients in BackwardPass.sum */
  int target;     /* is it an input of nc_backward? */
  int useful;     /* does it lead to an input? */
  int last;       /* entry that is the last to add to its gradients, or -1 */
  int arrived;    /* a leaf whose gradient is complete and seen by hooks */
  uintptr_t from; /* the last node that has added to its gradients */
} Entry;

typedef struct Frame {
  Node *node;
  BackwardPass *oldwalk;
  int oldslot, next; /* the next edge to follow */
} Frame;

struct BackwardPass {
  const Backward *b;
  Entry *entry;
  Frame *frame;
  Tensor **sum;
  AtEnd *end;
  Streams streams;
  int n, nframe, nsum;
  int nend, ended; /* what is to be called, and how much of it was */
  int64_t entryroom, frameroom, sumroom, endroom; /* in bytes */
};

/* Appends n and all nodes that it depends on, those first. */
int nc_sort_nodes(BackwardPass *w, Node *n);
/* Marks the entries that lead to an input (all, if there are none), and the
   last that adds to each.  Allocates the sums. */
int nc_mark_useful(BackwardPass *w);
/* Restores the nodes and frees everything. */
void nc_end_pass(BackwardPass *w);

#endif
