/* SPDX-License-Identifier: MIT */
/*
** autograd.h - automatic differentiation, as others see it.
**
** While recording is on, an operation with an operand that requires a gradient
** adds a node to a graph; nc_backward goes through the graph from results to
** leaves.  tape.h is the graph itself.
*/
#ifndef core_autograd_h
#define core_autograd_h

#include "core/tensor.h"

int nc_get_requires_grad(int *yes, Tensor *t);       /* requires_grad */
int nc_set_requires_grad(Tensor *t, int yes);         /* sets it, of a leaf */
int nc_isleaf(int *yes, Tensor *t);
int nc_gradname(const char **name, Tensor *t); /* grad_fn: "mul"; leaf: NULL */
uintptr_t nc_gradnode(const Tensor *t);     /* identifies the node; leaf: 0 */
/* Sets *before to the node to which edge i of a node leads, or 0, and *s to
   the memory of the i-th tensor that it saves, or NULL; return 0 if there is
   no i-th. */
int nc_node_before(uintptr_t *before, uintptr_t node, int i);
int nc_node_saved(const Storage **s, uintptr_t node, int i);

Tensor *nc_grad(const Tensor *t);           /* borrowed; NULL: none yet */
int nc_setgrad(Tensor *t, Tensor *g);       /* NULL removes it */
int nc_retaingrad(Tensor *t);               /* keeps that of a non-leaf */
int nc_detach(Tensor **y, Tensor *x);       /* a view without history */
int nc_detach_inplace(Tensor *t);               /* detach_ */

/* A function that is called with the gradient of a tensor when it is complete.
   It may replace *g by another of the same shape, and then releases the old.
   One that is `after' is called when a leaf has accumulated *g, and replaces
   nothing; such a leaf accumulates as soon as its gradient is complete, other
   leaves at the end of the pass. */
typedef struct Hook {
  struct Hook *next;
  int refs;                   /* of its creator and of the graph */
  int after;
  int (*call)(void *data, Tensor **g);      /* NULL: removed */
  void (*drop)(void *data);
  void *data;
} Hook;

/* Fill it in, then release it. Fails for `after' if t is no leaf. */
int nc_addhook(Tensor *t, int after, Hook **h);
void nc_removehook(Hook *h);
void nc_releasehook(Hook *h);

/* A custom function (autograd.Function).  backward gets in g a gradient for
   each result and sets in d one for each operand (NULL: none); both are
   references. drop releases data; it may be NULL. */
typedef struct Custom {
  const char *name;
  int (*backward)(void *data, Tensor *const g[], Tensor *d[], const int need[]);
  void (*drop)(void *data);
  void *data;
} Custom;

/* Makes out[] the results of c applied to in[].  If that is recorded, *node is
   its node, from which nc_customsaved reads the saved tensors. */
typedef struct Node Node;
int nc_custom(Node **node, const Custom *c, Tensor *const in[], int nin,
              Tensor *const out[], int nout, Tensor *const saved[],
              int nsaved);
int nc_customsaved(Tensor **t, const Node *node, int i);

/* The part of the graph that was recorded after nc_newest_node() gave `since',
   and leads to out[]. */
int64_t nc_newest_node(void); /* counts the nodes that were made */
typedef struct Region {
  Tensor **input;             /* what the part uses from outside: tensors of
                                 that shape and history, without values */
  int n;
  int64_t room;               /* of `input', in bytes */
} Region;

/* Finds the inputs, and releases what the part has saved. */
int nc_region_inputs(Region *r, Tensor *const out[], int n, int64_t since);
void nc_freeregion(Region *r);
/* Does the part use anything from outside but these leaves? */
int nc_region_others(int *others, Tensor *const out[], int n, int64_t since,
                     Tensor *const leaf[], int count);
/* Makes the part use the leaf to[i] instead of from[i], an input.  Fails if it
   uses others. */
int nc_region_redirect(Tensor *const out[], int n, int64_t since,
                       Tensor *const from[], Tensor *const to[], int count);

typedef struct Backward {
  int n;
  Tensor *const *output;      /* the tensors to differentiate */
  Tensor *const *grad_outputs; /* their gradients; NULL: ones */
  int retain, create;         /* keep the graph; record a new one */
  int ninput;                 /* 0: every leaf */
  Tensor *const *input;
  Tensor **result;            /* receives the gradients of the inputs, NULL for
                                 none; if it is NULL they accumulate in grad */
} Backward;

int nc_backward(const Backward *b);

/* A call to make at the end of the innermost running backward pass: when all
   gradients are complete, but before leaves without hooks that are `after'
   accumulate theirs. status is NC_OK, and a call that fails makes the pass
   fail; or the pass has failed with status, which does not change.  drop
   releases data; it may be NULL. */
typedef struct AtEnd {
  int (*call)(void *data, int status);
  void (*drop)(void *data);
  void *data;
} AtEnd;

/* Fails if no pass runs; then drop is not called. */
int nc_atend(const AtEnd *e);

/* What tensors reach through the graph, for a collector of cycles: links
   between objects, which count from 1, and the hooks and custom functions
   that they own, identified by their drop function.  An object that is also
   referenced from elsewhere is left out, with all that it reaches
   (reachable.c). */
typedef struct Reach {
  int n;                      /* objects */
  int nlink, nowner;
  int *root;                  /* the object of each tensor; 0: left out */
  struct { int from, to; } *link;
  struct { int from; void (*drop)(void *data); void *data; } *owner;
  int64_t room[3];            /* capacity of the lists, in bytes */
} Reach;

int nc_reach(Reach *r, Tensor *const t[], int n); /* free r, also on failure */
void nc_freereach(Reach *r);

#endif
