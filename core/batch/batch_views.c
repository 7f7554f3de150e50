/* SPDX-License-Identifier: MIT */
/*
** batch_views.c - rules for operators whose arguments are sizes, or orders of
** dimensions: those of the value have one more, in front.
*/
#include "core/batch/batching.h"
#include "core/operators.h"
#include "core/ops.h"

/* Calls the operator on the value of self with a list of this length as
   argument 1. */
static int run_list(Batching *b, int op, Tensor *x, int n,
                    const int64_t list[]) {
  Call low = *b->c;
  low.op = op;
  low.arg[0].t = x;
  low.arg[1].t = NULL;
  nc_setlist(&low, 1, n, list);
  return nc_batch_run(b, &low);
}

/* *n, *size = the sizes in argument 1, or those of the tensor there. */
static void sizes_of(const Arg *a, int *n, const int64_t **size) {
  *n = a->t ? a->t->nd : a->n;
  *size = a->t ? a->t->size : a->list;
}

int nc_batch_reshape(Batching *b) {
  static const int64_t flat[1] = { -1 };
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  const int view = b->c->op == OPERATOR_view || b->c->op == OPERATOR_view_as;
  const int64_t *size = flat;
  int64_t to[NC_MAXDIM];
  int n = 1;
  if (b->c->op != OPERATOR_ravel) sizes_of(&b->c->arg[1], &n, &size);
  if (x == NULL) return nc_batch_loop(b); /* other alone is a sample */
  TRY(nc_batch_sizes(to, x->size[0], n, size));
  return run_list(b, view ? OPERATOR_view : OPERATOR_reshape, x, n + 1, to);
}

int nc_batch_expand(Batching *b) {
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  const int64_t *size;
  int64_t to[NC_MAXDIM];
  int n;
  sizes_of(&b->c->arg[1], &n, &size);
  if (x == NULL) return nc_batch_loop(b);
  x = nc_batch_aligned(b, b->c->arg[0].t, n);
  if (x == NULL) return b->w.status;
  TRY(nc_batch_sizes(to, x->size[0], n, size));
  return run_list(b, OPERATOR_expand, x, n + 1, to);
}

int nc_batch_new(Batching *b) {
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  int64_t to[NC_MAXDIM];
  TRY(nc_batch_sizes(to, b->level->n, b->c->arg[1].n, b->c->arg[1].list));
  return run_list(b, b->c->op, x, b->c->arg[1].n + 1, to);
}

/* Dimensions in an order, or a choice of them, with `first' in front. */
static int run_dims(Batching *b, int first) {
  const Arg *a = &b->c->arg[1];
  const int nd = b->c->arg[0].t->nd;
  int64_t to[NC_MAXDIM];
  to[0] = 1;
  if (nd == 0) return nc_batch_loop(b);
  TRY(nc_check_maxdim(a->n + first));
  for (int i = 0; i < a->n; i++) {
    int d;
    TRY(nc_dim(&d, a->list[i], nd));
    to[i + first] = d + 2;
  }
  return run_list(b, b->c->op, nc_batch_value(b, b->c->arg[0].t), a->n + first,
                  to);
}

int nc_batch_permute(Batching *b) {
  return run_dims(b, 1);
}

int nc_batch_flip(Batching *b) {
  return run_dims(b, 0);
}

/* Fewer numbers than dimensions are for the last ones. */
int nc_batch_tile(Batching *b) {
  const Arg *a = &b->c->arg[1];
  Tensor *x = nc_batch_aligned(b, b->c->arg[0].t, a->n);
  return x ? run_list(b, b->c->op, x, a->n, a->list) : b->w.status;
}

int nc_batch_transpose(Batching *b) {
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  if (x->nd > 3) return nc_batch_loop(b); /* which fails */
  if (x->nd < 3) return nc_batch_end(b, x);
  return nc_batch_end(b, nc_temps_transposed(&b->w, x));
}

int nc_batch_unsqueeze(Batching *b) {
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  int d;
  TRY(nc_dim(&d, b->c->arg[1].s.i, x->nd));
  return nc_batch_end(b,
                      nc_temps_call1(&b->w, OPERATOR_unsqueeze, x, d + 2, 0));
}

/* Without dims all of size 1, but not the batch. */
int nc_batch_squeeze(Batching *b) {
  const Arg *a = &b->c->arg[1];
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  int64_t dims[NC_MAXDIM];
  int n = 0;
  if (a->n > 0) return nc_batch_shift(b);
  for (int d = 1; d < x->nd && !a->present; d++)
    if (x->size[d] == 1) dims[n++] = d + 1;
  if (n == 0) return nc_batch_end(b, x);
  return run_list(b, b->c->op, x, n, dims);
}

/* max, min: of two tensors, of all elements, or along a dimension. */
int nc_batch_max(Batching *b) {
  const int low = b->c->op == OPERATOR_min;
  const Arg *a = &b->c->arg[1];
  Tensor *x = nc_batch_value(b, b->c->arg[0].t), *y = NULL;
  const int nd = b->c->arg[0].t->nd;
  if (a->t) return nc_batch_pointwise(b);
  if (a->present) return nc_batch_shift(b);
  if (nd == 0) return nc_batch_end(b, x);
  if (nc_numel(b->c->arg[0].t) == 0) return nc_batch_loop(b);
  const int r = nc_reduce(&y, low ? OP_amin : OP_amax, x,
                          (~0u >> (32 - nd)) << 1, 0, DT_NONE, NULL, NULL);
  return nc_batch_end(b, nc_temps_add(&b->w, r, &y));
}
