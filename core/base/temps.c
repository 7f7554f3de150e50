/* SPDX-License-Identifier: MIT */
/* temps.c - operations made of others; see temps.h. */
#include "core/base/temps.h"

#include <string.h>

#include "core/op.h"

Tensor *nc_held(Draft *d, int r, Tensor **t) {
  if (d->status != NC_OK) r = d->status;
  if (r == NC_OK && d->n == NC_DRAFT)
    r = nc_fail(NC_EVALUE, "a composed operation is too long");
  if (r == NC_OK) return d->t[d->n++] = *t;
  nc_release(*t);
  d->status = r;
  return NULL;
}

Tensor *nc_row(Draft *d, Op op, const Arg in[], const double par[2]) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_held(d, nc_apply(&y, op, in, par, NULL), &y);
}

Tensor *nc_row3(Draft *d, Op op, Tensor *a, Tensor *b, Tensor *c) {
  Arg in[3] = { { .t = a }, { .t = b }, { .t = c } };
  return nc_row(d, op, in, NULL);
}

Tensor *nc_row2(Draft *d, Op op, Tensor *a, Tensor *b) {
  return nc_row3(d, op, a, b, NULL);
}

Tensor *nc_row1(Draft *d, Op op, Tensor *a) {
  return nc_row3(d, op, a, NULL, NULL);
}

Tensor *nc_rownumber(Draft *d, Op op, Tensor *a, Scalar b) {
  Arg in[2] = { { .t = a }, { .s = b } };
  return nc_row(d, op, in, NULL);
}

Tensor *nc_whereelse(Draft *d, Tensor *a, Tensor *b, Scalar c) {
  Arg in[3] = { { .t = a }, { .t = b }, { .s = c } };
  return nc_row(d, OP_where, in, NULL);
}

Tensor *nc_fold(Draft *d, Op op, Tensor *x, unsigned dims, int keepdim) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_held(d, nc_reduce(&y, op, x, dims, keepdim, DT_NONE, NULL, NULL),
                 &y);
}

Tensor *nc_as(Draft *d, Tensor *x, DType type) {
  Tensor *y = NULL;
  if (d->status != NC_OK) return NULL;
  return nc_held(d, nc_cast(&y, x, type), &y);
}

Call nc_callof(Family op, Tensor *x) {
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

Tensor *nc_do(Draft *d, Call *c) {
  if (d->status != NC_OK) {
    memset(c->out, 0, sizeof c->out);
    return NULL;
  }
  d->status = nc_call(c);
  for (int i = 0; i < NC_MAXOUT; i++)
    if (c->out[i]) c->out[i] = nc_held(d, NC_OK, &c->out[i]);
  return d->status == NC_OK ? c->out[0] : NULL;
}

Tensor *nc_do1(Draft *d, Family op, Tensor *x, int64_t a, int64_t b) {
  Call c = nc_callof(op, x);
  nc_setint(&c, 1, a);
  nc_setint(&c, 2, b);
  return nc_do(d, &c);
}

Tensor *nc_part(Draft *d, Tensor *x, int dim, int64_t start, int64_t length) {
  Call c = nc_callof(FAM_narrow, x);
  nc_setint(&c, 1, dim + 1);
  nc_setint(&c, 2, start + 1);
  nc_setint(&c, 3, length);
  return nc_do(d, &c);
}

Tensor *nc_joined(Draft *d, Tensor *const t[], int n, int dim) {
  Call c = nc_callof(FAM_cat, NULL);
  c.arg[0].tensors = t;
  c.arg[0].n = n;
  nc_setint(&c, 1, dim + 1);
  return nc_do(d, &c);
}

int nc_give(const Draft *d, Tensor **y, Tensor *t) {
  if (d->status == NC_OK) nc_retain(*y = t);
  return d->status;
}

int nc_finish(Draft *d) {
  while (d->n > 0) nc_release(d->t[--d->n]);
  return d->status;
}
