/* SPDX-License-Identifier: MIT */
/*
** nonzero.c - the request nonzero on the CPU: where a mask is true.
**
** The mask is cut in chunks.  A first pass counts the true elements of each, so
** that in the second every chunk knows where its results begin.
*/
#include "core/cpu/cpu.h"

#define CHUNK 32768 /* elements */

typedef struct NonzeroWork {
  const NonzeroCall *call;
  int64_t n, chunks;
  int64_t *first; /* true elements before each chunk; the last: all */
  int64_t *y;     /* the result */
} NonzeroWork;

static void count_chunks(void *ctx, int64_t begin, int64_t end) {
  const NonzeroWork *t = ctx;
  const uint8_t *m = nc_data(t->call->mask);
  for (int64_t c = begin; c < end; c++) {
    int64_t i = c * CHUNK, last = t->n - i < CHUNK ? t->n : i + CHUNK;
    int64_t sum = 0;
    for (; i < last; i++) sum += m[i];
    t->first[c] = sum;
  }
}

static int count_true(NonzeroWork *t) {
  int64_t sum = 0;
  TRY(nc_parallel(t->chunks, 1, count_chunks, t));
  for (int64_t c = 0; c < t->chunks; c++) {
    int64_t n = t->first[c];
    t->first[c] = sum;
    sum += n;
  }
  t->first[t->chunks] = sum;
  return NC_OK;
}

/* at[] = the coordinates of element i; returns the last one. */
static int64_t coordinates(const NonzeroWork *t, int64_t i, int64_t at[]) {
  for (int d = t->call->nd - 1; d >= 0; d--) {
    at[d] = i % t->call->size[d];
    i /= t->call->size[d];
  }
  return at[t->call->nd - 1];
}

/* The true elements among n from i on, whose first one has the coordinates
   at[], become results k and following, but no more than `stop'.  Returns the
   number of the next result.  One is overwritten unless m is true. */
static int64_t store_offsets(const NonzeroWork *t, const int64_t at[],
                             const uint8_t *m, int64_t n, int64_t k,
                             int64_t stop) {
  const int last = t->call->nd - 1;
  const int64_t step = t->call->step[last];
  int64_t base = 0;
  for (int d = 0; d <= last; d++) base += at[d] * t->call->step[d];
  for (int64_t j = 0; j < n && k < stop; j++) {
    t->y[k] = base + j * step;
    k += m[j];
  }
  return k;
}

static int64_t store_coordinates(const NonzeroWork *t, const int64_t at[],
                                 const uint8_t *m, int64_t n, int64_t k,
                                 int64_t stop) {
  const int last = t->call->nd - 1;
  for (int64_t j = 0; j < n && k < stop; j++) {
    int64_t *y = t->y + k * t->call->nd;
    for (int d = 0; d < last; d++) y[d] = at[d] + 1;
    y[last] = at[last] + j + 1;
    k += m[j];
  }
  return k;
}

static void store_chunks(void *ctx, int64_t begin, int64_t end) {
  const NonzeroWork *t = ctx;
  const uint8_t *m = nc_data(t->call->mask);
  int64_t at[NC_MAXDIM];
  for (int64_t c = begin; c < end && !nc_interrupted; c++) {
    int64_t k = t->first[c], stop = t->first[c + 1], i = c * CHUNK, n;
    for (; k < stop; i += n) {
      n = t->call->size[t->call->nd - 1] - coordinates(t, i, at);
      k = t->call->coordinates ? store_coordinates(t, at, m + i, n, k, stop)
                               : store_offsets(t, at, m + i, n, k, stop);
    }
  }
}

static int fill_result(Tensor **y, NonzeroWork *j) {
  int64_t size[2] = { 0, j->call->nd };
  TRY(count_true(j));
  size[0] = j->first[j->chunks];
  TRY(nc_new(y, &nc_cpu, DT_i64, j->call->coordinates ? 2 : 1, size));
  j->y = nc_data(*y);
  if (j->call->nd == 0) return NC_OK;
  return nc_parallel(j->chunks, 1, store_chunks, j);
}

int nc_cpu_nonzero(const NonzeroCall *t) {
  Tensor **const y = t->y;
  NonzeroWork j = { .call = t, .n = nc_numel(t->mask) };
  int64_t bytes;
  void *p;
  int r;
  *y = NULL;
  j.chunks = (j.n + CHUNK - 1) / CHUNK;
  bytes = (j.chunks + 1) * (int64_t)sizeof *j.first;
  TRY(nc_hostalloc(&p, bytes));
  j.first = p;
  r = fill_result(y, &j);
  nc_hostfree(p, bytes);
  return nc_release_failed(r, y, 1);
}
