/* SPDX-License-Identifier: MIT */
/* functions.h - functions by name: of the core, of C files of the binding, of
   Lua files. */
#ifndef bindings_functions_h
#define bindings_functions_h

#include "bindings/binding.h"

typedef struct Bound {        /* a C function of the binding */
  const char *name;
  lua_CFunction f;
  const char *signature, *doc;
  int where;                  /* NL_FUNCTION, NL_METHOD or both */
} Bound;

/* Pushes a table with the functions of the list. [-0, +1, m] */
void nl_push_bound_table(lua_State *L, const Bound *list);
/* Pushes the function of b, in a wrapper that refuses surplus arguments and
   moves named arguments to their positions (bound_functions.c). [-0, +1, m] */
void nl_pushbound(lua_State *L, const Bound *b);
/* True if the value at index i is that function. [-0, +0, -] */
int nl_isbound(lua_State *L, int i, const Bound *b);

#define NL_FUNCTION 1         /* nacre.name */
#define NL_METHOD 2           /* t:name */

/* Pushes f with the number `which' as its upvalue 1 and returns 1; f reads the
   number with nl_which. [-0, +1, m] */
int nl_closure(lua_State *L, lua_CFunction f, int which);
#define nl_which(L) ((int)(intptr_t)lua_touserdata(L, lua_upvalueindex(1)))

/* The name of the operation for which `name' is an alias, possibly stored in
   own[], or name itself; the i-th alias, or NULL (aliases.c). */
#define NL_NAME 32
const char *nl_resolve_alias(const char *name, char own[NL_NAME]);
const char *nl_alias(int i);
/* Pushes the function of this name that is defined in C; returns 0, with
   nothing pushed, if there is none (registry.c). [-0, +(0|1), m] */
int nl_pushfunction(lua_State *L, const char *name, int where);
/* Creates all functions, or methods, in the table on top. [-0, +0, e] */
void nl_makeall(lua_State *L, int where);
/* Pushes nacre[name], created if necessary; returns 0, with nothing pushed, if
   there is no such name. [-0, +(0|1), e] */
int nl_pushname(lua_State *L, const char *name);
/* Raises the error that nacre, or its subtable `path', at index 1 does not have
   this name. Returns 0 for a name that begins with "_" (strict_names.c).
   [-0, +0, e] */
int nl_unknown_name(lua_State *L, const char *path, const char *name);
/* Makes the table on top, the subtable `path', and those in it raise that error
   for absent fields. [-0, +0, m] */
void nl_make_strict(lua_State *L, const char *path);
/* Sets nacre.long = "int64" and so on in the table at index lib.
   [-0, +0, m] */
void nl_setcasts(lua_State *L, int lib);
int nl_info(lua_State *L);                    /* nacre._info, _names, _rows */
int nl_names(lua_State *L);
int nl_rows(lua_State *L);

/* Upvalue 1 of these is the Op or Operator (dispatch.c). */
int nl_call_pointwise(lua_State *L);
/* Has the second of two operands, a table or an object of Python, this
   metamethod itself? Then replaces them by its result: a tensor is asked first
   if it is the left one. NULL for the event: it does not. [-(0|2), +(0|1),
   e] */
int nl_call_other_metamethod(lua_State *L, const char *event);
/* "__add" for OP_add; NULL for what is not an operator of Lua (nacre.c). */
const char *nl_event_of(Op op);
int nl_call_pointwise_into(lua_State *L);
int nl_call_operator(lua_State *L);
int nl_call_operator_into(lua_State *L);
int nl_callwhere(lua_State *L);               /* overloads.c: t:where */
int nl_where_condition(lua_State *L);
/* Handles a call of f in a form that its signature does not have: pushes the
   results and returns how many, or returns 0. [-0, +n, e] */
int nl_call_overload(lua_State *L, Operator f);

/*
** The tables of C functions, one or more of each file
*/
extern const Bound nl_conversions[];          /* conversion.c */
extern const Bound nl_bytes[];                /* byte_strings.c */
extern const Bound nl_tensor_fields[];        /* tensor_fields.c */
extern const Bound nl_inplace_views[];        /* inplace_views.c */
extern const Bound nl_defaults[];             /* defaults.c */
extern const Bound nl_files[];                /* tensor_files.c */
extern const Bound nl_archives[];             /* archive_handle.c */
extern const Bound nl_op_events[];            /* op_events.c */
extern const Bound nl_to_device[];            /* to_device.c */
extern const Bound nl_cuda[];                 /* cuda_module.c: nacre.cuda */
extern const Bound nl_stream_methods[];       /* cuda_streams.c: methods */
extern const Bound nl_gradient_methods[];     /* autograd.c */
extern const Bound nl_backward_methods[];     /* lua_backward.c */
extern const luaL_Reg nl_backward_internals[]; /* nacre.autograd._backward */
extern const luaL_Reg nl_batch_internals[];   /* samples.c: the same */
extern const Bound nl_grad_mode[];            /* grad_mode.c */
extern const Bound nl_autograd_functions[];   /* autograd.c: nacre.autograd */
extern const Bound nl_event_methods[];        /* cuda_streams.c: methods */
extern const Bound nl_png[];                  /* png.c */
extern const Bound nl_python[];               /* python_module.c */
extern const Bound nl_python_functions[];     /* the same: of nacre.python() */
extern const Bound nl_random_functions[];     /* generator.c */
extern const Bound nl_generator_methods[];    /* generator.c */
extern const Bound nl_process_groups[];       /* distributed/process_group.c */
extern const Bound nl_collectives[];          /* distributed/collectives.c */
extern const Bound nl_work_methods[];         /* distributed/works.c */
extern const luaL_Reg nl_distributed_internals[]; /* collectives.c */
extern const Bound nl_fused[];                /* fused_functions.c */

#endif
