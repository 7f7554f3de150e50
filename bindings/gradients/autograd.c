/* SPDX-License-Identifier: MIT */
/*
** autograd.c - the fields and methods of tensors for gradients, and the table
** nacre.autograd, which autograd.lua fills. lua_backward.c has backward, hooks
** and custom functions, grad_mode.c turns recording on and off.
*/
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/lua_library.h"
#include "bindings/state.h"
#include "bindings/tensors/fields.h"
#include "core/autograd.h"
#include "core/batch.h"
#include "core/fusion.h"

#define FUNCTION "nacre.grad_fn"

static int requires_grad_(lua_State *L) {
  Args a;
  nl_args(L, &a);
  if (nc_is_sample(a.arg[0].t)) return nl_refuse_sample(L, "requires_grad_");
  nl_try_self(L, "requires_grad_",
              nc_set_requires_grad(a.arg[0].t, (int)a.arg[1].s.i));
  lua_settop(L, 1);
  return 1;
}

static int retain_grad(lua_State *L) {
  nl_try_self(L, "retain_grad", nc_retaingrad(nl_checktensor(L, 1)));
  return 0;
}

static int push_detached(lua_State *L, Tensor *t, const char *op) {
  Tensor **y = nl_newbox(L);
  nl_try_self(L, op, nc_detach(y, t));
  return 1;
}

static int detach(lua_State *L) {
  return push_detached(L, nl_checktensor(L, 1), "detach");
}

static int detach_(lua_State *L) {
  if (nc_is_sample(nl_checktensor(L, 1))) return nl_refuse_sample(L, "detach_");
  nl_try_self(L, "detach_", nc_detach_inplace(nl_checktensor(L, 1)));
  lua_settop(L, 1);
  return 1;
}

/* __tostring of grad_fn. The name of an internal operation loses its "_". */
static int grad_fn_text(lua_State *L) {
  const char *name;
  luaL_checkudata(L, 1, FUNCTION);
  lua_getiuservalue(L, 1, 1);
  name = lua_tostring(L, -1);
  lua_pushfstring(L, "<%s>", name[0] == '_' ? name + 1 : name);
  return 1;
}

static int grad_fn_equal(lua_State *L) {
  const uintptr_t *a = luaL_testudata(L, 1, FUNCTION);
  const uintptr_t *b = luaL_testudata(L, 2, FUNCTION);
  lua_pushboolean(L, a && b && *a == *b);
  return 1;
}

/* Pushes t.grad_fn, a userdata that prints as <mul>, or nil. [-0, +1, e] */
static int push_grad_fn(lua_State *L, Tensor *t) {
  static const luaL_Reg events[] = { { "__tostring", grad_fn_text },
                                     { "__eq", grad_fn_equal },
                                     { NULL, NULL } };
  const char *name;
  uintptr_t *id;
  nl_check(L, nc_gradname(&name, t));
  if (name == NULL) {
    lua_pushnil(L);
    return 1;
  }
  id = lua_newuserdatauv(L, sizeof *id, 1);
  *id = nc_gradnode(t);
  lua_pushstring(L, name);
  lua_setiuservalue(L, -2, 1);
  nl_set_metatable(L, FUNCTION, events);
  return 1;
}

int nl_gradfield(lua_State *L, Tensor *t, const char *key) {
  Tensor *g;
  int yes;
  nl_select(L);
  if (strcmp(key, "grad") == 0) {
    if ((g = nc_grad(t)) != NULL) nl_pushtensor(L, g);
    else lua_pushnil(L);
  } else if (strcmp(key, "requires_grad") == 0) {
    nl_check(L, nc_get_requires_grad(&yes, nl_value_of(t)));
    lua_pushboolean(L, yes);
  } else if (strcmp(key, "is_leaf") == 0) {
    nl_check(L, nc_isleaf(&yes, t));
    lua_pushboolean(L, yes);
  } else if (strcmp(key, "grad_fn") == 0) {
    push_grad_fn(L, t);
  } else if (strcmp(key, "data") == 0) {
    return push_detached(L, t, key);
  } else return 0;
  nc_fusion_refuse("it reads what the graph knows about a tensor");
  return 1;
}

int nl_setgradfield(lua_State *L, const char *key) {
  Tensor *t = nl_checktensor(L, 1);
  if (strcmp(key, "requires_grad") == 0) {
    const int type = lua_type(L, 3);
    if (type != LUA_TBOOLEAN)
      return nl_error(L, "", "requires_grad must be true or false, not %s%s",
                      type == LUA_TNUMBER || type == LUA_TNIL ? "" : "a ",
                      type == LUA_TNUMBER ? lua_tostring(L, 3)
                                          : nl_typename(L, 3));
    nl_try_self(L, key, nc_set_requires_grad(t, lua_toboolean(L, 3)));
    return 1;
  }
  if (strcmp(key, "grad") == 0) {
    Tensor *g = nl_totensor(L, 3);
    if (g == NULL && !lua_isnil(L, 3))
      return nl_error(L, "grad", "a gradient is a tensor or nil, not a %s",
                      nl_typename(L, 3));
    nl_try_self(L, key, nc_setgrad(t, g));
    return 1;
  }
  if (strcmp(key, "data") == 0) return nl_setdata(L);
  if (strcmp(key, "is_leaf") == 0 || strcmp(key, "grad_fn") == 0)
    return nl_error(L, "", "%s cannot be set", key);
  return 0;
}

/*
** nacre.autograd: autograd.lua defines the functions whose C function is NULL
*/
#define CHECK                                        \
  "fn:fn, inputs:any, eps:num=1e-6, atol:num=1e-5, " \
  "rtol:num=1e-3, raise:bool=true -> boolean"

const Bound nl_autograd_functions[] = {
  { "grad", NULL,
    "outputs:several, inputs:several, "
    "grad_outputs:gradients=nil, retain_graph:bool=nil, "
    "create_graph:bool=false, only_inputs:bool=true, allow_unused:bool=false, "
    "is_grads_batched:bool=false, *, materialize_grads:bool=false -> tensors",
    "the gradients of outputs with respect to inputs, which keep theirs; "
    "nil for an unused input with allow_unused=true, zeros with "
    "materialize_grads=true; is_grads_batched: grad_outputs have a first "
    "dimension more, of gradients to begin with",
    1 },
  { "backward", NULL,
    "tensors:several, grad_tensors:gradients=nil, "
    "retain_graph:bool=nil, create_graph:bool=false, *, inputs:several=nil",
    "t:backward() of several tensors at once", 1 },
  { "Function", NULL, "definition:table -> function",
    "an operation with its own backward: definition has forward(ctx, "
    "...) and backward(ctx, g, ...); forward saves tensors with "
    "ctx:save_for_backward(...), backward reads ctx.saved_tensors; an argument "
    "that forward changes in place and returns is named with ctx:mark_dirty(x)",
    1 },
  { "gradcheck", NULL, CHECK,
    "does backward of fn agree with finite differences, in float64?", 1 },
  { "gradgradcheck", NULL, CHECK, "the same for second derivatives", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};

int nl_pushautograd(lua_State *L) {
  luaL_checkstack(L, 8, NULL);
  lua_newtable(L);
  luaL_setfuncs(L, nl_backward_internals, 0);
  luaL_setfuncs(L, nl_batch_internals, 0);
  nl_pushembedded(L, "nacre.autograd");
  lua_pushvalue(L, -2);
  lua_newtable(L);
  for (const Bound *b = nl_autograd_functions; b->name; b++)
    nl_set_string(L, b->name, b->signature);
  lua_newtable(L);
  luaL_setfuncs(L, nl_argument_functions, 0);
  nl_pushfail(L);
  lua_call(L, 4, 0);
  nl_make_strict(L, "autograd");
  return 1;
}

const Bound nl_gradient_methods[] = {
  { "requires_grad_", requires_grad_, "self, requires_grad=true -> tensor",
    "records operations on self from now on, for backward", 2 },
  { "retain_grad", retain_grad, "self",
    "backward keeps the gradient of self even if it is not a leaf", 2 },
  { "detach", detach, "self -> tensor",
    "a tensor with the same memory and no history", 2 },
  { "detach_", detach_, "self -> tensor", "forgets the history of self", 2 },
  { NULL, NULL, NULL, NULL, 0 }
};
