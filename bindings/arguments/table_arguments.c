/* SPDX-License-Identifier: MIT */
/*
** table_arguments.c - Lua tables as lists and as named arguments.
**
** The binding reads tables with raw accesses, which are fast. A table with
** metamethods (a proxy, an object of a class, a read-only table) is first
** copied through them to a plain table. This file also has the metatable of
** result lists.
*/

#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/lua_library.h"
#include "bindings/tensors/fields.h"

#define LIST "nacre.list"

/* True if the metatable on top is that of sizes or of result lists.
   [-0, +0, -] */
static int is_own_metatable(lua_State *L) {
  int is;
  luaL_getmetatable(L, "nacre.size");
  is = lua_rawequal(L, -1, -2);
  lua_pop(L, 1);
  if (is) return 1;
  luaL_getmetatable(L, LIST);
  is = lua_rawequal(L, -1, -2);
  lua_pop(L, 1);
  return is;
}

/* The metatables of sizes and result lists do not count: their __index serves
   keys that are not elements. */
int nl_has_metamethods(lua_State *L, int i) {
  static const char *const events[] = { "__index", "__len", "__pairs" };
  int has = 0;
  if (!lua_istable(L, i) || !lua_getmetatable(L, i)) return 0;
  if (!is_own_metatable(L))
    for (size_t k = 0; !has && k < sizeof events / sizeof *events; k++) {
      lua_pushstring(L, events[k]);
      has = lua_rawget(L, -2) != LUA_TNIL;
      lua_pop(L, 1);
    }
  lua_pop(L, 1);
  return has;
}

/* Copies the elements 1 to #t; returns #t. [-0, +?, e] */
static lua_Integer copylist(lua_State *L, int t, int copy) {
  const lua_Integer n = luaL_len(L, t);
  if (n <= 0 && lua_geti(L, t, 1) != LUA_TNIL)
    nl_error(L, "", "a table has elements through __index, but no __len");
  for (lua_Integer k = 1; k <= n; k++) {
    if (nc_interrupted) nl_check(L, nc_fail(NC_EINTR, "interrupted"));
    if (lua_geti(L, t, k) == LUA_TNIL)
      nl_error(L, "", "a list of %lld elements has no element %lld",
               (long long)n, (long long)k);
    lua_rawseti(L, copy, k);
  }
  return n;
}

/* Copies the pair on top, unless its key is in 1 to n, which copylist copied.
   [-0, +0, m] */
static void copypair(lua_State *L, int copy, lua_Integer n) {
  if (lua_isinteger(L, -2) && lua_tointeger(L, -2) >= 1 &&
      lua_tointeger(L, -2) <= n)
    return;
  lua_pushvalue(L, -2);
  lua_pushvalue(L, -2);
  lua_rawset(L, copy);
}

/* Copies what pairs(t) iterates over. [-0, +0, e] */
static void copypairs(lua_State *L, int t, int copy, lua_Integer n) {
  if (luaL_getmetafield(L, t, "__pairs") == LUA_TNIL) {
    for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) copypair(L, copy, n);
    return;
  }
  lua_pushvalue(L, t);
  lua_call(L, 1, 3); /* the iterator, the state, the initial key */
  for (;;) {
    if (nc_interrupted) nl_check(L, nc_fail(NC_EINTR, "interrupted"));
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    lua_call(L, 2, 2);
    if (lua_isnil(L, -2)) break;
    copypair(L, copy, n);
    lua_pop(L, 1);
    lua_remove(L, -2); /* replaces the old key by the new one */
  }
  lua_pop(L, 5);
}

/* Copies the fields of t named in the list at index `names' that only __index
   provides. [-0, +0, e] */
static void copynames(lua_State *L, int t, int copy, int names) {
  for (lua_Integer k = 1; lua_rawgeti(L, names, k) == LUA_TSTRING; k++) {
    lua_pushvalue(L, -1);
    if (lua_rawget(L, copy) == LUA_TNIL) {
      lua_pop(L, 1);
      lua_pushvalue(L, -1);
      lua_gettable(L, t);
      lua_rawset(L, copy);
    } else lua_pop(L, 2);
  }
  lua_pop(L, 1);
}

int nl_plain_table(lua_State *L, int i, int names) {
  if (!nl_has_metamethods(L, i)) return 0;
  i = lua_absindex(L, i);
  luaL_checkstack(L, 12, NULL);
  lua_newtable(L);
  const int copy = lua_gettop(L);
  const lua_Integer n = copylist(L, i, copy);
  lua_settop(L, copy);
  copypairs(L, i, copy, n);
  lua_settop(L, copy);
  if (n <= 0 && names) copynames(L, i, copy, names);
  lua_settop(L, copy);
  lua_replace(L, i);
  return 1;
}

void nl_plain_options(lua_State *L, int i, const Signature *s) {
  if (!nl_has_metamethods(L, i)) return;
  i = lua_absindex(L, i);
  luaL_checkstack(L, 4, NULL);
  lua_createtable(L, s->n + 1, 0);
  for (int k = 0; k <= s->n; k++) {
    lua_pushstring(L, k < s->n ? s->param[k].name : "out");
    lua_rawseti(L, -2, k + 1);
  }
  nl_plain_table(L, i, lua_gettop(L));
  lua_pop(L, 1);
}

/* [-0, +0, -] */
int nl_ispacked(lua_State *L, int64_t n) {
  return lua_type(L, -2) == LUA_TSTRING && lua_isinteger(L, -1) &&
         lua_tointeger(L, -1) == n && strcmp(lua_tostring(L, -2), "n") == 0;
}

/* lua_next starts at the last element: the keys that follow it are not elements
   of the list. */
const char *nl_find_bad_key(lua_State *L, int i, const char **name) {
  const int64_t n = (int64_t)lua_rawlen(L, i);
  *name = NULL;
  i = lua_absindex(L, i);
  luaL_checkstack(L, 4, NULL);
  if (n > 0) lua_pushinteger(L, n);
  else lua_pushnil(L);
  for (; lua_next(L, i); lua_pop(L, 1)) {
    if (nl_ispacked(L, n)) continue;
    if (lua_type(L, -2) == LUA_TSTRING && lua_isinteger(L, -1) &&
        lua_tointeger(L, -1) > n && strcmp(lua_tostring(L, -2), "n") == 0)
      return lua_pushfstring(L,
                             "a list of table.pack with n = %I has no "
                             "element %I",
                             (LUAI_UACINT)lua_tointeger(L, -1),
                             (LUAI_UACINT)n + 1);
    if (lua_type(L, -2) == LUA_TSTRING)
      return *name = lua_tostring(L, -2); /* the string stays on the stack */
    if (lua_isinteger(L, -2) && lua_tointeger(L, -2) > 0)
      return lua_pushfstring(L, "a list has no element %I, but an element %I",
                             (LUAI_UACINT)n + 1,
                             (LUAI_UACINT)lua_tointeger(L, -2));
    if (lua_isnumber(L, -2))
      return lua_pushfstring(L,
                             "a list has the key %s, but its elements are "
                             "counted from 1",
                             luaL_tolstring(L, -2, NULL));
    return lua_pushfstring(L, "a list has a %s as a key", nl_typename(L, -2));
  }
  return NULL;
}

void nl_checklist(lua_State *L, const char *op, int i) {
  const char *name, *bad_key = nl_find_bad_key(L, i, &name);
  if (name) {
    nc_fail(NC_EVALUE, "a table holds either a list or named arguments, not "
                       "both");
    nc_error_op(op);
    nc_hint("%s({...}, {%s=...})", op, name);
    nl_check(L, NC_EVALUE);
  }
  if (bad_key) nl_error(L, op, "%s", bad_key);
}

int nl_isoptions(lua_State *L, int i, const Signature *s) {
  int is, named = 0;
  if (!lua_istable(L, i) || lua_rawlen(L, i) > 0) return 0;
  i = lua_absindex(L, i);
  luaL_checkstack(L, 3, NULL);
  lua_pushnil(L);
  if (!lua_next(L, i)) return 0;
  is = lua_type(L, -2) == LUA_TSTRING;
  for (int k = 0; s && k < s->n; k++)
    named |= strcmp(s->param[k].name, "n") == 0;
  if (!named && nl_ispacked(L, 0)) { /* table.pack() */
    lua_pop(L, 1);
    is = lua_next(L, i) && lua_type(L, -2) == LUA_TSTRING;
    if (!is) return 0;
  }
  lua_pop(L, 2);
  return is;
}

/*
** Lists of results: in a, b = t:split(2) the variable a receives the list.
** Using a list as a tensor raises an error that says so.
*/
static int fail_list_as_tensor(lua_State *L) {
  const int i = lua_istable(L, 1) ? 1 : 2;
  luaL_checktype(L, i, LUA_TTABLE);
  nc_fail(NC_EVALUE, "expected a tensor, not a list of %d tensors",
          (int)lua_rawlen(L, i));
  nc_hint("a, b = table.unpack(list)");
  return nl_check(L, NC_EVALUE);
}

/* __index of a result list: list.shape and list:sum() raise that error. */
static int list_index(lua_State *L) {
  const char *key;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 2);
  if (lua_type(L, 2) != LUA_TSTRING) return 0;
  key = lua_tostring(L, 2);
  if (nl_isfield(key) || nl_pushfunction(L, key, NL_METHOD) ||
      nl_pushcomposed(L, key, NL_METHOD))
    return fail_list_as_tensor(L);
  return 0;
}

void nl_setlist(lua_State *L) {
  static const char *const events[] = { "__add",  "__sub",  "__mul",  "__div",
                                        "__mod",  "__pow",  "__idiv", "__unm",
                                        "__band", "__bor",  "__bxor", "__shl",
                                        "__shr",  "__bnot", "__lt",   "__le" };
  luaL_checkstack(L, 4, NULL);
  if (luaL_newmetatable(L, LIST)) {
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
      lua_pushcfunction(L, fail_list_as_tensor);
      lua_setfield(L, -2, events[i]);
    }
    lua_pushcfunction(L, list_index);
    lua_setfield(L, -2, "__index");
    lua_pushnil(L); /* luaL_typeerror then says "table" */
    lua_setfield(L, -2, "__name");
  }
  lua_setmetatable(L, -2);
}
