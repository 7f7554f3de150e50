/* SPDX-License-Identifier: MIT */
/*
** linalg.c - LU, Cholesky, solving with their factors, least squares, by
** LAPACK: getrf, potrf, getrs, getri, trsm, gelsd.  See lapack_batch.h for the
** layout of matrices.  bindings/lib/linalg/ composes the functions of
** torch.linalg of them.
*/
#include <math.h>
#include <string.h>

#include "core/ops/lapack_batch.h"
#include "core/cpu/kernels/kernels.h"
#include "core/op.h"

/*
** LU, Cholesky
*/
static void lu(const LapackJob *j, int64_t i, char *work) {
  const int ld = j->m > 1 ? j->m : 1;
  (void)work;
  if (j->k > 0)
    j->l->getrf(&j->m, &j->n, at(j, 0, i), &ld, at(j, 1, i), at(j, 2, i));
  else *(int *)at(j, 2, i) = 0;
}

/* Batches of small matrices are factored, and solved with, by our own loops. */
#define SMALL 32      /* rows */
#define FEWEST 4      /* matrices of a batch */
#define MOST_SIDES 64 /* columns */

static void lu_group(const LapackJob *j, int64_t i, int count, char *work) {
  nc_kernels()->row[j->wide].small_lu(at(j, 0, i), j->n, count, at(j, 1, i),
                                      at(j, 2, i), work);
}

/* Has the job go by groups, whose work is so many vectors; or not. */
static void go_by_groups(LapackJob *j, int64_t vectors,
                         void (*group)(const LapackJob *, int64_t, int,
                                       char *)) {
  if (j->parts > 1 || j->batch < FEWEST || j->m != j->n || j->n > SMALL ||
      j->n == 0)
    return;
  j->group = group;
  j->lanes = NC_LU_BYTES / (int)j->bytes;
  j->need = vectors * NC_LU_BYTES;
}

void nc_plan_lu(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  out[0] = nc_lapack_copy(w, j, 0, x);
  out[1] = nc_lapack_result(w, j, 1, x, DT_i32, 1, j->k, 0);
  out[2] = nc_lapack_result(w, j, 2, x, DT_i32, 0, 1, 0);
  j->each[2] = sizeof(int);
  j->one = lu;
  go_by_groups(j, (int64_t)j->n * j->n, lu_group);
}

/* A matrix with nan or inf is not positive definite: they reach the diagonal of
   the factor, where a LAPACK need not look for them. */
static void cholesky(const LapackJob *j, int64_t i, char *work) {
  const int lower = j->flag[0] == 'L', n = j->n;
  char *a = at(j, 0, i);
  int *info = at(j, 1, i);
  (void)work;
  *info = 0;
  if (n == 0) return;
  j->l->potrf(j->flag, &n, a, &n, info, 1);
  for (int64_t k = 0; k < n && *info == 0; k++)
    if (!nc_allfinite(j, a + (k * n + k) * j->bytes, 1)) *info = (int)k + 1;
  for (int64_t col = 0; col < n; col++) /* clear the other triangle */
    memset(a + (col * n + (lower ? 0 : col + 1)) * j->bytes, 0,
           (size_t)((lower ? col : n - 1 - col) * j->bytes));
}

void nc_plan_cholesky(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  out[0] = nc_lapack_copy(w, j, 0, x);
  out[1] = nc_lapack_result(w, j, 1, x, DT_i32, 0, 1, 0);
  j->each[1] = sizeof(int);
  j->flag[0] = c->arg[1].s.i ? 'L' : 'U';
  j->one = cholesky;
}

/*
** Solving with factors
*/
/* Checks that b [.. x columns x rows], the right sides, fits the n x n
   matrices a; with `right' for equations x*a = b. */
static int check_sides(const Tensor *a, const Tensor *b, int right) {
  TRY(nc_checkmatrix(b));
  if (a->dtype != b->dtype)
    return nc_fail(NC_EDTYPE, "dtypes differ: %s and %s",
                   nc_dtypename(a->dtype), nc_dtypename(b->dtype));
  if (a->nd != b->nd || a->size[a->nd - 1] != a->size[a->nd - 2] ||
      a->size[a->nd - 1] != b->size[b->nd - (right ? 2 : 1)])
    return nc_fail(NC_ESHAPE, "the shapes of the two sides do not match");
  for (int d = 0; d < a->nd - 2; d++)
    if (a->size[d] != b->size[d])
      return nc_fail(NC_ESHAPE, "the batches differ");
  return NC_OK;
}

/* Returns whether one of n elements is nan. */
static int has_nan(const LapackJob *j, const void *x, int64_t n) {
  const float *f = x;
  const double *d = x;
  int found = 0;
  n *= j->parts;
  if (j->wide)
    for (int64_t i = 0; i < n; i++) found |= d[i] != d[i];
  else
    for (int64_t i = 0; i < n; i++) found |= f[i] != f[i];
  return found;
}

static void set_nan(const LapackJob *j, void *x, int64_t n) {
  for (int64_t i = 0; i < n * j->parts; i++)
    if (j->wide) ((double *)x)[i] = NAN;
    else ((float *)x)[i] = NAN;
}

/* Solves for one matrix.  A nan in the factors or in a right side must make
   the solution nan; a LAPACK that skips multiplications by 0 would lose it. */
static void lusolve(const LapackJob *j, int64_t i, char *work) {
  char *y = at(j, 2, i);
  const int64_t n = j->n;
  (void)work;
  if (n == 0 || j->other == 0) return;
  if (has_nan(j, at(j, 0, i), n * n)) {
    set_nan(j, y, n * j->other);
    return;
  }
  for (int64_t col = 0; col < j->other; col++)
    if (has_nan(j, y + col * n * j->bytes, n))
      set_nan(j, y + col * n * j->bytes, n);
  j->l->getrs(j->flag, &j->n, &j->other, at(j, 0, i), &j->n, at(j, 1, i), y,
              &j->n, &j->info[i], 1);
}

static void lusolve_group(const LapackJob *j, int64_t i, int count,
                          char *work) {
  const int64_t n = j->n;
  nc_kernels()->row[j->wide].small_lu_solve(at(j, 0, i), at(j, 1, i), j->n,
                                            count, at(j, 2, i), j->other, work);
  for (int64_t k = i; k < i + count; k++)
    if (has_nan(j, at(j, 0, k), n * n)) set_nan(j, at(j, 2, k), n * j->other);
}

/* Checks that p holds pivots for the factors x, j->batch matrices. */
static int check_pivots(const LapackJob *j, const Tensor *x, const Tensor *p) {
  const int *pivot = nc_data(p);
  if (p->dtype != DT_i32 || p->nd != x->nd - 1 || !nc_isdense(p) ||
      nc_numel(p) != j->batch * j->n)
    return nc_fail(NC_ESHAPE, "pivots must be int32, like those of lu_factor "
                              "them");
  for (int64_t i = 0; i < nc_numel(p) && !j->dry; i++)
    if (pivot[i] < 1 || pivot[i] > j->n)
      return nc_fail(NC_EVALUE, "pivot %d of %d", pivot[i], j->n);
  return NC_OK;
}

void nc_plan_lusolve(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t, *p = c->arg[1].t, *b = c->arg[2].t;
  w->status = check_sides(x, b, 0);
  if (w->status == NC_OK) w->status = check_pivots(j, x, p);
  nc_lapack_operand(w, j, 0, x);
  nc_lapack_operand(w, j, 1, p);
  if (w->status != NC_OK) return;
  out[0] = nc_lapack_copy(w, j, 2, b);
  j->other = (int)b->size[b->nd - 2];
  j->flag[0] = !c->arg[3].s.i ? 'N' : j->parts > 1 ? 'C' : 'T';
  j->one = lusolve;
  if (j->flag[0] == 'N' && j->other > 0 && j->other <= MOST_SIDES)
    go_by_groups(j, (int64_t)j->n * (j->n + j->other), lusolve_group);
}

/* getri takes two thirds of the time of solving for the columns of the
   identity. */
static void luinverse(const LapackJob *j, int64_t i, char *work) {
  char *y = at(j, 0, i);
  const int64_t n = j->n;
  if (n == 0) return;
  if (has_nan(j, y, n * n)) set_nan(j, y, n * n);
  else j->l->getri(&j->n, y, &j->n, at(j, 1, i), work, &j->lwork, &j->info[i]);
}

void nc_plan_luinverse(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  enum { BLOCK = 128 }; /* columns, of which LAPACK needs a copy */
  Tensor *x = c->arg[0].t, *p = c->arg[1].t;
  w->status = check_pivots(j, x, p);
  nc_lapack_operand(w, j, 1, p);
  if (w->status != NC_OK) return;
  out[0] = nc_lapack_copy(w, j, 0, x);
  j->lwork = j->n * BLOCK;
  j->need = round_up((int64_t)j->lwork * j->bytes);
  j->one = luinverse;
}

static void trisolve(const LapackJob *j, int64_t i, char *work) {
  const float one[2] = { 1, 0 };
  const double wide[2] = { 1, 0 };
  const void *alpha = j->wide ? (const void *)wide : one;
  const int m = j->k, n = j->other, lda = j->n, ldb = m;
  (void)work;
  if (m > 0 && n > 0)
    j->l->trsm(&j->flag[0], &j->flag[1], &j->flag[2], &j->flag[3], &m, &n,
               alpha, at(j, 0, i), &lda, at(j, 1, i), &ldb, 1, 1, 1, 1);
}

void nc_plan_trisolve(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t, *b = c->arg[1].t;
  const int right = c->arg[5].s.i != 0;
  w->status = check_sides(x, b, right);
  nc_lapack_operand(w, j, 0, x);
  if (w->status != NC_OK) return;
  out[0] = nc_lapack_copy(w, j, 1, b);
  j->k = (int)b->size[b->nd - 1];
  j->other = (int)b->size[b->nd - 2];
  j->flag[0] = right ? 'R' : 'L';
  j->flag[1] = c->arg[2].s.i ? 'U' : 'L';
  j->flag[2] = !c->arg[3].s.i ? 'N' : j->parts > 1 ? 'C' : 'T';
  j->flag[3] = c->arg[4].s.i ? 'U' : 'N';
  j->one = trisolve;
}

/*
** Least squares
*/
/* Tensors of the job: 0 the matrix; 1 the right sides, with as many rows as
   the longer side of the matrix, overwritten by the solutions; 2 singular
   values; 3 ranks. */
static void lstsq(const LapackJob *j, int64_t i, char *work) {
  const int tall = j->m > j->n ? j->m : j->n;
  int *iwork = nc_lapack_iwork(j, work);
  const float low = (float)j->rcond;
  const void *rcond = j->wide ? (const void *)&j->rcond : &low;
  *(int *)at(j, 3, i) = 0;
  j->info[i] = !nc_allfinite(j, at(j, 0, i), (int64_t)j->m * j->n) ||
               !nc_allfinite(j, at(j, 1, i), (int64_t)tall * j->other);
  if (j->info[i] != 0 || j->k == 0 || j->other == 0) return;
  if (j->parts > 1)
    j->l->of_complex.gelsd(&j->m, &j->n, &j->other, at(j, 0, i), &j->m,
                           at(j, 1, i), &tall, at(j, 2, i), rcond, at(j, 3, i),
                           work, &j->lwork, nc_lapack_rwork(j, work), iwork,
                           &j->info[i]);
  else
    j->l->real.gelsd(&j->m, &j->n, &j->other, at(j, 0, i), &j->m, at(j, 1, i),
                     &tall, at(j, 2, i), rcond, at(j, 3, i), work, &j->lwork,
                     iwork, &j->info[i]);
}

/* gelsd overwrites the right sides by the solutions, so that out[0] has
   max(m, n) rows and starts as b with zeros below. */
void nc_plan_lstsq(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t, *b = c->arg[1].t, *part;
  const int query = -1, tall = j->m > j->n ? j->m : j->n;
  const double rcond = j->rcond = nc_tofloat(c->arg[2].s);
  const float low = (float)rcond;
  float least;
  double answer[2] = { 0 }, reals[2] = { 0 };
  int info, rank, integers;
  if (b->nd != x->nd || b->dtype != x->dtype || b->size[b->nd - 1] != j->m) {
    w->status = nc_fail(NC_ESHAPE, "the shapes of the two sides do not match");
    return;
  }
  j->other = (int)b->size[b->nd - 2];
  nc_lapack_copy(w, j, 0, x);
  out[0] = nc_lapack_result(w, j, 1, x, x->dtype, 2, j->other, tall);
  out[1] = nc_lapack_result(w, j, 2, x, nc_real_dtype(x->dtype), 1, j->k, 0);
  out[2] = nc_lapack_result(w, j, 3, x, DT_i32, 0, 1, 0);
  j->each[3] = sizeof(int);
  j->one = lstsq;
  if (w->status == NC_OK) w->status = nc_fill(out[0], nc_int(0));
  part = w->status ? NULL : nc_temps_narrow(w, out[0], x->nd - 1, 0, j->m);
  if (w->status == NC_OK) w->status = nc_copy(part, b);
  if (w->status != NC_OK || j->k == 0 || j->other == 0) return;
  const void *limit = j->wide ? (const void *)&rcond : &low;
  if (j->parts > 1) {
    j->l->of_complex.gelsd(&j->m, &j->n, &j->other, NULL, &j->m, NULL, &tall,
                           NULL, limit, &rank, answer, &query, reals, &integers,
                           &info);
    memcpy(&least, reals, sizeof least);
    j->lrwork = (int)(j->wide ? reals[0] : (double)least * 1.0001 + 8);
  } else
    j->l->real.gelsd(&j->m, &j->n, &j->other, NULL, &j->m, NULL, &tall, NULL,
                     limit, &rank, answer, &query, &integers, &info);
  nc_lapack_set_work(j, answer, integers);
}
