/* SPDX-License-Identifier: MIT */
/*
** dim_op.c - the request dim_op on the CPU, and those of its reductions whose
** state is more than one number: var, std, logsumexp.  argmax.c, softmax.c and
** scan.c have the other operations.
**
** The reduced dimensions are brought last (dim_rows.h).  A row is cut in pieces
** of fixed size, so that the result does not depend on the number of threads.
*/
#include <math.h>

#include "core/cpu/cpu.h"
#include "core/cpu/dim_rows.h"
#include "core/portable.h"

/* The state of a reduction after one piece of a row. */
typedef struct Partial {
  double value, second; /* mean and m2; maximum and sum of exp */
  int64_t n;            /* elements */
} Partial;

typedef struct ReduceDimWork {
  DimRows in;
  int64_t npieces, size; /* of an element, as it is read */
  Partial *partial;      /* in.n x pieces */
  void (*reduce_piece)(const struct ReduceDimWork *j, const void *x, int64_t n,
                       Partial *p);
  void (*merge)(const struct ReduceDimWork *j, Partial *a, const Partial *b);
} ReduceDimWork;

static void all_pieces(void *ctx, int64_t begin, int64_t end) {
  const ReduceDimWork *j = ctx;
  const int64_t size = j->size;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    const int64_t row = j->npieces == 1 ? i : i / j->npieces;
    int64_t first = (i - row * j->npieces) * NC_PIECE;
    int64_t n = j->in.length - first;
    Partial *p = &j->partial[i];
    const char *x = nc_data(j->in.t);
    x += (row * j->in.length + first) * size;
    p->n = n < NC_PIECE ? n : NC_PIECE;
    j->reduce_piece(j, x, p->n, p);
  }
}

/* Reduces the rows of x along dims; leaves row i in partial[i]. */
static int reduce_rows(ReduceDimWork *j, Tensor *x, unsigned dims) {
  void *partial;
  int64_t bytes;
  TRY(nc_dimrows(&j->in, x, dims));
  j->size = nc_dtypesize(j->in.t->dtype);
  j->npieces = j->in.length ? (j->in.length + NC_PIECE - 1) / NC_PIECE : 1;
  if (NC_MULOVER(j->in.n * j->npieces, (int64_t)sizeof *j->partial, &bytes))
    bytes = INT64_MAX; /* x may have that many rows if they are empty */
  TRY(nc_hostalloc(&partial, bytes));
  j->partial = partial;
  TRY(nc_parallel(j->in.n * j->npieces, 1 + 16384 / (j->in.length + 1),
                  all_pieces, j));
  for (int64_t i = 0; j->npieces > 1 && i < j->in.n; i++) {
    Partial *p = &j->partial[i * j->npieces];
    for (int64_t k = 1; k < j->npieces; k++) j->merge(j, p, p + k);
    j->partial[i] = *p;
  }
  return NC_OK;
}

static void free_rows(ReduceDimWork *j) {
  if (j->partial)
    nc_hostfree(j->partial, j->in.n * j->npieces * (int64_t)sizeof *j->partial);
  nc_release(j->in.t);
}

/* y[i] = partial[i].value */
static int store_values(Tensor *y, const ReduceDimWork *j) {
  Tensor *wide;
  double *v;
  int r;
  TRY(nc_newdense(&wide, nc_device(y), DT_f64, y));
  v = nc_data(wide);
  for (int64_t i = 0; i < j->in.n; i++) v[i] = j->partial[i].value;
  r = nc_copy(y, wide);
  nc_release(wide);
  return r;
}

/*
** Variance
*/
static void moments_piece(const ReduceDimWork *j, const void *x, int64_t n,
                          Partial *p) {
  j->in.kernel->moments(x, n, &p->value, &p->second);
}

static void moments_merge(const ReduceDimWork *j, Partial *a,
                          const Partial *b) {
  double n = (double)(a->n + b->n), delta = b->value - a->value;
  (void)j;
  a->second += b->second + delta * delta * (double)a->n * (double)b->n / n;
  a->value += delta * (double)b->n / n;
  a->n += b->n;
}

static double variance(const DimCall *c, const ReduceDimWork *j,
                       const Partial *p) {
  const double n = (double)j->in.length - c->correction;
  const double v = j->in.length ? p->second / (n > 0 ? n : 0) : (double)NAN;
  return c->op == DIM_STD ? sqrt(v) : v;
}

/*
** Logsumexp
*/
static void logsumexp_piece(const ReduceDimWork *j, const void *x, int64_t n,
                            Partial *p) {
  enum { BLOCK = 1024 };
  const int64_t size = j->size;
  double buf[BLOCK];
  p->second = 0;
  j->in.kernel->argmax(x, n, 0, &p->value);
  if (isinf(p->value)) return;
  for (int64_t i = 0; i < n; i += BLOCK)
    p->second += j->in.kernel->expsum(buf, (const char *)x + i * size,
                                      n - i < BLOCK ? n - i : BLOCK, p->value);
}

static void logsumexp_merge(const ReduceDimWork *j, Partial *a,
                            const Partial *b) {
  double max = b->value > a->value ? b->value : a->value;
  (void)j;
  if (b->value != b->value) max = b->value;
  if (!isinf(max))
    a->second =
        a->second * exp(a->value - max) + b->second * exp(b->value - max);
  a->value = max;
}

static double logsumexp(const DimCall *c, const ReduceDimWork *j,
                        const Partial *p) {
  (void)c;
  if (j->in.length == 0) return -INFINITY;
  return isinf(p->value) ? p->value : p->value + log(p->second);
}

/* y[i] = f(partial[i]) */
static int reduce_to_number(const DimCall *c, ReduceDimWork *j,
                            double (*f)(const DimCall *, const ReduceDimWork *,
                                        const Partial *)) {
  int r = reduce_rows(j, c->x, c->dims);
  for (int64_t i = 0; r == NC_OK && i < j->in.n && !nc_interrupted; i++)
    j->partial[i].value = f(c, j, &j->partial[i]);
  if (r == NC_OK && nc_interrupted) r = nc_fail(NC_EINTR, "interrupted");
  if (r == NC_OK) r = store_values(c->y, j);
  free_rows(j);
  return r;
}

double nc_cpu_reduce_line(DimOp op, DType type, const void *x, int64_t n,
                          double correction) {
  const DimCall c = { .op = op, .correction = correction };
  const ReduceDimWork j = {
    .in = { .length = n, .kernel = &nc_kernels()->row[type == DT_f64] },
    .size = nc_dtypesize(type)
  };
  Partial p = { .n = n };
  if (op == DIM_LOGSUMEXP && n > 0 && n <= NC_FEW) {
    j.in.kernel->logsumexp_rows(&p.value, x, 1, n);
    return p.value;
  }
  if (op == DIM_LOGSUMEXP) {
    logsumexp_piece(&j, x, n, &p);
    return logsumexp(&c, &j, &p);
  }
  moments_piece(&j, x, n, &p);
  return variance(&c, &j, &p);
}

/* The elements of a row of the operand. */
static int64_t row_length(const DimCall *c) {
  int64_t n = 1;
  for (int d = 0; d < c->x->nd; d++)
    if (c->dims >> d & 1) n *= c->x->size[d];
  return n;
}

/*
** Rows of few elements: logsumexp of many of them at once
*/
typedef struct FewRows {
  DimRows in;
  double *y;
} FewRows;

static int are_few(const DimCall *c) {
  return nc_is_real(c->x->dtype) && nc_numel(c->x) > 0 &&
         row_length(c) <= NC_FEW;
}

static const void *few_at(const FewRows *j, int64_t row) {
  const int64_t size = nc_dtypesize(j->in.t->dtype);
  return (const char *)nc_data(j->in.t) + row * j->in.length * size;
}

static void few_sums(void *ctx, int64_t begin, int64_t end) {
  const FewRows *j = ctx;
  if (nc_interrupted) return;
  j->in.kernel->logsumexp_rows(j->y + begin, few_at(j, begin), end - begin,
                               j->in.length);
}

static int reduce_few(const DimCall *c) {
  FewRows j;
  Tensor *wide = NULL;
  int r = nc_dimrows(&j.in, c->x, c->dims);
  if (r == NC_OK) r = nc_newdense(&wide, nc_device(c->y), DT_f64, c->y);
  if (r == NC_OK) {
    j.y = nc_data(wide);
    r = nc_parallel(j.in.n, 1 + 16384 / j.in.length, few_sums, &j);
  }
  if (r == NC_OK) r = nc_copy(c->y, wide);
  nc_release(wide);
  nc_release(j.in.t);
  return r;
}

int nc_cpu_dim_op(const DimCall *c) {
  ReduceDimWork moments = { .reduce_piece = moments_piece,
                            .merge = moments_merge };
  ReduceDimWork sums = { .reduce_piece = logsumexp_piece,
                         .merge = logsumexp_merge };
  switch (c->op) {
    case DIM_ARGMAX:
    case DIM_ARGMIN: return nc_cpu_argmax(c);
    case DIM_VAR:
    case DIM_STD: return reduce_to_number(c, &moments, variance);
    case DIM_LOGSUMEXP:
      if (are_few(c)) return reduce_few(c);
      return reduce_to_number(c, &sums, logsumexp);
    case DIM_SOFTMAX:
    case DIM_MASKED_SOFTMAX:
    case DIM_LOG_SOFTMAX: return nc_cpu_softmax(c);
    default: return nc_cpu_scan(c);
  }
}
