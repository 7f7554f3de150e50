/* SPDX-License-Identifier: MIT */
/*
** composed.c - finds the operations that are written in Lua (bindings/lib).
**
** Lookups of names ask here for a name that nothing in C defines. The Lua files
** are loaded at the first such request, so a program that does not use them
** does not pay for them; those of modules (bindings/lib/modules) at the first
** request of a name that the others do not define.
*/

#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/lua_library.h"
#include "bindings/text/text_functions.h"

#define COMPOSED "nacre.composed"

/* Returns the text at index i with the placeholder of operand j for each
   "{role}". [-0, +n, e] */
static const char *template(lua_State *L, int i, int top) {
  const char *text = lua_tostring(L, i);
  for (int j = 0; text && 4 + 2 * j < top && j < NC_MAXARG; j++) {
    const char *role = luaL_checkstring(L, 4 + 2 * j);
    const int given = nl_totensor(L, 5 + 2 * j) != NULL;
    text = luaL_gsub(L, text, lua_pushfstring(L, "{%s}", role),
                     given ? nc_operandtext(j) : role);
  }
  return text;
}

/* Takes the cause out of the table {cause=, name=, got=, hint=} at index i, and
   leaves the hint there. [-0, +0, e] */
static Cause read_cause(lua_State *L, int i) {
  Cause c = { NC_NOCAUSE, NULL, NULL };
  if (!lua_istable(L, i)) return c;
  for (int k = 0; k < 3; k++)
    lua_getfield(L, i, (const char *[]){ "cause", "name", "got" }[k]);
  c.kind = luaL_checkoption(L, -3, NULL, nc_causenames);
  c.name = lua_tostring(L, -2);
  c.got = lua_tostring(L, -1);
  lua_getfield(L, i, "hint");
  lua_replace(L, i);
  return c;
}

/* fail(op, text, hint, role, tensor, ...): raises an error like those of the
   core; each pair (role, tensor) becomes an operand of it. In the texts {role}
   stands for that operand. Instead of the hint there may be a table, see
   read_cause. [-0, +0, v] */
static int fail(lua_State *L) {
  const int top = lua_gettop(L);
  luaL_checkstack(L, 4 * NC_MAXARG, NULL);
  luaL_checkstring(L, 2);
  lua_settop(L, top < 3 ? 3 : top);
  const Cause cause = read_cause(L, 3);
  const char *text = template(L, 2, top), *hint = template(L, 3, top);
  nc_fail(NC_EVALUE, "%s", text);
  nc_cause(cause);
  nc_error_op(luaL_checkstring(L, 1));
  if (hint) nc_hint("%s", hint);
  for (int i = 4; i < top; i += 2)
    if (nl_totensor(L, i + 1))
      nc_error_operandat(i / 2 - 2, luaL_checkstring(L, i),
                         nl_totensor(L, i + 1));
  return nl_check(L, NC_EVALUE);
}

void nl_pushfail(lua_State *L) {
  lua_pushcfunction(L, fail);
}

/* all.require(name, ...): runs each of these embedded files with the table
   `all' (upvalue 1), unless it has run (upvalue 2). */
static int require_parts(lua_State *L) {
  const int n = lua_gettop(L);
  for (int i = 1; i <= n; i++) {
    const char *name = luaL_checkstring(L, i);
    const int known = lua_getfield(L, lua_upvalueindex(2), name) != LUA_TNIL;
    lua_settop(L, n);
    if (known) continue;
    nl_pushembedded(L, name);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_call(L, 1, 0);
    lua_pushboolean(L, 1);
    lua_setfield(L, lua_upvalueindex(2), name);
  }
  return 0;
}

/* Runs the embedded files with the table `all' at this index, and makes the
   tables of functions strict. [-0, +0, e] */
static void load_parts(lua_State *L, int all, const Embedded part[]) {
  for (; part->name; part++) {
    lua_getfield(L, all, "require");
    lua_pushstring(L, part->name);
    lua_call(L, 1, 0);
  }
  lua_getfield(L, all, "functions");
  const int functions = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, functions); lua_settop(L, functions + 1))
    if (lua_istable(L, -1)) nl_make_strict(L, lua_tostring(L, -2));
  lua_settop(L, functions - 1);
}

/* Pushes the table {functions=, methods=, info=} that composed.lua fills; loads
   the Lua files first if necessary. [-0, +1, e] */
static void push_library(lua_State *L) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, COMPOSED) == LUA_TTABLE) return;
  lua_pop(L, 1);
  luaL_checkstack(L, 8, NULL);
  lua_newtable(L);
  luaL_setfuncs(L, nl_argument_functions, 0);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, COMPOSED);
  nl_pushembedded(L, "nacre.composed");
  lua_pushvalue(L, -2);
  lua_pushcfunction(L, fail);
  lua_call(L, 2, 0);
  lua_pushvalue(L, -1);
  lua_newtable(L);
  lua_pushcclosure(L, require_parts, 2);
  lua_setfield(L, -2, "require");
  load_parts(L, lua_gettop(L), nl_functions);
}

/* Sets in the table on top distributed, the functions that are in C, and
   blocks, text and events, what those in Lua are made of. [-0, +0, m] */
static void set_internals(lua_State *L) {
  static const Bound *const lists[] = { nl_process_groups, nl_collectives };
  lua_newtable(L);
  for (int i = 0; i < 2; i++)
    for (const Bound *b = lists[i]; b->name; b++) {
      nl_pushbound(L, b);
      lua_setfield(L, -2, b->name);
    }
  lua_setfield(L, -2, "distributed");
  lua_newtable(L);
  luaL_setfuncs(L, nl_distributed_internals, 0);
  lua_setfield(L, -2, "blocks");
  lua_newtable(L);
  luaL_setfuncs(L, nl_text_functions, 0);
  lua_setfield(L, -2, "text");
  lua_newtable(L);
  luaL_setfuncs(L, nl_event_functions, 0);
  lua_setfield(L, -2, "events");
}

int nl_load_modules(lua_State *L) {
  const int top = lua_gettop(L);
  push_library(L);
  const int load = lua_getfield(L, top + 1, "Module") == LUA_TNIL;
  lua_settop(L, top + 1);
  if (load) {
    nl_push_module_functions(L);
    set_internals(L);
    load_parts(L, top + 1, nl_modules);
    lua_pushboolean(L, 1); /* classes that come now are the user's */
    lua_setfield(L, top + 1, "is_loaded");
  }
  lua_settop(L, top);
  return load;
}

int nl_push_module_function(lua_State *L, const char *name) {
  nl_load_modules(L);
  push_library(L);
  const int type = lua_getfield(L, -1, name);
  lua_remove(L, -2);
  return type;
}

/* Pushes all[table][name]. Returns 0, with nothing pushed, if there is no such
   field. [-0, +(0|1), e] */
static int push_entry(lua_State *L, const char *table, const char *name) {
  const int top = lua_gettop(L);
  if (name[0] == '_') return 0;
  push_library(L);
  lua_getfield(L, -1, table);
  lua_getfield(L, -1, name);
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
  if (!lua_isnil(L, -1)) return 1;
  lua_settop(L, top);
  return 0;
}

int nl_pushcomposed(lua_State *L, const char *name, int where) {
  if (where == NL_METHOD) return push_entry(L, "methods", name);
  return push_entry(L, "functions", name) ||
         (nl_load_modules(L) && push_entry(L, "functions", name));
}

int nl_composedinfo(lua_State *L, int i) {
  const int top = lua_gettop(L);
  if (lua_type(L, i) == LUA_TSTRING)
    return push_entry(L, "info", lua_tostring(L, i)) ||
           (nl_load_modules(L) && push_entry(L, "info", lua_tostring(L, i)));
  push_library(L);
  lua_getfield(L, -1, "info");
  lua_pushvalue(L, i);
  lua_gettable(L, -2);
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
  return !lua_isnil(L, -1);
}

int nl_composednames(lua_State *L, int n, int all) {
  const int list = lua_gettop(L);
  nl_load_modules(L);
  push_library(L);
  lua_getfield(L, -1, "info");
  for (lua_pushnil(L); lua_next(L, list + 2); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING) continue;
    if (!all && strchr(lua_tostring(L, -2), '.')) continue;
    lua_pushvalue(L, -2);
    lua_rawseti(L, list, ++n);
  }
  lua_settop(L, list);
  return n;
}

void nl_makecomposed(lua_State *L, int where) {
  const int t = lua_gettop(L);
  luaL_checkstack(L, 6, NULL);
  push_library(L);
  lua_getfield(L, -1, where == NL_METHOD ? "methods" : "functions");
  for (lua_pushnil(L); lua_next(L, t + 2);) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, t);
  }
  lua_settop(L, t);
}
