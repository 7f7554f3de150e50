/* SPDX-License-Identifier: MIT */
/*
** attention.c - _attention: softmax(scale q k' + mask) v (Vaswani et al. 2017),
** by the request `attention' where a device has it, else by operations, block
** by block, or at once if they are recorded.  scaled_dot_product_attention
** (bindings/lib) is its public form, which broadcasts.
*/
#include "core/ops/attention.h"
#include "core/operator_grads.h"
#include "core/ops.h"

#include <math.h>

#include "core/op.h"
#include "core/tape.h"
#include "core/trace.h"

/* Halves are computed in float32 by the request; products of operations know
   them. */
static void cast_operands(Temps *w, Operands *o, const Arg arg[]) {
  const DType given = o->t[QUERY]->dtype;
  const DType type =
      given == DT_f64 || !nc_device(o->t[QUERY])->attention ? given : DT_f32;
  for (int i = QUERY; i <= MASK; i++)
    if (o->t[i]) o->t[i] = nc_temps_cast(w, o->t[i], type);
  o->causal = (int)arg[CAUSAL].s.i;
  o->scale = nc_tofloat(arg[SCALE].s);
}

static Tensor *matmul(Temps *w, Tensor *a, Tensor *b) {
  return nc_temps_call2(w, OPERATOR_matmul, a, b);
}

Tensor *nc_attention_wide(Temps *w, Tensor *t) {
  return t && t->dtype == DT_f16 ? nc_temps_cast(w, t, DT_f32) : t;
}

Tensor *nc_attention_softmax(Temps *w, Tensor *s, DType type) {
  Call softmax = nc_callon(OPERATOR__masked_softmax, s);
  nc_setint(&softmax, 1, -1);
  return nc_temps_cast(w, nc_temps_call(w, &softmax), type);
}

Tensor *nc_attention_causal(Temps *w, Tensor *s, int64_t first) {
  Tensor *seen = NULL;
  if (w->status != NC_OK) return NULL;
  seen = nc_temps_full(w, s, DT_b8, 2, s->size + s->nd - 2, nc_int(1));
  seen = nc_temps_call1(w, OPERATOR_tril, seen, first, 0);
  return nc_temps_where(w, seen, s, nc_float(-(double)INFINITY));
}

/* softmax(scale q k' + mask), recorded if the operands are; of a mask of bool,
   what is true takes part. */
static Tensor *probabilities(Temps *w, const Operands *o) {
  const DType type = o->t[QUERY]->dtype;
  Tensor *q = nc_attention_wide(w, o->t[QUERY]), *mask = o->t[MASK];
  Tensor *k = nc_attention_wide(w, o->t[KEY]), *s;
  q = nc_temps_opnumber(w, OP_mul, q, nc_float(o->scale));
  s = matmul(w, q, nc_temps_transposed(w, k));
  if (mask && mask->dtype == DT_b8)
    s = nc_temps_where(w, mask, s, nc_float(-(double)INFINITY));
  else if (mask) s = nc_temps_op2(w, OP_add, s, mask);
  if (o->causal) s = nc_attention_causal(w, s, 0);
  return nc_attention_softmax(w, s, type);
}

static int is_empty(const Operands *o) {
  return nc_numel(o->t[QUERY]) == 0 || nc_numel(o->t[KEY]) == 0 ||
         nc_numel(o->t[VALUE]) == 0;
}

/* Does the device have the request, and something to do? */
static int has_request(const Device *d, const Operands *o) {
  return d->attention && d->attention_backward && !is_empty(o);
}

static void set_call(AttentionCall *c, const Operands *o, Tensor *y,
                     Tensor *logsumexp) {
  *c = (AttentionCall){ .q = o->t[QUERY],
                        .k = o->t[KEY],
                        .v = o->t[VALUE],
                        .mask = o->t[MASK],
                        .y = y,
                        .logsumexp = logsumexp,
                        .scale = o->scale,
                        .causal = o->causal };
}

/* The floating point operations of a product of q and k. */
static int64_t score_work(const Operands *o) {
  const Tensor *q = o->t[QUERY], *k = o->t[KEY];
  return 2 * nc_numel(q) * k->size[k->nd - 2];
}

/* y and the logarithms of the sums by the device. */
static void attend(Temps *w, const Device *d, const Operands *o, Tensor **y,
                   Tensor **logsumexp) {
  const Tensor *q = o->t[QUERY], *v = o->t[VALUE];
  int64_t size[NC_MAXDIM];
  AttentionCall c;
  if (w->status != NC_OK) return;
  for (int i = 0; i < q->nd - 1; i++) size[i] = q->size[i];
  *logsumexp = nc_temps_new(w, q, q->dtype, q->nd - 1, size);
  size[q->nd - 1] = v->size[v->nd - 1];
  *y = nc_temps_new(w, q, q->dtype, q->nd, size);
  if (w->status != NC_OK) return;
  set_call(&c, o, *y, *logsumexp);
  nc_count(2 * score_work(o),
           (nc_numel(q) + nc_numel(o->t[KEY]) + nc_numel(v) + nc_numel(*y)) *
               nc_dtypesize(q->dtype));
  w->status = d->attention(d, &c);
}

/* Has t the leading sizes of q, then rows and cols (-1: any)? */
static int fits(const Tensor *t, const Tensor *q, int64_t rows, int64_t cols) {
  const int nd = q->nd;
  if (t->nd != nd || (rows >= 0 && t->size[nd - 2] != rows) ||
      (cols >= 0 && t->size[nd - 1] != cols))
    return 0;
  for (int d = 0; d < nd - 2; d++)
    if (t->size[d] != q->size[d]) return 0;
  return 1;
}

static int check_operands(const Operands *o) {
  const Tensor *q = o->t[QUERY], *k = o->t[KEY], *v = o->t[VALUE];
  const Tensor *mask = o->t[MASK];
  for (int i = QUERY; i <= MASK; i++)
    if (o->t[i] && (!nc_is_real(o->t[i]->dtype) || o->t[i]->dtype != q->dtype))
      return nc_fail(NC_EDTYPE, "operands must be floats of one dtype");
  if (q->nd < 2 || !fits(k, q, -1, q->size[q->nd - 1]) ||
      !fits(v, q, k->size[k->nd - 2], -1) ||
      (mask && !fits(mask, q, q->size[q->nd - 2], k->size[k->nd - 2])))
    return nc_fail(
        NC_ESHAPE,
        "operands must be matrices [n x e], [m x e], [m x v] and, of "
        "the mask, [n x m], with the same leading sizes");
  return NC_OK;
}

int nc_op__attention(Call *c) {
  Operands o = { .t = { c->arg[0].t, c->arg[1].t, c->arg[2].t, c->arg[3].t } };
  const DType type = o.t[QUERY]->dtype;
  Tensor *y = NULL, *logsumexp = NULL;
  const Device *d;
  Temps w = { 0 };
  TRY(nc_onedevice(&d, c->arg, o.t[MASK] ? 4 : 3));
  TRY(check_operands(&o));
  cast_operands(&w, &o, c->arg);
  if (w.status == NC_OK && has_request(d, &o)) {
    attend(&w, d, &o, &y, &logsumexp);
  } else {
    if (w.status != NC_OK || is_empty(&o) || nc_ismetatensor(o.t[QUERY]))
      y = matmul(&w, probabilities(&w, &o), o.t[VALUE]);
    else y = nc_attention_blocks(&w, &o);
    if (w.status == NC_OK)
      logsumexp = nc_temps_full(&w, y, y->dtype, y->nd - 1, y->size, nc_int(0));
  }
  y = nc_temps_cast(&w, y, type);
  nc_temps_result(&w, &c->out[1], logsumexp);
  return nc_temps_end(&w, &c->out[0], y);
}

/* _attention_weights(query, key, mask, causal, scale): of any shapes that
   broadcast; recorded. */
int nc_op__attention_weights(Call *c) {
  const Operands o = { .t = { c->arg[0].t, c->arg[1].t, NULL, c->arg[2].t },
                       .causal = (int)c->arg[3].s.i,
                       .scale = nc_tofloat(c->arg[4].s) };
  Temps w = { 0 };
  return nc_temps_endcall(&w, c, probabilities(&w, &o));
}

/*
** Gradients
*/
static int get_operands(OperatorGrad *g, Operands *o) {
  for (int i = QUERY; i <= MASK; i++) {
    TRY(nc_operand(g, i, &o->t[i]));
  }
  return NC_OK;
}

/* By operations, which are recorded if something is. */
static int composed_gradient(Temps *w, OperatorGrad *g, const Operands *o) {
  const DType type = o->t[QUERY]->dtype;
  Tensor *p = probabilities(w, o), *grad = nc_temps_cast(w, g->g[0], type);
  Tensor *dp = matmul(w, grad, nc_temps_transposed(w, o->t[VALUE])), *sum, *ds;
  sum = nc_temps_op2(w, OP_mul, dp, p);
  if (w->status == NC_OK)
    sum = nc_temps_reduce(w, OP_sum, sum, 1u << (sum->nd - 1), 1);
  ds = nc_temps_op2(w, OP_mul, p, nc_temps_op2(w, OP_sub, dp, sum));
  if (g->n > MASK && g->need[MASK]) nc_temps_result(w, &g->d[MASK], ds);
  ds = nc_temps_opnumber(w, OP_mul, ds, nc_float(o->scale));
  if (g->need[QUERY])
    nc_temps_result(w, &g->d[QUERY], matmul(w, ds, o->t[KEY]));
  if (g->need[KEY])
    nc_temps_result(w, &g->d[KEY],
                    matmul(w, nc_temps_transposed(w, ds), o->t[QUERY]));
  if (g->need[VALUE])
    nc_temps_result(w, &g->d[VALUE],
                    matmul(w, nc_temps_transposed(w, p), grad));
  return nc_temps_finish(w);
}

/* By the device. */
static int fused_gradient(Temps *w, OperatorGrad *g, const Operands *o,
                          const Device *d) {
  const DType type = o->t[QUERY]->dtype;
  Tensor *y, *logsumexp, *dot, *to[3];
  AttentionBackwardCall c = { .g = NULL };
  TRY(nc_result(g, 0, &y));
  TRY(nc_result(g, 1, &logsumexp));
  y = nc_temps_dense(w, nc_temps_cast(w, y, type));
  c.g = nc_temps_dense(w, nc_temps_cast(w, g->g[0], type));
  dot = nc_temps_new(w, y, DT_f64, logsumexp->nd, logsumexp->size);
  for (int i = QUERY; i <= VALUE; i++)
    to[i] = nc_temps_new(w, y, type, y->nd, o->t[i]->size);
  if (w->status == NC_OK) {
    set_call(&c.forward, o, y, logsumexp);
    c.dot = nc_data(dot);
    c.dq = to[QUERY], c.dk = to[KEY], c.dv = to[VALUE];
    nc_count(5 * score_work(o), 0);
    w->status = d->attention_backward(d, &c);
  }
  for (int i = QUERY; i <= VALUE; i++)
    if (g->need[i])
      nc_temps_result(w, &g->d[i],
                      nc_temps_cast(w, to[i], g->in[i].meta.dtype));
  return nc_temps_finish(w);
}

/* By operations, which are not recorded. */
static int block_gradient(Temps *w, OperatorGrad *g, const Operands *o) {
  Tensor *y, *to[3] = { NULL, NULL, NULL };
  const int need[3] = { g->need[QUERY], g->need[KEY], g->need[VALUE] };
  TRY(nc_result(g, 0, &y));
  nc_attention_blocks_grad(w, o, y, g->g[0], need, to);
  for (int i = QUERY; i <= VALUE; i++)
    if (to[i])
      nc_temps_result(w, &g->d[i],
                      nc_temps_cast(w, to[i], g->in[i].meta.dtype));
  return nc_temps_finish(w);
}

int nc_grad__attention(OperatorGrad *g) {
  int records = 0;
  const Device *d;
  Operands o;
  Temps w = { 0 };
  if (g->g[0] == NULL) return NC_OK;
  TRY(get_operands(g, &o));
  TRY(nc_recording(&records, g->g[0]));
  for (int i = QUERY; i <= MASK && !records; i++)
    if (o.t[i]) TRY(nc_recording(&records, o.t[i]));
  d = nc_device(o.t[QUERY]);
  cast_operands(&w, &o, g->arg);
  if (w.status != NC_OK) return nc_temps_finish(&w);
  if (records || (g->n > MASK && g->need[MASK]) || is_empty(&o) ||
      nc_ismetatensor(o.t[QUERY]))
    return composed_gradient(&w, g, &o);
  return has_request(d, &o) ? fused_gradient(&w, g, &o, d)
                            : block_gradient(&w, g, &o);
}
