/* SPDX-License-Identifier: MIT */
/*
** state.c - the State that the binding has for each Lua state: where it is
** found, and that one thread at a time uses them.
*/
#include <pthread.h>

#include "bindings/binding.h"
#include "bindings/state.h"
#include "core/accelerator.h"

#define CONTEXT "nacre.context"

struct LastState nl_last;

State *nl_find_state(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &nl_last);
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  nl_last.state = lua_touserdata(L, -2);
  nl_last.main = lua_tothread(L, -1);
  nl_last.registry = lua_topointer(L, LUA_REGISTRYINDEX);
  lua_pop(L, 2);
  return nl_last.state;
}

/*
** The core has one thread that calls it. A second one would crash.
*/
static struct {
  pthread_mutex_t lock;
  pthread_t thread;
  int states; /* open ones */
} owner = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Counts a State of this thread; returns 0 if those of another one are open. */
static int count_state(void) {
  pthread_mutex_lock(&owner.lock);
  const int mine =
      owner.states == 0 || pthread_equal(owner.thread, pthread_self());
  if (mine) owner.thread = pthread_self();
  owner.states += mine;
  pthread_mutex_unlock(&owner.lock);
  return mine;
}

void nl_end_device_threads(void) {
  const Accelerator *a = nc_open_accelerator();
  if (a) a->set("compiling", 0);
}

/* __gc of the State. Another Lua state may get the addresses. */
static int close_state(lua_State *L) {
  const State *s = lua_touserdata(L, 1);
  if (nc_context == &s->context) nc_context = &nc_default_context;
  nl_last = (struct LastState){ NULL, NULL, NULL };
  pthread_mutex_lock(&owner.lock);
  const int last = --owner.states == 0;
  pthread_mutex_unlock(&owner.lock);
  if (last) nl_end_device_threads();
  return 0;
}

const State *nl_open_state(lua_State *L) {
  State *s = nl_find_state(L);
  if (s == NULL) {
    if (luaL_getmetatable(L, CONTEXT) != LUA_TNIL)
      luaL_error(L, "another copy of nacre is open in this Lua state");
    lua_pop(L, 1);
    s = nl_newowner(L, sizeof *s, CONTEXT, close_state);
    if (!count_state()) {
      lua_pushnil(L);
      lua_setmetatable(L, -2);
      luaL_error(L, "nacre is open in a Lua state of another thread: one "
                    "thread of a process can use it");
    }
    s->context = (Context)NC_CONTEXT;
    lua_rawsetp(L, LUA_REGISTRYINDEX, &nl_last);
    nl_find_state(L);
  }
  nl_select(L);
  return s;
}
