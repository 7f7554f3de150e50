/* SPDX-License-Identifier: MIT */
/*
** statistics.c - reductions composed of others: nanmean, var_mean, std_mean,
** aminmax, dist, trapezoid, cumulative_trapezoid.
*/
#include "core/pointwise/temps.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"

int nc_op_nanmean(Call *c) {
  Tensor *x = c->arg[0].t, *sum, *n;
  const int keep = (int)c->arg[2].s.i;
  Temps w = { 0 };
  unsigned dims;
  TRY(nc_dimmask(&dims, &c->arg[1], x->nd));
  if (c->arg[3].dtype != DT_NONE) x = nc_temps_cast(&w, x, c->arg[3].dtype);
  if (w.status == NC_OK && !nc_is_real(x->dtype)) {
    w.status = nc_fail(NC_EDTYPE, "needs a float dtype, not %s",
                       nc_dtypename(x->dtype));
    nc_hint("{0}:nanmean{dtype=\"float32\"}");
  }
  sum = nc_temps_reduce(&w, OP_nansum, x, dims, keep);
  n = nc_temps_reduce(&w, OP_sum, nc_temps_op2(&w, OP_eq, x, x), dims, keep);
  return nc_temps_endcall(&w, c, nc_temps_op2(&w, OP_true_divide, sum, n));
}

/* var_mean and std_mean */
int nc_op_var_mean(Call *c) {
  Call one = *c;
  Temps w = { 0 };
  unsigned dims = 0;
  one.op = c->op == OPERATOR_var_mean ? OPERATOR_var : OPERATOR_std;
  nc_temps_result(&w, &c->out[0], nc_temps_call(&w, &one));
  if (w.status == NC_OK)
    w.status = nc_dimmask(&dims, &c->arg[1], c->arg[0].t->nd);
  return nc_temps_end(
      &w, &c->out[1],
      nc_temps_reduce(&w, OP_mean, c->arg[0].t, dims, (int)c->arg[3].s.i));
}

int nc_op_aminmax(Call *c) {
  Tensor *x = c->arg[0].t;
  const int keep = (int)c->arg[2].s.i;
  Temps w = { 0 };
  int dim;
  unsigned dims = ~0u;
  if (c->arg[1].present) {
    TRY(nc_dim(&dim, c->arg[1].s.i, x->nd));
    dims = 1u << dim;
  }
  nc_temps_result(&w, &c->out[0], nc_temps_reduce(&w, OP_amin, x, dims, keep));
  return nc_temps_end(&w, &c->out[1],
                      nc_temps_reduce(&w, OP_amax, x, dims, keep));
}

int nc_op_dist(Call *c) {
  Temps w = { 0 };
  Call norm = nc_callon(OPERATOR_norm, NULL);
  norm.arg[0].t = nc_temps_op2(&w, OP_sub, c->arg[0].t, c->arg[1].t);
  norm.arg[1] = c->arg[2];
  return nc_temps_endcall(&w, c, nc_temps_call(&w, &norm));
}

/*
** trapezoid, cumulative_trapezoid
*/
/* Returns twice the areas between neighbours along dim: (y[i] + y[i+1]) *
   dx. */
static Tensor *neighbour_areas(Temps *w, const Call *c, int dim) {
  Tensor *y = c->arg[0].t, *x = c->arg[1].t, *sum;
  const int64_t n = y->nd ? y->size[dim] - 1 : -1;
  if (n < 0) {
    w->status = nc_fail(NC_ESHAPE, "needs at least one element along dim");
    return NULL;
  }
  sum = nc_temps_op2(w, OP_add, nc_temps_narrow(w, y, dim, 1, n),
                     nc_temps_narrow(w, y, dim, 0, n));
  if (x == NULL) return nc_temps_opnumber(w, OP_mul, sum, c->arg[2].s);
  int along = x->nd == 1 ? 0 : dim + x->nd - y->nd;
  if (along < 0 || along >= x->nd || x->size[along] != n + 1) {
    w->status = nc_fail(NC_ESHAPE,
                        "x must have as many elements as {0} "
                        "along dim %d: %lld",
                        dim + 1, (long long)n + 1);
    return NULL;
  }
  x = nc_temps_call1(w, OPERATOR_diff, x, 1, along + 1);
  if (w->status == NC_OK && x->nd == 1 && dim < y->nd - 1) {
    int64_t size[NC_MAXDIM];
    for (int d = 0; d < y->nd; d++) size[d] = d == dim ? n : 1;
    x = nc_temps_reshape(w, x, y->nd, size);
  }
  return nc_temps_op2(w, OP_mul, sum, x);
}

int nc_op_trapezoid(Call *c) {
  Temps w = { 0 };
  Tensor *y;
  int dim;
  TRY(nc_dim(&dim, c->arg[3].s.i, c->arg[0].t->nd));
  y = neighbour_areas(&w, c, dim);
  y = c->op == OPERATOR_trapezoid
          ? nc_temps_reduce(&w, OP_sum, y, 1u << dim, 0)
          : nc_temps_call1(&w, OPERATOR_cumsum, y, dim + 1, 0);
  return nc_temps_endcall(&w, c,
                          nc_temps_opnumber(&w, OP_true_divide, y, nc_int(2)));
}
