/* SPDX-License-Identifier: MIT */
/*
** user_methods.c - nacre.Tensor: adds methods to tensors.
**
**   function nacre.Tensor:double_sum() return 2 * self:sum() end
**
** nacre.Tensor is a proxy for the table of methods, which t[key] searches
** first. It cannot replace a method of the library.
*/
#include <ctype.h>
#include <string.h>

#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/lua_library.h"
#include "bindings/tensors/fields.h"

#define METHODS lua_upvalueindex(1) /* methods that were used or added */
#define ADDED lua_upvalueindex(2)   /* set of the names that were added */

static int is_name(const char *s, size_t n) {
  if (n == 0 || isdigit((unsigned char)*s) || strlen(s) != n) return 0;
  for (; *s; s++)
    if (!isalnum((unsigned char)*s) && *s != '_') return 0;
  return 1;
}

/* True if the program added the method whose name is at index `name'.
   [-0, +0, -] */
static int was_added(lua_State *L, int name) {
  lua_pushvalue(L, name);
  const int was = lua_rawget(L, ADDED) != LUA_TNIL;
  lua_pop(L, 1);
  return was;
}

/* Pushes the method whose name is at index `name', or nil. [-0, +1, e] */
static void push_method(lua_State *L, int name) {
  lua_pushvalue(L, name);
  if (lua_rawget(L, METHODS) != LUA_TNIL) return;
  lua_pop(L, 1);
  const char *text = lua_tostring(L, name);
  if (nl_pushfunction(L, text, NL_METHOD) ||
      nl_pushcomposed(L, text, NL_METHOD))
    return;
  lua_pushnil(L);
}

/* __newindex: nacre.Tensor.name = f; nil removes a method that was added. */
static int methods_newindex(lua_State *L) {
  size_t n;
  const char *name;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 3);
  name = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &n) : NULL;
  if (name == NULL || !is_name(name, n))
    return nl_error(
        L, "nacre.Tensor",
        "a method needs a name, as in nacre.Tensor.mean_square = f");
  if (!lua_isfunction(L, 3) && !lua_isnil(L, 3))
    return nl_error(L, "nacre.Tensor",
                    "the method %s must be a function, not a %s", name,
                    nl_typename(L, 3));
  if (nl_isfield(name))
    return nl_error(L, "nacre.Tensor", "%s is a field of every tensor", name);
  if (!was_added(L, 2)) {
    push_method(L, 2);
    if (!lua_isnil(L, -1))
      return nl_error(L, "nacre.Tensor", "tensors already have a method %s",
                      name);
    lua_pop(L, 1);
  }
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 3);
  lua_rawset(L, METHODS);
  lua_rawset(L, ADDED); /* ADDED[name] = f */
  return 0;
}

/* __index */
static int methods_index(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 2);
  if (lua_type(L, 2) != LUA_TSTRING) return 0;
  push_method(L, 2);
  return 1;
}

/* __pairs */
static int methods_pairs(lua_State *L) {
  lua_pushvalue(L, METHODS);
  nl_makeall(L, NL_METHOD);
  lua_getglobal(L, "next");
  lua_insert(L, -2);
  return 2;
}

/* __call: raises an error, because PyTorch's torch.Tensor(...) creates
   tensors. */
static int methods_call(lua_State *L) {
  nc_fail(
      NC_EVALUE,
      "nacre.Tensor holds the methods of tensors, it does not create tensors");
  nc_hint("nacre.zeros(2, 3), or nacre.tensor{1, 2}");
  return nl_check(L, NC_EVALUE);
}

static int methods_text(lua_State *L) {
  lua_pushliteral(L, "nacre.Tensor");
  return 1;
}

/* Replaces the table of methods on top by the proxy. [-1, +1, m] */
void nl_push_user_methods(lua_State *L) {
  static const luaL_Reg events[] = {
    { "__newindex", methods_newindex }, { "__index", methods_index },
    { "__pairs", methods_pairs },       { "__call", methods_call },
    { "__tostring", methods_text },     { NULL, NULL }
  };
  const int methods = lua_gettop(L);
  luaL_checkstack(L, 8, NULL);
  lua_newtable(L);
  luaL_newlibtable(L, events);
  lua_pushvalue(L, methods);
  lua_newtable(L);
  luaL_setfuncs(L, events, 2);
  lua_setmetatable(L, -2);
}
