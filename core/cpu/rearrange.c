/* SPDX-License-Identifier: MIT */
/*
** rearrange.c - the requests flip, triangle and cat on the CPU: copies in
** another order.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

#define GRAIN 32768   /* elements that are worth a thread */
#define PIECE 65536   /* elements between two looks at nc_interrupted */
#define SHORT_ROW 512 /* bytes of a row that is cheap to read again */

void nc_copy_strided(void *to, int64_t ystep, const void *from, int64_t xstep,
                     int64_t n, int64_t size) {
  char *y = to;
  const char *x = from;
#define CASE(bytes)                                  \
  case bytes:                                        \
    if (ystep == bytes)                              \
      for (int64_t i = 0; i < n; i++)                \
        memcpy(y + i * bytes, x + i * xstep, bytes); \
    else                                             \
      for (int64_t i = 0; i < n; i++)                \
        memcpy(y + i * ystep, x + i * xstep, bytes); \
    break;
  if (ystep == size && xstep == size) memcpy(y, x, (size_t)(n * size));
  else if (ystep == size && xstep == -size && size <= 8)
    nc_kernels()->reverse[(size > 1) + (size > 2) + (size > 4)](y, x, n);
  else switch (size) {
      CASE(1) CASE(2) CASE(4) CASE(8) CASE(16)
    }
#undef CASE
}

void nc_copy_rows(void *to, int64_t ystep, const void *from, int64_t xstep,
                  int64_t rows, int64_t bytes) {
  char *y = to;
  const char *x = from;
#define CASE(n)                                                       \
  case n:                                                             \
    for (; rows > 0; rows--, y += ystep, x += xstep) memcpy(y, x, n); \
    break;
  /* clang-format off */
  switch (bytes) {
    CASE(2) CASE(4) CASE(6) CASE(8) CASE(12) CASE(16) CASE(24) CASE(32)
    default:
      for (; rows > 0; rows--, y += ystep, x += xstep)
        memcpy(y, x, (size_t)bytes);
  }
  /* clang-format on */
#undef CASE
}

/*
** flip
*/
typedef struct FlipWork {
  const char *x; /* the element that comes first */
  char *y;
  int nd;
  int64_t esize, size[NC_MAXDIM], step[NC_MAXDIM]; /* of x, in bytes */
} FlipWork;

/* Adds a dimension; merges it with the last one if x has one stride over
   both. */
static void add_dim(FlipWork *l, int64_t size, int64_t step) {
  if (size == 1) return;
  if (l->nd > 0 && l->step[l->nd - 1] == step * size)
    l->size[l->nd - 1] *= size;
  else l->size[l->nd++] = size;
  l->step[l->nd - 1] = step;
}

/* The first element of row i of the result, in x. */
static const char *row_start(const FlipWork *l, int64_t i) {
  const char *x = l->x;
  for (int d = l->nd - 2; d >= 0; d--) {
    x += i % l->size[d] * l->step[d];
    i /= l->size[d];
  }
  return x;
}

/* y = rows of n elements, each reversed, of a dense x, from row `i' on. */
#define TURN_ROWS(type)                                                    \
  static void turn_rows_##type(const FlipWork *l, int64_t i, int64_t rows, \
                               int64_t n) {                                \
    const type *x = (const type *)(const void *)row_start(l, i);           \
    type *y = (type *)(void *)(l->y + i * n * l->esize);                   \
    for (; rows > 0; rows--, y += n, x += n)                               \
      for (int64_t k = 0; k < n; k++) y[k] = x[-k];                        \
  }
TURN_ROWS(uint8_t)
TURN_ROWS(uint16_t)
TURN_ROWS(uint32_t)
TURN_ROWS(uint64_t)
#undef TURN_ROWS

/* Are these short rows, one after the other? */
static int is_few(const FlipWork *l) {
  const int last = l->nd - 1;
  return l->esize <= 8 && l->nd == 2 && l->size[last] <= NC_FEW &&
         l->step[last] == -l->esize && l->step[0] == l->size[last] * l->esize;
}

static void turn_few(void *ctx, int64_t begin, int64_t end) {
  const FlipWork *l = ctx;
  const int64_t n = l->size[1], most = PIECE / n;
  for (int64_t i = begin, rows; i < end && !nc_interrupted; i += rows) {
    rows = nc_min(most, end - i);
    switch (l->esize) {
      case 1: turn_rows_uint8_t(l, i, rows, n); break;
      case 2: turn_rows_uint16_t(l, i, rows, n); break;
      case 4: turn_rows_uint32_t(l, i, rows, n); break;
      default: turn_rows_uint64_t(l, i, rows, n);
    }
  }
}

/* Elements begin .. end-1 of the result. */
static void flip_range(void *ctx, int64_t begin, int64_t end) {
  const FlipWork *l = ctx;
  const int64_t length = l->size[l->nd - 1], step = l->step[l->nd - 1];
  for (int64_t i = begin; i < end && !nc_interrupted;) {
    const int64_t from = i % length;
    int64_t n = length - from;
    if (n > end - i) n = end - i;
    if (n > PIECE) n = PIECE;
    nc_copy_strided(l->y + i * l->esize, l->esize,
                    row_start(l, i / length) + from * step, step, n, l->esize);
    i += n;
  }
}

int nc_cpu_flip(const FlipCall *c) {
  const Tensor *x = c->x;
  FlipWork l = { .x = nc_data(x),
                 .y = nc_data(c->y),
                 .esize = nc_dtypesize(x->dtype) };
  for (int d = 0; d < x->nd; d++) {
    const int64_t step = x->step[d] * l.esize;
    if (c->dims >> d & 1) l.x += (x->size[d] - 1) * step;
    add_dim(&l, x->size[d], c->dims >> d & 1 ? -step : step);
  }
  if (l.nd == 0) l.size[l.nd++] = 1; /* one element */
  if (is_few(&l))
    return nc_parallel(l.size[0], 1 + GRAIN / l.size[1], turn_few, &l);
  return nc_parallel(nc_numel(x), GRAIN, flip_range, &l);
}

/*
** tril, triu
*/
/* Rows begin .. end-1 of all matrices. */
static void triangle_rows(void *ctx, int64_t begin, int64_t end) {
  const TriangleCall *t = ctx;
  const Tensor *x = t->x;
  const int nd = x->nd;
  const int64_t rows = x->size[nd - 2], n = x->size[nd - 1];
  const int64_t e = nc_dtypesize(x->dtype), step = x->step[nd - 1] * e;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    char *y = (char *)nc_data(t->y) + i * n * e;
    const char *from = nc_data(x);
    int64_t bound, at = i;
    for (int d = nd - 2; d >= 0; d--) {
      from += at % x->size[d] * x->step[d] * e;
      at /= x->size[d];
    }
    /* columns before `bound' are left of the diagonal */
    bound = i % rows + !t->upper + t->diagonal;
    bound = bound < 0 ? 0 : bound > n ? n : bound;
    if (t->upper) {
      memset(y, 0, (size_t)(bound * e));
      nc_copy_strided(y + bound * e, e, from + bound * step, step, n - bound,
                      e);
    } else {
      nc_copy_strided(y, e, from, step, bound, e);
      memset(y + bound * e, 0, (size_t)((n - bound) * e));
    }
  }
}

int nc_cpu_triangle(const TriangleCall *c) {
  const int64_t n = c->x->size[c->x->nd - 1];
  return nc_parallel(nc_numel(c->x) / n, 1 + GRAIN / n, triangle_rows,
                     (void *)c);
}

/*
** cat
*/
/* Bytes of one index of the dimensions before the concatenated one. */
static int64_t row_bytes(const CatCall *c, const Tensor *t) {
  return nc_numel(t) * nc_dtypesize(t->dtype) / c->outer;
}

/* Rows begin .. end-1 of the result, each made of a row of every x. */
static void cat_rows(void *ctx, int64_t begin, int64_t end) {
  const CatCall *c = ctx;
  const int64_t bytes = row_bytes(c, c->y);
  if (bytes <= SHORT_ROW) {
    char *y = (char *)nc_data(c->y) + begin * bytes;
    for (int k = 0; k < c->n; k++) {
      const int64_t n = row_bytes(c, c->x[k]);
      nc_copy_rows(y, bytes, (char *)nc_data(c->x[k]) + begin * n, n,
                   end - begin, n);
      y += n;
    }
    return;
  }
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    char *y = (char *)nc_data(c->y) + i * bytes;
    for (int k = 0; k < c->n; k++) {
      const Tensor *x = c->x[k];
      const int64_t n = row_bytes(c, x);
      memcpy(y, (const char *)nc_data(x) + i * n, (size_t)n);
      y += n;
    }
  }
}

int nc_cpu_cat(const CatCall *c) {
  const int64_t bytes = row_bytes(c, c->y);
  return nc_parallel(c->outer, 1 + GRAIN / (1 + bytes / 4), cat_rows,
                     (void *)c);
}
