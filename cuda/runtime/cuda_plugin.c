/* SPDX-License-Identifier: MIT */
/*
** cuda_plugin.c - the entry point of the plug-in.  The core (plugin.c) loads
** the library and calls nacre_plugin, which checks that both were built from
** the same headers, finds the devices, and returns the table Accelerator.
*/
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "cuda/runtime/gpu.h"
#include "cuda/runtime/probe.h"
#include "core/ops.h"

const Host *nc_hostside;

static const Device *list[MAXDEVICES];

static Accelerator accelerator = { .kind = "cuda",
                                   .device = list,
#define X(type, name, parameters) .name = nc_cuda_##name,
                                   ACCELERATOR_CALLS(X) DEVICE_TEAM_CALLS(X)
#undef X
};

/* Do both builds number the operations of ops.def alike?  Requests identify
   an operation by its number. */
static int same_operations(const Host *h) {
  static const char *const names[] = {
#define EVERY_OP(op, ...) #op,
#include "core/ops.def"
  };
  for (int i = 0; i < OP_COUNT; i++)
    if (strcmp(h->op[i].name, names[i]) != 0) return 0;
  return 1;
}

static int check_same_build(const Host *h) {
  if (h->abi == NC_ABI && h->host == sizeof(Host) &&
      h->calls == NC_REQUESTBYTES && h->device == sizeof(Device) &&
      h->accelerator == sizeof(Accelerator) && h->ops == OP_COUNT &&
      strcmp(h->requests, NC_REQUESTS) == 0 && same_operations(h))
    return NC_OK;
  h->fail(NC_EDEVICE,
          "its plug-in is of another build (version " NC_VERSION
          ", the program is %s)",
          h->version);
  h->hint("install both from the same build");
  return NC_EDEVICE;
}

/* Finds the driver and the devices. */
static int find_devices(const Host *h) {
#ifdef NC_EMULATED
  (void)h;
  accelerator.emulated = 1;
#else
  TRY(nc_probe(h, CUDART_VERSION, NC_ARCHITECTURES));
#endif
  nc_errorinit();
  return nc_finddevices();
}

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
PluginEntry nacre_plugin;

int nacre_plugin(const Host *h, const Accelerator **a) {
  sigset_t before;
  int r;
  *a = NULL;
  TRY(check_same_build(h));
  nc_hostside = h;
  nc_holdsignals(&before);
  r = find_devices(h);
  nc_freesignals(&before);
  if (r != NC_OK) return r;
  for (int i = 0; i < nc_gpus; i++) list[i] = &nc_gpu[i].device;
  accelerator.count = nc_gpus;
  *a = &accelerator;
  return NC_OK;
}
