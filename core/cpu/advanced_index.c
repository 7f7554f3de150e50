/* SPDX-License-Identifier: MIT */
/*
** advanced_index.c - on the CPU, index tensors to offsets, and elements at these
** from a tensor, or into it.
**
** What is moved is cut in rows, which lie evenly in both tensors: the last
** dimension that is not picked from, or else one element.
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
typedef struct Job {
  const int64_t *given;
  int64_t *offset;
  int64_t size, step;
  _Atomic int64_t bad; /* the first place that is outside */
} Job;

static void places(void *ctx, int64_t begin, int64_t end) {
  Job *p = ctx;
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
  Job j = { .size = p->size, .step = p->step };
  const int64_t n = nc_numel(p->given);
  int64_t at;
  (void)d;
  atomic_init(&j.bad, INT64_MAX);
  j.given = nc_data(p->given);
  j.offset = nc_data(p->offset);
  TRY(nc_parallel(n, GRAIN, places, &j));
  if (j.bad >= n) return NC_OK;
  return nc_position(&at, j.given[j.bad], p->of, p->shown);
}

/*
** Rows
*/
typedef struct Rows {
  char *x, *other;
  const int64_t *offset;
  int64_t esize;
  int nd, picked; /* dimensions of rows; the one of offsets */
  int64_t size[NC_MAXDIM + 1];
  int64_t step[2][NC_MAXDIM + 1]; /* of x and other, in bytes */
  int64_t length, along[2];       /* of a row: elements, and their steps */
  int64_t piece;                  /* elements moved at a time */
  int dense, brief;               /* a row, in both; and below a piece */
  int out;                        /* from x to other? */
  int adds;                       /* or are they folded into x? */
  IndexReduce fold;
  DType type;
} Rows;

/* Adds a dimension to rows, joined with the last if both run evenly. */
static void addrows(Rows *r, int64_t size, int64_t stepx, int64_t stepo,
                    int join) {
  int last = r->nd - 1;
  if (size == 1) return;
  if (join && last >= 0 && last != r->picked &&
      r->step[0][last] == stepx * size && r->step[1][last] == stepo * size) {
    r->size[last] *= size;
  } else {
    last = r->nd++;
    r->size[last] = size;
  }
  r->step[0][last] = stepx;
  r->step[1][last] = stepo;
}

/* Adds the dimensions of x that are not picked from, of other from..to-1. */
static void addkept(Rows *r, const IndexCall *g, int *d, int from, int to) {
  for (int o = from; o < to; o++) {
    while (g->picked >> *d & 1) ++*d;
    addrows(r, g->other->size[o], g->x->step[*d] * r->esize,
            g->other->step[o] * r->esize, 1);
    ++*d;
  }
}

/* Cuts the last dimension off as the row, if it was not picked from. */
static void cutrow(Rows *r) {
  int last = r->nd - 1;
  r->length = 1;
  r->along[0] = r->along[1] = r->esize;
  if (last != r->picked) {
    r->length = r->size[last];
    r->along[0] = r->step[0][last];
    r->along[1] = r->step[1][last];
    r->nd--;
  }
  r->piece = PIECE / r->esize;
  r->dense = r->along[0] == r->esize && r->along[1] == r->esize;
  r->brief = r->dense && r->length <= r->piece;
}

/* The step of other over the picked dimensions, which must lie evenly. */
static int64_t pickedstep(const IndexCall *g) {
  const Tensor *o = g->other;
  int last = -1;
  for (int d = g->at; d < g->at + g->offset->nd; d++)
    if (o->size[d] != 1) last = d;
  return last < 0 ? 0 : o->step[last];
}

static void makerows(Rows *r, const IndexCall *g) {
  const int behind = g->at + g->offset->nd;
  int d = 0;
  r->x = nc_data(g->x);
  r->other = nc_data(g->other);
  r->offset = nc_data(g->offset);
  r->esize = nc_dtypesize(g->x->dtype);
  r->nd = 0;
  r->picked = -1;
  addkept(r, g, &d, 0, g->at);
  r->picked = r->nd++;
  r->size[r->picked] = nc_numel(g->offset);
  r->step[0][r->picked] = 0;
  r->step[1][r->picked] = pickedstep(g) * r->esize;
  addkept(r, g, &d, behind, g->other->nd);
  cutrow(r);
}

/* a, an element of y, takes part with b, one of x */
#define ADD a + b
#define MUL a *b
#define MAX b > a ? b : a
#define MIN b < a ? b : a
#define NANMAX b > a || b != b ? b : a
#define NANMIN b < a || b != b ? b : a
#define OR a | b
#define AND a &b
/* clang-format off */
#define EACH(T, E)                                                            \
  for (int64_t i = 0; i < n; i++) {                                           \
    T *own = (T *)(y + (at ? at[i] : i * sy));                                \
    const T a = *own, b = *(const T *)(x + i * sx);                           \
    *own = (T)(E);                                                            \
  }                                                                           \
  return
#define FOLDS(T, add, mul, max, min)                                          \
  switch (fold) {                                                             \
    case INDEX_ADD: EACH(T, add);                                            \
    case INDEX_MUL: EACH(T, mul);                                            \
    case INDEX_MAX: EACH(T, max);                                            \
    case INDEX_MIN: EACH(T, min);                                            \
  }
#define INTEGER(dtype, T) case dtype: FOLDS(T, ADD, MUL, MAX, MIN) return;
#define FLOATING(dtype, T) \
  case dtype: FOLDS(T, ADD, MUL, NANMAX, NANMIN) return;
/* clang-format on */

static void foldhalf(float *y, float b, IndexReduce fold) {
  const float a = *y;
  *y = fold == INDEX_ADD   ? ADD
       : fold == INDEX_MUL ? MUL
       : fold == INDEX_MAX ? (NANMAX)
                           : (NANMIN);
}

void nc_cpu_reduceinto(char *y, const int64_t at[], int64_t sy, const char *x,
                       int64_t sx, int64_t n, DType type, IndexReduce fold) {
  const Kernels *k = nc_kernels();
  const Computed c = nc_computed(type);
  float to, from;
  switch (type) {
    FLOATING(DT_f32, float)
    FLOATING(DT_f64, double)
    INTEGER(DT_u8, uint8_t)
    INTEGER(DT_i8, int8_t)
    INTEGER(DT_i16, int16_t)
    INTEGER(DT_i32, int32_t)
    INTEGER(DT_i64, int64_t)
    case DT_b8: FOLDS(uint8_t, OR, AND, OR, AND) return;
    default: break;
  }
  for (int64_t i = 0; i < n; i++) {
    char *own = y + (at ? at[i] : i * sy);
    k->load[c][type](&to, own, 1, 1);
    k->load[c][type](&from, x + i * sx, 1, 1);
    foldhalf(&to, from, fold);
    k->store[c][type](own, &to, 1, 1);
  }
}

/* n elements to y from x, a step apart in bytes */
static void strided(char *y, int64_t sy, const char *x, int64_t sx, int64_t n,
                    int64_t esize) {
#define CASE(bytes)                                                        \
  case bytes:                                                              \
    for (int64_t i = 0; i < n; i++) memcpy(y + i * sy, x + i * sx, bytes); \
    break;
  switch (esize) { CASE(1) CASE(2) CASE(4) CASE(8) }
#undef CASE
}

/* n dense rows between x, at offsets, and other */
static void shortrows(const Rows *r, const int64_t *at, char *x, char *o,
                      int64_t n) {
  const int64_t so = r->step[1][r->picked], e = r->esize;
  const size_t length = (size_t)(r->length * e);
  int64_t i;
#define MOVE(bytes)                                                     \
  do {                                                                  \
    if (r->out)                                                         \
      for (i = 0; i < n; i++) memcpy(o + i * so, x + at[i] * e, bytes); \
    else                                                                \
      for (i = 0; i < n; i++) memcpy(x + at[i] * e, o + i * so, bytes); \
  } while (0)
#define CASE(bytes) \
  case bytes: MOVE(bytes); break;
  switch (length) { /* of a known length, memcpy is a move */
    CASE(1) CASE(2) CASE(4) CASE(8) CASE(16) CASE(32) default : MOVE(length);
  }
#undef CASE
#undef MOVE
}

/* n rows of one element of other are folded into x, at offsets. */
static void foldrows(const Rows *r, const int64_t *at, char *x, char *o,
                     int64_t n) {
  enum { BATCH = 512 };
  const int64_t so = r->step[1][r->picked];
  int64_t bytes[BATCH];
  for (int64_t i = 0; i < n && !nc_interrupted; i += BATCH) {
    const int64_t m = n - i < BATCH ? n - i : BATCH;
    for (int64_t k = 0; k < m; k++) bytes[k] = at[i + k] * r->esize;
    nc_cpu_reduceinto(x, bytes, 0, o + i * so, so, m, r->type, r->fold);
  }
}

static void onerow(const Rows *r, char *x, char *o) {
  const int64_t *s = r->along, e = r->esize;
  for (int64_t i = 0; i < r->length && !nc_interrupted; i += r->piece) {
    int64_t n = r->length - i < r->piece ? r->length - i : r->piece;
    char *a = x + i * s[0], *b = o + i * s[1];
    if (r->adds) nc_cpu_reduceinto(a, NULL, s[0], b, s[1], n, r->type, r->fold);
    else if (r->dense) memcpy(r->out ? b : a, r->out ? a : b, (size_t)(n * e));
    else if (r->out) strided(b, s[1], a, s[0], n, e);
    else strided(a, s[0], b, s[1], n, e);
  }
}

/* Moves rows begin .. end-1. */
static void moverows(void *ctx, int64_t begin, int64_t end) {
  const Rows *r = ctx;
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
      if (d != r->picked) x += index[d] * r->step[0][d];
      else if (d < last) x += r->offset[index[d]] * r->esize;
      o += index[d] * r->step[1][d];
    }
    if (last == r->picked && r->brief && !r->adds)
      shortrows(r, r->offset + index[last], x, o, n);
    else if (last == r->picked && r->adds && r->length == 1)
      foldrows(r, r->offset + index[last], x, o, n);
    else
      for (int64_t k = 0; k < n; k++)
        onerow(r,
               last == r->picked ? x + r->offset[index[last] + k] * r->esize
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

static int move(const IndexCall *g, int out, int adds) {
  int64_t n = 1, grain;
  Rows r;
  makerows(&r, g);
  r.out = out;
  r.adds = adds;
  r.fold = g->fold;
  r.type = g->x->dtype;
  for (int d = 0; d < r.nd; d++) n *= r.size[d];
  grain = GRAIN / r.length + 1;
  if (out || g->distinct) return nc_parallel(n, grain, moverows, &r);
  for (int64_t i = 0; i < n && !nc_interrupted; i += grain) /* in order */
    moverows(&r, i, n - i < grain ? n : i + grain);
  return nc_interrupted ? nc_fail(NC_EINTR, "interrupted") : NC_OK;
}

int nc_cpu_index_read(const Device *d, const IndexCall *g) {
  (void)d;
  return move(g, 1, 0);
}

int nc_cpu_index_write(const Device *d, const IndexCall *g) {
  (void)d;
  return move(g, 0, 0);
}

int nc_cpu_index_accumulate(const Device *d, const IndexCall *g) {
  (void)d;
  return move(g, 0, 1);
}
