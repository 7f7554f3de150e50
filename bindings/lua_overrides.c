/* SPDX-License-Identifier: MIT */
/*
** lua_overrides.c - wraps functions of Lua: so that they handle tensors and
** error objects ipairs, debug.traceback, collectgarbage; os.setlocale, so that
** numbers keep their point. nl_extend_lua installs the wrappers; upvalue 1 of
** each is the original function.
*/

#include "bindings/binding.h"
#include "bindings/lua_library.h"
#include "bindings/state.h"

/* ipairs(t) would raise an index error after the last element. */
static int ipairs(lua_State *L) {
  luaL_checkany(L, 1);
  if (nl_totensor(L, 1)) {
    nc_fail(NC_EVALUE, "ipairs does not iterate over tensors");
    nc_hint("for i, row in pairs(t) do ... end");
    return nl_check_op(L, NC_EVALUE, "ipairs");
  }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

/* debug.traceback returns a message that is not a string unchanged. An error
   object of the library has a text, so the traceback is appended to it, as in
   xpcall(f, debug.traceback). */
static int traceback(lua_State *L) {
  const int other = lua_isthread(L, 1);
  lua_State *of = other ? lua_tothread(L, 1) : L;
  const int i = other + 1;
  const int level = (int)luaL_optinteger(L, i + 1, of == L ? 1 : 0);
  lua_settop(L, i);
  if (nl_iserror(L, i)) luaL_tolstring(L, i, NULL);
  else if (!lua_isstring(L, i) && !lua_isnoneornil(L, i)) return 1;
  luaL_traceback(L, of, lua_tostring(L, -1), level);
  return 1;
}

/* A full collection also finds cycles through functions that graphs hold. */
static int collectgarbage(lua_State *L) {
  static const char *const options[] = {
    "collect",   "stop",         "restart",     "count",    "step",
    "isrunning", "generational", "incremental", "setpause", "setstepmul",
    NULL
  };
  const int full = luaL_checkoption(L, 1, "collect", options) == 0;
  const int weakened = full && nl_weaken_cycles(L);
  int status;
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  if (weakened) nl_anchor_cycles(L);
  return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

static int keeps_point; /* is this the program's own process? */

void nl_keep_point(void) {
  if (keeps_point) nc_keep_point();
}

/* The other parts of a locale are set for this thread, too, by keep_point. */
static int setlocale_(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  nl_keep_point();
  return lua_gettop(L);
}

/* Replaces the function table[name] by f, with the original as upvalue.
   [-0, +0, m] */
static void wrap(lua_State *L, int table, const char *name, lua_CFunction f) {
  if (lua_getfield(L, table, name) == LUA_TFUNCTION) {
    lua_pushcclosure(L, f, 1);
    lua_setfield(L, table, name);
  } else lua_pop(L, 1);
}

static void open_overrides(lua_State *L) {
  lua_pushglobaltable(L);
  wrap(L, lua_gettop(L), "ipairs", ipairs);
  wrap(L, lua_gettop(L), "collectgarbage", collectgarbage);
  if (lua_getfield(L, -1, "debug") == LUA_TTABLE)
    wrap(L, lua_gettop(L), "traceback", traceback);
  lua_pop(L, 1);
  if (lua_getfield(L, -1, "os") == LUA_TTABLE)
    wrap(L, lua_gettop(L), "setlocale", setlocale_);
  lua_pop(L, 2);
}

void nl_extend_lua(lua_State *L) {
  keeps_point = 1;
  lua_gc(L, LUA_GCGEN, 0, 0); /* see gc_pacing.c */
  open_overrides(L);
  nl_open_string_fields(L);
  nl_open_embedded(L);
}
