/* SPDX-License-Identifier: MIT */
/*
** batch_backward.c - backward with gradients that are samples of vmap: a graph
** that was recorded once is walked for a batch of gradients.
**
** Gradients that are composed of recorded operations take samples as they are.
** Those of views get a geometry with the batch in front.  Others are computed
** once for each sample.
*/
#include "core/batch/batching.h"
#include "core/operators.h"
#include "core/ops.h"

#include <string.h>

#include "core/tape.h"

/* Operators whose gradients are composed of operations, whatever is
   recorded. */
static const unsigned char composed[OPERATOR_COUNT] = {
  [OPERATOR_mm] = 1,
  [OPERATOR_bmm] = 1,
  [OPERATOR_mv] = 1,
  [OPERATOR_dot] = 1,
  [OPERATOR_matmul] = 1,
  [OPERATOR_linear] = 1,
  [OPERATOR_outer] = 1,
  [OPERATOR_addmm] = 1,
  [OPERATOR_baddbmm] = 1,
  [OPERATOR_addmv] = 1,
  [OPERATOR_cat] = 1,
  [OPERATOR_stack] = 1,
  [OPERATOR_tile] = 1,
  [OPERATOR_var] = 1,
  [OPERATOR_std] = 1,
  [OPERATOR_logsumexp] = 1,
  [OPERATOR_softmax] = 1,
  [OPERATOR_log_softmax] = 1,
  [OPERATOR__masked_softmax] = 1,
  [OPERATOR__conv] = 1,
  [OPERATOR__conv_input] = 1,
  [OPERATOR__conv_weight] = 1,
};

static int takes_samples(const Node *n) {
  if (n->kind == &nc_pointwisenode || n->kind == &nc_copynode) return 1;
  if (n->kind == &nc_reducenode)
    return ((const PointwiseInfo *)n->info)->op != OP_prod;
  if (n->kind != &nc_operatornode) return 0;
  const int op = nc_find_operator(n->name, strlen(n->name));
  return op >= 0 && composed[op];
}

int nc_has_samples(Tensor *const g[], int n) {
  for (int i = 0; i < n; i++)
    if (g[i] && nc_is_sample(g[i])) return 1;
  return 0;
}

static const BatchLevel *highest_level(Tensor *const g[], int n) {
  const BatchLevel *l = nc_context->batch;
  Tensor *value;
  int most = 0, depth;
  for (int i = 0; i < n; i++)
    if (g[i] && nc_batch_open(&value, &depth, g[i]) && depth > most)
      most = depth;
  while (l && l->depth != most) l = l->outer;
  return most ? l : NULL;
}

static int call_node(GradCall *c) {
  return nc_has_samples(c->g, c->node->nout) ? nc_batch_backward(c)
                                             : c->node->kind->backward(c);
}

/*
** Views
*/
/* v with the batch in front, if the base lies without gaps. */
static int batched_geometry(Geometry *to, const Geometry *v, int64_t n) {
  int64_t numel = 1, extent = 1;
  if (v->xnd == NC_MAXDIM || v->nd == NC_MAXDIM) return 0;
  for (int d = 0; d < v->xnd; d++) {
    if (v->xsize[d] == 0) return 0;
    numel *= v->xsize[d];
    extent += (v->xsize[d] - 1) * v->xstep[d];
  }
  if (numel != extent) return 0;
  to->xnd = v->xnd + 1;
  to->nd = v->nd + 1;
  to->offset = v->offset;
  to->xsize[0] = to->size[0] = n;
  to->xstep[0] = to->step[0] = numel;
  memcpy(to->xsize + 1, v->xsize, (size_t)v->xnd * sizeof *v->xsize);
  memcpy(to->xstep + 1, v->xstep, (size_t)v->xnd * sizeof *v->xstep);
  memcpy(to->size + 1, v->size, (size_t)v->nd * sizeof *v->size);
  memcpy(to->step + 1, v->step, (size_t)v->nd * sizeof *v->step);
  return 1;
}

/* Computes the gradient of one view; returns 0 if that is not possible. */
static int try_view(Batching *b, GradCall *c, int *status) {
  Geometry v;
  Node node = *c->node;
  Tensor *g, *d = NULL;
  if (node.nout != 1 || !batched_geometry(&v, node.info, b->level->n)) return 0;
  node.info = &v;
  g = nc_batch_expanded(b, c->g[0]);
  GradCall low = { .node = &node, .g = &g, .d = &d, .need = c->need };
  *status = b->w.status;
  if (*status == NC_OK) *status = call_node(&low);
  if (*status == NC_OK && d) *status = nc_batch_result(b, &c->d[0], d);
  nc_release(d);
  return 1;
}

/*
** Sample by sample
*/
typedef struct Rows {     /* the gradients of all samples */
  Tensor **g, **d, **all; /* all: those of operand k from k * n on */
  int64_t n, bytes;
} Rows;

static int new_rows(Rows *r, const Node *node, int64_t n) {
  const int64_t count = node->nout + node->nedge * (n + 1);
  void *p;
  r->n = n;
  r->bytes = count * (int64_t)sizeof(Tensor *);
  TRY(nc_hostalloc(&p, r->bytes));
  r->g = memset(p, 0, (size_t)r->bytes);
  r->d = r->g + node->nout;
  r->all = r->d + node->nedge;
  return NC_OK;
}

static int call_row(Batching *b, GradCall *c, Rows *rows, int64_t i) {
  const Node *n = c->node;
  GradCall low = {
    .node = c->node, .g = rows->g, .d = rows->d, .need = c->need
  };
  Temps w = { 0 };
  for (int k = 0; k < n->nout; k++) {
    Tensor *value = c->g[k] ? nc_batch_value(b, c->g[k]) : NULL;
    rows->g[k] =
        value ? nc_temps_call1(&w, OPERATOR_select, value, 1, i + 1) : c->g[k];
  }
  if (w.status == NC_OK) w.status = call_node(&low);
  for (int k = 0; k < n->nedge; k++) {
    rows->all[k * rows->n + i] = rows->d[k];
    rows->d[k] = NULL;
  }
  return nc_temps_finish(&w);
}

static int stack_rows(Batching *b, GradCall *c, Rows *rows, int k) {
  Call call = nc_callon(OPERATOR_stack, NULL);
  Tensor **t = rows->all + k * rows->n, *value;
  int r;
  if (t[0] == NULL) return NC_OK;
  call.arg[0].tensors = t;
  call.arg[0].n = (int)rows->n;
  nc_setint(&call, 1, 1);
  TRY(nc_callfirst(&value, &call));
  r = nc_batch_result(b, &c->d[k], value);
  nc_release(value);
  return r;
}

static int by_sample(Batching *b, GradCall *c) {
  const int nedge = c->node->nedge;
  Rows rows;
  int r;
  TRY(new_rows(&rows, c->node, b->level->n));
  r = NC_OK;
  for (int64_t i = 0; i < rows.n && r == NC_OK; i++)
    r = call_row(b, c, &rows, i);
  for (int k = 0; k < nedge && r == NC_OK; k++) r = stack_rows(b, c, &rows, k);
  for (int64_t i = 0; i < nedge * rows.n; i++) nc_release(rows.all[i]);
  nc_hostfree(rows.g, rows.bytes);
  return r;
}

int nc_batch_backward(GradCall *c) {
  const Node *n = c->node;
  Batching b = { .level = highest_level(c->g, n->nout) };
  int r;
  if (b.level == NULL) return nc_batch_novalues(NULL);
  if (takes_samples(n)) return n->kind->backward(c);
  if (n->kind != &nc_viewnode || !try_view(&b, c, &r)) r = by_sample(&b, c);
  nc_temps_finish(&b.w);
  return r;
}
