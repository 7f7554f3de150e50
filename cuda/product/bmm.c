/* SPDX-License-Identifier: MIT */
/*
** bmm.c - the request bmm: batches of matrix products.
**
** Floats go to cuBLAS: as one product, as a strided batch or, if the batch has
** no single stride, as several strided batches (runs) or as a list of
** pointers.  All others go to our own kernels, which take any strides.
*/
#include "cuda/product/bmm.h"

#include <limits.h>
#include <string.h>

#include "cuda/product/cublas_library.h"

/* A batch is launched run by run if there are at most MAX_RUNS or if each
   has at least MIN_RUN_WORK operations; otherwise as a list of pointers. */
#define MAX_RUNS 8
#define MIN_RUN_WORK 2e9

/* The largest batch of a call: cuBLAS places it along a dimension of the grid,
   which is shorter than 2^16.  A power of two keeps later matrices aligned. */
#define MAXCOUNT 32768

/*
** Operands
*/
static int is_float(DType t) {
  return t == DT_f16 || t == DT_bf16 || t == DT_f32 || t == DT_f64;
}

static int matrix_layout(MatrixLayout *l, int64_t rows, int64_t cols,
                         const int64_t step[2]) {
  int64_t ld;
  if (cols == 1 || step[1] == 1) {
    l->trans = 0;
    ld = rows == 1 ? cols : step[0];
    if (ld >= cols && ld <= INT_MAX) return l->ld = (int)ld, 1;
  }
  if (rows == 1 || step[0] == 1) {
    l->trans = 1;
    ld = cols == 1 ? rows : step[1];
    if (ld >= rows && ld <= INT_MAX) return l->ld = (int)ld, 1;
  }
  return 0;
}

/* y = a new reference to x, or to a copy of it if cuBLAS does not support its
   layout.  Matrices that the batch repeats are copied once. */
static int cublas_operand(Tensor **y, Tensor *x) {
  const int rows = x->nd - 2;
  Tensor once = *x;
  MatrixLayout l;
  *y = NULL;
  if (matrix_layout(&l, x->size[rows], x->size[rows + 1], x->step + rows)) {
    x->refs++;
    *y = x;
    return NC_OK;
  }
  once.refs = 1;
  for (int d = 0; d < rows; d++)
    if (x->step[d] == 0) once.size[d] = 1;
  return nc_dense(y, &once);
}

/* Removes batch dimensions of size 1 and merges those that the strides of both
   operands allow; y is dense. */
static void merge_batch_dims(BmmPlan *t) {
  int to = 0;
  for (int d = 0; d < t->nb; d++) {
    int joins = to > 0;
    if (t->size[d] == 1) continue;
    for (int j = 0; j < 2 && joins; j++)
      joins = t->step[j][to - 1] == t->step[j][d] * t->size[d];
    to += !joins;
    t->size[to - 1] = t->size[d] * (joins ? t->size[to - 1] : 1);
    for (int j = 0; j < 2; j++) t->step[j][to - 1] = t->step[j][d];
  }
  t->nb = to;
}

static BmmPlan make_plan(const Tensor *a, const Tensor *b, const Tensor *y) {
  BmmPlan t = { .a = nc_data(a), .b = nc_data(b), .y = nc_data(y), .count = 1 };
  const int nb = t.nb = y->nd - 2;
  t.m = y->size[nb];
  t.n = y->size[nb + 1];
  t.k = a->size[nb + 1];
  memcpy(t.astep, a->step + nb, sizeof t.astep);
  memcpy(t.bstep, b->step + nb, sizeof t.bstep);
  for (int d = 0; d < nb; d++) {
    t.count *= t.size[d] = y->size[d];
    t.step[0][d] = a->size[d] == 1 ? 0 : a->step[d];
    t.step[1][d] = b->size[d] == 1 ? 0 : b->step[d];
  }
  merge_batch_dims(&t);
  return t;
}

/*
** Batches for cuBLAS
*/
typedef struct CublasBatch {
  const Device *d;
  const BmmPlan *t;
  Gemm g;          /* of the first product */
  int64_t element; /* its size */
} CublasBatch;

static const void *at(const CublasBatch *b, const void *p, int64_t elements) {
  return (const char *)p + elements * b->element;
}

/* Makes one of the cuBLAS calls of a product.  *done = 0: cuBLAS does not
   support it, and our own kernels must do the whole product.  That is an
   error if an earlier call has already added to the result: they would add
   to it twice. */
static int call_gemm(const CublasBatch *b, const Gemm *g, int *some,
                     int *done) {
  TRY(nc_cublas_gemm(b->d, g, done));
  if (!*done && *some && g->beta != 0) {
    nc_fail(NC_EDEVICE, "cuBLAS refused a part of a product");
    nc_error_partial();
    return NC_EDEVICE;
  }
  *some |= *done;
  return NC_OK;
}

/* A run of n products with constant strides. */
static int multiply_strided(const CublasBatch *b, Gemm g, int64_t n, int *some,
                            int *done) {
  for (int64_t i = 0; i < n; i += MAXCOUNT) {
    Gemm part = g;
    part.a = at(b, g.a, i * g.step[0]);
    part.b = at(b, g.b, i * g.step[1]);
    part.c = (void *)at(b, g.c, i * g.step[2]);
    part.count = (int)(n - i < MAXCOUNT ? n - i : MAXCOUNT);
    TRY(call_gemm(b, &part, some, done));
    if (!*done) return NC_OK;
  }
  return NC_OK;
}

/* May matrices be passed as a list of pointers?  cuBLAS chooses a kernel
   without reading the pointers, and those for tensor cores load 16 bytes at
   a time: a misaligned matrix is a sticky error
   (cudaErrorMisalignedAddress). */
static int pointers_aligned(const CublasBatch *b) {
  const BmmPlan *t = b->t;
  uint64_t all = (uintptr_t)t->a | (uintptr_t)t->b | (uintptr_t)t->y;
  if (b->g.type == DT_f64 || (b->g.type == DT_f32 && !nc_allowtf32)) return 1;
  for (int d = 0; d < t->nb; d++)
    for (int j = 0; j < 2; j++) all |= (uint64_t)(t->step[j][d] * b->element);
  return (all | (uint64_t)(t->m * t->n * b->element)) % 16 == 0;
}

/* A call for each run along the innermost dimension of the batch. */
static int multiply_by_runs(const CublasBatch *b, int *done) {
  const BmmPlan *t = b->t;
  const int inner = t->nb - 1;
  const int64_t n = t->nb > 0 ? t->size[inner] : 1;
  int some = 0;
  for (int64_t i = 0; i < t->count / n; i++) {
    int64_t rest = i, offset[2] = { 0, 0 };
    Gemm g = b->g;
    for (int d = inner - 1; d >= 0; d--) {
      for (int j = 0; j < 2; j++)
        offset[j] += rest % t->size[d] * t->step[j][d];
      rest /= t->size[d];
    }
    g.a = at(b, g.a, offset[0]);
    g.b = at(b, g.b, offset[1]);
    g.c = (void *)at(b, g.c, i * n * t->m * t->n);
    for (int j = 0; j < 2; j++) g.step[j] = n > 1 ? t->step[j][inner] : 0;
    TRY(multiply_strided(b, g, n, &some, done));
    if (!*done) return NC_OK;
  }
  return NC_OK;
}

static int multiply_pointers(const CublasBatch *b, int *done) {
  const int64_t count = b->t->count;
  void **list, *p;
  int r, some = 0;
  TRY(nc_scratch(b->d, &p, 3 * count * (int64_t)sizeof *list));
  list = p;
  r = nc_bmm_pointers(b->d, b->t, b->element, list);
  for (int64_t i = 0; i < count && r == NC_OK; i += MAXCOUNT) {
    Gemm g = b->g;
    g.lists = 1;
    g.a = list + i;
    g.b = list + count + i;
    g.c = list + 2 * count + i;
    g.count = (int)(count - i < MAXCOUNT ? count - i : MAXCOUNT);
    r = call_gemm(b, &g, &some, done);
    if (!*done) break;
  }
  nc_scratchfree(b->d, p);
  return r;
}

/* *done = 0: cuBLAS does not support the product, and nothing was computed. */
static int multiply_with_cublas(const Device *d, DType type, const BmmPlan *t,
                                Scalar alpha, Scalar beta, int *done) {
  CublasBatch b = { .d = d, .t = t, .element = nc_dtypesize(type) };
  double work = 2.0 * (double)t->m * (double)t->n * (double)t->k;
  int64_t runcount;
  Gemm *g = &b.g;
  *done = 0;
  if (!matrix_layout(&g->la, t->m, t->k, t->astep) ||
      !matrix_layout(&g->lb, t->k, t->n, t->bstep))
    return NC_OK;
  g->type = type;
  g->m = (int)t->m;
  g->n = g->ldc = (int)t->n;
  g->k = (int)t->k;
  g->a = t->a;
  g->b = t->b;
  g->c = t->y;
  g->step[2] = t->m * t->n;
  g->alpha = nc_tofloat(alpha);
  g->beta = nc_tofloat(beta);
  if (t->nb > 0) work *= (double)t->size[t->nb - 1];
  runcount = t->nb > 0 ? t->count / t->size[t->nb - 1] : 1;
  if (runcount <= MAX_RUNS || work >= MIN_RUN_WORK)
    return multiply_by_runs(&b, done);
  return pointers_aligned(&b) ? multiply_pointers(&b, done) : NC_OK;
}

/*
** The request
*/
static int fits_int(const Tensor *x) {
  const int64_t rows = x->size[x->nd - 2], cols = x->size[x->nd - 1];
  return rows > 0 && rows <= INT_MAX && cols > 0 && cols <= INT_MAX;
}

/* Tries cuBLAS, which counts in int and needs an inner dimension. */
static int multiply_floats(const Device *d, const BmmCall *p, int *done) {
  Tensor *a = NULL, *b = NULL;
  int r;
  *done = 0;
  if (!fits_int(p->a) || !fits_int(p->b)) return NC_OK;
  if ((r = cublas_operand(&a, p->a)) == NC_OK &&
      (r = cublas_operand(&b, p->b)) == NC_OK) {
    const BmmPlan t = make_plan(a, b, p->y);
    r = multiply_with_cublas(d, p->y->dtype, &t, p->alpha, p->beta, done);
  }
  nc_release(a);
  nc_release(b);
  return r;
}

int nc_bmm_float(const Device *d, DType type, BmmPlan *t, Scalar alpha,
                 Scalar beta) {
  int done = 0;
  merge_batch_dims(t);
  if (nc_cublas_open() && t->m <= INT_MAX && t->n <= INT_MAX && t->k <= INT_MAX)
    TRY(multiply_with_cublas(d, type, t, alpha, beta, &done));
  return done ? NC_OK : nc_bmm_own(d, type, t, alpha, beta);
}

int nc_cuda_bmm(const Device *d, const BmmCall *p) {
  const DType type = p->y->dtype;
  BmmPlan t;
  int done = 0;
  nc_used(d, p->a);
  nc_used(d, p->b);
  nc_used(d, p->y);
  if (is_float(type) && nc_cublas_open()) TRY(multiply_floats(d, p, &done));
  if (done) return NC_OK;
  t = make_plan(p->a, p->b, p->y);
  return nc_bmm_own(d, type, &t,
                    t.k > 0 ? p->alpha : (Scalar){ NC_INT, { 0 }, 0, 0 },
                    p->beta);
}
