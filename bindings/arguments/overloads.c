/* SPDX-License-Identifier: MIT */
/*
** overloads.c - argument forms that differ from the signature of the operation
** and that PyTorch accepts: t:where(condition, other), where(condition), norm
** with p = "fro" or "nuc", atleast_1d of several tensors, view(dtype).
** dispatch.c and registry.c call these functions.
*/

#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/lua_library.h"
#include "bindings/state.h"
#include "core/operators.h"

/* t:where(condition, other) is where(condition, t, other). If the first
   argument is not a boolean tensor, t is the condition. [-0, +1, e] */
int nl_callwhere(lua_State *L) {
  const Tensor *t = nl_totensor(L, 2);
  if (t && t->dtype == DT_b8) {
    lua_pushvalue(L, 1);
    lua_copy(L, 2, 1);
    lua_replace(L, 2);
  }
  return nl_call_pointwise(L);
}

/* where(condition): the positions of true elements, as nonzero(condition,
   {as_tuple=true}). [-1, +1, e] */
int nl_where_condition(lua_State *L) {
  nl_pushfunction(L, "nonzero", NL_FUNCTION);
  lua_insert(L, 1);
  lua_createtable(L, 0, 1);
  nl_set_boolean(L, "as_tuple", 1);
  lua_call(L, 2, 1);
  return 1;
}

/* Moves the option p from the table on top to index 2. The original table is
   not changed; a copy without p replaces it, if anything else is in it.
   [-1, +(1|2), e] */
static void move_p_first(lua_State *L) {
  const int options = lua_gettop(L);
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, options);) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, options + 1);
  }
  lua_pushliteral(L, "p");
  lua_rawget(L, options);
  lua_insert(L, 2);
  lua_pushnil(L);
  lua_setfield(L, -2, "p");
  lua_remove(L, options + 1);
  lua_pushnil(L);
  if (lua_next(L, -2)) lua_pop(L, 2);
  else lua_pop(L, 1); /* p was the only option */
}

/* norm(t, "fro") becomes norm(t, 2); norm(t, "nuc") calls linalg.matrix_norm.
   Returns 1 if it pushed the result, 0 if the general path must run.
   [-0, +(0|1), e] */
static int norm_by_name(lua_State *L) {
  const int top = lua_gettop(L);
  const char *p;
  if (top > 1 && lua_istable(L, top)) {
    nl_plain_options(L, top, nc_operator_signature(OPERATOR_norm));
    lua_pushliteral(L, "p");
    const int named = lua_rawget(L, top) == LUA_TSTRING;
    lua_pop(L, 1);
    if (named && top > 2 && !lua_isnil(L, 2))
      return nl_error(L, "norm", "p is given twice");
    if (named && top > 2) lua_remove(L, 2);
    if (named) move_p_first(L);
  }
  if (lua_type(L, 2) != LUA_TSTRING) return 0;
  p = lua_tostring(L, 2);
  if (strcmp(p, "fro") == 0) {
    lua_pushinteger(L, 2);
    lua_replace(L, 2);
    return 0;
  }
  if (strcmp(p, "nuc") != 0)
    return nl_error(L, "norm",
                    "p must be a number, \"fro\" or \"nuc\", not '%s'", p);
  nl_pushcomposed(L, "linalg", NL_FUNCTION);
  lua_getfield(L, -1, "matrix_norm");
  lua_insert(L, 1);
  lua_pop(L, 1);
  lua_call(L, lua_gettop(L) - 1, 1);
  return 1;
}

/* f(a, b) or f{a, b}: pushes the list of the results of f for each tensor.
   Returns 0 for a call with a single tensor. [-0, +(0|1), e] */
static int call_for_each(lua_State *L, Operator f) {
  const int list = lua_gettop(L) + 1;
  nl_plain_table(L, 1, 0);
  if (lua_istable(L, 1)) lua_pushvalue(L, 1);
  else if (list > 2 && nl_totensor(L, 2)) {
    lua_createtable(L, list, 0);
    for (int i = 1; i < list; i++) {
      lua_pushvalue(L, i);
      lua_rawseti(L, list, i);
    }
  } else return 0;
  const lua_Integer n = (lua_Integer)lua_rawlen(L, list);
  lua_createtable(L, (int)n, 0);
  for (lua_Integer i = 1; i <= n; i++) {
    nl_closure(L, nl_call_operator, (int)f);
    if (lua_rawgeti(L, list, i) == LUA_TTABLE)
      return nl_error(L, nc_operators[f].name,
                      "element %d of the list is a table, not a tensor",
                      (int)i);
    lua_call(L, 1, 1);
    lua_rawseti(L, list + 1, i);
  }
  return 1;
}

/* t:view("int32") or t:view{dtype = "int32"}: the bytes as elements of another
   dtype. Returns 0 for a shape. [-0, +(0|1), e] */
static int view_dtype(lua_State *L) {
  if (lua_gettop(L) != 2) return 0;
  if (lua_istable(L, 2)) {
    nl_plain_table(L, 2, 0);
    lua_pushliteral(L, "dtype");
    if (lua_rawget(L, 2) != LUA_TSTRING) return lua_pop(L, 1), 0;
    lua_replace(L, 2);
  }
  if (lua_type(L, 2) != LUA_TSTRING) return 0;
  Call c = { .op = OPERATOR__view_dtype };
  for (int i = 0; i < NC_MAXARG; i++) c.arg[i].dtype = DT_NONE;
  c.arg[0].t = nl_checktensor(L, 1);
  c.arg[0].present = c.arg[1].present = 1;
  c.arg[1].dtype = nl_dtype_named(L, "view", lua_tostring(L, 2));
  Tensor **y = nl_newbox(L);
  nl_check_as(L, nc_call(&c), "view");
  *y = c.out[0];
  nl_result(L, -1);
  return 1;
}

int nl_call_overload(lua_State *L, Operator f) {
  switch (f) {
    case OPERATOR_view: return view_dtype(L);
    case OPERATOR_norm: return norm_by_name(L);
    case OPERATOR_atleast_1d:
    case OPERATOR_atleast_2d:
    case OPERATOR_atleast_3d: return call_for_each(L, f);
    default: return 0;
  }
}
