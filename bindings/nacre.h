/* SPDX-License-Identifier: MIT */
/* nacre.h - opens the library: tensors for a Lua state. */
#ifndef nacre_h
#define nacre_h

#include <stdint.h>

#include <lua.h>

/* Pushes the table `nacre'.  A state must be closed with lua_close. */
int luaopen_nacre(lua_State *L);

/* A function of Lua: waits for every device, raises what went wrong there. */
int nl_synchronize(lua_State *L);
int nl_settle(lua_State *L);  /* nothing again of a device that failed */

/* A lua_Alloc made for many short-lived boxes; see lua_allocator.c. */
void *nacre_alloc(void *ud, void *p, size_t old, size_t n);

/* Seeds math.random of this Lua state, if it has one: a program is to have one
   seed for all its random numbers. */
void nl_seedmath(lua_State *L, uint64_t seed);

/* The entry of a NULL-ended list closest to word; NULL if none is close.  In
   a list of names (of functions, variables) only what is clearly a slip. */
const char *nl_nearest(const char *word, const char *const list[]);
const char *nl_nearname(const char *word, const char *const list[]);

#endif
