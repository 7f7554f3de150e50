/* SPDX-License-Identifier: MIT */
/*
** index_put.c - assignment to t[...] (nc_setindex), and reading and writing of
** single elements.
*/
#include <string.h>

#include "core/indexing/advanced_index.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/cpu/kernels/kernels.h"
#include "core/op.h"
#include "core/indexing/view.h"
#include "core/trace_internal.h"

/* *y = a view of value without leading dimensions of size 1 beyond nd. */
static int drop_leading_ones(Tensor **y, Tensor *value, int nd) {
  int extra = 0;
  TRY(nc_alias(y, value));
  while (value->nd - extra > nd && value->size[extra] == 1) extra++;
  (*y)->nd -= extra;
  memmove((*y)->size, value->size + extra, (size_t)(*y)->nd * 8);
  memmove((*y)->step, value->step + extra, (size_t)(*y)->nd * 8);
  return NC_OK;
}

/* *y = the value as a tensor of the type and on the device of x that shares
   no memory with x. */
static int value_tensor(Tensor **y, const Tensor *x, Tensor *value,
                        Scalar number) {
  const Device *d = nc_device(x);
  Tensor *there = NULL, *cast = NULL;
  int r;
  *y = NULL;
  if (value == NULL) return nc_full(y, d, x->dtype, 0, NULL, number);
  if ((r = nc_todevice(&there, value, d)) == NC_OK)
    r = nc_cast(&cast, there, x->dtype);
  if (r == NC_OK && nc_sharesmemory(cast, x)) r = nc_apply1(y, OP_clone, cast);
  else if (r == NC_OK) nc_retain(*y = cast);
  nc_release(there);
  nc_release(cast);
  return r;
}

/* *y = value expanded to the shape of the selected elements; a copy unless
   the dimensions of the offsets have a single stride, which IndexCall
   requires. */
static int expand_value(Tensor **y, Tensor *value, const IndexedRead *k) {
  const int end = k->g.at + k->g.offset->nd;
  Tensor *wide;
  int even = 1, last = -1;
  int r;
  TRY(nc_expandto(&wide, value, k->nd, k->size));
  for (int d = k->g.at; d < end; d++) {
    if (wide->size[d] == 1) continue;
    if (last >= 0 && wide->step[last] != wide->step[d] * wide->size[d])
      even = 0;
    last = d;
  }
  if (even) {
    *y = wide;
    return NC_OK;
  }
  r = nc_dense(y, wide);
  nc_release(wide);
  return r;
}

int nc_index_put(const IndexPlan *p, Tensor *value, Scalar number,
                 PutMode put) {
  Tensor *own = NULL, *trim = NULL, *wide = NULL;
  IndexedRead k;
  int r;
  if ((r = nc_index_begin(&k, p)) == NC_OK &&
      (r = value_tensor(&own, p->view, value, number)) == NC_OK &&
      (r = drop_leading_ones(&trim, own, k.nd)) == NC_OK &&
      (r = expand_value(&wide, trim, &k)) == NC_OK) {
    k.g.other = wide;
    k.g.fold = (IndexReduce)(put - PUT_ADD);
    r = put == PUT_SET ? nc_index_write(&k.g) : nc_index_accumulate(&k.g);
  }
  nc_release(own);
  nc_release(trim);
  nc_release(wide);
  nc_index_end(&k);
  return nc_index_check_lost(r, p, value);
}

/* Assigns one value by one mask with `where', which is faster than a
   scatter. */
static int assign_by_mask(const IndexPlan *p, Tensor *value, Scalar number) {
  const IndexTensor *by = &p->by[0];
  Tensor *own = NULL, *one = NULL, *mask = NULL, *y = NULL;
  int r;
  if ((r = value_tensor(&own, p->view, value, number)) == NC_OK &&
      (r = drop_leading_ones(&one, own, 0)) == NC_OK &&
      (r = nc_alias(&mask, by->t)) == NC_OK) {
    Arg in[3] = { { .t = mask }, { .t = one }, { .t = p->view } };
    for (int d = by->dim + by->dims; d < p->view->nd; d++) {
      mask->size[mask->nd] = 1;
      mask->step[mask->nd++] = 1;
    }
    r = nc_apply(&y, OP_where, in, NULL, p->view);
  }
  nc_release(own);
  nc_release(one);
  nc_release(mask);
  nc_release(y);
  return r;
}

int nc_assign(const IndexPlan *p, Tensor *value, Scalar number) {
  Tensor *trim;
  int r;
  if (p->n == 1 && p->by[0].t->dtype == DT_b8 && p->by[0].t->nd > 0 &&
      nc_device(p->by[0].t) == nc_device(p->view) &&
      (value == NULL || nc_numel(value) == 1))
    return assign_by_mask(p, value, number);
  if (p->n > 0) return nc_index_put(p, value, number, PUT_SET);
  if (value == NULL) return nc_fill(p->view, number);
  TRY(drop_leading_ones(&trim, value, p->view->nd));
  r = nc_copy(p->view, trim);
  nc_release(trim);
  return r;
}

int nc_setindex(Tensor *t, const Index ix[], int n, Tensor *value,
                Scalar number) {
  if (nc_context->tracing)
    return nc_call(&(Call){ .kind = CALL_SETINDEX,
                            .arg = { { .t = t }, { .t = value, .s = number } },
                            .index = ix,
                            .nindex = n });
  return nc_setindex_mode(t, ix, n, value, number, PUT_SET);
}

int nc_setindex_mode(Tensor *t, const Index ix[], int n, Tensor *value,
                     Scalar number, PutMode put) {
  IndexPlan p;
  if (nc_context->no_grad == 0 &&
      (nc_mayrecord(t) || (value && nc_mayrecord(value))))
    return nc_setindex_recorded(t, ix, n, value, number, put);
  int r = nc_check_writable(t);
  if (r != NC_OK) return nc_error_index(r, t, NULL, NULL);
  TRY(nc_index_plan(&p, t, ix, n));
  r = put == PUT_SET ? nc_assign(&p, value, number)
                     : nc_index_put(&p, value, number, put);
  nc_release(p.view);
  return nc_error_index(r, t, "value", value);
}

/*
** Single elements
*/
/* *offset = the offset of element ix from the start of t. */
static int element_offset(int64_t *offset, const Tensor *t,
                          const int64_t ix[]) {
  int64_t at;
  *offset = 0;
  for (int d = 0; d < t->nd; d++) {
    int r = nc_position(&at, ix[d], t, d);
    if (r != NC_OK) return nc_error_index(r, t, NULL, NULL);
    *offset += at * t->step[d];
  }
  return NC_OK;
}

int nc_getelement(Scalar *v, const Tensor *t, const int64_t ix[]) {
  int64_t offset;
  TRY(element_offset(&offset, t, ix));
  if (nc_context->tracing) return nc_trace_read(v, "index", t, offset);
  return nc_read(v, t, offset);
}

/* Sets an element by nc_setindex, which records and traces it. */
static int set_by_index(Tensor *t, const int64_t at[], Scalar v) {
  Index ix[NC_MAXDIM];
  for (int d = 0; d < t->nd; d++)
    ix[d] = (Index){ IX_INT, at[d], at[d], 1, NULL };
  return nc_setindex(t, ix, t->nd, NULL, v);
}

int nc_setelement(Tensor *t, const int64_t ix[], Scalar v) {
  const int isint = nc_is_exact_kind(v.kind) && nc_is_exact(t->dtype);
  const Kernels *k = nc_kernels();
  double f = nc_tofloat(v);
  Tensor *one;
  int64_t offset;
  if (nc_context->tracing || (nc_context->no_grad == 0 && nc_mayrecord(t)))
    return set_by_index(t, ix, v);
  int r = nc_check_writable(t);
  if (r == NC_OK) r = nc_checkfits(v, t->dtype);
  if (r != NC_OK) return nc_error_index(r, t, NULL, NULL);
  TRY(element_offset(&offset, t, ix));
  if (nc_device(t) == &nc_cpu && !nc_is_complex(t->dtype)) {
    char *p = (char *)nc_data(t) + offset * nc_dtypesize(t->dtype);
    if (isint) k->store[CT_i64][t->dtype](p, &v.i, 1, 1);
    else k->store[CT_f64][t->dtype](p, &f, 1, 1);
    return nc_countwrite(t, NC_OK);
  }
  TRY(nc_alias(&one, t));
  one->nd = 0;
  one->offset += offset;
  r = nc_fill(one, v);
  nc_release(one);
  return r;
}
