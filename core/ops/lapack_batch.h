/* SPDX-License-Identifier: MIT */
/*
** lapack_batch.h - a batch of matrices that a routine of LAPACK works on.
**
** Matrices are given and come back column by column: what LAPACK calls
** A(i,j) is self[..][j][i].  What is made of them, and gradients, stands in
** solvers.lua.  The matrices of a batch are shared among the threads.
*/
#ifndef core_ops_lapack_batch_h
#define core_ops_lapack_batch_h

#include "core/base/temps.h"
#include "core/cpu/lapack.h"

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

/* What an operation says of itself: it makes its results, out[], and says in
   the job what is to be done with them. */
typedef struct Plan {
  const char *name;
  int operands;               /* tensors, which lie on one device */
  int square, converges;      /* must the matrices be, must the iteration? */
  void (*make)(Temps *w, Job *j, const Call *c, Tensor *out[]);
} Plan;

int nc_carryout(Call *c, const Plan *p);

int nc_checkmatrix(const Tensor *x);

/* Tensor number i of the job: a new one [batch of x.., and nd sizes]. */
Tensor *nc_jobresult(Temps *w, Job *j, int i, const Tensor *x, DType type,
                     int nd, int64_t a, int64_t b);

/* The same as a dense copy of x. */
Tensor *nc_jobcopy(Temps *w, Job *j, int i, Tensor *x);

/* Operand number i: x itself, or a dense copy. */
void nc_jobgiven(Temps *w, Job *j, int i, Tensor *x);

/* What a query for work space says, with room for how it is rounded. */
int nc_jobasked(const Job *j, const double *answer);

/* Are n elements finite?  LAPACK would write to the terminal otherwise. */
int nc_allfinite(const void *x, int64_t n, int64_t bytes);

static inline void *at(const Job *j, int k, int64_t i) {
  return j->t[k] + i * j->each[k];
}

static inline int64_t even(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

#endif
