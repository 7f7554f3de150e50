/* SPDX-License-Identifier: MIT */
/*
** gather_scatter.c - on the CPU, elements along a dimension: to or from the places
** that an index tensor names.
**
** The index is read a piece of a line at a time.  Elements are moved as it is
** read; to be folded its numbers first become offsets, which stay in the cache.
*/
#include <stdatomic.h>
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/portable.h"
#include "core/op.h"

#define GRAIN 32768 /* elements worth a thread */
#define PIECE 512   /* offsets at a time */

typedef struct Job {
  const GatherDimCall *a;
  const int64_t *index;
  char *x, *other;
  int64_t esize, length, slice; /* of a line, of what dimension 0 counts */
  int64_t size, step;           /* of x along dim; steps are in bytes */
  int64_t run[2];               /* along a line: of x but for dim, of other */
  _Atomic int64_t bad;          /* the first place that is outside */
} Job;

/* Where line i begins in x (at 0 along dim) and in other. */
static void linestart(const Job *j, int64_t i, int64_t *x, int64_t *other) {
  const GatherDimCall *a = j->a;
  *x = *other = 0;
  for (int d = a->index->nd - 2; d >= 0; d--) {
    const int64_t k = i % a->index->size[d];
    i /= a->index->size[d];
    if (d != a->dim) *x += k * a->x->step[d] * j->esize;
    if (a->other) *other += k * a->other->step[d] * j->esize;
  }
}

/* Notes the first place that is outside, INT64_MAX for none. */
static void note(Job *j, int64_t bad) {
  int64_t known = atomic_load(&j->bad);
  while (bad < known && !atomic_compare_exchange_weak(&j->bad, &known, bad)) {
  }
}

/* For n places from element i of the index on: position p along dim; what is
   outside is noted, and counts as the first. */
#define PLACES(...)                                     \
  do {                                                  \
    const int64_t *v = j->index + i, size = j->size;    \
    int64_t bad = INT64_MAX;                            \
    for (int64_t k = 0; k < n; k++) {                   \
      int64_t p = v[k] > 0 ? v[k] - 1 : v[k] + size;    \
      if (NC_UNLIKELY((uint64_t)p >= (uint64_t)size)) { \
        if (bad == INT64_MAX) bad = i + k;              \
        p = 0;                                          \
      }                                                 \
      __VA_ARGS__;                                      \
    }                                                   \
    if (NC_UNLIKELY(bad != INT64_MAX)) note(j, bad);    \
  } while (0)

/* at[] = offsets of n places, which begin at x */
static void offsets(Job *j, int64_t at[], int64_t i, int64_t n, int64_t x) {
  const int64_t step = j->step, run = j->run[0];
  PLACES(at[k] = x + p * step + k * run);
}

static void looked(Job *j, int64_t i, int64_t n) {
  PLACES((void)0);
}

/* n elements between x, from offset `start' on, and o */
static void moved(Job *j, int64_t i, int64_t n, int64_t start, char *o) {
  const int64_t step = j->step, run = j->run[0], s = j->run[1];
  char *x = j->x + start;
#define CASE(bytes)                                                \
  case bytes:                                                      \
    if (j->a->how == GATHER_DIM_GET)                               \
      PLACES(memcpy(o + k * s, x + p * step + k * run, bytes));    \
    else PLACES(memcpy(x + p * step + k * run, o + k * s, bytes)); \
    break;
  switch (j->esize) { CASE(1) CASE(2) CASE(4) CASE(8) }
#undef CASE
}

/* Elements begin .. end-1 of the index. */
static void walk(void *ctx, int64_t begin, int64_t end) {
  Job *j = ctx;
  int64_t at[PIECE];
  for (int64_t i = begin; i < end && !nc_interrupted;) {
    const int64_t line = i / j->length, from = i % j->length;
    int64_t x, o, n = j->length - from;
    if (n > end - i) n = end - i;
    if (n > PIECE) n = PIECE;
    linestart(j, line, &x, &o);
    x += from * j->run[0];
    o += from * j->run[1];
    if (j->a->how == GATHER_DIM_CHECK) looked(j, i, n);
    else if (j->a->how == GATHER_DIM_REDUCE) {
      offsets(j, at, i, n, x);
      nc_cpu_reduceinto(j->x, at, 0, j->other + o, j->run[1], n, j->a->x->dtype,
                        j->a->fold);
    } else moved(j, i, n, x, j->other + o);
    i += n;
  }
}

static void slices(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  walk(ctx, begin * j->slice, end * j->slice);
}

static void prepare(Job *j, const GatherDimCall *a) {
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
  j->run[0] = a->dim == last ? 0 : a->x->step[last] * j->esize;
  j->run[1] = a->other ? a->other->step[last] * j->esize : 0;
  atomic_init(&j->bad, INT64_MAX);
}

int nc_cpu_gather_dim(const Device *d, const GatherDimCall *a) {
  const int64_t n = nc_numel(a->index);
  int64_t at;
  Job j;
  (void)d;
  prepare(&j, a);
  if (a->how == GATHER_DIM_GET || a->how == GATHER_DIM_CHECK)
    TRY(nc_parallel(n, GRAIN, walk, &j));
  else if (a->dim > 0) /* what meets is in one slice, in order */
    TRY(nc_parallel(a->index->size[0], 1 + GRAIN / j.slice, slices, &j));
  else walk(&j, 0, n);
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  if (j.bad >= n) return NC_OK;
  return nc_position(&at, j.index[j.bad], a->x, a->dim);
}
