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
#include "cuda/pointwise/pointwise.h"

const Host *nc_hostside;

static const Device *list[MAXDEVICES];

static int selected(void) {
  return nc_selected;
}

/* Fails if there is no device i. */
static int check_device_number(int i) {
  if (i >= 0 && i < nc_gpus) return NC_OK;
  return nc_fail(NC_EDEVICE, "there is no cuda:%d, only %d device%s", i,
                 nc_gpus, nc_gpus == 1 ? "" : "s");
}

static int set_current(int i) {
  TRY(check_device_number(i));
  nc_selected = i;
  return NC_OK;
}

static int info(int i, DeviceInfo *out) {
  TRY(check_device_number(i));
  return nc_info(i, out);
}

static int memory(int i, MemoryInfo *out) {
  TRY(check_device_number(i));
  return nc_memoryinfo(i, out);
}

static int newstream(Stream **s, int i, int priority) {
  *s = NULL;
  TRY(check_device_number(i));
  return nc_newstream(s, i, priority);
}

static Accelerator accelerator = { .kind = "cuda",
                                   .device = list,
                                   .current = selected,
                                   .setcurrent = set_current,
                                   .info = info,
                                   .memory = memory,
                                   .resetpeak = nc_resetpeak,
                                   .peer = nc_peer,
                                   .pin = nc_pinpages,
                                   .unpin = nc_unpinpages,
                                   .newstream = newstream,
                                   .freestream = nc_freestream,
                                   .stream = nc_stream,
                                   .defaultstream = nc_defaultstream,
                                   .setstream = nc_setstream,
                                   .streamdevice = nc_streamdevice,
                                   .streamid = nc_streamid,
                                   .streamnumber = nc_streamnumber,
                                   .join = nc_join,
                                   .fork = nc_fork,
                                   .querystream = nc_querystream,
                                   .waitstream = nc_waitstream,
                                   .newevent = nc_newevent,
                                   .freeevent = nc_freeevent,
                                   .record = nc_record,
                                   .after = nc_after,
                                   .queryevent = nc_queryevent,
                                   .waitevent = nc_waitevent,
                                   .elapsed = nc_elapsed,
                                   .get = nc_cuda_get,
                                   .set = nc_cuda_set,
                                   .fact = nc_fact,
                                   .failed = nc_failed };

/* Do both builds number the operations of ops.def alike?  Requests identify
   an operation by its number. */
static int same_operations(const Host *h) {
  for (int i = 0; i < OP_COUNT; i++)
    if (strcmp(h->op[i].name, nc_opname((Op)i)) != 0) return 0;
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
