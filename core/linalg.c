/* SPDX-License-Identifier: MIT */
/*
** linalg.c - factorizations of batches of matrices, as LAPACK makes them.
**
** Matrices are given and come back column by column: what LAPACK calls
** A(i,j) is self[..][j][i].  What is made of them, and gradients, stands in
** linalg.lua.  The matrices of a batch are shared among the threads.
*/
#include <limits.h>
#include <math.h>
#include <string.h>

#include "compose.h"
#include "lapack.h"
#include "op.h"
#include "watched.h"

typedef struct Job Job;
struct Job {
  const Lapack *l;
  int m, n, k, other;         /* rows, columns, the fewer of them; more */
  char flag[4];
  double rcond;
  int64_t batch, slots;
  int64_t bytes;              /* of an element */
  char *t[4];                 /* tensors, and the bytes of a matrix of each */
  int64_t each[4];
  int *info;                  /* one for each matrix */
  char *work;
  int64_t need;               /* bytes of work, for a slot */
  int lwork, liwork;
  int dry;                    /* nothing is computed */
  void (*one)(const Job *j, int64_t i, char *work);
};

/*
** Operands and results
*/
static int checkmatrix(const Tensor *x) {
  if (x->nd < 2)
    return nc_fail(NC_ESHAPE, "needs a matrix or a batch of them, not %d "
                   "dimension%s", x->nd, x->nd == 1 ? "" : "s");
  if (x->dtype != DT_f32 && x->dtype != DT_f64)
    return nc_fail(NC_EDTYPE, "needs float32 or float64, not %s",
                   nc_dtypename(x->dtype));
  for (int i = 1; i <= 2; i++)
    if (x->size[x->nd - i] > INT_MAX / 4)
      return nc_fail(NC_ESHAPE, "a matrix with a side of %lld is too large",
                     (long long)x->size[x->nd - i]);
  return NC_OK;
}

/* Is d a device whose matrices the host has to work on? */
static int elsewhere(const Device *d) {
  return d != &nc_cpu && !nc_isdry(d);
}

static int begin(Job *j, const Tensor *x) {
  memset(j, 0, sizeof *j);
  TRY(checkmatrix(x));
  j->m = (int)x->size[x->nd - 1];
  j->n = (int)x->size[x->nd - 2];
  j->k = j->m < j->n ? j->m : j->n;
  j->bytes = nc_dtypesize(x->dtype);
  j->dry = nc_isdry(nc_device(x));
  j->batch = 1;
  for (int d = 0; d < x->nd - 2; d++) j->batch *= x->size[d];
  return nc_lapack(&j->l, x->dtype);
}

/* Tensor number i of the job: a new one [batch of x.., and nd sizes]. */
static Tensor *result(Draft *w, Job *j, int i, const Tensor *x, DType type,
                      int nd, int64_t a, int64_t b) {
  int64_t size[NC_MAXDIM];
  Tensor *t = NULL;
  int r = w->status;
  memcpy(size, x->size, sizeof size);
  size[x->nd - 2] = a;
  if (nd == 2) size[x->nd - 1] = b;
  if (r == NC_OK) r = nc_new(&t, nc_device(x), type, x->nd - 2 + nd, size);
  t = nc_held(w, r, &t);
  if (t == NULL) return NULL;
  j->t[i] = nc_data(t);
  j->each[i] = a * (nd == 2 ? b : 1) * nc_dtypesize(type);
  return t;
}

/* The same as a dense copy of x. */
static Tensor *copied(Draft *w, Job *j, int i, Tensor *x) {
  Tensor *t = result(w, j, i, x, x->dtype, 2, x->size[x->nd - 2],
                     x->size[x->nd - 1]);
  if (t) w->status = nc_copy(t, x);
  return w->status == NC_OK ? t : NULL;
}

/* Operand number i: x itself, or a dense copy. */
static void given(Draft *w, Job *j, int i, Tensor *x) {
  Tensor *dense = NULL;
  int r = w->status == NC_OK ? nc_dense(&dense, x) : w->status;
  dense = nc_held(w, r, &dense);
  if (dense == NULL) return;
  j->t[i] = nc_data(dense);
  j->each[i] = j->batch ? nc_numel(dense) / j->batch *
                              nc_dtypesize(dense->dtype) : 0;
}

static void *at(const Job *j, int k, int64_t i) {
  return j->t[k] + i * j->each[k];
}

/*
** Running
*/
static void slot(void *ctx, int64_t first, int64_t last) {
  const Job *j = ctx;
  for (int64_t s = first; s < last; s++)
    for (int64_t i = s; i < j->batch && !nc_interrupted; i += j->slots)
      j->one(j, i, j->work + s * j->need);
}

/* Gives the first failure: matrices count from 1, 0 if there is none. */
static int run(Job *j, int64_t *failed) {
  const int64_t infos = j->batch * (int64_t)sizeof(int);
  void *p = NULL, *q = NULL;
  int r;
  *failed = 0;
  if (j->batch == 0 || j->dry) return NC_OK;
  j->slots = j->batch < nc_threads() ? j->batch : nc_threads();
  if (j->need && (r = nc_hostalloc(&p, j->need * j->slots)) != NC_OK) return r;
  r = nc_hostalloc(&q, infos);
  if (r == NC_OK) {
    j->work = p;
    j->info = q;
    memset(q, 0, (size_t)infos);
    nc_count(0, j->batch * (j->each[0] + j->each[1] + j->each[2]));
    r = nc_parallel(j->slots, 1, slot, j);
    for (int64_t i = j->batch; r == NC_OK && i > 0; i--)
      if (j->info[i - 1] != 0) *failed = i;
    nc_hostfree(q, infos);
  }
  if (p) nc_hostfree(p, j->need * j->slots);
  return r;
}

static int converged(const Job *j, int64_t failed) {
  if (failed == 0) return NC_OK;
  if (j->batch == 1)
    return nc_fail(NC_EVALUE, "does not converge: does the matrix hold nan "
                   "or inf?");
  return nc_fail(NC_EVALUE, "does not converge for matrix %lld of the batch: "
                 "does it hold nan or inf?", (long long)failed);
}

/* What a query for work space says, with room for how it is rounded. */
static int asked(const Job *j, const double *answer) {
  float f;
  memcpy(&f, answer, sizeof f);
  return (int)(j->bytes == 8 ? *answer : (double)f * 1.0001 + 8);
}

static int64_t even(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/* What an operation says of itself: it makes its results, out[], and says in
   the job what is to be done with them. */
typedef struct Plan {
  const char *name;
  int operands;               /* tensors, which lie on one device */
  int square, converges;      /* must the matrices be, must the iteration? */
  void (*make)(Draft *w, Job *j, const Call *c, Tensor *out[]);
} Plan;

static int carryout(Call *c, const Plan *p) {
  Tensor *out[NC_MAXOUT] = { NULL };
  const Device *d;
  Draft w = { 0 };
  int64_t failed = 0;
  Job j;
  TRY(nc_samedevice(&d, c->arg, p->operands));
  if (elsewhere(d)) return nc_byhost(c, d);
  w.status = begin(&j, c->arg[0].t);
  if (w.status == NC_OK && p->square && j.m != j.n)
    w.status = nc_fail(NC_ESHAPE, "needs square matrices");
  if (w.status == NC_OK) p->make(&w, &j, c, out);
  if (w.status == NC_OK) w.status = run(&j, &failed);
  if (w.status == NC_OK && p->converges) w.status = converged(&j, failed);
  for (int i = 0; i < NC_MAXOUT; i++)
    if (out[i]) nc_give(&w, &c->out[i], out[i]);
  return nc_blamed(nc_finish(&w), p->name, c->arg, p->operands);
}

/*
** LU, Cholesky
*/
static void lu(const Job *j, int64_t i, char *work) {
  const int ld = j->m > 1 ? j->m : 1;
  (void)work;
  if (j->k > 0)
    j->l->getrf(&j->m, &j->n, at(j, 0, i), &ld, at(j, 1, i), at(j, 2, i));
  else
    *(int *)at(j, 2, i) = 0;
}

static void planlu(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  out[0] = copied(w, j, 0, x);
  out[1] = result(w, j, 1, x, DT_i32, 1, j->k, 0);
  out[2] = result(w, j, 2, x, DT_i32, 0, 1, 0);
  j->each[2] = sizeof(int);
  j->one = lu;
}

int nc_op__lapack_lu(Call *c) {
  static const Plan plan = { "lu", 1, 0, 0, planlu };
  return carryout(c, &plan);
}

static void cholesky(const Job *j, int64_t i, char *work) {
  const int lower = j->flag[0] == 'L', n = j->n;
  char *a = at(j, 0, i);
  (void)work;
  *(int *)at(j, 1, i) = 0;
  if (n == 0) return;
  j->l->potrf(j->flag, &n, a, &n, at(j, 1, i), 1);
  for (int64_t col = 0; col < n; col++)       /* the other triangle is 0 */
    memset(a + (col * n + (lower ? 0 : col + 1)) * j->bytes, 0,
           (size_t)((lower ? col : n - 1 - col) * j->bytes));
}

static void plancholesky(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  out[0] = copied(w, j, 0, x);
  out[1] = result(w, j, 1, x, DT_i32, 0, 1, 0);
  j->each[1] = sizeof(int);
  j->flag[0] = c->arg[1].s.i ? 'L' : 'U';
  j->one = cholesky;
}

int nc_op__lapack_cholesky(Call *c) {
  static const Plan plan = { "cholesky", 1, 1, 0, plancholesky };
  return carryout(c, &plan);
}

/*
** Solving with factors
*/
/* Do b [.. x columns x rows] and the n x n matrices a fit together? */
static int checkside(const Tensor *a, const Tensor *b, int right) {
  TRY(checkmatrix(b));
  if (a->dtype != b->dtype)
    return nc_fail(NC_EDTYPE, "dtypes differ: %s and %s",
                   nc_dtypename(a->dtype), nc_dtypename(b->dtype));
  if (a->nd != b->nd || a->size[a->nd - 1] != a->size[a->nd - 2] ||
      a->size[a->nd - 1] != b->size[b->nd - (right ? 2 : 1)])
    return nc_fail(NC_ESHAPE, "the sides of the equations do not fit");
  for (int d = 0; d < a->nd - 2; d++)
    if (a->size[d] != b->size[d])
      return nc_fail(NC_ESHAPE, "the batches differ");
  return NC_OK;
}

/* Are n elements finite?  LAPACK would write to the terminal otherwise. */
static int finite(const void *x, int64_t n, int64_t bytes) {
  const float *f = x;
  const double *d = x;
  double zero = 0;
  for (int64_t i = 0; i < n; i++) zero += 0 * (bytes == 8 ? d[i] : f[i]);
  return zero == 0;
}

/* Is one of n elements nan? */
static int hasnan(const void *x, int64_t n, int64_t bytes) {
  const float *f = x;
  const double *d = x;
  int found = 0;
  if (bytes == 8)
    for (int64_t i = 0; i < n; i++) found |= d[i] != d[i];
  else
    for (int64_t i = 0; i < n; i++) found |= f[i] != f[i];
  return found;
}

static void setnan(void *x, int64_t n, int64_t bytes) {
  for (int64_t i = 0; i < n; i++)
    if (bytes == 8) ((double *)x)[i] = NAN;
    else ((float *)x)[i] = NAN;
}

/* A nan among the factors, or in a right side, makes all nan that comes of it:
   LAPACKs that leave out what is multiplied by 0 lose it. */
static void lusolve(const Job *j, int64_t i, char *work) {
  char *y = at(j, 2, i);
  const int64_t n = j->n;
  (void)work;
  if (n == 0 || j->other == 0) return;
  if (hasnan(at(j, 0, i), n * n, j->bytes)) {
    setnan(y, n * j->other, j->bytes);
    return;
  }
  for (int64_t col = 0; col < j->other; col++)
    if (hasnan(y + col * n * j->bytes, n, j->bytes))
      setnan(y + col * n * j->bytes, n, j->bytes);
  j->l->getrs(j->flag, &j->n, &j->other, at(j, 0, i), &j->n, at(j, 1, i), y,
              &j->n, &j->info[i], 1);
}

/* Are they pivots of the factors x, which has j->batch matrices? */
static int checkpivots(const Job *j, const Tensor *x, const Tensor *p) {
  const int *pivot = nc_data(p);
  if (p->dtype != DT_i32 || p->nd != x->nd - 1 || !nc_isdense(p) ||
      nc_numel(p) != j->batch * j->n)
    return nc_fail(NC_ESHAPE, "pivots must be int32, as lu_factor gives "
                   "them");
  for (int64_t i = 0; i < nc_numel(p) && !j->dry; i++)
    if (pivot[i] < 1 || pivot[i] > j->n)
      return nc_fail(NC_EVALUE, "pivot %d of %d", pivot[i], j->n);
  return NC_OK;
}

static void planlusolve(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t, *p = c->arg[1].t, *b = c->arg[2].t;
  w->status = checkside(x, b, 0);
  if (w->status == NC_OK) w->status = checkpivots(j, x, p);
  given(w, j, 0, x);
  given(w, j, 1, p);
  if (w->status != NC_OK) return;
  out[0] = copied(w, j, 2, b);
  j->other = (int)b->size[b->nd - 2];
  j->flag[0] = c->arg[3].s.i ? 'T' : 'N';
  j->one = lusolve;
}

int nc_op__lapack_lusolve(Call *c) {
  static const Plan plan = { "lu_solve", 3, 0, 0, planlusolve };
  return carryout(c, &plan);
}

static void trisolve(const Job *j, int64_t i, char *work) {
  const float one = 1;
  const double two = 1;
  const void *alpha = j->bytes == 8 ? (const void *)&two : &one;
  const int m = j->k, n = j->other, lda = j->n, ldb = m;
  (void)work;
  if (m > 0 && n > 0)
    j->l->trsm(&j->flag[0], &j->flag[1], &j->flag[2], &j->flag[3], &m, &n,
               alpha, at(j, 0, i), &lda, at(j, 1, i), &ldb, 1, 1, 1, 1);
}

static void plantrisolve(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t, *b = c->arg[1].t;
  const int right = c->arg[5].s.i != 0;
  w->status = checkside(x, b, right);
  given(w, j, 0, x);
  if (w->status != NC_OK) return;
  out[0] = copied(w, j, 1, b);
  j->k = (int)b->size[b->nd - 1];
  j->other = (int)b->size[b->nd - 2];
  j->flag[0] = right ? 'R' : 'L';
  j->flag[1] = c->arg[2].s.i ? 'U' : 'L';
  j->flag[2] = c->arg[3].s.i ? 'T' : 'N';
  j->flag[3] = c->arg[4].s.i ? 'U' : 'N';
  j->one = trisolve;
}

int nc_op__lapack_trisolve(Call *c) {
  static const Plan plan = { "solve_triangular", 2, 0, 0, plantrisolve };
  return carryout(c, &plan);
}

/*
** QR
*/
/* t: 0 the matrix, 1 Q with `other' columns, 2 R with as many rows */
static void qr(const Job *j, int64_t i, char *work) {
  const int m = j->m, n = j->n, q = j->other;
  char *a = at(j, 0, i), *y = at(j, 1, i), *r = at(j, 2, i);
  char *tau = work + even((int64_t)j->lwork * j->bytes);
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
  if (q > 0)
    j->l->orgqr(&m, &q, &j->k, y, &m, tau, work, &j->lwork, &info);
}

static void planqr(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  j->other = c->arg[1].s.i ? j->m : j->k;
  copied(w, j, 0, x);
  out[0] = result(w, j, 1, x, x->dtype, 2, j->other, j->m);
  out[1] = result(w, j, 2, x, x->dtype, 2, j->n, j->other);
  j->lwork = 64 * ((j->m > j->n ? j->m : j->n) + 1);
  j->need = even((int64_t)j->lwork * j->bytes) + even((j->k + 1) * j->bytes);
  j->one = qr;
}

int nc_op__lapack_qr(Call *c) {
  static const Plan plan = { "qr", 1, 0, 0, planqr };
  return carryout(c, &plan);
}

/*
** Householder vectors, below the diagonal, and their factors tau
*/
static void geqrf(const Job *j, int64_t i, char *work) {
  if (j->k > 0)
    j->l->geqrf(&j->m, &j->n, at(j, 0, i), &j->m, at(j, 1, i), work,
                &j->lwork, &j->info[i]);
}

/* Room for the blocks of 64 columns that LAPACK works with. */
static void roomy(Job *j, int longest) {
  j->lwork = 64 * (longest + 1) + 65 * 64;
  j->need = even((int64_t)j->lwork * j->bytes);
}

static void plangeqrf(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  out[0] = copied(w, j, 0, x);
  out[1] = result(w, j, 1, x, x->dtype, 1, j->k, 0);
  roomy(j, j->m > j->n ? j->m : j->n);
  j->one = geqrf;
}

int nc_op__lapack_geqrf(Call *c) {
  static const Plan plan = { "geqrf", 1, 0, 0, plangeqrf };
  return carryout(c, &plan);
}

/* Is tau a vector for each matrix x, of at most `most' factors? */
static int checktau(const Tensor *x, const Tensor *tau, int64_t most) {
  int fits = tau->dtype == x->dtype && tau->nd == x->nd - 1 &&
             tau->size[tau->nd - 1] <= most;
  for (int d = 0; fits && d < tau->nd - 1; d++)
    fits = tau->size[d] == x->size[d];
  return fits ? NC_OK : nc_fail(NC_ESHAPE, "tau must be a vector of at most "
                                "%lld factors for each matrix, of its dtype",
                                (long long)most);
}

static void orgqr(const Job *j, int64_t i, char *work) {
  if (j->n > 0)
    j->l->orgqr(&j->m, &j->n, &j->other, at(j, 0, i), &j->m, at(j, 1, i), work,
                &j->lwork, &j->info[i]);
}

static void planorgqr(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t, *tau = c->arg[1].t;
  w->status = j->m < j->n ? nc_fail(NC_ESHAPE, "needs as many rows as columns, "
                                    "or more") : checktau(x, tau, j->n);
  given(w, j, 1, tau);
  if (w->status != NC_OK) return;
  out[0] = copied(w, j, 0, x);
  j->other = (int)tau->size[tau->nd - 1];
  roomy(j, j->m);
  j->one = orgqr;
}

int nc_op__lapack_orgqr(Call *c) {
  static const Plan plan = { "householder_product", 2, 0, 0, planorgqr };
  return carryout(c, &plan);
}

/* t: 0 the vectors, 1 tau, 2 the other matrix and the product; k is the number
   of factors, m and n are the sides of the other matrix */
static void ormqr(const Job *j, int64_t i, char *work) {
  const int rows = j->flag[0] == 'L' ? j->m : j->n;
  if (j->m > 0 && j->n > 0)
    j->l->ormqr(&j->flag[0], &j->flag[1], &j->m, &j->n, &j->k, at(j, 0, i),
                &rows, at(j, 1, i), at(j, 2, i), &j->m, work, &j->lwork,
                &j->info[i], 1, 1);
}

static void planormqr(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t, *tau = c->arg[1].t, *b = c->arg[2].t;
  const int left = c->arg[3].s.i != 0, rows = j->m;
  w->status = checkmatrix(b);
  if (w->status == NC_OK && (b->nd != x->nd || b->dtype != x->dtype ||
                             b->size[b->nd - (left ? 1 : 2)] != rows))
    w->status = nc_fail(NC_ESHAPE, "the sides of the product do not fit");
  for (int d = 0; w->status == NC_OK && d < b->nd - 2; d++)
    if (b->size[d] != x->size[d])
      w->status = nc_fail(NC_ESHAPE, "the batches differ");
  if (w->status == NC_OK) w->status = checktau(x, tau, j->k);
  if (w->status != NC_OK) return;
  copied(w, j, 0, x);           /* LAPACK writes to it for a while */
  given(w, j, 1, tau);
  out[0] = copied(w, j, 2, b);
  j->m = (int)b->size[b->nd - 1];
  j->n = (int)b->size[b->nd - 2];
  j->k = (int)tau->size[tau->nd - 1];
  j->flag[0] = left ? 'L' : 'R';
  j->flag[1] = c->arg[4].s.i ? 'T' : 'N';
  roomy(j, j->m > j->n ? j->m : j->n);
  j->one = ormqr;
}

int nc_op__lapack_ormqr(Call *c) {
  static const Plan plan = { "ormqr", 3, 0, 0, planormqr };
  return carryout(c, &plan);
}

/*
** Eigenvalues, singular values
*/
static void eig(const Job *j, int64_t i, char *work) {
  const int one = 1, vectors = j->flag[1] == 'V';
  if (j->n == 0) return;
  j->info[i] = !finite(at(j, 0, i), (int64_t)j->n * j->n, j->bytes);
  if (j->info[i] == 0)
    j->l->geev(&j->flag[0], &j->flag[1], &j->n, at(j, 0, i), &j->n,
               at(j, 1, i), at(j, 2, i), NULL, &one,
               vectors ? at(j, 3, i) : NULL, vectors ? &j->n : &one, work,
               &j->lwork, &j->info[i], 1, 1);
}

static void planeig(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  const int vectors = c->arg[1].s.i != 0, query = -1, one = 1;
  double answer = 0;
  int info;
  copied(w, j, 0, x);
  out[0] = result(w, j, 1, x, x->dtype, 1, j->n, 0);
  out[1] = result(w, j, 2, x, x->dtype, 1, j->n, 0);
  if (vectors) out[2] = result(w, j, 3, x, x->dtype, 2, j->n, j->n);
  j->flag[0] = 'N';
  j->flag[1] = vectors ? 'V' : 'N';
  j->one = eig;
  if (w->status != NC_OK || j->n == 0) return;
  j->l->geev(&j->flag[0], &j->flag[1], &j->n, NULL, &j->n, NULL, NULL, NULL,
             &one, NULL, vectors ? &j->n : &one, &answer, &query, &info, 1, 1);
  j->lwork = asked(j, &answer);
  j->need = even((int64_t)j->lwork * j->bytes);
}

int nc_op__lapack_eig(Call *c) {
  static const Plan plan = { "eig", 1, 1, 1, planeig };
  return carryout(c, &plan);
}

static void eigh(const Job *j, int64_t i, char *work) {
  int *iwork = (int *)(work + even((int64_t)j->lwork * j->bytes));
  if (j->n > 0)
    j->l->syevd(&j->flag[0], &j->flag[1], &j->n, at(j, 0, i), &j->n,
                at(j, 1, i), work, &j->lwork, iwork, &j->liwork, &j->info[i],
                1, 1);
}

static void planeigh(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  const int query = -1;
  double answer = 0;
  int info;
  out[1] = copied(w, j, 0, x);
  out[0] = result(w, j, 1, x, x->dtype, 1, j->n, 0);
  j->flag[0] = c->arg[2].s.i ? 'V' : 'N';
  j->flag[1] = c->arg[1].s.i ? 'L' : 'U';
  j->one = eigh;
  if (w->status != NC_OK || j->n == 0) return;
  j->l->syevd(&j->flag[0], &j->flag[1], &j->n, NULL, &j->n, NULL, &answer,
              &query, &j->liwork, &query, &info, 1, 1);
  j->lwork = asked(j, &answer);
  j->need = even((int64_t)j->lwork * j->bytes) +
            even(j->liwork * (int64_t)sizeof(int));
}

int nc_op__lapack_eigh(Call *c) {
  static const Plan plan = { "eigh", 1, 1, 1, planeigh };
  return carryout(c, &plan);
}

static void svd(const Job *j, int64_t i, char *work) {
  int *iwork = (int *)(work + even((int64_t)j->lwork * j->bytes));
  const int vectors = j->flag[0] != 'N', one = 1;
  const int ldv = vectors ? j->other : 1;
  if (j->k > 0)
    j->l->gesdd(j->flag, &j->m, &j->n, at(j, 0, i), &j->m, at(j, 2, i),
                vectors ? at(j, 1, i) : NULL, vectors ? &j->m : &one,
                vectors ? at(j, 3, i) : NULL, &ldv, work, &j->lwork, iwork,
                &j->info[i], 1);
}

/* S, U, and the rows of V; all for matrices that are not empty */
static void plansvd(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t;
  const int full = c->arg[1].s.i != 0, vectors = c->arg[2].s.i != 0;
  const int query = -1;
  double answer = 0;
  int info, none = 0;
  out[0] = result(w, j, 2, x, x->dtype, 1, j->k, 0);
  copied(w, j, 0, x);
  j->flag[0] = !vectors ? 'N' : full ? 'A' : 'S';
  j->other = full ? j->n : j->k;
  if (vectors) {
    out[1] = result(w, j, 1, x, x->dtype, 2, full ? j->m : j->k, j->m);
    out[2] = result(w, j, 3, x, x->dtype, 2, j->n, j->other);
  }
  j->one = svd;
  if (w->status != NC_OK || j->k == 0) return;
  j->l->gesdd(j->flag, &j->m, &j->n, NULL, &j->m, NULL, NULL, &j->m, NULL,
              &j->n, &answer, &query, &none, &info, 1);
  j->lwork = asked(j, &answer);
  j->need = even((int64_t)j->lwork * j->bytes) +
            even(8 * (int64_t)j->k * (int64_t)sizeof(int));
}

int nc_op__lapack_svd(Call *c) {
  static const Plan plan = { "svd", 1, 0, 1, plansvd };
  return carryout(c, &plan);
}

/*
** Least squares
*/
/* t: 0 the matrix, 1 the right sides, in as many rows as the longer of both
   sides has, where the solutions come, 2 singular values, 3 ranks */
static void lstsq(const Job *j, int64_t i, char *work) {
  const int tall = j->m > j->n ? j->m : j->n;
  int *iwork = (int *)(work + even((int64_t)j->lwork * j->bytes));
  const float low = (float)j->rcond;
  *(int *)at(j, 3, i) = 0;
  j->info[i] = !finite(at(j, 0, i), (int64_t)j->m * j->n, j->bytes) ||
               !finite(at(j, 1, i), (int64_t)tall * j->other, j->bytes);
  if (j->info[i] == 0 && j->k > 0 && j->other > 0)
    j->l->gelsd(&j->m, &j->n, &j->other, at(j, 0, i), &j->m, at(j, 1, i),
                &tall, at(j, 2, i),
                j->bytes == 8 ? (const void *)&j->rcond : &low, at(j, 3, i),
                work, &j->lwork, iwork, &j->info[i]);
}

static void planlstsq(Draft *w, Job *j, const Call *c, Tensor *out[]) {
  Tensor *x = c->arg[0].t, *b = c->arg[1].t, *part;
  const int query = -1, tall = j->m > j->n ? j->m : j->n;
  const double rcond = j->rcond = nc_tofloat(c->arg[2].s);
  const float low = (float)rcond;
  double answer = 0;
  int info, rank;
  if (b->nd != x->nd || b->dtype != x->dtype || b->size[b->nd - 1] != j->m) {
    w->status = nc_fail(NC_ESHAPE, "the sides of the equations do not fit");
    return;
  }
  j->other = (int)b->size[b->nd - 2];
  copied(w, j, 0, x);
  out[0] = result(w, j, 1, x, x->dtype, 2, j->other, tall);
  out[1] = result(w, j, 2, x, x->dtype, 1, j->k, 0);
  out[2] = result(w, j, 3, x, DT_i32, 0, 1, 0);
  j->each[3] = sizeof(int);
  j->one = lstsq;
  if (w->status == NC_OK) w->status = nc_fill(out[0], nc_int(0));
  part = w->status ? NULL : nc_part(w, out[0], x->nd - 1, 0, j->m);
  if (w->status == NC_OK) w->status = nc_copy(part, b);
  if (w->status != NC_OK || j->k == 0 || j->other == 0) return;
  j->l->gelsd(&j->m, &j->n, &j->other, NULL, &j->m, NULL, &tall, NULL,
              j->bytes == 8 ? (const void *)&rcond : &low, &rank, &answer,
              &query, &j->liwork, &info);
  j->lwork = asked(j, &answer);
  j->need = even((int64_t)j->lwork * j->bytes) +
            even(j->liwork * (int64_t)sizeof(int));
}

int nc_op__lapack_lstsq(Call *c) {
  static const Plan plan = { "lstsq", 2, 0, 1, planlstsq };
  return carryout(c, &plan);
}
