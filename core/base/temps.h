/* SPDX-License-Identifier: MIT */
/*
** temps.h - operations made of others, written as one writes a formula.
**
** A draft holds every tensor made on the way and the first failure, after
** which its functions do nothing and give NULL: so nobody has to look between
** them, or to release: nc_finish does.
*/
#ifndef core_base_temps_h
#define core_base_temps_h

#include "core/tensor.h"

#define NC_DRAFT 48           /* tensors, at most */

typedef struct Draft {
  int status, n;
  Tensor *t[NC_DRAFT];
} Draft;

/* Takes over *t, which was made with status r; gives it back. */
Tensor *nc_held(Draft *d, int r, Tensor **t);

/* Rows */
Tensor *nc_row(Draft *d, Op op, const Arg in[], const double par[2]);
Tensor *nc_row1(Draft *d, Op op, Tensor *a);
Tensor *nc_row2(Draft *d, Op op, Tensor *a, Tensor *b);
Tensor *nc_row3(Draft *d, Op op, Tensor *a, Tensor *b, Tensor *c);
Tensor *nc_rownumber(Draft *d, Op op, Tensor *a, Scalar b);
/* b where a, else the number c; or the other way round */
Tensor *nc_whereelse(Draft *d, Tensor *a, Tensor *b, Scalar c);
Tensor *nc_fold(Draft *d, Op op, Tensor *x, unsigned dims, int keepdim);
Tensor *nc_as(Draft *d, Tensor *x, DType type);

/* Families.  nc_callof gives a call whose arguments are not given but for the
   first one; nc_do holds all its results, which stay in c->out. */
Call nc_callof(Family op, Tensor *x);
void nc_setint(Call *c, int i, int64_t v);
Tensor *nc_do(Draft *d, Call *c);
/* The same for a tensor with two integers behind it. */
Tensor *nc_do1(Draft *d, Family op, Tensor *x, int64_t a, int64_t b);
/* length elements of dim (0-based) from `start' (0-based): a view */
Tensor *nc_part(Draft *d, Tensor *x, int dim, int64_t start, int64_t length);
/* x from its last to its first element along dim (0-based) */
Tensor *nc_flipped(Draft *d, Tensor *x, int dim);
/* op, as cumsum, along dim (0-based) from the last element on */
Tensor *nc_backwards(Draft *d, Family op, Tensor *x, int dim);
Tensor *nc_joined(Draft *d, Tensor *const t[], int n, int dim);

/* *y = t, unless something failed; then the draft ends. */
int nc_give(const Draft *d, Tensor **y, Tensor *t);
int nc_finish(Draft *d);      /* its status */

#endif
