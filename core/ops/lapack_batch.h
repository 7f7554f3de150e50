/* SPDX-License-Identifier: MIT */
/*
** lapack_batch.h - runs a routine of LAPACK over a batch of matrices; for
** linalg.c and orthogonal.c.
**
** Matrices are column-major: LAPACK's A(i,j) is self[..][j][i].
** bindings/lib/linalg/ transposes, composes the public functions of these
** operators, and has the gradients.  The matrices of a batch are distributed
** over the threads.
*/
#ifndef core_ops_lapack_batch_h
#define core_ops_lapack_batch_h

#include "core/pointwise/temps.h"
#include "core/cpu/product/lapack.h"

typedef struct LapackJob LapackJob;
struct LapackJob {
  const Lapack *l;
  int m, n, k, other;         /* rows, columns, min(m, n); another size */
  char flag[4];
  double rcond;
  int64_t batch, slots;
  int64_t bytes;              /* of an element */
  int parts, wide;            /* of an element: 2 if complex; are they
                                 float64? */
  char *t[4];                 /* tensors, and the bytes of one matrix of each */
  int64_t each[4];
  int *info;                  /* LAPACK's info of each matrix */
  char *work;
  int64_t need;               /* bytes of work space for a slot */
  int lwork, liwork, lrwork;
  int dry;                    /* meta device: nothing is computed */
  void (*one)(const LapackJob *j, int64_t i, char *work);
  /* Or so many matrices at once, from i on; fewer at the end. */
  int lanes;
  void (*group)(const LapackJob *j, int64_t i, int count, char *work);
};

/* Makes the results of an operation, out[], and fills in the job. */
typedef void LapackMaker(Temps *w, LapackJob *j, const Call *c, Tensor *out[]);
LapackMaker nc_plan_lu, nc_plan_cholesky, nc_plan_lusolve, nc_plan_luinverse,
    nc_plan_trisolve, nc_plan_lstsq, nc_plan_qr, nc_plan_geqrf, nc_plan_orgqr,
    nc_plan_ormqr, nc_plan_eig, nc_plan_eigh, nc_plan_svd;

/* How an operation is run; the list is in lapack_batch.c. */
typedef struct LapackPlan {
  int operands;               /* tensors, which must be on one device */
  int square, converges;      /* are matrices square; is info an error? */
  LapackMaker *make;
} LapackPlan;

/* Checks that x is a matrix, or a batch of matrices, of a type of LAPACK. */
int nc_checkmatrix(const Tensor *x);

/* Makes tensor i of the job, a new result: the batch dimensions of x, then
   nd (0 to 2) sizes a, b.  The results of these functions are held by w. */
Tensor *nc_lapack_result(Temps *w, LapackJob *j, int i, const Tensor *x,
                         DType type, int nd, int64_t a, int64_t b);

/* Makes tensor i of the job, a dense copy of x, which the routine may
   overwrite. */
Tensor *nc_lapack_copy(Temps *w, LapackJob *j, int i, Tensor *x);

/* Sets tensor i of the job to an operand that is only read: x, or a dense
   copy. */
void nc_lapack_operand(Temps *w, LapackJob *j, int i, Tensor *x);

/* Sets the work space of a slot: lwork elements, from the answer to a query,
   an element of at most two doubles, `integers' ints, and lrwork reals.  A
   float answer may have been rounded down, so that some is added. */
void nc_lapack_set_work(LapackJob *j, const double answer[2],
                        int64_t integers);

/* The ints and the reals of a slot's work space. */
int *nc_lapack_iwork(const LapackJob *j, char *work);
void *nc_lapack_rwork(const LapackJob *j, char *work);

/* Returns whether n elements are finite.  Some routines print messages to
   the terminal for others. */
int nc_allfinite(const LapackJob *j, const void *x, int64_t n);

/* Returns matrix i of tensor k. */
static inline void *at(const LapackJob *j, int k, int64_t i) {
  return j->t[k] + i * j->each[k];
}

/* Returns the bytes rounded up to 64. */
static inline int64_t round_up(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

#endif
