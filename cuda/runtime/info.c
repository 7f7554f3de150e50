/* SPDX-License-Identifier: MIT */
/*
** info.c - describes the driver, the devices and cuBLAS in text, a line each.
** The shell shows these lines for :doctor (Accelerator.fact).
*/
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "cuda/runtime/gpu.h"
#include "cuda/runtime/probe.h"

#ifdef NC_EMULATED
#define DRIVER "emulated driver"
#define MARK " (emulated)"
#else
#define DRIVER "driver"
#define MARK ""
#endif

/* Extracts "580.65.06" from the line "NVRM version: ... Module  580.65.06 ..."
   of the kernel module; "" if there is none. */
static void driverrelease(char *out, size_t room) {
  char line[256] = "", *p;
  FILE *f = fopen("/proc/driver/nvidia/version", "r");
  *out = '\0';
  if (f == NULL) return;
  p = fgets(line, sizeof line, f) ? strstr(line, "Module") : NULL;
  fclose(f);
  if (p == NULL) return;
  p += strcspn(p, "0123456789");
  p[strspn(p, "0123456789.")] = '\0';
  snprintf(out, room, " %s", p);
}

static const char *versions(char *out, size_t room) {
  char release[32];
  int driver = 0, runtime = 0;
  driverrelease(release, sizeof release);
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  snprintf(out, room, DRIVER "%s for CUDA %d.%d, runtime %d.%d", release,
           driver / 1000, driver % 1000 / 10, runtime / 1000,
           runtime % 1000 / 10);
  return out;
}

/* A remark if the driver must compile this build's code for the device. */
static const char *compiled(const DeviceInfo *d) {
#ifdef NC_ARCHITECTURES
  if (nc_codefor(NC_ARCHITECTURES, d->major * 10 + d->minor) != CODE_READY)
    return "; newer than this build's code (" NC_ARCHITECTURES "), which the "
           "driver compiles at its first use: that takes seconds";
#endif
  (void)d;
  return "";
}

static const char *device(char *out, size_t room, int i) {
  char memory[NC_TEXT];
  DeviceInfo d;
  if (nc_info(i, &d) != NC_OK)
    snprintf(out, room, "cuda:%d: gives no information", i);
  else
    snprintf(out, room,
             "cuda:%d" MARK ": %s, %s, compute capability %d.%d, "
             "%d multiprocessors%s",
             i, d.name, nc_bytestext(memory, (double)d.memory), d.major,
             d.minor, d.processors, compiled(&d));
  return out;
}

/* Line n: the versions, then the devices, then cuBLAS; NULL after the last.
   The text is valid until the next call. */
const char *nc_fact(int n) {
  static char text[512];
  if (n == 0) return versions(text, sizeof text);
  if (n <= nc_gpus) return device(text, sizeof text, n - 1);
  if (n == nc_gpus + 1) return nc_product_info();
  return NULL;
}
