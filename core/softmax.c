/* SPDX-License-Identifier: MIT */
/*
** softmax.c - along one dimension: softmax, log_softmax, cumsum.
*/
#include <string.h>

#include "grad.h"
#include "op.h"

/* y = op along dimension dim of x */
static int alongdim(Tensor **y, Tensor *x, int dim, LineOp op) {
  const Device *d = nc_device(x);
  const int64_t n = nc_numel(x);
  LineCall l = { .op = op, .x = x, .dims = 1u << dim };
  int r;
  TRY(nc_new(&l.y, d, x->dtype, x->nd, x->size));
  l.length = x->nd ? x->size[dim] : 1;
  l.lines = n ? n / l.length : 0;
  nc_count(5 * n, 2 * n * nc_dtypesize(x->dtype));
  r = n ? d->lines(d, &l) : NC_OK;
  if (r == NC_OK) *y = l.y;
  else nc_release(l.y);
  return r;
}

static int floatdim(Call *c, LineOp op) {
  Tensor *x = c->arg[0].t, *cast = NULL;
  DType type = c->arg[2].dtype == DT_NONE ? x->dtype : c->arg[2].dtype;
  int dim, r = nc_dim(&dim, c->arg[1].s.i, x->nd);
  if (r == NC_OK && nc_category(type) != NC_FLOAT) {
    r = nc_fail(NC_EDTYPE, "needs a float dtype, not %s", nc_dtypename(type));
    nc_hint("self:to(\"float32\") first");
  }
  if (r == NC_OK) r = nc_cast(&cast, x, type);
  if (r == NC_OK) r = alongdim(&c->out[0], cast, dim, op);
  nc_release(cast);
  return nc_blamed(r, nc_families[c->op].name, c->arg, 1);
}

int nc_op_softmax(Call *c) {
  return floatdim(c, LINE_SOFTMAX);
}

int nc_op_log_softmax(Call *c) {
  return floatdim(c, LINE_LOG_SOFTMAX);
}

int nc_op_cumsum(Call *c) {
  Tensor *x = c->arg[0].t, *cast = NULL;
  DType type = c->arg[2].dtype;
  int dim, r = nc_dim(&dim, c->arg[1].s.i, x->nd);
  if (type == DT_NONE)
    type = nc_category(x->dtype) == NC_FLOAT ? x->dtype : DT_i64;
  if (r == NC_OK) r = nc_cast(&cast, x, type);
  if (r == NC_OK) r = alongdim(&c->out[0], cast, dim, LINE_CUMSUM);
  nc_release(cast);
  return nc_blamed(r, nc_families[c->op].name, c->arg, 1);
}

/*
** Gradients
*/
/* *y = x from its last to its first element along dim */
static int flipped(Tensor **y, Tensor *x, int dim) {
  Index ix[NC_MAXDIM];
  int r;
  memset(ix, 0, sizeof ix);
  for (int d = 0; d < dim; d++) ix[d].kind = IX_ALL;
  ix[dim].kind = IX_TENSOR;
  TRY(nc_counted(&ix[dim].t, x, x->size[dim], 1));
  r = nc_index(y, x, ix, dim + 1);
  nc_release(ix[dim].t);
  return r;
}

int nc_grad_cumsum(FamilyGrad *g) {
  Tensor *x = g->g[0], *back = NULL;
  Call c;
  int dim, r;
  TRY(nc_dim(&dim, g->arg[1].s.i, x->nd));
  if (nc_numel(x) < 2 || x->nd == 0) {
    nc_retain(g->d[0] = x);
    return NC_OK;
  }
  memset(&c, 0, sizeof c);
  c.op = FAM_cumsum;
  c.arg[1].s = nc_int(dim + 1);
  c.arg[2].dtype = DT_NONE;
  if ((r = flipped(&back, x, dim)) == NC_OK) {
    c.arg[0].t = back;
    r = nc_call(&c);
  }
  if (r == NC_OK) r = flipped(&g->d[0], c.out[0], dim);
  nc_release(back);
  nc_release(c.out[0]);
  return r;
}

int nc_grad_softmax(FamilyGrad *g) {
  Tensor *y, *gy = NULL, *sum = NULL;
  int dim, r;
  TRY(nc_result(g, 0, &y));
  TRY(nc_dim(&dim, g->arg[1].s.i, y->nd));
  if ((r = nc_apply2(&gy, OP_mul, g->g[0], y)) == NC_OK &&
      (r = nc_sumkept(&sum, gy, 1u << dim)) == NC_OK)
    r = nc_formula(&g->d[0], "b*(g - c)", g->g[0], NULL, y, sum, 0);
  nc_release(gy);
  nc_release(sum);
  return r;
}

int nc_grad_log_softmax(FamilyGrad *g) {
  Tensor *y, *sum = NULL;
  int dim, r;
  TRY(nc_result(g, 0, &y));
  TRY(nc_dim(&dim, g->arg[1].s.i, y->nd));
  if ((r = nc_sumkept(&sum, g->g[0], 1u << dim)) == NC_OK)
    r = nc_formula(&g->d[0], "g - exp(b)*c", g->g[0], NULL, y, sum, 0);
  nc_release(sum);
  return r;
}
