/* SPDX-License-Identifier: MIT */
/*
** advanced_index.c - plans the kernels of advanced_index.cu and index_add.cu;
** see advanced_index.h.
*/
#include "cuda/indexing/advanced_index.h"

/* Adds the next inner dimension; merges it with the last one if the strides of
   both operands allow it. */
static void add_inner(IndexPlan *k, int64_t size, int64_t stepx,
                      int64_t stepo) {
  int last = k->nd - 1;
  if (size == 1) return;
  if (last >= 0 && last != k->picked && k->xstep[last] == stepx * size &&
      k->ostep[last] == stepo * size) {
    k->size[last] *= size;
  } else {
    last = k->nd++;
    k->size[last] = size;
  }
  k->xstep[last] = stepx;
  k->ostep[last] = stepo;
}

/* Adds dimensions from .. to-1 of other, which are those of x that have no
   index. */
static void add_kept(IndexPlan *k, const IndexCall *g, int *d, int from,
                     int to) {
  for (int o = from; o < to; o++) {
    while (g->picked >> *d & 1) ++*d;
    add_inner(k, g->other->size[o], g->x->step[*d] * k->esize,
              g->other->step[o] * k->esize);
    ++*d;
  }
}

/* The step of other along the indexed dimensions, which are contiguous to each
   other. */
static int64_t indexed_step(const IndexCall *g) {
  const Tensor *o = g->other;
  int last = -1;
  for (int d = g->at; d < g->at + g->offset->nd; d++)
    if (o->size[d] != 1) last = d;
  return last < 0 ? 0 : o->step[last];
}

/* The largest unit of which everything is a multiple; the last dimension is
   then counted in it. */
static int unit(IndexPlan *k, const IndexCall *g, int widest) {
  const int last = k->nd - 1;
  uint64_t all = (uintptr_t)k->x | (uintptr_t)k->other;
  int64_t bytes = widest;
  if (widest <= k->esize || last < 0 || last == k->picked ||
      k->xstep[last] != k->esize || k->ostep[last] != k->esize)
    return (int)k->esize;
  for (int d = 0; d < g->x->nd; d++)
    if (g->picked >> d & 1 && g->x->size[d] > 1)
      all |= (uint64_t)(g->x->step[d] * k->esize);
  for (int d = 0; d < last; d++)
    all |= (uint64_t)(d == k->picked ? 0 : k->xstep[d]) | (uint64_t)k->ostep[d];
  all |= (uint64_t)(k->size[last] * k->esize);
  while (bytes > k->esize && all % (uint64_t)bytes) bytes /= 2;
  k->size[last] = k->size[last] * k->esize / bytes;
  k->xstep[last] = k->ostep[last] = bytes;
  return (int)bytes;
}

static void swap(int64_t *a, int64_t *b) {
  const int64_t c = *a;
  *a = *b;
  *b = c;
}

/* Puts the innermost dimension first. */
static void reverse_dims(IndexPlan *k) {
  for (int d = 0; d < k->nd / 2; d++) {
    const int e = k->nd - 1 - d;
    swap(&k->size[d], &k->size[e]);
    swap(&k->xstep[d], &k->xstep[e]);
    swap(&k->ostep[d], &k->ostep[e]);
  }
  k->picked = k->nd - 1 - k->picked;
}

int nc_plan_index(IndexPlan *k, const IndexCall *g, int widest) {
  const int behind = g->at + g->offset->nd;
  int d = 0, bytes;
  k->x = nc_data(g->x);
  k->other = nc_data(g->other);
  k->offset = nc_data(g->offset);
  k->esize = nc_dtypesize(g->x->dtype);
  k->nd = 0;
  k->picked = -1;
  add_kept(k, g, &d, 0, g->at);
  k->picked = k->nd++;
  k->size[k->picked] = nc_numel(g->offset);
  k->xstep[k->picked] = 0;
  k->ostep[k->picked] = indexed_step(g) * k->esize;
  add_kept(k, g, &d, behind, g->other->nd);
  bytes = unit(k, g, widest);
  reverse_dims(k);
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
