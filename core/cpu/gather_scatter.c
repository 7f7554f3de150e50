/* SPDX-License-Identifier: MIT */
/*
** gather_scatter.c - the request gather_dim on the CPU: gather, scatter and
** scatter_reduce along one dimension.
**
** The index is read in pieces of a row.  Elements move while it is read; for a
** reduction its numbers first become offsets, which stay in the cache.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/portable.h"
#include "core/op.h"

#define GRAIN 32768 /* elements worth a thread */
#define PIECE 512   /* offsets at a time */

typedef struct GatherWork {
  const GatherDimCall *a;
  const int64_t *index;
  char *x, *other;
  int64_t esize, length; /* of an element; elements of a row */
  int64_t slice;         /* elements of a slice along dimension 0 */
  int64_t size, step;    /* of x along dim; steps are in bytes */
  int64_t rowstep[2];    /* along a row: of x (0 if it is dim), of other */
  _Atomic int64_t bad;   /* the first index that is out of range */
} GatherWork;

/* The offsets of row i in x (at 0 along dim) and in other, in bytes. */
static void row_offsets(const GatherWork *j, int64_t i, int64_t *x,
                        int64_t *other) {
  const GatherDimCall *a = j->a;
  *x = *other = 0;
  for (int d = a->index->nd - 2; d >= 0; d--) {
    const int64_t k = i % a->index->size[d];
    i /= a->index->size[d];
    if (d != a->dim) *x += k * a->x->step[d] * j->esize;
    if (a->other) *other += k * a->other->step[d] * j->esize;
  }
}

/* For each of n elements of the index, from i on: p = its position along dim,
   from 0.  One out of range is noted and taken as 0. */
#define FOR_EACH_INDEX(...)                                         \
  do {                                                              \
    const int64_t *v = j->index + i, size = j->size;                \
    int64_t bad = INT64_MAX;                                        \
    for (int64_t k = 0; k < n; k++) {                               \
      int64_t p = v[k] > 0 ? v[k] - 1 : v[k] + size;                \
      if (NC_UNLIKELY((uint64_t)p >= (uint64_t)size)) {             \
        if (bad == INT64_MAX) bad = i + k;                          \
        p = 0;                                                      \
      }                                                             \
      __VA_ARGS__;                                                  \
    }                                                               \
    if (NC_UNLIKELY(bad != INT64_MAX)) nc_atomic_min(&j->bad, bad); \
  } while (0)

/* at[0..n-1] = offsets in bytes, for a row that begins at offset x */
static void resolve(GatherWork *j, int64_t at[], int64_t i, int64_t n,
                    int64_t x) {
  const int64_t step = j->step, rowstep = j->rowstep[0];
  FOR_EACH_INDEX(at[k] = x + p * step + k * rowstep);
}

static void check(GatherWork *j, int64_t i, int64_t n) {
  FOR_EACH_INDEX((void)0);
}

/* Copies n elements between x, from offset `start' on, and o. */
static void move(GatherWork *j, int64_t i, int64_t n, int64_t start, char *o) {
  const int64_t step = j->step, rowstep = j->rowstep[0], s = j->rowstep[1];
  char *x = j->x + start;
#define CASE(bytes)                                                            \
  case bytes:                                                                  \
    if (j->a->mode == GATHER_DIM_GET)                                          \
      FOR_EACH_INDEX(memcpy(o + k * s, x + p * step + k * rowstep, bytes));    \
    else FOR_EACH_INDEX(memcpy(x + p * step + k * rowstep, o + k * s, bytes)); \
    break;
  switch (j->esize) { CASE(1) CASE(2) CASE(4) CASE(8) }
#undef CASE
}

/* Elements begin .. end-1 of the index. */
static void gather_range(void *ctx, int64_t begin, int64_t end) {
  GatherWork *j = ctx;
  int64_t at[PIECE];
  for (int64_t i = begin; i < end && !nc_interrupted;) {
    const int64_t row = i / j->length, from = i % j->length;
    int64_t x, o, n = j->length - from;
    if (n > end - i) n = end - i;
    if (n > PIECE) n = PIECE;
    row_offsets(j, row, &x, &o);
    x += from * j->rowstep[0];
    o += from * j->rowstep[1];
    if (j->a->mode == GATHER_DIM_CHECK) check(j, i, n);
    else if (j->a->mode == GATHER_DIM_REDUCE) {
      resolve(j, at, i, n, x);
      nc_cpu_reduceinto(j->x, at, 0, j->other + o, j->rowstep[1], n,
                        j->a->x->dtype, j->a->fold);
    } else move(j, i, n, x, j->other + o);
    i += n;
  }
}

static void gather_slices(void *ctx, int64_t begin, int64_t end) {
  const GatherWork *j = ctx;
  gather_range(ctx, begin * j->slice, end * j->slice);
}

static void prepare(GatherWork *j, const GatherDimCall *a) {
  const int nd = a->index->nd, last = nd - 1;
  const int64_t n = nc_numel(a->index);
  j->a = a;
  j->index = nc_data(a->index);
  j->x = nc_data(a->x);
  j->other = a->other ? nc_data(a->other) : NULL;
  j->esize = nc_dtypesize(a->x->dtype);
  j->length = a->index->size[last];
  j->slice = n / a->index->size[0];
  j->size = a->x->size[a->dim];
  j->step = a->x->step[a->dim] * j->esize;
  j->rowstep[0] = a->dim == last ? 0 : a->x->step[last] * j->esize;
  j->rowstep[1] = a->other ? a->other->step[last] * j->esize : 0;
  atomic_init(&j->bad, INT64_MAX);
}

int nc_cpu_gather_dim(const GatherDimCall *a) {
  const int64_t n = nc_numel(a->index);
  int64_t at;
  GatherWork j;
  prepare(&j, a);
  if (a->mode == GATHER_DIM_GET || a->mode == GATHER_DIM_CHECK)
    TRY(nc_parallel(n, GRAIN, gather_range, &j));
  else if (a->dim >
           0) /* equal targets lie in one slice, which is done in order */
    TRY(nc_parallel(a->index->size[0], 1 + GRAIN / j.slice, gather_slices, &j));
  else gather_range(&j, 0, n);
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  if (j.bad >= n) return NC_OK;
  return nc_position(&at, j.index[j.bad], a->x, a->dim);
}
