/* SPDX-License-Identifier: MIT */
/*
** host.c - the module "nacre.host": what the shell's Lua needs of the
** program.
*/
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>

#include "../bindings/nacre.h"
#include "repl.h"

/* guard(handler, f, ...): xpcall that Ctrl-C can end.  Gives true and the
   results, or false, the error and whether it was Ctrl-C. */
static int guard(lua_State *L) {
  luaL_checkany(L, 2);
  int status = sh_guard(L, lua_gettop(L) - 2, LUA_MULTRET, 1);
  lua_pushboolean(L, status == LUA_OK);
  lua_replace(L, 1);
  if (status == LUA_OK) return lua_gettop(L);
  lua_pushboolean(L, sh_wasinterrupted());
  return 3;
}

/* quiet(): to be said first in a handler given to guard */
static int setquiet(lua_State *L) {
  (void)L;
  sh_quiet(1);
  return 0;
}

static int columns(lua_State *L) {
  lua_pushinteger(L, sh_columns());
  return 1;
}

/* color("stdout" or "stderr") */
static int color(lua_State *L) {
  static const char *const names[] = { "stdin", "stdout", "stderr", NULL };
  lua_pushboolean(L, sh_color(luaL_checkoption(L, 1, "stdout", names)));
  return 1;
}

static int utf8(lua_State *L) {
  lua_pushboolean(L, sh_utf8());
  return 1;
}

static int terminal(lua_State *L) {
  static const char *const names[] = { "stdin", "stdout", "stderr", NULL };
  lua_pushboolean(L, isatty(luaL_checkoption(L, 1, "stdout", names)));
  return 1;
}

/* Seconds, for differences. */
static int clocktime(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  lua_pushnumber(L, (lua_Number)t.tv_sec + 1e-9 * (lua_Number)t.tv_nsec);
  return 1;
}

/* doctor(): prints what the program finds here */
static int doctor(lua_State *L) {
  (void)L;
  sh_doctor();
  return 0;
}

/* suggest(word, list): the closest name of the list, or nil */
static int suggest(lua_State *L) {
  const char *word = luaL_checkstring(L, 1);
  lua_Integer i, n = luaL_len(L, 2);
  const char **list = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *list, 0);
  lua_Integer k = 0;
  for (i = 1; i <= n; i++)
    if (lua_rawgeti(L, 2, i) == LUA_TSTRING) {
      list[k++] = lua_tostring(L, -1); /* kept alive by the table */
      lua_pop(L, 1);
    } else
      lua_pop(L, 1);
  list[k] = NULL;
  lua_pushstring(L, nl_nearest(word, list));
  return 1;
}

static int history(lua_State *L) {
  int i;
  lua_createtable(L, sh_history.n, 0);
  for (i = 0; i < sh_history.n; i++) {
    lua_pushstring(L, sh_history.text[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

int sh_openhost(lua_State *L) {
  static const luaL_Reg list[] = {
    { "guard", guard },     { "columns", columns },   { "color", color },
    { "utf8", utf8 },       { "terminal", terminal }, { "clock", clocktime },
    { "suggest", suggest }, { "history", history },   { "quiet", setquiet },
    { "doctor", doctor },   { "synchronize", nl_synchronize },
    { NULL, NULL }
  };
  luaL_newlib(L, list);
  lua_pushliteral(L, SH_VERSION);
  lua_setfield(L, -2, "version");
  return 1;
}
