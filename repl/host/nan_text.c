/* SPDX-License-Identifier: MIT */
/*
** nan_text.c - writes nan without a sign. C's printf shows the sign, which
** depends on the machine for 0/0: tostring, print, %s in string.format and
** io.write say "nan". The operator .. is not changed.
*/

#include <lauxlib.h>

#include "repl/host/repl.h"

static int notanumber(lua_State *L, int i) {
  lua_Number x = lua_type(L, i) == LUA_TNUMBER ? lua_tonumber(L, i) : 0;
  return x != x;
}

/* The __tostring of numbers. */
static int numbertext(lua_State *L) {
  luaL_checknumber(L, 1);
  lua_settop(L, 1);
  if (notanumber(L, 1)) lua_pushliteral(L, "nan");
  else lua_tostring(L, 1);
  return 1;
}

/* io.write or file:write, which is the upvalue, in its own frame */
static int writing(lua_State *L) {
  int i, n = lua_gettop(L);
  for (i = 1; i <= n; i++)
    if (notanumber(L, i)) {
      lua_pushliteral(L, "nan");
      lua_replace(L, i);
    }
  return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

void sh_open_nan_text(lua_State *L) {
  lua_pushinteger(L, 0);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, numbertext);
  lua_setfield(L, -2, "__tostring");
  lua_setmetatable(L, -2);
  lua_getglobal(L, "io");
  sh_wrapfield(L, "write", writing);
  luaL_getmetatable(L, LUA_FILEHANDLE);
  lua_getfield(L, -1, "__index");
  sh_wrapfield(L, "write", writing);
  lua_pop(L, 4);
}
