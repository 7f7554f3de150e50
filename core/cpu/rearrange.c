/* SPDX-License-Identifier: MIT */
/*
** rearrange.c - on the CPU, copies in another order: lines reversed, triangles
** of matrices, tensors put together.  Other devices say the same by indices,
** rows, and copies of parts.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/portable.h"

#define GRAIN 32768 /* elements worth a thread */
#define PIECE 65536 /* elements between two looks at the interrupt */

/* n elements to y from x, whose elements are `step' bytes apart. */
static void spread(char *y, const char *x, int64_t step, int64_t n,
                   int64_t esize) {
#define CASE(bytes)                                    \
  case bytes:                                          \
    if (step == -bytes)                                \
      NC_IVDEP for (int64_t i = 0; i < n; i++)         \
          memcpy(y + i * bytes, x - i * bytes, bytes); \
    else                                               \
      for (int64_t i = 0; i < n; i++)                  \
        memcpy(y + i * bytes, x + i * step, bytes);    \
    break;
  if (step == esize) {
    memcpy(y, x, (size_t)(n * esize));
    return;
  }
  switch (esize) { CASE(1) CASE(2) CASE(4) CASE(8) }
#undef CASE
}

/*
** Lines, of a result that is dense
*/
typedef struct DimRows {
  const char *x; /* where the first element comes from */
  char *y;
  int nd;
  int64_t esize, size[NC_MAXDIM], step[NC_MAXDIM]; /* of x, in bytes */
} DimRows;

/* Adds a dimension, joined with the last one if x runs on through both. */
static void adddim(DimRows *l, int64_t size, int64_t step) {
  if (size == 1) return;
  if (l->nd > 0 && l->step[l->nd - 1] == step * size)
    l->size[l->nd - 1] *= size;
  else l->size[l->nd++] = size;
  l->step[l->nd - 1] = step;
}

/* Where line i begins in x. */
static const char *linestart(const DimRows *l, int64_t i) {
  const char *x = l->x;
  for (int d = l->nd - 2; d >= 0; d--) {
    x += i % l->size[d] * l->step[d];
    i /= l->size[d];
  }
  return x;
}

/* Elements begin .. end-1 of the result. */
static void copylines(void *ctx, int64_t begin, int64_t end) {
  const DimRows *l = ctx;
  const int64_t length = l->size[l->nd - 1], step = l->step[l->nd - 1];
  for (int64_t i = begin; i < end && !nc_interrupted;) {
    const int64_t from = i % length;
    int64_t n = length - from;
    if (n > end - i) n = end - i;
    if (n > PIECE) n = PIECE;
    spread(l->y + i * l->esize, linestart(l, i / length) + from * step, step, n,
           l->esize);
    i += n;
  }
}

int nc_cpu_flip(const Device *device, const FlipCall *c) {
  const Tensor *x = c->x;
  DimRows l = { .x = nc_data(x),
                .y = nc_data(c->y),
                .esize = nc_dtypesize(x->dtype) };
  (void)device;
  for (int d = 0; d < x->nd; d++) {
    const int64_t step = x->step[d] * l.esize;
    if (c->dims >> d & 1) l.x += (x->size[d] - 1) * step;
    adddim(&l, x->size[d], c->dims >> d & 1 ? -step : step);
  }
  if (l.nd == 0) l.size[l.nd++] = 1; /* one element */
  return nc_parallel(nc_numel(x), GRAIN, copylines, &l);
}

/*
** Triangles
*/
/* Rows begin .. end-1 of all matrices. */
static void triangles(void *ctx, int64_t begin, int64_t end) {
  const TriangleCall *t = ctx;
  const Tensor *x = t->x;
  const int nd = x->nd;
  const int64_t rows = x->size[nd - 2], n = x->size[nd - 1];
  const int64_t e = nc_dtypesize(x->dtype), step = x->step[nd - 1] * e;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    char *y = (char *)nc_data(t->y) + i * n * e;
    const char *from = nc_data(x);
    int64_t cut, at = i;
    for (int d = nd - 2; d >= 0; d--) {
      from += at % x->size[d] * x->step[d] * e;
      at /= x->size[d];
    }
    /* columns before `cut' are on one side of the diagonal */
    cut = i % rows + !t->upper + t->diagonal;
    cut = cut < 0 ? 0 : cut > n ? n : cut;
    if (t->upper) {
      memset(y, 0, (size_t)(cut * e));
      spread(y + cut * e, from + cut * step, step, n - cut, e);
    } else {
      spread(y, from, step, cut, e);
      memset(y + cut * e, 0, (size_t)((n - cut) * e));
    }
  }
}

int nc_cpu_triangle(const Device *d, const TriangleCall *c) {
  const int64_t n = c->x->size[c->x->nd - 1];
  (void)d;
  return nc_parallel(nc_numel(c->x) / n, 1 + GRAIN / n, triangles, (void *)c);
}

/*
** Joined
*/
/* Bytes of one index of the dimensions before the concatenated one. */
static int64_t rowbytes(const CatCall *c, const Tensor *t) {
  return nc_numel(t) * nc_dtypesize(t->dtype) / c->outer;
}

/* Rows begin .. end-1 of the result, each made of a row of every x. */
static void catrows(void *ctx, int64_t begin, int64_t end) {
  const CatCall *c = ctx;
  const int64_t bytes = rowbytes(c, c->y);
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    char *y = (char *)nc_data(c->y) + i * bytes;
    for (int k = 0; k < c->n; k++) {
      const Tensor *x = c->x[k];
      const int64_t n = rowbytes(c, x);
      memcpy(y, (const char *)nc_data(x) + i * n, (size_t)n);
      y += n;
    }
  }
}

int nc_cpu_cat(const Device *d, const CatCall *c) {
  const int64_t bytes = rowbytes(c, c->y);
  (void)d;
  return nc_parallel(c->outer, 1 + GRAIN / (1 + bytes / 4), catrows, (void *)c);
}
