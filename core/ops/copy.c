/* SPDX-License-Identifier: MIT */
/*
** copy.c - copy, fill, read and compare whole tensors: nc_copy, nc_fill and
** nc_read for the core, and operators on top of them (copy_, equal, isclose,
** div, clamp).
*/
#include <float.h>
#include <math.h>

#include "core/base/mapping.h"
#include "core/base/temps.h"
#include "core/cpu/kernels/kernels.h"
#include "core/op.h"
#include "core/pointwise/scalar.h"
#include "core/tensor.h"
#include "core/trace.h"

/* Returns v converted to type t, wrapped as elements are. */
static Scalar convert(Scalar v, DType t) {
  Category c = nc_category(t);
  if (c == NC_FLOAT) return nc_float(nc_tofloat(v));
  if (v.kind == NC_FLOAT && c == NC_INT)
    v = nc_int(t == DT_i32 ? f64_toi32(v.f) : f64_toi64(v.f));
  if (v.kind == NC_FLOAT) v = nc_int(v.f != 0);
  if (c == NC_BOOL) v.i = v.i != 0;
  return (Scalar){ c, v.i, 0, 0 };
}

/* Returns whether type t can represent v.  uint8 accepts integers down to
   -255, which wrap. */
static int fits_in(Scalar v, DType t) {
  static const double largest[DT_COUNT] = { [DT_u8] = UINT8_MAX,
                                            [DT_i8] = INT8_MAX,
                                            [DT_i16] = INT16_MAX,
                                            [DT_i32] = INT32_MAX,
                                            [DT_i64] = 9223372036854774784.0,
                                            [DT_f16] = 65504,
                                            [DT_bf16] = 3.3895313892515355e38,
                                            [DT_f32] = FLT_MAX };
  const int isint = nc_category(t) == NC_INT;
  double f = nc_tofloat(v), low = -largest[t] - (isint && t != DT_u8);
  if (largest[t] == 0 || v.kind == NC_BOOL) return 1;
  if (t == DT_i64 && v.kind == NC_INT) return 1;
  if (t == DT_u8 && v.kind == NC_FLOAT) low = 0;
  return (!isint && !isfinite(f)) || (f >= low && f <= largest[t]);
}

int nc_error_doesnotfit(Scalar v, DType t) {
  if (v.kind == NC_FLOAT) /* a nan without its sign, which says nothing */
    return nc_fail(NC_EVALUE, "%g does not fit in %s",
                   v.f == v.f ? v.f : fabs(v.f), nc_dtypename(t));
  return nc_fail(NC_EVALUE, "%lld does not fit in %s", (long long)v.i,
                 nc_dtypename(t));
}

int nc_checkfits(Scalar v, DType t) {
  return fits_in(v, t) ? NC_OK : nc_error_doesnotfit(v, t);
}

int nc_checkholds(int64_t v, DType t) {
  if ((t == DT_u8 && v < 0) || (t == DT_b8 && v >> 1))
    return nc_error_doesnotfit(nc_int(v), t);
  return nc_checkfits(nc_int(v), t);
}

int nc_fill(Tensor *y, Scalar v) {
  Arg in[1] = { { .s = convert(v, y->dtype) } };
  TRY(nc_checkfits(v, y->dtype));
  TRY(nc_check_writable(y));
  return nc_run_pointwise(y, OP_clone, 0, y->dtype, in, 1, NULL);
}

/* Returns the type in which elements of x are copied to y: that of x, unless
   an integer becomes a float. */
static DType copy_dtype(const Tensor *y, const Tensor *x) {
  int widen =
      nc_category(x->dtype) != NC_FLOAT && nc_category(y->dtype) == NC_FLOAT;
  return widen ? y->dtype : x->dtype;
}

/* Checks that x broadcasts to the shape of y. */
static int check_broadcast(const Tensor *y, const Tensor *x) {
  char a[NC_TEXT], b[NC_TEXT];
  int ok = x->nd <= y->nd;
  for (int d = 0; ok && d < x->nd; d++)
    ok = x->size[d] == 1 || x->size[d] == y->size[d + y->nd - x->nd];
  if (ok) return NC_OK;
  return nc_fail(NC_ESHAPE, "a [%s] tensor does not broadcast to [%s]",
                 nc_shapetext(a, x->nd, x->size),
                 nc_shapetext(b, y->nd, y->size));
}

/* Copies the bytes of x, dense, to y, of the same shape and type, from any
   device to any device.  `how' is NC_PINNED, NC_NOWAIT or 0. */
static int copy_bytes(Tensor *y, Tensor *x, int how) {
  const int64_t bytes = nc_numel(x) * nc_dtypesize(x->dtype);
  if (bytes == 0) return NC_OK;
  if (nc_ismetatensor(x) && !nc_ismetatensor(y)) return nc_meta_novalues();
  if (x->data->pinned || y->data->pinned) how |= NC_PINNED;
  nc_count(0, 2 * bytes);
  return nc_countwrite(y,
                       nc_device(y)->copy(nc_device(y), nc_data(y), nc_data(x),
                                          bytes, nc_device(x), how));
}

/* Returns whether the dense bytes of x can be written to y as they are. */
static int can_copy_bytes(const Tensor *y, const Tensor *x) {
  return y->dtype == x->dtype && nc_numel(y) == nc_numel(x) && nc_isdense(y);
}

/* Copies between devices: dense bytes first; the conversion runs on the
   device of y. */
static int copy_across(Tensor *y, Tensor *x, int how) {
  Tensor *dense = NULL, *there = NULL;
  int r;
  if ((r = nc_dense(&dense, x)) != NC_OK) return r;
  if (can_copy_bytes(y, x)) {
    r = copy_bytes(y, dense, how);
  } else if ((r = nc_newdense(&there, nc_device(y), x->dtype, x)) == NC_OK &&
             (r = copy_bytes(there, dense, how)) == NC_OK)
    r = nc_copy(y, there);
  nc_release(dense);
  nc_release(there);
  return r == NC_OK ? nc_check_lost(x) : r;
}

int nc_copy(Tensor *y, Tensor *x) {
  return nc_copyto(y, x, 0);
}

int nc_copyto(Tensor *y, Tensor *x, int how) {
  Arg in[1] = { { .t = x } };
  Tensor *apart = NULL;
  int r;
  TRY(check_broadcast(y, x));
  TRY(nc_check_writable(y));
  if (nc_device(x) != nc_device(y)) return copy_across(y, x, how);
  if (nc_overlaps(x, y)) {
    TRY(nc_apply1(&apart, OP_clone, x));
    in[0].t = apart;
  }
  r = nc_run_pointwise(y, OP_clone, 0, copy_dtype(y, x), in, 1, NULL);
  nc_release(apart);
  return r == NC_OK ? nc_check_lost(x) : r;
}

int nc_read(Scalar *v, const Tensor *t, int64_t offset) {
  const Kernels *k = nc_kernels();
  const Device *d = nc_device(t);
  char buf[8];
  const char *p = (const char *)nc_data(t) + offset * nc_dtypesize(t->dtype);
  *v = nc_int(0);
  if (d != &nc_cpu) {
    TRY(d->tohost(d, buf, p, nc_dtypesize(t->dtype), 0));
    p = buf;
  }
  v->kind = nc_category(t->dtype);
  if (v->kind == NC_FLOAT) k->load[CT_f64][t->dtype](&v->f, p, 1, 1);
  else k->load[CT_i64][t->dtype](&v->i, p, 1, 1);
  return nc_check_lost(t);
}

/*
** Operators
*/
/* Returns the first operand, with a reference, as the result. */
static int return_self(Call *c) {
  nc_retain(c->out[0] = c->arg[0].t);
  return NC_OK;
}

int nc_op_copy_(Call *c) {
  Tensor *y = c->arg[0].t, *x = c->arg[1].t;
  TRY(x ? nc_copyto(y, x, c->arg[2].s.i ? NC_NOWAIT : 0)
        : nc_fill(y, c->arg[1].s));
  return return_self(c);
}

int nc_op_fill_(Call *c) {
  TRY(nc_fill(c->arg[0].t, c->arg[1].s));
  return return_self(c);
}

int nc_op_zero_(Call *c) {
  TRY(nc_fill(c->arg[0].t, nc_int(0)));
  return return_self(c);
}

int nc_op_contiguous(Call *c) {
  return nc_dense(&c->out[0], c->arg[0].t);
}

/* *v = whether all elements of b are true.  Releases b. */
static int all_true(Scalar *v, Tensor *b) {
  Tensor *all;
  int r = nc_reduce(&all, OP_all, b, ~0u, 0, DT_NONE, NULL, NULL);
  nc_release(b);
  if (r != NC_OK) return r;
  r = nc_item(v, all);
  nc_release(all);
  v->kind = NC_BOOL;
  return r;
}

int nc_op_equal(Call *c) {
  Tensor *a = c->arg[0].t, *b = c->arg[1].t, *eq;
  c->value = (Scalar){ NC_BOOL, 0, 0, 0 };
  if (a->nd != b->nd) return NC_OK;
  for (int d = 0; d < a->nd; d++)
    if (a->size[d] != b->size[d]) return NC_OK;
  TRY(nc_apply2(&eq, OP_eq, a, b));
  return all_true(&c->value, eq);
}

/* *y = |a - b| <= atol + rtol*|b| for int64, whose differences a double may
   not represent: they are computed as integers, and are negative where they
   are 2^63 or more.  par is rtol, atol. */
static int is_close_int64(Tensor **y, Tensor *a, Tensor *b,
                          const double par[2]) {
  Temps w = { 0 };
  Tensor *most = nc_temps_op2(&w, OP_maximum, a, b);
  Tensor *apart =
      nc_temps_op2(&w, OP_sub, most, nc_temps_op2(&w, OP_minimum, a, b));
  Tensor *allowed = nc_temps_op1(&w, OP_abs, nc_temps_cast(&w, b, DT_f64)),
         *close, *far;
  allowed = nc_temps_opnumber(&w, OP_mul, allowed, nc_float(par[0]));
  allowed = nc_temps_opnumber(&w, OP_add, allowed, nc_float(par[1]));
  close = nc_temps_op2(&w, OP_le, apart, nc_temps_cast(&w, allowed, DT_i64));
  close = nc_temps_op2(&w, OP_logical_and, close,
                       nc_temps_opnumber(&w, OP_ge, apart, nc_int(0)));
  far = nc_temps_opnumber(&w, OP_add, nc_temps_cast(&w, apart, DT_f64),
                          nc_float(0x1p64));
  far = nc_temps_op2(&w, OP_logical_and,
                     nc_temps_opnumber(&w, OP_lt, apart, nc_int(0)),
                     nc_temps_op2(&w, OP_le, far, allowed));
  return nc_temps_end(&w, y, nc_temps_op2(&w, OP_logical_or, close, far));
}

/* *y = isclose of any two types.  Integers up to int32 are compared in
   float64, which represents them exactly; int64 in is_close_int64. */
static int is_close(Tensor **y, Tensor *a, Tensor *b, const double par[2]) {
  Arg in[2] = { { .t = a }, { .t = b } };
  const DType t = nc_resulttype(in, 2);
  Temps w = { 0 };
  for (int i = 0; i < 2 && nc_category(t) != NC_FLOAT; i++)
    in[i].t = nc_temps_cast(&w, in[i].t, t == DT_i64 ? DT_i64 : DT_f64);
  *y = NULL;
  if (w.status == NC_OK)
    w.status = t == DT_i64 ? is_close_int64(y, in[0].t, in[1].t, par)
                           : nc_apply(y, OP__isclose, in, par, NULL);
  return nc_temps_finish(&w);
}

/* y |= isnan(a) & isnan(b), in place. */
static int or_both_nan(Tensor *y, Tensor *a, Tensor *b) {
  Temps w = { 0 };
  Tensor *z = NULL,
         *nan = nc_temps_op2(&w, OP_bitwise_and, nc_temps_op1(&w, OP_isnan, a),
                             nc_temps_op1(&w, OP_isnan, b));
  const Arg in[2] = { { .t = y }, { .t = nan } };
  if (w.status == NC_OK)
    nc_temps_add(&w, nc_apply(&z, OP_bitwise_or, in, NULL, y), &z);
  return nc_temps_finish(&w);
}

int nc_op_isclose(Call *c) {
  Tensor *x[2] = { c->arg[0].t, c->arg[1].t };
  double par[2] = { nc_tofloat(c->arg[2].s), nc_tofloat(c->arg[3].s) };
  int r;
  if (par[0] < 0 || par[1] < 0)
    return nc_fail(NC_EVALUE, "tolerances must not be negative");
  r = is_close(&c->out[0], x[0], x[1], par);
  if (r == NC_OK && c->arg[4].s.i) r = or_both_nan(c->out[0], x[0], x[1]);
  return r;
}

int nc_op_allclose(Call *c) {
  Tensor *b;
  TRY(nc_op_isclose(c));
  b = c->out[0];
  c->out[0] = NULL;
  return all_true(&c->value, b);
}

int nc_op_div(Call *c) {
  static const Op rounded[] = { OP_floor_divide, OP_trunc_divide };
  Op op = c->arg[2].present ? rounded[c->arg[2].s.i] : OP_true_divide;
  return nc_apply(&c->out[0], op, c->arg, NULL, c->into);
}

/* Returns whether limits, of which none is a tensor, can be the parameters of
   _clamp_numbers for elements of type t. */
static int are_plain_limits(const Arg *low, const Arg *high, DType t,
                            const double par[2]) {
  return nc_category(t) == NC_FLOAT && low->t == NULL && high->t == NULL &&
         par[0] <= par[1];
}

int nc_op_clamp(Call *c) {
  const Arg *low = &c->arg[1], *high = &c->arg[2];
  const DType type = c->arg[0].t->dtype;
  const double par[2] = { low->present ? nc_tofloat(low->s) : -HUGE_VAL,
                          high->present ? nc_tofloat(high->s) : HUGE_VAL };
  Arg one[2] = { c->arg[0], low->present ? *low : *high };
  if (!low->present && !high->present)
    return nc_fail(NC_EVALUE, "min or max must be given");
  if (are_plain_limits(low, high, type, par))
    return nc_apply(&c->out[0], OP__clamp_numbers, c->arg, par, c->into);
  if (low->present && high->present)
    return nc_apply(&c->out[0], OP__clamp, c->arg, NULL, NULL);
  return nc_apply(&c->out[0], low->present ? OP_maximum : OP_minimum, one, NULL,
                  NULL);
}
