/* SPDX-License-Identifier: MIT */
/*
** reduce_dim.c - what folds lines to a number or two, on the CPU: extremes
** with their positions, variance, logsumexp.
*/
#include <math.h>

#include "core/cpu/cpu.h"
#include "core/cpu/dim_rows.h"
#include "core/portable.h"

/*
** One number, or two, for each line.  A line is cut in pieces of fixed size,
** so that the result does not depend on the number of threads.
*/
typedef struct Part {
  double value, second; /* extreme; mean and m2; maximum and sum */
  int64_t at, n;        /* position, or an int64 extreme; elements */
} Part;

typedef struct Job {
  DimRows in;
  int64_t pieces;
  int low;
  Part *part; /* in.n x pieces */
  void (*piece)(const struct Job *j, const void *x, int64_t n, Part *p);
  void (*merge)(const struct Job *j, Part *a, const Part *b);
} Job;

static void pieces(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  const int64_t size = nc_dtypesize(j->in.t->dtype);
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    int64_t first = i % j->pieces * NC_PIECE, n = j->in.length - first;
    Part *p = &j->part[i];
    const char *x = nc_data(j->in.t);
    x += (i / j->pieces * j->in.length + first) * size;
    p->n = n < NC_PIECE ? n : NC_PIECE;
    j->piece(j, x, p->n, p);
    p->at += p->at >= 0 ? first : 0;
  }
}

/* Leaves the results in part[0 .. in.n-1]. */
static int runjob(Job *j, Tensor *x, unsigned dims) {
  void *part;
  int64_t bytes;
  TRY(nc_dimrows(&j->in, x, dims));
  j->pieces = j->in.length ? (j->in.length + NC_PIECE - 1) / NC_PIECE : 1;
  if (NC_MULOVER(j->in.n * j->pieces, (int64_t)sizeof *j->part, &bytes))
    bytes = INT64_MAX; /* lines without elements may be that many */
  TRY(nc_hostalloc(&part, bytes));
  j->part = part;
  TRY(nc_parallel(j->in.n * j->pieces, 1 + 16384 / (j->in.length + 1), pieces,
                  j));
  for (int64_t i = 0; j->pieces > 1 && i < j->in.n; i++) {
    Part *p = &j->part[i * j->pieces];
    for (int64_t k = 1; k < j->pieces; k++) j->merge(j, p, p + k);
    j->part[i] = *p;
  }
  return NC_OK;
}

static void endjob(Job *j) {
  if (j->part)
    nc_hostfree(j->part, j->in.n * j->pieces * (int64_t)sizeof *j->part);
  nc_release(j->in.t);
}

/* y = the values of the parts */
static int putvalues(Tensor *y, const Job *j) {
  Tensor *wide;
  double *v;
  int r;
  TRY(nc_new(&wide, nc_device(y), DT_f64, y->nd, y->size));
  v = nc_data(wide);
  for (int64_t i = 0; i < j->in.n; i++) v[i] = j->part[i].value;
  r = nc_copy(y, wide);
  nc_release(wide);
  return r;
}

/*
** Extremes
*/
static int64_t intextreme(const int64_t *x, int64_t n, int low) {
  int64_t at = 0;
  for (int64_t i = 1; i < n; i++)
    if (low ? x[i] < x[at] : x[i] > x[at]) at = i;
  return at;
}

static void extremepiece(const Job *j, const void *x, int64_t n, Part *p) {
  if (j->in.kernel) p->at = j->in.kernel->argmax(x, n, j->low, &p->value);
  else p->at = intextreme(x, n, j->low);
}

static void extrememerge(const Job *j, Part *a, const Part *b) {
  const int64_t *x = nc_data(j->in.t);
  int better;
  x += (a - j->part) / j->pieces * j->in.length;
  if (j->in.kernel)
    better = a->value == a->value &&
             (b->value != b->value ||
              (j->low ? b->value < a->value : b->value > a->value));
  else better = j->low ? x[b->at] < x[a->at] : x[b->at] > x[a->at];
  if (better) *a = *b;
}

/* y = the elements at the positions, which the parts hold */
static int putextremes(Tensor *y, const Job *j) {
  Tensor *whole;
  const int64_t *x = nc_data(j->in.t);
  int64_t *v;
  int r;
  if (j->in.kernel) return putvalues(y, j);
  TRY(nc_new(&whole, nc_device(y), DT_i64, y->nd, y->size));
  v = nc_data(whole);
  for (int64_t i = 0; i < j->in.n; i++)
    v[i] = x[i * j->in.length + j->part[i].at];
  r = nc_copy(y, whole);
  nc_release(whole);
  return r;
}

static int extreme(const DimCall *c) {
  Job j = { .low = c->op == DIM_ARGMIN,
            .piece = extremepiece,
            .merge = extrememerge };
  int64_t *position = nc_data(c->at);
  int r = runjob(&j, c->x, c->dims);
  for (int64_t i = 0; r == NC_OK && i < j.in.n; i++)
    position[i] = j.part[i].at + 1;
  if (r == NC_OK && c->y) r = putextremes(c->y, &j);
  endjob(&j);
  return r;
}

/*
** Variance
*/
static void momentpiece(const Job *j, const void *x, int64_t n, Part *p) {
  p->at = -1;
  j->in.kernel->moments(x, n, &p->value, &p->second);
}

static void momentmerge(const Job *j, Part *a, const Part *b) {
  double n = (double)(a->n + b->n), delta = b->value - a->value;
  (void)j;
  a->second += b->second + delta * delta * (double)a->n * (double)b->n / n;
  a->value += delta * (double)b->n / n;
  a->n += b->n;
}

static double varianceof(const DimCall *c, const Job *j, const Part *p) {
  const double n = (double)j->in.length - c->correction;
  const double v = j->in.length ? p->second / (n > 0 ? n : 0) : (double)NAN;
  return c->op == DIM_STD ? sqrt(v) : v;
}

/*
** Logsumexp
*/
static void lsepiece(const Job *j, const void *x, int64_t n, Part *p) {
  enum { BLOCK = 1024 };
  const int64_t size = nc_dtypesize(j->in.t->dtype);
  double buf[BLOCK];
  p->at = -1;
  p->second = 0;
  j->in.kernel->argmax(x, n, 0, &p->value);
  if (isinf(p->value)) return;
  for (int64_t i = 0; i < n; i += BLOCK)
    p->second += j->in.kernel->expsum(buf, (const char *)x + i * size,
                                      n - i < BLOCK ? n - i : BLOCK, p->value);
}

static void lsemerge(const Job *j, Part *a, const Part *b) {
  double max = b->value > a->value ? b->value : a->value;
  (void)j;
  if (b->value != b->value) max = b->value;
  if (!isinf(max))
    a->second =
        a->second * exp(a->value - max) + b->second * exp(b->value - max);
  a->value = max;
}

static double lseof(const DimCall *c, const Job *j, const Part *p) {
  (void)c;
  if (j->in.length == 0) return -INFINITY;
  return isinf(p->value) ? p->value : p->value + log(p->second);
}

/* y = f(part) of each line */
static int number(const DimCall *c, Job *j,
                  double (*f)(const DimCall *, const Job *, const Part *)) {
  int r = runjob(j, c->x, c->dims);
  for (int64_t i = 0; r == NC_OK && i < j->in.n && !nc_interrupted; i++)
    j->part[i].value = f(c, j, &j->part[i]);
  if (r == NC_OK && nc_interrupted) r = nc_fail(NC_EINTR, "interrupted");
  if (r == NC_OK) r = putvalues(c->y, j);
  endjob(j);
  return r;
}

int nc_cpu_dim_op(const Device *d, const DimCall *c) {
  Job moments = { .piece = momentpiece, .merge = momentmerge };
  Job sums = { .piece = lsepiece, .merge = lsemerge };
  (void)d;
  switch (c->op) {
    case DIM_ARGMAX:
    case DIM_ARGMIN: return extreme(c);
    case DIM_VAR:
    case DIM_STD: return number(c, &moments, varianceof);
    case DIM_LOGSUMEXP: return number(c, &sums, lseof);
    case DIM_SOFTMAX:
    case DIM_LOG_SOFTMAX:
    case DIM_CUMSUM: return nc_cpu_softmax(c);
    default: return nc_cpu_scan(c);
  }
}
