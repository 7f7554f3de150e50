/* SPDX-License-Identifier: MIT */
/* nacre.h - the interface of the binding for the program: opens the library,
   and what the shell needs of it. */
#ifndef nacre_h
#define nacre_h

#include <stdint.h>

#include <lua.h>

#if defined(__GNUC__)
#define NL_EXPORT __attribute__((visibility("default")))
#else
#define NL_EXPORT
#endif

/* Pushes the table `nacre'. The state must be closed with lua_close. Changes
   nothing of the Lua state but its registry. */
NL_EXPORT int luaopen_nacre(lua_State *L);

/* For a program whose scripts are Nacre's: changes Lua itself. Strings that
   name devices and dtypes get fields, ("cuda:0").type; ipairs, debug.traceback
   and collectgarbage handle tensors and their errors; numbers keep their point
   in every locale; the collector becomes generational. To be called once, after
   luaopen_nacre. [-0, +0, m] */
void nl_extend_lua(lua_State *L);

/* The modules that show tensors (lib/display), "nacre.tensor_text" and others:
   is there one of this name? nl_require(name), a lua_CFunction, returns it. */
int nl_is_module(const char *name);
int nl_require(lua_State *L);

/* Waits for every device and raises the errors of its work. A lua_CFunction. */
int nl_synchronize(lua_State *L);
/* the same, but does not repeat the error of a device that has failed before */
int nl_synchronize_working(lua_State *L);

/* Ctrl-C was pressed: if Python runs, it raises KeyboardInterrupt. For a signal
   handler. */
void nl_interrupt_python(void);

/* Ends Python, if it runs: with what it has registered for that. The last Lua
   state that uses it does so when it is closed; for a program that exits
   without. */
void nl_end_python(lua_State *L);
/* Ends the threads of a device's plug-in. They use libraries whose objects
   exit() destroys. The last Lua state to be closed does so; for a program that
   exits without. */
void nl_end_device_threads(void);
/* Writes what a rank has printed and is not yet shown: before the transport is
   left, which may end the process. */
void nl_end_rank_output(void);

/* A lua_Alloc for many short-lived userdata; see lua_allocator.c. */
void *nacre_alloc(void *ud, void *p, size_t old, size_t n);
/* If set: is no large block given now? */
extern int (*nacre_refuses_memory)(void);

/* Seeds math.random of this Lua state, if it is Lua's own. */
void nl_seedmath(lua_State *L, uint64_t seed);

#endif
