/* SPDX-License-Identifier: MIT */
/*
** half_sums.c - halves that are added (or multiplied) into elements of x, of
** which an index may name one several times: computed in float32, and rounded
** once.
**
** That is done in a copy of x, unless x is much larger than what is added.
** Then the elements that the index names, each once, are read into a small
** tensor, summed there, and written back; a hash table gives each offset its
** place.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/pointwise/temps.h"
#include "core/cpu/kernels/kernels.h"
#include "core/op.h"

#define MANY 4 /* elements of x for each that is added: much larger */

/* The places of offsets, in their order; n of them. */
typedef struct Places {
  Tensor *place, *first; /* of each offset; the different offsets, n of them */
  int64_t n, each;       /* elements at a place */
} Places;

typedef struct Entry {
  int64_t offset, place; /* place + 1; 0: free */
} Entry;

static Entry *find(Entry *table, uint64_t mask, int64_t offset) {
  uint64_t i = (uint64_t)offset * 0x9e3779b97f4a7c15u;
  for (i = (i ^ i >> 32) & mask; table[i].place && table[i].offset != offset;
       i = (i + 1) & mask) {
  }
  return &table[i];
}

/* Gives each of the `count' offsets its place. */
static int find_places(Places *p, const int64_t *offset, int64_t count) {
  int64_t *place = nc_data(p->place), *first = nc_data(p->first), bytes;
  uint64_t size = 16;
  void *table;
  while (size < 2 * (uint64_t)count) size *= 2;
  bytes = (int64_t)(size * sizeof(Entry));
  TRY(nc_hostalloc(&table, bytes));
  memset(table, 0, (size_t)bytes);
  for (int64_t i = 0; i < count; i++) {
    Entry *e = find(table, size - 1, offset[i]);
    if (e->place == 0) {
      first[p->n++] = offset[i];
      *e = (Entry){ offset[i], p->n };
    }
    place[i] = (e->place - 1) * p->each;
  }
  nc_hostfree(table, bytes);
  return NC_OK;
}

/* A tensor of this type for the elements at the n places: [n x those
   dimensions of x that have no index]. */
static Tensor *new_sums(Temps *w, const IndexCall *g, const Places *p) {
  int64_t size[NC_MAXDIM + 1] = { p->n };
  int nd = 1;
  for (int d = 0; d < g->x->nd; d++)
    if (!(g->indexed_dims >> d & 1)) size[nd++] = g->x->size[d];
  return nc_temps_new(w, g->x, g->x->dtype, nd, size);
}

/* sums, in the dimensions of x: the indexed ones of size 1. */
static Tensor like_x(const Tensor *sums, const IndexCall *g) {
  Tensor t = *sums;
  int own = 1;
  t.nd = g->x->nd;
  for (int d = 0; d < t.nd; d++) {
    const int kept = !(g->indexed_dims >> d & 1);
    t.size[d] = kept ? sums->size[own] : 1;
    t.step[d] = kept ? sums->step[own] : 0;
    own += kept;
  }
  return t;
}

/* Adds by way of the places, of which there are fewer than offsets. */
static void add_by_places(Temps *w, const IndexCall *g, const Places *p) {
  Tensor *half = new_sums(w, g, p), *sums, *other;
  IndexCall move = *g, add = *g;
  Tensor shaped;
  if (w->status != NC_OK) return;
  move.other = half;
  move.offset = nc_temps_narrow(w, p->first, 0, 0, p->n);
  move.at = 0;
  move.distinct = 1;
  if (w->status == NC_OK) w->status = nc_cpu_index_read(&move);
  sums = nc_temps_cast(w, half, DT_f32);
  other = nc_temps_cast(w, (Tensor *)g->other, DT_f32);
  if (w->status != NC_OK) return;
  shaped = like_x(sums, g);
  add.x = &shaped;
  add.other = other;
  add.offset = p->place;
  w->status = nc_cpu_index_accumulate(&add);
  nc_temps_copyinto(w, half, sums);
  if (w->status == NC_OK) w->status = nc_cpu_index_write(&move);
}

/* Does this file do it? */
static int sums_halves(const Tensor *x, IndexReduce fold) {
  return (x->dtype == DT_f16 || x->dtype == DT_bf16) && fold <= INDEX_MUL;
}

/* In a copy of x, in which the offsets are the same. */
static int add_wide(const IndexCall *g) {
  IndexCall wide = *g;
  Temps w = { 0 };
  Tensor *x = nc_temps_cast(&w, (Tensor *)g->x, DT_f32);
  wide.x = x;
  wide.other = nc_temps_cast(&w, (Tensor *)g->other, DT_f32);
  if (w.status == NC_OK) w.status = nc_cpu_index_accumulate(&wide);
  nc_temps_copyinto(&w, (Tensor *)g->x, x);
  return nc_temps_finish(&w);
}

int nc_cpu_add_halves(const IndexCall *g, int *done) {
  Places p = { .each = 1 };
  const int64_t count = nc_numel(g->offset);
  Temps w = { 0 };
  *done = 0;
  if (!sums_halves(g->x, g->fold) || g->distinct || count < 2) return NC_OK;
  *done = nc_isdense(g->x) && nc_numel(g->x) <= MANY * nc_numel(g->other);
  if (*done) return add_wide(g);
  for (int d = 0; d < g->x->nd; d++)
    if (!(g->indexed_dims >> d & 1)) p.each *= g->x->size[d];
  p.place = nc_temps_new(&w, g->x, DT_i64, g->offset->nd, g->offset->size);
  p.first = nc_temps_new(&w, g->x, DT_i64, 1, &count);
  if (w.status == NC_OK) w.status = find_places(&p, nc_data(g->offset), count);
  *done = w.status != NC_OK || p.n < count;
  if (w.status == NC_OK && *done) add_by_places(&w, g, &p);
  return nc_temps_finish(&w);
}

/*
** scatter: an offset for each element of the index
*/
/* offset[i] = that of the element of x that element i of the index names.
   Returns how many come before one that is out of range. */
static int64_t element_offsets(const GatherDimCall *a, int64_t *offset) {
  const Tensor *x = a->x, *index = a->index;
  const int64_t *v = nc_data(index), n = nc_numel(index);
  int64_t at[NC_MAXDIM] = { 0 }, base = 0, p;
  for (int64_t i = 0; i < n; i++) {
    if (!nc_place(&p, v[i], 1, x->size[a->dim])) return i;
    offset[i] = base + p * x->step[a->dim];
    for (int d = index->nd - 1; d >= 0; d--) {
      const int64_t step = d == a->dim ? 0 : x->step[d];
      base += step;
      if (++at[d] < index->size[d]) break;
      base -= step * at[d];
      at[d] = 0;
    }
  }
  return n;
}

/* In a large x. */
static void scatter_by_places(Temps *w, const GatherDimCall *a) {
  const int64_t n = nc_numel(a->index);
  IndexCall g = { .x = a->x, .fold = a->fold };
  Tensor *other = nc_temps_dense(w, (Tensor *)a->other);
  int64_t bad, at;
  g.other = nc_temps_flatten(w, other);
  g.offset = nc_temps_new(w, a->x, DT_i64, 1, &n);
  g.indexed_dims = (1u << a->x->nd) - 1;
  if (w->status != NC_OK) return;
  bad = element_offsets(a, nc_data(g.offset));
  if (bad < n)
    w->status = nc_position(&at, ((const int64_t *)nc_data(a->index))[bad],
                            a->x, a->dim);
  else w->status = nc_cpu_index_accumulate(&g);
}

/* In a small one, all of it in float32. */
static void scatter_wide(Temps *w, const GatherDimCall *a) {
  GatherDimCall wide = *a;
  Tensor *x = nc_temps_cast(w, (Tensor *)a->x, DT_f32);
  wide.x = x;
  wide.other = nc_temps_cast(w, (Tensor *)a->other, DT_f32);
  if (w->status == NC_OK) w->status = nc_cpu_gather_dim(&wide);
  nc_temps_copyinto(w, (Tensor *)a->x, x);
}

int nc_cpu_scatter_halves(const GatherDimCall *a, int *done) {
  const int64_t n = nc_numel(a->index);
  Temps w = { 0 };
  *done = a->mode == GATHER_DIM_REDUCE && sums_halves(a->x, a->fold) && n > 1;
  if (!*done) return NC_OK;
  if (nc_numel(a->x) > MANY * n) scatter_by_places(&w, a);
  else scatter_wide(&w, a);
  return nc_temps_finish(&w);
}
