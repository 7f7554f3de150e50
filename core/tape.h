/* SPDX-License-Identifier: MIT */
/*
** tape.h - the tape: the graph of recorded operations.
**
** A node stands for one operation.  Its edges lead to the nodes that made its
** operands; a leaf has a node of its own, which holds its gradient.  A node
** holds only the tensors whose values its gradient needs, and of a tensor only
** the data and its place in the graph, so there are no reference cycles.
*/
#ifndef core_tape_h
#define core_tape_h

#include "core/tensor.h"
#include "core/autograd.h"

typedef struct GradMeta {     /* device, type and shape of a gradient */
  const Device *device;
  DType dtype;
  int nd;
  int stream;                 /* number of the stream that was current */
  int64_t *size;
} GradMeta;

typedef struct Edge {
  Node *node;                 /* NULL: no gradient is wanted */
  int index;                  /* of the result of that node */
  GradMeta meta;
} Edge;

typedef struct Output {
  GradMeta meta;
  Tensor *grad;               /* of a leaf, or if it was asked for */
  int retain;
  Hook *hooks;
} Output;

/* A tensor that backward needs, and its history. */
typedef struct Saved {
  Tensor *t;                  /* NULL: not needed */
  Node *node;                 /* of t; NULL if it has none, or if `own' */
  int index, own;             /* which result of its node t is; whether that
                                 is the node that saves it */
  int saved_version;          /* of its storage when it was saved: if another
                                 operation has written there since, backward
                                 fails */
} Saved;

typedef struct GradCall {     /* a request for gradients of operands */
  Node *node;
  Tensor *const *g;           /* gradients of the results; NULL: zeros */
  Tensor **d;                 /* receives them; NULL: zeros */
  const int *need;            /* which are needed */
} GradCall;

int nc_trace_backward(GradCall *g);         /* trace.c */

typedef struct NodeKind {
  int (*backward)(GradCall *g);
  void (*drop)(void *info);   /* NULL: nothing to release */
  /* For an operation that shows elements of its one operand: adds their
     gradient to `sum', the gradient of the operand so far, dense and without
     another user.  NULL: backward does it all. */
  int (*add)(const GradCall *g, Tensor *sum);
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
  void *info;                 /* data of the kind */
  int64_t bytes;              /* of all of this, in one block */
  int64_t number;             /* in the order in which they are made */
  int freed;                  /* were the saved tensors released? */
  int slot;                   /* in a backward pass */
  BackwardPass *walk;
  Node *next;                 /* in the list of nodes to release */
};

typedef struct Autograd Autograd;
struct Autograd {             /* of a tensor */
  void (*drop)(Autograd *ad); /* frees it: the tensor is about to be freed */
  Node *node;                 /* NULL: a leaf without one yet */
  int index;
  int required;               /* of a leaf */
  int borrowed;               /* is the node that of another tensor? */
  unsigned epoch;             /* in-place changes that the history includes */
};

/* The streams that recorded the nodes of a backward pass, as bits; see
   stream_sync.c. */
#define NC_MAXACCEL 16
typedef struct Streams {
  int several;                /* is there one that is not current? */
  uint64_t used[NC_MAXACCEL]; /* by the ordinal of the device */
} Streams;

int nc_streamnumber(const Device *d);       /* the current one; host: 0 */
void nc_notestreams(Streams *s, const Node *n);
int nc_joinstreams(const Streams *s, int r);
int nc_forkstreams(const Streams *s, int r);

/* Grows the array *p of *room bytes to at least `need', by doubling; new bytes
   are 0 (backward.c). */
int nc_grow(void *p, int64_t *room, int64_t need);

#define nc_isleafnode(n) ((n)->kind == NULL)

/*
** Nodes (node.c)
*/
int nc_newnode(Node **n, const NodeKind *kind, const char *name, int nedge,
               int nout, int nsaved, size_t info, int64_t sizes);
void nc_releasenode(Node *n); /* NULL is fine */
void nc_dropsaved(Node *n);
int nc_newad(Tensor *t);      /* allocates t->ad, if there is none */
int nc_refresh(Tensor *t);    /* updates the history of a view */
/* t, which has no history, gets that of another tensor. */
int nc_borrow_history(Tensor *t, Tensor *from);
int nc_borrow_node(Tensor *t, Node *node, int index); /* that of a result */
Edge nc_edgeof(const Tensor *t);            /* where its gradient goes */

/*
** Recording (node.c).  nc_record_begin makes the node before the operation
** runs, so that after an operation in place nothing can fail;
** nc_record_commit links the results to the node.
*/
#define nc_mayrecord(t) ((t)->ad != NULL || (t)->base != NULL)

typedef struct Recording {
  Node *node;                 /* NULL: nothing is recorded */
  Tensor *into;               /* the tensor written in place; NULL: none */
  Node *set, *view;           /* for a view: nodes of its base and its own */
} Recording;

/* *yes = is an operation on x to be recorded? (tape.c) */
int nc_recording(int *yes, Tensor *x);
int nc_record_begin(Recording *t, const NodeKind *kind, const char *name,
                    Tensor *const in[], int nin, int nout, int nsaved,
                    size_t info, Tensor *into);
/* Saves operand x as saved[i] of the node; a copy, if the operation is going to
   overwrite it. */
int nc_record_save(Recording *t, int i, Tensor *x);
/* Saves a result; for an operation in place before it runs. */
int nc_record_saveresult(Recording *t, int i, Tensor *y, int index);
int nc_record_commit(Recording *t, Tensor *const out[], int nout);
void nc_record_cancel(Recording *t);
/* Ends the recording of an operation of status r: commits it, or cancels it and
   releases the results.  Returns the final status. */
int nc_record_end(Recording *t, int r, Tensor *out[], int nout);
int nc_checkinplace(Tensor *into); /* fails if `into' must not be overwritten
                                      without a record */

/* *t = saved[i], with its history if recording is on. */
int nc_savedtensor(Tensor **t, const Node *n, int i);

/* Are there samples of vmap among gradients?  nc_batch_backward computes the
   gradients of a node from them (core/batch/). */
int nc_has_samples(Tensor *const g[], int n);
int nc_batch_backward(GradCall *c);

/* Records an operation that has run: new results out[] of operands in[]. */
int nc_record_new(const NodeKind *kind, const char *name, Tensor *const in[],
                  int nin, Tensor *const out[], int nout, const void *info,
                  size_t size);

/* Is n a node of nc_custom?  Then *c is its function. */
int nc_customof(Custom *c, const Node *n);

/* Make a call with recording on (core/trace/call_kinds.c): of a pointwise
   operation or a reduction, an operator, t[...], and t[...] = value. */
int nc_record_pointwise(Call *c);
int nc_record_operator(Call *c);
int nc_record_index(Call *c);
int nc_record_setindex(Call *c);
/* The results of an operator that makes views get their bases. */
int nc_set_bases(Call *c);
int nc_record_copy(Tensor *y, Tensor *x);        /* y is new, a copy of x */
/* y is new, the value of an element of x: a gradient is divided evenly among
   the elements that are equal to it. */
int nc_record_choice(Tensor *y, Tensor *x, const char *name);
/* If y, a new result, is a view of x, sets its base, by which it follows
   changes in place. */
int nc_setbase(Tensor *y, Tensor *x);

/*
** Pointwise operations (pointwise_grad.c, formula.c)
*/
enum { LETTER_G, LETTER_A, LETTER_B, LETTER_C, LETTER_Y, LETTER_N, LETTER_P,
       LETTER_Q, LETTERS };

/* The letters of a formula (core/pointwise/formula_letters.c): those that occur
   in it, as bits; the one that a word of n bytes is, x like a, or -1; the
   length of the word that s begins with. */
unsigned nc_formula_letters(const char *text);
int nc_letter_of(const char *word, size_t n);
size_t nc_word_length(const char *s);

typedef struct Value {        /* a tensor or a number */
  Tensor *t;
  Scalar s;
} Value;

int nc_formula_eval(Tensor **y, const char *text, const Value letter[LETTERS]);
/* *y = the value of a formula for tensors, which may be NULL, and a number. */
int nc_formula(Tensor **y, const char *text, Tensor *g, Tensor *a, Tensor *b,
               Tensor *c, double n);

/* BY(product): the gradient of a product over `dims' (prod_grad.c) */
int nc_prod_grad(Tensor **d, Tensor *g, Tensor *x, Tensor *y, unsigned dims);

extern const NodeKind nc_pointwisenode, nc_reducenode, nc_copynode;

typedef struct PointwiseInfo {
  Op op;
  unsigned kept;              /* letters of the saved tensors */
  double par[2];
  Scalar number[3];           /* operands that are numbers */
  unsigned dims;              /* of a reduction */
  int keepdim;
} PointwiseInfo;

/*
** Views and indexing (view_grad.c)
*/
typedef struct Geometry {     /* of a view in its base */
  int xnd, nd;
  int64_t xsize[NC_MAXDIM], xstep[NC_MAXDIM];
  int64_t size[NC_MAXDIM], step[NC_MAXDIM], offset;
} Geometry;

void nc_geometry(Geometry *g, const Tensor *x, const Tensor *view);
int nc_denselike(Tensor **y, const Tensor *x); /* geometry of a dense x only */
extern const NodeKind nc_viewnode, nc_setnode, nc_inplacenode;

/*
** Operators
*/
typedef struct OperatorGrad { /* argument of a gradient function */
  const Node *node;
  Arg *arg;                   /* those of the call that are no tensors */
  Tensor *out[NC_MAXOUT];
  Tensor *const *g;           /* gradients of the results; NULL: zeros */
  Tensor **d;                 /* receives those of operands; NULL: zeros */
  const int *need;            /* which are needed */
  const Edge *in;             /* in[i].meta: type and shape of operand i */
  int n;                      /* operands */
} OperatorGrad;

/* *t = an operand, or a result, that the signature marks with "!"; a borrowed
   reference. */
int nc_operand(OperatorGrad *g, int i, Tensor **t);
int nc_result(OperatorGrad *g, int i, Tensor **t);

extern const NodeKind nc_operatornode;

/*
** Building blocks of gradients; all are recorded if recording is on.
*/
int nc_sum_to_size(Tensor **g, const GradMeta *m);  /* *g, to the shape of m */
int nc_reshapeto(Tensor **y, Tensor *x, int nd, const int64_t size[]);
int nc_broadcastto(Tensor **y, Tensor *x, int nd, const int64_t size[]);
/* *y = g, the gradient of x reduced along dims, with these dimensions as size
   1 */
int nc_unreduce(Tensor **y, Tensor *g, const GradMeta *x, unsigned dims);
/* *y = the sum of x along dims, which are kept as size 1 */
int nc_sum_keepdim(Tensor **y, Tensor *x, unsigned dims);
/* *y = from .. to, int64, on the device of x */
int nc_index_range(Tensor **y, const Tensor *x, int64_t from, int64_t to);
int nc_call2(Tensor **y, Operator op, Tensor *a, Tensor *b);
int nc_transpose_matrix(Tensor **y, Tensor *x);   /* the last two dimensions */

#endif
