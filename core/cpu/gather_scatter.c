/* SPDX-License-Identifier: MIT */
/*
** gather_scatter.c - the request gather_dim on the CPU: gather, scatter and
** scatter_reduce along one dimension.
**
** The index is read row by row.  A row runs over its last dimension, or over
** several that have one stride in all tensors.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/portable.h"
#include "core/op.h"

#define GRAIN 32768        /* elements worth a thread */
#define PIECE 65536        /* elements between two looks at nc_interrupted */
#define FEWEST_COLUMNS 128 /* of rows that are cut for threads */
#define LINE 64            /* bytes of a cache line */
#define PREFETCH 131072    /* bytes that are fetched ahead; less than a cache */

typedef struct GatherWork {
  const GatherDimCall *a;
  char *x, *other;
  int64_t esize, slice; /* of an element; elements of a slice of dimension 0 */
  int nd;               /* dimensions of the index, the last one a row */
  int64_t size[NC_MAXDIM];
  int64_t step[2][NC_MAXDIM]; /* of x (0 along dim), of other; in bytes */
  Positions row;
  const IndexReduceKernel *reduce; /* NULL: the elements are copied */
  int64_t prefetch;                /* bytes of x that a row reads, or 0 */
  _Atomic int64_t bad;             /* the first index that is out of range */
} GatherWork;

/* For each of n elements of the index v: p = its position along dim, from 0.
   Returns at one out of range, with its number. */
#define FOR_EACH_POSITION(...)                                 \
  do {                                                         \
    const int64_t size = r->size;                              \
    for (int64_t i = 0; i < n; i++) {                          \
      int64_t p;                                               \
      if (NC_UNLIKELY(!nc_place(&p, v[i], 1, size))) return i; \
      __VA_ARGS__;                                             \
    }                                                          \
  } while (0)

/* Copies n elements between x and o, of `bytes' bytes; the three steps are
   those of r.  Where they are constants, a loop takes two thirds of the time.
   */
NC_INLINE int64_t copy_elements(const Positions *r, const int64_t *v, int64_t n,
                                char *x, char *o, int get, size_t bytes,
                                int64_t step, int64_t along, int64_t s) {
  if (get)
    FOR_EACH_POSITION(memcpy(o + i * s, x + p * step + i * along, bytes));
  else FOR_EACH_POSITION(memcpy(x + p * step + i * along, o + i * s, bytes));
  return n;
}

/* Copies n elements between x and o; returns how many come before an index
   that is out of range. */
static int64_t copy(const GatherWork *j, const int64_t *v, int64_t n, char *x,
                    char *o) {
  const Positions *r = &j->row;
  const int get = j->a->mode == GATHER_DIM_GET;
  const int dense =
      get && r->step == j->esize && r->along == 0 && r->other == j->esize;
#define CASE(bytes)                                                            \
  case bytes:                                                                  \
    return dense ? copy_elements(r, v, n, x, o, 1, bytes, bytes, 0, bytes)     \
                 : copy_elements(r, v, n, x, o, get, bytes, r->step, r->along, \
                                 r->other);
  switch (j->esize) { CASE(1) CASE(2) CASE(4) CASE(8) CASE(16) }
#undef CASE
  return n;
}

/* Asks for the part of x that a row of the index reads in any order. */
static void prefetch(const GatherWork *j, const char *x) {
#if defined(__GNUC__)
  for (int64_t i = 0; i < j->prefetch; i += LINE) __builtin_prefetch(x + i, 1);
#endif
  (void)j, (void)x;
}

/* The n elements from number `from' on, which lie in one row that begins at x
   and o. */
static void work_on_row(GatherWork *j, int64_t from, int64_t n, char *x,
                        char *o) {
  const int64_t *v = (const int64_t *)nc_data(j->a->index) + from;
  Positions row = j->row;
  int64_t done;
  row.index = v;
  if (j->prefetch && n >= j->prefetch / LINE) prefetch(j, x);
  if (j->a->mode == GATHER_DIM_CHECK)
    done = nc_kernels()->index_offsets(NULL, v, n, row.size, 0);
  else if (j->reduce) done = j->reduce->at(x, o, n, &row);
  else done = copy(j, v, n, x, o);
  if (NC_UNLIKELY(done < n)) nc_atomic_min(&j->bad, from + done);
}

/* Works on n elements of the index from number i on, at position `at'. */
static void work_at(GatherWork *j, const int64_t *at, int64_t i, int64_t n) {
  char *x = j->x, *o = j->other;
  for (int d = 0; d < j->nd; d++) {
    x += at[d] * j->step[0][d];
    o += at[d] * j->step[1][d];
  }
  work_on_row(j, i, n, x, o);
}

/* at += n elements of its row */
static void advance(const GatherWork *j, int64_t *at, int64_t n) {
  int d = j->nd - 1;
  for (at[d] += n; d > 0 && at[d] == j->size[d]; d--) {
    at[d] = 0;
    at[d - 1]++;
  }
}

/* Elements begin .. end-1 of the index, until one is out of range. */
static void gather_range(void *ctx, int64_t begin, int64_t end) {
  GatherWork *j = ctx;
  const int last = j->nd - 1;
  int64_t at[NC_MAXDIM], left = begin, n;
  for (int d = last; d >= 0; d--) {
    at[d] = left % j->size[d];
    left /= j->size[d];
  }
  for (int64_t i = begin; i < end && !nc_interrupted; i += n) {
    n = nc_min(nc_min(j->size[last] - at[last], end - i), PIECE);
    work_at(j, at, i, n);
    advance(j, at, n);
  }
}

static void gather_slices(void *ctx, int64_t begin, int64_t end) {
  const GatherWork *j = ctx;
  gather_range(ctx, begin * j->slice, end * j->slice);
}

/* Columns begin .. end-1 of all rows. */
static void gather_columns(void *ctx, int64_t begin, int64_t end) {
  GatherWork *j = ctx;
  const int64_t n = nc_numel(j->a->index), length = j->size[j->nd - 1];
  int64_t at[NC_MAXDIM] = { 0 };
  for (int64_t row = 0; row < n && !nc_interrupted; row += length) {
    at[j->nd - 1] = begin;
    work_at(j, at, row + begin, end - begin);
    advance(j, at, length - begin);
  }
}

/* Adds an inner dimension; merges it with the last one if all tensors have one
   stride over both. */
static void add_dim(GatherWork *j, int64_t size, int64_t x, int64_t o) {
  int last = j->nd - 1;
  if (size == 1) return;
  if (last >= 0 && j->step[0][last] == x * size && j->step[1][last] == o * size)
    j->size[last] *= size;
  else j->size[last = j->nd++] = size;
  j->step[0][last] = x;
  j->step[1][last] = o;
}

static void prepare(GatherWork *j, const GatherDimCall *a) {
  const Tensor *index = a->index;
  const int64_t e = nc_dtypesize(a->x->dtype);
  int last;
  *j = (GatherWork){ .a = a, .x = nc_data(a->x), .esize = e };
  j->other = a->other ? nc_data(a->other) : NULL;
  j->slice = nc_numel(index) / index->size[0];
  for (int d = 0; d < index->nd; d++)
    add_dim(j, index->size[d], d == a->dim ? 0 : a->x->step[d] * e,
            a->other ? a->other->step[d] * e : 0);
  if (j->nd == 0) j->size[j->nd++] = 1; /* one element */
  last = j->nd - 1;
  j->row = (Positions){ .from = 1,
                        .size = a->x->size[a->dim],
                        .step = a->x->step[a->dim] * e,
                        .along = j->step[0][last],
                        .other = j->step[1][last] };
  if (j->row.along == 0 && j->row.step == e && a->mode != GATHER_DIM_CHECK &&
      j->row.size * e <= PREFETCH)
    j->prefetch = j->row.size * e;
  if (a->mode == GATHER_DIM_REDUCE)
    j->reduce = &nc_kernels()->index_reduce[a->x->dtype][a->fold];
  atomic_init(&j->bad, INT64_MAX);
}

/* Writes to x.  Equal targets must be written in order, by one thread; they
   lie in one slice of each dimension but dim. */
static int scatter(GatherWork *j) {
  const int64_t n = nc_numel(j->a->index), length = j->size[j->nd - 1];
  const int64_t few = GRAIN / (n / length);
  const int64_t columns = few > FEWEST_COLUMNS ? few : FEWEST_COLUMNS;
  if (j->a->dim > 0)
    return nc_parallel(j->a->index->size[0], 1 + GRAIN / j->slice,
                       gather_slices, j);
  if (j->row.along != 0) return nc_parallel(length, columns, gather_columns, j);
  gather_range(j, 0, n);
  return nc_interrupted ? nc_fail(NC_EINTR, "interrupted") : NC_OK;
}

int nc_cpu_gather_dim(const GatherDimCall *a) {
  const int64_t n = nc_numel(a->index);
  int64_t at;
  GatherWork j;
  int done;
  TRY(nc_cpu_scatter_halves(a, &done));
  if (done) return NC_OK;
  prepare(&j, a);
  if (a->mode == GATHER_DIM_GET || a->mode == GATHER_DIM_CHECK)
    TRY(nc_parallel(n, GRAIN, gather_range, &j));
  else TRY(scatter(&j));
  if (j.bad >= n) return NC_OK;
  return nc_position(&at, ((const int64_t *)nc_data(a->index))[j.bad], a->x,
                     a->dim);
}
