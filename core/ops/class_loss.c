/* SPDX-License-Identifier: MIT */
/*
** class_loss.c - _class_loss: cross_entropy and nll_loss for classes.
**
** The device computes the gradient in one pass, unless the gradient is itself
** recorded: then it is composed of softmax and what does not depend on x.
*/
#include "core/pointwise/temps.h"
#include "core/op.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/tape.h"

static DType compute_dtype(DType t) {
  return t == DT_f64 ? DT_f64 : DT_f32;
}

/* Sets the options from the arguments and checks the shapes. */
static int read_arguments(ClassLossCall *k, const Tensor *x, const Tensor *t,
                          const Tensor *weight, const Arg *a) {
  k->ignore = a[3].s.i;
  k->smoothing = nc_tofloat(a[4].s);
  k->reduction = (ClassReduction)a[5].s.i;
  k->log = a[6].s.i != 0;
  TRY(nc_check_float(x->dtype));
  if (x->nd != 2 || t->nd != 1 || t->size[0] != x->size[0] ||
      t->dtype != DT_i64)
    return nc_fail(NC_ESHAPE, "needs one int64 class for each row");
  if (weight && (weight->nd != 1 || weight->size[0] != x->size[1]))
    return nc_fail(NC_ESHAPE, "weight must have %lld elements",
                   (long long)x->size[1]);
  return NC_OK;
}

/* Sets the operands: dense, in the type of the computation. */
static void set_operands(Temps *w, ClassLossCall *k, Tensor *x, Tensor *t,
                         Tensor *weight) {
  const DType type = compute_dtype(x->dtype);
  k->x = nc_temps_dense(w, nc_temps_cast(w, x, type));
  k->target = nc_temps_dense(w, t);
  if (weight) k->weight = nc_temps_dense(w, nc_temps_cast(w, weight, type));
}

/* Makes the request; x may be empty. */
static void run(Temps *w, const ClassLossCall *k) {
  const Device *d;
  if (w->status != NC_OK) return;
  d = nc_device(k->x);
  nc_count(6 * nc_numel(k->x),
           (k->d ? 2 : 1) * nc_numel(k->x) * nc_dtypesize(k->x->dtype));
  w->status = d->class_loss(d, k);
}

int nc_op__class_loss(Call *c) {
  Tensor *x = c->arg[0].t, *t = c->arg[1].t, *weight = c->arg[2].t;
  const DType type = compute_dtype(x->dtype);
  ClassLossCall k = { .d = NULL };
  const Device *d;
  Temps w = { 0 };
  TRY(read_arguments(&k, x, t, weight, c->arg));
  TRY(nc_onedevice(&d, c->arg, 3));
  set_operands(&w, &k, x, t, weight);
  k.loss =
      nc_temps_new(&w, x, type, k.reduction == CLASS_NONE ? 1 : 0, t->size);
  k.lse = nc_temps_new(&w, x, type, 1, t->size);
  k.scale = nc_temps_new(&w, x, type, 0, NULL);
  run(&w, &k);
  nc_temps_result(&w, &c->out[1], k.lse);
  nc_temps_result(&w, &c->out[2], k.scale);
  return nc_temps_end(&w, &c->out[0], nc_temps_cast(&w, k.loss, x->dtype));
}

/* *d = the gradient, with a history: g * (softmax(x)*sum(q) - q), where -q is
   the gradient for logarithms of probabilities, a constant. */
static int grad_by_operations(Temps *w, ClassLossCall *k, Tensor *x, Tensor *g,
                              Tensor **d) {
  const DType type = k->x->dtype;
  const int64_t column[2] = { k->reduction == CLASS_NONE ? x->size[0] : 1, 1 };
  const int64_t shape[1] = { x->size[0] };
  const int log = k->log;
  Tensor *each;
  k->log = 1;
  k->g = nc_temps_full(w, k->x, type, k->reduction == CLASS_NONE ? 1 : 0, shape,
                       nc_int(1));
  run(w, k);
  each = k->d;
  if (!log && w->status == NC_OK) {
    Tensor *p =
        nc_temps_call1(w, OPERATOR_softmax, nc_temps_cast(w, x, type), 2, 0);
    Tensor *sum = nc_temps_reduce(w, OP_sum, each, 2u, 1);
    each = nc_temps_op2(w, OP_sub, each, nc_temps_op2(w, OP_mul, p, sum));
  }
  g = nc_temps_reshape(w, nc_temps_cast(w, g, type), 2, column);
  each = nc_temps_op2(w, OP_mul, each, g);
  return nc_temps_end(w, d, nc_temps_cast(w, each, x->dtype));
}

int nc_grad__class_loss(OperatorGrad *g) {
  int records[2] = { 0, 0 };
  Tensor *x, *t, *weight;
  ClassLossCall k = { .d = NULL };
  Temps w = { 0 };
  if (g->n > 2 && g->need[2])
    return nc_fail(NC_EVALUE, "the weights of classes have no gradient");
  TRY(nc_operand(g, 0, &x));
  TRY(nc_operand(g, 1, &t));
  TRY(nc_operand(g, 2, &weight));
  TRY(nc_result(g, 1, &k.lse));
  TRY(nc_result(g, 2, &k.scale));
  TRY(read_arguments(&k, x, t, weight, g->arg));
  TRY(nc_recording(&records[0], g->g[0]));
  TRY(nc_recording(&records[1], x));
  set_operands(&w, &k, x, t, weight);
  k.d = nc_temps_new(&w, x, compute_dtype(x->dtype), 2, x->size);
  if (records[0] || records[1])
    return grad_by_operations(&w, &k, x, g->g[0], &g->d[0]);
  k.g = nc_temps_dense(&w, nc_temps_cast(&w, g->g[0], k.x->dtype));
  run(&w, &k);
  return nc_temps_end(&w, &g->d[0], nc_temps_cast(&w, k.d, x->dtype));
}
