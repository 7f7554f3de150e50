/* SPDX-License-Identifier: MIT */
/* defaults.c - settings: random seed, number of threads, default dtype, memory
   limit; and counters for the shell and the tests. */
#include "bindings/tensors/defaults.h"
#include "core/accelerator.h"

#include <stdio.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/state.h"

int nl_manual_seed(lua_State *L) {
  const uint64_t seed = (uint64_t)luaL_checkinteger(L, 1);
  nc_seed(&nl_context(L)->generator, seed);
  nl_seedmath(L, seed);
  return 0;
}

static int initial_seed(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)nc_initialseed(&nl_context(L)->generator));
  return 1;
}

static int set_num_threads(lua_State *L) {
  lua_Integer n = luaL_checkinteger(L, 1);
  if (n < 1 || n > 256)
    return nl_error(L, "set_num_threads",
                    "the number of threads must be 1 to 256, not %lld",
                    (long long)n);
  nc_setthreads((int)n);
  return 0;
}

static int get_num_threads(lua_State *L) {
  lua_pushinteger(L, nc_threads());
  return 1;
}

void nl_configtext(char *text, size_t size) {
  snprintf(text, size, "threads   %d\nloops     %s\nproducts  %s\nconvolve  %s",
           nc_threads(), nc_cpulevel(), nc_blasname(), nc_onednnname());
}

/* Prints by print, so that a session keeps the text. */
static int show_config(lua_State *L) {
  char text[512];
  nl_check(L, nc_openlibraries());
  nl_configtext(text, sizeof text);
  lua_getglobal(L, "print");
  lua_pushstring(L, text);
  lua_call(L, 1, 0);
  return 0;
}

static int set_default_dtype(lua_State *L) {
  DType t = nc_dtypefrom(luaL_checkstring(L, 1));
  if (t == DT_NONE || !nc_is_real(t) || nc_is_storage(t))
    return nl_error(L, "set_default_dtype", "'%s' is not a float dtype",
                    lua_tostring(L, 1));
  nl_context(L)->dtype = t;
  return 0;
}

static int get_default_dtype(lua_State *L) {
  lua_pushstring(L, nc_dtypename(nl_context(L)->dtype));
  return 1;
}

static int is_tensor(lua_State *L) {
  lua_pushboolean(L, nl_istensor(L, 1));
  return 1;
}

int nl_synchronize(lua_State *L) {
  nl_check(L, nc_synchronize());
  return 0;
}

int nl_synchronize_working(lua_State *L) {
  nl_check(L, nc_synchronize_working());
  return 0;
}

static int clock_time(lua_State *L) {
  lua_pushnumber(L, 1e-9 * (double)nc_now());
  return 1;
}

/* scope(fn, ...): calls fn, then collects the garbage it left. */
static int scope(lua_State *L) {
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  nl_collect(L);
  return lua_gettop(L);
}

/*
** Counters, for the shell and for tests
*/
/* _counters(): work done since the start of the process. */
static int counters(lua_State *L) {
  lua_pushinteger(L, nc_counters.flops);
  lua_pushinteger(L, nc_counters.bytes);
  lua_pushinteger(L, nc_counters.launches);
  lua_pushinteger(L, nc_counters.allocated);
  return 4;
}

/* _memory(reset): the host's memory; with `reset' the peak counts from now
   on. */
static int memory(lua_State *L) {
  const int reset = lua_toboolean(L, 1);
  lua_createtable(L, 0, 4);
  nl_set_integer(L, "live", nc_memory.live);
  nl_set_integer(L, "cached", nc_memory.cached);
  nl_set_integer(L, "peak", nc_memory.peak);
  if (reset) nc_memory.peak = nc_memory.live;
  nl_set_number(L, "collecting", 1e-9 * (double)nl_state(L)->total);
  return 1;
}

/* Appends a table with the memory of device d to the list on top; a callback of
   nc_ondevices. */
static int addmemory(const Device *d, void *ctx) {
  lua_State *L = ctx;
  const Accelerator *a = nc_open_accelerator();
  MemoryInfo m;
  lua_createtable(L, 0, 6);
  nl_set_string(L, "name", d->name);
  nl_set_integer(L, "live", d->memory->live);
  nl_set_integer(L, "cached", d->memory->cached);
  nl_set_integer(L, "peak", d->memory->peak);
  if (d->ordinal >= 0 && a->memory(d->ordinal, &m) == NC_OK) {
    nl_set_integer(L, "free", m.free);
    nl_set_integer(L, "total", m.total);
  }
  if (d->ordinal < 0) nl_set_integer(L, "free", nc_hostavailable());
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  return NC_OK;
}

static int devices(lua_State *L) {
  luaL_checkstack(L, 8, NULL);
  lua_newtable(L);
  nc_ondevices(addmemory, L);
  return 1;
}

/* _missing_requests(device): the optional requests that a device leaves out. */
static int missing_requests(lua_State *L) {
  const Device *d;
  lua_Integer n = 0;
  nl_check(L, nc_finddevice(&d, luaL_checkstring(L, 1)));
  lua_newtable(L);
#define X(request, Call)          \
  if (d->request == NULL) {       \
    lua_pushliteral(L, #request); \
    lua_rawseti(L, -2, ++n);      \
  }
  OPTIONAL_REQUESTS(X)
#undef X
  return 1;
}

/* _fail_alloc(n, sticky): makes the n-th allocation of the core fail. */
static int fail_alloc(lua_State *L) {
  nc_failalloc(luaL_checkinteger(L, 1), lua_toboolean(L, 2));
  return 0;
}

/* Does not open the plug-in: a closed plug-in has no cache. */
int nl_empty_cache(lua_State *L) {
  nl_collect(L);
  nl_empty_caches();
  return 0;
}

static int set_memory_limit(lua_State *L) {
  lua_Integer bytes = luaL_checkinteger(L, 1);
  if (bytes < 0)
    return nl_error(L, "set_memory_limit",
                    "the limit must be 0 or more, not %lld", (long long)bytes);
  nc_hostlimit = bytes;
  return 0;
}

/* dtypes(): the names of all */
static int dtypes(lua_State *L) {
  lua_createtable(L, DT_COUNT, 0);
  for (int t = 0; t < DT_COUNT; t++) {
    lua_pushstring(L, nc_dtypename((DType)t));
    lua_rawseti(L, -2, t + 1);
  }
  return 1;
}

const Bound nl_defaults[] = {
  { "manual_seed", nl_manual_seed, NL_SEED,
    "seeds the random numbers, Lua's math.random among them", 1 },
  { "initial_seed", initial_seed, "-> integer", "the seed in use", 1 },
  { "set_num_threads", set_num_threads, "n:int",
    "sets the number of CPU threads", 1 },
  { "get_num_threads", get_num_threads, "-> integer",
    "returns the number of CPU threads", 1 },
  { "show_config", show_config, "",
    "prints what the CPU computes with: threads, loops, libraries", 1 },
  { "set_default_dtype", set_default_dtype, "dtype:dtype",
    "the dtype of float tensors whose dtype is not given", 1 },
  { "get_default_dtype", get_default_dtype, "-> dtype",
    "the dtype of float tensors whose dtype is not given", 1 },
  { "is_tensor", is_tensor, "value:any -> boolean",
    "true if value is a tensor that was not freed", 1 },
  { "synchronize", nl_synchronize, "",
    "waits for every device, and raises the errors of its work", 1 },
  { "clock", clock_time, "-> seconds", "a monotonic clock, for measuring time",
    1 },
  { "scope", scope, "fn:fn, ... -> results",
    "calls fn, then releases the tensors that it left", 1 },
  { "empty_cache", nl_empty_cache, "",
    "collects, and gives cached memory back to the system", 1 },
  { "set_memory_limit", set_memory_limit, "bytes:int",
    "the most that tensors may hold; 0 is no limit", 1 },
  { "_counters", counters, "-> flops, bytes, launches, allocated", "", 1 },
  { "_memory", memory, "reset:bool=false -> table", "", 1 },
  { "_devices", devices, "-> tables", "", 1 },
  { "_dtypes", dtypes, "-> list", "", 1 },
  { "_missing_requests", missing_requests, "device:text -> names", "", 1 },
  { "_fail_alloc", fail_alloc, "n:int, sticky:bool=false", "", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
