/* SPDX-License-Identifier: MIT */
/*
** search.c - the requests search, sort_rows, bincount and even_bins on the CPU.
*/
#include <math.h>
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/portable.h"

#define PIECE 16384         /* elements between two looks at nc_interrupted */
#define MOST_BINS (1 << 24) /* whose numbers are exact in float32 */

/*
** search: bisection, of several values side by side and without branches, which
** nothing could predict
*/
#define LANES 8

typedef struct SearchWork {
  const Tensor *seq, *x;
  int64_t *at;
  int64_t n, m; /* elements of a sequence; values looked for in it */
  int steps;    /* after which no element is left, whatever the values */
  int right;
} SearchWork;

/* at[i] = the position of v[i] in the n elements of s, from 1, for at most
   LANES values; nan is larger than all others.  Each step looks at the middle
   one of `left' elements from `low' on. */
#define BISECT(type)                                                           \
  NC_INLINE int64_t passes_##type(type e, type v, int right) {                 \
    return right ? !(e > v) : !(e >= v);                                       \
  }                                                                            \
  NC_INLINE void bisect_##type(const type *s, int64_t n, const type *v,        \
                               int64_t *at, int64_t lanes, int steps,          \
                               int right) {                                    \
    int64_t low[LANES] = { 0 }, left[LANES];                                   \
    for (int64_t i = 0; i < lanes; i++) left[i] = n;                           \
    for (int k = 0; k < steps; k++)                                            \
      for (int64_t i = 0; i < lanes; i++) {                                    \
        const int64_t half = left[i] >> 1;                                     \
        const int64_t up = passes_##type(s[low[i] + half], v[i], right);       \
        low[i] += (half + 1) & -up;                                            \
        left[i] = half - (up & ~left[i] & 1);                                  \
      }                                                                        \
    for (int64_t i = 0; i < lanes; i++) /* one is left, or none */             \
      at[i] =                                                                  \
          1 + low[i] + (left[i] > 0 && passes_##type(s[low[i]], v[i], right)); \
  }                                                                            \
  /* Values from .. to-1, of one sequence. */                                  \
  static void search_##type(const SearchWork *w, int64_t from, int64_t to) {   \
    const type *s = nc_data(w->seq), *v = nc_data(w->x);                       \
    const int64_t n = w->n;                                                    \
    int64_t i = from;                                                          \
    if (w->seq->nd > 1) s += from / w->m * n;                                  \
    if (w->right)                                                              \
      for (; i + LANES <= to; i += LANES)                                      \
        bisect_##type(s, n, v + i, w->at + i, LANES, w->steps, 1);             \
    else                                                                       \
      for (; i + LANES <= to; i += LANES)                                      \
        bisect_##type(s, n, v + i, w->at + i, LANES, w->steps, 0);             \
    for (; i < to; i++)                                                        \
      bisect_##type(s, n, v + i, w->at + i, 1, w->steps, w->right);            \
  }
BISECT(int64_t)
BISECT(float)
BISECT(double)
#undef BISECT

static void search_range(void *ctx, int64_t begin, int64_t end) {
  const SearchWork *s = ctx;
  for (int64_t i = begin, to; i < end && !nc_interrupted; i = to) {
    to = nc_min(end, i + PIECE);
    if (s->seq->nd > 1) to = nc_min(to, (i / s->m + 1) * s->m);
    if (s->x->dtype == DT_i64) search_int64_t(s, i, to);
    else if (s->x->dtype == DT_f32) search_float(s, i, to);
    else search_double(s, i, to);
  }
}

int nc_cpu_search(const SearchCall *q) {
  const Tensor *seq = q->seq, *x = q->x;
  SearchWork s = {
    .seq = seq, .x = x, .at = nc_data(q->at), .right = q->right
  };
  s.n = seq->size[seq->nd - 1];
  s.m = x->nd ? x->size[x->nd - 1] : 1;
  while (s.n + 1 >= (int64_t)2 << s.steps) s.steps++;
  return nc_parallel(nc_numel(x), 4096, search_range, &s);
}

/*
** sort_rows: a merge sort of rows of sort keys, stored big-endian, so that
** memcmp compares them
*/
static void store_keys(unsigned char *to, const Tensor *x, int64_t from,
                       int64_t n) {
  const int64_t size = nc_dtypesize(x->dtype);
  const unsigned char *p = (const unsigned char *)nc_data(x) + from * size;
  for (int64_t i = 0; i < n; i++, p += size) {
    uint64_t key = nc_sortkey(x->dtype, p);
    for (int64_t b = size - 1; b >= 0; b--, key >>= 8)
      to[i * size + b] = (unsigned char)key;
  }
}

/* Sorts the row numbers *v by their keys, stable.  Swaps *v and w: the result
   is in *v. */
static int merge_rows(int64_t **v, int64_t *w, int64_t n,
                      const unsigned char *keys, size_t bytes) {
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t i = 0; i < n && !nc_interrupted; i += 2 * run) {
      int64_t a = i, enda = n - i < run ? n : i + run;
      int64_t b = enda, endb = n - b < run ? n : b + run;
      for (int64_t k = i; k < endb; k++) {
        const int second =
            a == enda ||
            (b < endb && memcmp(keys + (size_t)(*v)[b] * bytes,
                                keys + (size_t)(*v)[a] * bytes, bytes) < 0);
        w[k] = second ? (*v)[b++] : (*v)[a++];
      }
    }
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    int64_t *t = *v;
    *v = w;
    w = t;
  }
  return NC_OK;
}

int nc_cpu_sort_rows(const SortRowsCall *c) {
  const Tensor *x = c->x;
  const int64_t n = x->size[0], m = x->size[1];
  const int64_t bytes = m * nc_dtypesize(x->dtype);
  int64_t *y = nc_data(c->at), *v, *w;
  void *keys = NULL, *more = NULL;
  int r = nc_hostalloc(&keys, n * bytes);
  if (r == NC_OK) r = nc_hostalloc(&more, 2 * n * (int64_t)sizeof *v);
  if (r == NC_OK) {
    v = more;
    w = v + n;
    for (int64_t i = 0; i < n && !nc_interrupted; i++) {
      store_keys((unsigned char *)keys + i * bytes, x, i * m, m);
      v[i] = i;
    }
    r = merge_rows(&v, w, n, keys, (size_t)bytes);
    for (int64_t i = 0; r == NC_OK && i < n; i++) y[i] = v[i] + 1;
  }
  nc_hostfree(keys, n * bytes);
  nc_hostfree(more, 2 * n * (int64_t)sizeof *v);
  return r;
}

/*
** bincount
*/
int nc_cpu_bincount(const BincountCall *c) {
  const int64_t n = nc_numel(c->x), *at = nc_data(c->x);
  const double *w = c->weight ? nc_data(c->weight) : NULL;
  int64_t *count = nc_data(c->y);
  double *sum = nc_data(c->y);
  for (int64_t i = 0; i < n && !nc_interrupted;)
    for (int64_t end = n - i < PIECE ? n : i + PIECE; i < end; i++) {
      if (w) sum[at[i]] += w[i];
      else count[at[i]]++;
    }
  return nc_interrupted ? nc_fail(NC_EINTR, "interrupted") : NC_OK;
}

/*
** even_bins
*/
typedef struct EvenBins {
  const Tensor *x;
  const void *edge; /* NULL: the bin is computed from the range */
  double from, to;
  int64_t n, *count; /* bins; counts of each chunk, n for each */
  int64_t chunk;     /* elements of a chunk */
  double scale;      /* bins per unit */
} EvenBins;

/* The bin is computed, then corrected by comparing with the edges: it is at
   most one off, since rounding moves an edge by less than a bin. */
#define EVENBINS(type)                                                      \
  static int check_edges_##type(EvenBins *b) {                              \
    const type *edge = b->edge;                                             \
    for (int64_t i = 0; i < b->n; i++)                                      \
      if (!(edge[i] < edge[i + 1])) return 0;                               \
    b->scale = (double)b->n / ((double)edge[b->n] - (double)edge[0]);       \
    return isfinite(b->scale) && b->scale > 0;                              \
  }                                                                         \
  static void count_##type(const EvenBins *b, int64_t *count, int64_t from, \
                           int64_t to) {                                    \
    const type *x = nc_data(b->x), *edge = b->edge;                         \
    const type low = edge[0], high = edge[b->n];                            \
    const int64_t step = b->x->step[0], last = b->n - 1;                    \
    for (int64_t i = from; i < to; i++) {                                   \
      const type e = x[i * step];                                           \
      int64_t k;                                                            \
      if (!(e >= low && e <= high)) continue;                               \
      k = (int64_t)(((double)e - (double)low) * b->scale);                  \
      k = k > last ? last : k;                                              \
      while (e < edge[k]) k--;                                              \
      while (k < last && e >= edge[k + 1]) k++;                             \
      count[k]++;                                                           \
    }                                                                       \
  }
EVENBINS(float)
EVENBINS(double)
#undef EVENBINS

/* For the bins of a range.  Those of a block are found first, n for none, so
   that the compiler has no branch to keep. */
#define RANGE_BINS(type)                                            \
  static void count_range_##type(const EvenBins *b, int64_t *count, \
                                 int64_t from, int64_t to) {        \
    enum { BLOCK = 512 };                                           \
    const type low = (type)b->from, top = (type)b->to;              \
    const type width = top - low, bins = (type)b->n;                \
    const int32_t none = (int32_t)b->n;                             \
    const int64_t step = b->x->step[0];                             \
    const type *x = (const type *)nc_data(b->x) + from * step;      \
    int32_t bin[BLOCK];                                             \
    for (int64_t i = from; i < to; i += BLOCK, x += BLOCK * step) { \
      const int n = (int)(to - i < BLOCK ? to - i : BLOCK);         \
      for (int k = 0; k < n; k++) {                                 \
        const type e = x[k * step], v = (e - low) * bins / width;   \
        const int is = (e >= low) & (e <= top);                     \
        const int32_t found = (int32_t)(is && v < bins ? v : 0);    \
        bin[k] = !is ? none : v < bins ? found : none - 1;          \
      }                                                             \
      for (int k = 0; k < n; k++) count[bin[k]]++;                  \
    }                                                               \
  }
RANGE_BINS(float)
RANGE_BINS(double)
#undef RANGE_BINS

/* The counts of elements from .. to-1. */
static void count_piece(const EvenBins *b, int64_t *count, int64_t from,
                        int64_t to) {
  const int isfloat = b->x->dtype == DT_f32;
  if (b->edge && isfloat) count_float(b, count, from, to);
  else if (b->edge) count_double(b, count, from, to);
  else if (isfloat) count_range_float(b, count, from, to);
  else count_range_double(b, count, from, to);
}

static void count_range(void *ctx, int64_t begin, int64_t end) {
  const EvenBins *b = ctx;
  for (int64_t p = begin; p < end; p++) {
    int64_t i = p * b->chunk, stop = nc_numel(b->x);
    if (stop - i > b->chunk) stop = i + b->chunk;
    for (; i < stop && !nc_interrupted; i += PIECE)
      count_piece(b, b->count + p * (b->n + 1), i, nc_min(stop, i + PIECE));
  }
}

int nc_cpu_even_bins(const EvenBinsCall *c) {
  const Tensor *x = c->x;
  const int64_t n = c->y->size[0], length = nc_numel(x);
  EvenBins b = { .x = x, .from = c->from, .to = c->to, .n = n };
  int64_t nchunks = length / (4096 + 4 * n), *sum = nc_data(c->y);
  const int64_t row = n + 1; /* counts of a chunk; the last is of no bin */
  void *p;
  int r;
  b.edge = c->edge ? nc_data(c->edge) : NULL;
  *c->done = b.edge == NULL       ? n <= MOST_BINS
             : x->dtype == DT_f32 ? check_edges_float(&b)
                                  : check_edges_double(&b);
  if (!*c->done) return NC_OK;
  if (nchunks > nc_threads()) nchunks = nc_threads();
  if (nchunks < 1) nchunks = 1;
  b.chunk = (length + nchunks - 1) / nchunks;
  TRY(nc_hostalloc(&p, nchunks * row * 8));
  b.count = memset(p, 0, (size_t)(nchunks * row * 8));
  r = nc_parallel(nchunks, 1, count_range, &b);
  for (int64_t k = 0; k < nchunks; k++)
    for (int64_t i = 0; i < n; i++) sum[i] += b.count[k * row + i];
  nc_hostfree(p, nchunks * row * 8);
  return r;
}
