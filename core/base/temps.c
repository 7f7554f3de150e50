/* SPDX-License-Identifier: MIT */
/* temps.c - intermediate tensors of composed operators; see temps.h. */
#include "core/base/temps.h"

#include <string.h>

#include "core/op.h"

Tensor *nc_temps_add(Temps *d, int r, Tensor **t) {
  if (d->status != NC_OK) r = d->status;
  if (r == NC_OK && d->n == NC_MAXTEMPS)
    r = nc_fail(NC_EVALUE, "a composed operation is too long");
  if (r == NC_OK) return d->t[d->n++] = *t;
  nc_release(*t);
  d->status = r;
  return NULL;
}

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

Tensor *nc_temps_reduce(Temps *d, Op op, Tensor *x, unsigned dims,
                        int keepdim) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(
      d, nc_reduce(&y, op, x, dims, keepdim, DT_NONE, NULL, NULL), &y);
}

Tensor *nc_temps_cast(Temps *d, Tensor *x, DType type) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_temps_add(d, nc_cast(&y, x, type), &y);
}

Call nc_callon(Operator op, Tensor *x) {
  Call c;
  memset(&c, 0, sizeof c);
  c.op = op;
  for (int i = 0; i < NC_MAXARG; i++) c.arg[i].dtype = DT_NONE;
  c.arg[0].given = 1;
  c.arg[0].t = x;
  return c;
}

void nc_setint(Call *c, int i, int64_t v) {
  c->arg[i].given = 1;
  c->arg[i].s = nc_int(v);
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

Tensor *nc_temps_narrow(Temps *d, Tensor *x, int dim, int64_t start,
                        int64_t length) {
  Call c = nc_callon(OPERATOR_narrow, x);
  nc_setint(&c, 1, dim + 1);
  nc_setint(&c, 2, start + 1);
  nc_setint(&c, 3, length);
  return nc_temps_call(d, &c);
}

Tensor *nc_temps_cat(Temps *d, Tensor *const t[], int n, int dim) {
  Call c = nc_callon(OPERATOR_cat, NULL);
  c.arg[0].tensors = t;
  c.arg[0].n = n;
  nc_setint(&c, 1, dim + 1);
  return nc_temps_call(d, &c);
}

int nc_temps_result(const Temps *d, Tensor **y, Tensor *t) {
  if (d->status == NC_OK) nc_retain(*y = t);
  return d->status;
}

int nc_temps_finish(Temps *d) {
  while (d->n > 0) nc_release(d->t[--d->n]);
  return d->status;
}
