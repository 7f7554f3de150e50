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

#include "core/base/temps.h"
#include "core/tape.h"
#include "core/op.h"
#include "core/ops/sort.h"

/* Returns the type of the computation for elements of type t. */
static DType worked(DType t) {
  return t == DT_f64 ? DT_f64 : DT_f32;
}

/* Sets n from the shape of x and the arguments a: {channels, inner, groups},
   eps, centered, batch. */
static int shape(NormCall *n, const Tensor *x, const Arg *a) {
  const int64_t of = nc_numel(x);
  if (nc_category(x->dtype) != NC_FLOAT)
    return nc_fail(NC_EDTYPE, "needs a float dtype, not %s",
                   nc_dtypename(x->dtype));
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
                   "%lld elements are no multiple of %lld channels "
                   "of %lld",
                   (long long)of, (long long)n->channels, (long long)n->inner);
  n->n = of / n->channels / n->inner;
  return NC_OK;
}

/* *w = the weight or bias of each channel, dense and of this type; NULL if
   there is none. */
static int weight(Tensor **w, const NormCall *n, const Arg *a, DType type) {
  Tensor *cast = NULL;
  int r;
  *w = NULL;
  if (a->t == NULL) return NC_OK;
  if (nc_numel(a->t) != n->channels)
    return nc_fail(NC_ESHAPE, "%lld channels need as many weights",
                   (long long)n->channels);
  TRY(nc_cast(&cast, a->t, type));
  r = nc_dense(w, cast);
  nc_release(cast);
  return r;
}

/* Makes the request, which moves `moved' times the bytes of x. */
static int ask(const NormCall *n, int64_t moved) {
  const Device *d = nc_device(n->x);
  const int64_t of = nc_numel(n->x);
  if (of == 0) return NC_OK;
  nc_count(8 * of, moved * of * nc_dtypesize(n->x->dtype));
  return d->norm(d, n);
}

/* *t = a new vector with an element for each row of x; nan if x is empty. */
static int statistic(Tensor **t, const Tensor *x, DType type, int64_t rows) {
  const Device *d = nc_device(x);
  if (nc_numel(x) > 0) return nc_new(t, d, type, 1, &rows);
  return nc_full(t, d, type, 1, &rows, nc_float(NAN));
}

int nc_op__norm(Call *c) {
  const DType type = worked(c->arg[0].t->dtype);
  Tensor *x = NULL, *w = NULL, *b = NULL;
  NormCall n = { .back = 0 };
  const Device *d;
  int64_t rows;
  int r = shape(&n, c->arg[0].t, &c->arg[3]);
  if (r == NC_OK) r = nc_onedevice(&d, c->arg, 3);
  if (r == NC_OK) r = weight(&w, &n, &c->arg[1], type);
  if (r == NC_OK) r = weight(&b, &n, &c->arg[2], type);
  if (r == NC_OK) r = nc_dense(&x, c->arg[0].t);
  rows = n.batch ? n.channels : n.n * n.groups;
  if (r == NC_OK) r = nc_new(&c->out[0], d, x->dtype, x->nd, x->size);
  if (r == NC_OK) r = statistic(&c->out[1], x, type, rows);
  if (r == NC_OK) r = statistic(&c->out[2], x, type, rows);
  n.x = x;
  n.weight = w;
  n.bias = b;
  n.y = c->out[0];
  n.mean = c->out[1];
  n.var = c->out[2];
  if (r == NC_OK) r = ask(&n, 2);
  nc_release(x);
  nc_release(w);
  nc_release(b);
  return r;
}

/*
** Gradients
*/
static int wanted(const OperatorGrad *g, int i) {
  return i < g->n && g->need[i];
}

/* *t = a new tensor for the gradient to weight (1) or bias (2); NULL if it
   is not needed. */
static int fresh(Tensor **t, const OperatorGrad *g, const NormCall *n, int i) {
  const DType type = n->mean->dtype;
  const GradMeta *m = &g->in[i].meta;
  if (!wanted(g, i)) return NC_OK;
  if (nc_numel(n->x) == 0)
    return nc_full(t, nc_device(n->x), type, m->nd, m->size, nc_int(0));
  return nc_new(t, nc_device(n->x), type, m->nd, m->size);
}

/* Computes the gradients by the request norm of the device. */
static int atonce(OperatorGrad *g, NormCall *n, Tensor *x, Tensor *w) {
  Tensor *dense[3] = { NULL, NULL, NULL }, *made[3] = { NULL, NULL, NULL };
  const Arg weights = { .t = w };
  int r = nc_dense(&dense[0], x);
  if (r == NC_OK) r = nc_cast(&made[0], g->g[0], x->dtype);
  if (r == NC_OK) r = nc_dense(&dense[1], made[0]);
  nc_release(made[0]);
  made[0] = NULL;
  if (r == NC_OK) r = weight(&dense[2], n, &weights, n->mean->dtype);
  n->x = dense[0];
  n->g = dense[1];
  n->weight = dense[2];
  if (r == NC_OK && wanted(g, 0))
    r = nc_new(&made[0], nc_device(x), x->dtype, x->nd, x->size);
  for (int i = 1; i < 3 && r == NC_OK; i++) r = fresh(&made[i], g, n, i);
  n->y = made[0];
  n->dweight = made[1];
  n->dbias = made[2];
  if (r == NC_OK) r = ask(n, 3);
  for (int i = 0; i < 3; i++) {
    nc_release(dense[i]);
    if (r == NC_OK && made[i]) g->d[i] = made[i];
    else nc_release(made[i]);
  }
  return r;
}

/* Returns t, or with `ischannels' a vector of channels, as [n x groups x
   channels of a group x inner]. */
static Tensor *parted(Temps *f, const NormCall *n, Tensor *t, int ischannels) {
  const int64_t size[4] = { ischannels ? 1 : n->n, n->groups,
                            n->channels / n->groups,
                            ischannels ? 1 : n->inner };
  Tensor *y = NULL;
  if (f->status != NC_OK) return NULL;
  return nc_temps_add(f, nc_reshapeto(&y, t, 4, size), &y);
}

static Tensor *shaped(Temps *f, Tensor *t, const GradMeta *m) {
  Tensor *y = NULL;
  if (f->status != NC_OK) return NULL;
  return nc_temps_add(f, nc_reshapeto(&y, t, m->nd, m->size), &y);
}

/* Returns gw - mean(gw) - y * mean(gw * y) over the dimensions `rows';
   without the mean if not centered. */
static Tensor *along(Temps *f, const NormCall *n, Tensor *gw, Tensor *y,
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
static int byrows(OperatorGrad *g, const NormCall *n, Tensor *x, Tensor *w) {
  const unsigned rows = n->batch ? 1u | 4u | 8u : 4u | 8u, channels = 1u | 8u;
  const DType type = worked(x->dtype);
  Temps f = { 0 };
  Tensor *gy = parted(&f, n, nc_temps_cast(&f, g->g[0], type), 0), *gw = gy;
  Tensor *c = parted(&f, n, nc_temps_cast(&f, x, type), 0), *s, *y;
  if (n->centered)
    c = nc_temps_op2(&f, OP_sub, c, nc_temps_reduce(&f, OP_mean, c, rows, 1));
  s = nc_temps_reduce(&f, OP_mean, nc_temps_op2(&f, OP_mul, c, c), rows, 1);
  s = nc_temps_op1(&f, OP_rsqrt,
                   nc_temps_opnumber(&f, OP_add, s, nc_float(n->eps)));
  y = nc_temps_op2(&f, OP_mul, c, s);
  if (w)
    gw = nc_temps_op2(&f, OP_mul, gy,
                      parted(&f, n, nc_temps_cast(&f, w, type), 1));
  if (wanted(g, 0)) {
    Tensor *d = nc_temps_op2(&f, OP_mul, s, along(&f, n, gw, y, rows));
    nc_temps_result(&f, &g->d[0], shaped(&f, d, &g->in[0].meta));
  }
  if (wanted(g, 1))
    nc_temps_result(
        &f, &g->d[1],
        shaped(&f,
               nc_temps_reduce(&f, OP_sum, nc_temps_op2(&f, OP_mul, gy, y),
                               channels, 1),
               &g->in[1].meta));
  if (wanted(g, 2))
    nc_temps_result(&f, &g->d[2],
                    shaped(&f, nc_temps_reduce(&f, OP_sum, gy, channels, 1),
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
  TRY(shape(&n, x, &g->arg[3]));
  TRY(nc_recording(&records[0], g->g[0]));
  TRY(nc_recording(&records[1], x));
  if (w) TRY(nc_recording(&records[2], w));
  if (records[0] || records[1] || records[2]) return byrows(g, &n, x, w);
  return atonce(g, &n, x, w);
}
