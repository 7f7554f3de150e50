/* SPDX-License-Identifier: MIT */
/*
** cuda_module.c - the tables nacre.cuda and nacre.backends.
**
** A function that needs a device opens the plug-in, and raises the plug-in's
** error if there is none. Ordinals count from 0, because they are part of
** device names.
*/

#include <stddef.h>
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/devices/lua_devices.h"
#include "core/accelerator.h"

const Accelerator *nl_accelerator(lua_State *L, const char *op) {
  const Accelerator *a;
  int r = nc_accelerator(&a);
  nl_checkcuda(L, r, op);
  return a;
}

int nl_ordinal(lua_State *L, int i, const char *op) {
  const Accelerator *a = nl_accelerator(L, op);
  const Device *d;
  if (lua_isnoneornil(L, i)) return a->current();
  d = nl_needdevice(L, i, op);
  if (d->ordinal < 0)
    return nl_error(L, op, "%s is not a CUDA device", d->name);
  return d->ordinal;
}

/* The device given at index i, or the current one. [-0, +0, e] */
static const Device *device_at(lua_State *L, int i, const char *op) {
  int k = nl_ordinal(L, i, op);
  return nl_accelerator(L, op)->device[k];
}

/*
** Availability
*/
static int is_available(lua_State *L) {
  const Accelerator *a;
  lua_pushboolean(L, nc_accelerator(&a) == NC_OK && a->count > 0);
  return 1;
}

static int is_initialized(lua_State *L) {
  lua_pushboolean(L, nc_open_accelerator() != NULL);
  return 1;
}

static int device_count(lua_State *L) {
  const Accelerator *a;
  lua_pushinteger(L, nc_accelerator(&a) == NC_OK ? a->count : 0);
  return 1;
}

static int why(lua_State *L) {
  const Accelerator *a;
  if (nc_accelerator(&a) == NC_OK) return 0;
  lua_pushstring(L, nc_lasterror()->text);
  return 1;
}

/*
** The current device
*/
static int current_device(lua_State *L) {
  lua_pushinteger(L, nl_accelerator(L, "cuda.current_device")->current());
  return 1;
}

/* Makes device i current. [-0, +0, e] */
static void make_current(lua_State *L, int i, const char *op) {
  nl_check_as(L, nl_accelerator(L, op)->setcurrent(i), op);
}

static int set_device(lua_State *L) {
  const char *op = "cuda.set_device";
  make_current(L, nl_ordinal(L, 1, op), op);
  return 0;
}

/* device(i, fn, ...): calls fn with device i current, then restores the
   previous device. */
static int device(lua_State *L) {
  const char *op = "cuda.device";
  int i = nl_ordinal(L, 1, op);
  nl_push_restore(L, i);
  lua_replace(L, 1);
  make_current(L, i, op);
  return nl_call_restoring(L, lua_gettop(L) - 2);
}

/*
** Properties
*/
/* Pushes a userdata with the properties of the device given at index 1.
   [-0, +1, e] */
static DeviceInfo *info(lua_State *L, const char *op) {
  int i = nl_ordinal(L, 1, op);
  DeviceInfo *d = lua_newuserdatauv(L, sizeof *d, 0);
  memset(d, 0, sizeof *d);
  nl_check(L, nl_accelerator(L, op)->info(i, d));
  return d;
}

static int get_device_name(lua_State *L) {
  lua_pushstring(L, info(L, "cuda.get_device_name")->name);
  return 1;
}

static int get_device_capability(lua_State *L) {
  const DeviceInfo *d = info(L, "cuda.get_device_capability");
  lua_pushinteger(L, d->major);
  lua_pushinteger(L, d->minor);
  return 2;
}

static int get_device_properties(lua_State *L) {
  const DeviceInfo *d = info(L, "cuda.get_device_properties");
  lua_createtable(L, 0, 12);
  nl_set_string(L, "name", d->name);
  nl_set_string(L, "uuid", d->uuid);
  nl_set_string(L, "pci_bus_id", d->pci);
  nl_set_integer(L, "major", d->major);
  nl_set_integer(L, "minor", d->minor);
  nl_set_integer(L, "total_memory", d->memory);
  nl_set_integer(L, "L2_cache_size", d->l2);
  nl_set_integer(L, "multi_processor_count", d->processors);
  nl_set_integer(L, "clock_rate", d->clock);
  nl_set_integer(L, "memory_clock_rate", d->memoryclock);
  nl_set_integer(L, "memory_bus_width", d->bus);
  return 1;
}

static int can_device_access_peer(lua_State *L) {
  const char *op = "cuda.can_device_access_peer";
  int i, j;
  if (lua_isnoneornil(L, 1) || lua_isnoneornil(L, 2))
    return nl_error(L, op, "two devices are needed");
  i = nl_ordinal(L, 1, op);
  j = nl_ordinal(L, 2, op);
  lua_pushboolean(L, nl_accelerator(L, op)->peer(i, j));
  return 1;
}

/*
** Memory
*/
static MemoryInfo memory(lua_State *L, const char *op) {
  int i = nl_ordinal(L, 1, op);
  MemoryInfo m;
  memset(&m, 0, sizeof m);
  nl_check(L, nl_accelerator(L, op)->memory(i, &m));
  return m;
}

/* Pushes the int64_t field of MemoryInfo at this offset. [-0, +1, e] */
static int figure(lua_State *L, const char *op, size_t offset) {
  const MemoryInfo m = memory(L, op);
  int64_t v;
  memcpy(&v, (const char *)&m + offset, sizeof v);
  lua_pushinteger(L, v);
  return 1;
}

#define FIGURE(name, field)                                       \
  static int name(lua_State *L) {                                 \
    return figure(L, "cuda." #name, offsetof(MemoryInfo, field)); \
  }
FIGURE(memory_allocated, allocated)
FIGURE(max_memory_allocated, peak)
FIGURE(memory_reserved, reserved)
FIGURE(max_memory_reserved, reservedpeak)

static int mem_get_info(lua_State *L) {
  const MemoryInfo m = memory(L, "cuda.mem_get_info");
  lua_pushinteger(L, m.free);
  lua_pushinteger(L, m.total);
  return 2;
}

static const char *pushbytes(lua_State *L, int64_t n) {
  char text[NC_TEXT];
  return lua_pushstring(L, nc_bytestext(text, (double)n));
}

static int memory_summary(lua_State *L) {
  const char *op = "cuda.memory_summary";
  const Device *d = device_at(L, 1, op);
  const MemoryInfo m = memory(L, op);
  lua_pushfstring(L,
                  "%s\n"
                  "  tensors hold     %s, at most %s\n"
                  "  cache included   %s, at most %s\n"
                  "  of the device    %s free of %s\n"
                  "  calls            %I to allocate, %I of them served by the "
                  "cache, %I to free, %I segment%s",
                  d->name, pushbytes(L, m.allocated), pushbytes(L, m.peak),
                  pushbytes(L, m.reserved), pushbytes(L, m.reservedpeak),
                  pushbytes(L, m.free), pushbytes(L, m.total),
                  (LUAI_UACINT)m.allocs, (LUAI_UACINT)m.hits,
                  (LUAI_UACINT)m.frees, (LUAI_UACINT)m.segments,
                  m.segments == 1 ? "" : "s");
  return 1;
}

/* A table with the keys of PyTorch's memory_stats that the allocator has values
   for. */
static int memory_stats(lua_State *L) {
  const MemoryInfo m = memory(L, "cuda.memory_stats");
  lua_createtable(L, 0, 9);
  nl_set_integer(L, "allocated_bytes.all.current", m.allocated);
  nl_set_integer(L, "allocated_bytes.all.peak", m.peak);
  nl_set_integer(L, "reserved_bytes.all.current", m.reserved);
  nl_set_integer(L, "reserved_bytes.all.peak", m.reservedpeak);
  nl_set_integer(L, "allocation.all.current", m.allocs - m.frees);
  nl_set_integer(L, "allocation.all.allocated", m.allocs);
  nl_set_integer(L, "allocation.all.freed", m.frees);
  nl_set_integer(L, "segment.all.current", m.segments);
  nl_set_integer(L, "num_alloc_retries", m.retries);
  return 1;
}

static int reset_peak_memory_stats(lua_State *L) {
  const char *op = "cuda.reset_peak_memory_stats";
  int i = nl_ordinal(L, 1, op);
  nl_accelerator(L, op)->resetpeak(i);
  return 0;
}

/*
** Work
*/
static int synchronize(lua_State *L) {
  const Device *d = device_at(L, 1, "cuda.synchronize");
  nl_check_op(L, d->synchronize(d), "cuda.synchronize");
  return 0;
}

#define ON "device:device=nil"

const Bound nl_cuda[] = {
  { "is_available", is_available, "-> boolean",
    "can a CUDA device be used? why() tells why not", 1 },
  { "why", why, "-> text",
    "the reason why no CUDA device can be used; nil if one can", 1 },
  { "is_initialized", is_initialized, "-> boolean",
    "has something opened the CUDA plug-in?", 1 },
  { "device_count", device_count, "-> integer",
    "number of CUDA devices; 0 if none can be used", 1 },
  { "current_device", current_device, "-> integer",
    "ordinal of the device that \"cuda\" stands for, from 0", 1 },
  { "set_device", set_device, "device:device",
    "makes a device the one that \"cuda\" stands for", 1 },
  { "device", device, "device:device, fn:fn, ... -> results",
    "calls fn with device as the current one, then goes back", 1 },
  { "get_device_name", get_device_name, ON " -> text", "the model", 1 },
  { "get_device_capability", get_device_capability, ON " -> major, minor",
    "the compute capability", 1 },
  { "get_device_properties", get_device_properties, ON " -> table",
    "name, capability, memory, multiprocessors, ...; rates in kHz", 1 },
  { "can_device_access_peer", can_device_access_peer,
    "device:device, peer_device:device -> boolean",
    "can a device read the memory of another directly?", 1 },
  { "mem_get_info", mem_get_info, ON " -> free, total",
    "bytes of memory, as the driver counts them", 1 },
  { "memory_allocated", memory_allocated, ON " -> bytes",
    "what tensors hold on a device", 1 },
  { "max_memory_allocated", max_memory_allocated, ON " -> bytes",
    "the most that tensors held since reset_peak_memory_stats()", 1 },
  { "memory_reserved", memory_reserved, ON " -> bytes",
    "what tensors hold, and the cache of freed memory", 1 },
  { "max_memory_reserved", max_memory_reserved, ON " -> bytes",
    "the most that was reserved since reset_peak_memory_stats()", 1 },
  { "memory_summary", memory_summary, ON " -> text",
    "the figures of a device's memory, to be printed", 1 },
  { "memory_stats", memory_stats, ON " -> table",
    "the figures of a device's memory by PyTorch's names, such as "
    "[\"allocated_bytes.all.peak\"]",
    1 },
  { "reset_peak_memory_stats", reset_peak_memory_stats, ON,
    "the peaks count from now on", 1 },
  { "empty_cache", nl_empty_cache, "",
    "collects, and gives cached memory back to the devices and the system", 1 },
  { "synchronize", synchronize, ON,
    "waits until a device has finished its work; an error of that work is "
    "raised here",
    1 },
  { "manual_seed", nl_manual_seed, NL_SEED,
    "seeds the random numbers: one generator serves every device", 1 },
  { "manual_seed_all", nl_manual_seed, NL_SEED, "the same as manual_seed", 1 },
  { "kernel", nl_raw_kernel, "source:text, name:text, ... -> function",
    "a kernel of your own CUDA C++, compiled for the current device, which "
    "k(grid, block, ...) launches with tensors as pointers; options of the "
    "compiler follow as texts, or in a table",
    1 },
  { "Stream", nl_newstream, "device:device=nil, priority:int=0 -> stream",
    "a new queue of work on a device, concurrent with the others; a lower "
    "priority number goes first",
    1 },
  { "Event", nl_newevent, "enable_timing=false, blocking=false -> event",
    "a mark in a stream, to wait for or to measure time with; a wait never "
    "keeps a core busy for long, blocking or not",
    1 },
  { "stream", nl_withstream, "stream:stream=nil, fn:fn, ... -> results",
    "calls fn with stream, and its device, as the current one, then goes "
    "back; nil changes nothing",
    1 },
  { "set_stream", nl_setstream, "stream:stream",
    "makes stream, and its device, the current one", 1 },
  { "current_stream", nl_currentstream, ON " -> stream",
    "the stream that operations on a device go to", 1 },
  { "default_stream", nl_defaultstream, ON " -> stream",
    "the default stream, which always exists", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};

/*
** nacre.backends.cuda.matmul.allow_tf32. The value is kept here until the
** plug-in is open, so that a program can set it first.
*/
static int64_t tf32;

static int backend_index(lua_State *L) {
  const Accelerator *a = nc_open_accelerator();
  const char *name = luaL_tolstring(L, 2, NULL);
  int64_t v = tf32;
  if (strcmp(name, "allow_tf32") != 0)
    return nl_unknown_name(L, "backends.cuda.matmul", name);
  if (a) nl_check(L, a->get("allow_tf32", &v));
  lua_pushboolean(L, v != 0);
  return 1;
}

static int backend_newindex(lua_State *L) {
  const char *op = "backends.cuda.matmul", *name = luaL_tolstring(L, 2, NULL);
  const Accelerator *a;
  if (strcmp(name, "allow_tf32") != 0)
    return nl_error(L, op, "no setting '%s': there is allow_tf32", name);
  if (!lua_isboolean(L, 3))
    return nl_error(L, op, "allow_tf32 must be true or false, not a %s",
                    nl_typename(L, 3));
  tf32 = lua_toboolean(L, 3);
  if (nc_accelerator(&a) == NC_OK) nl_check(L, a->set("allow_tf32", tf32));
  return 0;
}

static void push_backends(lua_State *L) {
  static const luaL_Reg events[] = { { "__index", backend_index },
                                     { "__newindex", backend_newindex },
                                     { NULL, NULL } };
  lua_createtable(L, 0, 1);
  lua_createtable(L, 0, 1);
  lua_newtable(L);
  luaL_newlib(L, events);
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "matmul");
  lua_setfield(L, -2, "cuda");
}

/* Pushes nacre.cuda or nacre.backends; returns 0 for another name.
   [-0, +(0|1), e] */
int nl_pushtable(lua_State *L, const char *name) {
  if (strcmp(name, "backends") == 0) {
    push_backends(L);
    nl_make_strict(L, name);
    return 1;
  }
  if (strcmp(name, "cuda") != 0) return 0;
  nl_push_bound_table(L, nl_cuda);
  nl_make_strict(L, name);
  return 1;
}
