/* SPDX-License-Identifier: MIT */
/* grad_mode.c - turns the recording of operations on and off. */
#include "bindings/binding.h"

#define RECORDING "nacre.recording"

/* __close */
static int restore_mode(lua_State *L) {
  nl_context(L)->no_grad = *(int *)luaL_checkudata(L, 1, RECORDING);
  return 0;
}

/* Calls fn with recording off or on, then restores the previous mode.
   [-?, +n, e] */
static int call_with_mode(lua_State *L, const char *name, int no_grad) {
  static const luaL_Reg events[] = { { "__close", restore_mode },
                                     { NULL, NULL } };
  int *before;
  if (!lua_isfunction(L, 1) &&
      (nl_totensor(L, 1) || luaL_getmetafield(L, 1, "__call") == LUA_TNIL)) {
    nc_fail(NC_EVALUE, "takes a function, not %s%s",
            lua_isnone(L, 1) ? "" : "a ",
            lua_isnone(L, 1) ? "nothing" : nl_typename(L, 1));
    nc_hint("nacre.%s(function() ... end)", name);
    return nl_check_op(L, NC_EVALUE, name);
  }
  if (!lua_isfunction(L, 1)) lua_pop(L, 1);
  before = lua_newuserdatauv(L, sizeof *before, 0);
  *before = nl_context(L)->no_grad;
  nl_set_metatable(L, RECORDING, events);
  lua_insert(L, 1);
  nl_context(L)->no_grad = no_grad;
  return nl_call_restoring(L, lua_gettop(L) - 2);
}

static int no_grad(lua_State *L) {
  return call_with_mode(L, "no_grad", 1);
}

static int enable_grad(lua_State *L) {
  return call_with_mode(L, "enable_grad", 0);
}

static int set_grad_enabled(lua_State *L) {
  luaL_checktype(L, 1, LUA_TBOOLEAN);
  nl_context(L)->no_grad = !lua_toboolean(L, 1);
  return 0;
}

static int is_grad_enabled(lua_State *L) {
  lua_pushboolean(L, nl_context(L)->no_grad == 0);
  return 1;
}

const Bound nl_grad_mode[] = {
  { "no_grad", no_grad, "fn:any, ... -> results",
    "calls fn, and records nothing meanwhile", 1 },
  { "enable_grad", enable_grad, "fn:any, ... -> results",
    "calls fn, and records meanwhile", 1 },
  { "set_grad_enabled", set_grad_enabled, "on:bool",
    "sets whether operations are recorded from now on", 1 },
  { "is_grad_enabled", is_grad_enabled, "-> boolean",
    "are operations recorded?", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
