/* SPDX-License-Identifier: MIT */
/*
** softmax.c - softmax and log_softmax along a dimension, and their gradients.
*/
#include "core/base/temps.h"
#include "core/tape.h"
#include "core/op.h"
#include "core/ops/sort.h"

/* *y = op along dimension dim of x. */
static int alongdim(Tensor **y, Tensor *x, int dim, DimOp op) {
  const Device *d = nc_device(x);
  const int64_t n = nc_numel(x);
  DimCall l = { .op = op, .x = x, .dims = 1u << dim };
  int r;
  TRY(nc_new(&l.y, d, x->dtype, x->nd, x->size));
  l.length = x->nd ? x->size[dim] : 1;
  l.lines = n ? n / l.length : 0;
  nc_count(5 * n, 2 * n * nc_dtypesize(x->dtype));
  r = n ? d->dim_op(d, &l) : NC_OK;
  if (r == NC_OK) *y = l.y;
  else nc_release(l.y);
  return r;
}

/* Casts to the dtype argument first, then computes. */
static int floatdim(Call *c, DimOp op) {
  Tensor *x = c->arg[0].t, *cast = NULL;
  DType type = c->arg[2].dtype == DT_NONE ? x->dtype : c->arg[2].dtype;
  int dim, r = nc_dim(&dim, c->arg[1].s.i, x->nd);
  if (r == NC_OK && nc_category(type) != NC_FLOAT) {
    r = nc_fail(NC_EDTYPE, "needs a float dtype, not %s", nc_dtypename(type));
    nc_hint("{0}:to(\"float32\") first");
  }
  if (r == NC_OK) r = nc_cast(&cast, x, type);
  if (r == NC_OK) r = alongdim(&c->out[0], cast, dim, op);
  nc_release(cast);
  return r;
}

int nc_op_softmax(Call *c) {
  return floatdim(c, DIM_SOFTMAX);
}

int nc_op_log_softmax(Call *c) {
  return floatdim(c, DIM_LOG_SOFTMAX);
}

/*
** Gradients
*/
/* Computes the gradient by the request softmax_backward and sets *r.
   Returns 0, without a computation, if the request does not apply: if
   something is recorded or dim is not the last dimension. */
static int atonce(int *r, OperatorGrad *g, Tensor *y, int dim, int log) {
  const Device *device = nc_device(y);
  int records[2] = { 0, 0 };
  Tensor *d = NULL;
  *r = nc_recording(&records[0], g->g[0]);
  if (*r == NC_OK) *r = nc_recording(&records[1], y);
  if (*r != NC_OK) return 1;
  if (device->softmax_backward == NULL || records[0] || records[1] ||
      dim < y->nd - 1 || nc_numel(y) == 0 || g->g[0]->dtype != y->dtype)
    return 0;
  nc_count(4 * nc_numel(y), 3 * nc_numel(y) * nc_dtypesize(y->dtype));
  *r = nc_new(&d, device, y->dtype, y->nd, y->size);
  const SoftmaxBackwardCall c = {
    .d = d, .g = g->g[0], .y = y, .dim = dim, .log = log
  };
  if (*r == NC_OK) *r = device->softmax_backward(device, &c);
  if (*r == NC_OK) g->d[0] = d;
  else nc_release(d);
  return 1;
}

int nc_grad_softmax(OperatorGrad *g) {
  Tensor *y, *gy = NULL, *sum = NULL;
  int dim, r;
  TRY(nc_result(g, 0, &y));
  TRY(nc_dim(&dim, g->arg[1].s.i, y->nd));
  if (atonce(&r, g, y, dim, 0)) return r;
  if ((r = nc_apply2(&gy, OP_mul, g->g[0], y)) == NC_OK &&
      (r = nc_sumkept(&sum, gy, 1u << dim)) == NC_OK)
    r = nc_formula(&g->d[0], "b*(g - c)", g->g[0], NULL, y, sum, 0);
  nc_release(gy);
  nc_release(sum);
  return r;
}

int nc_grad_log_softmax(OperatorGrad *g) {
  Tensor *y, *sum = NULL;
  int dim, r;
  TRY(nc_result(g, 0, &y));
  TRY(nc_dim(&dim, g->arg[1].s.i, y->nd));
  if (atonce(&r, g, y, dim, 1)) return r;
  if ((r = nc_sumkept(&sum, g->g[0], 1u << dim)) == NC_OK)
    r = nc_formula(&g->d[0], "g - exp(b)*c", g->g[0], NULL, y, sum, 0);
  nc_release(sum);
  return r;
}
