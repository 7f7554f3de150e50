/* SPDX-License-Identifier: MIT */
/*
** optimizer_step.c - the request optimizer_step on the CPU: threads take ranges
** of the elements of all parameters, counted one parameter after the other.
*/
#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

#define GRAIN 16384 /* elements that are worth a thread */

/* The elements from .. to-1 of parameter j. */
static void step_part(const OptimizerCall *c, int j, int64_t from, int64_t to) {
  const int64_t offset = from * nc_dtypesize(c->p[j]->dtype);
  StepRows r = { .nstates = c->nstates,
                 .p = (char *)nc_data(c->p[j]) + offset,
                 .g = (const char *)nc_data((c->g ? c->g : c->p)[j]) + offset };
  for (int i = 0; i < c->nstates; i++)
    r.state[i] = (char *)nc_data(c->s[i][j]) + offset;
  nc_kernels()->step[c->rule][c->p[j]->dtype == DT_f64](&r, to - from,
                                                        &c->numbers);
}

static void step_range(void *ctx, int64_t begin, int64_t end) {
  const OptimizerCall *c = ctx;
  int64_t at = 0; /* of the first element of parameter j */
  for (int j = 0; j < c->n && at < end; j++) {
    const int64_t n = nc_numel(c->p[j]);
    const int64_t from = begin > at ? begin - at : 0;
    const int64_t to = end - at < n ? end - at : n;
    if (from < to) step_part(c, j, from, to);
    at += n;
  }
}

/* The one element of t, float32 or float64. */
static double number_of(const Tensor *t) {
  if (t->dtype == DT_f64) return *(const double *)nc_data(t);
  return *(const float *)nc_data(t);
}

int nc_cpu_optimizer_step(const OptimizerCall *given) {
  OptimizerCall call = *given, *c = &call;
  int64_t n = 0;
  if (c->factor) c->numbers.shrink *= number_of(c->factor);
  for (int j = 0; j < c->n; j++) n += nc_numel(c->p[j]);
  return nc_parallel(n, GRAIN, step_range, c);
}
