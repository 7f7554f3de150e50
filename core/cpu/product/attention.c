/* SPDX-License-Identifier: MIT */
/*
** attention.c - the requests attention and attention_backward on the CPU.
**
** Scores are computed for queries x KEYS of them at a time, which stay in the
** cache; a running maximum and sum of each query replace the whole row (Dao et
** al. 2022, "FlashAttention").  backward computes the scores again. A task is a
** block of queries or, in backward, a whole matrix, so that results do not
** depend on the number of threads.
*/
#include <math.h>
#include <string.h>

#include "core/cpu/product/blas.h"
#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

#define QUERIES 128 /* each block of them packs the keys and values */
#define CAUSAL 64   /* of them, where those that see fewer keys save work */
#define KEYS 128

typedef struct AttentionWork {
  const AttentionCall *c;
  const AttentionBackwardCall *back;
  const RowKernels *kernel;
  DType type;
  int64_t size;       /* bytes of an element */
  int64_t n, m, e, v; /* queries, keys, features of both, of values */
  int64_t queries;    /* of a block, at most */
  int64_t blocks;     /* of queries */
} AttentionWork;

/* A block of queries and keys of one matrix. */
typedef struct Block {
  const AttentionWork *w;
  int64_t matrix, q, k, rows, cols;
} Block;

/* Row i of matrix number `matrix' of t, whose leading dimensions count them. */
static char *row_of(const Tensor *t, int64_t matrix, int64_t i) {
  int64_t offset = i * t->step[t->nd - 2];
  for (int d = t->nd - 3; d >= 0; d--) {
    offset += matrix % t->size[d] * t->step[d];
    matrix /= t->size[d];
  }
  return (char *)nc_data(t) + offset * nc_dtypesize(t->dtype);
}

static const int64_t *steps_of(const Tensor *t) {
  return t->step + t->nd - 2;
}

/* c [rows x n] = beta*c + alpha * a [rows x k] b [k x n]; c is dense in rows
   `cs' apart. */
static void product(const Block *b, int64_t rows, int64_t n, int64_t k,
                    const void *x, const int64_t xs[2], const void *y,
                    const int64_t ys[2], void *c, int64_t cs, double alpha,
                    int beta) {
  const Gemm g = { .type = b->w->type,
                   .m = rows,
                   .n = n,
                   .k = k,
                   .a = x,
                   .b = y,
                   .c = c,
                   .as = { xs[0], xs[1] },
                   .bs = { ys[0], ys[1] },
                   .cs = cs,
                   .alpha = nc_float(alpha),
                   .beta = beta };
  nc_gemm(&g);
}

static double element(const AttentionWork *w, const void *p, int64_t i) {
  return w->type == DT_f64 ? ((const double *)p)[i]
                           : (double)((const float *)p)[i];
}

static void set_element(const AttentionWork *w, void *p, int64_t i, double x) {
  if (w->type == DT_f64) ((double *)p)[i] = x;
  else ((float *)p)[i] = (float)x;
}

static void add_mask(const Block *b, void *s) {
  const AttentionWork *w = b->w;
  const Tensor *mask = w->c->mask;
  const int64_t step = steps_of(mask)[1];
  for (int64_t r = 0; r < b->rows; r++) {
    const char *x = row_of(mask, b->matrix, b->q + r) + b->k * step * w->size;
    char *to = (char *)s + r * b->cols * w->size;
    if (step == 1) w->kernel->add(to, x, 1, b->cols);
    else
      for (int64_t c = 0; c < b->cols; c++)
        set_element(w, to, c, element(w, to, c) + element(w, x, c * step));
  }
}

/* A query does not see later keys. */
static void mask_later(const Block *b, void *s) {
  for (int64_t r = 0; r < b->rows; r++)
    for (int64_t c = b->cols - 1; c >= 0 && b->k + c > b->q + r; c--)
      set_element(b->w, s, r * b->cols + c, -(double)INFINITY);
}

/* s [rows x cols] = the scores of the block, with both masks. */
static void scores(const Block *b, void *s) {
  const AttentionCall *c = b->w->c;
  const int64_t *ks = steps_of(c->k), turned[2] = { ks[1], ks[0] };
  product(b, b->rows, b->cols, b->w->e, row_of(c->q, b->matrix, b->q),
          steps_of(c->q), row_of(c->k, b->matrix, b->k), turned, s, b->cols,
          c->scale, 0);
  if (c->mask) add_mask(b, s);
  if (c->causal && b->k + b->cols > b->q + 1) mask_later(b, s);
}

/* The keys that the last of these queries sees. */
static int64_t keys_seen(const AttentionWork *w, int64_t q, int64_t rows) {
  return w->c->causal ? nc_min(w->m, q + rows) : w->m;
}

/* y = y times the factors of its rows, plus the block's share. */
static void add_values(const Block *b, const void *p, char *y,
                       const double factor[]) {
  const AttentionWork *w = b->w;
  const int64_t ps[2] = { b->cols, 1 };
  for (int64_t r = 0; b->k > 0 && r < b->rows; r++) {
    char *row = y + r * w->v * w->size;
    if (factor[r] != 1) w->kernel->scale(row, row, w->v, factor[r]);
  }
  product(b, b->rows, w->v, b->cols, p, ps, row_of(w->c->v, b->matrix, b->k),
          steps_of(w->c->v), y, w->v, 1, b->k > 0);
}

static void attend_queries(const AttentionWork *w, int64_t matrix, int64_t q) {
  _Alignas(64) double s[QUERIES * KEYS];
  double most[QUERIES], sum[QUERIES] = { 0 }, factor[QUERIES];
  Block b = {
    .w = w, .matrix = matrix, .q = q, .rows = nc_min(w->n - q, w->queries)
  };
  const int64_t last = keys_seen(w, q, b.rows);
  char *y = row_of(w->c->y, matrix, q);
  char *lse = (char *)nc_data(w->c->logsumexp) + (matrix * w->n + q) * w->size;
  for (int64_t r = 0; r < b.rows; r++) most[r] = -(double)INFINITY;
  for (b.k = 0; b.k < last && !nc_interrupted; b.k += KEYS) {
    b.cols = nc_min(last - b.k, KEYS);
    scores(&b, s);
    w->kernel->softmax_block(s, b.rows, b.cols, most, sum, factor);
    add_values(&b, s, y, factor);
  }
  for (int64_t r = 0; r < b.rows; r++) {
    char *row = y + r * w->v * w->size;
    if (sum[r] == 0) memset(row, 0, (size_t)(w->v * w->size));
    else w->kernel->scale(row, row, w->v, 1 / sum[r]);
    set_element(w, lse, r,
                sum[r] == 0 ? (double)INFINITY : most[r] + log(sum[r]));
  }
}

static void attend(void *ctx, int64_t begin, int64_t end) {
  const AttentionWork *w = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i++)
    attend_queries(w, i / w->blocks, i % w->blocks * w->queries);
}

static void prepare(AttentionWork *w, const AttentionCall *c) {
  const Tensor *q = c->q, *v = c->v;
  w->c = c;
  w->type = q->dtype;
  w->size = nc_dtypesize(q->dtype);
  w->kernel = &nc_kernels()->row[q->dtype == DT_f64];
  w->n = q->size[q->nd - 2];
  w->e = q->size[q->nd - 1];
  w->m = v->size[v->nd - 2];
  w->v = v->size[v->nd - 1];
  w->queries = c->causal ? CAUSAL : QUERIES;
  w->blocks = nc_ceil_div(w->n, w->queries);
}

static int64_t matrices(const AttentionWork *w) {
  return nc_numel(w->c->y) / (w->n * w->v);
}

int nc_cpu_attention(const AttentionCall *c) {
  AttentionWork w = { 0 };
  TRY(nc_openblas());
  prepare(&w, c);
  return nc_parallel(matrices(&w) * w.blocks, 1, attend, &w);
}

/*
** Gradients.  p = exp(scores - logsumexp), dp = g v'; the gradient of the
** scores is p*(dp - sum of g*y).
*/
static void backward_block(const Block *b, const double dot[]) {
  _Alignas(64) double s[QUERIES * KEYS], ds[QUERIES * KEYS];
  const AttentionWork *w = b->w;
  const AttentionBackwardCall *back = w->back;
  const int64_t *vs = steps_of(w->c->v), turned[2] = { vs[1], vs[0] };
  const int64_t flat[2] = { b->cols, 1 }, across[2] = { 1, b->cols };
  const char *g = row_of(back->g, b->matrix, b->q);
  const char *lse = nc_data(w->c->logsumexp);
  scores(b, s);
  product(b, b->rows, b->cols, w->v, g, steps_of(back->g),
          row_of(w->c->v, b->matrix, b->k), turned, ds, b->cols, 1, 0);
  for (int64_t r = 0; r < b->rows; r++) {
    char *p = (char *)s + r * b->cols * w->size;
    char *d = (char *)ds + r * b->cols * w->size;
    w->kernel->expsum(p, p, b->cols,
                      element(w, lse, b->matrix * w->n + b->q + r));
    w->kernel->softmax_grad(d, d, p, b->cols, dot[b->q + r]);
  }
  product(b, b->cols, w->v, b->rows, s, across, g, steps_of(back->g),
          row_of(back->dv, b->matrix, b->k), w->v, 1, 1);
  product(b, b->cols, w->e, b->rows, ds, across,
          row_of(w->c->q, b->matrix, b->q), steps_of(w->c->q),
          row_of(back->dk, b->matrix, b->k), w->e, w->c->scale, 1);
  product(b, b->rows, w->e, b->cols, ds, flat, row_of(w->c->k, b->matrix, b->k),
          steps_of(w->c->k), row_of(back->dq, b->matrix, b->q), w->e,
          w->c->scale, 1);
}

/* dot[i] = the sum of g*y of query i. */
static void dot_rows(const AttentionWork *w, int64_t matrix, double dot[]) {
  for (int64_t i = 0; i < w->n; i++)
    dot[i] = w->kernel->weighted_sum(row_of(w->back->g, matrix, i),
                                     row_of(w->c->y, matrix, i), w->v);
}

static void backward_matrix(const AttentionWork *w, int64_t matrix) {
  double *dot = w->back->dot + matrix * w->n;
  Block b = { .w = w, .matrix = matrix };
  memset(row_of(w->back->dq, matrix, 0), 0, (size_t)(w->n * w->e * w->size));
  memset(row_of(w->back->dk, matrix, 0), 0, (size_t)(w->m * w->e * w->size));
  memset(row_of(w->back->dv, matrix, 0), 0, (size_t)(w->m * w->v * w->size));
  dot_rows(w, matrix, dot);
  for (b.q = 0; b.q < w->n; b.q += w->queries) {
    b.rows = nc_min(w->n - b.q, w->queries);
    const int64_t last = keys_seen(w, b.q, b.rows);
    for (b.k = 0; b.k < last && !nc_interrupted; b.k += KEYS) {
      b.cols = nc_min(last - b.k, KEYS);
      backward_block(&b, dot);
    }
  }
}

static void backward(void *ctx, int64_t begin, int64_t end) {
  const AttentionWork *w = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i++)
    backward_matrix(w, i);
}

int nc_cpu_attention_backward(const AttentionBackwardCall *call) {
  AttentionWork w = { .back = call };
  TRY(nc_openblas());
  prepare(&w, &call->forward);
  return nc_parallel(matrices(&w), 1, backward, &w);
}
