/* SPDX-License-Identifier: MIT */
/*
** fused_grad.c - gradients of a fused part: one node, which keeps the operands
** and none of the values between.  Backward runs the code of the gradients; or,
** where that would give other bits, or is to be recorded, the operations of the
** part once more, and their gradients.
*/
#include "core/fusion/fused_grad.h"
#include "core/ops.h"

#include <string.h>

#include "core/pointwise/iterator.h"

typedef struct NodeInfo {
  Fusion *f;
  Part *p;
  Draw draw[NC_FUSED_DRAWS];
  Scalar number[];
} NodeInfo;

/* How many numbers of the trace the part reads: the highest symbol. */
static int symbols(const Part *p) {
  int most = 0;
  for (int i = 0; i < p->code->nnumbers; i++)
    if (p->number[i].symbol > most) most = p->number[i].symbol;
  return most;
}

/*
** Once more
*/
typedef struct Again {
  const GradCall *g;
  const NodeInfo *info;
  int create;                  /* are the gradients to be recorded? */
  Tensor *x[NC_FUSED_TENSORS]; /* the operands, each with a place of its own in
                                 the graph */
  Tensor *output[NC_FUSED_TENSORS], *grad[NC_FUSED_TENSORS];
  Tensor *input[NC_FUSED_TENSORS], *result[NC_FUSED_TENSORS];
  int which[NC_FUSED_TENSORS]; /* operand of each input */
  int noutput, ninput;
} Again;

static int set_operands(Again *a, Tensor *const saved[]) {
  const int n = a->info->p->code->noperands;
  for (int i = 0; i < n; i++) {
    TRY(nc_alias(&a->x[i], saved[i]));
    if (!a->g->need[i]) continue;
    if (a->create) TRY(nc_record_copy(a->x[i], saved[i]));
    else TRY(nc_set_requires_grad(a->x[i], 1));
    a->which[a->ninput] = i;
    a->input[a->ninput++] = a->x[i];
  }
  return NC_OK;
}

static int run_again(Again *a, Tensor *slot[]) {
  const Part *p = a->info->p;
  Backward b = { .output = a->output,
                 .grad_outputs = a->grad,
                 .create = a->create,
                 .retain = a->create,
                 .input = a->input,
                 .result = a->result };
  for (int i = 0; i < p->code->noperands; i++)
    nc_retain(slot[p->operand[i]] = a->x[i]);
  TRY(nc_fusion_replay(a->info->f, p, a->info->number, a->info->draw, slot));
  for (int i = 0; i < p->code->nresults; i++) {
    int yes;
    TRY(nc_get_requires_grad(&yes, slot[p->result[i]]));
    if (!yes || a->g->g[i] == NULL) continue;
    /* a node of its own for each, so that its gradient comes in where that of a
       later use would */
    TRY(nc_alias(&a->output[a->noutput], slot[p->result[i]]));
    a->grad[a->noutput++] = a->g->g[i];
    TRY(nc_record_copy(a->output[a->noutput - 1], slot[p->result[i]]));
  }
  b.n = a->noutput;
  b.ninput = a->ninput;
  return b.n && b.ninput ? nc_backward(&b) : NC_OK;
}

static int differentiate_again(const GradCall *g, Tensor *const saved[]) {
  const NodeInfo *info = g->node->info;
  const int64_t bytes = info->f->nvalue * (int64_t)sizeof(Tensor *);
  const int off = nc_context->no_grad;
  Again a = { .g = g, .info = info, .create = off == 0 };
  Tensor **slot;
  void *p;
  int r;
  TRY(nc_hostalloc(&p, bytes));
  slot = memset(p, 0, (size_t)bytes);
  nc_context->no_grad = 0;
  r = set_operands(&a, saved);
  if (r == NC_OK) r = run_again(&a, slot);
  nc_context->no_grad = off;
  for (int i = 0; i < info->f->nvalue; i++) nc_release(slot[i]);
  for (int i = 0; i < NC_FUSED_TENSORS; i++) nc_release(a.x[i]);
  for (int i = 0; i < a.noutput; i++) nc_release(a.output[i]);
  for (int i = 0; i < a.ninput; i++)
    if (r == NC_OK) g->d[a.which[i]] = a.result[i];
    else nc_release(a.result[i]);
  nc_hostfree(p, bytes);
  return r;
}

/*
** By code
*/
/* Does g lie as the results of the part do (NULL: row by row), or repeat one
   element?  *constant says which. */
static int is_flat(const Tensor *g, const ValueInfo *y, int *constant) {
  int same = 1, zero = 1, dense = 1;
  int64_t n = 1;
  for (int d = g->nd; d-- > 0;) {
    const int64_t step = y ? y->step[d] : n;
    if (g->size[d] == 1) continue;
    same &= g->step[d] == step;
    zero &= g->step[d] == 0;
    dense &= step == n;
    n *= g->size[d];
  }
  *constant = zero && !same;
  return same || (zero && dense);
}

/* Is it row by row, or one element repeated, as *constant says? */
static int is_row_by_row(const Tensor *g, int *constant) {
  *constant = 1;
  for (int d = 0; d < g->nd; d++)
    *constant &= g->size[d] == 1 || g->step[d] == 0;
  return *constant || nc_isdense(g);
}

/* Can the code be used for the gradient of result i? */
static int fits_code(const Gradient *k, const NodeInfo *info, int i,
                     const Tensor *g, int *constant) {
  const int v = info->p->result[i];
  const ValueInfo *y = &info->f->value[v];
  if (g->dtype != y->dtype || nc_device(g)->fused == NULL) return 0;
  if (nc_fusion_of_lines(info->f, info->p, v))
    return is_row_by_row(g, constant);
  return is_flat(g, info->f->uniform ? NULL : y, constant) &&
         !(*constant && k->dense >> i & 1);
}

/* A saved tensor of the shape and layout of the part; NULL: none. */
static Tensor *saved_model(const NodeInfo *info, Tensor *const saved[]) {
  const Fusion *f = info->f;
  const Part *p = info->p;
  const ValueInfo *main = &f->value[p->main];
  const int n = p->code->noperands;
  Tensor *found = NULL;
  for (int i = 0; i < n && !found; i++)
    if (nc_fusion_same_layout(&f->value[p->operand[i]], main)) found = saved[i];
  return found;
}

/* Can the code be used for these gradients of the results?  *model: the one in
   whose layout the results are, or a saved tensor. */
static int can_use(const Gradient *k, const NodeInfo *info, Tensor *const g[],
                   Tensor *const saved[], Tensor **model) {
  const Fusion *f = info->f;
  const Part *p = info->p;
  *model = f->uniform ? NULL : saved_model(info, saved);
  for (int i = 0; i < p->code->nresults; i++) {
    int constant;
    if (g[i] == NULL) continue;
    if (!fits_code(k, info, i, g[i], &constant)) return 0;
    if (!f->uniform &&
        !nc_fusion_same_layout(&f->value[p->result[i]], &f->value[p->main]))
      continue;
    if (!constant || *model == NULL) *model = g[i];
  }
  return *model != NULL && nc_fusion_is_ready(nc_device(*model), &k->code);
}

/* *d = t in the shape of x, if that has as many elements; else in one to which
   x, one element, broadcasts. */
static int in_shape_of(Tensor **d, Tensor *t, const Tensor *x) {
  int same = t->nd == x->nd;
  for (int i = 0; same && i < t->nd; i++) same = t->size[i] == x->size[i];
  if (!same && nc_numel(t) == nc_numel(x))
    return nc_reshapeto(d, t, x->nd, x->size);
  if (t->nd < x->nd) {
    int64_t size[NC_MAXDIM];
    for (int i = 0; i < x->nd; i++)
      size[i] = i < x->nd - t->nd ? 1 : t->size[i - x->nd + t->nd];
    return nc_reshapeto(d, t, x->nd, size);
  }
  nc_retain(*d = t);
  return NC_OK;
}

static int run_code(const Gradient *k, const GradCall *g, Tensor *const saved[],
                    Tensor *model) {
  const NodeInfo *info = g->node->info;
  Tensor *operand[NC_FUSED_TENSORS], *result[NC_FUSED_TENSORS] = { NULL };
  const int n = k->code.nresults;
  int r = NC_OK;
  for (int i = 0; i < k->code.noperands; i++)
    operand[i] =
        k->source[i] < 0 ? g->g[-1 - k->source[i]] : saved[k->source[i]];
  for (int i = 0; i < n && r == NC_OK; i++) {
    DType type = DT_f32;
    for (int j = 0; j < k->code.nregs; j++)
      if (k->code.reg[j].result == i) type = k->code.reg[j].type;
    r = nc_newlike(&result[i], model, type);
  }
  if (r == NC_OK && n > 0)
    r = nc_fusion_execute(&k->part, info->number, info->draw, operand, result);
  for (int i = 0; i < info->p->code->noperands && r == NC_OK; i++) {
    const int from = k->result[i];
    if (from == -1) continue;
    r = in_shape_of(&g->d[i], from >= 0 ? result[from] : g->g[-2 - from],
                    saved[i]);
  }
  for (int i = 0; i < n; i++) nc_release(result[i]);
  return r;
}

/* The gradient for those that are wanted; NULL: the operations are to run once
   more. */
static const Gradient *find_gradient(const GradCall *g) {
  const NodeInfo *info = g->node->info;
  unsigned need = 0, given = 0;
  const Gradient *k;
  if (nc_context->no_grad == 0) return NULL;
  for (int i = 0; i < info->p->code->noperands; i++)
    need |= (unsigned)(g->need[i] != 0) << i;
  for (int i = 0; i < info->p->code->nresults; i++)
    given |= (unsigned)(g->g[i] != NULL) << i;
  k = nc_fusion_gradient(info->f, info->p, need, given);
  return k && k->possible ? k : NULL;
}

/* saved[] = the saved tensors, of which those in `read' must be as they were;
   of others the shape alone is of use. */
static int get_saved(Tensor *saved[], const Node *n, unsigned read) {
  int r = NC_OK;
  for (int i = 0; i < n->nsaved && r == NC_OK; i++) {
    nc_release(saved[i]);
    saved[i] = NULL;
    if (n->freed || read >> i & 1) r = nc_savedtensor(&saved[i], n, i);
    else nc_retain(saved[i] = n->saved[i].t);
  }
  return r;
}

/* flat[] = the gradients of the results as the code can read them: a copy of
   one that repeats elements, like that of a mean of rows. */
static int make_flat(Tensor *flat[], const GradCall *g, const Gradient *k) {
  const NodeInfo *info = g->node->info;
  int constant, r = NC_OK;
  for (int i = 0; i < info->p->code->nresults && r == NC_OK; i++)
    if (g->g[i] && !fits_code(k, info, i, g->g[i], &constant))
      r = nc_apply1(&flat[i], OP_clone, g->g[i]);
    else if (g->g[i]) nc_retain(flat[i] = g->g[i]);
  return r;
}

/* Computes the gradients by the code, if it can be used; *done says whether. */
static int try_code(const Gradient *k, const GradCall *g, Tensor *const saved[],
                    int *done) {
  const NodeInfo *info = g->node->info;
  Tensor *flat[NC_FUSED_TENSORS] = { NULL }, *model;
  GradCall call = *g;
  int r = NC_OK;
  *done = 0;
  if (k == NULL) return NC_OK;
  call.g = flat;
  r = make_flat(flat, g, k);
  if (r == NC_OK && (*done = can_use(k, info, flat, saved, &model)))
    r = run_code(k, &call, saved, model);
  for (int i = 0; i < info->p->code->nresults; i++) nc_release(flat[i]);
  return r;
}

static int backward(GradCall *g) {
  const NodeInfo *info = g->node->info;
  const unsigned all =
      (unsigned)(((uint64_t)1 << info->p->code->noperands) - 1);
  Tensor *saved[NC_FUSED_TENSORS] = { NULL };
  const Gradient *k = find_gradient(g);
  int done = 0;
  int r = get_saved(saved, g->node, k ? k->reads : all);
  if (r == NC_OK) r = try_code(k, g, saved, &done);
  if (r == NC_OK && !done) r = get_saved(saved, g->node, all);
  if (r == NC_OK && !done) r = differentiate_again(g, saved);
  for (int i = 0; i < g->node->nsaved; i++) nc_release(saved[i]);
  return r;
}

static void drop(void *info) {
  nc_fusion_release(((NodeInfo *)info)->f);
}

static const NodeKind kind = { .backward = backward, .drop = drop };

/*
** Forward
*/
/* linked[] = the results that have a gradient to an operand that wants one;
   NULL for others.  *any = is there one? */
static int link_results(const Part *p, Tensor *const operand[],
                        Tensor *const result[], Tensor *linked[], int *any) {
  unsigned wanted = 0;
  for (int i = 0; i < p->code->noperands; i++) {
    int yes = 0;
    if (nc_mayrecord(operand[i])) TRY(nc_get_requires_grad(&yes, operand[i]));
    wanted |= (unsigned)(yes != 0) << i;
  }
  *any = 0;
  for (int i = 0; i < p->code->nresults; i++) {
    linked[i] = p->leads[i] & wanted ? result[i] : NULL;
    *any |= linked[i] != NULL;
  }
  return NC_OK;
}

int nc_fusion_has_gradient(Fusion *f, Part *p, Tensor *const operand[]) {
  unsigned need = 0, given = 0;
  const Gradient *g;
  for (int i = 0; i < p->code->noperands; i++) {
    int yes = 0;
    if (nc_mayrecord(operand[i]) &&
        nc_get_requires_grad(&yes, operand[i]) != NC_OK)
      return 0;
    need |= (unsigned)(yes != 0) << i;
  }
  for (int i = 0; i < p->code->nresults; i++)
    given |= (unsigned)((p->leads[i] & need) != 0) << i;
  g = nc_fusion_gradient(f, p, need, given);
  return g && g->possible;
}

int nc_fusion_record(Fusion *f, Part *p, const Scalar number[],
                     const Draw draw[], Tensor *const operand[],
                     Tensor *result[]) {
  const int n = p->code->noperands, m = symbols(p);
  Tensor *in[NC_FUSED_TENSORS], *linked[NC_FUSED_TENSORS];
  Recording tr;
  int r, any;
  TRY(link_results(p, operand, result, linked, &any));
  if (!any) return nc_fusion_execute(p, number, draw, operand, result);
  for (int i = 0; i < n; i++)
    in[i] = nc_is_differentiable(operand[i]->dtype) ? operand[i] : NULL;
  TRY(nc_record_begin(&tr, &kind, "fused", in, n, p->code->nresults, n,
                      sizeof(NodeInfo) + (size_t)m * sizeof(Scalar), NULL));
  r = NC_OK;
  if (tr.node) {
    NodeInfo *info = tr.node->info;
    info->f = f;
    f->refs++;
    info->p = p;
    for (int i = 0; i < p->draws; i++) info->draw[i] = draw[i];
    for (int i = 0; i < m; i++) info->number[i] = number[i];
    for (int i = 0; i < n && r == NC_OK; i++)
      r = nc_record_save(&tr, i, operand[i]);
  }
  nc_context->no_grad++;
  if (r == NC_OK) r = nc_fusion_execute(p, number, draw, operand, result);
  nc_context->no_grad--;
  if (r == NC_OK) return nc_record_commit(&tr, linked, p->code->nresults);
  nc_record_cancel(&tr);
  return r;
}
