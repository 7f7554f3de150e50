/* SPDX-License-Identifier: MIT */
/*
** softmax.c - softmax and log_softmax on the CPU (a part of the request
** dim_op), and the request softmax_backward.  The dimension is brought last
** (dim_rows.h); each row gives a row.
*/
#include <math.h>

#include "core/cpu/cpu.h"
#include "core/cpu/dim_rows.h"

typedef void (*RowFn)(const DimRows *l, void *y, const void *x);

typedef struct SoftmaxWork {
  DimRows in;
  Tensor *out; /* in the shape of in.t */
  RowFn fn;
} SoftmaxWork;

/* Elements of the piece of a row that begins at element `at'. */
static int64_t piece_size(const DimRows *l, int64_t at) {
  return l->length - at < NC_PIECE ? l->length - at : NC_PIECE;
}

/* *max = the largest element of a row; y = exp(x - *max), whose sum is
   returned. */
static double expsum(const DimRows *l, void *y, const void *x, double *max) {
  const int64_t size = nc_dtypesize(l->t->dtype);
  double sum = 0, m;
  *max = -INFINITY;
  for (int64_t i = 0; i < l->length && !nc_interrupted; i += NC_PIECE) {
    l->kernel->argmax((const char *)x + i * size, piece_size(l, i), 0, &m);
    if (m > *max || m != m) *max = m;
    if (m != m) break;
  }
  for (int64_t i = 0; i < l->length && !nc_interrupted; i += NC_PIECE)
    sum += l->kernel->expsum((char *)y + i * size, (const char *)x + i * size,
                             piece_size(l, i), *max);
  return sum;
}

static void softmax_row(const DimRows *l, void *y, const void *x) {
  double max, sum = expsum(l, y, x, &max);
  const int64_t size = nc_dtypesize(l->t->dtype);
  for (int64_t i = 0; i < l->length && !nc_interrupted; i += NC_PIECE) {
    char *at = (char *)y + i * size;
    l->kernel->scale(at, at, piece_size(l, i), 1 / sum);
  }
}

static void log_softmax_row(const DimRows *l, void *y, const void *x) {
  double max, sum = expsum(l, y, x, &max);
  const int64_t size = nc_dtypesize(l->t->dtype);
  for (int64_t i = 0; i < l->length && !nc_interrupted; i += NC_PIECE)
    l->kernel->shift((char *)y + i * size, (const char *)x + i * size,
                     piece_size(l, i), max, log(sum));
}

static void apply_rows(void *ctx, int64_t begin, int64_t end) {
  const SoftmaxWork *j = ctx;
  const int64_t bytes = j->in.length * nc_dtypesize(j->in.t->dtype);
  const char *x = nc_data(j->in.t);
  char *y = nc_data(j->out);
  for (int64_t i = begin; i < end && !nc_interrupted; i++)
    j->fn(&j->in, y + i * bytes, x + i * bytes);
}

int nc_cpu_softmax(const DimCall *c) {
  static const RowFn fn[] = {
    [DIM_SOFTMAX] = softmax_row, [DIM_LOG_SOFTMAX] = log_softmax_row
  };
  const int dim = nc_dim_of(c);
  SoftmaxWork j = { .fn = fn[c->op] };
  int r = nc_dimrows(&j.in, c->x, c->dims);
  if (r == NC_OK)
    r = nc_dimrows_result(&j.out, &j.in, c->y, j.in.t->dtype, dim);
  if (r == NC_OK)
    r = nc_parallel(j.in.n, 1 + 16384 / j.in.length, apply_rows, &j);
  nc_release(j.in.t);
  return nc_dimrows_store(r, c->y, j.out, dim);
}

/*
** Gradients of softmax and log_softmax
*/
typedef struct SoftmaxGradWork {
  DimRows g, y;
  Tensor *out; /* in the shape of g.t */
  int log;
} SoftmaxGradWork;

static void backward_rows(void *ctx, int64_t begin, int64_t end) {
  const SoftmaxGradWork *b = ctx;
  const RowKernels *k = b->g.kernel;
  const int64_t n = b->g.length, size = nc_dtypesize(b->g.t->dtype);
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    const char *g = (const char *)nc_data(b->g.t) + i * n * size;
    const char *y = (const char *)nc_data(b->y.t) + i * n * size;
    char *d = (char *)nc_data(b->out) + i * n * size;
    double sum = 0;
    for (int64_t at = 0; at < n && !nc_interrupted; at += NC_PIECE)
      sum += k->weighted_sum(g + at * size, b->log ? NULL : y + at * size,
                             piece_size(&b->g, at));
    for (int64_t at = 0; at < n && !nc_interrupted; at += NC_PIECE)
      (b->log ? k->log_softmax_grad
              : k->softmax_grad)(d + at * size, g + at * size, y + at * size,
                                 piece_size(&b->g, at), sum);
  }
}

int nc_cpu_softmax_backward(const SoftmaxBackwardCall *s) {
  SoftmaxGradWork b = { .log = s->log };
  int r = nc_dimrows(&b.g, s->g, 1u << s->dim);
  if (r == NC_OK) r = nc_dimrows(&b.y, s->y, 1u << s->dim);
  if (r == NC_OK)
    r = nc_dimrows_result(&b.out, &b.g, s->d, b.g.t->dtype, s->dim);
  if (r == NC_OK)
    r = nc_parallel(b.g.n, 1 + 16384 / b.g.length, backward_rows, &b);
  nc_release(b.g.t);
  nc_release(b.y.t);
  return nc_dimrows_store(r, s->d, b.out, s->dim);
}
