/* SPDX-License-Identifier: MIT */
/*
** iterator.c - builds a TensorIter, the strided loop that a device is asked to
** run; see iterator.h.
*/
#include "core/pointwise/iterator.h"

#include "core/op.h"

/* Dimension `to' of a loop becomes dimension d. */
static void movedim(TensorIter *k, int d, int to) {
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
    else movedim(k, d, ++last);
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

void nc_iter_operand(TensorIter *k, int j, const Tensor *t, const Scalar *v) {
  k->p[j] = t ? nc_data(t) : NULL;
  k->type[j] = t ? t->dtype : k->work;
  if (t == NULL) k->number[j] = nc_tocomputetype(*v, k->work);
}

void nc_iter_operands(TensorIter *k, const Tensor *y, const Arg in[], int n) {
  k->nargs = n + 1;
  nc_iter_operand(k, 0, y, NULL);
  for (int j = 0; j < n; j++) nc_iter_operand(k, j + 1, in[j].t, &in[j].s);
}

int64_t nc_iter_bytes(const Tensor *y, const Arg in[], int n) {
  int64_t bytes = nc_numel(y) * nc_dtypesize(y->dtype);
  for (int j = 0; j < n; j++)
    if (in[j].t) bytes += nc_numel(in[j].t) * nc_dtypesize(in[j].t->dtype);
  return bytes;
}
