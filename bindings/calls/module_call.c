/* SPDX-License-Identifier: MIT */
/*
** module_call.c - calls of an nn.Module (bindings/lib/modules), and the modules
** that run.
**
** The call is a C function, because `return self.fc(x)' is a tail call: Lua
** forgets the frame of forward, but the frame of the C function stays, with the
** module as its first value. So an error can name the module in which it
** occurred, and no call has to record anything.
*/

#include <string.h>

#include "bindings/binding.h"
#include "bindings/lua_library.h"
#include "bindings/state.h"
#include "core/autograd.h"

#define DESCRIBE "nacre.describe_modules"
#define MOST_LEVELS 200
#define PLACES 5

/* The upvalues of module_call: how many arguments the forward of a layer takes;
   the tensors that are parameters; what raises the two errors of a call; the
   method behind a guard (bindings/lib/modules/guards.lua). */
enum { LIMITS = 1, DECLARED, FAIL_SURPLUS, FAIL_LOST, UNGUARDED };
enum { UPVALUES = UNGUARDED };

/* Returns the results of forward. A module whose forward gave none keeps that
   forward as _silent, for hints: what follows may fail for want of a value.
   [-0, +n, e] */
static int finish(lua_State *L, int status, lua_KContext context) {
  (void)status, (void)context;
  if (lua_gettop(L) > 1) return lua_gettop(L) - 1;
  lua_pushliteral(L, "_silent");
  lua_getfield(L, 1, "forward");
  lua_rawset(L, 1);
  return 0;
}

/* Fails if forward, on top, is a layer's that takes fewer arguments. Those at
   the end that are nil do not count. [-0, +0, e] */
static void check_count(lua_State *L) {
  const int forward = lua_gettop(L);
  int got = forward - 2;
  lua_pushvalue(L, forward);
  if (lua_rawget(L, lua_upvalueindex(LIMITS)) == LUA_TNUMBER) {
    const lua_Integer most = lua_tointeger(L, -1);
    while (got > most && lua_isnil(L, got + 1)) got--;
    if (got > most) {
      lua_pushvalue(L, lua_upvalueindex(FAIL_SURPLUS));
      lua_pushvalue(L, 1);
      lua_pushinteger(L, most);
      lua_pushinteger(L, got);
      lua_pushvalue(L, got + 1);
      lua_call(L, 4, 0);
    }
  }
  lua_settop(L, forward);
}

/* Is the tensor at index i a leaf that neither requires a gradient nor was
   declared to be a parameter? [-0, +0, e] */
static int is_lost(lua_State *L, int i) {
  Tensor *t = nl_totensor(L, i);
  int yes;
  if (t == NULL) return 0;
  nl_select(L);
  nl_check(L, nc_get_requires_grad(&yes, t));
  if (yes) return 0;
  lua_pushvalue(L, i);
  yes = lua_rawget(L, lua_upvalueindex(DECLARED)) != LUA_TNIL;
  lua_pop(L, 1);
  return !yes;
}

/* Fails if a field of the module that was a parameter is now another tensor: it
   would not be trained. [-0, +0, e] */
static void check_parameters(lua_State *L) {
  const int top = lua_gettop(L);
  lua_pushliteral(L, "_fields");
  const int n = lua_rawget(L, 1) == LUA_TTABLE ? (int)lua_rawlen(L, -1) : 0;
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, top + 1, i);
    lua_getfield(L, -1, "kind");
    const char *kind = lua_tostring(L, -1);
    if (kind && strcmp(kind, "parameter") == 0) {
      lua_getfield(L, top + 2, "key");
      lua_rawget(L, 1);
      if (is_lost(L, lua_gettop(L))) {
        lua_pushvalue(L, lua_upvalueindex(FAIL_LOST));
        lua_pushvalue(L, 1);
        lua_getfield(L, top + 2, "key");
        lua_call(L, 2, 0);
      }
    }
    lua_settop(L, top + 1);
  }
  lua_settop(L, top);
}

/* __call of modules: module(...) is module:forward(...), with hooks. The module
   stays at index 1. [-0, +n, e] */
static int module_call(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checkstack(L, 8, NULL);
  if (nl_context(L)->no_grad == 0) check_parameters(L);
  lua_getfield(L, 1, "forward");
  check_count(L);
  lua_pushvalue(L, -1);
  if (lua_rawget(L, lua_upvalueindex(UNGUARDED)) != LUA_TNIL)
    lua_replace(L, -2);
  else lua_pop(L, 1);
  lua_pushliteral(L, "_hooks");
  if (lua_rawget(L, 1) != LUA_TNIL) {
    lua_getfield(L, 1, "_call_hooked");
    lua_replace(L, -3);
  }
  lua_pop(L, 1);
  lua_pushvalue(L, 1);
  lua_rotate(L, 2, 2);
  lua_callk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, finish);
  return finish(L, LUA_OK, 0);
}

/* new_module_call(limits, declared, fail_surplus, fail_lost, unguarded): __call
   of modules */
static int new_module_call(lua_State *L) {
  lua_settop(L, UPVALUES);
  lua_pushcclosure(L, module_call, UPVALUES);
  return 1;
}

/* set_describe(f): f(modules) gives, for a list of the modules that run, the
   innermost first, PLACES values: the text for errors, the path of the
   innermost in its network, the network; what traces call the two. */
static int set_describe(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_setfield(L, LUA_REGISTRYINDEX, DESCRIBE);
  return 0;
}

void nl_push_module_functions(lua_State *L) {
  lua_pushcfunction(L, new_module_call);
  lua_setfield(L, -2, "new_module_call");
  lua_pushcfunction(L, set_describe);
  lua_setfield(L, -2, "set_describe");
}

/* Adds the modules that run in this thread to the list on top.
   [-0, +0, m] */
static void collect(lua_State *L) {
  lua_Debug ar;
  for (int i = 0; i < MOST_LEVELS && lua_getstack(L, i, &ar); i++) {
    lua_getinfo(L, "f", &ar);
    const int is = lua_tocfunction(L, -1) == module_call;
    lua_pop(L, 1);
    if (is && lua_getlocal(L, &ar, 1))
      lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
}

/* Pushes what the describing function says of the modules that run. Returns
   whether one does; if not, nothing is pushed. [-0, +(0|PLACES), m] */
static int describe(lua_State *L) {
  const int top = lua_gettop(L);
  luaL_checkstack(L, PLACES + 8, NULL);
  if (lua_getfield(L, LUA_REGISTRYINDEX, DESCRIBE) == LUA_TFUNCTION) {
    lua_newtable(L);
    collect(L);
    if (lua_rawlen(L, -1) > 0 && lua_pcall(L, 1, PLACES, 0) == LUA_OK &&
        lua_isstring(L, -1))
      return 1;
  }
  lua_settop(L, top);
  return 0;
}

void nl_set_modules(lua_State *L) {
  if (!describe(L)) return;
  lua_pop(L, 2);
  lua_setfield(L, -4, "network");
  lua_setfield(L, -3, "path");
  lua_setfield(L, -2, "module");
}

int nl_push_place(lua_State *L) {
  if (!describe(L)) return 0;
  for (int i = 0; i < PLACES - 2; i++) lua_remove(L, -3);
  return 2;
}
