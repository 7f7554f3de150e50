/* SPDX-License-Identifier: MIT */
/*
** coroutines.c - coroutine.resume and coroutine.wrap as in Lua's library,
** except that they tell the interrupt handler which thread runs.
*/

#include <lauxlib.h>

#include "repl/host/repl.h"

static int failed(lua_State *L, const char *what) {
  lua_pushstring(L, what);
  return -1;
}

/* Resumes co with the narg values on top of L; gives how many values came
   back on L, or -1 with the error there. */
static int resume(lua_State *L, lua_State *co, int narg) {
  int status, n;
  if (!lua_checkstack(co, narg))
    return failed(L, "too many arguments to resume");
  lua_xmove(L, co, narg);
  lua_State *outer = sh_enterthread(co);
  status = lua_resume(co, L, narg, &n);
  sh_leavethread(outer, L);
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove(co, L, 1);
    return -1;
  }
  if (!lua_checkstack(L, n + 1)) {
    lua_pop(co, n);
    return failed(L, "too many results to resume");
  }
  lua_xmove(co, L, n);
  return n;
}

static int co_resume(lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  int n;
  luaL_argexpected(L, co, 1, "coroutine");
  n = resume(L, co, lua_gettop(L) - 1);
  lua_pushboolean(L, n >= 0);
  if (n < 0) n = 1;
  lua_insert(L, -(n + 1));
  return n + 1;
}

static int wrapped(lua_State *L) {
  lua_State *co = lua_tothread(L, lua_upvalueindex(1));
  int n = resume(L, co, lua_gettop(L)), status;
  if (n >= 0) return n;
  status = lua_status(co);
  if (status != LUA_OK && status != LUA_YIELD) {
    sh_let_close(co);
    lua_resetthread(co); /* closes its variables; may give another error */
    lua_xmove(co, L, 1);
  }
  if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
    luaL_where(L, 1);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  return lua_error(L);
}

static int co_wrap(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  lua_pushcclosure(L, wrapped, 1);
  return 1;
}

void sh_opencoroutines(lua_State *L) {
  static const luaL_Reg list[] = { { "resume", co_resume },
                                   { "wrap", co_wrap },
                                   { NULL, NULL } };
  lua_getglobal(L, "coroutine");
  luaL_setfuncs(L, list, 0);
  lua_pop(L, 1);
}
