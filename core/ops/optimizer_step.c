/* SPDX-License-Identifier: MIT */
/*
** optimizer_step.c - one step of an optimizer for a list of parameters, as one
** request to their device.
*/
#include <string.h>

#include "core/op.h"

/* Are u and p dense, of one type and shape, on one device? */
static int is_alike(const Tensor *u, const Tensor *p) {
  return u->dtype == p->dtype && nc_device(u) == nc_device(p) &&
         u->nd == p->nd && nc_isdense(u) &&
         memcmp(u->size, p->size, (size_t)p->nd * sizeof *p->size) == 0;
}

/* Returns whether the request can do it: all tensors are dense, and of the type
   and on the device of the first; none is there twice. */
static int is_supported(const Call *c, int nstates) {
  const Arg *p = &c->arg[1], *g = &c->arg[2], *s = &c->arg[3];
  const Tensor *first = p->tensors[0];
  if (first->dtype != DT_f32 && first->dtype != DT_f64) return 0;
  for (int j = 0; j < p->n; j++) {
    const Tensor *t = p->tensors[j];
    if (t->dtype != first->dtype || nc_device(t) != nc_device(first) ||
        !nc_isdense(t) || !is_alike(g->tensors[j], t) ||
        nc_overlaps(g->tensors[j], t))
      return 0;
    for (int i = 0; i < nstates; i++)
      if (!is_alike(s->tensors[i * p->n + j], t)) return 0;
  }
  return 1;
}

/* Counts the request and the versions of what it writes. */
static void count_writes(const Arg *p, const Arg *s, int nstates) {
  int64_t n = 0;
  for (int j = 0; j < p->n; j++) {
    n += nc_numel(p->tensors[j]);
    p->tensors[j]->data->version++;
    p->tensors[j]->data->writes++;
  }
  for (int j = 0; j < s->n; j++) {
    s->tensors[j]->data->version++;
    s->tensors[j]->data->writes++;
  }
  nc_count(n * (nstates == 0   ? 2
                : nstates == 1 ? 4
                               : 12),
           n * (3 + 2 * nstates) * nc_dtypesize(p->tensors[0]->dtype));
}

/* rule, params, grads, all first states, all second states, ..., StepNumbers as
   a float64 tensor -> was it done? */
int nc_op__optimizer_step(Call *c) {
  const Arg *p = &c->arg[1], *g = &c->arg[2], *s = &c->arg[3];
  const Tensor *numbers = c->arg[4].t;
  OptimizerCall k = { .n = p->n, .p = p->tensors, .g = g->tensors };
  const int nstates = p->n ? s->n / p->n : 0;
  c->value = (Scalar){ NC_BOOL, 0, 0 };
  if (p->n == 0 || g->n != p->n || s->n != nstates * p->n || nstates > 3 ||
      numbers->dtype != DT_f64 || nc_device(numbers) != nc_host() ||
      nc_numel(numbers) * 8 != (int64_t)sizeof k.numbers)
    return nc_fail(NC_EVALUE, "the lists do not fit");
  if (!is_supported(c, nstates)) return NC_OK;
  k.rule = (StepRule)c->arg[0].s.i;
  for (int i = 0; i < nstates; i++) k.s[i] = s->tensors + i * p->n;
  memcpy(&k.numbers, nc_data(numbers), sizeof k.numbers);
  count_writes(p, s, nstates);
  c->value = (Scalar){ NC_BOOL, 1, 1 };
  return nc_device(p->tensors[0])->optimizer_step(nc_device(p->tensors[0]), &k);
}
