/* SPDX-License-Identifier: MIT */
/*
** lapack_batch.c - runs a LAPACK routine over a batch of matrices, on all
** threads; on the host, also for tensors of other devices.
*/
#include "core/ops/lapack_batch.h"
#include "core/operators.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/cpu/product/blas.h"
#include "core/op.h"
#include "core/trace_internal.h"

/*
** Operands and results
*/
int nc_checkmatrix(const Tensor *x) {
  if (x->nd < 2)
    return nc_fail(NC_ESHAPE,
                   "needs a matrix or a batch of matrices, not %d "
                   "dimension%s",
                   x->nd, x->nd == 1 ? "" : "s");
  if (x->dtype != DT_f32 && x->dtype != DT_f64 && !nc_is_complex(x->dtype))
    return nc_fail(NC_EDTYPE, "needs float32 or float64, not %s",
                   nc_dtypename(x->dtype));
  for (int i = 1; i <= 2; i++)
    if (x->size[x->nd - i] > INT_MAX / 4)
      return nc_fail(NC_ESHAPE, "a matrix with a side of %lld is too large",
                     (long long)x->size[x->nd - i]);
  return NC_OK;
}

/* Returns whether matrices on device d have to be copied to the host. */
static int is_on_accelerator(const Device *d) {
  return d != &nc_cpu && !nc_ismeta(d);
}

/* Initializes the job for the batch x. */
static int begin_job(LapackJob *j, const Tensor *x) {
  memset(j, 0, sizeof *j);
  TRY(nc_checkmatrix(x));
  j->m = (int)x->size[x->nd - 1];
  j->n = (int)x->size[x->nd - 2];
  j->k = j->m < j->n ? j->m : j->n;
  j->bytes = nc_dtypesize(x->dtype);
  j->parts = nc_is_complex(x->dtype) ? 2 : 1;
  j->wide = nc_real_dtype(x->dtype) == DT_f64;
  j->dry = nc_ismeta(nc_device(x));
  j->batch = j->lanes = 1;
  for (int d = 0; d < x->nd - 2; d++) j->batch *= x->size[d];
  return nc_lapack(&j->l, x->dtype);
}

Tensor *nc_lapack_result(Temps *w, LapackJob *j, int i, const Tensor *x,
                         DType type, int nd, int64_t a, int64_t b) {
  int64_t size[NC_MAXDIM];
  Tensor *t = NULL;
  int r = w->status;
  memcpy(size, x->size, sizeof size);
  size[x->nd - 2] = a;
  if (nd == 2) size[x->nd - 1] = b;
  if (r == NC_OK) r = nc_new(&t, nc_device(x), type, x->nd - 2 + nd, size);
  t = nc_temps_add(w, r, &t);
  if (t == NULL) return NULL;
  j->t[i] = nc_data(t);
  j->each[i] = a * (nd == 2 ? b : 1) * nc_dtypesize(type);
  return t;
}

Tensor *nc_lapack_copy(Temps *w, LapackJob *j, int i, Tensor *x) {
  Tensor *t = nc_lapack_result(w, j, i, x, x->dtype, 2, x->size[x->nd - 2],
                               x->size[x->nd - 1]);
  if (t) w->status = nc_copy(t, x);
  return w->status == NC_OK ? t : NULL;
}

void nc_lapack_operand(Temps *w, LapackJob *j, int i, Tensor *x) {
  Tensor *dense = NULL;
  int r = w->status == NC_OK ? nc_dense(&dense, x) : w->status;
  dense = nc_temps_add(w, r, &dense);
  if (dense == NULL) return;
  j->t[i] = nc_data(dense);
  j->each[i] =
      j->batch ? nc_numel(dense) / j->batch * nc_dtypesize(dense->dtype) : 0;
}

/*
** Execution
*/
/* The loop of one thread: matrices s, s + slots, .. for each of its slots s,
   each slot with a work space of its own. */
static void run_slot(void *ctx, int64_t first, int64_t last) {
  const LapackJob *j = ctx;
  for (int64_t s = first; s < last; s++) {
    char *work = j->work + s * j->need;
    for (int64_t i = s * j->lanes; i < j->batch && !nc_interrupted;
         i += j->slots * j->lanes) {
      const int64_t left = j->batch - i;
      if (j->group)
        j->group(j, i, left < j->lanes ? (int)left : j->lanes, work);
      else j->one(j, i, work);
    }
  }
}

/* Runs the job for all matrices. *failed = the number, from 1, of the first
   with info != 0; 0 if there is none. */
static int run_job(LapackJob *j, int64_t *failed) {
  const int64_t infos = j->batch * (int64_t)sizeof(int);
  void *p = NULL, *q = NULL;
  int r;
  *failed = 0;
  if (j->batch == 0 || j->dry) return NC_OK;
  j->slots = (j->batch - 1) / j->lanes + 1;
  if (j->slots > nc_threads()) j->slots = nc_threads();
  if (j->slots > nc_blas_buffers()) j->slots = nc_blas_buffers();
  if (j->need && (r = nc_hostalloc(&p, j->need * j->slots)) != NC_OK) return r;
  r = nc_hostalloc(&q, infos);
  if (r == NC_OK) {
    j->work = p;
    j->info = q;
    memset(q, 0, (size_t)infos);
    nc_count(0, j->batch * (j->each[0] + j->each[1] + j->each[2]));
    r = nc_parallel(j->slots, 1, run_slot, j);
    for (int64_t i = j->batch; r == NC_OK && i > 0; i--)
      if (j->info[i - 1] != 0) *failed = i;
    nc_hostfree(q, infos);
  }
  if (p) nc_hostfree(p, j->need * j->slots);
  return r;
}

static int check_converged(const LapackJob *j, int64_t failed) {
  if (failed == 0) return NC_OK;
  if (j->batch == 1)
    return nc_fail(NC_EVALUE, "does not converge: does the matrix hold nan "
                              "or inf?");
  return nc_fail(NC_EVALUE,
                 "does not converge for matrix %lld of the batch: "
                 "does it hold nan or inf?",
                 (long long)failed);
}

void nc_lapack_set_work(LapackJob *j, const double answer[2],
                        int64_t integers) {
  float f;
  memcpy(&f, answer, sizeof f);
  j->lwork = (int)(j->wide ? *answer : (double)f * 1.0001 + 8);
  j->liwork = (int)integers;
  j->need = round_up((int64_t)j->lwork * j->bytes) +
            round_up(integers * (int64_t)sizeof(int)) +
            round_up((int64_t)j->lrwork * 8);
}

int *nc_lapack_iwork(const LapackJob *j, char *work) {
  return (int *)(work + round_up((int64_t)j->lwork * j->bytes));
}

void *nc_lapack_rwork(const LapackJob *j, char *work) {
  return (char *)nc_lapack_iwork(j, work) +
         round_up(j->liwork * (int64_t)sizeof(int));
}

#define PLAN(name, operands, square, converges) \
  [OPERATOR__lapack_##name -                    \
      OPERATOR__lapack_lu] = { operands, square, converges, nc_plan_##name },
/* clang-format off */
static const LapackPlan plans[] = {
  PLAN(lu, 1, 0, 0)
  PLAN(cholesky, 1, 1, 0)
  PLAN(lusolve, 3, 0, 0)
  PLAN(luinverse, 2, 1, 0)
  PLAN(trisolve, 2, 0, 0)
  PLAN(lstsq, 2, 0, 1)
  PLAN(qr, 1, 0, 0)
  PLAN(geqrf, 1, 0, 0)
  PLAN(orgqr, 2, 0, 0)
  PLAN(ormqr, 3, 0, 0)
  PLAN(eig, 1, 1, 1)
  PLAN(eigh, 1, 1, 1)
  PLAN(svd, 1, 0, 1)
};
/* clang-format on */
#undef PLAN

/* All operators _lapack_<name>. */
int nc_op__lapack_lu(Call *c) {
  const LapackPlan *p = &plans[c->op - OPERATOR__lapack_lu];
  Tensor *out[NC_MAXOUT] = { NULL };
  const Device *d;
  Temps w = { 0 };
  int64_t failed = 0;
  LapackJob j;
  TRY(nc_samedevice(&d, c->arg, p->operands));
  if (is_on_accelerator(d)) return nc_run_on_host(c, d);
  w.status = begin_job(&j, c->arg[0].t);
  if (w.status == NC_OK && p->square && j.m != j.n)
    w.status = nc_fail(NC_ESHAPE, "needs square matrices");
  if (w.status == NC_OK) p->make(&w, &j, c, out);
  if (w.status == NC_OK) w.status = run_job(&j, &failed);
  if (w.status == NC_OK && p->converges) w.status = check_converged(&j, failed);
  for (int i = 0; i < NC_MAXOUT; i++)
    if (out[i]) nc_temps_result(&w, &c->out[i], out[i]);
  return nc_temps_finish(&w);
}

int nc_allfinite(const LapackJob *j, const void *x, int64_t n) {
  const float *f = x;
  const double *d = x;
  int bad = 0;
  n *= j->parts;
  if (j->wide)
    for (int64_t i = 0; i < n; i++) bad |= d[i] - d[i] != 0;
  else
    for (int64_t i = 0; i < n; i++) bad |= f[i] - f[i] != 0;
  return !bad;
}
