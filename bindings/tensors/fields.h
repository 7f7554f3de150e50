/* SPDX-License-Identifier: MIT */
/* fields.h - fields and indices of tensors, as Lua reads and sets them. */
#ifndef bindings_fields_h
#define bindings_fields_h

#include "bindings/binding.h"

int nl_getfield(lua_State *L);                /* tensor_fields.c: __index */
int nl_isfield(const char *key);              /* shape, dtype, ...? */
/* Replaces the table of methods on top by nacre.Tensor (user_methods.c).
   [-1, +1, m] */
void nl_push_user_methods(lua_State *L);
/* For t[key] = value with a string key: raises an error if key is a name,
   returns 0 if it is an index. [-0, +0, e] */
int nl_checkassign(lua_State *L);
/* Pushes t.grad and other fields of autograd.c; returns 0, with nothing pushed,
   if key is not such a field. [-0, +(0|1), e] */
int nl_gradfield(lua_State *L, Tensor *t, const char *key);
/* For t[key] = value: sets such a field; returns 0 if key is not one.
   [-0, +0, e] */
int nl_setgradfield(lua_State *L, const char *key);
/* t.data = x: the tensor at index 1 shows the storage of the one at index 3; a
   leaf that requires a gradient stays one. [-?, +1, e] */
int nl_setdata(lua_State *L);
/* The value of all samples behind t, a sample of vmap; else t itself. */
Tensor *nl_value_of(Tensor *t);
/* Raises an error: t is one sample. [-0, +0, v] */
int nl_refuse_sample(lua_State *L, const char *op);
/* Pushes nacre.autograd and returns 1. [-0, +1, e] */
int nl_pushautograd(lua_State *L);

int nl_pairs(lua_State *L);                   /* tensor_fields.c: __pairs */
int nl_index(lua_State *L);     /* index_keys.c: t[key], not a name */
int nl_newindex(lua_State *L);  /* __newindex */
int nl_call(lua_State *L);      /* __call */

/* The generator at index i, or NULL. [-0, +0, m] */
Generator *nl_togenerator(lua_State *L, int i);

#endif
