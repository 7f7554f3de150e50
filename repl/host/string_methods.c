/* SPDX-License-Identifier: MIT */
/*
** string_methods.c - the modules of the shell call methods of strings. Methods
** that the user's code removed are restored when it has ended; those that it
** added or replaced stay.
*/

#include <lauxlib.h>

#include "repl/host/repl.h"

static const char original; /* its address: the key of {metatable, string} */

void sh_keep_string_methods(lua_State *L) {
  lua_createtable(L, 2, 0);
  lua_pushliteral(L, "");
  lua_getmetatable(L, -1);
  lua_rawseti(L, -3, 1);
  lua_pop(L, 1);
  lua_getglobal(L, "string");
  lua_rawseti(L, -2, 2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &original);
}

/* Adds the fields of the table on top, all functions of strings, to the one
   below it where that has none. */
static void add_missing(lua_State *L) {
  const int from = lua_gettop(L), to = from - 1;
  for (lua_pushnil(L); lua_next(L, from); lua_pop(L, 1)) {
    lua_pushvalue(L, -2);
    if (lua_rawget(L, to) == LUA_TNIL) {
      lua_pushvalue(L, -3);
      lua_pushvalue(L, -3);
      lua_rawset(L, to);
    }
    lua_pop(L, 1);
  }
}

static int find_method(lua_State *L) {
  lua_getfield(L, 1, "find");
  return 1;
}

/* Does a string on top have methods? */
static int has_methods(lua_State *L) {
  lua_pushcfunction(L, find_method);
  lua_pushvalue(L, -2);
  const int has = lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isfunction(L, -1);
  lua_pop(L, 1);
  return has;
}

void sh_restore_string_methods(lua_State *L) {
  luaL_checkstack(L, 10, NULL);
  const int top = lua_gettop(L);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &original);
  lua_rawgeti(L, -1, 2);
  sh_push_kept(L, "string");
  add_missing(L);
  lua_pushliteral(L, "");
  if (!has_methods(L)) {
    lua_rawgeti(L, top + 1, 1);
    lua_pushvalue(L, top + 2);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
  }
  lua_settop(L, top);
}
