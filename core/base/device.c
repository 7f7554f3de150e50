/* SPDX-License-Identifier: MIT */
/*
** device.c - the list of devices and their common functions.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/accelerator.h"
#include "core/tensor.h"

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
  if (strcmp(name, NC_METANAME) == 0) {
    *d = &nc_meta;
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
