/* SPDX-License-Identifier: MIT */
/*
** cpulines.c - what gives a line for a line, on the CPU: softmax,
** log_softmax, cumsum.  Their one dimension is brought last and dense.
*/
#include <math.h>

#include "cpu.h"
#include "lines.h"

typedef void (*LineFn)(const Lines *l, void *y, const void *x);

typedef struct Job {
  Lines in;
  Tensor *out;                /* in the shape of in.t */
  LineFn fn;
} Job;

static int64_t piece(const Lines *l, int64_t at) {
  return l->length - at < NC_PIECE ? l->length - at : NC_PIECE;
}

/* The largest element of a line and the sum of exp(x - it), left in y. */
static double expsum(const Lines *l, void *y, const void *x, double *max) {
  const int64_t size = nc_dtypesize(l->t->dtype);
  double sum = 0, m;
  *max = -INFINITY;
  for (int64_t i = 0; i < l->length && !nc_interrupted; i += NC_PIECE) {
    l->kernel->argmax((const char *)x + i * size, piece(l, i), 0, &m);
    if (m > *max || m != m) *max = m;
    if (m != m) break;
  }
  for (int64_t i = 0; i < l->length && !nc_interrupted; i += NC_PIECE)
    sum += l->kernel->expsum((char *)y + i * size, (const char *)x + i * size,
                             piece(l, i), *max);
  return sum;
}

static void softmaxline(const Lines *l, void *y, const void *x) {
  double max, sum = expsum(l, y, x, &max);
  const int64_t size = nc_dtypesize(l->t->dtype);
  for (int64_t i = 0; i < l->length && !nc_interrupted; i += NC_PIECE) {
    char *at = (char *)y + i * size;
    l->kernel->scale(at, at, piece(l, i), 1 / sum);
  }
}

static void logsoftmaxline(const Lines *l, void *y, const void *x) {
  double max, sum = expsum(l, y, x, &max);
  const int64_t size = nc_dtypesize(l->t->dtype);
  for (int64_t i = 0; i < l->length && !nc_interrupted; i += NC_PIECE)
    l->kernel->shift((char *)y + i * size, (const char *)x + i * size,
                     piece(l, i), max, log(sum));
}

static void cumsumline(const Lines *l, void *y, const void *x) {
  const int64_t size = nc_dtypesize(l->t->dtype);
  const int64_t *v = x;
  int64_t whole = 0, *r = y;
  double sum = 0;
  for (int64_t i = 0; i < l->length && !nc_interrupted; i += NC_PIECE) {
    int64_t n = piece(l, i);
    if (l->kernel)
      sum = l->kernel->cumsum((char *)y + i * size, (const char *)x + i * size,
                              n, sum);
    else
      for (int64_t k = i; k < i + n; k++) r[k] = whole += v[k];
  }
}

static void lines(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  const int64_t bytes = j->in.length * nc_dtypesize(j->in.t->dtype);
  const char *x = nc_data(j->in.t);
  char *y = nc_data(j->out);
  for (int64_t i = begin; i < end && !nc_interrupted; i++)
    j->fn(&j->in, y + i * bytes, x + i * bytes);
}

int nc_cpulineforline(const LineCall *c) {
  static const LineFn fn[] = { [LINE_SOFTMAX] = softmaxline,
                               [LINE_LOG_SOFTMAX] = logsoftmaxline,
                               [LINE_CUMSUM] = cumsumline };
  Job j = { .fn = fn[c->op] };
  int r = nc_lines(&j.in, c->x, c->x->nd ? c->dims : 0);
  if (r == NC_OK && c->y->dtype == j.in.t->dtype && nc_lastlines(c))
    nc_retain(j.out = c->y);
  else if (r == NC_OK)
    r = nc_new(&j.out, nc_device(c->x), j.in.t->dtype, j.in.t->nd,
               j.in.t->size);
  if (r == NC_OK)
    r = nc_parallel(j.in.n, 1 + 16384 / j.in.length, lines, &j);
  if (r == NC_OK && j.out != c->y) r = nc_unlines(c->y, j.out, nc_linedim(c));
  nc_release(j.in.t);
  nc_release(j.out);
  return r;
}
