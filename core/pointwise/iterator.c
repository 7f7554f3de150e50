/* SPDX-License-Identifier: MIT */
/*
** iterator.c - builds a TensorIter, the strided loop that a device is asked to
** run; see iterator.h.
*/
#include "core/pointwise/iterator.h"

#include "core/op.h"

/* Dimension `to' of a loop becomes dimension d. */
static void move_dim(TensorIter *k, int d, int to) {
  if (d == to) return;
  k->size[to] = k->size[d];
  for (int j = 0; j < k->nargs; j++) k->step[j][to] = k->step[j][d];
}

int nc_iter_collapse(TensorIter *k, int from, int to) {
  int last = from;
  for (int d = from + 1; d < to; d++) {
    int even = 1;
    for (int j = 0; j < k->nargs; j++)
      even &= k->step[j][d] == k->step[j][last] * k->size[last];
    if (even) k->size[last] *= k->size[d];
    else move_dim(k, d, ++last);
  }
  return to > from ? last + 1 : from;
}

void nc_iter_sortdims(TensorIter *k, int from, int to, int j) {
  for (int i = from + 1; i < to; i++)
    for (int d = i; d > from && k->step[j][d] < k->step[j][d - 1]; d--) {
      int64_t s = k->size[d];
      k->size[d] = k->size[d - 1];
      k->size[d - 1] = s;
      for (int a = 0; a < k->nargs; a++) {
        s = k->step[a][d];
        k->step[a][d] = k->step[a][d - 1];
        k->step[a][d - 1] = s;
      }
    }
}

/* Returns the size of an element. */
static int64_t set_tensor(TensorIter *k, int j, const Tensor *t) {
  const int64_t esize = nc_dtypesize(t->dtype);
  k->p[j] = (char *)t->data->p + t->offset * esize;
  k->type[j] = t->dtype;
  k->step[j][0] = 1;
  return esize;
}

static void set_number(TensorIter *k, int j, const Scalar *v) {
  k->p[j] = NULL;
  k->type[j] = k->common_dtype;
  k->step[j][0] = 0;
  k->number[j] = nc_cast_scalar(*v, k->common_dtype);
}

int64_t nc_iter_start(TensorIter *k, Op op, DType common, const Tensor *y,
                      const Arg in[], int n, const double par[2]) {
  int uniform = y->dtype == common, numbers = 0;
  int64_t bytes;
  k->op = op;
  k->grad_index = 0;
  k->common_dtype = common;
  k->nargs = n + 1;
  k->nd = 1;
  k->nfold = 0;
  k->n = k->size[0] = nc_numel(y);
  k->par[0] = par ? par[0] : 1;
  k->par[1] = par ? par[1] : 0;
  bytes = set_tensor(k, 0, y);
  for (int j = 0; j < n; j++)
    if (in[j].t) {
      bytes += set_tensor(k, j + 1, in[j].t);
      uniform &= in[j].t->dtype == common;
    } else {
      set_number(k, j + 1, &in[j].s);
      numbers++;
    }
  k->uniform = uniform;
  k->numbers = numbers;
  return k->n * bytes;
}

int64_t nc_iter_bytes(const Tensor *y, const Arg in[], int n) {
  int64_t bytes = nc_numel(y) * nc_dtypesize(y->dtype);
  for (int j = 0; j < n; j++)
    if (in[j].t) bytes += nc_numel(in[j].t) * nc_dtypesize(in[j].t->dtype);
  return bytes;
}
