/* SPDX-License-Identifier: MIT */
/*
** nonzero.c - on the CPU, where a mask is true.
**
** The mask is cut in chunks.  Their trues are counted first, so that every
** chunk knows where its own go.
*/
#include "core/cpu/cpu.h"

#define CHUNK 32768 /* elements */

typedef struct Job {
  const NonzeroCall *as;
  int64_t n, chunks;
  int64_t *before; /* trues before each chunk; the last: all */
  int64_t *y;      /* what is filled */
} Job;

static void countchunks(void *ctx, int64_t begin, int64_t end) {
  const Job *t = ctx;
  const uint8_t *m = nc_data(t->as->mask);
  for (int64_t c = begin; c < end; c++) {
    int64_t i = c * CHUNK, last = t->n - i < CHUNK ? t->n : i + CHUNK;
    int64_t sum = 0;
    for (; i < last; i++) sum += m[i];
    t->before[c] = sum;
  }
}

static int count(Job *t) {
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

/* The coordinates of element i; the innermost is given back. */
static int64_t coordinates(const Job *t, int64_t i, int64_t at[]) {
  for (int d = t->as->nd - 1; d >= 0; d--) {
    at[d] = i % t->as->size[d];
    i /= t->as->size[d];
  }
  return at[t->as->nd - 1];
}

static void offsetchunks(void *ctx, int64_t begin, int64_t end) {
  const Job *t = ctx;
  const uint8_t *m = nc_data(t->as->mask);
  const int last = t->as->nd - 1;
  const int64_t step = t->as->step[last];
  int64_t at[NC_MAXDIM];
  for (int64_t c = begin; c < end && !nc_interrupted; c++) {
    int64_t k = t->before[c], stop = t->before[c + 1], i = c * CHUNK;
    while (k < stop) {
      int64_t from = coordinates(t, i, at), base = 0;
      int64_t n = t->as->size[last] - from;
      for (int d = 0; d <= last; d++) base += at[d] * t->as->step[d];
      for (int64_t j = 0; j < n && k < stop; j++) {
        t->y[k] = base + j * step; /* stays only if there is a true */
        k += m[i + j];
      }
      i += n;
    }
  }
}

static void positionchunks(void *ctx, int64_t begin, int64_t end) {
  const Job *t = ctx;
  const uint8_t *m = nc_data(t->as->mask);
  const int last = t->as->nd - 1;
  int64_t at[NC_MAXDIM];
  for (int64_t c = begin; c < end && !nc_interrupted; c++) {
    int64_t k = t->before[c], stop = t->before[c + 1], i = c * CHUNK;
    while (k < stop) {
      int64_t from = coordinates(t, i, at), n = t->as->size[last] - from;
      for (int64_t j = 0; j < n && k < stop; j++) {
        int64_t *y = t->y + k * t->as->nd;
        for (int d = 0; d < last; d++) y[d] = at[d] + 1;
        y[last] = from + j + 1;
        k += m[i + j];
      }
      i += n;
    }
  }
}

static int find(Tensor **y, const Device *d, Job *j) {
  int64_t size[2] = { 0, j->as->nd };
  TRY(count(j));
  size[0] = j->before[j->chunks];
  TRY(nc_new(y, d, DT_i64, j->as->coordinates ? 2 : 1, size));
  j->y = nc_data(*y);
  if (j->as->nd == 0) return NC_OK;
  return nc_parallel(j->chunks, 1,
                     j->as->coordinates ? positionchunks : offsetchunks, j);
}

int nc_cpu_nonzero(const Device *d, const NonzeroCall *t) {
  Tensor **const y = t->y;
  Job j = { .as = t, .n = nc_numel(t->mask) };
  int64_t bytes;
  void *p;
  int r;
  *y = NULL;
  j.chunks = (j.n + CHUNK - 1) / CHUNK;
  bytes = (j.chunks + 1) * (int64_t)sizeof *j.before;
  TRY(nc_hostalloc(&p, bytes));
  j.before = p;
  r = find(y, d, &j);
  nc_hostfree(p, bytes);
  if (r != NC_OK) {
    nc_release(*y);
    *y = NULL;
  }
  return r;
}
