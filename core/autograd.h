/* SPDX-License-Identifier: MIT */
/*
** autograd.h - gradients, as seen from outside; a part of tensor.h, which
** includes it.
**
** While recording is on, an operation with an operand that requires a
** gradient leaves a node in a graph; nc_backward walks the graph from results
** to leaves.  The tape itself is tape.h, and knows no operation by name.
*/
#ifndef core_autograd_h
#define core_autograd_h

/* Recording of this thread: 0 is on, more is off, as often as was asked. */
#ifndef __cplusplus
extern _Thread_local int nc_gradoff;
#endif

int nc_requires(int *yes, Tensor *t);       /* is a gradient wanted of it? */
int nc_require(Tensor *t, int yes);         /* of a leaf */
int nc_isleaf(int *yes, Tensor *t);         /* no result of a recorded op? */
int nc_gradname(const char **name, Tensor *t); /* "mul"; NULL for a leaf */
uintptr_t nc_gradnode(const Tensor *t);     /* tells nodes apart; 0: a leaf */

Tensor *nc_grad(const Tensor *t);           /* not retained; NULL: none yet */
int nc_setgrad(Tensor *t, Tensor *g);       /* NULL takes it away */
int nc_retaingrad(Tensor *t);               /* also of what is no leaf */
int nc_detach(Tensor **y, Tensor *x);       /* the same memory, no history */
int nc_detachinto(Tensor *t);

/* Called with the gradient of a tensor when that is known; may put another
   one, of the same shape, in its place (and release the old one). */
typedef struct Hook {
  struct Hook *next;
  int refs;                   /* who made it, and the graph */
  int (*call)(void *data, Tensor **g);      /* NULL: it was removed */
  void (*drop)(void *data);
  void *data;
} Hook;

int nc_addhook(Tensor *t, Hook **h);        /* to be filled in, then released */
void nc_removehook(Hook *h);
void nc_releasehook(Hook *h);

/* A function of the program: what it does backward.  g has a gradient for
   each result, d is to take one for each operand (NULL: none), both of which
   are references.  Without `drop' data is not released. */
typedef struct Custom {
  const char *name;
  int (*backward)(void *data, Tensor *const g[], Tensor *d[], const int need[]);
  void (*drop)(void *data);
  void *data;
} Custom;

/* Makes out[] results of c applied to in[]; *node, if it was recorded, is
   for nc_customsaved: tensors that it keeps. */
typedef struct Node Node;
int nc_custom(Node **node, const Custom *c, Tensor *const in[], int nin,
              Tensor *const out[], int nout, Tensor *const saved[],
              int nsaved);
int nc_customsaved(Tensor **t, const Node *node, int i);

typedef struct Backward {
  int n;
  Tensor *const *output;      /* what is differentiated */
  Tensor *const *given;       /* its gradients; NULL entries are ones */
  int retain, create;         /* keep the graph; record a new one */
  int ninput;                 /* 0: every leaf */
  Tensor *const *input;
  Tensor **result;            /* takes gradients of the inputs, NULL where
                                 there is none; NULL: they accumulate */
} Backward;

int nc_backward(const Backward *b);

/* What some tensors lead to, as links between objects counted from 1; hooks
   and functions of the program are told by what drops them.  Left out is
   what others hold, too, with all that it leads to (reachable.c). */
typedef struct Reach {
  int n;                      /* objects */
  int nlink, nowner;
  int *root;                  /* the object of each tensor; 0: left out */
  struct { int from, to; } *link;
  struct { int from; void (*drop)(void *data); void *data; } *owner;
  int64_t room[3];            /* of the lists, in bytes */
} Reach;

int nc_reach(Reach *r, Tensor *const t[], int n); /* to be freed in any case */
void nc_freereach(Reach *r);

#endif
