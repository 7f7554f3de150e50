/* SPDX-License-Identifier: MIT */
/*
** argmax.c - argmax and argmin on the CPU (a part of the request dim_op).
**
** Elements are compared as they are stored: a copy in a wider type would take
** up to eight times their memory.  Each row is searched by one thread, a row of
** several pieces by all.
*/
#include <math.h>
#include <string.h>

#include "core/cpu/columns.h"
#include "core/cpu/cpu.h"
#include "core/cpu/dim_rows.h"
#include "core/pointwise/scalar.h"

#define BLOCK 1024 /* elements of a block, whose extreme is compared first */

/*
** The position of the first extreme of n > 0 elements; nan is one
*/
typedef int64_t Finder(const void *v, int64_t n, int low);

#define FIND_INTEGER(id, name, type, category)                  \
  static int64_t find_##id(const void *v, int64_t n, int low) { \
    const Kernels *kernels = nc_kernels();                      \
    const AlongKernel extreme =                                 \
        (low ? kernels->amin : kernels->amax)[DT_##id];         \
    const type *x = v;                                          \
    int64_t best = x[0], at = 0;                                \
    for (int64_t b = 0; b < n; b += BLOCK) {                    \
      const int64_t before = best;                              \
      extreme(&best, x + b, nc_min(n - b, BLOCK), NULL);        \
      if (best == before) continue;                             \
      for (at = b; x[at] != best;) at++;                        \
    }                                                           \
    return at;                                                  \
  }
INTEGERS(FIND_INTEGER)
#undef FIND_INTEGER

#define FIND_HALF(id)                                                         \
  static int64_t find_##id(const void *v, int64_t n, int low) {               \
    const Kernels *kernels = nc_kernels();                                    \
    const AlongKernel extreme =                                               \
        (low ? kernels->amin : kernels->amax)[DT_##id];                       \
    const id##_s *x = v;                                                      \
    double best = low ? (double)INFINITY : (double)-INFINITY;                 \
    int64_t at = 0;                                                           \
    for (int64_t b = 0; b < n; b += BLOCK) {                                  \
      const double before = best;                                             \
      extreme(&best, x + b, nc_min(n - b, BLOCK), NULL);                      \
      if (best == before) continue;                                           \
      for (at = b;; at++) {                                                   \
        const float value = id##_tofloat(x[at]);                              \
        if (best == (double)value || (best != best && value != value)) break; \
      }                                                                       \
      if (best != best) break;                                                \
    }                                                                         \
    return at;                                                                \
  }
FIND_HALF(f16)
FIND_HALF(bf16)
#undef FIND_HALF

static int64_t find_f32(const void *v, int64_t n, int low) {
  double value;
  return nc_kernels()->row[0].argmax(v, n, low, &value);
}

static int64_t find_f64(const void *v, int64_t n, int low) {
  double value;
  return nc_kernels()->row[1].argmax(v, n, low, &value);
}

static Finder *const finders[DT_COUNT] = {
#define X(id, ...) [DT_##id] = find_##id,
  INTEGERS(X)
#undef X
      [DT_b8] = find_u8,
  [DT_f16] = find_f16, [DT_bf16] = find_bf16, [DT_f32] = find_f32,
  [DT_f64] = find_f64
};

/*
** Rows
*/
typedef struct ArgmaxWork {
  DimRows in;
  Finder *find;
  int64_t pieces, size; /* of a row; of an element */
  int64_t *at, *piece;  /* results; the position in each piece of one row */
  void *y;              /* elements there, or NULL */
  int low;
  const char *row;
} ArgmaxWork;

/* Converts the positions in rows, which count from 0, to the results. */
static void store(const ArgmaxWork *j, int64_t begin, int64_t end) {
  const void *x = nc_data(j->in.t);
#define CASE(type, bytes)                                                 \
  case bytes:                                                             \
    for (int64_t i = begin; i < end; i++)                                 \
      ((type *)j->y)[i] = ((const type *)x)[i * j->in.length + j->at[i]]; \
    break;
  switch (j->y ? j->size : 0) {
    CASE(uint8_t, 1) CASE(uint16_t, 2) CASE(uint32_t, 4) CASE(uint64_t, 8)
  }
#undef CASE
  for (int64_t i = begin; i < end; i++) j->at[i]++;
}

static void whole_rows(void *ctx, int64_t begin, int64_t end) {
  const ArgmaxWork *j = ctx;
  const int64_t n = j->in.length;
  const char *x = nc_data(j->in.t);
  for (int64_t i = begin; i < end; i++) {
    if (nc_interrupted) return;
    j->at[i] = j->find(x + i * n * j->size, n, j->low);
  }
  store(j, begin, end);
}

static void pieces_of_row(void *ctx, int64_t begin, int64_t end) {
  const ArgmaxWork *j = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    const int64_t first = i * NC_PIECE;
    j->piece[i] =
        first + j->find(j->row + first * j->size,
                        nc_min(j->in.length - first, NC_PIECE), j->low);
  }
}

/* The extremes of the pieces are gathered, in order, and searched as a row. */
static int long_row(ArgmaxWork *j, int64_t i, char *best) {
  j->row = (const char *)nc_data(j->in.t) + i * j->in.length * j->size;
  TRY(nc_parallel(j->pieces, 1, pieces_of_row, j));
  for (int64_t k = 0; k < j->pieces; k++)
    memcpy(best + k * j->size, j->row + j->piece[k] * j->size, (size_t)j->size);
  j->at[i] = j->piece[j->find(best, j->pieces, j->low)];
  store(j, i, i + 1);
  return NC_OK;
}

static int long_rows(ArgmaxWork *j) {
  const int64_t bytes = j->pieces * (8 + j->size);
  void *p;
  int r = NC_OK;
  TRY(nc_hostalloc(&p, bytes));
  j->piece = p;
  for (int64_t i = 0; i < j->in.n && r == NC_OK; i++)
    r = long_row(j, i, (char *)p + 8 * j->pieces);
  nc_hostfree(p, bytes);
  return r;
}

/*
** Rows of few floats: many of them at once
*/
/* The rows, as floats or doubles: themselves, or in the buffer. */
static const void *widened(const ArgmaxWork *j, void *buffer, int64_t row,
                           int64_t rows) {
  const DType type = j->in.t->dtype;
  const char *x = (const char *)nc_data(j->in.t) + row * j->in.length * j->size;
  if (type == DT_f32 || type == DT_f64) return x;
  nc_kernels()->load[CT_f32][type](buffer, x, 1, rows * j->in.length);
  return buffer;
}

static void few_rows(void *ctx, int64_t begin, int64_t end) {
  enum { MOST = 4096 };
  const ArgmaxWork *j = ctx;
  const RowKernels *kernel = &nc_kernels()->row[j->in.t->dtype == DT_f64];
  float buffer[MOST];
  for (int64_t i = begin, rows; i < end && !nc_interrupted; i += rows) {
    rows = nc_min(end - i, MOST / j->in.length);
    kernel->argmax_rows(j->at + i, NULL, widened(j, buffer, i, rows), rows,
                        j->in.length, j->low);
    store(j, i, i + rows);
  }
}

int nc_cpu_argmax(const DimCall *c) {
  const DType type = c->x->dtype;
  ArgmaxWork j = { .find = finders[type],
                   .size = nc_dtypesize(type),
                   .at = nc_data(c->at),
                   .y = c->y ? nc_data(c->y) : NULL,
                   .low = c->op == DIM_ARGMIN };
  int done, r = nc_cpu_columns(c, &done);
  if (done) return r;
  r = nc_dimrows_of(&j.in, c->x, c->dims, type);
  const int64_t n = j.in.length;
  if (r == NC_OK && nc_numel(c->x) > 0) {
    j.pieces = nc_ceil_div(n, NC_PIECE);
    if (j.pieces > 1) r = long_rows(&j);
    else
      r = nc_parallel(j.in.n, 1 + 16384 / n,
                      n <= NC_FEW && nc_is_real(type) ? few_rows : whole_rows,
                      &j);
  }
  nc_release(j.in.t);
  return r;
}
