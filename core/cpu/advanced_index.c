/* SPDX-License-Identifier: MIT */
/*
** advanced_index.c - advanced indexing on the CPU: the requests resolve_index
** (index tensor to offsets), index_read, index_write and index_accumulate
** (elements at these offsets to or from another tensor).
**
** Elements move in rows: a row runs along the last dimension of `other', or, if
** the offsets run over that one, is a single element.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/portable.h"
#include "core/base/indexed_dims.h"
#include "core/op.h"

#define GRAIN 32768  /* elements worth a thread */
#define PIECE 262144 /* bytes between two looks at the interrupt */
#define AHEAD 4      /* rows that are fetched before they are used */

/*
** Offsets
*/
typedef struct ResolveWork {
  const int64_t *index;
  int64_t *offset;
  int64_t size, step;
  _Atomic int64_t bad; /* the first index that is out of range */
} ResolveWork;

/* Offsets of the indices begin .. end-1; stops at one out of range. */
static void resolve_range(void *ctx, int64_t begin, int64_t end) {
  ResolveWork *p = ctx;
  const int64_t done = nc_kernels()->index_offsets(
      p->offset + begin, p->index + begin, end - begin, p->size, p->step);
  if (done < end - begin) nc_atomic_min(&p->bad, begin + done);
}

int nc_cpu_resolve_index(const ResolveIndexCall *p) {
  ResolveWork j = { .size = p->size, .step = p->step };
  const int64_t n = nc_numel(p->index);
  int64_t at;
  atomic_init(&j.bad, INT64_MAX);
  j.index = nc_data(p->index);
  j.offset = nc_data(p->offset);
  TRY(nc_parallel(n, GRAIN, resolve_range, &j));
  if (j.bad >= n) return NC_OK;
  return nc_position(&at, j.index[j.bad], p->of, p->dim);
}

/*
** How rows lie
*/
typedef struct IndexedRows {
  char *x, *other;
  const int64_t *offset;
  int64_t esize;
  IndexedDims k;                   /* over rows */
  int64_t length, rowstep[2];      /* elements of a row, and their steps */
  int64_t piece;                   /* elements moved at a time */
  int dense, isshort;              /* is a row dense in both; and one piece? */
  int reads;                       /* x to other? */
  const IndexReduceKernel *reduce; /* NULL: the elements are copied */
} IndexedRows;

/* Takes the last dimension as the row, unless it is the indexed one. */
static void split_row(IndexedRows *r) {
  int last = r->k.nd - 1;
  r->length = 1;
  r->rowstep[0] = r->rowstep[1] = r->esize;
  if (last != r->k.offset_dim) {
    r->length = r->k.size[last];
    r->rowstep[0] = r->k.step[0][last];
    r->rowstep[1] = r->k.step[1][last];
    r->k.nd--;
  }
  r->piece = PIECE / r->esize;
  r->dense = r->rowstep[0] == r->esize && r->rowstep[1] == r->esize;
  r->isshort = r->dense && r->length <= r->piece;
}

static void plan_rows(IndexedRows *r, const IndexCall *g) {
  r->x = nc_data(g->x);
  r->other = nc_data(g->other);
  r->offset = nc_data(g->offset);
  r->esize = nc_dtypesize(g->x->dtype);
  r->k = nc_indexed_dims(g);
  split_row(r);
}

/* Asks for the first lines of a row; the processor finds out about the rest. */
static void prefetch_row(const char *x, size_t bytes) {
  enum { LINE = 64, MOST = 8 * LINE };
#if defined(__GNUC__)
  for (size_t i = 0; i < bytes && i < MOST; i += LINE)
    __builtin_prefetch(x + i);
#endif
  (void)x, (void)bytes;
}

/* Copies n short dense rows between x, at offsets, and other. */
static void copy_short_rows(const IndexedRows *r, const int64_t *at, char *x,
                            char *o, int64_t n) {
  const int64_t so = r->k.step[1][r->k.offset_dim], e = r->esize;
  const size_t length = (size_t)(r->length * e);
  int64_t i;
#define MOVE(bytes)                                                     \
  do {                                                                  \
    if (r->reads)                                                       \
      for (i = 0; i < n; i++) memcpy(o + i * so, x + at[i] * e, bytes); \
    else                                                                \
      for (i = 0; i < n; i++) memcpy(x + at[i] * e, o + i * so, bytes); \
  } while (0)
#define CASE(bytes) \
  case bytes: MOVE(bytes); break;
  switch (length) { /* memcpy of a constant length is a move */
    CASE(1)
    CASE(2)
    CASE(4) CASE(8) CASE(16) CASE(32) default : for (i = 0; i < n; i++) {
      if (i + AHEAD < n) prefetch_row(x + at[i + AHEAD] * e, length);
      if (r->reads) memcpy(o + i * so, x + at[i] * e, length);
      else memcpy(x + at[i] * e, o + i * so, length);
    }
  }
#undef CASE
#undef MOVE
}

/* Reduces n elements of other into x, at offsets. */
static void reduce_elements(const IndexedRows *r, const int64_t *at, char *x,
                            char *o, int64_t n) {
  const Positions row = { .index = at,
                          .size = INT64_MAX,
                          .step = r->esize,
                          .other = r->k.step[1][r->k.offset_dim] };
  r->reduce->at(x, o, n, &row);
}

/* Moves one row. */
static void move_row(const IndexedRows *r, char *x, char *o) {
  const int64_t *s = r->rowstep, e = r->esize;
  for (int64_t i = 0; i < r->length && !nc_interrupted; i += r->piece) {
    int64_t n = r->length - i < r->piece ? r->length - i : r->piece;
    char *a = x + i * s[0], *b = o + i * s[1];
    if (r->reduce) r->reduce->row(a, s[0], b, s[1], n);
    else if (r->dense)
      memcpy(r->reads ? b : a, r->reads ? a : b, (size_t)(n * e));
    else if (r->reads) nc_copy_strided(b, s[1], a, s[0], n, e);
    else nc_copy_strided(a, s[0], b, s[1], n, e);
  }
}

/* Rows begin .. end-1. */
static void move_rows(void *ctx, int64_t begin, int64_t end) {
  const IndexedRows *r = ctx;
  const int last = r->k.nd - 1;
  int64_t index[NC_INDEXDIMS], left = begin;
  for (int d = last; d >= 0; d--) {
    index[d] = left % r->k.size[d];
    left /= r->k.size[d];
  }
  for (int64_t i = begin; i < end && !nc_interrupted;) {
    int64_t n = r->k.size[last] - index[last];
    char *x = r->x, *o = r->other;
    if (n > end - i) n = end - i;
    for (int d = 0; d <= last; d++) {
      if (d != r->k.offset_dim) x += index[d] * r->k.step[0][d];
      else if (d < last) x += r->offset[index[d]] * r->esize;
      o += index[d] * r->k.step[1][d];
    }
    if (last == r->k.offset_dim && r->isshort && !r->reduce)
      copy_short_rows(r, r->offset + index[last], x, o, n);
    else if (last == r->k.offset_dim && r->reduce && r->length == 1)
      reduce_elements(r, r->offset + index[last], x, o, n);
    else
      for (int64_t k = 0; k < n; k++)
        move_row(r,
                 last == r->k.offset_dim
                     ? x + r->offset[index[last] + k] * r->esize
                     : x + k * r->k.step[0][last],
                 o + k * r->k.step[1][last]);
    i += n;
    index[last] += n;
    for (int d = last; d > 0 && index[d] == r->k.size[d]; d--) {
      index[d] = 0;
      index[d - 1]++;
    }
  }
}

static int index_request(const IndexCall *g, int reads, int reduces) {
  int64_t n = 1, grain;
  IndexedRows r;
  plan_rows(&r, g);
  r.reads = reads;
  r.reduce = reduces ? &nc_kernels()->index_reduce[g->x->dtype][g->fold] : NULL;
  for (int d = 0; d < r.k.nd; d++) n *= r.k.size[d];
  grain = GRAIN / r.length + 1;
  if (reads || g->distinct) return nc_parallel(n, grain, move_rows, &r);
  for (int64_t i = 0; i < n && !nc_interrupted;
       i += grain) /* serial: the last write wins */
    move_rows(&r, i, n - i < grain ? n : i + grain);
  return nc_interrupted ? nc_fail(NC_EINTR, "interrupted") : NC_OK;
}

int nc_cpu_index_read(const IndexCall *g) {
  return index_request(g, 1, 0);
}

int nc_cpu_index_write(const IndexCall *g) {
  return index_request(g, 0, 0);
}

int nc_cpu_index_accumulate(const IndexCall *g) {
  int done;
  TRY(nc_cpu_add_halves(g, &done));
  return done ? NC_OK : index_request(g, 0, 1);
}
