/* SPDX-License-Identifier: MIT */
/*
** embedded.c - the Lua files of the binding (lib), which are stored in it.
**
** nl_functions and nl_modules are the parts of what composed.c puts together,
** nl_embedded what C runs by name. nl_display are modules: they require one
** another, and the shell requires them, but a program that embeds the library
** cannot, because its `package' stays as it is.
*/

#include <string.h>

#include "bindings/binding.h"
#include "bindings/lua_library.h"

/* plain_format(format, x): as string.format of one number, whatever the locale
   is. */
static int plain_format(lua_State *L) {
  char text[400]; /* "%.1f" of the largest has 311 */
  nc_format(text, sizeof text, luaL_checkstring(L, 1), luaL_checknumber(L, 2));
  lua_pushstring(L, text);
  return 1;
}

/* The globals of the Lua files: what they use of Lua, nacre, which is no global
   of every program, a require of their own and plain_format. [-0, +1, m] */
static void push_environment(lua_State *L) {
  static const char key;
  static const char *const names[] = {
    "assert",       "debug",    "error",  "getmetatable", "io",       "ipairs",
    "load",         "math",     "next",   "os",           "package",  "pairs",
    "pcall",        "rawequal", "rawget", "rawlen",       "rawset",   "select",
    "setmetatable", "string",   "table",  "tonumber",     "tostring", "type",
    "utf8",         NULL
  };
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  for (int i = 0; names[i]; i++) {
    lua_getglobal(L, names[i]);
    lua_setfield(L, -2, names[i]);
  }
  nl_pushlibrary(L);
  lua_setfield(L, -2, "nacre");
  lua_pushcfunction(L, nl_require);
  lua_setfield(L, -2, "require");
  lua_pushcfunction(L, plain_format);
  lua_setfield(L, -2, "plain_format");
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
}

/* The file of the list, or NULL. */
static const Embedded *find(const Embedded *e, const char *name) {
  while (e->name && strcmp(e->name, name) != 0) e++;
  return e->name ? e : NULL;
}

/* Pushes the file as a function. [-0, +1, e] */
static void push_file(lua_State *L, const Embedded *e) {
  lua_pushfstring(L, "=%s", e->name);
  if (luaL_loadbufferx(L, (const char *)e->text, e->size, lua_tostring(L, -1),
                       "t") != LUA_OK)
    lua_error(L);
  lua_remove(L, -2);
  push_environment(L);
  lua_setupvalue(L, -2, 1);
}

void nl_open_embedded(lua_State *L) {
  push_environment(L);
  lua_pop(L, 1);
}

void nl_pushembedded(lua_State *L, const char *name) {
  const Embedded *e = find(nl_embedded, name);
  if (e == NULL) e = find(nl_functions, name);
  if (e == NULL) e = find(nl_modules, name);
  if (e == NULL) luaL_error(L, "no embedded file '%s'", name);
  push_file(L, e);
}

void nl_push_result_of(lua_State *L, const char *name,
                       const luaL_Reg functions[]) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, functions) != LUA_TNIL) return;
  lua_pop(L, 1);
  nl_pushembedded(L, name);
  lua_newtable(L);
  luaL_setfuncs(L, functions, 0);
  nl_pushfail(L);
  lua_setfield(L, -2, "fail");
  lua_call(L, 1, 1);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, functions);
}

int nl_is_module(const char *name) {
  return find(nl_display, name) != NULL;
}

int nl_require(lua_State *L) {
  static const char loaded; /* of the registry: the modules by their names */
  const char *name = luaL_checkstring(L, 1);
  const Embedded *e = find(nl_display, name);
  if (e == NULL) return luaL_error(L, "no embedded module '%s'", name);
  lua_settop(L, 1);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &loaded) != LUA_TTABLE) {
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &loaded);
    lua_replace(L, 2);
  }
  if (lua_getfield(L, 2, name) != LUA_TNIL) return 1;
  push_file(L, e);
  lua_call(L, 0, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, 2, name);
  return 1;
}
