/* SPDX-License-Identifier: MIT */
/*
** create.c - operators that make new tensors: zeros, ones, full and their _like
** and new_ forms, eye, arange, range, linspace.
*/
#include <math.h>

#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/pointwise/scalar.h"
#include "core/pointwise/temps.h"
#include "core/tape.h"

static const Device *device_or_default(const Arg *a) {
  return a->device ? a->device : nc_default_device();
}

/*
** Constants
*/
static int constant(Call *c, Scalar v, DType type, const Arg *device) {
  const Arg *size = &c->arg[0];
  return nc_full(&c->out[0], device_or_default(device), type, size->n,
                 size->list, v);
}

/* Also ones. */
int nc_op_zeros(Call *c) {
  DType t = nc_dtype_or(&c->arg[1], nc_context->dtype);
  return constant(c, nc_int(c->op == OPERATOR_ones), t, &c->arg[2]);
}

int nc_op_empty(Call *c) {
  DType t = nc_dtype_or(&c->arg[1], nc_context->dtype);
  if (t == DT_b8) return nc_op_zeros(c); /* a bool must be 0 or 1 */
  return nc_new(&c->out[0], device_or_default(&c->arg[2]), t, c->arg[0].n,
                c->arg[0].list);
}

int nc_op_full(Call *c) {
  const Scalar v = c->arg[1].s;
  const DType t = nc_resulttype(&(Arg){ .s = v }, 1);
  return constant(c, v, nc_dtype_or(&c->arg[2], t), &c->arg[3]);
}

/* new_zeros, new_ones, new_empty, new_full: zeros and so on, in the same order,
   with the dtype and the device of self as the defaults. */
int nc_op_new_zeros(Call *c) {
  const int options = c->op == OPERATOR_new_full ? 2 : 1; /* dtype, device */
  const Tensor *x = c->arg[0].t;
  Call one = *c;
  int r;
  one.op = (Operator)(c->op - OPERATOR_new_zeros + OPERATOR_zeros);
  for (int i = 0; i + 1 < NC_MAXARG; i++) one.arg[i] = c->arg[i + 1];
  one.arg[options].dtype = nc_dtype_or(&one.arg[options], x->dtype);
  if (one.arg[options + 1].device == NULL)
    one.arg[options + 1].device = nc_device(x);
  r = nc_operators[one.op].fn(&one);
  c->out[0] = one.out[0];
  return r;
}

/* c->out[0] = an uninitialized tensor of the shape of argument 0; opt[0] and
   opt[1] are dtype and device. */
static int new_like(Call *c, const Arg opt[]) {
  Tensor *x = c->arg[0].t;
  DType t = nc_dtype_or(&opt[0], x->dtype);
  if (opt[1].device && opt[1].device != nc_device(x))
    return nc_newdense(&c->out[0], opt[1].device, t, x);
  return nc_newlike(&c->out[0], x, t);
}

static int constant_like(Call *c, Scalar v, const Arg opt[]) {
  TRY(new_like(c, opt));
  return nc_fill(c->out[0], v);
}

/* Also ones_like. */
int nc_op_zeros_like(Call *c) {
  return constant_like(c, nc_int(c->op == OPERATOR_ones_like), &c->arg[1]);
}

int nc_op_empty_like(Call *c) {
  if (nc_dtype_or(&c->arg[1], c->arg[0].t->dtype) == DT_b8)
    return nc_op_zeros_like(c);
  return new_like(c, &c->arg[1]);
}

int nc_op_full_like(Call *c) {
  return constant_like(c, c->arg[1].s, &c->arg[2]);
}

/* y[i][i] = 1 for a matrix y of zeros. */
static int fill_diagonal(Tensor *y) {
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
  const Arg *n = &c->arg[0], *m = c->arg[1].present ? &c->arg[1] : n;
  int64_t size[2] = { n->s.i, m->s.i };
  DType t = nc_dtype_or(&c->arg[2], nc_context->dtype);
  TRY(nc_full(&c->out[0], device_or_default(&c->arg[3]), t, 2, size,
              nc_int(0)));
  return fill_diagonal(c->out[0]);
}

/*
** Ranges
*/
/* *y = a new vector of n elements, filled by the request fill_range. */
static int fill_range(Tensor **y, FillRangeCall *s, int64_t n, const Device *d,
                      DType type) {
  TRY(nc_new(y, d, type, 1, &n));
  s->y = *y;
  nc_count(2 * n, n * nc_dtypesize(type));
  return nc_release_failed(n ? d->fill_range(d, s) : NC_OK, y, 1);
}

static int check_finite(const char *what, Scalar v) {
  if (v.kind != NC_FLOAT || isfinite(v.f)) return NC_OK;
  return nc_fail(NC_EVALUE, "%s is %s, not a finite number", what,
                 isnan(v.f) ? "nan"
                 : v.f > 0  ? "inf"
                            : "-inf");
}

static int fail_step_sign(const FillRangeCall *s) {
  if (s->step.kind == NC_INT)
    return nc_fail(NC_EVALUE, "steps of %lld do not go from %lld to %lld",
                   (long long)s->step.i, (long long)s->start.i,
                   (long long)s->end.i);
  return nc_fail(NC_EVALUE, "steps of %g do not go from %g to %g", s->step.f,
                 s->start.f, s->end.f);
}

static int fail_too_many(double n) {
  return nc_fail(NC_EVALUE, "%g elements are more than a tensor can have", n);
}

/* Sets *count to the number of elements up to but excluding the end, or
   including it if `closed'.  The distance of two int64 may need a uint64. */
static int count_ints(int64_t *count, const FillRangeCall *s, int closed) {
  int up = s->step.i > 0;
  uint64_t a = (uint64_t)s->start.i, b = (uint64_t)s->end.i, n;
  uint64_t by = up ? (uint64_t)s->step.i : 0 - (uint64_t)s->step.i;
  uint64_t far = up ? b - a : a - b;
  *count = 0;
  if (up ? s->start.i > s->end.i : s->start.i < s->end.i)
    return closed ? NC_OK : fail_step_sign(s);
  n = far / by + (closed ? 0 : far % by != 0);
  if (n >= INT64_MAX) return fail_too_many((double)n + closed);
  *count = (int64_t)n + closed;
  return NC_OK;
}

static int count_floats(int64_t *count, const FillRangeCall *s, int closed) {
  double n = (s->end.f - s->start.f) / s->step.f;
  *count = 0;
  if (s->end.f != s->start.f && (s->end.f > s->start.f) != (s->step.f > 0))
    return closed ? NC_OK : fail_step_sign(s);
  n = closed ? floor(n) + 1 : ceil(n);
  if (!(n < 9e18)) return fail_too_many(n);
  *count = (int64_t)n;
  return NC_OK;
}

/* Returns v as a float, or as an integer rounded towards zero. */
static Scalar convert_to(Category kind, Scalar v) {
  if (kind == NC_FLOAT) return nc_float(nc_tofloat(v));
  return nc_int(v.kind == NC_FLOAT ? f64_toi64(v.f) : v.i);
}

static int any_float(const Arg a[], int n) {
  for (int i = 0; i < n; i++)
    if (!nc_is_exact_kind(a[i].s.kind)) return 1;
  return 0;
}

static int check_not_bool(DType type) {
  if (type != DT_b8) return NC_OK;
  return nc_fail(NC_EDTYPE, "needs a numeric dtype, not bool");
}

/* *n = the number of elements; of an integer result of floats, that of the
   floats.  s = the numbers that they are computed from. */
static int count_elements(int64_t *n, FillRangeCall *s, Category kind,
                          int closed) {
  const int floats = !nc_is_exact_kind(s->start.kind) ||
                     !nc_is_exact_kind(s->end.kind) ||
                     !nc_is_exact_kind(s->step.kind);
  const Category by = floats ? NC_FLOAT : kind;
  Scalar *const all[] = { &s->start, &s->end, &s->step };
  for (int i = 0; i < 3; i++) *all[i] = convert_to(by, *all[i]);
  if (nc_tofloat(s->step) == 0) return nc_fail(NC_EVALUE, "the step is 0");
  TRY(nc_is_exact_kind(by) ? count_ints(n, s, closed)
                           : count_floats(n, s, closed));
  for (int i = 0; i < 3; i++) *all[i] = convert_to(kind, *all[i]);
  return NC_OK;
}

/* arange, and range, which is closed.  Computed in integers if the result has
   an integer type. */
int nc_op_arange(Call *c) {
  const int closed = c->op == OPERATOR_range;
  const Arg *a = c->arg;
  FillRangeCall s = { .start = nc_int(closed), .end = a[0].s, .step = a[2].s };
  DType type = nc_dtype_or(&a[3], any_float(a, 3) ? nc_context->dtype : DT_i64);
  Category kind = nc_category(type);
  int64_t n = 0;
  if (a[1].present) {
    s.start = a[0].s;
    s.end = a[1].s;
  }
  TRY(check_not_bool(type));
  TRY(check_finite(a[1].present ? "the start" : "the end", a[0].s));
  TRY(check_finite("the end", s.end));
  TRY(check_finite("the step", s.step));
  TRY(count_elements(&n, &s, kind, closed));
  if (kind == NC_INT && n > 0) {
    TRY(nc_checkholds(s.start.i, type));
    TRY(nc_checkholds(s.start.i + (n - 1) * s.step.i, type));
  }
  return fill_range(&c->out[0], &s, n, device_or_default(&a[4]), type);
}

/* Writes the first and the last of n elements: integers that the computation
   in double may round. */
static int write_ends(Tensor *y, const Scalar ends[2], int64_t n) {
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
int nc_op_linspace(Call *c);

/* linspace of complex numbers whose ends are real. */
static int complex_linspace(Call *c, DType type) {
  Call real = *c;
  int r;
  real.arg[3].dtype = nc_real_dtype(type);
  TRY(nc_op_linspace(&real));
  r = nc_cast(&c->out[0], real.out[0], type);
  nc_release(real.out[0]);
  return r;
}

/* An end as a tensor of a dtype on a device. */
static Tensor *end_as_tensor(Temps *w, const Arg *a, DType type,
                             const Device *d) {
  Tensor *x = NULL;
  if (w->status != NC_OK) return NULL;
  if (a->t) return nc_temps_todevice(w, nc_temps_cast(w, a->t, type), d);
  nc_temps_add(w, nc_new(&x, d, type, 0, NULL), &x);
  if (w->status == NC_OK) w->status = nc_fill(x, a->s);
  return x;
}

/* linspace from tensors, by which the result may be differentiated, and of
   complex ends: start*(1 - t) + end*t. */
static int composed_linspace(Call *c, DType type, const Device *d) {
  const DType work = nc_is_complex(type) ? DT_c128 : DT_f64;
  Call line = nc_callon(OPERATOR_linspace, NULL);
  Temps w = { 0 };
  Tensor *t, *back, *start, *end;
  line.arg[0].s = nc_float(0);
  line.arg[1].s = nc_float(1);
  line.arg[2] = c->arg[2];
  line.arg[3].dtype = DT_f64;
  line.arg[4] = c->arg[4];
  t = nc_temps_call(&w, &line);
  back = nc_temps_opnumber(&w, OP_sub, t, nc_float(1));
  start =
      nc_temps_op2(&w, OP_mul, back, end_as_tensor(&w, &c->arg[0], work, d));
  end = nc_temps_op2(&w, OP_mul, t, end_as_tensor(&w, &c->arg[1], work, d));
  return nc_temps_endcall(
      &w, c, nc_temps_cast(&w, nc_temps_op2(&w, OP_sub, end, start), type));
}

/* *composed = 1 if an end has a gradient or is complex.  Other ends that are
   tensors become numbers. */
static int read_ends(Arg a[2], int *composed, int *has_complex) {
  *composed = *has_complex = 0;
  for (int i = 0; i < 2; i++) {
    Tensor *t = a[i].t;
    int recorded = 0;
    if (t && t->nd > 0)
      return nc_fail(NC_ESHAPE,
                     "{%s} has %d dimensions, but must be a number, or a "
                     "tensor of none",
                     i ? "end" : "start", t->nd);
    if (t) TRY(nc_recording(&recorded, t));
    if (t && !recorded) {
      TRY(nc_item(&a[i].s, t));
      a[i].t = NULL;
    }
    *has_complex |= t ? nc_is_complex(t->dtype) : a[i].s.kind == NC_COMPLEX;
    *composed |= recorded | *has_complex;
  }
  return NC_OK;
}

static int linspace_of_numbers(Call *c, DType type) {
  const Arg *a = c->arg;
  Category kind = nc_category(type);
  Scalar ends[2] = { convert_to(kind, a[0].s), convert_to(kind, a[1].s) };
  FillRangeCall s = { .start = convert_to(NC_FLOAT, ends[0]),
                      .end = convert_to(NC_FLOAT, ends[1]),
                      .spread = 1 };
  const int64_t n = a[2].s.i;
  double gaps = n > 1 ? (double)(n - 1) : 1;
  TRY(check_not_bool(type));
  TRY(check_finite("the start", a[0].s));
  TRY(check_finite("the end", a[1].s));
  TRY(nc_check_notnegative("steps", n));
  s.step = nc_float((s.end.f - s.start.f) / gaps);
  if (!isfinite(s.step.f)) /* the distance overflows, the step may not */
    s.step.f = s.end.f / gaps - s.start.f / gaps;
  if (n <= 2) s.step.f = 0;
  TRY(fill_range(&c->out[0], &s, n, device_or_default(&a[4]), type));
  if (!nc_is_exact_kind(kind) || n == 0) return NC_OK;
  return write_ends(c->out[0], ends, n);
}

int nc_op_linspace(Call *c) {
  Call own = *c;
  DType type = nc_context->dtype;
  int composed, has_complex, r;
  for (int i = 0; i < 2 && own.arg[4].device == NULL; i++)
    if (own.arg[i].t) own.arg[4].device = nc_device(own.arg[i].t);
  TRY(read_ends(own.arg, &composed, &has_complex));
  type = nc_dtype_or(&c->arg[3], has_complex ? nc_complex_dtype(type) : type);
  if (has_complex && !nc_is_complex(type))
    return nc_fail(NC_EDTYPE, "{%s} is complex, a result of %s is not",
                   own.arg[0].t || own.arg[0].s.kind != NC_COMPLEX ? "end"
                                                                   : "start",
                   nc_dtypename(type));
  if (composed)
    r = composed_linspace(&own, type, device_or_default(&own.arg[4]));
  else if (nc_is_complex(type)) r = complex_linspace(&own, type);
  else r = linspace_of_numbers(&own, type);
  c->out[0] = own.out[0];
  return r;
}
