/* SPDX-License-Identifier: MIT */
/*
** softmax.c - softmax and its kin on the CPU (a part of the request
** dim_op), and the request softmax_backward.
**
** Along the last dimension rows are worked on where they are, halves through a
** buffer; along another one, strips of columns.  Other layouts are first
** converted to rows (dim_rows.h).
*/
#include "core/cpu/cpu.h"
#include "core/cpu/dim_rows.h"

#define HALVES 4096 /* elements of a buffer for rows of halves */

typedef struct SoftmaxWork {
  const char *x;
  char *y;
  DType type;
  int64_t size;   /* bytes of an element */
  int64_t n;      /* elements of a row or a column */
  int64_t inner;  /* columns that lie side by side; 1: rows */
  int64_t strips; /* of the inner columns */
  const RowKernels *kernel;
  DimOp op;
} SoftmaxWork;

static void apply_rows(void *ctx, int64_t begin, int64_t end) {
  const SoftmaxWork *j = ctx;
  const int64_t most = 1 + NC_PIECE / j->n; /* between looks at an interrupt */
  for (int64_t r = begin; r < end && !nc_interrupted; r += most)
    j->kernel->softmax_rows(j->y + r * j->n * j->size,
                            j->x + r * j->n * j->size, nc_min(most, end - r),
                            j->n, j->op);
}

static void apply_rows_of_halves(void *ctx, int64_t begin, int64_t end) {
  const SoftmaxWork *j = ctx;
  const Kernels *k = nc_kernels();
  const int64_t most = j->n < HALVES / 2 ? HALVES / 2 / j->n : 1;
  float buf[HALVES];
  for (int64_t r = begin; r < end && !nc_interrupted; r += most) {
    const int64_t rows = nc_min(most, end - r), at = r * j->n * j->size;
    k->load[CT_f32][j->type](buf, j->x + at, 1, rows * j->n);
    j->kernel->softmax_rows(buf, buf, rows, j->n, j->op);
    k->store[CT_f32][j->type](j->y + at, buf, 1, rows * j->n);
  }
}

/* Task i: strip i % strips of the matrix i / strips. */
static void apply_columns(void *ctx, int64_t begin, int64_t end) {
  const SoftmaxWork *j = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    const int64_t first = i % j->strips * NC_SOFTMAX_COLUMNS;
    const int64_t at = (i / j->strips * j->n * j->inner + first) * j->size;
    j->kernel->softmax_columns(j->y + at, j->x + at, j->n, j->inner,
                               nc_min(j->inner - first, NC_SOFTMAX_COLUMNS),
                               j->op);
  }
}

/* For dense x and y of one type; returns 0 if conversions are needed that
   cannot be done by rows. */
static int work_in_place(SoftmaxWork *j, const DimCall *c, int dim) {
  const int half = nc_dtypesize(c->x->dtype) == 2;
  if (!nc_isdense(c->x) || c->x->dtype != c->y->dtype || c->x->nd == 0)
    return 0;
  j->x = nc_data(c->x);
  j->y = nc_data(c->y);
  j->type = c->x->dtype;
  j->n = c->x->size[dim];
  j->inner = 1;
  for (int d = dim + 1; d < c->x->nd; d++) j->inner *= c->x->size[d];
  return !half || (j->inner == 1 && j->n <= HALVES);
}

static int run_softmax(SoftmaxWork *j, int64_t numel) {
  const int64_t slices = numel / (j->n * j->inner);
  j->size = nc_dtypesize(j->type);
  j->kernel = &nc_kernels()->row[j->type == DT_f64];
  if (j->inner == 1)
    return nc_parallel(slices, 1 + 16384 / j->n,
                       j->size == 2 ? apply_rows_of_halves : apply_rows, j);
  j->strips = nc_ceil_div(j->inner, NC_SOFTMAX_COLUMNS);
  return nc_parallel(slices * j->strips,
                     1 + 16384 / (j->n * nc_min(j->inner, NC_SOFTMAX_COLUMNS)),
                     apply_columns, j);
}

int nc_cpu_softmax(const DimCall *c) {
  const int dim = nc_dim_of(c);
  SoftmaxWork j = { .op = c->op };
  DimRows in;
  Tensor *out = NULL;
  int r;
  if (nc_numel(c->x) > 0 && work_in_place(&j, c, dim))
    return run_softmax(&j, nc_numel(c->x));
  r = nc_dimrows(&in, c->x, c->dims);
  if (r == NC_OK) r = nc_dimrows_result(&out, &in, c->y, in.t->dtype, dim);
  if (r == NC_OK && in.n * in.length > 0) {
    j.x = nc_data(in.t);
    j.y = nc_data(out);
    j.type = in.t->dtype;
    j.n = in.length;
    j.inner = 1;
    r = run_softmax(&j, in.n * in.length);
  }
  nc_release(in.t);
  return nc_dimrows_store(r, c->y, out, dim);
}

/* Elements of the piece of a row that begins at element `at'. */
static int64_t piece_size(const DimRows *l, int64_t at) {
  return l->length - at < NC_PIECE ? l->length - at : NC_PIECE;
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
