/* SPDX-License-Identifier: MIT */
/*
** embedded_modules.c - the shell's Lua modules and the pages of the reference
** are stored in the binary. A searcher finds modules by name, also those
** of the binding that show tensors; a module is compiled when it is first
** required.
*/

#include <string.h>

#include <lauxlib.h>

#include "bindings/nacre.h"
#include "core/transport.h"
#include "repl/host/repl.h"

static const char environment; /* its address: the key in the registry */

/* The modules have globals of their own, those that are there now: a user may
   call a variable `type' or `table'. What comes later they see in _G. Libraries
   in which they set nothing are copies, for a user may empty them. */

/* In the table on top. [-0, +0, m] */
static void copy_library(lua_State *L, const char *name) {
  lua_newtable(L);
  lua_getfield(L, -2, name);
  for (lua_pushnil(L); lua_next(L, -2);) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -5);
  }
  lua_pop(L, 1);
  lua_setfield(L, -2, name);
}

void sh_push_kept(lua_State *L, const char *name) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &environment);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
}

void sh_keep_globals(lua_State *L) {
  static const char *const libraries[] = { "string", "table", "math", "utf8" };
  lua_newtable(L);
  lua_pushglobaltable(L);
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -5);
  }
  lua_createtable(L, 0, 2);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "__index");
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "__newindex");
  lua_setmetatable(L, -3);
  lua_pop(L, 1);
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
    copy_library(L, libraries[i]);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &environment);
  sh_keep_string_methods(L);
}

static int searcher(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  const Embedded *e;
  if (nl_is_module(name)) return lua_pushcfunction(L, nl_require), 1;
  for (e = sh_embedded; e->name != NULL; e++) {
    if (strcmp(e->name, name) != 0) continue;
    /* "=nacre.shell": how error messages and tracebacks know our frames */
    lua_pushfstring(L, "=%s", name);
    if (luaL_loadbufferx(L, (const char *)e->text, e->size, lua_tostring(L, -1),
                         "t") != LUA_OK)
      return lua_error(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &environment) == LUA_TTABLE)
      lua_setupvalue(L, -2, 1);
    else lua_pop(L, 1);
    lua_pushliteral(L, ":embedded:");
    return 2;
  }
  lua_pushfstring(L, "no embedded module '%s'", name);
  return 1;
}

/* Pushes a list of {name=, text=} of the files. [-0, +1, m] */
static int push_files(lua_State *L, const Embedded *e) {
  lua_Integer n = 0;
  lua_newtable(L);
  for (; e->name != NULL; e++) {
    lua_createtable(L, 0, 2);
    lua_pushstring(L, e->name);
    lua_setfield(L, -2, "name");
    lua_pushlstring(L, (const char *)e->text, e->size);
    lua_setfield(L, -2, "text");
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* host.reference_pages(): the sources of the reference */
int sh_pages(lua_State *L) {
  return push_files(L, sh_reference);
}

/* host.tour(): the session that --tour shows */
int sh_tour_session(lua_State *L) {
  lua_pushlstring(L, (const char *)sh_tour->text, sh_tour->size);
  return 1;
}

/* host.mpi_sources(): the sources of the transport over MPI, by their paths */
int sh_mpi_files(lua_State *L) {
  return push_files(L, sh_mpi_sources);
}

/* host.plugin_folder(): where plug-ins of the user are looked for; or nil */
int sh_plugin_folder(lua_State *L) {
  char path[4096];
  lua_pushstring(L, nc_plugin_folder(path, sizeof path) ? path : NULL);
  return 1;
}

/* The searcher comes second, after that of package.preload: a file of the same
   name on the path must not replace a module of the program. */
void sh_open_embedded_modules(lua_State *L) {
  lua_Integer i;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, sh_openhost);
  lua_setfield(L, -2, "nacre.host");
  lua_pushcfunction(L, sh_openprocess);
  lua_setfield(L, -2, "nacre.process");
  lua_pushcfunction(L, sh_openkernel);
  lua_setfield(L, -2, "nacre.kernel_host");
  lua_pushcfunction(L, sh_openmachine);
  lua_setfield(L, -2, "nacre.machine");
  lua_pushcfunction(L, sh_open_rank_job);
  lua_setfield(L, -2, "nacre.rank_job");
  lua_pushcfunction(L, sh_openlex);
  lua_setfield(L, -2, "nacre.lex");
  lua_pop(L, 1);
  lua_getfield(L, -1, "searchers");
  for (i = luaL_len(L, -1); i >= 2; i--) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushcfunction(L, searcher);
  lua_rawseti(L, -2, 2);
  lua_pop(L, 2);
}

void sh_pushmember(lua_State *L, const char *module, const char *name) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &environment) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_pushglobaltable(L);
  }
  lua_getfield(L, -1, "require");
  lua_remove(L, -2);
  lua_pushstring(L, module);
  lua_call(L, 1, 1);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
}

/* Calls the function of the module that the upvalues name. */
static int lazy(lua_State *L) {
  sh_pushmember(L, lua_tostring(L, lua_upvalueindex(1)),
                lua_tostring(L, lua_upvalueindex(2)));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

void sh_pushlazy(lua_State *L, const char *module, const char *name) {
  lua_pushstring(L, module);
  lua_pushstring(L, name);
  lua_pushcclosure(L, lazy, 2);
}

void sh_wrapfield(lua_State *L, const char *field, lua_CFunction f) {
  lua_getfield(L, -1, field);
  lua_pushcclosure(L, f, 1);
  lua_setfield(L, -2, field);
}

int sh_callwrapped(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}
