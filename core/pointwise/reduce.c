/* SPDX-License-Identifier: MIT */
/*
** reduce.c - nc_reduce: applies a reduction of ops.def.  It decides types and
** shape, allocates the result and builds the loop; the device runs it.
*/
#include "core/base/mapping.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/pointwise/iterator.h"
#include "core/op.h"
#include "core/portable.h"
#include "core/trace_internal.h"

int nc_dimmask(unsigned *mask, const Arg *a, int nd) {
  *mask = a->n > 0 ? 0 : ~0u;
  for (int i = 0; i < a->n; i++) {
    int d;
    TRY(nc_dim(&d, a->list[i], nd));
    if (*mask >> d & 1)
      return nc_fail(NC_EINDEX, "dim %d is given twice", d + 1);
    *mask |= 1u << d;
  }
  return NC_OK;
}

void nc_reducedshape(const Tensor *x, unsigned dims, int keepdim, int *nd,
                     int64_t size[]) {
  *nd = 0;
  for (int d = 0; d < x->nd; d++) {
    int reduced = dims >> d & 1;
    if (!reduced || keepdim) size[(*nd)++] = reduced ? 1 : x->size[d];
  }
}

/* Adds to a loop the dimensions of x that are `reduced', or the others. */
static void add_dims(TensorIter *k, const Tensor *x, const Tensor *y,
                     unsigned dims, int keepdim, int reduced) {
  int first = k->nd, out = y->nd;
  for (int d = x->nd - 1; d >= 0; d--) {
    int is = (int)(dims >> d & 1);
    if (!is || keepdim) out--;
    if (is != reduced || x->size[d] == 1) continue;
    k->size[k->nd] = x->size[d];
    k->step[0][k->nd] = reduced ? 0 : y->step[out];
    k->step[1][k->nd] = x->step[d];
    k->nd++;
  }
  if (reduced) nc_iter_sortdims(k, first, k->nd, 1);
  k->nd = nc_iter_collapse(k, first, k->nd);
  if (reduced) k->nfold = k->nd - first;
}

static int run_reduce(Tensor **y, Op op, Tensor *x, unsigned dims, int keepdim,
                      DType result, const double par[2], Tensor *out);

/* Reduces into a new tensor, then copies to out: devices other than the CPU
   write the dtype of the result only. */
static int reduce_by_copy(Tensor **y, Op op, Tensor *x, unsigned dims,
                          int keepdim, DType result, const double par[2],
                          Tensor *out) {
  Tensor *t;
  int r;
  TRY(run_reduce(&t, op, x, dims, keepdim, result, par, NULL));
  r = nc_copy(out, t);
  nc_release(t);
  if (r == NC_OK) nc_retain(*y = out);
  return r;
}

static int run_reduce(Tensor **y, Op op, Tensor *x, unsigned dims, int keepdim,
                      DType result, const double par[2], Tensor *out) {
  Arg in[1] = { { .t = x } };
  TensorIter k;
  int64_t size[NC_MAXDIM];
  int nd, r;
  nc_reducedshape(x, dims, keepdim, &nd, size);
  for (int d = 0; d < x->nd; d++)
    if ((dims >> d & 1) && x->size[d] == 0 && nc_opinfo[op].fold[0][0] != '0' &&
        nc_opinfo[op].fold[0][0] != '1')
      return nc_fail(NC_EVALUE, "no elements along dim %d", d + 1);
  if (out) {
    TRY(nc_check_out(out, result, nd, size));
    TRY(nc_checkoutdevice(out, nc_device(x)));
    if (out->dtype != result && nc_device(x) != &nc_cpu)
      return reduce_by_copy(y, op, x, dims, keepdim, result, par, out);
    nc_retain(*y = out);
  } else TRY(nc_new(y, nc_device(x), result, nd, size));
  nc_iter_start(&k, op, x->dtype, *y, in, 1, par);
  k.nd = 0;
  add_dims(&k, x, *y, dims, keepdim, 0);
  add_dims(&k, x, *y, dims, keepdim, 1);
  nc_count(nc_numel(x), nc_iter_bytes(*y, in, 1));
  r = k.n ? nc_countwrite(*y, nc_device(x)->run(nc_device(x), &k)) : NC_OK;
  return nc_release_failed(r, y, 1);
}

/* The dtypes of a reduction: x is first converted to *cast. */
static int reduce_dtypes(DType *cast, DType *result, Op op, Tensor *x,
                         DType dtype) {
  Arg in[1] = { { .t = x } };
  *cast = dtype == DT_NONE ? x->dtype : dtype;
  if (nc_is_complex(*cast) && !nc_opinfo[op].takes_complex)
    return nc_refuse_complex();
  if (nc_is_storage(*cast))
    return nc_refuse_storage(*cast, dtype == DT_NONE ? 0 : -1);
  if (dtype != DT_NONE && nc_opinfo[op].types != CLASS_BOOL_AS_INT)
    *result = dtype;
  if (dtype == DT_NONE || nc_opinfo[op].types == CLASS_FLOAT_ONLY) {
    if (dtype == DT_NONE) TRY(nc_common_dtype(result, op, in, 1));
    else if (!nc_is_real(dtype) && !nc_is_complex(dtype))
      return nc_fail(NC_EDTYPE, "needs a float dtype, not %s",
                     nc_dtypename(dtype));
  } else *result = dtype;
  if (nc_opinfo[op].types == CLASS_TO_BOOL)
    *result = x->dtype == DT_u8 ? DT_u8 : DT_b8;
  if (nc_opinfo[op].types == CLASS_COUNT) *result = DT_i64;
  return NC_OK;
}

/* The call as nc_call makes it: traced, recorded. */
static NC_NOINLINE int call_reduce(Tensor **y, Op op, Tensor *x, unsigned dims,
                                   int keepdim, DType dtype,
                                   const double par[2], Tensor *out) {
  Call c;
  int r;
  nc_begin_call(&c, CALL_REDUCE, op);
  nc_set_arg(&c, 0, x);
  nc_set_arg(&c, 1, NULL)->s = nc_int(dims);
  nc_set_arg(&c, 2, NULL)->s = nc_int(keepdim);
  nc_set_arg(&c, 3, NULL)->dtype = dtype;
  c.par = par;
  c.into = out;
  r = nc_call(&c);
  *y = c.out[0];
  return r;
}

/* any, all and count_nonzero of complex numbers: of which are not 0. */
static int reduce_truth(Tensor **y, Op op, Tensor *x, unsigned dims,
                        int keepdim, DType dtype, Tensor *out) {
  const Arg in[2] = { { .t = x }, { .s = nc_int(0) } };
  Tensor *is;
  int r;
  TRY(nc_apply(&is, OP_ne, in, NULL, NULL));
  r = nc_reduce(y, op, is, dims, keepdim, dtype, NULL, out);
  nc_release(is);
  return r;
}

int nc_reduce(Tensor **y, Op op, Tensor *x, unsigned dims, int keepdim,
              DType dtype, const double par[2], Tensor *out) {
  Arg in[1] = { { .t = x } };
  Tensor *t = NULL;
  DType cast, result;
  int r;
  *y = NULL;
  if (nc_context->tracing || ((nc_mayrecord(x) || (out && nc_mayrecord(out))) &&
                              nc_context->no_grad == 0))
    return call_reduce(y, op, x, dims, keepdim, dtype, par, out);
  if (nc_is_complex(x->dtype) && (nc_opinfo[op].types == CLASS_TO_BOOL ||
                                  nc_opinfo[op].types == CLASS_COUNT))
    return reduce_truth(y, op, x, dims, keepdim, dtype, out);
  if ((r = reduce_dtypes(&cast, &result, op, x, dtype)) == NC_OK &&
      (r = nc_cast(&t, x, cast)) == NC_OK) {
    Tensor *copy = NULL;
    if (out && nc_overlaps(t, out)) r = nc_apply1(&copy, OP_clone, t);
    if (r == NC_OK)
      r = run_reduce(y, op, copy ? copy : t, dims, keepdim, result, par, out);
    nc_release(copy);
  }
  nc_release(t);
  r = nc_release_failed(nc_check_lost_operands(r, in, 1), y, 1);
  return nc_error_call(r, nc_opinfo[op].name, in, 1);
}
