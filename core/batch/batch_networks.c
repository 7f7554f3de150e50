/* SPDX-License-Identifier: MIT */
/*
** batch_networks.c - rules for layers of networks: samples join the samples of
** the operator, weights of each sample become groups.
*/
#include "core/batch/batching.h"
#include "core/operators.h"
#include "core/ops.h"

/* The first two dimensions of x as one. */
static Tensor *joined(Batching *b, Tensor *x, int at) {
  int64_t size[NC_MAXDIM];
  if (b->w.status != NC_OK) return NULL;
  for (int d = 0, k = 0; d < x->nd; d++) {
    if (d == at + 1) size[k - 1] *= x->size[d];
    else size[k++] = x->size[d];
  }
  return nc_temps_reshape(&b->w, x, x->nd - 1, size);
}

/* Dimension `at' of x as two, the first of size n. */
static Tensor *parted(Batching *b, Tensor *x, int at, int64_t n) {
  int64_t size[NC_MAXDIM];
  if (b->w.status != NC_OK) return NULL;
  b->w.status = nc_check_maxdim(x->nd + 1);
  if (b->w.status != NC_OK) return NULL;
  for (int d = 0; d < x->nd; d++) size[d > at ? d + 1 : d] = x->size[d];
  size[at + 1] = n ? x->size[at] / n : x->size[at];
  size[at] = n;
  return nc_temps_reshape(&b->w, x, x->nd + 1, size);
}

/* Is an operand but the first a sample? */
static int others_mapped(const Batching *b) {
  for (int i = 1; i < NC_MAXARG; i++)
    if (nc_batch_value(b, b->c->arg[i].t)) return 1;
  return 0;
}

/* The operator treats its first dimension as samples: those of vmap join. */
int nc_batch_fold(Batching *b) {
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  const int64_t n = b->level->n;
  Call low = *b->c;
  if (others_mapped(b) || n == 0 || b->c->arg[0].t->nd < 1)
    return nc_batch_loop(b);
  low.arg[0].t = joined(b, x, 0);
  nc_temps_call(&b->w, &low);
  for (int i = 0; i < NC_MAXOUT && b->w.status == NC_OK; i++) {
    if (low.out[i] == NULL) continue;
    Tensor *y = parted(b, low.out[i], 0, n);
    if (y) TRY(nc_batch_result(b, &b->c->out[i], y));
  }
  return b->w.status;
}

/* [n, samples, channels, ...] as [samples, n * channels, ...] */
static Tensor *as_channels(Batching *b, Tensor *x) {
  return joined(b, nc_temps_call1(&b->w, OPERATOR_transpose, x, 1, 2), 1);
}

/* Weights of each sample of vmap: its channels are groups of their own. */
static int conv_groups(Batching *b) {
  const int64_t n = b->level->n;
  const Arg *a = b->c->arg;
  Call low = *b->c;
  Tensor *y;
  low.arg[0].t = as_channels(b, nc_batch_expanded(b, a[0].t));
  low.arg[1].t = joined(b, nc_batch_expanded(b, a[1].t), 0);
  if (a[4].t) low.arg[4].t = joined(b, nc_batch_expanded(b, a[4].t), 0);
  nc_setint(&low, 3, a[3].s.i * n);
  y = nc_temps_call(&b->w, &low);
  if (y) y = parted(b, y, 1, n);
  return nc_batch_end(b, nc_temps_call1(&b->w, OPERATOR_transpose, y, 1, 2));
}

int nc_batch_conv(Batching *b) {
  const Arg *a = b->c->arg;
  if (a[0].t->nd != 4 || a[1].t->nd != 4 || b->level->n == 0)
    return nc_batch_loop(b);
  return others_mapped(b) ? conv_groups(b) : nc_batch_fold(b);
}

/* Statistics of each sample for itself; mean and variance are vectors. */
int nc_batch_norm(Batching *b) {
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  Call low = *b->c;
  if (others_mapped(b) || b->c->arg[6].s.i || b->level->n == 0)
    return nc_batch_loop(b);
  low.arg[0].t = x;
  nc_temps_call(&b->w, &low);
  for (int i = 0; i < NC_MAXOUT && b->w.status == NC_OK; i++) {
    Tensor *y = low.out[i];
    if (i > 0) y = parted(b, y, 0, b->level->n);
    if (y) TRY(nc_batch_result(b, &b->c->out[i], y));
  }
  return b->w.status;
}

/*
** Losses of classes
*/
enum { NONE, MEAN, SUM };

/* The mean over rows that are not ignored, which weigh the same. */
static Tensor *mean_of_rows(Batching *b, Tensor *loss, Tensor *target,
                            int64_t ignored) {
  Tensor *counts = nc_temps_opnumber(&b->w, OP_ne, target, nc_int(ignored));
  Tensor *sum = nc_temps_reduce(&b->w, OP_sum, loss, 2, 0);
  Tensor *n = nc_temps_reduce(&b->w, OP_sum, counts, 2, 0);
  if (sum == NULL || n == NULL) return NULL;
  return nc_temps_op2(&b->w, OP_true_divide, sum,
                      nc_temps_cast(&b->w, n, sum->dtype));
}

int nc_batch_class_loss(Batching *b) {
  const Arg *a = b->c->arg;
  const int64_t reduction = a[5].s.i;
  Call low = *b->c;
  Tensor *target, *y;
  if (a[2].t || a[0].t->nd != 2 || a[1].t->nd != 1 || b->level->n == 0)
    return nc_batch_loop(b);
  target = nc_batch_expanded(b, a[1].t);
  low.arg[0].t = joined(b, nc_batch_expanded(b, a[0].t), 0);
  low.arg[1].t = nc_temps_flatten(&b->w, target);
  low.arg[5].s = nc_int(NONE);
  y = nc_temps_call(&b->w, &low);
  if (y) y = parted(b, y, 0, b->level->n);
  if (y && reduction == SUM) y = nc_temps_reduce(&b->w, OP_sum, y, 2, 0);
  if (y && reduction == MEAN) y = mean_of_rows(b, y, target, a[3].s.i);
  return nc_batch_end(b, y);
}
