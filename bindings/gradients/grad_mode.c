/* SPDX-License-Identifier: MIT */
/*
** grad_mode.c - calls of functions in another mode: the recording of operations
** on or off, operands cast to a lower dtype (autocast).
*/
#include <string.h>

#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/state.h"
#include "core/trace.h"

#define MODE "nacre.mode"

typedef struct Mode {
  int no_grad;
  DType autocast[2];
} Mode;

static void set_mode(lua_State *L, const Mode *m) {
  nl_context(L)->no_grad = m->no_grad;
  nl_select(L);
  if (memcmp(nc_context->autocast, m->autocast, sizeof m->autocast) != 0)
    nc_set_autocast(m->autocast);
}

/* __close */
static int restore_mode(lua_State *L) {
  set_mode(L, luaL_checkudata(L, 1, MODE));
  return 0;
}

/* Calls fn, at index 1, in the mode m, then restores the previous one.
   [-?, +n, e] */
static int call_with_mode(lua_State *L, const char *name, Mode m) {
  static const luaL_Reg events[] = { { "__close", restore_mode },
                                     { NULL, NULL } };
  Mode *before;
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
  before->no_grad = nl_context(L)->no_grad;
  memcpy(before->autocast, nl_context(L)->autocast, sizeof before->autocast);
  nl_set_metatable(L, MODE, events);
  lua_insert(L, 1);
  set_mode(L, &m);
  return nl_call_restoring(L, lua_gettop(L) - 2);
}

/* The mode of now, but with the recording as said. */
static Mode recording(lua_State *L, int no_grad) {
  Mode m = { .no_grad = no_grad };
  memcpy(m.autocast, nl_context(L)->autocast, sizeof m.autocast);
  return m;
}

static int no_grad(lua_State *L) {
  return call_with_mode(L, "no_grad", recording(L, 1));
}

static int inference_mode(lua_State *L) {
  return call_with_mode(L, "inference_mode", recording(L, 1));
}

static int enable_grad(lua_State *L) {
  return call_with_mode(L, "enable_grad", recording(L, 0));
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

/* _autocast(accelerator, dtype, fn, ...): calls fn with operands on the CPU or
   on other devices lowered to this dtype, or with "none" as they are. */
static int call_autocast(lua_State *L) {
  static const char *const names[] = { "none", "float16", "bfloat16", NULL };
  static const DType types[] = { DT_NONE, DT_f16, DT_bf16 };
  const int kind = lua_toboolean(L, 1);
  Mode m = recording(L, nl_context(L)->no_grad);
  m.autocast[kind] = types[luaL_checkoption(L, 2, NULL, names)];
  lua_remove(L, 1);
  lua_remove(L, 1);
  return call_with_mode(L, "autocast", m);
}

/* _autocast_dtype(accelerator): the dtype, or nil outside of a region */
static int autocast_dtype(lua_State *L) {
  const DType type = nl_context(L)->autocast[lua_toboolean(L, 1)];
  if (type == DT_NONE) lua_pushnil(L);
  else lua_pushstring(L, nc_dtypename(type));
  return 1;
}

const Bound nl_grad_mode[] = {
  { "no_grad", no_grad, "fn:any, ... -> results",
    "calls fn, during which operations are not recorded", 1 },
  { "inference_mode", inference_mode, "fn:any, ... -> results",
    "calls fn, during which operations are not recorded; the same as "
    "no_grad",
    1 },
  { "enable_grad", enable_grad, "fn:any, ... -> results",
    "calls fn, during which operations are recorded", 1 },
  { "set_grad_enabled", set_grad_enabled, "on:bool",
    "sets whether operations are recorded from now on", 1 },
  { "is_grad_enabled", is_grad_enabled, "-> boolean",
    "are operations recorded?", 1 },
  { "_autocast", call_autocast,
    "accelerator:bool, dtype:text, fn:any, ... -> results", "", 1 },
  { "_autocast_dtype", autocast_dtype, "accelerator:bool -> text", "", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
