/* SPDX-License-Identifier: MIT */
/* temps.c - intermediate tensors of composed operators; see temps.h. */
#include "core/pointwise/temps.h"
#include "core/operators.h"
#include "core/ops.h"

#include <string.h>

#include "core/op.h"
#include "core/tape.h"

Tensor *nc_temps_add(Temps *d, int r, Tensor **t) {
  if (d->status != NC_OK) r = d->status;
  if (r == NC_OK && d->n == NC_MAXTEMPS)
    r = nc_fail(NC_EVALUE, "a composed operation is too long");
  if (r == NC_OK) return d->t[d->n++] = *t;
  nc_release(*t);
  d->status = r;
  return NULL;
}

/*
** New tensors
*/
Tensor *nc_temps_new(Temps *d, const Tensor *like, DType type, int nd,
                     const int64_t size[]) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_new(&y, nc_device(like), type, nd, size), &y);
}

Tensor *nc_temps_full(Temps *d, const Tensor *like, DType type, int nd,
                      const int64_t size[], Scalar v) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_full(&y, nc_device(like), type, nd, size, v), &y);
}

Tensor *nc_temps_range(Temps *d, const Tensor *like, int64_t from, int64_t to) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_index_range(&y, like, from, to), &y);
}

Tensor *nc_temps_cast(Temps *d, Tensor *x, DType type) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_cast(&y, x, type), &y);
}

Tensor *nc_temps_dense(Temps *d, Tensor *x) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_dense(&y, x), &y);
}

Tensor *nc_temps_todevice(Temps *d, Tensor *x, const Device *device) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_todevice(&y, x, device), &y);
}

/*
** Pointwise operations and reductions
*/
Tensor *nc_temps_op(Temps *d, Op op, const Arg in[], const double par[2]) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_apply(&y, op, in, par, NULL), &y);
}

Tensor *nc_temps_op3(Temps *d, Op op, Tensor *a, Tensor *b, Tensor *c) {
  Arg in[3] = { { .t = a }, { .t = b }, { .t = c } };
  return nc_temps_op(d, op, in, NULL);
}

Tensor *nc_temps_op2(Temps *d, Op op, Tensor *a, Tensor *b) {
  return nc_temps_op3(d, op, a, b, NULL);
}

Tensor *nc_temps_op1(Temps *d, Op op, Tensor *a) {
  return nc_temps_op3(d, op, a, NULL, NULL);
}

Tensor *nc_temps_opnumber(Temps *d, Op op, Tensor *a, Scalar b) {
  Arg in[2] = { { .t = a }, { .s = b } };
  return nc_temps_op(d, op, in, NULL);
}

Tensor *nc_temps_where(Temps *d, Tensor *a, Tensor *b, Scalar c) {
  Arg in[3] = { { .t = a }, { .t = b }, { .s = c } };
  return nc_temps_op(d, OP_where, in, NULL);
}

Tensor *nc_temps_wherenumber(Temps *d, Tensor *a, Scalar b, Tensor *c) {
  Arg in[3] = { { .t = a }, { .s = b }, { .t = c } };
  return nc_temps_op(d, OP_where, in, NULL);
}

Tensor *nc_temps_reduce(Temps *d, Op op, Tensor *x, unsigned dims,
                        int keepdim) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(
      d, nc_reduce(&y, op, x, dims, keepdim, DT_NONE, NULL, NULL), &y);
}

/*
** Operators
*/
Call nc_callon(Operator op, Tensor *x) {
  Call c;
  memset(&c, 0, sizeof c);
  c.op = op;
  for (int i = 0; i < NC_MAXARG; i++) c.arg[i].dtype = DT_NONE;
  c.arg[0].present = 1;
  c.arg[0].t = x;
  return c;
}

void nc_setint(Call *c, int i, int64_t v) {
  c->arg[i].present = 1;
  c->arg[i].s = nc_int(v);
}

void nc_setlist(Call *c, int i, int n, const int64_t list[]) {
  c->arg[i].present = 1;
  c->arg[i].n = n;
  c->arg[i].list = list;
}

Call nc_callints(Operator op, Tensor *x, int64_t a, int64_t b, int64_t c) {
  Call call = nc_callon(op, x);
  nc_setint(&call, 1, a);
  nc_setint(&call, 2, b);
  nc_setint(&call, 3, c);
  return call;
}

int nc_callfirst(Tensor **y, Call *c) {
  int r = nc_call(c);
  *y = c->out[0];
  return r;
}

Tensor *nc_temps_call(Temps *d, Call *c) {
  if (d->status != NC_OK) {
    memset(c->out, 0, sizeof c->out);
    return NULL;
  }
  d->status = nc_call(c);
  for (int i = 0; i < NC_MAXOUT; i++)
    if (c->out[i]) c->out[i] = nc_temps_add(d, NC_OK, &c->out[i]);
  return d->status == NC_OK ? c->out[0] : NULL;
}

Tensor *nc_temps_call1(Temps *d, Operator op, Tensor *x, int64_t a, int64_t b) {
  Call c = nc_callon(op, x);
  nc_setint(&c, 1, a);
  nc_setint(&c, 2, b);
  return nc_temps_call(d, &c);
}

Tensor *nc_temps_call2(Temps *d, Operator op, Tensor *a, Tensor *b) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_call2(&y, op, a, b), &y);
}

Tensor *nc_temps_transposed(Temps *d, Tensor *x) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_transpose_matrix(&y, x), &y);
}

Tensor *nc_temps_reshape(Temps *d, Tensor *x, int nd, const int64_t size[]) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_reshapeto(&y, x, nd, size), &y);
}

Tensor *nc_temps_flatten(Temps *d, Tensor *x) {
  static const int64_t all = -1;
  return nc_temps_reshape(d, x, 1, &all);
}

Tensor *nc_temps_atleast1d(Temps *d, Tensor *x) {
  if (d->status != NC_OK) return NULL;
  return x->nd ? x : nc_temps_call1(d, OPERATOR_unsqueeze, x, 1, 0);
}

Tensor *nc_temps_expand(Temps *d, Tensor *x, int nd, const int64_t size[]) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_broadcastto(&y, x, nd, size), &y);
}

Tensor *nc_temps_narrow(Temps *d, Tensor *x, int dim, int64_t start,
                        int64_t length) {
  Call c = nc_callints(OPERATOR_narrow, x, dim + 1, start + 1, length);
  return nc_temps_call(d, &c);
}

Tensor *nc_temps_cat(Temps *d, Tensor *const t[], int n, int dim) {
  Call c = nc_callon(OPERATOR_cat, NULL);
  c.arg[0].tensors = t;
  c.arg[0].n = n;
  nc_setint(&c, 1, dim + 1);
  return nc_temps_call(d, &c);
}

void nc_temps_copyinto(Temps *d, Tensor *x, Tensor *y) {
  Call c = nc_callon(OPERATOR_copy_, x);
  c.arg[1].t = y;
  nc_temps_call(d, &c);
}

void nc_temps_dim(Temps *d, int *dim, const Arg *a, const Tensor *x) {
  *dim = 0;
  if (d->status == NC_OK) d->status = nc_dim(dim, a->s.i, x->nd);
}

/*
** The end
*/
int nc_temps_result(const Temps *d, Tensor **y, Tensor *t) {
  if (d->status == NC_OK) nc_retain(*y = t);
  return d->status;
}

int nc_temps_finish(Temps *d) {
  while (d->n > 0) nc_release(d->t[--d->n]);
  return d->status;
}

int nc_temps_end(Temps *d, Tensor **y, Tensor *t) {
  nc_temps_result(d, y, t);
  return nc_temps_finish(d);
}

int nc_temps_endcall(Temps *d, Call *c, Tensor *y) {
  return nc_temps_end(d, &c->out[0], y);
}

int nc_temps_endinplace(Temps *d, Call *c) {
  return nc_temps_endcall(d, c, c->arg[0].t);
}
