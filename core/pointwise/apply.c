/* SPDX-License-Identifier: MIT */
/*
** apply.c - applies the pointwise operations of ops.def (nc_apply): decides the
** type of the computation, shape, device and memory of the result, then asks
** the device to run a loop (TensorIter).  reduce.c has the reductions.
*/
#include "core/op.h"

#include <math.h>
#include <string.h>

#include "core/tape.h"
#include "core/pointwise/iterator.h"
#include "core/portable.h"
#include "core/tracing.h"

#define ROW3(op, kind, class, val, d0, d1, d2, sig, doc)                  \
  { #op, kind, CLASS_##class, #val, { NULL, NULL, NULL }, { d0, d1, d2 }, \
    sig, doc },
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
    CLASS_##class,                                            \
    #val,                                                     \
    { #init, #map, #fold },                                   \
    { #d0, NULL, NULL },                                      \
    sig,                                                      \
    doc },
const OpInfo nc_opinfo[OP_COUNT] = {
#include "core/ops.def"
};
#include "core/ops_end.h"

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
        nc_rule("sizes must be equal or 1, aligned at the last dimension");
        return NC_ESHAPE;
      }
      *want = have;
    }
  return NC_OK;
}

static int sameshape(const Tensor *t, int nd, const int64_t size[]) {
  int same = t->nd == nd;
  for (int d = 0; same && d < nd; d++) same = t->size[d] == size[d];
  return same;
}

/* Adds dimension d of y to a loop whose operands broadcast to y. */
static void adddim(TensorIter *k, const Tensor *y, const Arg in[], int d) {
  k->size[k->nd] = y->size[d];
  k->step[0][k->nd] = y->step[d];
  for (int j = 1; j < k->nargs; j++) {
    const Tensor *t = in[j - 1].t;
    int own = t ? d - y->nd + t->nd : -1;
    k->step[j][k->nd] = own < 0 || t->size[own] == 1 ? 0 : t->step[own];
  }
  k->nd++;
}

/* Returns whether y and all tensor operands are dense and of one shape. */
static int dense(const Tensor *y, const Arg in[], int n) {
  if (!nc_isdense(y)) return 0;
  for (int j = 0; j < n; j++)
    if (in[j].t &&
        (!sameshape(in[j].t, y->nd, y->size) || !nc_isdense(in[j].t)))
      return 0;
  return 1;
}

/* Runs an operation, or with part > 0 a gradient of it, over dense operands
   of the shape of y, as a loop over one dimension. */
static int rundense(Tensor *y, Op op, int part, DType work, const Arg in[],
                    int n, const double par[2]) {
  TensorIter k;
  int64_t bytes = nc_dtypesize(y->dtype);
  k.op = op;
  k.part = part;
  k.nfold = 0;
  k.nd = 1;
  k.work = work;
  k.n = k.size[0] = nc_numel(y);
  k.par[0] = par ? par[0] : 1;
  k.par[1] = par ? par[1] : 0;
  if (k.n == 0) return NC_OK;
  k.nargs = n + 1;
  nc_iter_operand(&k, 0, y, NULL);
  k.step[0][0] = 1;
  for (int j = 1; j <= n; j++) {
    const Tensor *t = in[j - 1].t;
    nc_iter_operand(&k, j, t, &in[j - 1].s);
    k.step[j][0] = t != NULL;
    if (t) bytes += nc_dtypesize(t->dtype);
  }
  nc_count(op == OP_clone ? 0 : k.n, k.n * bytes);
  return nc_countwrite(y, y->data->device->run(y->data->device, &k));
}

int nc_runpointwise(Tensor *y, Op op, DType work, const Arg in[], int n,
                    const double par[2]) {
  return nc_rungradient(y, op, 0, work, in, n, par);
}

/* Strength reduction: replaces pow by 2, 1 or -1 in a float type by square,
   positive or reciprocal, which have an operand less (*n).  Of the gradients
   only that of square applies: it has the operands of pow's, g and x. */
static Op reduce_pow(int part, DType work, const Arg in[], int *n) {
  const Arg *exponent = &in[*n - 1];
  double by;
  if (part > 1 || exponent->t || nc_category(work) != NC_FLOAT) return OP_pow;
  by = nc_tofloat(exponent->s);
  if (by != 2 && (part || (by != 1 && by != -1))) return OP_pow;
  --*n;
  return by == 2 ? OP_square : by == 1 ? OP_positive : OP_reciprocal;
}

int nc_rungradient(Tensor *y, Op op, int part, DType work, const Arg in[],
                   int n, const double par[2]) {
  TensorIter k;
  if (op == OP_pow) op = reduce_pow(part, work, in, &n);
  if (dense(y, in, n)) return rundense(y, op, part, work, in, n, par);
  k.op = op;
  k.part = part;
  k.nd = k.nfold = 0;
  k.work = work;
  k.n = nc_numel(y);
  k.par[0] = par ? par[0] : 1;
  k.par[1] = par ? par[1] : 0;
  if (k.n == 0) return NC_OK;
  nc_iter_operands(&k, y, in, n);
  for (int d = y->nd - 1; d >= 0; d--)
    if (y->size[d] != 1) adddim(&k, y, in, d);
  nc_iter_sortdims(&k, 0, k.nd, 0);
  k.nd = nc_iter_collapse(&k, 0, k.nd);
  nc_count(op == OP_clone ? 0 : k.n, nc_iter_bytes(y, in, n));
  return nc_countwrite(y, nc_device(y)->run(nc_device(y), &k));
}

/*
** Results
*/
/* Returns whether two tensors share bytes without being the same elements;
   may be true for interleaved views that do not. */
int nc_overlaps(const Tensor *a, const Tensor *b) {
  const Tensor *t[2] = { a, b };
  int64_t low[2], high[2];
  if (a->data != b->data) return 0;
  if (a->dtype == b->dtype && a->offset == b->offset &&
      sameshape(a, b->nd, b->size) &&
      memcmp(a->step, b->step, (size_t)a->nd * sizeof *a->step) == 0)
    return 0;
  for (int i = 0; i < 2; i++) {
    if (nc_numel(t[i]) == 0) return 0;
    low[i] = high[i] = t[i]->offset;
    for (int d = 0; d < t[i]->nd; d++)
      high[i] += (t[i]->size[d] - 1) * t[i]->step[d];
    low[i] *= nc_dtypesize(t[i]->dtype);
    high[i] = (high[i] + 1) * nc_dtypesize(t[i]->dtype);
  }
  return low[0] < high[1] && low[1] < high[0];
}

int nc_checkout(const Tensor *out, DType result, int nd, const int64_t size[]) {
  char have[NC_TEXT], want[NC_TEXT];
  if (!sameshape(out, nd, size))
    return nc_fail(NC_ESHAPE,
                   "the result is [%s], what it is written to "
                   "is [%s]",
                   nc_shapetext(want, nd, size),
                   nc_shapetext(have, out->nd, out->size));
  if (!nc_castable(result, out->dtype)) {
    nc_fail(NC_EDTYPE, "%s %s result cannot be written to %s %s tensor",
            nc_article(result), nc_dtypename(result), nc_article(out->dtype),
            nc_dtypename(out->dtype));
    nc_hint("{0}:to(\"%s\") first", nc_dtypename(result));
    return NC_EDTYPE;
  }
  if (nc_overlapsitself(out)) {
    nc_fail(NC_EVALUE, "several elements of the tensor share one place in "
                       "memory, it cannot be written to");
    nc_hint("{0}:clone() first");
    return NC_EVALUE;
  }
  out->data->version++;
  return NC_OK;
}

/* Returns the operand whose memory order the result has; NULL: none has its
   shape. */
static const Tensor *model(const Arg in[], int n, int nd,
                           const int64_t size[]) {
  for (int j = 0; j < n; j++)
    if (in[j].t && sameshape(in[j].t, nd, size)) return in[j].t;
  return NULL;
}

int nc_checkoutdevice(const Tensor *out, const Device *d) {
  if (nc_device(out) == d) return NC_OK;
  nc_fail(NC_EDEVICE, "the result is on %s, what it is written to is on %s",
          d->name, nc_device(out)->name);
  nc_hint("t:copy_(result) writes it there");
  return NC_EDEVICE;
}

/* *y = a new tensor for the result, or `out' with a reference if the result
   may be written to it. */
static int target(Tensor **y, Tensor *out, const Device *d, const Arg in[],
                  int n, DType result) {
  int64_t size[NC_MAXDIM];
  int nd;
  TRY(nc_broadcast(in, n, &nd, size));
  if (out) {
    TRY(nc_checkout(out, result, nd, size));
    TRY(nc_checkoutdevice(out, d));
    nc_retain(*y = out);
    return NC_OK;
  }
  const Tensor *like = model(in, n, nd, size);
  if (like) return nc_newlike(y, like, result);
  return nc_new(y, d, result, nd, size);
}

/* Fails for an integer division by zero: before the result is written,
   unless the device is asynchronous. */
static int checkdivisor(const Arg *a, const Arg *b, DType work) {
  static const char text[] = "integer division by zero";
  Tensor *all = NULL, *truth = NULL;
  int r;
  if (nc_category(work) == NC_FLOAT || (a->t && nc_numel(a->t) == 0))
    return NC_OK;
  if (b->t == NULL)
    return nc_tocomputetype(b->s, work).i ? NC_OK : nc_fail(NC_EVALUE, text);
  if ((r = nc_reduce(&all, OP_all, b->t, ~0u, 0, DT_NONE, NULL, NULL)) ==
          NC_OK &&
      (r = nc_cast(&truth, all, DT_b8)) == NC_OK) {
    const AssertCall e = { truth, NC_EVALUE, text };
    r = nc_device(truth)->device_assert(nc_device(truth), &e);
  }
  nc_release(all);
  nc_release(truth);
  return r;
}

/* Checks the numeric parameter p of an operation over integers.  A factor
   may be negative for uint8 too, as in self + alpha*other. */
static int checkparameter(Op op, DType work, double p) {
  if (p != floor(p))
    return nc_fail(NC_EDTYPE, "%g is no integer, and the tensors are %s", p,
                   nc_dtypename(work));
  if (!(fabs(p) < 0x1p63) || (op == OP__threshold && work == DT_u8 && p < 0))
    return nc_error_doesnotfit(nc_float(p), work);
  return nc_checkfits(nc_int((int64_t)p), work);
}

/* Checks values that the operation does not accept: a divisor 0, a condition
   that is not bool, parameters and exponents of integers. */
static int checkvalues(Op op, DType work, const Arg in[], const double par[]) {
  const OpInfo *info = &nc_opinfo[op];
  if (info->types == CLASS_DIVISION) TRY(checkdivisor(&in[0], &in[1], work));
  if (info->kind == CHOOSE_OP && in[0].t && in[0].t->dtype != DT_b8) {
    nc_fail(NC_EDTYPE, "the condition must be a bool tensor, not %s",
            nc_dtypename(in[0].t->dtype));
    nc_hint("{0}:ne(0) makes one");
    return NC_EDTYPE;
  }
  if (nc_category(work) == NC_FLOAT) return NC_OK;
  for (int k = 0; par && k < 2; k++) TRY(checkparameter(op, work, par[k]));
  if (op == OP_pow && in[1].t == NULL && in[1].s.i < 0) {
    nc_fail(NC_EVALUE, "integers to negative integer powers are not integers");
    nc_hint("{0}:to(\"float32\") first");
    return NC_EVALUE;
  }
  return NC_OK;
}

/* Returns whether x is a 0-d integer tensor that has no influence on the
   type `work' but must wrap to it.  int8 and int16 are computed in int32,
   which would not wrap it. */
static int wraps(const Tensor *x, Op op, DType work) {
  return x->nd == 0 && (work == DT_i8 || work == DT_i16) && x->dtype != work &&
         nc_category(x->dtype) == NC_INT && nc_opinfo[op].kind != COMPARE_OP;
}

/* Replaces an operand by a new tensor, made with status r, which *copy owns. */
static int replace(Arg *in, Tensor **copy, Tensor **t, int r) {
  if (r != NC_OK) return r;
  nc_release(*copy);
  in->t = *copy = *t;
  return NC_OK;
}

/* Replaces operands by copies: 0-d tensors of the host for another device,
   tensors that overlap `out' other than element for element, and those that
   have to wrap to `work'. */
static int disjoin(Op op, DType work, const Device *d, Arg in[], int n,
                   Tensor *out, Tensor *copy[]) {
  for (int j = 0; j < n; j++) {
    Tensor *t;
    if (in[j].t && nc_device(in[j].t) != d)
      TRY(replace(&in[j], &copy[j], &t, nc_todevice(&t, in[j].t, d)));
    if (in[j].t && wraps(in[j].t, op, work))
      TRY(replace(&in[j], &copy[j], &t, nc_cast(&t, in[j].t, work)));
    if (out == NULL || in[j].t == NULL || !nc_overlaps(in[j].t, out)) continue;
    TRY(replace(&in[j], &copy[j], &t, nc_apply1(&t, OP_clone, in[j].t)));
  }
  return NC_OK;
}

/* The general path: computes *y = op(in), into `out' unless it is NULL.  May
   replace operands; the copies are the caller's to release. */
static int apply(Tensor **y, Op op, Arg in[], int n, const double par[2],
                 Tensor *out, Tensor *copy[]) {
  const OpKind kind = nc_opinfo[op].kind;
  const int truth = kind == COMPARE_OP || kind == TEST_OP;
  const int skip = kind == CHOOSE_OP; /* without the condition */
  const Device *d;
  DType work, result;
  int r;
  if (skip && in[0].t == NULL) in[0].s = nc_int(nc_tofloat(in[0].s) != 0);
  TRY(nc_samedevice(&d, in, n));
  TRY(nc_computetype(&work, op, in + skip, n - skip));
  TRY(disjoin(op, work, d, in, n, out, copy));
  TRY(checkvalues(op, work, in, par));
  if (op == OP_bitwise_not && work == DT_b8) op = OP_logical_not;
  if (nc_opinfo[op].types == CLASS_ROUNDING && nc_category(work) != NC_FLOAT)
    op = OP_clone;
  result = truth ? DT_b8 : work;
  TRY(target(y, out, d, in, n, result));
  if ((*y)->dtype != result) { /* compute in its own type first */
    Tensor *b;
    if ((r = nc_apply(&b, op, in, par, NULL)) == NC_OK) {
      r = nc_copy(*y, b);
      nc_release(b);
    }
  } else r = nc_runpointwise(*y, op, work, in, n, par);
  if (r != NC_OK) {
    nc_release(*y);
    *y = NULL;
  }
  return r;
}

/* Returns whether an operation with this operand may have to be recorded. */
static int marked(const Tensor *t) {
  return nc_mayrecord(t) && nc_gradoff == 0;
}

/* Runs an operation over dense operands of one type.  v[0..n] are their
   addresses, NULL for numbers.  Few elements take the device's run_small. */
static int runalike(Tensor *y, Op op, const Arg in[], int n, void *v[],
                    const double par[2]) {
  static const double none[2] = { 1, 0 };
  const Device *d = y->data->device;
  const int64_t numel = nc_numel(y);
  if (op == OP_pow) op = reduce_pow(0, in[0].t->dtype, in, &n);
  int all = d->run_small != NULL && y->dtype == in[0].t->dtype;
  v[0] = nc_data(y);
  for (int j = 2; j <= n; j++) all &= v[j] != NULL;
  if (!all || !d->run_small(op, y->dtype, numel, v, par ? par : none))
    return rundense(y, op, 0, in[0].t->dtype, in, n, par);
  nc_count(op == OP_clone ? 0 : numel,
           numel * (n + 1) * nc_dtypesize(y->dtype));
  return nc_countwrite(y, NC_OK);
}

/* The fast path, for which the overhead of small tensors matters: dense
   float tensors of one type, shape and device, and numbers, none of them
   recorded.  Returns 0 if the call is another, else sets *status. */
static int usual(Tensor **y, Op op, const Arg in[], int n, const double par[2],
                 Tensor *out, int *status) {
  const OpInfo *info = &nc_opinfo[op];
  const Tensor *t = in[0].t;
  const int truth = info->kind == COMPARE_OP || info->kind == TEST_OP;
  void *v[NC_MAXIN];
  if (t == NULL || t->dtype < DT_f16 || info->kind == CHOOSE_OP ||
      info->types == CLASS_INT_OR_BOOL || info->types == CLASS_INTEGER ||
      marked(t) || !nc_isdense(t) || (out && (out != t || truth)))
    return 0;
  const int64_t esize = nc_dtypesize(t->dtype);
  v[1] = (char *)t->data->p + t->offset * esize;
  for (int j = 1; j < n; j++) {
    const Tensor *u = in[j].t;
    v[j + 1] = NULL;
    if (u == NULL && in[j].s.kind == NC_BOOL) return 0;
    if (u == NULL) continue;
    if (u->dtype != t->dtype || u->nd != t->nd ||
        u->data->device != t->data->device || marked(u))
      return 0;
    for (int d = 0; d < t->nd; d++) /* equal strides: as dense as t */
      if (u->size[d] != t->size[d] || u->step[d] != t->step[d]) return 0;
    if (out && u != t && u->data == t->data) return 0;
    v[j + 1] = (char *)u->data->p + u->offset * esize;
  }
  if (out) {
    nc_retain(*y = out);
    out->data->version++;
  } else if ((*status = nc_new(y, t->data->device, truth ? DT_b8 : t->dtype,
                               t->nd, t->size)) != NC_OK)
    return 1;
  *status = runalike(*y, op, in, n, v, par);
  if (*status != NC_OK) {
    nc_release(*y);
    *y = NULL;
  }
  return 1;
}

/* Returns whether the operation may have to be recorded. */
static int recorded(const Arg in[], int n, const Tensor *out) {
  if (out && marked(out)) return 1;
  for (int j = 0; j < n; j++)
    if (in[j].t && marked(in[j].t)) return 1;
  return 0;
}

/* The general path with room for copies of operands.  A function of its own,
   so that the fast path does not pay for its stack frame. */
static NC_NOINLINE int general(Tensor **y, Op op, const Arg given[], int n,
                               const double par[2], Tensor *out) {
  Tensor *copy[NC_MAXIN] = { NULL };
  Arg in[NC_MAXIN];
  int r;
  for (int j = 0; j < n; j++) {
    in[j].t = given[j].t;
    in[j].s = given[j].s;
  }
  r = apply(y, op, in, n, par, out, copy);
  for (int j = 0; j < n; j++) nc_release(copy[j]);
  return nc_error_call(r, nc_opinfo[op].name, given, n);
}

int nc_apply(Tensor **y, Op op, const Arg given[], const double par[2],
             Tensor *out) {
  const int n = nc_arity(op);
  int r;
  *y = NULL;
  if (nc_tracing) return nc_apply_traced(y, op, given, par, out);
  if (usual(y, op, given, n, par, out, &r))
    return r == NC_OK ? r : nc_error_call(r, nc_opinfo[op].name, given, n);
  if (recorded(given, n, out)) return nc_apply_recorded(y, op, given, par, out);
  return general(y, op, given, n, par, out);
}

int nc_apply1(Tensor **y, Op op, Tensor *x) {
  Arg in[1] = { { .t = x } };
  return nc_apply(y, op, in, NULL, NULL);
}

int nc_apply2(Tensor **y, Op op, Tensor *a, Tensor *b) {
  Arg in[2] = { { .t = a }, { .t = b } };
  return nc_apply(y, op, in, NULL, NULL);
}
