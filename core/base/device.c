/* SPDX-License-Identifier: MIT */
/*
** device.c - the list of devices, their common functions, the table of
** operators, and operators that run on the host instead of a device
** (nc_run_on_host).
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "core/trace_internal.h"

/* The devices that always exist.  Those of the plug-in are added when it is
   opened. */
static const Device *const builtin_devices[] = { &nc_cpu };

Context nc_default_context = NC_CONTEXT;
Context *nc_context = &nc_default_context;
_Thread_local Counters nc_counters;
volatile sig_atomic_t nc_interrupted;

void nc_count(int64_t flops, int64_t bytes) {
  nc_counters.flops += flops;
  nc_counters.bytes += bytes;
  nc_counters.launches++;
}

const Device *nc_host(void) {
  return &nc_cpu;
}

const Device *nc_default_device(void) {
  const Accelerator *a;
  if (nc_context->device) return nc_context->device;
  a = nc_open_accelerator();
  return a->device[a->current()];
}

/* Returns the ordinal in "cuda:N", -1 for "cuda", -2 if the name is not of
   this kind. */
static long ordinal(const char *name, const char *kind) {
  const size_t n = strlen(kind);
  char *end;
  long i;
  if (strncmp(name, kind, n) != 0) return -2;
  if (name[n] == '\0') return -1;
  if (name[n] != ':' || name[n + 1] < '0' || name[n + 1] > '9') return -2;
  i = strtol(name + n + 1, &end, 10);
  return *end ? -2 : i;
}

int nc_finddevice(const Device **d, const char *name) {
  const Accelerator *a;
  long i;
  *d = NULL;
  for (size_t k = 0; k < sizeof builtin_devices / sizeof *builtin_devices; k++)
    if (strcmp(builtin_devices[k]->name, name) == 0) {
      *d = builtin_devices[k];
      return NC_OK;
    }
  if (ordinal(name, nc_cpu.name) == 0) { /* "cpu:0" */
    *d = &nc_cpu;
    return NC_OK;
  }
  if ((i = ordinal(name, "cuda")) == -2) {
    nc_fail(NC_EVALUE, "no device is named '%s'", name);
    nc_hint("a device is %s", NC_DEVICENAMES);
    return NC_EVALUE;
  }
  TRY(nc_accelerator(&a));
  if (i == -1) i = a->current();
  if (i >= a->count) {
    nc_fail(NC_EDEVICE, "there is no %s, only %d device%s", name, a->count,
            a->count == 1 ? "" : "s");
    nc_hint("ordinals count from 0: cuda:0 is the first");
    return NC_EDEVICE;
  }
  *d = a->device[i];
  return NC_OK;
}

int nc_ondevices(int (*fn)(const Device *d, void *ctx), void *ctx) {
  const Accelerator *a = nc_open_accelerator();
  for (size_t i = 0; i < sizeof builtin_devices / sizeof *builtin_devices; i++)
    TRY(fn(builtin_devices[i], ctx));
  for (int i = 0; a && i < a->count; i++) TRY(fn(a->device[i], ctx));
  return NC_OK;
}

static int synchronize(const Device *d, void *ctx) {
  (void)ctx;
  return d->synchronize(d);
}

int nc_synchronize(void) {
  return nc_ondevices(synchronize, NULL);
}

/* Synchronizes a device unless it has failed. */
static int synchronize_if_working(const Device *d, void *ctx) {
  if (d->ordinal >= 0 && nc_open_accelerator()->failed(d->ordinal))
    return NC_OK;
  return synchronize(d, ctx);
}

/* Waits for all devices except those that have failed for good.  That
   failure has been reported already; a user of other devices need not see it
   again. */
int nc_synchronize_working(void) {
  return nc_ondevices(synchronize_if_working, NULL);
}

/*
** Devices of operands
*/
/* Returns whether a tensor counts as a number, which any device accepts: a
   0-d tensor on the host. */
static int is_host_scalar(const Tensor *t) {
  return t->nd == 0 && nc_device(t) == &nc_cpu;
}

/* Fails: operands i and j are on devices a and b. */
static int fail_devices(int i, int j, const Device *a, const Device *b) {
  if (nc_ismeta(a) != nc_ismeta(b))
    return nc_fail(NC_EDEVICE,
                   "one operand belongs to a dry run and has no values");
  nc_fail(NC_EDEVICE, "operands are on different devices");
  nc_rule("one operation runs on one device");
  nc_hint("%s:to(\"%s\"), or %s:to(\"%s\")", nc_operandtext(j), a->name,
          nc_operandtext(i), b->name);
  return NC_EDEVICE;
}

/* *d = the one device of the tensors in[]; with `numbers' 0-d tensors of the
   host do not count. */
static int common_device(const Device **d, const Arg in[], int n, int numbers) {
  int first = -1;
  *d = &nc_cpu;
  for (int j = 0; j < n; j++) {
    const Tensor *t = in[j].t;
    if (t == NULL || (numbers && is_host_scalar(t))) continue;
    if (first >= 0 && nc_device(t) != *d)
      return fail_devices(first, j, *d, nc_device(t));
    if (first < 0) first = j;
    *d = nc_device(t);
  }
  return NC_OK;
}

int nc_samedevice(const Device **d, const Arg in[], int n) {
  return common_device(d, in, n, 1);
}

int nc_onedevice(const Device **d, const Arg in[], int n) {
  return common_device(d, in, n, 0);
}

/*
** Operators
*/
#define OPERATOR(op, ...) OPERATOR_AS(op, op, __VA_ARGS__)
#define OPERATOR_AS(other, op, class, signature, doc) \
  { #op, GRADCLASS_##class, signature, doc, nc_op_##other },
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
