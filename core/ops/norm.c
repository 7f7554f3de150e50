/* SPDX-License-Identifier: MIT */
/*
** norm.c - _norm: normalization over groups of elements.  layer_norm, rms_norm,
** group_norm, instance_norm and batch_norm call it from Lua.
**
** The device computes the gradient, unless the gradient is itself recorded:
** then it is composed of pointwise operations and reductions, with the
** statistics computed again, so that it has a second derivative.
*/
#include <math.h>

#include "core/pointwise/temps.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"

/* Returns the type of the computation for elements of type t. */
static DType compute_dtype(DType t) {
  return t == DT_f64 ? DT_f64 : DT_f32;
}

/* Sets n from the shape of x and the arguments a: {channels, inner, groups},
   eps, centered, batch. */
static int set_shape(NormCall *n, const Tensor *x, const Arg *a) {
  const int64_t of = nc_numel(x);
  TRY(nc_check_float(x->dtype));
  if (a[0].n != 3)
    return nc_fail(NC_EVALUE, "geometry: channels, elements of one, groups");
  n->channels = a[0].list[0];
  n->inner = a[0].list[1];
  n->groups = a[0].list[2];
  n->eps = nc_tofloat(a[1].s);
  n->centered = a[2].s.i != 0;
  n->batch = a[3].s.i != 0;
  n->n = 0;
  if (n->channels < 0 || n->inner < 0 || n->groups < 1 ||
      n->channels % n->groups != 0 || (n->batch && n->groups != n->channels))
    return nc_fail(NC_EVALUE, "%lld channels in %lld groups",
                   (long long)n->channels, (long long)n->groups);
  if (of == 0) return NC_OK;
  if (n->channels == 0 || n->inner == 0 || of % n->channels != 0 ||
      of / n->channels % n->inner != 0)
    return nc_fail(NC_ESHAPE,
                   "%lld elements are not a multiple of %lld channels of %lld",
                   (long long)of, (long long)n->channels, (long long)n->inner);
  n->n = of / n->channels / n->inner;
  return NC_OK;
}

/* Returns the weight or bias of each channel, dense and of this type; NULL if
   there is none. */
static Tensor *read_weight(Temps *w, const NormCall *n, Tensor *t, DType type) {
  if (t == NULL || w->status != NC_OK) return NULL;
  if (nc_numel(t) == n->channels)
    return nc_temps_dense(w, nc_temps_cast(w, t, type));
  w->status =
      nc_fail(NC_ESHAPE, "weight must have %lld elements, one for each channel",
              (long long)n->channels);
  return NULL;
}

/* Makes the request, which moves `moved' times the bytes of x. */
static int run_norm(const NormCall *n, int64_t moved) {
  const Device *d = nc_device(n->x);
  const int64_t of = nc_numel(n->x);
  if (of == 0) return NC_OK;
  nc_count(8 * of, moved * of * nc_dtypesize(n->x->dtype));
  return d->norm(d, n);
}

/* Returns a new vector with an element for each row of x; nan if x is empty. */
static Tensor *new_statistic(Temps *w, const NormCall *n, const Tensor *x) {
  const int64_t rows = n->batch ? n->channels : n->n * n->groups;
  const DType type = compute_dtype(x->dtype);
  if (nc_numel(x) > 0) return nc_temps_new(w, x, type, 1, &rows);
  return nc_temps_full(w, x, type, 1, &rows, nc_float(NAN));
}

int nc_op__norm(Call *c) {
  Tensor *x = c->arg[0].t;
  const DType type = compute_dtype(x->dtype);
  NormCall n = { .back = 0 };
  const Device *d;
  Temps w = { 0 };
  TRY(set_shape(&n, x, &c->arg[3]));
  TRY(nc_onedevice(&d, c->arg, 3));
  n.weight = read_weight(&w, &n, c->arg[1].t, type);
  n.bias = read_weight(&w, &n, c->arg[2].t, type);
  n.x = nc_temps_dense(&w, x);
  n.y = nc_temps_new(&w, x, x->dtype, x->nd, x->size);
  n.mean = new_statistic(&w, &n, x);
  n.var = new_statistic(&w, &n, x);
  if (w.status == NC_OK) w.status = run_norm(&n, 2);
  nc_temps_result(&w, &c->out[0], n.y);
  nc_temps_result(&w, &c->out[1], n.mean);
  return nc_temps_end(&w, &c->out[2], n.var);
}

/*
** Gradients
*/
static int is_needed(const OperatorGrad *g, int i) {
  return i < g->n && g->need[i];
}

/* Returns a new tensor for the gradient to weight (1) or bias (2); NULL if it
   is not needed. */
static Tensor *new_grad(Temps *w, const OperatorGrad *g, const NormCall *n,
                        int i) {
  const DType type = n->mean->dtype;
  const GradMeta *m = &g->in[i].meta;
  if (!is_needed(g, i) || w->status != NC_OK) return NULL;
  if (nc_numel(n->x) > 0) return nc_temps_new(w, n->x, type, m->nd, m->size);
  return nc_temps_full(w, n->x, type, m->nd, m->size, nc_int(0));
}

/* Computes the gradients by the request norm of the device. */
static int grad_by_device(OperatorGrad *g, NormCall *n, Tensor *x, Tensor *w) {
  Temps f = { 0 };
  n->x = nc_temps_dense(&f, x);
  n->g = nc_temps_dense(&f, nc_temps_cast(&f, g->g[0], x->dtype));
  n->weight = read_weight(&f, n, w, n->mean->dtype);
  if (is_needed(g, 0)) n->y = nc_temps_new(&f, x, x->dtype, x->nd, x->size);
  n->dweight = new_grad(&f, g, n, 1);
  n->dbias = new_grad(&f, g, n, 2);
  if (f.status == NC_OK) f.status = run_norm(n, 3);
  if (n->y) nc_temps_result(&f, &g->d[0], n->y);
  if (n->dweight) nc_temps_result(&f, &g->d[1], n->dweight);
  if (n->dbias) nc_temps_result(&f, &g->d[2], n->dbias);
  return nc_temps_finish(&f);
}

/* Returns t, or with `ischannels' a vector of channels, as [n x groups x
   channels of a group x inner]. */
static Tensor *split_groups(Temps *f, const NormCall *n, Tensor *t,
                            int ischannels) {
  const int64_t size[4] = { ischannels ? 1 : n->n, n->groups,
                            n->channels / n->groups,
                            ischannels ? 1 : n->inner };
  return nc_temps_reshape(f, t, 4, size);
}

static Tensor *reshape_to_meta(Temps *f, Tensor *t, const GradMeta *m) {
  return nc_temps_reshape(f, t, m->nd, m->size);
}

/* Returns gw - mean(gw) - y * mean(gw * y) over the dimensions `rows';
   without the mean if not centered. */
static Tensor *grad_input(Temps *f, const NormCall *n, Tensor *gw, Tensor *y,
                          unsigned rows) {
  Tensor *part =
      nc_temps_reduce(f, OP_mean, nc_temps_op2(f, OP_mul, gw, y), rows, 1);
  Tensor *rest = gw;
  if (n->centered)
    rest =
        nc_temps_op2(f, OP_sub, gw, nc_temps_reduce(f, OP_mean, gw, rows, 1));
  return nc_temps_op2(f, OP_sub, rest, nc_temps_op2(f, OP_mul, y, part));
}

/* Computes the same by recorded operations. */
static int grad_by_operations(OperatorGrad *g, const NormCall *n, Tensor *x,
                              Tensor *w) {
  const unsigned rows = n->batch ? 1u | 4u | 8u : 4u | 8u, channels = 1u | 8u;
  const DType type = compute_dtype(x->dtype);
  Temps f = { 0 };
  Tensor *gy = split_groups(&f, n, nc_temps_cast(&f, g->g[0], type), 0),
         *gw = gy;
  Tensor *c = split_groups(&f, n, nc_temps_cast(&f, x, type), 0), *s, *y;
  if (n->centered)
    c = nc_temps_op2(&f, OP_sub, c, nc_temps_reduce(&f, OP_mean, c, rows, 1));
  s = nc_temps_reduce(&f, OP_mean, nc_temps_op2(&f, OP_mul, c, c), rows, 1);
  s = nc_temps_op1(&f, OP_rsqrt,
                   nc_temps_opnumber(&f, OP_add, s, nc_float(n->eps)));
  y = nc_temps_op2(&f, OP_mul, c, s);
  if (w)
    gw = nc_temps_op2(&f, OP_mul, gy,
                      split_groups(&f, n, nc_temps_cast(&f, w, type), 1));
  if (is_needed(g, 0)) {
    Tensor *d = nc_temps_op2(&f, OP_mul, s, grad_input(&f, n, gw, y, rows));
    nc_temps_result(&f, &g->d[0], reshape_to_meta(&f, d, &g->in[0].meta));
  }
  if (is_needed(g, 1))
    nc_temps_result(
        &f, &g->d[1],
        reshape_to_meta(&f,
                        nc_temps_reduce(&f, OP_sum,
                                        nc_temps_op2(&f, OP_mul, gy, y),
                                        channels, 1),
                        &g->in[1].meta));
  if (is_needed(g, 2))
    nc_temps_result(
        &f, &g->d[2],
        reshape_to_meta(&f, nc_temps_reduce(&f, OP_sum, gy, channels, 1),
                        &g->in[2].meta));
  return nc_temps_finish(&f);
}

int nc_grad__norm(OperatorGrad *g) {
  int records[3] = { 0, 0, 0 };
  Tensor *x, *w;
  NormCall n = { .back = 1 };
  TRY(nc_operand(g, 0, &x));
  TRY(nc_operand(g, 1, &w));
  TRY(nc_result(g, 1, &n.mean));
  TRY(nc_result(g, 2, &n.var));
  TRY(set_shape(&n, x, &g->arg[3]));
  TRY(nc_recording(&records[0], g->g[0]));
  TRY(nc_recording(&records[1], x));
  if (w) TRY(nc_recording(&records[2], w));
  if (records[0] || records[1] || records[2])
    return grad_by_operations(g, &n, x, w);
  return grad_by_device(g, &n, x, w);
}
