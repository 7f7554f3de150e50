/* SPDX-License-Identifier: MIT */
/*
** machine.c - the module "nacre.machine": properties of the machine, and the
** counters that are read before and after a timed run.
*/

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "core/accelerator.h"

/* A figure of the plug-in; 0 as long as none is open. */
static int64_t figure(const char *name) {
  const Accelerator *a = nc_open_accelerator();
  int64_t v = 0;
  if (a == NULL || a->get(name, &v) != NC_OK) return 0;
  return v;
}

/* counters(): flops, bytes, operations, bytes allocated, ns of opening, uses
   of CUDA devices, bytes copied to them and from them, waits for them; all
   since the start */
static int counters(lua_State *L) {
  const int64_t v[] = { nc_counters.flops,
                        nc_counters.bytes,
                        nc_counters.launches,
                        nc_counters.allocated,
                        nc_counters.opening + figure("opening"),
                        figure("uses"),
                        figure("copied_in"),
                        figure("copied_out"),
                        figure("waits") };
  const int n = sizeof v / sizeof *v;
  luaL_checkstack(L, n, NULL);
  for (int i = 0; i < n; i++) lua_pushinteger(L, v[i]);
  return n;
}

/* figure(name): one of them by its name, or another one of the plug-in */
static int named_figure(lua_State *L) {
  lua_pushinteger(L, figure(luaL_checkstring(L, 1)));
  return 1;
}

/* The value of the line "model name : ..." of /proc/cpuinfo, or another word
   for the processor. */
static int model(lua_State *L) {
  char line[256];
  FILE *f = fopen("/proc/cpuinfo", "re");
  char *end, *value = NULL;
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    if (strncmp(line, "model name", 10) != 0) continue;
    if ((value = strchr(line, ':')) != NULL) break;
  }
  if (f != NULL) fclose(f);
  if (value == NULL) {
    lua_pushstring(L, nc_cpulevel());
    return 1;
  }
  value += strspn(value, ": \t");
  end = value + strcspn(value, "\n");
  lua_pushlstring(L, value, (size_t)(end - value));
  return 1;
}

/* load(): the load average of the last minute; nil if it is not known */
static int load(lua_State *L) {
  double v;
  if (getloadavg(&v, 1) != 1) return 0;
  lua_pushnumber(L, v);
  return 1;
}

/* cache(): bytes of the largest cache of the processor, or a guess */
static int cache(lua_State *L) {
  char path[64], unit = ' ';
  long most = 0, n;
  for (int i = 0; i < 6; i++) {
    FILE *f;
    snprintf(path, sizeof path,
             "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
    if ((f = fopen(path, "re")) == NULL) continue;
    if (fscanf(f, "%ld%c", &n, &unit) >= 1) {
      n *= unit == 'M' ? 1 << 20 : unit == 'K' ? 1 << 10 : 1;
      if (n > most) most = n;
    }
    fclose(f);
  }
  lua_pushinteger(L, most > 0 ? most : 32 << 20);
  return 1;
}

/* driver(): what the open plug-in says of its driver, or nil if none is open */
static int driver(lua_State *L) {
  const Accelerator *a = nc_open_accelerator();
  lua_pushstring(L, a != NULL ? a->fact(0) : NULL);
  return 1;
}

/* emulated(): is the device of the open plug-in emulated? */
static int emulated(lua_State *L) {
  const Accelerator *a = nc_open_accelerator();
  lua_pushboolean(L, a != NULL && a->emulated);
  return 1;
}

int sh_openmachine(lua_State *L) {
  static const luaL_Reg list[] = { { "counters", counters },
                                   { "figure", named_figure },
                                   { "model", model },
                                   { "load", load },
                                   { "cache", cache },
                                   { "driver", driver },
                                   { "emulated", emulated },
                                   { "gpuclock", sh_gpuclock },
                                   { "mute", sh_mute_stdout },
                                   { "unmute", sh_unmute_stdout },
                                   { NULL, NULL } };
  luaL_newlib(L, list);
  lua_pushinteger(L, nc_cores());
  lua_setfield(L, -2, "processors");
  return 1;
}

/* nacre --peak */
int sh_measurepeak(lua_State *L) {
  sh_pushmember(L, "nacre.machine_peak", "main");
  return sh_call(L, 0, 0);
}

/* Pushes nacre.progress, a table that is called: progress(n), progress.set. */
static void push_progress(lua_State *L) {
  lua_newtable(L);
  sh_pushlazy(L, "nacre.progress", "set");
  lua_setfield(L, -2, "set");
  lua_newtable(L);
  sh_pushlazy(L, "nacre.progress", "call");
  lua_setfield(L, -2, "__call");
  lua_setmetatable(L, -2);
}

/* Functions of `nacre' that are the shell's. */
void sh_open_lazy_functions(lua_State *L) {
  static const char *const list[][3] = {
    /* name, module, its function */
    { "bench", "nacre.bench", "call" },
    { "Timer", "nacre.timer", "new" },
    { "history", "nacre.training_log", "new" },
    { "summary", "nacre.display", "summary" },
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    sh_pushlazy(L, list[i][1], list[i][2]);
    lua_setfield(L, -2, list[i][0]);
  }
  push_progress(L);
  lua_setfield(L, -2, "progress");
  lua_getfield(L, -1, "_made");
  lua_getfield(L, -2, "summary"); /* it is a method, too */
  lua_setfield(L, -2, "summary");
  lua_pop(L, 1);
}
