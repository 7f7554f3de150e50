/* SPDX-License-Identifier: MIT */
/*
** tape.c - records operations with an operand that may require a gradient.
** Each makes its node, runs with recording off, and links the results to the
** node.  nc_call (core/trace/call_kinds.c) comes here if recording is on; the
** kind of node follows from the tables (ops.def, operators.def).
*/
#include <string.h>

#include "core/base/mapping.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"
#include "core/signature.h"
#include "core/trace_internal.h"

/*
** Pointwise operations and reductions
*/
/* *kept = the letters (bits) of operands and result that occur in those
   gradients that are needed.  x[j] is NULL if operand j has no gradient. */
static int needed_letters(unsigned *kept, const OpInfo *info, Tensor *const x[],
                          int n) {
  *kept = 0;
  for (int j = 0; j < n; j++) {
    int yes;
    if (x[j] == NULL) continue;
    TRY(nc_get_requires_grad(&yes, x[j]));
    if (!yes) continue;
    *kept |= nc_formula_letters(info->grad[j]);
    if (strncmp(info->grad[j], "BY", 2) == 0)
      *kept |= 1u << LETTER_A | 1u << LETTER_Y;
  }
  *kept &= 1u << LETTER_A | 1u << LETTER_B | 1u << LETTER_C | 1u << LETTER_Y;
  return NC_OK;
}

/* Saves the operands of the letters, in the order of letters.  `out' is the
   tensor written in place: it is saved as y before the operation runs. */
static int save_letters(Recording *tr, unsigned kept, const Arg in[], int n,
                        Tensor *out) {
  int at = 0;
  for (int j = 0; j < n; j++) {
    if (!(kept >> (LETTER_A + j) & 1)) continue;
    if (in[j].t) TRY(nc_record_save(tr, at, in[j].t));
    at++;
  }
  if (out && kept >> LETTER_Y & 1) return nc_record_saveresult(tr, at, out, 0);
  return NC_OK;
}

static int count(unsigned bits) {
  int n = 0;
  for (; bits; bits >>= 1) n += (int)(bits & 1);
  return n;
}

/* Begins the recording of an operation with operands in[]; *kept = the
   letters that are saved. */
static int begin_pointwise(Recording *tr, const NodeKind *kind,
                           const PointwiseInfo *info, const Arg in[], int n,
                           unsigned *kept, Tensor *out) {
  const OpInfo *op = &nc_opinfo[info->op];
  Tensor *x[3] = { NULL, NULL, NULL };
  int r;
  for (int j = 0; j < n; j++) x[j] = op->grad[j] ? in[j].t : NULL;
  TRY(needed_letters(kept, op, x, n));
  TRY(nc_record_begin(tr, kind, op->name, x, n, 1, count(*kept), sizeof *info,
                      out));
  if (tr->node == NULL) return NC_OK;
  memcpy(tr->node->info, info, sizeof *info);
  ((PointwiseInfo *)tr->node->info)->kept = *kept;
  if ((r = save_letters(tr, *kept, in, n, out)) != NC_OK) nc_record_cancel(tr);
  return r;
}

/* Ends it; saves the result y first if a gradient needs it. */
static int end_pointwise(Recording *tr, int r, Tensor **y, unsigned kept,
                         const Tensor *out) {
  if (r == NC_OK && tr->node && out == NULL && kept >> LETTER_Y & 1)
    r = nc_record_saveresult(tr, tr->node->nsaved - 1, *y, 0);
  return nc_record_end(tr, r, y, 1);
}

int nc_record_pointwise(Call *c) {
  const int folds = c->kind == CALL_REDUCE, n = folds ? 1 : nc_arity(c->op);
  PointwiseInfo info;
  Recording tr;
  unsigned kept;
  int r;
  info.op = c->op;
  info.par[0] = c->par ? c->par[0] : 1;
  info.par[1] = c->par ? c->par[1] : 0;
  for (int j = 0; j < 3; j++) info.number[j] = j < n ? c->arg[j].s : nc_int(0);
  info.dims = folds ? (unsigned)c->arg[1].s.i : 0;
  info.keepdim = folds ? (int)c->arg[2].s.i : 0;
  r = begin_pointwise(&tr, folds ? &nc_reducenode : &nc_pointwisenode, &info,
                      c->arg, n, &kept, c->into);
  if (r != NC_OK) return nc_error_call(r, nc_call_name(c), c->arg, n);
  nc_context->no_grad++;
  r = nc_call(c);
  nc_context->no_grad--;
  return end_pointwise(&tr, r, c->out, kept, c->into);
}

int nc_record_choice(Tensor *y, Tensor *x, const char *name) {
  const Arg in[1] = { { .t = x } };
  const PointwiseInfo info = { .op = OP_amax, .dims = ~0u };
  Recording tr;
  unsigned kept;
  TRY(begin_pointwise(&tr, &nc_reducenode, &info, in, 1, &kept, NULL));
  if (tr.node) tr.node->name = name;
  return end_pointwise(&tr, NC_OK, &y, kept, NULL);
}

/* The gradient of a copy to another type or device; nc_sum_to_size converts it
   back. */
static int copy_backward(GradCall *g) {
  nc_retain(g->d[0] = g->g[0]);
  return NC_OK;
}

const NodeKind nc_copynode = { .backward = copy_backward };

int nc_record_copy(Tensor *y, Tensor *x) {
  return nc_record_new(&nc_copynode, "to", &x, 1, &y, 1, NULL, 0);
}

/*
** Operators
*/
/* Runs the operator unrecorded. */
static int run(Call *c) {
  int r;
  nc_context->no_grad++;
  r = nc_operators[c->op].fn(c);
  nc_context->no_grad--;
  return r;
}

int nc_setbase(Tensor *y, Tensor *x) {
  Tensor *base = x->base ? x->base : x;
  if (y == x || y->data != x->data || y->base) return NC_OK;
  nc_retain(y->base = base);
  if (base->ad == NULL || base->ad->epoch == 0) return NC_OK;
  TRY(nc_newad(y));
  y->ad->epoch = base->ad->epoch;
  return NC_OK;
}

/* Returns the results of c, a list or the array out, with *n their number. */
static Tensor **outputs(Call *c, int *n) {
  *n = c->list ? c->nlist : 1;
  return c->list ? c->list : c->out;
}

int nc_set_bases(Call *c) {
  int n;
  Tensor **y = outputs(c, &n);
  for (int i = 0; i < n; i++) TRY(nc_setbase(y[i], c->arg[0].t));
  return NC_OK;
}

/* Sets the geometry of the n views that c makes.  The views of a dense
   tensor of the same shape are measured: strides of the operand may be 0, or
   equal, and would not identify dimensions. */
static int geometries(Geometry g[], const Call *c, int n) {
  Call low = *c;
  Tensor **y, *x;
  int r, k;
  low.list = NULL;
  low.nlist = 0;
  memset(low.out, 0, sizeof low.out);
  TRY(nc_denselike(&x, c->arg[0].t));
  low.arg[0].t = x;
  r = run(&low);
  y = outputs(&low, &k);
  for (int i = 0; i < n && r == NC_OK; i++) nc_geometry(&g[i], x, y[i]);
  if (low.list) nc_freelist(&low);
  for (int i = 0; i < NC_MAXOUT; i++) nc_release(low.out[i]);
  nc_release(x);
  return r;
}

/* VIEW: the gradient follows from the geometry of the results (view_grad.c). */
static int record_view(Call *c) {
  Tensor **y, *x = c->arg[0].t;
  Recording tr;
  int n, r;
  TRY(run(c));
  y = outputs(c, &n);
  if (n == 1 && y[0] == x) return NC_OK;
  TRY(nc_record_begin(&tr, &nc_viewnode, nc_operators[c->op].name, &x, 1, n, 0,
                      (size_t)n * sizeof(Geometry), NULL));
  r = tr.node ? geometries(tr.node->info, c, n) : NC_OK;
  if (r == NC_OK) r = nc_record_commit(&tr, y, n);
  nc_record_cancel(&tr);
  return r;
}

/* INPLACE: overwrites the first operand; the gradient to the second one, if
   it has one, is that of the result. */
static int record_inplace(Call *c) {
  Tensor *in[2] = { NULL, c->arg[1].t };
  Recording tr;
  TRY(nc_record_begin(&tr, &nc_inplacenode, nc_operators[c->op].name, in, 2, 1,
                      0, 0, c->arg[0].t));
  return nc_record_end(&tr, run(c), c->out, 1);
}

/* Returns the operands that may have a gradient, with *n their number: a
   list of tensors, or x[], set to the tensor arguments (NULL for others). */
static Tensor *const *operands(const Call *c, Tensor *x[], int *n) {
  *n = 0;
  if (c->arg[0].tensors) {
    *n = c->arg[0].n;
    return c->arg[0].tensors;
  }
  for (int i = 0; i < NC_MAXARG; i++) {
    x[i] = c->arg[i].t;
    if (x[i]) *n = i + 1;
  }
  return x;
}

/* Info of the node of an operator: its arguments except tensors. */
typedef struct SavedArgs {
  Operator op;
  Arg arg[NC_MAXARG];
  int64_t list[2 * NC_MAXDIM]; /* elements of list arguments */
} SavedArgs;

/* Copies the arguments without tensors to k. */
static int save_args(SavedArgs *k, const Call *c) {
  int used = 0;
  k->op = c->op;
  for (int i = 0; i < NC_MAXARG; i++) {
    Arg *a = &k->arg[i];
    *a = c->arg[i];
    a->t = NULL;
    a->tensors = NULL;
    a->text = NULL;
    if (a->n <= 0 || a->list == NULL || c->arg[i].tensors) continue;
    if (a->n > 2 * NC_MAXDIM - used)
      return nc_fail(NC_EVALUE, "lists of %d and %d are too long to be kept",
                     used, a->n);
    a->list = memcpy(k->list + used, a->list, (size_t)a->n * sizeof *a->list);
    used += a->n;
  }
  return NC_OK;
}

/* Saves the operands that the signature marks. */
static int save_marked(Recording *tr, const Call *c, const Signature *s) {
  for (int i = 0, at = 0; i < NC_MAXARG; i++) {
    if (!(s->saved_args >> i & 1)) continue;
    if (c->arg[i].t) TRY(nc_record_save(tr, at, c->arg[i].t));
    at++;
  }
  return NC_OK;
}

/* Is the operand itself the result, and not because it was written to? */
static int gives_operand(const Call *c) {
  return c->out[0] && c->out[0] == c->arg[0].t && !c->out[1] && !c->into;
}

/* GRAD: the gradient is nc_grad_<name>, which reads saved operands and
   results. */
static int record_grad(Call *c) {
  const Signature *s = nc_operator_signature(c->op);
  const int nargs = count(s->saved_args);
  Tensor *x[NC_MAXARG];
  Recording tr;
  int n, r;
  Tensor *const *in = operands(c, x, &n);
  TRY(nc_record_begin(&tr, &nc_operatornode, s->name, in, n, NC_MAXOUT,
                      nargs + count(s->saved_results), sizeof(SavedArgs),
                      NULL));
  r = NC_OK;
  if (tr.node) {
    r = save_args(tr.node->info, c);
    if (r == NC_OK) r = save_marked(&tr, c, s);
  }
  if (r == NC_OK) r = run(c);
  if (r == NC_OK && gives_operand(c)) {
    nc_record_cancel(&tr);
    return NC_OK;
  }
  for (int i = 0, at = nargs; i < NC_MAXOUT && tr.node; i++) {
    if (r != NC_OK || !(s->saved_results >> i & 1)) continue;
    if (c->out[i]) r = nc_record_saveresult(&tr, at, c->out[i], i);
    at++;
  }
  return nc_record_end(&tr, r, c->out, NC_MAXOUT);
}

int nc_record_operator(Call *c) {
  switch (nc_operators[c->op].grad) {
    case GRADCLASS_VIEW: return record_view(c);
    case GRADCLASS_INPLACE: return record_inplace(c);
    case GRADCLASS_GRAD: return record_grad(c);
    case GRADCLASS_COMPOSED: return nc_operators[c->op].fn(c);
    default: return run(c);
  }
}

/*
** Gradients of operators
*/
#define OPERATOR(op, class, ...) \
  NC_GRADONLY_##class([OPERATOR_##op] = nc_grad_##op, )
static int (*const gradients[OPERATOR_COUNT])(OperatorGrad *g) = {
#include "core/operators.def"
};
#undef OPERATOR

static const Signature *signature(const OperatorGrad *g) {
  return nc_operator_signature(((const SavedArgs *)g->node->info)->op);
}

int nc_operand(OperatorGrad *g, int i, Tensor **t) {
  const int at = count(signature(g)->saved_args & ((1u << i) - 1));
  int r = g->arg[i].t ? NC_OK : nc_savedtensor(&g->arg[i].t, g->node, at);
  *t = g->arg[i].t;
  return r;
}

int nc_result(OperatorGrad *g, int i, Tensor **t) {
  const Signature *s = signature(g);
  const int at =
      count(s->saved_args) + count(s->saved_results & ((1u << i) - 1));
  int r = g->out[i] ? NC_OK : nc_savedtensor(&g->out[i], g->node, at);
  *t = g->out[i];
  return r;
}

/* Calls the gradient function of the operator. */
static int operator_backward(GradCall *call) {
  const Node *n = call->node;
  const SavedArgs *k = n->info;
  Arg arg[NC_MAXARG];
  OperatorGrad g = { .node = n,
                     .arg = arg,
                     .g = call->g,
                     .d = call->d,
                     .need = call->need,
                     .in = n->edge,
                     .n = n->nedge };
  int r;
  for (int i = 1; i < n->nout; i++)
    if (call->g[i])
      return nc_fail(NC_EVALUE, "result %d has no gradient", i + 1);
  memcpy(arg, k->arg, sizeof arg);
  r = gradients[k->op](&g);
  for (int i = 0; i < NC_MAXARG; i++) nc_release(arg[i].t);
  for (int i = 0; i < NC_MAXOUT; i++) nc_release(g.out[i]);
  return r;
}

const NodeKind nc_operatornode = { .backward = operator_backward };

int nc_recording(int *yes, Tensor *x) {
  *yes = 0;
  return nc_context->no_grad ? NC_OK : nc_get_requires_grad(yes, x);
}
