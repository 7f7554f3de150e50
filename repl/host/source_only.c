/* SPDX-License-Identifier: MIT */
/*
** source_only.c - makes load, loadfile, dofile and require accept source text
** only: Lua does not verify binary chunks, so one of them could do anything. C
** libraries are not searched in the current directory either.
*/

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "repl/host/repl.h"

/*
** While Lua compiles, the handler of the protected call around it is called
** for errors of a reader and for nesting that is too deep, though load returns
** them: in the program it would make an object of each. So the compiler is
** called in a protected call without one.
*/

/* load or loadfile, upvalue 1, with its arguments. */
static int call_compiler(lua_State *L) {
  const int n = lua_gettop(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  if (lua_pcall(L, n, LUA_MULTRET, 0) != LUA_OK) return lua_error(L);
  return lua_gettop(L);
}

/* Gives the function, or the message, and the status. */
static int compile_file(lua_State *L) {
  const int status = luaL_loadfilex(L, lua_tostring(L, 1), "t");
  lua_pushinteger(L, status);
  return 2;
}

/* As luaL_loadfilex of a text. */
static int load_file(lua_State *L, const char *name) {
  int status;
  lua_pushcfunction(L, compile_file);
  lua_pushstring(L, name);
  status = lua_pcall(L, 1, 2, 0);
  if (status != LUA_OK) return status;
  status = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return status;
}

/* The function it replaces is the upvalue; its mode is argument UPVALUE 2. */
static int textmode(lua_State *L) {
  int at = (int)lua_tointeger(L, lua_upvalueindex(2));
  const char *mode = luaL_optstring(L, at, "t");
  if (at == 3) luaL_checkany(L, 1); /* load() */
  if (strchr(mode, 't') == NULL) {
    lua_pushnil(L);
    lua_pushfstring(L, "mode is '%s', and binary chunks are not loaded", mode);
    return 2;
  }
  if (lua_gettop(L) < at) lua_settop(L, at);
  lua_pushliteral(L, "t");
  lua_replace(L, at);
  return call_compiler(L);
}

static void restrict_mode(lua_State *L, const char *name, int at) {
  lua_getglobal(L, name);
  lua_pushinteger(L, at);
  lua_pushcclosure(L, textmode, 2);
  lua_setglobal(L, name);
}

static int results(lua_State *L, int status, lua_KContext ctx) {
  (void)status, (void)ctx;
  return lua_gettop(L) - 1;
}

static int text_dofile(lua_State *L) {
  const char *name = luaL_optstring(L, 1, NULL);
  lua_settop(L, 1);
  if (load_file(L, name) != LUA_OK) return lua_error(L);
  lua_callk(L, 0, LUA_MULTRET, 0, results);
  return results(L, 0, 0);
}

/* Gives the file of module NAME, or nil and where it was looked for. */
static int findmodule(lua_State *L, const char *name) {
  lua_getfield(L, lua_upvalueindex(1), "searchpath");
  lua_pushstring(L, name);
  lua_getfield(L, lua_upvalueindex(1), "path");
  if (!lua_isstring(L, -1)) luaL_error(L, "'package.path' must be a string");
  lua_call(L, 2, 2);
  return lua_isstring(L, -2);
}

static int searcher(lua_State *L) {
  const char *name = luaL_checkstring(L, 1), *file;
  if (!findmodule(L, name)) return 1;
  lua_pop(L, 1);
  file = lua_tostring(L, -1);
  if (load_file(L, file) != LUA_OK)
    return luaL_error(L, "error loading module '%s' from file '%s':\n\t%s",
                      name, file, lua_tostring(L, -1));
  lua_pushstring(L, file);
  return 2;
}

/* Takes the entry out of the path in field, if the user did not ask for it
   through the environment.  The package table is on top. */
static void drop(lua_State *L, const char *field, const char *entry) {
  char *at;
  lua_getfield(L, -1, field);
  const char *path = lua_tostring(L, -1);
  if (path != NULL && (at = strstr(path, entry)) != NULL) {
    lua_pushlstring(L, path, (size_t)(at - path));
    lua_pushstring(L, at + strlen(entry));
    lua_concat(L, 2);
    lua_setfield(L, -3, field);
  }
  lua_pop(L, 1);
}

static int env_mentions(const char *name, const char *entry) {
  char versioned[32] = "";
  const char *value;
  strcat(strcat(versioned, name), "_5_4");
  if ((value = getenv(versioned)) == NULL) value = getenv(name);
  return value != NULL && strstr(value, entry) != NULL;
}

void sh_open_source_only(lua_State *L) {
  restrict_mode(L, "load", 3);
  restrict_mode(L, "loadfile", 2);
  lua_register(L, "dofile", text_dofile);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  lua_pushvalue(L, -2);
  lua_pushcclosure(L, searcher, 1);
  lua_rawseti(L, -2, 2);
  lua_pop(L, 1);
  if (!env_mentions("LUA_CPATH", "./?")) drop(L, "cpath", ";./?.so");
  lua_pop(L, 1);
}
