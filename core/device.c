/* SPDX-License-Identifier: MIT */
/*
** device.c - the list of devices, and what does not depend on which.
*/
#include <string.h>

#include "tensor.h"

/* The only place that knows which devices there are. */
static const Device *const devices[] = { &nc_cpu };

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

int nc_finddevice(const Device **d, const char *name) {
  *d = NULL;
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    if (strcmp(devices[i]->name, name) == 0) {
      *d = devices[i];
      return NC_OK;
    }
  if (strncmp(name, "cuda", 4) == 0)
    return nc_fail(NC_EDEVICE,
                   "no usable device: this version has no CUDA plug-in");
  return nc_fail(NC_EDEVICE, "no device is called '%s'", name);
}

int nc_synchronize(void) {
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    TRY(devices[i]->synchronize());
  return NC_OK;
}

/*
** Families
*/
#define FAMILY(op, signature, doc) { #op, signature, doc, nc_op_##op },
const FamilyInfo nc_families[FAM_COUNT] = {
#include "families.def"
};
#undef FAMILY

/* The device of the first tensor; the others must be there too. */
static int where(const Device **d, const Call *c) {
  *d = NULL;
  for (int i = 0; i < NC_MAXARG; i++) {
    const Arg *a = &c->arg[i];
    for (int j = 0; j < (a->tensors ? a->n : 1); j++) {
      const Tensor *t = a->tensors ? a->tensors[j] : a->t;
      if (t == NULL) continue;
      if (*d && nc_device(t) != *d)
        return nc_fail(NC_EDEVICE, "operands are on different devices");
      *d = nc_device(t);
    }
  }
  return NC_OK;
}

int nc_call(Call *c) {
  const Device *d;
  TRY(where(&d, c));
  if (d && d->family && d->family[c->op]) return d->family[c->op](c);
  return nc_families[c->op].cpu(c);
}

static int64_t listbytes(int n) {
  return ((int64_t)n + 1) * (int64_t)sizeof(Tensor *);
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
