/* SPDX-License-Identifier: MIT */
/*
** lua_helpers.c - statuses that become errors in the name of an operation,
** metatables and fields of tables.
*/

#include <string.h>

#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/state.h"

int nl_check_as(lua_State *L, int status, const char *op) {
  if (status != NC_OK) nc_error_op(op);
  return nl_check(L, status);
}

int nl_check_op(lua_State *L, int status, const char *op) {
  if (status != NC_OK && nc_lasterror()->op[0] == '\0') nc_error_op(op);
  return nl_check(L, status);
}

int nl_check_self(lua_State *L, int status, const char *op) {
  if (status != NC_OK) {
    const Arg self = { .t = nl_checktensor(L, 1) };
    nc_error_call(status, op, &self, 1);
  }
  return nl_check_op(L, status, op);
}

void nl_pushtensor(lua_State *L, Tensor *t) {
  Tensor **box = nl_newbox(L);
  nc_retain(*box = t);
  nl_result(L, -1);
}

void nl_set_metatable(lua_State *L, const char *kind, const luaL_Reg *events) {
  if (luaL_newmetatable(L, kind)) luaL_setfuncs(L, events, 0);
  lua_setmetatable(L, -2);
}

void nl_set_integer(lua_State *L, const char *key, lua_Integer v) {
  lua_pushinteger(L, v);
  lua_setfield(L, -2, key);
}

void nl_set_number(lua_State *L, const char *key, lua_Number v) {
  lua_pushnumber(L, v);
  lua_setfield(L, -2, key);
}

void nl_set_boolean(lua_State *L, const char *key, int v) {
  lua_pushboolean(L, v);
  lua_setfield(L, -2, key);
}

void nl_set_string(lua_State *L, const char *key, const char *v) {
  lua_pushstring(L, v);
  lua_setfield(L, -2, key);
}

int nl_call_restoring(lua_State *L, int nargs) {
  const int in_coroutine = !lua_pushthread(L);
  int status;
  lua_pop(L, 1);
  if (!in_coroutine) {
    lua_toclose(L, 1);
    lua_call(L, nargs, LUA_MULTRET);
    return lua_gettop(L) - 1;
  }
  status = lua_pcall(L, nargs, LUA_MULTRET, 0);
  if (luaL_callmeta(L, 1, "__close")) lua_pop(L, 1);
  return status == LUA_OK ? lua_gettop(L) - 1 : lua_error(L);
}

int nl_concat(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  luaL_tolstring(L, 2, NULL);
  lua_concat(L, 2);
  return 1;
}

void nl_push_bound_table(lua_State *L, const Bound *list) {
  lua_newtable(L);
  for (const Bound *b = list; b->name; b++) {
    nl_pushbound(L, b);
    lua_setfield(L, -2, b->name);
  }
}
