/* SPDX-License-Identifier: MIT */
/*
** class_loss.c - the request class_loss on the CPU: checks the classes, runs
** the loops of class_loss.inc on ranges of rows, adds up the losses.
*/
#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/op.h"

typedef struct ClassWork {
  ClassRows rows;
  void (*run)(const ClassRows *k, int64_t from, int64_t to);
} ClassWork;

/* Fails for the first class that does not exist. */
static int check_classes(const ClassLossCall *c) {
  const int64_t n = nc_numel(c->target), classes = c->x->size[1];
  const int64_t *t = nc_data(c->target);
  for (int64_t i = 0; i < n; i++)
    if ((t[i] < 1 || t[i] > classes) && t[i] != c->ignore)
      return nc_wrong_class(t[i], classes);
  return NC_OK;
}

static void row_range(void *ctx, int64_t begin, int64_t end) {
  const ClassWork *j = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i += 64)
    j->run(&j->rows, i, nc_min(i + 64, end));
}

static double element(const Tensor *t, int64_t i) {
  const void *p = nc_data(t);
  if (t->dtype == DT_f64) return ((const double *)p)[i];
  return (double)((const float *)p)[i];
}

static void set_element(const Tensor *t, int64_t i, double v) {
  if (t->dtype == DT_f64) ((double *)nc_data(t))[i] = v;
  else ((float *)nc_data(t))[i] = (float)v;
}

/* loss and scale from the losses and weights of all rows. */
static void store_losses(const ClassLossCall *c, const ClassRows *k) {
  const int64_t n = nc_numel(c->target);
  double sum = 0, share = 0;
  for (int64_t i = 0; i < n; i++) {
    if (c->reduction == CLASS_NONE) set_element(c->loss, i, k->loss[i]);
    sum += k->loss[i];
    share += k->share[i];
  }
  if (c->reduction != CLASS_MEAN) share = 1;
  if (c->reduction != CLASS_NONE) set_element(c->loss, 0, sum / share);
  set_element(c->scale, 0, 1 / share);
}

static int forward(ClassWork *j, const ClassLossCall *c, int64_t grain) {
  const int64_t n = nc_numel(c->target), bytes = 16 * (n ? n : 1);
  void *sums;
  int r;
  TRY(nc_hostalloc(&sums, bytes));
  j->rows.loss = sums;
  j->rows.share = j->rows.loss + n;
  r = nc_parallel(n, grain, row_range, j);
  if (r == NC_OK) store_losses(c, &j->rows);
  nc_hostfree(sums, bytes);
  return r;
}

int nc_cpu_class_loss(const ClassLossCall *c) {
  const int f64 = c->x->dtype == DT_f64;
  const int64_t classes = c->x->size[1];
  const int64_t grain = 1 + 8192 / (classes ? classes : 1);
  ClassWork j = { .run = nc_kernels()->class_loss[f64][c->d != NULL] };
  ClassRows *k = &j.rows;
  TRY(check_classes(c));
  *k = (ClassRows){ .x = nc_data(c->x),
                    .weight = c->weight ? nc_data(c->weight) : NULL,
                    .target = nc_data(c->target),
                    .classes = classes,
                    .ignore = c->ignore,
                    .smoothing = c->smoothing,
                    .weights = (double)classes,
                    .log = c->log,
                    .lse = nc_data(c->lse) };
  if (c->weight) {
    k->weights = 0;
    for (int64_t i = 0; i < classes; i++) k->weights += element(c->weight, i);
  }
  if (c->d == NULL) return forward(&j, c, grain);
  k->g = nc_data(c->g);
  k->gstep = c->reduction == CLASS_NONE;
  k->scale = element(c->scale, 0);
  k->d = nc_data(c->d);
  return nc_parallel(nc_numel(c->target), grain, row_range, &j);
}
