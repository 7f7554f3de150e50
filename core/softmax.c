/* SPDX-License-Identifier: MIT */
/*
** softmax.c - along one dimension: softmax, log_softmax, cumsum.
*/
#include <math.h>

#include "lines.h"
#include "op.h"

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

/* y = fn along dimension dim of x, as type `type'. */
static int alongdim(Tensor **y, Tensor *x, int dim, DType type, LineFn fn) {
  Job j = { .fn = fn };
  int r = nc_lines(&j.in, x, x->nd ? 1u << dim : 0);
  if (r == NC_OK) r = nc_new(&j.out, nc_device(x), j.in.t->dtype, j.in.t->nd,
                             j.in.t->size);
  if (r == NC_OK && nc_numel(x) > 0) {
    if (x->nd == 0) j.in.length = 1, j.in.n = 1;
    nc_count(5 * nc_numel(x), 2 * nc_numel(x) * nc_dtypesize(x->dtype));
    r = nc_parallel(j.in.n, 1 + 16384 / j.in.length, lines, &j);
  }
  if (r == NC_OK) r = nc_unlines(y, j.out, dim, type);
  nc_release(j.in.t);
  nc_release(j.out);
  return r;
}

static int floatdim(Call *c, LineFn fn) {
  Tensor *x = c->arg[0].t, *cast = NULL;
  DType type = c->arg[2].dtype == DT_NONE ? x->dtype : c->arg[2].dtype;
  int dim, r = nc_dim(&dim, c->arg[1].s.i, x->nd);
  if (r == NC_OK && nc_category(type) != NC_FLOAT) {
    r = nc_fail(NC_EDTYPE, "needs a float dtype, not %s", nc_dtypename(type));
    nc_hint("self:to(\"float32\") first");
  }
  if (r == NC_OK) r = nc_cast(&cast, x, type);
  if (r == NC_OK) r = alongdim(&c->out[0], cast, dim, type, fn);
  nc_release(cast);
  return nc_blamed(r, nc_families[c->op].name, c->arg, 1);
}

int nc_op_softmax(Call *c) {
  return floatdim(c, softmaxline);
}

int nc_op_log_softmax(Call *c) {
  return floatdim(c, logsoftmaxline);
}

int nc_op_cumsum(Call *c) {
  Tensor *x = c->arg[0].t, *cast = NULL;
  DType type = c->arg[2].dtype;
  int dim, r = nc_dim(&dim, c->arg[1].s.i, x->nd);
  if (type == DT_NONE)
    type = nc_category(x->dtype) == NC_FLOAT ? x->dtype : DT_i64;
  if (r == NC_OK) r = nc_cast(&cast, x, type);
  if (r == NC_OK) r = alongdim(&c->out[0], cast, dim, type, cumsumline);
  nc_release(cast);
  return nc_blamed(r, nc_families[c->op].name, c->arg, 1);
}
