/* SPDX-License-Identifier: MIT */
/*
** tape.h - the tape: what recorded operations leave behind.
**
** A node stands for one operation.  Its edges lead to the nodes that gave its
** operands; a leaf has a node of its own, which keeps the gradient.  Nodes
** hold no tensors but the ones whose values their gradient needs, and of
** those only the data and the place in the graph: so there are no cycles.
*/
#ifndef core_tape_h
#define core_tape_h

#include "core/tensor.h"

typedef struct GradMeta {         /* what a gradient must look like */
  const Device *device;
  DType dtype;
  int nd;
  int stream;                 /* that the device worked on then, by number */
  int64_t *size;
} GradMeta;

typedef struct Edge {
  Node *node;                 /* NULL: no gradient is wanted */
  int index;                  /* which of its results */
  GradMeta meta;
} Edge;

typedef struct Output {
  GradMeta meta;
  Tensor *grad;               /* of a leaf, or if it was asked for */
  int retain;
  Hook *hooks;
} Output;

/* A tensor whose values are needed; its history, if it had one. */
typedef struct Saved {
  Tensor *t;                  /* NULL: not kept */
  Node *node;                 /* NULL: none, or, if `own', the node itself */
  int index, own, version;
} Saved;

typedef struct GradCall {     /* a request for gradients of operands */
  Node *node;
  Tensor *const *g;           /* gradients of the results; NULL: zeros */
  Tensor **d;                 /* to be filled; NULL stays for zeros */
  const int *need;
} GradCall;

int nc_backward_traced(GradCall *g);        /* trace.c */

typedef struct NodeKind {
  int (*backward)(GradCall *g);
  void (*drop)(void *info);   /* NULL: nothing to release */
} NodeKind;

typedef struct BackwardPass BackwardPass;

struct Node {
  int refs;
  int nedge, nout, nsaved;
  const NodeKind *kind;       /* NULL: of a leaf */
  const char *name;
  Edge *edge;
  Output *out;
  Saved *saved;
  void *info;                 /* what the kind keeps */
  int64_t bytes;              /* of all of this, in one block */
  int freed;                  /* were the saved tensors given up? */
  int slot;                   /* in a walk */
  BackwardPass *walk;
  Node *next;                 /* to be released */
};

typedef struct Autograd {     /* of a tensor */
  Node *node;                 /* NULL: a leaf that needs none */
  int index;
  int required;               /* of a leaf */
  int borrowed;               /* the node is another tensor's */
  unsigned epoch;             /* in-place changes that the history knows */
} Autograd;

/* The streams that took part in what a walk goes through, as bits; see
   stream_sync.c. */
#define NC_MAXACCEL 16
typedef struct Streams {
  int several;                /* is there any but the current ones? */
  uint64_t used[NC_MAXACCEL]; /* by the ordinal of the device */
} Streams;

int nc_streamnumber(const Device *d);       /* the current one; 0 of the host */
void nc_notestreams(Streams *s, const Node *n);
int nc_joinstreams(const Streams *s, int r);
int nc_forkstreams(const Streams *s, int r);

#define nc_isleafnode(n) ((n)->kind == NULL)

/*
** Nodes (node.c)
*/
int nc_newnode(Node **n, const NodeKind *kind, const char *name, int nedge,
               int nout, int nsaved, size_t info, int64_t sizes);
void nc_releasenode(Node *n); /* NULL is fine */
void nc_dropsaved(Node *n);
void nc_forget(Autograd *ad); /* of a tensor that goes */
int nc_newad(Tensor *t);      /* gives it an Autograd, if it has none */
int nc_refresh(Tensor *t);    /* brings the history of a view up to date */
Edge nc_edgeof(const Tensor *t);            /* where its gradient goes */

/*
** Recording (tape.c).  nc_record_begin makes the node before the operation
** runs, so that nothing can fail afterwards but what a new result can be given up
** for; nc_record_commit ties the results to it.
*/
#define nc_mayrecord(t) ((t)->ad != NULL || (t)->base != NULL)

typedef struct Recording {
  Node *node;                 /* NULL: nothing is recorded */
  Tensor *into;               /* written in place; NULL: a new result */
  Node *set, *view;           /* of a base and of its view */
} Recording;

int nc_record_begin(Recording *t, const NodeKind *kind, const char *name,
             Tensor *const in[], int nin, int nout, int nsaved, size_t info,
             Tensor *into);
/* Fills saved[i] of the node with an operand; if the operation is going to
   overwrite it, with a copy. */
int nc_record_save(Recording *t, int i, Tensor *x);
/* The same for a result; in place: before the operation runs. */
int nc_record_saveresult(Recording *t, int i, Tensor *y, int index);
int nc_record_commit(Recording *t, Tensor *const out[], int nout);
void nc_record_cancel(Recording *t);
int nc_checkinplace(Tensor *into); /* may it be written in place, unrecorded? */

/* *t = what saved[i] holds, with its history if recording is on. */
int nc_savedtensor(Tensor **t, const Node *n, int i);

/* Does y, a new result of the operation `kind' on in[], need a node? */
int nc_record_new(const NodeKind *kind, const char *name, Tensor *const in[],
            int nin, Tensor *const out[], int nout, const void *info,
            size_t size);

/* Is it a node of nc_custom?  Then *c is what was given there. */
int nc_customof(Custom *c, const Node *n);

/* What apply.c and device.c do not do themselves. */
int nc_apply_recorded(Tensor **y, Op op, const Arg in[], const double par[2],
                     Tensor *out);
int nc_reduce_recorded(Tensor **y, Op op, Tensor *x, unsigned dims,
                      int keepdim, DType dtype, const double par[2],
                      Tensor *out);
int nc_copied(Tensor *y, Tensor *x);        /* y is new, a copy of x */
/* y, a new result, may show the memory of x: then it gets the base by which
   it follows changes. */
int nc_setbase(Tensor *y, Tensor *x);

/*
** Rows (pointwise_grad.c, formula.c)
*/
enum { LETTER_G, LETTER_A, LETTER_B, LETTER_C, LETTER_Y, LETTER_N, LETTER_P,
       LETTER_Q, LETTERS };

typedef struct Value {        /* a tensor or a number */
  Tensor *t;
  Scalar s;
} Value;

unsigned nc_formula_letters(const char *text); /* bits: which occur; x is a */
int nc_formula_eval(Tensor **y, const char *text, const Value letter[LETTERS]);
/* y = text of the tensors g, a, b and c, which may be NULL, and a number */
int nc_formula(Tensor **y, const char *text, Tensor *g, Tensor *a, Tensor *b,
               Tensor *c, double n);

/* BY(product): the gradient of a product over `dims' (prod_grad.c) */
int nc_byproduct(Tensor **d, Tensor *g, Tensor *x, Tensor *y, unsigned dims);

extern const NodeKind nc_pointwisenode, nc_reducenode, nc_copynode;

typedef struct PointwiseInfo {
  Op op;
  unsigned kept;              /* letters of the saved tensors, in order */
  double par[2];
  Scalar number[3];           /* operands that are none */
  unsigned dims;              /* of a reduction */
  int keepdim;
} PointwiseInfo;

/*
** Views and indexing (view_grad.c)
*/
typedef struct Geometry {     /* how a view lies in its base */
  int xnd, nd;
  int64_t xsize[NC_MAXDIM], xstep[NC_MAXDIM];
  int64_t size[NC_MAXDIM], step[NC_MAXDIM], offset;
} Geometry;

void nc_geometry(Geometry *g, const Tensor *x, const Tensor *view);
int nc_denselike(Tensor **y, const Tensor *x); /* geometry of a dense x only */
extern const NodeKind nc_viewnode, nc_setnode, nc_inplacenode;

/*
** Families
*/
typedef struct OperatorGrad {   /* what a gradient function is called with */
  const Node *node;
  Arg *arg;                   /* as in the call, but for tensors */
  Tensor *out[NC_MAXOUT];
  Tensor *const *g;           /* of the results; NULL: zeros */
  Tensor **d;                 /* to be filled; NULL stays for zeros */
  const int *need;
  const Edge *in;             /* in[i].meta: what operand i was */
  int n;                      /* operands */
} OperatorGrad;

/* *t = an operand, or a result, that the signature marks; not retained. */
int nc_operand(OperatorGrad *g, int i, Tensor **t);
int nc_result(OperatorGrad *g, int i, Tensor **t);

extern const NodeKind nc_operatornode;

#define NOGRAD(op)
#define COMPOSED(op)
#define VIEW(op)
#define INPLACE(op)
#define GRAD(op) int nc_grad_##op(OperatorGrad *g);
#define OPERATOR(op, class, ...) class(op)
#include "core/operators.def"
#undef OPERATOR
#undef NOGRAD
#undef COMPOSED
#undef VIEW
#undef INPLACE
#undef GRAD

/* Of a signature: bits of the arguments that a gradient needs the values of,
   which are marked by !, and of such results. */
int nc_marks(const char *signature, unsigned *results);

/*
** What gradients are made of; all is recorded if recording is on.
*/
int nc_fit(Tensor **g, const GradMeta *m);      /* *g summed to what m says */
int nc_reshapeto(Tensor **y, Tensor *x, int nd, const int64_t size[]);
int nc_broadcastto(Tensor **y, Tensor *x, int nd, const int64_t size[]);
/* *y = g, of x folded along dims, with these dimensions as size 1 */
int nc_unfolded(Tensor **y, Tensor *g, const GradMeta *x, unsigned dims);
/* *y = x folded along dims, which stay */
int nc_sumkept(Tensor **y, Tensor *x, unsigned dims);
/* *y = from .. to, int64, on the device of x */
int nc_counted(Tensor **y, const Tensor *x, int64_t from, int64_t to);
int nc_call2(Tensor **y, Operator op, Tensor *a, Tensor *b);
int nc_transposed(Tensor **y, Tensor *x);   /* the last two dimensions */

#endif
