/* SPDX-License-Identifier: MIT */
/*
** mask.c - where a mask is true: as offsets for indexing, as positions for
** nonzero.
**
** The mask is cut in chunks.  Their trues are counted first, so that every
** chunk knows where its own go.
*/
#include <string.h>

#include "gather.h"
#include "op.h"

#define CHUNK 32768           /* elements */

/*
** Counting
*/
typedef struct Trues {
  Tensor *mask;               /* bool, dense, on the CPU */
  int64_t n, chunks;
  int64_t *before;            /* trues before each chunk; the last: all */
  int64_t *y;                 /* what is filled */
  int nd;                     /* the mask's dimensions, as they are walked */
  int64_t size[NC_MAXDIM], step[NC_MAXDIM];
} Trues;

static void countchunks(void *ctx, int64_t begin, int64_t end) {
  const Trues *t = ctx;
  const uint8_t *m = nc_data(t->mask);
  for (int64_t c = begin; c < end; c++) {
    int64_t i = c * CHUNK, last = t->n - i < CHUNK ? t->n : i + CHUNK;
    int64_t sum = 0;
    for (; i < last; i++) sum += m[i];
    t->before[c] = sum;
  }
}

static int count(Trues *t) {
  int64_t sum = 0;
  TRY(nc_parallel(t->chunks, 1, countchunks, t));
  for (int64_t c = 0; c < t->chunks; c++) {
    int64_t n = t->before[c];
    t->before[c] = sum;
    sum += n;
  }
  t->before[t->chunks] = sum;
  return NC_OK;
}

static int find(Trues *t, Tensor *x) {
  Tensor *host = NULL, *truth = NULL;
  void *p;
  int r;
  memset(t, 0, sizeof *t);
  if ((r = nc_todevice(&host, x, &nc_cpu)) == NC_OK &&
      (r = nc_cast(&truth, host, DT_b8)) == NC_OK)
    r = nc_dense(&t->mask, truth);
  nc_release(host);
  nc_release(truth);
  TRY(r);
  t->n = nc_numel(x);
  t->chunks = (t->n + CHUNK - 1) / CHUNK;
  TRY(nc_hostalloc(&p, (t->chunks + 1) * (int64_t)sizeof *t->before));
  t->before = p;
  nc_count(0, 2 * t->n);
  return count(t);
}

static void forget(Trues *t) {
  if (t->before)
    nc_hostfree(t->before, (t->chunks + 1) * (int64_t)sizeof *t->before);
  nc_release(t->mask);
}

/* The coordinates of element i; the innermost is given back. */
static int64_t coordinates(const Trues *t, int64_t i, int64_t at[]) {
  for (int d = t->nd - 1; d >= 0; d--) {
    at[d] = i % t->size[d];
    i /= t->size[d];
  }
  return at[t->nd - 1];
}

/*
** Offsets
*/
static void offsetchunks(void *ctx, int64_t begin, int64_t end) {
  const Trues *t = ctx;
  const uint8_t *m = nc_data(t->mask);
  const int last = t->nd - 1;
  const int64_t step = t->step[last];
  int64_t at[NC_MAXDIM];
  for (int64_t c = begin; c < end && !nc_interrupted; c++) {
    int64_t k = t->before[c], stop = t->before[c + 1], i = c * CHUNK;
    while (k < stop) {
      int64_t from = coordinates(t, i, at), n = t->size[last] - from, base = 0;
      for (int d = 0; d <= last; d++) base += at[d] * t->step[d];
      for (int64_t j = 0; j < n && k < stop; j++) {
        t->y[k] = base + j * step;    /* stays only if there is a true */
        k += m[i + j];
      }
      i += n;
    }
  }
}

/* Joins dimensions of the mask along which x runs evenly. */
static void walkas(Trues *t, const Tensor *x, const By *by) {
  t->nd = 0;
  for (int d = by->dim; d < by->dim + by->dims; d++) {
    int last = t->nd - 1;
    if (last >= 0 && t->step[last] == x->step[d] * x->size[d]) {
      t->size[last] *= x->size[d];
    } else {
      last = t->nd++;
      t->size[last] = x->size[d];
    }
    t->step[last] = x->step[d];
  }
}

int nc_maskoffsets(Tensor **y, const Tensor *x, const By *by) {
  Trues t;
  int r;
  *y = NULL;
  if ((r = find(&t, by->t)) == NC_OK &&
      (r = nc_new(y, &nc_cpu, DT_i64, 1, &t.before[t.chunks])) == NC_OK) {
    walkas(&t, x, by);
    t.y = nc_data(*y);
    r = nc_parallel(t.chunks, 1, offsetchunks, &t);
  }
  forget(&t);
  if (r != NC_OK) {
    nc_release(*y);
    *y = NULL;
  }
  return r;
}

/*
** Positions
*/
static void positionchunks(void *ctx, int64_t begin, int64_t end) {
  const Trues *t = ctx;
  const uint8_t *m = nc_data(t->mask);
  const int last = t->nd - 1;
  int64_t at[NC_MAXDIM];
  for (int64_t c = begin; c < end && !nc_interrupted; c++) {
    int64_t k = t->before[c], stop = t->before[c + 1], i = c * CHUNK;
    while (k < stop) {
      int64_t from = coordinates(t, i, at), n = t->size[last] - from;
      for (int64_t j = 0; j < n && k < stop; j++) {
        int64_t *y = t->y + k * t->nd;
        for (int d = 0; d < last; d++) y[d] = at[d] + 1;
        y[last] = from + j + 1;
        k += m[i + j];
      }
      i += n;
    }
  }
}

static int nonzero(Tensor **y, Tensor *x) {
  int64_t size[2] = { 0, x->nd };
  Tensor *host = NULL;
  Trues t;
  int r;
  if ((r = find(&t, x)) == NC_OK) {
    size[0] = t.before[t.chunks];
    r = nc_new(&host, &nc_cpu, DT_i64, 2, size);
  }
  if (r == NC_OK && x->nd > 0) {
    t.nd = x->nd;
    memcpy(t.size, x->size, sizeof t.size);
    t.y = nc_data(host);
    r = nc_parallel(t.chunks, 1, positionchunks, &t);
  }
  if (r == NC_OK) r = nc_todevice(y, host, nc_device(x));
  forget(&t);
  nc_release(host);
  return r;
}

int nc_op_nonzero(Call *c) {
  return nc_blamed(nonzero(&c->out[0], c->arg[0].t), "nonzero", c->arg, 1);
}
