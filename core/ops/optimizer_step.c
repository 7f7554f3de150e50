/* SPDX-License-Identifier: MIT */
/*
** optimizer_step.c - one step of an optimizer for a list of parameters, as one
** request to their device.
*/
#include <string.h>

#include "core/op.h"
#include "core/operators.h"
#include "core/trace.h"

/* Are u and p dense, of one type and shape, on one device? */
static int is_alike(const Tensor *u, const Tensor *p) {
  return u->dtype == p->dtype && nc_device(u) == nc_device(p) &&
         u->nd == p->nd && nc_isdense(u) &&
         memcmp(u->size, p->size, (size_t)p->nd * sizeof *p->size) == 0;
}

/* Are all tensors dense, writable, and of the type, float32 or float64, and on
   the device of the first? */
static int are_uniform(const Arg *p) {
  const Tensor *first = p->tensors[0];
  if (first->dtype != DT_f32 && first->dtype != DT_f64) return 0;
  for (int j = 0; j < p->n; j++) {
    const Tensor *t = p->tensors[j];
    if (t->dtype != first->dtype || nc_device(t) != nc_device(first) ||
        !nc_isdense(t) || nc_isreadonly(t))
      return 0;
  }
  return 1;
}

/* Returns whether the request can do it: gradients and states are like their
   parameters. */
static int is_supported(const Call *c, int nstates) {
  const Arg *p = &c->arg[1], *g = &c->arg[2], *s = &c->arg[3];
  if (!are_uniform(p)) return 0;
  for (int j = 0; j < p->n; j++) {
    const Tensor *t = p->tensors[j];
    if (!is_alike(g->tensors[j], t) || nc_overlaps(g->tensors[j], t)) return 0;
    for (int i = 0; i < nstates; i++)
      if (!is_alike(s->tensors[i * p->n + j], t)) return 0;
  }
  return 1;
}

/* Counts the elements of a list, and the versions of what is written. */
static int64_t count_writes(const Arg *list) {
  int64_t n = 0;
  for (int j = 0; j < list->n; j++) {
    n += nc_numel(list->tensors[j]);
    list->tensors[j]->data->version++;
    list->tensors[j]->data->writes++;
  }
  return n;
}

/* Reads the numbers of a step.  Returns a status. */
static int read_numbers(StepNumbers *k, Tensor *given) {
  Tensor *t;
  int r = NC_OK;
  TRY(nc_readable(&t, given));
  if (t->dtype != DT_f64 || !nc_isdense(t) ||
      nc_numel(t) * 8 != (int64_t)sizeof *k)
    r = nc_fail(NC_EVALUE, "the numbers do not match the rule");
  else memcpy(k, nc_data(t), sizeof *k);
  nc_release(t);
  return r;
}

static int has_states(StepRule rule, int n) {
#define X(rule, least, most) { least, most },
  static const int states[][2] = { STEP_RULES(X) };
#undef X
  return n >= states[rule][0] && n <= states[rule][1];
}

/* rule, params, grads, all first states, all second states, ..., StepNumbers as
   a float64 tensor -> was it done? */
int nc_op__optimizer_step(Call *c) {
  const Arg *p = &c->arg[1], *g = &c->arg[2], *s = &c->arg[3];
  OptimizerCall k = { .n = p->n, .p = p->tensors, .g = g->tensors };
  const int nstates = k.nstates = p->n ? s->n / p->n : 0;
  k.rule = (StepRule)c->arg[0].s.i;
  if (p->n == 0 || g->n != p->n || s->n != nstates * p->n ||
      !has_states(k.rule, nstates))
    return nc_fail(NC_EVALUE, "the lists do not match");
  c->value = (Scalar){ NC_BOOL, { 1 }, 1, 0 };
  if (nc_ismetatensor(c->arg[4].t)) return NC_OK;
  TRY(read_numbers(&k.numbers, c->arg[4].t));
  c->value.i = is_supported(c, nstates);
  if (!c->value.i) return NC_OK;
  for (int i = 0; i < nstates; i++) k.s[i] = s->tensors + i * p->n;
  const int64_t written = count_writes(p);
  count_writes(s);
  nc_count(written * (nstates == 0   ? 2
                      : nstates == 1 ? 4
                                     : 12),
           written * (3 + 2 * nstates) * nc_dtypesize(p->tensors[0]->dtype));
  return nc_device(p->tensors[0])->optimizer_step(nc_device(p->tensors[0]), &k);
}

/* tensors, factor -> was it done? */
int nc_op__list_scale(Call *c) {
  const Arg *p = &c->arg[0];
  OptimizerCall k = { .rule = STEP_scale,
                      .n = p->n,
                      .p = p->tensors,
                      .factor = c->arg[1].t,
                      .numbers = { .shrink = 1 } };
  c->value = (Scalar){ NC_BOOL, { 1 }, 1, 0 };
  if (p->n == 0 || nc_ismetatensor(k.factor)) return NC_OK;
  const Tensor *first = p->tensors[0];
  c->value.i = are_uniform(p) && nc_numel(k.factor) == 1 &&
               k.factor->dtype == first->dtype &&
               nc_device(k.factor) == nc_device(first);
  if (!c->value.i) return NC_OK;
  const int64_t n = count_writes(p);
  nc_count(n, 2 * n * nc_dtypesize(first->dtype));
  return nc_device(first)->optimizer_step(nc_device(first), &k);
}
