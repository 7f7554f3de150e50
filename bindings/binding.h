/* SPDX-License-Identifier: MIT */
/*
** binding.h - what every file of the binding uses: tensors as userdata, errors,
** fields of tables. The other headers are those of the folders.
**
** A tensor in Lua is a full userdata (in the code also a "box") that holds one
** reference to a core Tensor. A call of the Lua API may raise an error, which
** is a longjmp, so no C variable may be the only holder of a reference or of
** memory: the userdata is created first, empty, and the core then fills it.
** Scratch memory is a userdata, too.
**
** A garbage collection may run finalizers that free tensors. The binding
** starts one only where no Tensor * is used afterwards. A tensor that a
** finalizer frees while Lua itself collects stays alive until then (nl_free).
**
** Stack effects are in the notation of Lua's manual, [-o, +p, x]: o values
** popped, p values pushed; x is '-' for functions that never raise an error,
** 'm' for those that raise only memory errors, 'e' for those that raise other
** errors, 'v' for those that always raise one. Functions declared as
** f(lua_State *) without a comment are lua_CFunctions.
*/
#ifndef binding_h
#define binding_h

#include <lauxlib.h>
#include <lua.h>

#include "bindings/nacre.h"
#include "core/tensor.h"

/* Pushes an empty tensor userdata. The caller, or the core, stores a reference
   in it, which the userdata then owns. Selects the Context. [-0, +1, m] */
Tensor **nl_newbox(lua_State *L);
/* Pushes a userdata of zeroed bytes with the metatable `kind'; `giveback' is
   its __gc and releases what the bytes hold. For C structs that own
   something while an error may be raised. [-0, +1, m] */
void *nl_newowner(lua_State *L, size_t bytes, const char *kind,
                  lua_CFunction giveback);
/* Pushes a tensor userdata with a new reference to t. [-0, +1, m] */
void nl_pushtensor(lua_State *L, Tensor *t);
/* The tensor at index i, borrowed from the userdata, or NULL for a value that
   is not a tensor; raises an error for a freed tensor. [-0, +0, e] */
Tensor *nl_totensor(lua_State *L, int i);
/* True for a tensor that was not freed. [-0, +0, -] */
int nl_istensor(lua_State *L, int i);
/* As luaL_typename, but "tensor" for a tensor. [-0, +0, -] */
const char *nl_typename(lua_State *L, int i);
#define NL_PYTHON           "nacre.python"     /* metatable of its objects */
#define NL_OBJECT_OF_PYTHON "object of Python" /* their nl_typename */
int nl_isfreed(lua_State *L, int i);          /* a freed tensor? */
int nl_iserror(lua_State *L, int i);          /* an error of the core? */
int nl_isinterrupt(lua_State *L, int i);      /* an error raised by Ctrl-C? */
/* As nl_totensor; raises an error for a value that is not a tensor.
   [-0, +0, e] */
Tensor *nl_checktensor(lua_State *L, int i);
/* The userdata of this kind at index i; raises an error of the method `op' for
   any other value. [-0, +0, v] */
void *nl_check_userdata(lua_State *L, int i, const char *kind, const char *op);
/* Empties the tensor userdata at index i. In a finalizer the release is
   deferred to nl_free_deferred. [-0, +0, m] */
void nl_free(lua_State *L, int i);
void nl_free_deferred(lua_State *L);
/* Raises the error that the core recorded unless status is NC_OK; otherwise
   reports pending trace events and returns 1. The only place that turns a
   status into a Lua error. [-0, +0, e] */
int nl_check(lua_State *L, int status);
/* As nl_check; the error is in the name of the operation op. [-0, +0, e] */
int nl_check_as(lua_State *L, int status, const char *op);
/* As nl_check; names op in an error without an operation. [-0, +0, e] */
int nl_check_op(lua_State *L, int status, const char *op);
/* The same; the tensor at index 1 is self in an error without operands.
   [-0, +0, e] */
int nl_check_self(lua_State *L, int status, const char *op);
/* Adds to the recorded error of `op' that a tensor may be partly updated, if
   that is so. Returns the status. */
int nl_written(int status, const char *op);
/* Pushes an error object: the fields of the record, with the roles of the
   operands in its texts; args, the operands; template, the texts with their
   placeholders "\2j", of which args[i].fills has the digits. [-0, +1, m] */
void nl_pusherror(lua_State *L, Error e);
/* Passes pending trace events to the callback (op_events.c). [-0, +0, e] */
void nl_report_events(lua_State *L);
/* Raises an error of the operation `op' ("" for none). [-0, +0, v] */
int nl_error(lua_State *L, const char *op, const char *fmt, ...);
/* The same, with its cause; NL_MISSING and NL_TYPE are two of them.
   [-0, +0, v] */
int nl_refuse(lua_State *L, const char *op, Cause c, const char *fmt, ...);
/* Adds a hint if the type that was got is an object of Python. */
void nl_hint_object(const char *got);
#define NL_MISSING(name)    ((Cause){ NC_CAUSE_missing, name, NULL })
#define NL_TYPE(L, name, i) ((Cause){ NC_CAUSE_type, name, nl_typename(L, i) })
/* [-0, +1, -] */
void nl_pushscalar(lua_State *L, Scalar v);
/* Reads a number, also a complex one, or boolean; 0: it is another value.
   [-0, +0, -] */
int nl_toscalar(lua_State *L, int i, Scalar *v);
/* Creates the State and pushes the metatable of tensors. [-0, +1, e] */
void nl_open_userdata(lua_State *L);
/* Adds fields to strings, as ("cuda:0").type (string_fields.c). [-0, +0, m] */
void nl_open_string_fields(lua_State *L);

/*
** Tables and metatables (lua_helpers.c)
*/

/* Sets the metatable `kind' of the value on top. The first call creates it with
   these functions. [-0, +0, m] */
void nl_set_metatable(lua_State *L, const char *kind, const luaL_Reg *events);
/* Set a field of the table on top. [-0, +0, m] */
void nl_set_integer(lua_State *L, const char *key, lua_Integer v);
void nl_set_number(lua_State *L, const char *key, lua_Number v);
void nl_set_boolean(lua_State *L, const char *key, int v);
void nl_set_string(lua_State *L, const char *key, const char *v);
int nl_concat(lua_State *L);    /* __concat of values that have a __tostring */
/* Calls the function below the nargs values on top; then, also after an error,
   the __close of the value at index 1. The results go on top; returns how many
   values are above index 1. Lua leaves the to-be-closed variables of a
   coroutine that fails open until the coroutine is closed; there the call is
   protected instead. [-(nargs+1), +n, e] */
int nl_call_restoring(lua_State *L, int nargs);

#endif
