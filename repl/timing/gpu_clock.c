/* SPDX-License-Identifier: MIT */
/*
** gpu_clock.c - the clock of a GPU and the reasons for which the driver limits
** it, from NVIDIA's management library (NVML), which is opened on first use.
*/

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "core/library.h"

#define SMCLOCK 1 /* NVML_CLOCK_SM */

static struct {
  int tried, works;
  int (*init)(void);
  int (*handle)(const char *uuid, void **device);
  int (*clock)(void *device, int kind, unsigned *mhz);
  int (*reasons)(void *device, unsigned long long *bits);
} nvml;

static int bind(void *library) {
  return nc_symbol(&nvml.init, library, "nvmlInit_v2") &&
         nc_symbol(&nvml.handle, library, "nvmlDeviceGetHandleByUUID") &&
         nc_symbol(&nvml.clock, library, "nvmlDeviceGetClockInfo") &&
         nc_symbol(&nvml.reasons, library,
                   "nvmlDeviceGetCurrentClocksThrottleReasons") &&
         nvml.init() == 0;
}

static int works(void) {
  static const char *const names[] = { "libnvidia-ml.so.1", NULL };
  if (nvml.tried) return nvml.works;
  nvml.tried = 1;
  nvml.works = nc_openfirst(names, bind) != NULL;
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
