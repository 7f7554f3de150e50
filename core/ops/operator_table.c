/* SPDX-License-Identifier: MIT */
/*
** operator_table.c - the table of operators, lists of tensors in their calls,
** and operators that run on the host instead of a device (nc_run_on_host).
*/
#include <string.h>

#include "core/op.h"
#include "core/operators.h"
#include "core/trace_internal.h"

#define OPERATOR(op, ...) OPERATOR_AS(op, op, __VA_ARGS__)
#define OPERATOR_AS(other, op, class, signature, doc) \
  { #op,                                              \
    OF_CLASS(GRADCLASS_##class),                      \
    signature,                                        \
    doc,                                              \
    nc_op_##other,                                    \
    TAKES_COMPLEX(GRADCLASS_##class),                 \
    TAKES_STORAGE(GRADCLASS_##class) },
/* The bits that COMPLEX(..) and MOVES(..) add to a class. */
#define GRADCLASS_COMPLEX(class) GRADCLASS_##class | 16
#define GRADCLASS_MOVES(class) GRADCLASS_##class | 16 | 32
#define OF_CLASS(c) (GradClass)((c)&15)
#define TAKES_COMPLEX(c) (((c)&16) || (c) == GRADCLASS_VIEW)
#define TAKES_STORAGE(c) (((c)&32) || (c) == GRADCLASS_VIEW)
const OperatorInfo nc_operators[OPERATOR_COUNT] = {
#include "core/operators.def"
};
#undef OPERATOR

static int64_t list_bytes(int n) {
  return ((int64_t)n + 1) * (int64_t)sizeof(Tensor *);
}

/* Replaces *t, an owned reference, by a copy on device d. */
static int move_to(Tensor **t, const Device *d) {
  Tensor *there;
  TRY(nc_todevice(&there, *t, d));
  nc_release(*t);
  *t = there;
  return NC_OK;
}

static int copy_to_host(Tensor **y, Tensor *x) {
  return nc_todevice(y, x, &nc_cpu);
}

static int new_list(Tensor ***list, int n) {
  void *p;
  TRY(nc_hostalloc(&p, list_bytes(n)));
  *list = memset(p, 0, (size_t)list_bytes(n));
  return NC_OK;
}

int nc_copylist(Arg *a, Tensor ***own, int (*copy)(Tensor **y, Tensor *x)) {
  TRY(new_list(own, a->n));
  for (int k = 0; k < a->n; k++) TRY(copy(&(*own)[k], a->tensors[k]));
  a->tensors = *own;
  return NC_OK;
}

void nc_releaselist(Tensor **list, int n) {
  for (int k = 0; list && k < n; k++) nc_release(list[k]);
  nc_hostfree(list, list_bytes(n));
}

void nc_copyresults(Call *c, const Call *from) {
  memcpy(c->out, from->out, sizeof c->out);
  c->value = from->value;
  c->list = from->list;
  c->nlist = from->nlist;
}

/* Runs c with copies of its operands on the host; copies the results to d. */
static int run_on_host(Call *c, Tensor **own[], const Device *d) {
  for (int i = 0; i < NC_MAXARG; i++) {
    if (c->arg[i].t) TRY(move_to(&c->arg[i].t, &nc_cpu));
    if (c->arg[i].tensors) TRY(nc_copylist(&c->arg[i], &own[i], copy_to_host));
  }
  TRY(nc_operators[c->op].fn(c));
  for (int i = 0; i < NC_MAXOUT; i++)
    if (c->out[i]) TRY(move_to(&c->out[i], d));
  for (int i = 0; i < c->nlist; i++) TRY(move_to(&c->list[i], d));
  return NC_OK;
}

int nc_run_on_host(Call *c, const Device *d) {
  Call low = *c;
  Tensor **own[NC_MAXARG] = { NULL };
  int r;
  if (d == &nc_meta) return nc_meta_novalues(d);
  if (nc_ismeta(d))
    return nc_fail(
        NC_EVALUE,
        "the CPU computes this from values, which a dry run does not have");
  for (int i = 0; i < NC_MAXARG; i++)
    if (low.arg[i].t) nc_retain(low.arg[i].t);
  r = run_on_host(&low, own, d);
  for (int i = 0; i < NC_MAXARG; i++) {
    nc_release(low.arg[i].t);
    nc_releaselist(own[i], low.arg[i].n);
  }
  nc_copyresults(c, &low);
  return r;
}

int nc_newlist(Call *c, int n) {
  TRY(new_list(&c->list, n));
  c->nlist = n;
  return NC_OK;
}

void nc_freelist(Call *c) {
  nc_releaselist(c->list, c->nlist);
  c->list = NULL;
  c->nlist = 0;
}
