/* SPDX-License-Identifier: MIT */
/*
** device.c - the list of devices, their common functions, the table of
** operators, and operators that run on the host instead of a device
** (nc_byhost).
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "core/tracing.h"

/* The devices that always exist.  Those of the plug-in are added when it is
   opened. */
static const Device *const always[] = { &nc_cpu };

const Device *nc_defaultdevice = &nc_cpu;
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
  for (size_t k = 0; k < sizeof always / sizeof *always; k++)
    if (strcmp(always[k]->name, name) == 0) {
      *d = always[k];
      return NC_OK;
    }
  if (ordinal(name, nc_cpu.name) == 0) { /* "cpu:0" */
    *d = &nc_cpu;
    return NC_OK;
  }
  if ((i = ordinal(name, "cuda")) == -2) {
    nc_fail(NC_EVALUE, "no device is called '%s'", name);
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
  const Accelerator *a = nc_opened();
  for (size_t i = 0; i < sizeof always / sizeof *always; i++)
    TRY(fn(always[i], ctx));
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
static int settle(const Device *d, void *ctx) {
  if (d->ordinal >= 0 && nc_opened()->failed(d->ordinal)) return NC_OK;
  return synchronize(d, ctx);
}

/* Waits for all devices except those that have failed for good.  That
   failure has been reported already; a user of other devices need not see it
   again. */
int nc_synchronize_working(void) {
  return nc_ondevices(settle, NULL);
}

/*
** Devices of operands
*/
/* Returns whether a tensor counts as a number, which any device accepts: a
   0-d tensor on the host. */
static int asnumber(const Tensor *t) {
  return t->nd == 0 && nc_device(t) == &nc_cpu;
}

/* Fails: operands i and j are on devices a and b. */
static int apart(int i, int j, const Device *a, const Device *b) {
  if (nc_ismeta(a) != nc_ismeta(b))
    return nc_fail(NC_EDEVICE, "one operand is of a dry run and has no values");
  nc_fail(NC_EDEVICE, "operands are on different devices");
  nc_rule("one operation runs on one device");
  nc_hint("%s:to(\"%s\"), or %s:to(\"%s\")", nc_operandtext(j), a->name,
          nc_operandtext(i), b->name);
  return NC_EDEVICE;
}

/* *d = the one device of the tensors in[]; with `numbers' 0-d tensors of the
   host do not count. */
static int agree(const Device **d, const Arg in[], int n, int numbers) {
  int first = -1;
  *d = &nc_cpu;
  for (int j = 0; j < n; j++) {
    const Tensor *t = in[j].t;
    if (t == NULL || (numbers && asnumber(t))) continue;
    if (first >= 0 && nc_device(t) != *d)
      return apart(first, j, *d, nc_device(t));
    if (first < 0) first = j;
    *d = nc_device(t);
  }
  return NC_OK;
}

int nc_samedevice(const Device **d, const Arg in[], int n) {
  return agree(d, in, n, 1);
}

int nc_onedevice(const Device **d, const Arg in[], int n) {
  return agree(d, in, n, 0);
}

/*
** Operators
*/
#define OPERATOR(op, class, signature, doc) \
  { #op, GRADCLASS_##class, signature, doc, nc_op_##op },
const OperatorInfo nc_operators[OPERATOR_COUNT] = {
#include "core/operators.def"
};
#undef OPERATOR

static int64_t listbytes(int n) {
  return ((int64_t)n + 1) * (int64_t)sizeof(Tensor *);
}

/* Replaces *t, an owned reference, by a copy on device d. */
static int bring(Tensor **t, const Device *d) {
  Tensor *there;
  TRY(nc_todevice(&there, *t, d));
  nc_release(*t);
  *t = there;
  return NC_OK;
}

/* Replaces the list of tensors of `a' by *own, a list of copies on the host,
   which the caller releases, also after a failure. */
static int bringlist(Arg *a, Tensor ***own) {
  void *p;
  TRY(nc_hostalloc(&p, listbytes(a->n)));
  *own = memset(p, 0, (size_t)listbytes(a->n));
  for (int k = 0; k < a->n; k++)
    TRY(nc_todevice(&(*own)[k], a->tensors[k], &nc_cpu));
  a->tensors = *own;
  return NC_OK;
}

/* Runs c with copies of its operands on the host; copies the results to d. */
static int onhost(Call *c, Tensor **own[], const Device *d) {
  for (int i = 0; i < NC_MAXARG; i++) {
    if (c->arg[i].t) TRY(bring(&c->arg[i].t, &nc_cpu));
    if (c->arg[i].tensors) TRY(bringlist(&c->arg[i], &own[i]));
  }
  TRY(nc_operators[c->op].fn(c));
  for (int i = 0; i < NC_MAXOUT; i++)
    if (c->out[i]) TRY(bring(&c->out[i], d));
  for (int i = 0; i < c->nlist; i++) TRY(bring(&c->list[i], d));
  return NC_OK;
}

int nc_byhost(Call *c, const Device *d) {
  Call low = *c;
  Tensor **own[NC_MAXARG] = { NULL };
  int r;
  if (nc_ismeta(d))
    return nc_fail(NC_EVALUE, "the host works it out, for which a dry run has "
                              "no values");
  for (int i = 0; i < NC_MAXARG; i++)
    if (low.arg[i].t) nc_retain(low.arg[i].t);
  r = onhost(&low, own, d);
  for (int i = 0; i < NC_MAXARG; i++) {
    nc_release(low.arg[i].t);
    if (own[i] == NULL) continue;
    for (int k = 0; k < low.arg[i].n; k++) nc_release(own[i][k]);
    nc_hostfree(own[i], listbytes(low.arg[i].n));
  }
  memcpy(c->out, low.out, sizeof c->out);
  c->value = low.value;
  c->list = low.list;
  c->nlist = low.nlist;
  return r;
}

int nc_newlist(Call *c, int n) {
  void *p;
  TRY(nc_hostalloc(&p, listbytes(n)));
  c->list = memset(p, 0, (size_t)listbytes(n));
  c->nlist = n;
  return NC_OK;
}

void nc_freelist(Call *c) {
  for (int i = 0; i < c->nlist; i++) nc_release(c->list[i]);
  nc_hostfree(c->list, listbytes(c->nlist));
  c->list = NULL;
  c->nlist = 0;
}
