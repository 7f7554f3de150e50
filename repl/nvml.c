/* SPDX-License-Identifier: MIT */
/*
** nvml.c - the clock of a GPU and why it is held down, from the library that
** comes with NVIDIA's driver; opened on first use, and missed by nobody.
*/
#include <dlfcn.h>
#include <string.h>

#include <lauxlib.h>

#include "repl.h"

#define SMCLOCK 1             /* NVML_CLOCK_SM */

static struct {
  int tried, works;
  int (*init)(void);
  int (*handle)(const char *uuid, void **device);
  int (*clock)(void *device, int kind, unsigned *mhz);
  int (*reasons)(void *device, unsigned long long *bits);
} nvml;

/* *f = the function of that name; ISO C has no cast from void *. */
static int find(void *library, void *f, const char *name) {
  void *p = dlsym(library, name);
  memcpy(f, &p, sizeof p);
  return p != NULL;
}

static int bind(void *library) {
  return find(library, &nvml.init, "nvmlInit_v2") &&
         find(library, &nvml.handle, "nvmlDeviceGetHandleByUUID") &&
         find(library, &nvml.clock, "nvmlDeviceGetClockInfo") &&
         find(library, &nvml.reasons,
              "nvmlDeviceGetCurrentClocksThrottleReasons");
}

static int works(void) {
  void *library;
  if (nvml.tried) return nvml.works;
  nvml.tried = 1;
  library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  nvml.works = library != NULL && bind(library) && nvml.init() == 0;
  return nvml.works;
}

/* gpuclock(uuid): MHz of the multiprocessors, and the reasons for which the
   clock is held down, bits; nothing if they are not known */
int sh_gpuclock(lua_State *L) {
  unsigned long long bits = 0;
  unsigned mhz = 0;
  void *device;
  const char *uuid = luaL_checkstring(L, 1);
  if (!works() || nvml.handle(uuid, &device) != 0 ||
      nvml.clock(device, SMCLOCK, &mhz) != 0)
    return 0;
  if (nvml.reasons(device, &bits) != 0) bits = 0;
  lua_pushinteger(L, mhz);
  lua_pushinteger(L, (lua_Integer)bits);
  return 2;
}
