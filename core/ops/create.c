/* SPDX-License-Identifier: MIT */
/*
** create.c - operators that make new tensors: zeros, ones, full and their _like
** and new_ forms, eye, arange, range, linspace.
*/
#include <math.h>

#include "core/op.h"
#include "core/pointwise/scalar.h"

static const Device *place(const Arg *a) {
  return a->device ? a->device : nc_defaultdevice;
}

/*
** Constants
*/
static int constant(Call *c, Scalar v, DType type, const Arg *device) {
  const Arg *size = &c->arg[0];
  return nc_full(&c->out[0], place(device), type, size->n, size->list, v);
}

static DType typeor(const Arg *a, DType otherwise) {
  return a->dtype == DT_NONE ? otherwise : a->dtype;
}

int nc_op_zeros(Call *c) {
  DType t = typeor(&c->arg[1], nc_defaultdtype);
  return constant(c, nc_int(0), t, &c->arg[2]);
}

int nc_op_ones(Call *c) {
  DType t = typeor(&c->arg[1], nc_defaultdtype);
  return constant(c, nc_int(1), t, &c->arg[2]);
}

int nc_op_empty(Call *c) {
  DType t = typeor(&c->arg[1], nc_defaultdtype);
  if (t == DT_b8) return nc_op_zeros(c); /* a bool must be 0 or 1 */
  return nc_new(&c->out[0], place(&c->arg[2]), t, c->arg[0].n, c->arg[0].list);
}

int nc_op_full(Call *c) {
  static const DType type[] = { DT_b8, DT_i64, DT_NONE }; /* by category */
  Scalar v = c->arg[1].s;
  DType t = v.kind == NC_FLOAT ? nc_defaultdtype : type[v.kind];
  return constant(c, v, typeor(&c->arg[2], t), &c->arg[3]);
}

/* Runs fn, which takes a size, with the dtype and the device of self as the
   defaults.  `options' is the number of fn's dtype argument; the device
   follows. */
static int newlike(Call *c, int (*fn)(Call *c), int options) {
  const Tensor *x = c->arg[0].t;
  Call one = *c;
  int r;
  for (int i = 0; i + 1 < NC_MAXARG; i++) one.arg[i] = c->arg[i + 1];
  one.arg[options].dtype = typeor(&one.arg[options], x->dtype);
  if (one.arg[options + 1].device == NULL)
    one.arg[options + 1].device = nc_device(x);
  r = fn(&one);
  c->out[0] = one.out[0];
  return r;
}

int nc_op_new_zeros(Call *c) {
  return newlike(c, nc_op_zeros, 1);
}

int nc_op_new_ones(Call *c) {
  return newlike(c, nc_op_ones, 1);
}

int nc_op_new_empty(Call *c) {
  return newlike(c, nc_op_empty, 1);
}

int nc_op_new_full(Call *c) {
  return newlike(c, nc_op_full, 2);
}

/* c->out[0] = an uninitialized tensor of the shape of argument 0; opt[0] and
   opt[1] are dtype and device. */
static int like(Call *c, const Arg opt[]) {
  Tensor *x = c->arg[0].t;
  DType t = typeor(&opt[0], x->dtype);
  if (opt[1].device && opt[1].device != nc_device(x))
    return nc_new(&c->out[0], opt[1].device, t, x->nd, x->size);
  return nc_newlike(&c->out[0], x, t);
}

static int constantlike(Call *c, Scalar v, const Arg opt[]) {
  int r = like(c, opt);
  if (r == NC_OK && (r = nc_fill(c->out[0], v)) != NC_OK) {
    nc_release(c->out[0]);
    c->out[0] = NULL;
  }
  return r;
}

int nc_op_zeros_like(Call *c) {
  return constantlike(c, nc_int(0), &c->arg[1]);
}

int nc_op_ones_like(Call *c) {
  return constantlike(c, nc_int(1), &c->arg[1]);
}

int nc_op_empty_like(Call *c) {
  if (typeor(&c->arg[1], c->arg[0].t->dtype) == DT_b8)
    return nc_op_zeros_like(c);
  return like(c, &c->arg[1]);
}

int nc_op_full_like(Call *c) {
  return constantlike(c, c->arg[1].s, &c->arg[2]);
}

/* y[i][i] = 1 for a matrix y of zeros. */
static int fillones(Tensor *y) {
  Tensor *d;
  int r;
  TRY(nc_alias(&d, y));
  d->nd = 1;
  d->size[0] = y->size[0] < y->size[1] ? y->size[0] : y->size[1];
  d->step[0] = y->step[0] + y->step[1];
  r = nc_fill(d, nc_int(1));
  nc_release(d);
  return r;
}

int nc_op_eye(Call *c) {
  const Arg *n = &c->arg[0], *m = c->arg[1].given ? &c->arg[1] : n;
  int64_t size[2] = { n->s.i, m->s.i };
  DType t = typeor(&c->arg[2], nc_defaultdtype);
  int r = nc_full(&c->out[0], place(&c->arg[3]), t, 2, size, nc_int(0));
  if (r == NC_OK && (r = fillones(c->out[0])) != NC_OK) {
    nc_release(c->out[0]);
    c->out[0] = NULL;
  }
  return r;
}

/*
** Ranges
*/
/* *y = a new vector of n elements, filled by the request fill_range. */
static int sequence(Tensor **y, FillRangeCall *s, int64_t n, const Device *d,
                    DType type) {
  int r;
  TRY(nc_new(&s->y, d, type, 1, &n));
  nc_count(2 * n, n * nc_dtypesize(type));
  r = n ? d->fill_range(d, s) : NC_OK;
  if (r == NC_OK) *y = s->y;
  else nc_release(s->y);
  return r;
}

static int finite(const char *what, Scalar v) {
  if (v.kind != NC_FLOAT || isfinite(v.f)) return NC_OK;
  return nc_fail(NC_EVALUE, "%s is %s, not a finite number", what,
                 isnan(v.f) ? "nan"
                 : v.f > 0  ? "inf"
                            : "-inf");
}

static int badsign(const FillRangeCall *s) {
  if (s->step.kind == NC_INT)
    return nc_fail(NC_EVALUE, "steps of %lld do not lead from %lld to %lld",
                   (long long)s->step.i, (long long)s->start.i,
                   (long long)s->end.i);
  return nc_fail(NC_EVALUE, "steps of %g do not lead from %g to %g", s->step.f,
                 s->start.f, s->end.f);
}

static int toomany(double n) {
  return nc_fail(NC_EVALUE, "%g elements are more than a tensor can have", n);
}

/* Sets *count to the number of elements up to but excluding the end, or
   including it if `closed'.  The distance of two int64 may need a uint64. */
static int countints(int64_t *count, const FillRangeCall *s, int closed) {
  int up = s->step.i > 0;
  uint64_t a = (uint64_t)s->start.i, b = (uint64_t)s->end.i, n;
  uint64_t by = up ? (uint64_t)s->step.i : 0 - (uint64_t)s->step.i;
  uint64_t far = up ? b - a : a - b;
  *count = 0;
  if (up ? s->start.i > s->end.i : s->start.i < s->end.i)
    return closed ? NC_OK : badsign(s);
  n = far / by + (closed ? 0 : far % by != 0);
  if (n >= INT64_MAX) return toomany((double)n + closed);
  *count = (int64_t)n + closed;
  return NC_OK;
}

static int countfloats(int64_t *count, const FillRangeCall *s, int closed) {
  double n = (s->end.f - s->start.f) / s->step.f;
  *count = 0;
  if (s->end.f != s->start.f && (s->end.f > s->start.f) != (s->step.f > 0))
    return closed ? NC_OK : badsign(s);
  n = closed ? floor(n) + 1 : ceil(n);
  if (!(n < 9e18)) return toomany(n);
  *count = (int64_t)n;
  return NC_OK;
}

/* Returns v as a float, or as an integer rounded towards zero. */
static Scalar as(Category kind, Scalar v) {
  if (kind == NC_FLOAT) return nc_float(nc_tofloat(v));
  return nc_int(v.kind == NC_FLOAT ? f64_toi64(v.f) : v.i);
}

static int floating(const Arg a[], int n) {
  for (int i = 0; i < n; i++)
    if (a[i].s.kind == NC_FLOAT) return 1;
  return 0;
}

static int nobool(DType type) {
  if (type != DT_b8) return NC_OK;
  return nc_fail(NC_EDTYPE, "needs a number dtype, not bool");
}

/* arange, and range (`closed').  Computed in integers if the result has an
   integer type. */
static int steps(Call *c, int closed) {
  const Arg *a = c->arg;
  FillRangeCall s = { .start = nc_int(closed), .end = a[0].s, .step = a[2].s };
  DType type = typeor(&a[3], floating(a, 3) ? nc_defaultdtype : DT_i64);
  Category kind = nc_category(type);
  int64_t n;
  if (a[1].given) {
    s.start = a[0].s;
    s.end = a[1].s;
  }
  TRY(nobool(type));
  TRY(finite(a[1].given ? "the start" : "the end", a[0].s));
  TRY(finite("the end", s.end));
  TRY(finite("the step", s.step));
  s.start = as(kind, s.start);
  s.end = as(kind, s.end);
  s.step = as(kind, s.step);
  if (nc_tofloat(s.step) == 0) return nc_fail(NC_EVALUE, "the step is 0");
  TRY(kind == NC_FLOAT ? countfloats(&n, &s, closed)
                       : countints(&n, &s, closed));
  if (kind == NC_INT && n > 0) {
    TRY(nc_checkholds(s.start.i, type));
    TRY(nc_checkholds(s.start.i + (n - 1) * s.step.i, type));
  }
  return sequence(&c->out[0], &s, n, place(&a[4]), type);
}

int nc_op_arange(Call *c) {
  return steps(c, 0);
}

int nc_op_range(Call *c) {
  return steps(c, 1);
}

/* Writes the first and the last of n elements: integers that the computation
   in double may round. */
static int exactends(Tensor *y, const Scalar ends[2], int64_t n) {
  const int64_t at[2] = { 0, n - 1 };
  for (int i = 0; i < 2; i++) {
    Tensor *e;
    int r;
    if (i && n == 1) continue;
    TRY(nc_alias(&e, y));
    e->nd = 0;
    e->offset += at[i];
    r = nc_fill(e, ends[i]);
    nc_release(e);
    TRY(r);
  }
  return NC_OK;
}

/* Integer results get exact ends; numbers between are computed in double. */
static int linspace(Call *c) {
  const Arg *a = c->arg;
  DType type = typeor(&a[3], nc_defaultdtype);
  Category kind = nc_category(type);
  Scalar ends[2] = { as(kind, a[0].s), as(kind, a[1].s) };
  FillRangeCall s = { .start = as(NC_FLOAT, ends[0]),
                      .end = as(NC_FLOAT, ends[1]),
                      .spread = 1 };
  const int64_t n = a[2].s.i;
  double gaps = n > 1 ? (double)(n - 1) : 1;
  int r;
  TRY(nobool(type));
  TRY(finite("the start", a[0].s));
  TRY(finite("the end", a[1].s));
  if (n < 0)
    return nc_fail(NC_EVALUE, "the number of steps is %lld", (long long)n);
  s.step = nc_float((s.end.f - s.start.f) / gaps);
  if (!isfinite(s.step.f)) /* the distance overflows, the step may not */
    s.step.f = s.end.f / gaps - s.start.f / gaps;
  if (n <= 2) s.step.f = 0;
  TRY(sequence(&c->out[0], &s, n, place(&a[4]), type));
  if (kind == NC_FLOAT || n == 0) return NC_OK;
  if ((r = exactends(c->out[0], ends, n)) != NC_OK) {
    nc_release(c->out[0]);
    c->out[0] = NULL;
  }
  return r;
}

int nc_op_linspace(Call *c) {
  return linspace(c);
}
