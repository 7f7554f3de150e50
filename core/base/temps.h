/* SPDX-License-Identifier: MIT */
/*
** temps.h - for operators composed of other operations, written like a formula.
**
** A Temps holds every intermediate tensor and the first failure.  After a
** failure its functions do nothing and return NULL, so that the caller need not
** check between them; nc_temps_finish releases all.
**
**   Temps w = { 0 };
**   Tensor *d = nc_temps_op2(&w, OP_sub, a, b);
**   nc_temps_result(&w, &c->out[0], nc_temps_op1(&w, OP_abs, d));
**   return nc_temps_finish(&w);
*/
#ifndef core_base_temps_h
#define core_base_temps_h

#include "core/tensor.h"

#define NC_MAXTEMPS 48           /* tensors, at most */

typedef struct Temps {
  int status, n;
  Tensor *t[NC_MAXTEMPS];
} Temps;

/* Takes over *t, the result of a call of status r; returns it, or NULL. */
Tensor *nc_temps_add(Temps *d, int r, Tensor **t);

/* Pointwise operations and reductions. */
Tensor *nc_temps_op(Temps *d, Op op, const Arg in[], const double par[2]);
Tensor *nc_temps_op1(Temps *d, Op op, Tensor *a);
Tensor *nc_temps_op2(Temps *d, Op op, Tensor *a, Tensor *b);
Tensor *nc_temps_op3(Temps *d, Op op, Tensor *a, Tensor *b, Tensor *c);
Tensor *nc_temps_opnumber(Temps *d, Op op, Tensor *a, Scalar b);
/* b where a is true, else the number c */
Tensor *nc_temps_where(Temps *d, Tensor *a, Tensor *b, Scalar c);
Tensor *nc_temps_reduce(Temps *d, Op op, Tensor *x, unsigned dims, int keepdim);
Tensor *nc_temps_cast(Temps *d, Tensor *x, DType type);

/* Operators.  nc_callon prepares a call with its first argument; nc_setint sets
   argument i, an integer; nc_temps_call makes the call, holds all results,
   which are also in c->out, and returns the first. */
Call nc_callon(Operator op, Tensor *x);
void nc_setint(Call *c, int i, int64_t v);
Tensor *nc_temps_call(Temps *d, Call *c);
/* op(x, a, b) for an operator with two integer arguments. */
Tensor *nc_temps_call1(Temps *d, Operator op, Tensor *x, int64_t a, int64_t b);
/* length elements of dim (0-based) from `start' (0-based): a view */
Tensor *nc_temps_narrow(Temps *d, Tensor *x, int dim, int64_t start,
                        int64_t length);
/* x reversed along dim (0-based) (core/ops/shape.c) */
Tensor *nc_temps_flip(Temps *d, Tensor *x, int dim);
/* a scan, such as cumsum, along dim (0-based), from the end
   (core/ops/scan.c) */
Tensor *nc_temps_reversed(Temps *d, Operator op, Tensor *x, int dim);
Tensor *nc_temps_cat(Temps *d, Tensor *const t[], int n, int dim);

/* *y = t with a reference of its own, unless something failed. */
int nc_temps_result(const Temps *d, Tensor **y, Tensor *t);
/* Releases all tensors; returns the status. */
int nc_temps_finish(Temps *d);

#endif
