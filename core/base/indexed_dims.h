/* SPDX-License-Identifier: MIT */
/*
** indexed_dims.h - the loop of an IndexCall (core/devices.h), for all devices:
** the dimensions of `other', the outermost first, with the steps of both
** tensors.  Neighbours over which both have one stride are merged.
*/
#ifndef core_base_indexed_dims_h
#define core_base_indexed_dims_h

#include "core/tensor.h"

#define NC_INDEXDIMS (NC_MAXDIM + 1)

typedef struct IndexedDims {
  int nd, offset_dim;         /* dimensions; the one that offsets run over */
  int64_t size[NC_INDEXDIMS];
  int64_t step[2][NC_INDEXDIMS]; /* of x (0 for offset_dim), other; in bytes */
} IndexedDims;

static inline void nc_add_indexed_dim(IndexedDims *k, int64_t size,
                                      int64_t stepx, int64_t stepo) {
  int last = k->nd - 1;
  if (size == 1) return;
  if (last >= 0 && last != k->offset_dim &&
      k->step[0][last] == stepx * size && k->step[1][last] == stepo * size) {
    k->size[last] *= size;
  } else {
    last = k->nd++;
    k->size[last] = size;
  }
  k->step[0][last] = stepx;
  k->step[1][last] = stepo;
}

/* Adds dimensions from..to-1 of other, which are those of x that have no index,
   from *d on. */
static inline void nc_add_kept_dims(IndexedDims *k, const IndexCall *g, int *d,
                                    int from, int to) {
  const int64_t esize = nc_dtypesize(g->x->dtype);
  for (int o = from; o < to; o++, ++*d) {
    while (g->indexed_dims >> *d & 1) ++*d;
    nc_add_indexed_dim(k, g->other->size[o], g->x->step[*d] * esize,
                       g->other->step[o] * esize);
  }
}

static inline IndexedDims nc_indexed_dims(const IndexCall *g) {
  const Tensor *o = g->other;
  const int after = g->at + g->offset->nd;
  IndexedDims k = { 0, -1, { 0 }, { { 0 } } };
  int d = 0;
  nc_add_kept_dims(&k, g, &d, 0, g->at);
  k.offset_dim = k.nd++;
  k.size[k.offset_dim] = nc_numel(g->offset);
  k.step[0][k.offset_dim] = k.step[1][k.offset_dim] = 0;
  for (int i = g->at; i < after; i++) /* other has one stride over them */
    if (o->size[i] != 1)
      k.step[1][k.offset_dim] = o->step[i] * nc_dtypesize(o->dtype);
  nc_add_kept_dims(&k, g, &d, after, o->nd);
  return k;
}

#endif
