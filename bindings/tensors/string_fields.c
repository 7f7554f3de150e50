/* SPDX-License-Identifier: MIT */
/*
** string_fields.c - fields of strings: x.device.type, x.dtype.itemsize,
** nacre.version.cuda.
**
** Devices, dtypes and the version are strings in Lua, so that they compare,
** concatenate and serve as table keys as strings do. The attributes that
** PyTorch has for them are added to the __index metamethod of strings, which
** looks in the table `string' first. Every other string still has nil there.
** Programs expect that getmetatable("").__index is the table `string' and that
** they can set fields of that metatable: getmetatable gives a view of it.
*/
#include <limits.h>
#include <string.h>

#include "bindings/binding.h"
#include "core/accelerator.h"

/* The ordinal in "cuda:3"; -1 for "cuda", "cpu", "meta"; -2 for what is not
   a device name. Does not check that the device exists. */
static int device_ordinal(const char *name) {
  const size_t kind = strcspn(name, ":");
  const char *digits = name + kind + 1;
  long n = 0;
  if (!(kind == 4 && memcmp(name, "cuda", 4) == 0) &&
      !(kind == 3 && memcmp(name, "cpu", 3) == 0) &&
      strcmp(name, NC_METANAME) != 0)
    return -2;
  if (name[kind] == '\0') return -1;
  if (*digits == '\0') return -2;
  for (; *digits >= '0' && *digits <= '9' && n < INT_MAX / 10; digits++)
    n = 10 * n + (*digits - '0');
  return *digits == '\0' ? (int)n : -2;
}

/* Pushes the field `key' of a device name. Returns 0, with nothing pushed, if
   there is no such field. The two functions after it do the same.
   [-0, +(0|1), e] */
static int push_device_field(lua_State *L, const char *name, const char *key) {
  const int n = device_ordinal(name);
  if (n == -2) return 0;
  if (strcmp(key, "type") == 0) lua_pushlstring(L, name, strcspn(name, ":"));
  else if (strcmp(key, "index") == 0 && n >= 0) lua_pushinteger(L, n);
  else return 0;
  return 1;
}

static int push_dtype_field(lua_State *L, const char *name, const char *key) {
  const DType t = nc_dtypefrom(name);
  if (t == DT_NONE) return 0;
  if (strcmp(key, "itemsize") == 0) lua_pushinteger(L, nc_dtypesize(t));
  else if (strcmp(key, "is_floating_point") == 0)
    lua_pushboolean(L, nc_is_real(t));
  else if (strcmp(key, "is_signed") == 0)
    lua_pushboolean(L, t != DT_b8 && nc_dtypekind(t) != 'u');
  else return 0;
  return 1;
}

/* The version of the CUDA runtime, such as "13.0"; nil if no CUDA device is
   usable. */
static int push_version_field(lua_State *L, const char *name, const char *key) {
  const Accelerator *a;
  int64_t v;
  if (strcmp(name, NC_VERSION) != 0 || strcmp(key, "cuda") != 0 ||
      nc_accelerator(&a) != NC_OK || a->get("runtime_version", &v) != NC_OK)
    return 0;
  lua_pushfstring(L, "%d.%d", (int)(v / 1000), (int)(v % 1000 / 10));
  return 1;
}

/* __index of strings; upvalue 1 is the table `string'. */
static int string_index(lua_State *L) {
  const char *text, *key;
  size_t n;
  lua_pushvalue(L, 2); /* a direct call may pass more than two arguments */
  if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  if (lua_type(L, 1) != LUA_TSTRING || lua_type(L, 2) != LUA_TSTRING) return 0;
  lua_pushvalue(L, 2); /* the table `string' may have a metatable */
  if (lua_gettable(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  text = lua_tolstring(L, 1, &n);
  if (strlen(text) != n) return 0;
  key = lua_tostring(L, 2);
  return push_device_field(L, text, key) || push_dtype_field(L, text, key) ||
         push_version_field(L, text, key);
}

/* The upvalues of the functions of the view: the metatable of strings, the
   table `string', string_index. */
enum { REAL = 1, STRING, INDEX };

/* Is what stands at i the name of the field? */
static int is_field(lua_State *L, int i, const char *name) {
  return lua_type(L, i) == LUA_TSTRING && strcmp(lua_tostring(L, i), name) == 0;
}

/* Replaces the value of the field at `key' on top by what a program sees. */
static void show_field(lua_State *L, int key) {
  const int hidden = is_field(L, key, "__metatable");
  if (!hidden && !lua_rawequal(L, -1, lua_upvalueindex(INDEX))) return;
  lua_pop(L, 1);
  if (hidden) lua_pushnil(L);
  else lua_pushvalue(L, lua_upvalueindex(STRING));
}

static int view_get(lua_State *L) {
  lua_settop(L, 2);
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(REAL));
  show_field(L, 2);
  return 1;
}

static int view_set(lua_State *L) {
  lua_settop(L, 3);
  if (is_field(L, 2, "__index") &&
      lua_rawequal(L, 3, lua_upvalueindex(STRING))) {
    lua_pushvalue(L, lua_upvalueindex(INDEX));
    lua_replace(L, 3);
  }
  lua_rawset(L, lua_upvalueindex(REAL));
  return 0;
}

/* next of the view */
static int view_next(lua_State *L) {
  lua_settop(L, 2);
  while (lua_next(L, lua_upvalueindex(REAL))) {
    show_field(L, 2);
    if (!lua_isnil(L, -1)) return 2;
    lua_pop(L, 1);
  }
  return lua_pushnil(L), 1;
}

static int view_pairs(lua_State *L) {
  for (int i = REAL; i <= INDEX; i++) lua_pushvalue(L, lua_upvalueindex(i));
  lua_pushcclosure(L, view_next, INDEX);
  lua_pushvalue(L, 1);
  return 2;
}

/* Makes getmetatable give a view of the metatable at `real', where the table
   `string' and string_index are the two values on top. [-0, +0, m] */
static void set_view(lua_State *L, int real) {
  static const luaL_Reg events[] = { { "__index", view_get },
                                     { "__newindex", view_set },
                                     { "__pairs", view_pairs },
                                     { NULL, NULL } };
  const int string = lua_gettop(L) - 1;
  lua_newtable(L);
  luaL_newlibtable(L, events);
  lua_pushvalue(L, real);
  lua_pushvalue(L, string);
  lua_pushvalue(L, string + 1);
  luaL_setfuncs(L, events, INDEX);
  lua_setmetatable(L, -2);
  lua_setfield(L, real, "__metatable");
}

/* Does nothing if the program has replaced __index of strings. [-0, +0, m] */
void nl_open_string_fields(lua_State *L) {
  const int top = lua_gettop(L);
  lua_pushliteral(L, "");
  if (lua_getmetatable(L, -1) && lua_getglobal(L, "string") == LUA_TTABLE &&
      lua_getfield(L, -2, "__index") == LUA_TTABLE && lua_rawequal(L, -1, -2)) {
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, string_index, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, top + 2, "__index");
    set_view(L, top + 2);
  }
  lua_settop(L, top);
}
