/* SPDX-License-Identifier: MIT */
/*
** advanced_index.c - advanced indexing on the CPU: the requests resolve_index
** (index tensor to offsets), index_read, index_write and index_accumulate
** (elements at these offsets to or from another tensor).
**
** Elements move in rows: a row runs along the last dimension of `other', or, if
** the offsets run over that one, is a single element.
*/
#include <stdatomic.h>
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/portable.h"
#include "core/op.h"

#define GRAIN 32768  /* elements worth a thread */
#define PIECE 262144 /* bytes between two looks at the interrupt */

/*
** Offsets
*/
typedef struct ResolveWork {
  const int64_t *given;
  int64_t *offset;
  int64_t size, step;
  _Atomic int64_t bad; /* the first index that is out of range */
} ResolveWork;

/* Offsets of the indices begin .. end-1; stops at one out of range. */
static void resolve_range(void *ctx, int64_t begin, int64_t end) {
  ResolveWork *p = ctx;
  const int64_t size = p->size, step = p->step;
  int64_t bad = INT64_MAX, known;
  for (int64_t i = begin; i < end; i++) {
    int64_t v = p->given[i], at = v > 0 ? v - 1 : v + size;
    if (NC_UNLIKELY(v == 0 || at < 0 || at >= size)) {
      bad = i;
      break;
    }
    p->offset[i] = at * step;
  }
  known = atomic_load(&p->bad);
  while (bad < known && !atomic_compare_exchange_weak(&p->bad, &known, bad)) {
  }
}

int nc_cpu_resolve_index(const Device *d, const ResolveIndexCall *p) {
  ResolveWork j = { .size = p->size, .step = p->step };
  const int64_t n = nc_numel(p->given);
  int64_t at;
  (void)d;
  atomic_init(&j.bad, INT64_MAX);
  j.given = nc_data(p->given);
  j.offset = nc_data(p->offset);
  TRY(nc_parallel(n, GRAIN, resolve_range, &j));
  if (j.bad >= n) return NC_OK;
  return nc_position(&at, j.given[j.bad], p->of, p->shown);
}

/*
** How rows lie
*/
typedef struct IndexedRows {
  char *x, *other;
  const int64_t *offset;
  int64_t esize;
  int nd, indexed; /* dimensions over rows; the one that offsets run over */
  int64_t size[NC_MAXDIM + 1];
  int64_t step[2][NC_MAXDIM + 1]; /* of x and other, in bytes */
  int64_t length, rowstep[2];     /* elements of a row, and their steps */
  int64_t piece;                  /* elements moved at a time */
  int dense, isshort;             /* is a row dense in both; and one piece? */
  int reads;                      /* x to other? */
  int reduces;                    /* other is reduced into x? */
  IndexReduce fold;
  DType type;
} IndexedRows;

/* Adds a dimension; merges it with the last one if both tensors have the
   strides for it. */
static void add_dim(IndexedRows *r, int64_t size, int64_t stepx, int64_t stepo,
                    int join) {
  int last = r->nd - 1;
  if (size == 1) return;
  if (join && last >= 0 && last != r->indexed &&
      r->step[0][last] == stepx * size && r->step[1][last] == stepo * size) {
    r->size[last] *= size;
  } else {
    last = r->nd++;
    r->size[last] = size;
  }
  r->step[0][last] = stepx;
  r->step[1][last] = stepo;
}

/* Adds the dimensions of x that are not indexed, from *d on, which are the
   dimensions from..to-1 of other. */
static void add_kept_dims(IndexedRows *r, const IndexCall *g, int *d, int from,
                          int to) {
  for (int o = from; o < to; o++) {
    while (g->picked >> *d & 1) ++*d;
    add_dim(r, g->other->size[o], g->x->step[*d] * r->esize,
            g->other->step[o] * r->esize, 1);
    ++*d;
  }
}

/* Takes the last dimension as the row, unless it is the indexed one. */
static void split_row(IndexedRows *r) {
  int last = r->nd - 1;
  r->length = 1;
  r->rowstep[0] = r->rowstep[1] = r->esize;
  if (last != r->indexed) {
    r->length = r->size[last];
    r->rowstep[0] = r->step[0][last];
    r->rowstep[1] = r->step[1][last];
    r->nd--;
  }
  r->piece = PIECE / r->esize;
  r->dense = r->rowstep[0] == r->esize && r->rowstep[1] == r->esize;
  r->isshort = r->dense && r->length <= r->piece;
}

/* The step of other over the indexed dimensions, which have one stride. */
static int64_t indexed_step(const IndexCall *g) {
  const Tensor *o = g->other;
  int last = -1;
  for (int d = g->at; d < g->at + g->offset->nd; d++)
    if (o->size[d] != 1) last = d;
  return last < 0 ? 0 : o->step[last];
}

static void plan_rows(IndexedRows *r, const IndexCall *g) {
  const int after = g->at + g->offset->nd;
  int d = 0;
  r->x = nc_data(g->x);
  r->other = nc_data(g->other);
  r->offset = nc_data(g->offset);
  r->esize = nc_dtypesize(g->x->dtype);
  r->nd = 0;
  r->indexed = -1;
  add_kept_dims(r, g, &d, 0, g->at);
  r->indexed = r->nd++;
  r->size[r->indexed] = nc_numel(g->offset);
  r->step[0][r->indexed] = 0;
  r->step[1][r->indexed] = indexed_step(g) * r->esize;
  add_kept_dims(r, g, &d, after, g->other->nd);
  split_row(r);
}

/* The new value of a, an element of y, given b, one of x */
#define ADD a + b
#define MUL a *b
#define MAX b > a ? b : a
#define MIN b < a ? b : a
#define NANMAX b > a || b != b ? b : a
#define NANMIN b < a || b != b ? b : a
#define OR a | b
#define AND a &b
/* clang-format off */
#define REDUCE_EACH(T, E)                                                     \
  for (int64_t i = 0; i < n; i++) {                                           \
    T *own = (T *)(y + (at ? at[i] : i * sy));                                \
    const T a = *own, b = *(const T *)(x + i * sx);                           \
    *own = (T)(E);                                                            \
  }                                                                           \
  return
#define BY_REDUCTION(T, add, mul, max, min)                                   \
  switch (fold) {                                                             \
    case INDEX_ADD: REDUCE_EACH(T, add);                                      \
    case INDEX_MUL: REDUCE_EACH(T, mul);                                      \
    case INDEX_MAX: REDUCE_EACH(T, max);                                      \
    case INDEX_MIN: REDUCE_EACH(T, min);                                      \
  }
#define INTEGER(dtype, T) \
  case dtype: BY_REDUCTION(T, ADD, MUL, MAX, MIN) return;
#define FLOATING(dtype, T) \
  case dtype: BY_REDUCTION(T, ADD, MUL, NANMAX, NANMIN) return;
/* clang-format on */

static void reduce_half(float *y, float b, IndexReduce fold) {
  const float a = *y;
  *y = fold == INDEX_ADD   ? ADD
       : fold == INDEX_MUL ? MUL
       : fold == INDEX_MAX ? (NANMAX)
                           : (NANMIN);
}

void nc_cpu_reduceinto(char *y, const int64_t at[], int64_t sy, const char *x,
                       int64_t sx, int64_t n, DType type, IndexReduce fold) {
  const Kernels *k = nc_kernels();
  const KernelType c = nc_kernel_type(type);
  float to, from;
  switch (type) {
    FLOATING(DT_f32, float)
    FLOATING(DT_f64, double)
    INTEGER(DT_u8, uint8_t)
    INTEGER(DT_i8, int8_t)
    INTEGER(DT_i16, int16_t)
    INTEGER(DT_i32, int32_t)
    INTEGER(DT_i64, int64_t)
    case DT_b8: BY_REDUCTION(uint8_t, OR, AND, OR, AND) return;
    default: break;
  }
  for (int64_t i = 0; i < n; i++) {
    char *own = y + (at ? at[i] : i * sy);
    k->load[c][type](&to, own, 1, 1);
    k->load[c][type](&from, x + i * sx, 1, 1);
    reduce_half(&to, from, fold);
    k->store[c][type](own, &to, 1, 1);
  }
}

/* y = x, n elements; steps are in bytes */
static void copy_strided(char *y, int64_t sy, const char *x, int64_t sx,
                         int64_t n, int64_t esize) {
#define CASE(bytes)                                                        \
  case bytes:                                                              \
    for (int64_t i = 0; i < n; i++) memcpy(y + i * sy, x + i * sx, bytes); \
    break;
  switch (esize) { CASE(1) CASE(2) CASE(4) CASE(8) }
#undef CASE
}

/* Copies n short dense rows between x, at offsets, and other. */
static void copy_short_rows(const IndexedRows *r, const int64_t *at, char *x,
                            char *o, int64_t n) {
  const int64_t so = r->step[1][r->indexed], e = r->esize;
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
    CASE(1) CASE(2) CASE(4) CASE(8) CASE(16) CASE(32) default : MOVE(length);
  }
#undef CASE
#undef MOVE
}

/* Reduces n elements of other into x, at offsets. */
static void reduce_elements(const IndexedRows *r, const int64_t *at, char *x,
                            char *o, int64_t n) {
  enum { BATCH = 512 };
  const int64_t so = r->step[1][r->indexed];
  int64_t bytes[BATCH];
  for (int64_t i = 0; i < n && !nc_interrupted; i += BATCH) {
    const int64_t m = n - i < BATCH ? n - i : BATCH;
    for (int64_t k = 0; k < m; k++) bytes[k] = at[i + k] * r->esize;
    nc_cpu_reduceinto(x, bytes, 0, o + i * so, so, m, r->type, r->fold);
  }
}

/* Moves one row. */
static void move_row(const IndexedRows *r, char *x, char *o) {
  const int64_t *s = r->rowstep, e = r->esize;
  for (int64_t i = 0; i < r->length && !nc_interrupted; i += r->piece) {
    int64_t n = r->length - i < r->piece ? r->length - i : r->piece;
    char *a = x + i * s[0], *b = o + i * s[1];
    if (r->reduces)
      nc_cpu_reduceinto(a, NULL, s[0], b, s[1], n, r->type, r->fold);
    else if (r->dense)
      memcpy(r->reads ? b : a, r->reads ? a : b, (size_t)(n * e));
    else if (r->reads) copy_strided(b, s[1], a, s[0], n, e);
    else copy_strided(a, s[0], b, s[1], n, e);
  }
}

/* Rows begin .. end-1. */
static void move_rows(void *ctx, int64_t begin, int64_t end) {
  const IndexedRows *r = ctx;
  const int last = r->nd - 1;
  int64_t index[NC_MAXDIM + 1], left = begin;
  for (int d = last; d >= 0; d--) {
    index[d] = left % r->size[d];
    left /= r->size[d];
  }
  for (int64_t i = begin; i < end && !nc_interrupted;) {
    int64_t n = r->size[last] - index[last];
    char *x = r->x, *o = r->other;
    if (n > end - i) n = end - i;
    for (int d = 0; d <= last; d++) {
      if (d != r->indexed) x += index[d] * r->step[0][d];
      else if (d < last) x += r->offset[index[d]] * r->esize;
      o += index[d] * r->step[1][d];
    }
    if (last == r->indexed && r->isshort && !r->reduces)
      copy_short_rows(r, r->offset + index[last], x, o, n);
    else if (last == r->indexed && r->reduces && r->length == 1)
      reduce_elements(r, r->offset + index[last], x, o, n);
    else
      for (int64_t k = 0; k < n; k++)
        move_row(r,
                 last == r->indexed ? x + r->offset[index[last] + k] * r->esize
                                    : x + k * r->step[0][last],
                 o + k * r->step[1][last]);
    i += n;
    index[last] += n;
    for (int d = last; d > 0 && index[d] == r->size[d]; d--) {
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
  r.reduces = reduces;
  r.fold = g->fold;
  r.type = g->x->dtype;
  for (int d = 0; d < r.nd; d++) n *= r.size[d];
  grain = GRAIN / r.length + 1;
  if (reads || g->distinct) return nc_parallel(n, grain, move_rows, &r);
  for (int64_t i = 0; i < n && !nc_interrupted;
       i += grain) /* serial: the last write wins */
    move_rows(&r, i, n - i < grain ? n : i + grain);
  return nc_interrupted ? nc_fail(NC_EINTR, "interrupted") : NC_OK;
}

int nc_cpu_index_read(const Device *d, const IndexCall *g) {
  (void)d;
  return index_request(g, 1, 0);
}

int nc_cpu_index_write(const Device *d, const IndexCall *g) {
  (void)d;
  return index_request(g, 0, 0);
}

int nc_cpu_index_accumulate(const Device *d, const IndexCall *g) {
  (void)d;
  return index_request(g, 0, 1);
}
