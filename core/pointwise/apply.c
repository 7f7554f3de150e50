/* SPDX-License-Identifier: MIT */
/*
** apply.c - applies the pointwise operations of ops.def (nc_apply): decides the
** type of the computation, shape, device and memory of the result, then asks
** the device to run a loop (TensorIter).  reduce.c has the reductions.
*/
#include "core/base/mapping.h"
#include "core/op.h"
#include "core/ops.h"

#include <math.h>
#include <string.h>

#include "core/tape.h"
#include "core/pointwise/iterator.h"
#include "core/portable.h"
#include "core/trace_internal.h"

#define OF_CLASS(c) \
  (OpClass)((int)(c) & ~(int)NC_TAKES_COMPLEX), ((c)&NC_TAKES_COMPLEX) != 0
#define ROW3(op, kind, class, val, d0, d1, d2, sig, doc) \
  { #op,                                                 \
    kind,                                                \
    OF_CLASS(CLASS_##class),                             \
    #val,                                                \
    { NULL, NULL, NULL },                                \
    { d0, d1, d2 },                                      \
    sig,                                                 \
    doc },
#define UNARY(op, class, val, d0, sig, doc) \
  ROW3(op, UNARY_OP, class, val, #d0, NULL, NULL, sig, doc)
#define TEST(op, class, val, sig, doc) \
  ROW3(op, TEST_OP, class, val, NULL, NULL, NULL, sig, doc)
#define BINARY(op, class, val, d0, d1, sig, doc) \
  ROW3(op, BINARY_OP, class, val, #d0, #d1, NULL, sig, doc)
#define COMPARE(op, class, val, sig, doc) \
  ROW3(op, COMPARE_OP, class, val, NULL, NULL, NULL, sig, doc)
#define TERNARY(op, class, val, d0, d1, d2, sig, doc) \
  ROW3(op, TERNARY_OP, class, val, #d0, #d1, #d2, sig, doc)
#define CHOOSE(op, class, val, d1, d2, sig, doc) \
  ROW3(op, CHOOSE_OP, class, val, NULL, #d1, #d2, sig, doc)
#define REDUCE(op, class, init, map, fold, val, d0, sig, doc) \
  { #op,                                                      \
    REDUCE_OP,                                                \
    OF_CLASS(CLASS_##class),                                  \
    #val,                                                     \
    { #init, #map, #fold },                                   \
    { #d0, NULL, NULL },                                      \
    sig,                                                      \
    doc },
const OpInfo nc_opinfo[OP_COUNT] = {
#include "core/ops.def"
};

int nc_arity(Op op) {
  static const int arity[] = { 1, 1, 2, 2, 3, 3, 1 }; /* order of OpKind */
  return arity[nc_opinfo[op].kind];
}

/*
** Shapes
*/
int nc_broadcast(const Arg in[], int n, int *nd, int64_t size[]) {
  *nd = 0;
  for (int j = 0; j < n; j++)
    if (in[j].t && in[j].t->nd > *nd) *nd = in[j].t->nd;
  for (int d = 0; d < *nd; d++) size[d] = 1;
  for (int j = 0; j < n; j++)
    for (int d = 0; in[j].t && d < in[j].t->nd; d++) {
      int at = *nd - in[j].t->nd + d;
      int64_t have = in[j].t->size[d], *want = &size[at];
      if (have == 1 || have == *want) continue;
      if (*want != 1) {
        nc_fail(NC_ESHAPE,
                "shapes do not broadcast: dim %d is %lld in one "
                "and %lld in the other",
                at + 1, (long long)*want, (long long)have);
        nc_cause((Cause){ .kind = NC_CAUSE_broadcast });
        nc_rule("sizes must be equal or 1, aligned at the last dimension");
        return NC_ESHAPE;
      }
      *want = have;
    }
  return NC_OK;
}

static int same_shape(const Tensor *t, int nd, const int64_t size[]) {
  int same = t->nd == nd;
  for (int d = 0; same && d < nd; d++) same = t->size[d] == size[d];
  return same;
}

/*
** The loop
*/
/* Returns whether y and all tensor operands are dense and of one shape. */
static int are_dense(const Tensor *y, const Arg in[], int n) {
  if (!nc_isdense(y)) return 0;
  for (int j = 0; j < n; j++)
    if (in[j].t &&
        (!same_shape(in[j].t, y->nd, y->size) || !nc_isdense(in[j].t)))
      return 0;
  return 1;
}

/* Gives a loop the dimensions of y, to which its operands broadcast. */
static void set_strided(TensorIter *k, const Tensor *y, const Arg in[]) {
  k->nd = k->uniform = 0;
  for (int d = y->nd - 1; d >= 0; d--) {
    if (y->size[d] == 1) continue;
    k->size[k->nd] = y->size[d];
    k->step[0][k->nd] = y->step[d];
    for (int j = 1; j < k->nargs; j++) {
      const Tensor *t = in[j - 1].t;
      int own = t ? d - y->nd + t->nd : -1;
      k->step[j][k->nd] = own < 0 || t->size[own] == 1 ? 0 : t->step[own];
    }
    k->nd++;
  }
  nc_iter_sortdims(k, 0, k->nd, 0);
  k->nd = nc_iter_collapse(k, 0, k->nd);
}

/* Strength reduction: replaces pow by one of these numbers in a float type by
   an operation with an operand less (*n).  Of the gradients only that of square
   applies: it has the operands of pow's, g and x. */
static Op reduce_pow(int grad_index, DType common, const Arg in[], int *n) {
  static const struct {
    double by;
    Op op;
  } cheaper[] = {
    { 2, OP_square },      { 1, OP_positive },   { -1, OP_reciprocal },
    { 0.5, OP__pow_half }, { 3, OP__pow_three },
  };
  const Arg *exponent = &in[*n - 1];
  double by;
  if (grad_index > 1 || exponent->t || nc_is_exact(common) ||
      nc_imag(exponent->s) != 0)
    return OP_pow;
  by = nc_tofloat(exponent->s);
  for (size_t i = 0; i < (grad_index ? 1 : sizeof cheaper / sizeof *cheaper);
       i++)
    if (cheaper[i].by == by &&
        (nc_opinfo[cheaper[i].op].takes_complex || !nc_is_complex(common)))
      return --*n, cheaper[i].op;
  return OP_pow;
}

/* nc_run_pointwise, for which `dense' is that of are_dense. */
static int run_loop(Tensor *y, Op op, int grad_index, DType common,
                    const Arg in[], int n, const double par[2], int dense) {
  const Device *d = nc_device(y);
  int64_t bytes;
  TensorIter k;
  if (op == OP_pow) op = reduce_pow(grad_index, common, in, &n);
  if (op == OP_gelu && par[0] == 0) op = OP__gelu_erf; /* without tanh */
  bytes = nc_iter_start(&k, op, common, y, in, n, par);
  k.grad_index = grad_index;
  if (nc_is_storage(common)) nc_move_as_bits(&k);
  if (k.n == 0) return NC_OK;
  if (!dense) {
    set_strided(&k, y, in);
    bytes = nc_iter_bytes(y, in, n);
  }
  nc_count(op == OP_clone ? 0 : k.n, bytes);
  return nc_countwrite(y, d->run(d, &k));
}

int nc_run_pointwise(Tensor *y, Op op, int grad_index, DType common,
                     const Arg in[], int n, const double par[2]) {
  return run_loop(y, op, grad_index, common, in, n, par, are_dense(y, in, n));
}

/*
** Results
*/
/* Returns whether two tensors share bytes without being the same elements;
   may be true for interleaved views that do not. */
int nc_overlaps(const Tensor *a, const Tensor *b) {
  const Tensor *t[2] = { a, b };
  int64_t low[2], high[2];
  if (!nc_sharesmemory(a, b)) return 0;
  if (a->dtype == b->dtype && nc_data(a) == nc_data(b) &&
      same_shape(a, b->nd, b->size) &&
      memcmp(a->step, b->step, (size_t)a->nd * sizeof *a->step) == 0)
    return 0;
  for (int i = 0; i < 2; i++) {
    if (nc_numel(t[i]) == 0) return 0;
    low[i] = (int64_t)(intptr_t)nc_data(t[i]);
    high[i] = 1;
    for (int d = 0; d < t[i]->nd; d++)
      high[i] += (t[i]->size[d] - 1) * t[i]->step[d];
    high[i] = low[i] + high[i] * nc_dtypesize(t[i]->dtype);
  }
  return low[0] < high[1] && low[1] < high[0];
}

/* Also increments the version of the storage: of pointwise results only this
   function and fast_apply do. */
int nc_check_writable(const Tensor *self) {
  if (nc_isreadonly(self)) {
    nc_fail(NC_EVALUE, "the memory of the tensor can only be read");
    nc_hint("{0}:clone() can be written to");
    return NC_EVALUE;
  }
  if (nc_overlapsitself(self)) {
    nc_fail(
        NC_EVALUE,
        "several elements of the tensor share memory, it cannot be written to");
    nc_hint("{0}:clone() first");
    return NC_EVALUE;
  }
  self->data->version++;
  return NC_OK;
}

/* nc_check_out without the name of the operand. */
static int check_result(const Tensor *out, DType result, int nd,
                        const int64_t size[]) {
  char have[NC_TEXT], want[NC_TEXT];
  if (!same_shape(out, nd, size))
    return nc_fail(
        NC_ESHAPE, "the result is [%s], the tensor it is written to is [%s]",
        nc_shapetext(want, nd, size), nc_shapetext(have, out->nd, out->size));
  if (!nc_castable(result, out->dtype)) {
    nc_fail(NC_EDTYPE, "%s %s result cannot be written to %s %s tensor",
            nc_article(result), nc_dtypename(result), nc_article(out->dtype),
            nc_dtypename(out->dtype));
    nc_hint("{out}:to(\"%s\") first", nc_dtypename(result));
    return NC_EDTYPE;
  }
  return nc_check_writable(out);
}

int nc_check_out(const Tensor *out, DType result, int nd,
                 const int64_t size[]) {
  const int r = check_result(out, result, nd, size);
  if (r == NC_EVALUE) nc_hint("{out}:clone() first");
  if (r != NC_OK) nc_error_out(out);
  return r;
}

/* Returns the operand whose memory order the result has; NULL: none has its
   shape. */
static const Tensor *layout_model(const Arg in[], int n, int nd,
                                  const int64_t size[]) {
  for (int j = 0; j < n; j++)
    if (in[j].t && same_shape(in[j].t, nd, size)) return in[j].t;
  return NULL;
}

int nc_checkoutdevice(const Tensor *out, const Device *d) {
  if (nc_device(out) == d) return NC_OK;
  nc_fail(NC_EDEVICE,
          "the result is on %s, the tensor it is written to is on %s", d->name,
          nc_device(out)->name);
  nc_hint("t:copy_(result) writes it there");
  nc_error_out(out);
  return NC_EDEVICE;
}

/* *y = a new tensor for the result, or `out' with a reference if the result
   may be written to it. */
static int make_result(Tensor **y, Tensor *out, const Device *d, const Arg in[],
                       int n, DType result) {
  int64_t size[NC_MAXDIM];
  int nd;
  TRY(nc_broadcast(in, n, &nd, size));
  if (out) {
    TRY(nc_check_out(out, result, nd, size));
    TRY(nc_checkoutdevice(out, d));
    nc_retain(*y = out);
    return NC_OK;
  }
  const Tensor *like = layout_model(in, n, nd, size);
  if (like) return nc_newlike(y, like, result);
  return nc_new(y, d, result, nd, size);
}

/* Fails for an integer division by zero: before the result is written,
   unless the device is asynchronous. */
static int check_divisor(const Arg *a, const Arg *b, DType common) {
  static const char text[] = "integer division by zero";
  Tensor *all = NULL, *is_true = NULL;
  int r;
  if (!nc_is_exact(common) || (a->t && nc_numel(a->t) == 0)) return NC_OK;
  if (b->t == NULL)
    return nc_cast_scalar(b->s, common).i ? NC_OK : nc_fail(NC_EVALUE, text);
  if ((r = nc_reduce(&all, OP_all, b->t, ~0u, 0, DT_NONE, NULL, NULL)) ==
          NC_OK &&
      (r = nc_cast(&is_true, all, DT_b8)) == NC_OK) {
    const AssertCall e = { is_true, NC_EVALUE, text };
    r = nc_device(is_true)->device_assert(nc_device(is_true), &e);
  }
  nc_release(all);
  nc_release(is_true);
  return r;
}

/* Checks the numeric parameter p of an operation over integers.  A factor
   may be negative for uint8 too, as in self + alpha*other. */
static int check_parameter(Op op, DType common, double p) {
  if (p != floor(p))
    return nc_fail(NC_EDTYPE, "%g is not an integer, but the tensors are %s", p,
                   nc_dtypename(common));
  if (!(fabs(p) < 0x1p63) || (op == OP__threshold && common == DT_u8 && p < 0))
    return nc_error_doesnotfit(nc_float(p), common);
  return nc_checkfits(nc_int((int64_t)p), common);
}

/* The CHECK rows of ops.def. */
static const unsigned char has_check[OP_COUNT] = {
#define EVERY_OP(op, ...)
#define CHECK(op, ...) [OP_##op] = 1,
#include "core/ops.def"
};

static int check_parameters(Op op, const double par[]) {
  const double p = par ? par[0] : 1, q = par ? par[1] : 0;
  switch (par ? op : OP_COUNT) {
#define EVERY_OP(op, ...)
#define CHECK(op, wrong, ...) \
  case OP_##op:               \
    return (wrong) ? nc_fail(NC_EVALUE, __VA_ARGS__) : NC_OK;
#include "core/ops.def"
    default: return NC_OK;
  }
}

/* Checks values that the operation does not accept: a divisor 0, a condition
   that is not bool, parameters and exponents of integers. */
static int check_values(Op op, DType common, const Arg in[],
                        const double par[]) {
  const OpInfo *info = &nc_opinfo[op];
  if (info->types == CLASS_DIVISION) TRY(check_divisor(&in[0], &in[1], common));
  if (info->kind == CHOOSE_OP && in[0].t && in[0].t->dtype != DT_b8) {
    nc_fail(NC_EDTYPE, "the condition must be a bool tensor, not %s",
            nc_dtypename(in[0].t->dtype));
    nc_hint("{0}:ne(0) gives one");
    return NC_EDTYPE;
  }
  if (!nc_is_exact(common)) return check_parameters(op, par);
  for (int k = 0; par && k < 2; k++) TRY(check_parameter(op, common, par[k]));
  if (op == OP_pow && in[1].t == NULL && in[1].s.i < 0) {
    nc_fail(NC_EVALUE, "integers to negative integer powers are not integers");
    nc_hint("{0}:to(\"float32\") first");
    return NC_EVALUE;
  }
  return NC_OK;
}

/* Returns whether x is a 0-d integer tensor that has no influence on the
   type `common' but must wrap to it.  Short integers but uint8 are computed in
   int32, which would not wrap it. */
static int must_wrap(const Tensor *x, Op op, DType common) {
  return x->nd == 0 && nc_is_integer(common) && common < DT_i32 &&
         common != DT_u8 && x->dtype != common && nc_is_integer(x->dtype) &&
         nc_opinfo[op].kind != COMPARE_OP;
}

/* Replaces an operand by a new tensor, made with status r, which *copy owns. */
static int replace_operand(Arg *in, Tensor **copy, Tensor **t, int r) {
  if (r != NC_OK) return r;
  nc_release(*copy);
  in->t = *copy = *t;
  return NC_OK;
}

/* Replaces operands by copies: 0-d tensors of the host for another device,
   tensors that overlap `out' other than element for element, and those that
   have to wrap to `common'. */
static int copy_operands(Op op, DType common, const Device *d, Arg in[], int n,
                         Tensor *out, Tensor *copy[]) {
  for (int j = 0; j < n; j++) {
    Tensor *t;
    if (in[j].t && nc_device(in[j].t) != d)
      TRY(replace_operand(&in[j], &copy[j], &t, nc_todevice(&t, in[j].t, d)));
    if (in[j].t && must_wrap(in[j].t, op, common))
      TRY(replace_operand(&in[j], &copy[j], &t, nc_cast(&t, in[j].t, common)));
    if (out == NULL || in[j].t == NULL || !nc_overlaps(in[j].t, out)) continue;
    TRY(replace_operand(&in[j], &copy[j], &t,
                        nc_apply1(&t, OP_clone, in[j].t)));
  }
  return NC_OK;
}

/* Computes *y = op(in), into `out' unless it is NULL: promotes types, copies
   operands that cannot be used where they are, and checks values.  May replace
   operands; the copies are the caller's to release. */
static int convert_and_run(Tensor **y, Op op, Arg in[], int n,
                           const double par[2], Tensor *out, Tensor *copy[]) {
  const OpKind kind = nc_opinfo[op].kind;
  const int to_bool = kind == COMPARE_OP || kind == TEST_OP;
  const int first = kind == CHOOSE_OP; /* without the condition */
  const Device *d;
  DType common, result;
  int r;
  if (first && in[0].t == NULL) in[0].s = nc_int(nc_tofloat(in[0].s) != 0);
  TRY(nc_samedevice(&d, in, n));
  TRY(nc_common_dtype(&common, op, in + first, n - first));
  TRY(copy_operands(op, common, d, in, n, out, copy));
  TRY(check_values(op, common, in, par));
  if (op == OP_bitwise_not && common == DT_b8) op = OP_logical_not;
  if (nc_opinfo[op].types == CLASS_ROUNDING && nc_is_exact(common))
    op = OP_clone;
  result = to_bool ? DT_b8 : op == OP_abs ? nc_real_dtype(common) : common;
  TRY(make_result(y, out, d, in, n, result));
  if ((*y)->dtype != result) { /* compute in its own type first */
    Tensor *b;
    if ((r = nc_apply(&b, op, in, par, NULL)) == NC_OK) {
      r = nc_copy(*y, b);
      nc_release(b);
    }
  } else r = nc_run_pointwise(*y, op, 0, common, in, n, par);
  return nc_release_failed(r, y, 1);
}

/* Returns whether an operation with this operand may have to be recorded. */
static int may_record(const Tensor *t) {
  return nc_mayrecord(t) && nc_context->no_grad == 0;
}

/* Returns whether u, another operand than t, has the type, shape, device and
   strides of t, and needs no record. */
static int is_alike(const Tensor *u, const Tensor *t) {
  if (u->dtype != t->dtype || u->nd != t->nd ||
      u->data->device != t->data->device || may_record(u))
    return 0;
  for (int d = 0; d < t->nd; d++)
    if (u->size[d] != t->size[d] || u->step[d] != t->step[d]) return 0;
  return 1;
}

/* Returns whether a call can take the fast path, for which the overhead of
   small tensors matters: dense float tensors of one type, shape and device,
   and numbers, none of them recorded; written to a new tensor or the first. */
static int is_fast(Op op, const Arg in[], int n, const Tensor *out,
                   int to_bool) {
  const OpInfo *info = &nc_opinfo[op];
  const Tensor *t = in[0].t;
  if (t == NULL || t->dtype < DT_f16 || t->dtype > DT_f64 ||
      info->kind == CHOOSE_OP || info->types == CLASS_INT_OR_BOOL ||
      info->types == CLASS_INTEGER || has_check[op] || may_record(t) ||
      !nc_isdense(t) || (out && (out != t || to_bool || nc_isreadonly(out))))
    return 0;
  for (int j = 1; j < n; j++) {
    const Tensor *u = in[j].t;
    if (u ? !is_alike(u, t)
          : in[j].s.kind == NC_BOOL || in[j].s.kind == NC_COMPLEX)
      return 0;
    if (u && out && u != t && nc_sharesmemory(u, t)) return 0;
  }
  return 1;
}

/* The fast path, of a call for which is_fast holds. */
static int fast_apply(Tensor **y, Op op, const Arg in[], int n,
                      const double par[2], Tensor *out, int to_bool) {
  Tensor *t = in[0].t;
  int r;
  if (out) {
    nc_retain(*y = out);
    out->data->version++;
  } else TRY(nc_newdense(y, t->data->device, to_bool ? DT_b8 : t->dtype, t));
  r = run_loop(*y, op, 0, t->dtype, in, n, par, 1);
  return r == NC_OK ? r : nc_release_failed(r, y, 1);
}

/* Returns whether the operation may have to be recorded. */
static int is_recorded(const Arg in[], int n, const Tensor *out) {
  if (out && may_record(out)) return 1;
  for (int j = 0; j < n; j++)
    if (in[j].t && may_record(in[j].t)) return 1;
  return 0;
}

/* The general path.  A function of its own, so that the fast path does not pay
   for its stack frame. */
static NC_NOINLINE int general_apply(Tensor **y, Op op, const Arg args[], int n,
                                     const double par[2], Tensor *out) {
  Tensor *copy[NC_MAXIN] = { NULL };
  Arg in[NC_MAXIN];
  int r;
  for (int j = 0; j < n; j++) {
    in[j].t = args[j].t;
    in[j].s = args[j].s;
  }
  r = op == OP_eq || op == OP_ne ? nc_make_comparable(in, n, copy) : NC_OK;
  if (r == NC_OK) r = convert_and_run(y, op, in, n, par, out, copy);
  for (int j = 0; j < n; j++) nc_release(copy[j]);
  return r;
}

/* The call as nc_call makes it: traced, recorded. */
static NC_NOINLINE int call_apply(Tensor **y, Op op, const Arg in[], int n,
                                  const double par[2], Tensor *out) {
  Call c;
  int r;
  nc_begin_call(&c, CALL_POINTWISE, op);
  for (int j = 0; j < n; j++) nc_set_arg(&c, j, in[j].t)->s = in[j].s;
  c.par = par;
  c.into = out;
  r = nc_call(&c);
  *y = c.out[0];
  return r;
}

int nc_apply(Tensor **y, Op op, const Arg in[], const double par[2],
             Tensor *out) {
  const OpKind kind = nc_opinfo[op].kind;
  const int n = nc_arity(op), to_bool = kind == COMPARE_OP || kind == TEST_OP;
  int r;
  *y = NULL;
  if (NC_UNLIKELY(nc_context->tracing))
    return call_apply(y, op, in, n, par, out);
  if (is_fast(op, in, n, out, to_bool))
    r = fast_apply(y, op, in, n, par, out, to_bool);
  else if (is_recorded(in, n, out)) return call_apply(y, op, in, n, par, out);
  else r = general_apply(y, op, in, n, par, out);
  if (NC_UNLIKELY(nc_lost_mappings))
    r = nc_release_failed(nc_check_lost_operands(r, in, n), y, 1);
  return r == NC_OK ? r : nc_error_call(r, nc_opinfo[op].name, in, n);
}

int nc_apply1(Tensor **y, Op op, Tensor *x) {
  return nc_apply2(y, op, x, NULL);
}

int nc_apply2(Tensor **y, Op op, Tensor *a, Tensor *b) {
  Arg in[2] = { { .t = a }, { .t = b } };
  return nc_apply(y, op, in, NULL, NULL);
}
