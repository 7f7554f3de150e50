/* SPDX-License-Identifier: MIT */
/*
** strict_names.c - raises an error, with the nearest name, for a field that
** nacre or a subtable such as nacre.linalg does not have. Without it {dtype =
** nacre.flaot64} would pass nil, which is an omitted argument. nacre.c and
** composed.c install it.
*/

#include <string.h>

#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/lua_library.h"
#include "core/suggest.h"

/* The part of a full name after "path.", or NULL; the whole name if path is
   empty. */
static const char *after_path(const char *path, const char *name) {
  const size_t n = strlen(path);
  if (n == 0) return name;
  return strncmp(name, path, n) == 0 && name[n] == '.' ? name + n + 1 : NULL;
}

/* True if the full name, such as linalg.svd, has this last part and belongs to
   another subtable than path. */
static int is_in_other_table(const char *full, const char *path,
                             const char *name) {
  const char *dot = strrchr(full, '.');
  if (dot == NULL) return *path != '\0' && strcmp(full, name) == 0;
  return strcmp(dot + 1, name) == 0;
}

/* True if `name' is a method of tensors and not a function of nacre.
   [-0, +0, e] */
static int is_method(lua_State *L, const char *name) {
  const int top = lua_gettop(L);
  const int found =
      !nl_pushname(L, name) && (nl_pushfunction(L, name, NL_METHOD) ||
                                nl_pushcomposed(L, name, NL_METHOD));
  lua_settop(L, top);
  return found;
}

/* Returns the NULL-terminated names of the subtable at index 1, for
   nc_nearname, and sets *there to the full name of a function `name' in another
   subtable, or NULL. The strings and the array stay on the stack.
   [-0, +n, e] */
static const char *const *names_of_table(lua_State *L, const char *path,
                                         const char *name, const char **there) {
  const char **list;
  int n = 0, all;
  *there = NULL;
  lua_pushcfunction(L, nl_names);
  lua_pushboolean(L, 1);
  lua_call(L, 1, 1);
  all = (int)lua_rawlen(L, -1);
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) all++;
  list = lua_newuserdatauv(L, (size_t)(all + 1) * sizeof *list, 0);
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
    if (lua_type(L, -2) == LUA_TSTRING) list[n++] = lua_tostring(L, -2);
  for (lua_Integer i = 1; lua_rawgeti(L, -2, i) == LUA_TSTRING; i++) {
    const char *full = lua_tostring(L, -1), *own = after_path(path, full);
    if (own && strcmp(own, name) != 0) list[n++] = own;
    if (is_in_other_table(full, path, name) &&
        (*there == NULL || strchr(full, '.') == NULL))
      *there = full;
    lua_pop(L, 1);
  }
  list[n] = NULL;
  return list;
}

int nl_unknown_name(lua_State *L, const char *path, const char *name) {
  const char *const *list, *near, *dot = *path ? "." : "";
  luaL_checktype(L, 1, LUA_TTABLE);
  if (name[0] == '_') return 0; /* private names are nil */
  list = names_of_table(L, path, name, &near);
  if (is_method(L, name)) {
    nc_fail(NC_EVALUE, "nacre%s%s has no '%s'", dot, path, name);
    nc_hint("t:%s(...)", name);
  } else if (near) {
    nc_fail(NC_EVALUE, "nacre%s%s has no '%s', did you mean 'nacre.%s'?", dot,
            path, name, near);
  } else if ((near = nc_nearname(name, list)) != NULL) {
    const int own = *path == '\0' && is_method(L, near);
    nc_fail(NC_EVALUE, "nacre%s%s has no '%s', did you mean '%s%s%s%s'?", dot,
            path, name, own ? "t:" : "nacre.", path, dot, near);
  } else nc_fail(NC_EVALUE, "nacre%s%s has no '%s'", dot, path, name);
  nc_cause((Cause){ NC_CAUSE_function,
                    lua_pushfstring(L, "%s%s%s", path, dot, name), NULL });
  return nl_check(L, NC_EVALUE);
}

/* __index of a subtable; upvalue 1 is its path. */
static int strict_index(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return 0;
  if (nl_load_modules(L)) { /* they add to the subtables */
    lua_gettable(L, 1);
    return 1;
  }
  return nl_unknown_name(L, lua_tostring(L, lua_upvalueindex(1)),
                         lua_tostring(L, 2));
}

void nl_make_strict(lua_State *L, const char *path) {
  const int t = lua_gettop(L);
  luaL_checkstack(L, 6, NULL);
  for (lua_pushnil(L); lua_next(L, t); lua_settop(L, t + 1)) {
    if (!lua_istable(L, -1) || lua_getmetatable(L, -1)) continue;
    lua_pushfstring(L, "%s.%s", path, lua_tostring(L, -2));
    lua_insert(L, -2);
    nl_make_strict(L, lua_tostring(L, -2));
  }
  lua_createtable(L, 0, 1);
  lua_pushstring(L, path);
  lua_pushcclosure(L, strict_index, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, t);
}
