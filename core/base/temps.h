/* SPDX-License-Identifier: MIT */
/*
** temps.h - operations made of others, written as one writes a formula.
**
** A draft holds every tensor made on the way and the first failure, after
** which its functions do nothing and give NULL: so nobody has to look between
** them, or to release: nc_temps_finish does.
*/
#ifndef core_base_temps_h
#define core_base_temps_h

#include "core/tensor.h"

#define NC_MAXTEMPS 48           /* tensors, at most */

typedef struct Temps {
  int status, n;
  Tensor *t[NC_MAXTEMPS];
} Temps;

/* Takes over *t, which was made with status r; gives it back. */
Tensor *nc_temps_add(Temps *d, int r, Tensor **t);

/* Rows */
Tensor *nc_temps_op(Temps *d, Op op, const Arg in[], const double par[2]);
Tensor *nc_temps_op1(Temps *d, Op op, Tensor *a);
Tensor *nc_temps_op2(Temps *d, Op op, Tensor *a, Tensor *b);
Tensor *nc_temps_op3(Temps *d, Op op, Tensor *a, Tensor *b, Tensor *c);
Tensor *nc_temps_opnumber(Temps *d, Op op, Tensor *a, Scalar b);
/* b where a, else the number c; or the other way round */
Tensor *nc_temps_where(Temps *d, Tensor *a, Tensor *b, Scalar c);
Tensor *nc_temps_reduce(Temps *d, Op op, Tensor *x, unsigned dims, int keepdim);
Tensor *nc_temps_cast(Temps *d, Tensor *x, DType type);

/* Families.  nc_callon gives a call whose arguments are not given but for the
   first one; nc_temps_call holds all its results, which stay in c->out. */
Call nc_callon(Operator op, Tensor *x);
void nc_setint(Call *c, int i, int64_t v);
Tensor *nc_temps_call(Temps *d, Call *c);
/* The same for a tensor with two integers behind it. */
Tensor *nc_temps_call1(Temps *d, Operator op, Tensor *x, int64_t a, int64_t b);
/* length elements of dim (0-based) from `start' (0-based): a view */
Tensor *nc_temps_narrow(Temps *d, Tensor *x, int dim, int64_t start, int64_t length);
/* x from its last to its first element along dim (0-based) */
Tensor *nc_temps_flip(Temps *d, Tensor *x, int dim);
/* op, as cumsum, along dim (0-based) from the last element on */
Tensor *nc_temps_reversed(Temps *d, Operator op, Tensor *x, int dim);
Tensor *nc_temps_cat(Temps *d, Tensor *const t[], int n, int dim);

/* *y = t, unless something failed; then the draft ends. */
int nc_temps_result(const Temps *d, Tensor **y, Tensor *t);
int nc_temps_finish(Temps *d);      /* its status */

#endif
