/* SPDX-License-Identifier: MIT */
/*
** summary.c - nc_summary, for the display: minimum, maximum, mean, standard
** deviation, counts of nan and inf, a histogram.
**
** Elements are read in the order of memory, in chunks that the threads take.
** Each chunk fills a Part; the parts are merged in order (Chan, Golub and
** LeVeque, 1979), so that the result does not depend on the number of threads.
*/
#include "core/base/mapping.h"
#include "core/ops.h"
#include "core/tensor.h"

#include <math.h>
#include <string.h>

#include "core/cpu/kernels/kernels.h"

#define BLOCK 1024  /* elements read at once; they fit in the L1 cache */
#define GRAIN 65536 /* elements of a chunk: less than a millisecond */
#define PARTS 16384
#define BINS 12
#define LANES 8
#define RUN 32            /* consecutive elements of a sample */
#define COUNTED (1 << 19) /* about how many elements a histogram counts */

typedef struct Part {
  int64_t n; /* finite elements */
  int64_t nan, posinf, neginf, zero, firstbad;
  double min, max, mean, m2;
  int64_t imin, imax;
  int64_t histogram[BINS];
} Part;

typedef struct Scan {
  const char *p; /* first element */
  DType type;
  int nd; /* dimensions, merged where possible, the largest stride first */
  int64_t size[NC_MAXDIM], step[NC_MAXDIM];
  int64_t flat[NC_MAXDIM]; /* their strides in row-major order */
  int sorted;              /* does the order differ from row-major? */
  int64_t n, seen;
  int64_t group, rest; /* of a sample: RUN elements are read of each `group';
                          `rest' elements are left over */
  int64_t grain;
  Part *part;
  double low, range; /* of the histogram */
} Scan;

/* Returns the offset of element i, and sets its coordinates at[]. */
static int64_t locate(const Scan *s, int64_t i, int64_t at[]) {
  int64_t offset = 0;
  for (int d = s->nd - 1; d >= 0; d--) {
    at[d] = i % s->size[d];
    offset += at[d] * s->step[d];
    i /= s->size[d];
  }
  return offset;
}

/* Returns a pseudo-random number below n that depends on i only. */
static int64_t chance(int64_t i, int64_t n) {
  const uint64_t h = ((uint64_t)i * 2654435761u) & 0xffffffff;
  if (n > INT32_MAX) n = INT32_MAX;
  return (int64_t)((h * (uint64_t)n) >> 32);
}

/* Returns the number of the i-th element that is read.  A run is at a random
   place in its group, since at a fixed one a sample of a matrix might read a
   few columns only. */
static int64_t position(const Scan *s, int64_t i) {
  const int64_t g = i / RUN;
  if (s->group == 0) return i;
  return g * s->group +
         (int64_t)((double)g * RUN / (double)s->seen * (double)s->rest) +
         chance(g, s->group - RUN + 1) + i % RUN;
}

/* Returns the row-major number of the i-th element that is read. */
static int64_t rowmajor(const Scan *s, int64_t i) {
  int64_t at[NC_MAXDIM], y = 0;
  if (!s->sorted) return position(s, i);
  locate(s, position(s, i), at);
  for (int d = 0; d < s->nd; d++) y += at[d] * s->flat[d];
  return y;
}

/* Moves the coordinates at[] and the offset by `run' elements, which do not
   reach beyond the end of the last dimension; returns the new offset. */
static int64_t advance(const Scan *s, int64_t at[], int64_t offset,
                       int64_t run) {
  int d = s->nd - 1;
  at[d] += run;
  offset += run * s->step[d];
  for (; d > 0 && at[d] == s->size[d]; d--) {
    offset += s->step[d - 1] - at[d] * s->step[d];
    at[d] = 0;
    at[d - 1]++;
  }
  return offset;
}

/* Loads n elements from the i-th on, 8 bytes each, into x. */
static void fetch(const Scan *s, char *x, int64_t i, int64_t n) {
  const int isfloat = !nc_is_exact(s->type);
  const ConvertKernel load =
      nc_kernels()->load[isfloat ? CT_f64 : CT_i64][s->type];
  const int64_t width = nc_dtypesize(s->type);
  const int last = s->nd - 1;
  int64_t at[NC_MAXDIM], run = 1, offset = locate(s, position(s, i), at);
  for (;; x += 8 * run, i += run, n -= run) {
    if (last >= 0) run = s->size[last] - at[last];
    if (s->group && run > RUN - i % RUN) run = RUN - i % RUN;
    if (run > n) run = n;
    load(x, s->p + offset * width, last < 0 ? 1 : s->step[last], run);
    if (run == n) return;
    offset = s->group ? locate(s, position(s, i + run), at)
                      : advance(s, at, offset, run);
  }
}

/*
** Blocks
*/

/* Returns the sum of x, or of the squared deviations from *mean unless that
   is NULL. */
static double sum(const double *x, int64_t n, const double *mean) {
  double a[LANES] = { 0 }, m = mean ? *mean : 0, y;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) {
      y = x[i + j] - m;
      a[j] += mean ? y * y : y;
    }
  for (; i < n; i++) {
    y = x[i] - m;
    a[0] += mean ? y * y : y;
  }
  for (int j = 1; j < LANES; j++) a[0] += a[j];
  return a[0];
}

/* Records that the i-th element is not finite.  `before' says that the
   element before it is not finite either; in a row only the first of such
   matters. */
static void foundbad(Part *q, const Scan *s, int64_t i, int before) {
  const int64_t row = s->nd ? s->size[s->nd - 1] : 1;
  int64_t at;
  if (q->firstbad >= 0 && (!s->sorted || (before && i % row))) return;
  at = rowmajor(s, i);
  if (q->firstbad < 0 || at < q->firstbad) q->firstbad = at;
}

/* Moves the finite elements of x to its front and returns their number;
   counts the others. */
static int64_t sift(Part *q, const Scan *s, double *x, int64_t first,
                    int64_t n) {
  int64_t k = 0;
  int before = 0;
  for (int64_t i = 0; i < n; i++) {
    const double v = x[i];
    const int bad = !isfinite(v);
    x[k] = v;
    k += !bad;
    if (bad) {
      foundbad(q, s, first + i, before);
      q->nan += v != v;
      q->posinf += v > 0;
      q->neginf += v < 0;
    }
    before = bad;
  }
  return k;
}

/* Sets minimum, maximum and the number of zeros of x, in LANES accumulators
   that the compiler vectorizes. */
static void extremes(Part *q, const double *x, int64_t n) {
  double a[LANES], b[LANES];
  int64_t i = 0, zero = 0;
  for (int j = 0; j < LANES; j++) a[j] = b[j] = x[0];
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) {
      a[j] = x[i + j] < a[j] ? x[i + j] : a[j];
      b[j] = x[i + j] > b[j] ? x[i + j] : b[j];
      zero += x[i + j] == 0;
    }
  for (; i < n; i++) {
    a[0] = x[i] < a[0] ? x[i] : a[0];
    b[0] = x[i] > b[0] ? x[i] : b[0];
    zero += x[i] == 0;
  }
  q->zero = zero;
  q->min = a[0];
  q->max = b[0];
  for (int j = 1; j < LANES; j++) {
    q->min = a[j] < q->min ? a[j] : q->min;
    q->max = b[j] > q->max ? b[j] : q->max;
  }
}

static void integers(Part *q, int64_t *v, double *x, int64_t n) {
  q->imin = q->imax = v[0];
  for (int64_t i = 0; i < n; i++) {
    q->imin = v[i] < q->imin ? v[i] : q->imin;
    q->imax = v[i] > q->imax ? v[i] : q->imax;
    x[i] = (double)v[i];
  }
}

/* The same of uint64: in imin and imax the highest bit is inverted, so that
   int64 has the order. */
static void unsigned_integers(Part *q, int64_t *v, double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) v[i] ^= INT64_MIN;
  integers(q, v, x, n);
  for (int64_t i = 0; i < n; i++) x[i] = (double)(uint64_t)(v[i] ^ INT64_MIN);
}

/* Merges q into p. */
static void merge(Part *p, const Part *q) {
  double d = q->mean - p->mean;
  double n = (double)p->n + (double)q->n;
  p->nan += q->nan;
  p->posinf += q->posinf;
  p->neginf += q->neginf;
  p->zero += q->zero;
  if (p->firstbad < 0 || (q->firstbad >= 0 && q->firstbad < p->firstbad))
    p->firstbad = q->firstbad;
  if (q->n == 0) return;
  p->min = p->n && p->min < q->min ? p->min : q->min;
  p->max = p->n && p->max > q->max ? p->max : q->max;
  p->imin = p->n && p->imin < q->imin ? p->imin : q->imin;
  p->imax = p->n && p->imax > q->imax ? p->imax : q->imax;
  p->m2 += q->m2 + d * d * (double)p->n * ((double)q->n / n);
  p->mean += d * ((double)q->n / n);
  p->n += q->n;
}

/* Loads elements i .. i+n-1 as doubles, the finite ones first; returns the
   number of these, with their mean in q.  Elements are tested one by one
   only if their sum is not finite. */
static int64_t block(const Scan *s, Part *q, double *x, int64_t i, int64_t n) {
  int64_t v[BLOCK];
  double total;
  memset(q, 0, sizeof *q);
  q->firstbad = -1;
  if (nc_is_exact(s->type)) {
    fetch(s, (char *)v, i, n);
    (s->type == DT_u64 ? unsigned_integers : integers)(q, v, x, n);
  } else fetch(s, (char *)x, i, n);
  total = sum(x, n, NULL);
  if (!isfinite(total) && (n = sift(q, s, x, i, n)) > 0)
    total = sum(x, n, NULL);
  q->mean = total / (double)(n ? n : 1);
  return n;
}

/* Merges the blocks of a chunk into its Part. */
static void moments(void *ctx, int64_t begin, int64_t end) {
  const Scan *s = ctx;
  Part *p = &s->part[begin / s->grain], q;
  double x[BLOCK];
  for (int64_t i = begin; i < end && !nc_interrupted; i += BLOCK) {
    q.n = block(s, &q, x, i, end - i < BLOCK ? end - i : BLOCK);
    if (q.n > 0) {
      extremes(&q, x, q.n);
      q.m2 = sum(x, q.n, &q.mean);
    }
    merge(p, &q);
  }
}

/* Counts the histogram of a chunk; in a large tensor only one of every `each'
   blocks. */
static void bins(void *ctx, int64_t begin, int64_t end) {
  const Scan *s = ctx;
  const int64_t each = (s->seen - 1) / COUNTED + 1;
  int64_t count[2][BINS + 1] = { { 0 } }; /* last: the maximum */
  int64_t *h = s->part[begin / s->grain].histogram;
  Part q;
  double x[BLOCK];
  for (int64_t b = begin; b < end && !nc_interrupted; b += BLOCK * each) {
    const int64_t i = b + BLOCK * chance(b / BLOCK, each);
    int64_t n = end - i < BLOCK ? end - i : BLOCK;
    if (n <= 0) break;
    n = block(s, &q, x, i, n);
    for (int64_t k = 0; k < n; k++)
      count[k & 1][(int)((x[k] - s->low) / s->range * BINS)]++;
  }
  for (int k = 0; k < BINS; k++) h[k] = count[0][k] + count[1][k];
  h[BINS - 1] += count[0][BINS] + count[1][BINS];
}

/*
** The whole tensor
*/

/* Inserts a dimension after those with a larger stride. */
static void insert(Scan *s, int64_t size, int64_t step, int64_t flat) {
  int d = s->nd++;
  for (; d > 0 && s->step[d - 1] < step; d--) {
    s->size[d] = s->size[d - 1];
    s->step[d] = s->step[d - 1];
    s->flat[d] = s->flat[d - 1];
    s->sorted = 1;
  }
  s->size[d] = size;
  s->step[d] = step;
  s->flat[d] = flat;
}

/* Merges dimensions that are contiguous, in memory and in row-major order. */
static void join(Scan *s) {
  int n = 0;
  for (int d = 1; d < s->nd; d++) {
    const int64_t size = s->size[d];
    if (s->step[n] == s->step[d] * size && s->flat[n] == s->flat[d] * size)
      s->size[n] *= size;
    else s->size[++n] = size;
    s->step[n] = s->step[d];
    s->flat[n] = s->flat[d];
  }
  if (s->nd > 0) s->nd = n + 1;
}

/* Limits what is read to a sample of `limit' elements (0: all). */
static void sample(Scan *s, int64_t limit) {
  const int64_t groups = limit < RUN ? 1 : limit / RUN;
  s->group = s->rest = 0;
  s->seen = s->n;
  if (limit <= 0 || s->n <= groups * RUN) return;
  s->group = s->n / groups;
  s->rest = s->n % groups;
  s->seen = groups * RUN;
}

/* Sets the scan of t: dimensions, sample, size of a chunk. */
static void prepare(Scan *s, const Tensor *t, int64_t limit) {
  int64_t flat = nc_numel(t);
  s->n = flat;
  s->nd = s->sorted = 0;
  for (int d = 0; d < t->nd && flat > 0; d++) {
    flat /= t->size[d];
    if (t->size[d] > 1) insert(s, t->size[d], t->step[d], flat);
  }
  join(s);
  s->p = nc_data(t);
  s->type = t->dtype;
  sample(s, limit);
  s->grain = s->seen / PARTS > GRAIN ? s->seen / PARTS : GRAIN;
}

/* Copies the results of the merged part p to the summary. */
static void conclude(Summary *y, const Scan *s, const Part *p) {
  int64_t bad = p->nan + p->posinf + p->neginf;
  y->nan = p->nan;
  y->posinf = p->posinf;
  y->neginf = p->neginf;
  y->zero = p->zero;
  y->firstbad = p->firstbad;
  y->min = p->n ? p->min : (double)NAN;
  y->max = p->n ? p->max : (double)NAN;
  y->mean = p->n ? p->mean : (double)NAN;
  y->std = p->n ? sqrt(p->m2 / (double)p->n) : (double)NAN;
  y->imin = s->type == DT_u64 ? p->imin ^ INT64_MIN : p->imin;
  y->imax = s->type == DT_u64 ? p->imax ^ INT64_MIN : p->imax;
  if (nc_is_exact(s->type)) y->constant = p->imin == p->imax;
  else
    y->constant =
        bad ? p->posinf == s->seen || p->neginf == s->seen : p->min == p->max;
}

static int histogram(Summary *y, Scan *s, int64_t parts) {
  s->low = y->min;
  s->range = y->max - y->min;
  if (!(s->range > 0) || isinf(s->range) || s->type == DT_b8) return NC_OK;
  TRY(nc_parallel(s->seen, s->grain, bins, s));
  for (int64_t i = 0; i < parts; i++)
    for (int k = 0; k < BINS; k++) y->histogram[k] += s->part[i].histogram[k];
  return NC_OK;
}

/* Summarizes a tensor on the host. */
static int describe(Summary *y, const Tensor *t, int64_t limit) {
  Scan s;
  Part total = { .firstbad = -1 };
  int64_t parts, bytes;
  void *p;
  int r;
  prepare(&s, t, limit);
  y->n = s.n;
  y->seen = s.seen;
  if (s.n == 0) return NC_OK;
  parts = (s.seen - 1) / s.grain + 1;
  bytes = parts * (int64_t)sizeof(Part);
  TRY(nc_hostalloc(&p, bytes));
  s.part = p;
  memset(p, 0, (size_t)bytes);
  for (int64_t i = 0; i < parts; i++) s.part[i].firstbad = -1;
  r = nc_parallel(s.seen, s.grain, moments, &s);
  if (r == NC_OK) {
    for (int64_t i = 0; i < parts; i++) merge(&total, &s.part[i]);
    conclude(y, &s, &total);
    r = histogram(y, &s, parts);
  }
  nc_hostfree(p, bytes);
  return r;
}

/*
** Tensors on other devices
*/

/* Makes t, a view, a sample of at most `limit' elements (0: all): every
   every[d]-th element along dimension d.  The longest dimension is reduced
   first. */
static void thin(Tensor *t, int64_t limit, int64_t every[]) {
  for (int d = 0; d < t->nd; d++) every[d] = 1;
  for (int i = 0; limit > 0 && i < t->nd && nc_numel(t) > limit; i++) {
    int at = 0;
    for (int d = 1; d < t->nd; d++)
      if (t->size[d] > t->size[at]) at = d;
    every[at] = (nc_numel(t) - 1) / limit + 1;
    if (every[at] > t->size[at]) every[at] = t->size[at];
    t->size[at] = (t->size[at] - 1) / every[at] + 1;
    t->step[at] *= every[at];
  }
}

/* Returns the row-major number in t of element i of the sample. */
static int64_t unthinned(const Tensor *t, const Tensor *thinned,
                         const int64_t every[], int64_t i) {
  int64_t n = 1, at = 0;
  for (int d = t->nd - 1; d >= 0; d--) {
    at += i % thinned->size[d] * every[d] * n;
    i /= thinned->size[d];
    n *= t->size[d];
  }
  return at;
}

/* Summarizes a tensor of another device; copies only the sample to the host. */
static int remote(Summary *y, const Tensor *t, int64_t limit) {
  Tensor *view, *dense = NULL, *host = NULL;
  int64_t every[NC_MAXDIM];
  int r;
  TRY(nc_alias(&view, t));
  thin(view, limit, every);
  if ((r = nc_dense(&dense, view)) == NC_OK &&
      (r = nc_todevice(&host, dense, &nc_cpu)) == NC_OK &&
      (r = describe(y, host, 0)) == NC_OK) {
    y->n = nc_numel(t);
    if (y->firstbad >= 0) y->firstbad = unthinned(t, view, every, y->firstbad);
  }
  nc_release(view);
  nc_release(dense);
  nc_release(host);
  return r;
}

/* Describes t, or a sample of at most `limit' elements if that is not 0.
   Without finite elements min, max, mean and std are nan. */
/* That of the absolute values of complex numbers. */
static int summarize_abs(Summary *y, const Tensor *t, int64_t limit) {
  Tensor *size;
  int r;
  nc_context->no_grad++;
  r = nc_apply1(&size, OP_abs, (Tensor *)t);
  nc_context->no_grad--;
  TRY(r);
  r = nc_summary(y, size, limit);
  nc_release(size);
  return r;
}

int nc_summary(Summary *y, const Tensor *t, int64_t limit) {
  memset(y, 0, sizeof *y);
  y->firstbad = -1;
  if (nc_is_complex(t->dtype)) return summarize_abs(y, t, limit);
  if (nc_device(t) == &nc_cpu) {
    TRY(describe(y, t, limit));
    return nc_check_lost(t);
  }
  return remote(y, t, limit);
}
