/* SPDX-License-Identifier: MIT */
/*
** samples.c - levels of vmap for Lua: functions of nacre.autograd that the
** files of lib/transforms call (core/batch.h).
*/
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/state.h"
#include "bindings/tensors/fields.h"
#include "core/batch.h"

Tensor *nl_value_of(Tensor *t) {
  Tensor *value;
  int depth;
  while (nc_batch_open(&value, &depth, t)) t = value;
  return t;
}

int nl_refuse_sample(lua_State *L, const char *op) {
  nc_fail(NC_EVALUE, "the tensor is one sample of vmap");
  nc_hint("nacre.func.grad(f) differentiates inside of vmap");
  return nl_check_op(L, NC_EVALUE, op);
}

/* _enter(n, randomness): opens a level of n samples; gives its depth. */
static int enter(lua_State *L) {
  static const char *const draws[] = { "error", "same", "different", NULL };
  int depth;
  nl_select(L);
  nl_check_op(L,
              nc_batch_enter(&depth, luaL_checkinteger(L, 1),
                             (BatchDraws)luaL_checkoption(L, 2, NULL, draws)),
              "vmap");
  lua_pushinteger(L, depth);
  return 1;
}

/* _leave(): the innermost level ends. */
static int leave(lua_State *L) {
  nl_select(L);
  nc_batch_leave();
  return 0;
}

/* _levels(): the numbers of samples of the open levels, from the outermost. */
static int levels(lua_State *L) {
  nl_select(L);
  lua_newtable(L);
  for (const BatchLevel *l = nc_context->batch; l; l = l->outer) {
    lua_pushinteger(L, l->n);
    lua_rawseti(L, -2, l->depth);
  }
  return 1;
}

/* _sample(value, depth): one sample of the level. */
static int sample(lua_State *L) {
  Tensor **y;
  nl_select(L);
  y = nl_newbox(L);
  nl_check_op(
      L, nc_batch_wrap(y, nl_checktensor(L, 1), (int)luaL_checkinteger(L, 2)),
      "vmap");
  return 1;
}

/* _open(t): the value of all samples, and the depth of the level (0: it has
   ended); nothing for another tensor. */
static int open_sample(lua_State *L) {
  Tensor *value;
  int depth;
  nl_select(L);
  if (!nc_batch_open(&value, &depth, nl_checktensor(L, 1))) return 0;
  nl_pushtensor(L, value);
  lua_pushinteger(L, depth);
  return 2;
}

const luaL_Reg nl_batch_internals[] = {
  { "_enter", enter },      { "_leave", leave },   { "_levels", levels },
  { "_open", open_sample }, { "_sample", sample }, { NULL, NULL },
};
