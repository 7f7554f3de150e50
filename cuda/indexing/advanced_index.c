/* SPDX-License-Identifier: MIT */
/*
** advanced_index.c - plans the kernels of advanced_index.cu and index_add.cu;
** see advanced_index.h.
*/
#include "cuda/indexing/advanced_index.h"

#include "core/base/indexed_dims.h"

/* Chooses the largest unit that divides the innermost dimension, all steps and
   addresses; from then on the last dimension counts in units.  Returns its
   bytes. */
static int choose_unit(const IndexPlan *k, IndexedDims *s, const IndexCall *g,
                       int widest) {
  const int last = s->nd - 1;
  uint64_t all = (uintptr_t)k->x | (uintptr_t)k->other;
  int64_t bytes = widest;
  if (widest <= k->esize || last < 0 || last == s->offset_dim ||
      s->step[0][last] != k->esize || s->step[1][last] != k->esize)
    return (int)k->esize;
  for (int d = 0; d < g->x->nd; d++)
    if (g->indexed_dims >> d & 1 && g->x->size[d] > 1)
      all |= (uint64_t)(g->x->step[d] * k->esize);
  for (int d = 0; d < last; d++)
    all |= (uint64_t)s->step[0][d] | (uint64_t)s->step[1][d];
  all |= (uint64_t)(s->size[last] * k->esize);
  while (bytes > k->esize && all % (uint64_t)bytes) bytes /= 2;
  s->size[last] = s->size[last] * k->esize / bytes;
  s->step[0][last] = s->step[1][last] = bytes;
  return (int)bytes;
}

int nc_plan_index(const Device *d, IndexPlan *k, const IndexCall *g,
                  int widest) {
  IndexedDims s = nc_indexed_dims(g);
  int bytes;
  k->x = nc_used(d, g->x);
  k->other = nc_used(d, g->other);
  k->offset = nc_used(d, g->offset);
  k->esize = nc_dtypesize(g->x->dtype);
  bytes = choose_unit(k, &s, g, widest);
  k->nd = s.nd;
  k->picked = s.nd - 1 - s.offset_dim;
  for (int i = 0; i < s.nd; i++) { /* the innermost dimension is the first */
    const int e = s.nd - 1 - i;
    k->size[i] = s.size[e];
    k->xstep[i] = s.step[0][e];
    k->ostep[i] = s.step[1][e];
  }
  return bytes;
}

int nc_split_index(IndexPlan *k, IndexPlan *half) {
  int64_t first, *size;
  int cut = 0;
  k->n = 1;
  for (int d = 0; d < k->nd; d++) {
    k->n *= k->size[d];
    if (k->size[d] > k->size[cut]) cut = d;
  }
  if (k->n <= NC_MAXUNITS) {
    for (int d = 0; d < k->nd; d++) k->by[d] = nc_divisor(k->size[d]);
    return 1;
  }
  *half = *k;
  size = &k->size[cut];
  half->size[cut] = first = *size / 2;
  *size -= first;
  k->other += first * k->ostep[cut];
  if (cut == k->picked) k->offset += first;
  else k->x += first * k->xstep[cut];
  return 0;
}
