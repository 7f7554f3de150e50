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

#define NC_MAXTEMPS 64           /* tensors, at most */

typedef struct Temps {
  int status, n;
  Tensor *t[NC_MAXTEMPS];
} Temps;

/* Takes over *t, the result of a call of status r; returns it, or NULL. */
Tensor *nc_temps_add(Temps *d, int r, Tensor **t);

/* New tensors on the device of `like': uninitialized, filled with v, and
   from .. to in int64. */
Tensor *nc_temps_new(Temps *d, const Tensor *like, DType type, int nd,
                     const int64_t size[]);
Tensor *nc_temps_full(Temps *d, const Tensor *like, DType type, int nd,
                      const int64_t size[], Scalar v);
Tensor *nc_temps_range(Temps *d, const Tensor *like, int64_t from, int64_t to);

/* x itself if there is nothing to do */
Tensor *nc_temps_cast(Temps *d, Tensor *x, DType type);
Tensor *nc_temps_dense(Temps *d, Tensor *x);
Tensor *nc_temps_todevice(Temps *d, Tensor *x, const Device *device);

/* Pointwise operations and reductions. */
Tensor *nc_temps_op(Temps *d, Op op, const Arg in[], const double par[2]);
Tensor *nc_temps_op1(Temps *d, Op op, Tensor *a);
Tensor *nc_temps_op2(Temps *d, Op op, Tensor *a, Tensor *b);
Tensor *nc_temps_op3(Temps *d, Op op, Tensor *a, Tensor *b, Tensor *c);
Tensor *nc_temps_opnumber(Temps *d, Op op, Tensor *a, Scalar b);
/* b where a is true, else c; one of the two is a number */
Tensor *nc_temps_where(Temps *d, Tensor *a, Tensor *b, Scalar c);
Tensor *nc_temps_wherenumber(Temps *d, Tensor *a, Scalar b, Tensor *c);
Tensor *nc_temps_reduce(Temps *d, Op op, Tensor *x, unsigned dims, int keepdim);

/* Operators.  nc_callon prepares a call with its first argument, nc_callints
   one with three integers after it; nc_setint and nc_setlist set argument i.
   nc_callfirst makes the call; *y = the first result.  nc_temps_call makes the
   call, holds all results, which are also in c->out, and returns the first. */
Call nc_callon(Operator op, Tensor *x);
Call nc_callints(Operator op, Tensor *x, int64_t a, int64_t b, int64_t c);
void nc_setint(Call *c, int i, int64_t v);
void nc_setlist(Call *c, int i, int n, const int64_t list[]);
int nc_callfirst(Tensor **y, Call *c);
Tensor *nc_temps_call(Temps *d, Call *c);
/* op(x, a, b) for an operator with two integer arguments. */
Tensor *nc_temps_call1(Temps *d, Operator op, Tensor *x, int64_t a, int64_t b);
/* op(a, b), such as matmul */
Tensor *nc_temps_call2(Temps *d, Operator op, Tensor *a, Tensor *b);

/* x in another shape of as many elements; -1 is inferred */
Tensor *nc_temps_reshape(Temps *d, Tensor *x, int nd, const int64_t size[]);
Tensor *nc_temps_flatten(Temps *d, Tensor *x);    /* x as a vector */
/* x with its last two dimensions exchanged: a view */
Tensor *nc_temps_transposed(Temps *d, Tensor *x);
/* x, or a vector of one element if x is 0-d */
Tensor *nc_temps_atleast1d(Temps *d, Tensor *x);
Tensor *nc_temps_expand(Temps *d, Tensor *x, int nd, const int64_t size[]);
/* length elements of dim (0-based) from `start' (0-based): a view */
Tensor *nc_temps_narrow(Temps *d, Tensor *x, int dim, int64_t start,
                        int64_t length);
/* x reversed along dim (0-based) (core/ops/shape.c) */
Tensor *nc_temps_flip(Temps *d, Tensor *x, int dim);
/* a scan, such as cumsum, along dim (0-based), from the end
   (core/ops/scan.c) */
Tensor *nc_temps_reversed(Temps *d, Operator op, Tensor *x, int dim);
Tensor *nc_temps_cat(Temps *d, Tensor *const t[], int n, int dim);
void nc_temps_copyinto(Temps *d, Tensor *x, Tensor *y);   /* copies y to x */

/* *dim = argument a, a dimension of x (1-based or negative), 0-based */
void nc_temps_dim(Temps *d, int *dim, const Arg *a, const Tensor *x);

/* *y = t with a reference of its own, unless something failed. */
int nc_temps_result(const Temps *d, Tensor **y, Tensor *t);
/* Releases all tensors; returns the status. */
int nc_temps_finish(Temps *d);
/* Both: ends a composed operation with the result t. */
int nc_temps_end(Temps *d, Tensor **y, Tensor *t);
/* The same for the first result of an operator, and for an operator in place,
   whose result is its first operand. */
int nc_temps_endcall(Temps *d, Call *c, Tensor *y);
int nc_temps_endinplace(Temps *d, Call *c);

#endif
