/* SPDX-License-Identifier: MIT */
/*
** orthogonal.c - QR, Householder vectors, eigenvalues, singular values by
** LAPACK: geqrf, orgqr, ormqr, geev, syevd, gesdd.  See lapack_batch.h for the
** layout of matrices; bindings/lib/linalg/ composes torch.linalg's functions of
** them.
*/
#include <math.h>
#include <string.h>

#include "core/ops/lapack_batch.h"
#include "core/op.h"

/*
** QR
*/
/* Tensors of the job: 0 the matrix, 1 Q with `other' columns, 2 R with
   `other' rows. */
static void qr(const LapackJob *j, int64_t i, char *work) {
  const int m = j->m, n = j->n, q = j->other;
  char *a = at(j, 0, i), *y = at(j, 1, i), *r = at(j, 2, i);
  char *tau = work + round_up((int64_t)j->lwork * j->bytes);
  const size_t size = (size_t)j->bytes;
  int info;
  if (m == 0) return;
  if (n > 0) j->l->geqrf(&m, &n, a, &m, tau, work, &j->lwork, &info);
  for (int64_t col = 0; col < n; col++) {
    const int64_t full = col + 1 < q ? col + 1 : q;
    memcpy(r + (size_t)(col * q) * size, a + (size_t)(col * m) * size,
           (size_t)full * size);
    memset(r + (size_t)(col * q + full) * size, 0, (size_t)(q - full) * size);
  }
  memset(y, 0, (size_t)m * (size_t)q * size);
  memcpy(y, a, (size_t)m * (size_t)j->k * size);
  if (q > 0) j->l->orgqr(&m, &q, &j->k, y, &m, tau, work, &j->lwork, &info);
}

void nc_plan_qr(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  j->other = c->arg[1].s.i ? j->m : j->k;
  nc_lapack_copy(w, j, 0, x);
  out[0] = nc_lapack_result(w, j, 1, x, x->dtype, 2, j->other, j->m);
  out[1] = nc_lapack_result(w, j, 2, x, x->dtype, 2, j->n, j->other);
  j->lwork = 64 * ((j->m > j->n ? j->m : j->n) + 1);
  j->need =
      round_up((int64_t)j->lwork * j->bytes) + round_up((j->k + 1) * j->bytes);
  j->one = qr;
}

/*
** Householder vectors, below the diagonal, and their factors tau
*/
static void geqrf(const LapackJob *j, int64_t i, char *work) {
  if (j->k > 0)
    j->l->geqrf(&j->m, &j->n, at(j, 0, i), &j->m, at(j, 1, i), work, &j->lwork,
                &j->info[i]);
}

/* Sets the work space: enough for blocks of 64 columns, LAPACK's largest. */
static void set_blocked_work(LapackJob *j, int longest) {
  j->lwork = 64 * (longest + 1) + 65 * 64;
  j->need = round_up((int64_t)j->lwork * j->bytes);
}

void nc_plan_geqrf(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  out[0] = nc_lapack_copy(w, j, 0, x);
  out[1] = nc_lapack_result(w, j, 1, x, x->dtype, 1, j->k, 0);
  set_blocked_work(j, j->m > j->n ? j->m : j->n);
  j->one = geqrf;
}

/* Checks that tau has a vector of at most `most' factors for each matrix of
   x. */
static int check_tau(const Tensor *x, const Tensor *tau, int64_t most) {
  int fits = tau->dtype == x->dtype && tau->nd == x->nd - 1 &&
             tau->size[tau->nd - 1] <= most;
  for (int d = 0; fits && d < tau->nd - 1; d++)
    fits = tau->size[d] == x->size[d];
  return fits ? NC_OK
              : nc_fail(NC_ESHAPE,
                        "tau must be a vector of at most "
                        "%lld factors for each matrix, of its dtype",
                        (long long)most);
}

static void orgqr(const LapackJob *j, int64_t i, char *work) {
  if (j->n > 0)
    j->l->orgqr(&j->m, &j->n, &j->other, at(j, 0, i), &j->m, at(j, 1, i), work,
                &j->lwork, &j->info[i]);
}

void nc_plan_orgqr(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t, *tau = c->arg[1].t;
  w->status = j->m < j->n
                  ? nc_fail(NC_ESHAPE, "needs at least as many rows as columns")
                  : check_tau(x, tau, j->n);
  nc_lapack_operand(w, j, 1, tau);
  if (w->status != NC_OK) return;
  out[0] = nc_lapack_copy(w, j, 0, x);
  j->other = (int)tau->size[tau->nd - 1];
  set_blocked_work(j, j->m);
  j->one = orgqr;
}

/* Tensors of the job: 0 the vectors; 1 tau; 2 the other matrix, overwritten
   by the product. k is the number of factors; m and n are the sides of the
   other matrix. */
static void ormqr(const LapackJob *j, int64_t i, char *work) {
  const int rows = j->flag[0] == 'L' ? j->m : j->n;
  if (j->m > 0 && j->n > 0)
    j->l->ormqr(&j->flag[0], &j->flag[1], &j->m, &j->n, &j->k, at(j, 0, i),
                &rows, at(j, 1, i), at(j, 2, i), &j->m, work, &j->lwork,
                &j->info[i], 1, 1);
}

void nc_plan_ormqr(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t, *tau = c->arg[1].t, *b = c->arg[2].t;
  const int left = c->arg[3].s.i != 0, rows = j->m;
  w->status = nc_checkmatrix(b);
  if (w->status == NC_OK && (b->nd != x->nd || b->dtype != x->dtype ||
                             b->size[b->nd - (left ? 1 : 2)] != rows))
    w->status = nc_fail(NC_ESHAPE, "the sizes of the product do not match");
  for (int d = 0; w->status == NC_OK && d < b->nd - 2; d++)
    if (b->size[d] != x->size[d])
      w->status = nc_fail(NC_ESHAPE, "the batches differ");
  if (w->status == NC_OK) w->status = check_tau(x, tau, j->k);
  if (w->status != NC_OK) return;
  nc_lapack_copy(w, j, 0, x); /* ormqr changes it while it runs */
  nc_lapack_operand(w, j, 1, tau);
  out[0] = nc_lapack_copy(w, j, 2, b);
  j->m = (int)b->size[b->nd - 1];
  j->n = (int)b->size[b->nd - 2];
  j->k = (int)tau->size[tau->nd - 1];
  j->flag[0] = left ? 'L' : 'R';
  j->flag[1] = !c->arg[4].s.i ? 'N' : j->parts > 1 ? 'C' : 'T';
  set_blocked_work(j, j->m > j->n ? j->m : j->n);
  j->one = ormqr;
}

/*
** Eigenvalues, singular values
*/
/* Results: of real matrices the real and the imaginary parts of eigenvalues,
   and vectors, two columns for a pair that is conjugate; of complex ones the
   values, zeros, and the vectors. */
static void eig(const LapackJob *j, int64_t i, char *work) {
  const int one = 1, vectors = j->flag[1] == 'V';
  const int *ldv = vectors ? &j->n : &one;
  void *v = vectors ? at(j, 3, i) : NULL;
  if (j->n == 0) return;
  j->info[i] = !nc_allfinite(j, at(j, 0, i), (int64_t)j->n * j->n);
  if (j->info[i] != 0) return;
  if (j->parts > 1)
    j->l->of_complex.geev(&j->flag[0], &j->flag[1], &j->n, at(j, 0, i), &j->n,
                          at(j, 1, i), NULL, &one, v, ldv, work, &j->lwork,
                          nc_lapack_rwork(j, work), &j->info[i], 1, 1);
  else
    j->l->real.geev(&j->flag[0], &j->flag[1], &j->n, at(j, 0, i), &j->n,
                    at(j, 1, i), at(j, 2, i), NULL, &one, v, ldv, work,
                    &j->lwork, &j->info[i], 1, 1);
}

void nc_plan_eig(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  const int vectors = c->arg[1].s.i != 0, query = -1, one = 1;
  const int *ldv = vectors ? &j->n : &one;
  double answer[2] = { 0 }, reals[2];
  int info;
  nc_lapack_copy(w, j, 0, x);
  out[0] = nc_lapack_result(w, j, 1, x, x->dtype, 1, j->n, 0);
  out[1] = nc_lapack_result(w, j, 2, x, nc_real_dtype(x->dtype), 1, j->n, 0);
  if (vectors) out[2] = nc_lapack_result(w, j, 3, x, x->dtype, 2, j->n, j->n);
  if (w->status == NC_OK && j->parts > 1)
    w->status = nc_fill(out[1], nc_int(0));
  j->flag[0] = 'N';
  j->flag[1] = vectors ? 'V' : 'N';
  j->lrwork = j->parts > 1 ? 2 * j->n : 0;
  j->one = eig;
  if (w->status != NC_OK || j->n == 0) return;
  if (j->parts > 1)
    j->l->of_complex.geev(&j->flag[0], &j->flag[1], &j->n, NULL, &j->n, NULL,
                          NULL, &one, NULL, ldv, answer, &query, reals, &info,
                          1, 1);
  else
    j->l->real.geev(&j->flag[0], &j->flag[1], &j->n, NULL, &j->n, NULL, NULL,
                    NULL, &one, NULL, ldv, answer, &query, &info, 1, 1);
  nc_lapack_set_work(j, answer, 0);
}

/* Is the triangle that eigh reads finite? */
static int is_triangle_finite(const LapackJob *j, int64_t i) {
  const int lower = j->flag[1] == 'L';
  const int64_t n = j->n;
  const char *a = at(j, 0, i);
  for (int64_t col = 0; col < n; col++)
    if (!nc_allfinite(j, a + (col * n + (lower ? col : 0)) * j->bytes,
                      lower ? n - col : col + 1))
      return 0;
  return 1;
}

/* LAPACK gives numbers for some matrices with nan, and a failure for others. */
static void eigh(const LapackJob *j, int64_t i, char *work) {
  int *iwork = nc_lapack_iwork(j, work);
  j->info[i] = !is_triangle_finite(j, i);
  if (j->info[i] != 0 || j->n == 0) return;
  if (j->parts > 1)
    j->l->of_complex.heevd(&j->flag[0], &j->flag[1], &j->n, at(j, 0, i), &j->n,
                           at(j, 1, i), work, &j->lwork,
                           nc_lapack_rwork(j, work), &j->lrwork, iwork,
                           &j->liwork, &j->info[i], 1, 1);
  else
    j->l->real.syevd(&j->flag[0], &j->flag[1], &j->n, at(j, 0, i), &j->n,
                     at(j, 1, i), work, &j->lwork, iwork, &j->liwork,
                     &j->info[i], 1, 1);
}

void nc_plan_eigh(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  const int query = -1;
  double answer[2] = { 0 }, reals[2] = { 0 };
  int info, integers;
  float least;
  out[1] = nc_lapack_copy(w, j, 0, x);
  out[0] = nc_lapack_result(w, j, 1, x, nc_real_dtype(x->dtype), 1, j->n, 0);
  j->flag[0] = c->arg[2].s.i ? 'V' : 'N';
  j->flag[1] = c->arg[1].s.i ? 'L' : 'U';
  j->one = eigh;
  if (w->status != NC_OK || j->n == 0) return;
  if (j->parts > 1) {
    j->l->of_complex.heevd(&j->flag[0], &j->flag[1], &j->n, NULL, &j->n, NULL,
                           answer, &query, reals, &query, &integers, &query,
                           &info, 1, 1);
    memcpy(&least, reals, sizeof least);
    j->lrwork = (int)(j->wide ? reals[0] : (double)least * 1.0001 + 8);
  } else
    j->l->real.syevd(&j->flag[0], &j->flag[1], &j->n, NULL, &j->n, NULL, answer,
                     &query, &integers, &query, &info, 1, 1);
  nc_lapack_set_work(j, answer, integers);
}

static void svd(const LapackJob *j, int64_t i, char *work) {
  int *iwork = nc_lapack_iwork(j, work);
  const int vectors = j->flag[0] != 'N', one = 1;
  const int ldv = vectors ? j->other : 1, *ldu = vectors ? &j->m : &one;
  void *u = vectors ? at(j, 1, i) : NULL, *v = vectors ? at(j, 3, i) : NULL;
  j->info[i] = !nc_allfinite(j, at(j, 0, i), (int64_t)j->m * j->n);
  if (j->info[i] != 0 || j->k == 0) return; /* LAPACK would print of nan */
  if (j->parts > 1)
    j->l->of_complex.gesdd(j->flag, &j->m, &j->n, at(j, 0, i), &j->m,
                           at(j, 2, i), u, ldu, v, &ldv, work, &j->lwork,
                           nc_lapack_rwork(j, work), iwork, &j->info[i], 1);
  else
    j->l->real.gesdd(j->flag, &j->m, &j->n, at(j, 0, i), &j->m, at(j, 2, i), u,
                     ldu, v, &ldv, work, &j->lwork, iwork, &j->info[i], 1);
}

/* The reals that gesdd of complex matrices needs, as LAPACK says. */
static int svd_reals(const LapackJob *j) {
  const int64_t least = j->k, most = j->m > j->n ? j->m : j->n;
  const int64_t many = 5 * least + 7, few = 2 * most + 2 * least + 1;
  if (j->parts == 1) return 0;
  return (int)(least * (many > few ? many : few));
}

/* Results: S, U, and V with its vectors as rows.  LAPACK is called for
   matrices that are not empty only. */
void nc_plan_svd(Temps *w, LapackJob *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  const int full = c->arg[1].s.i != 0, vectors = c->arg[2].s.i != 0;
  const int query = -1;
  double answer[2] = { 0 }, reals[2];
  int info, none = 0;
  out[0] = nc_lapack_result(w, j, 2, x, nc_real_dtype(x->dtype), 1, j->k, 0);
  nc_lapack_copy(w, j, 0, x);
  j->flag[0] = !vectors ? 'N' : full ? 'A' : 'S';
  j->other = full ? j->n : j->k;
  if (vectors) {
    out[1] =
        nc_lapack_result(w, j, 1, x, x->dtype, 2, full ? j->m : j->k, j->m);
    out[2] = nc_lapack_result(w, j, 3, x, x->dtype, 2, j->n, j->other);
  }
  j->lrwork = svd_reals(j);
  j->one = svd;
  if (w->status != NC_OK || j->k == 0) return;
  if (j->parts > 1)
    j->l->of_complex.gesdd(j->flag, &j->m, &j->n, NULL, &j->m, NULL, NULL,
                           &j->m, NULL, &j->n, answer, &query, reals, &none,
                           &info, 1);
  else
    j->l->real.gesdd(j->flag, &j->m, &j->n, NULL, &j->m, NULL, NULL, &j->m,
                     NULL, &j->n, answer, &query, &none, &info, 1);
  nc_lapack_set_work(j, answer, 8 * (int64_t)j->k);
}
