/* SPDX-License-Identifier: MIT */
/*
** softmax.c - softmax, log_softmax and _masked_softmax along a dimension, and
** their gradients.
*/
#include "core/batch.h"
#include "core/pointwise/temps.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"
#include "core/ops/dim_op.h"

/* Casts to the dtype argument first, then computes. */
int nc_op_softmax(Call *c) {
  const DimOp op = c->op == OPERATOR_softmax       ? DIM_SOFTMAX
                   : c->op == OPERATOR_log_softmax ? DIM_LOG_SOFTMAX
                                                   : DIM_MASKED_SOFTMAX;
  Tensor *x = c->arg[0].t, *cast = NULL;
  DType type = nc_dtype_or(&c->arg[2], x->dtype);
  int dim, r = nc_dim(&dim, c->arg[1].s.i, x->nd);
  if (r == NC_OK) r = nc_check_floatself(type);
  if (r == NC_OK) r = nc_cast(&cast, x, type);
  if (r == NC_OK) r = nc_dim_op(&c->out[0], NULL, cast, dim, op, 5);
  nc_release(cast);
  return r;
}

/*
** Gradients
*/
/* Computes the gradient by the request softmax_backward and sets *r.
   Returns 0, without a computation, if the request does not apply: if
   something is recorded or dim is not the last dimension. */
static int grad_by_device(int *r, OperatorGrad *g, Tensor *y, int dim,
                          int log) {
  const Device *device = nc_device(y);
  int records[2] = { 0, 0 };
  *r = nc_recording(&records[0], g->g[0]);
  if (*r == NC_OK) *r = nc_recording(&records[1], y);
  if (*r != NC_OK) return 1;
  if (device->softmax_backward == NULL || nc_is_sample(g->g[0]) || records[0] ||
      records[1] || dim < y->nd - 1 || nc_numel(y) == 0 ||
      g->g[0]->dtype != y->dtype)
    return 0;
  nc_count(4 * nc_numel(y), 3 * nc_numel(y) * nc_dtypesize(y->dtype));
  *r = nc_newdense(&g->d[0], device, y->dtype, y);
  const SoftmaxBackwardCall c = {
    .d = g->d[0], .g = g->g[0], .y = y, .dim = dim, .log = log
  };
  if (*r == NC_OK) *r = device->softmax_backward(device, &c);
  nc_release_failed(*r, &g->d[0], 1);
  return 1;
}

int nc_grad_softmax(OperatorGrad *g) {
  Tensor *y, *sum;
  Temps w = { 0 };
  int dim, r;
  TRY(nc_result(g, 0, &y));
  TRY(nc_dim(&dim, g->arg[1].s.i, y->nd));
  if (grad_by_device(&r, g, y, dim, 0)) return r;
  sum = nc_temps_op2(&w, OP_mul, g->g[0], y);
  sum = nc_temps_reduce(&w, OP_sum, sum, 1u << dim, 1);
  if (w.status == NC_OK)
    w.status = nc_formula(&g->d[0], "b*(g - c)", g->g[0], NULL, y, sum, 0);
  return nc_temps_finish(&w);
}

int nc_grad__masked_softmax(OperatorGrad *g) {
  return nc_grad_softmax(g);
}

int nc_grad_log_softmax(OperatorGrad *g) {
  Tensor *y, *sum;
  int dim, r;
  TRY(nc_result(g, 0, &y));
  TRY(nc_dim(&dim, g->arg[1].s.i, y->nd));
  if (grad_by_device(&r, g, y, dim, 1)) return r;
  if ((r = nc_sum_keepdim(&sum, g->g[0], 1u << dim)) == NC_OK)
    r = nc_formula(&g->d[0], "g - exp(b)*c", g->g[0], NULL, y, sum, 0);
  nc_release(sum);
  return r;
}
