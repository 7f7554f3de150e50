/* SPDX-License-Identifier: MIT */
/*
** argument_reader.h - what the files of this folder share with
** bound_functions.c: the reader of the arguments of one call.
**
** A function of the core gets Args. A function that works on values of Lua,
** bound in C or written in Lua, gets these: the reader notes the stack index of
** the value of each parameter. Optional parameters of such a function must
** accept their arguments, and tables have their own rules (is_value of
** arguments.c).
*/
#ifndef argument_reader_h
#define argument_reader_h

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"

typedef struct Reader {
  lua_State *L;
  const Signature *s;
  const char *name;           /* of the function, in errors */
  Args *a;
  int next, top;              /* stack indices of the next, the last argument */
  const Param *refused;       /* the first optional parameter that did not
                                 accept the argument at `next' */
  int *at;                    /* NULL, or stack indices of the values, by
                                 parameter; 0: it has its default */
} Reader;

/* Reads all arguments up to r->top. [-0, +n, e] */
void nl_read_all(Reader *r);

/* Reads the value at index i for parameter p into arg[slot]. Returns 0 if the
   type does not fit; raises an error if the type fits and the value does not.
   [-0, +n, e] */
int nl_read_value(Reader *r, const Param *p, int slot, int i);
/* The same for a list, or what stands in its place. [-0, +n, e] */
int nl_read_list(Reader *r, const Param *p, int slot, int i);
/* zeros(2, 3): reads as many numbers as possible. [-0, +n, e] */
void nl_read_sizes(Reader *r, int slot);
/* stack(a, b): reads two tensors or more without braces. [-0, +(0|1), e] */
void nl_read_several(Reader *r, int slot);
/* Reads an integer; a float with an integral value counts. [-0, +0, e] */
int nl_read_integer(lua_State *L, int i, int64_t *v);

/* The stack index of the value that a function of Lua gets in place of the
   one at index i, which was read into arg[slot]: 2.0 becomes an integer. 0 for
   no value. [-0, +(0|1), e] */
int nl_lua_value(Reader *r, const Param *p, int slot, int i);
/* Pushes the list of integers in a. [-0, +1, e] */
void nl_push_integers(lua_State *L, const Arg *a);
/* [-0, +0, e] */
int nl_is_callable(lua_State *L, int i);
int nl_has_field(lua_State *L, int i, const char *name); /* by rawget */

/* Is it the name of a device, whether or not that exists? */
int nl_is_device_name(const char *text);
/* Raises the error that the value at index i does not fit parameter p.
   [-0, +0, v] */
int nl_wrong_type(Reader *r, const Param *p, int i);
/* The value at index i in a message: "a number"; the number, or a short text,
   itself. [-0, +(0|1), e] */
const char *nl_describe_value(lua_State *L, int i);
const char *nl_show_value(lua_State *L, int i);
/* If the surplus arguments from r->next on can be given by name: records an
   error with a hint that says so, and returns 1. [-0, +n, e] */
int nl_hint_named_arguments(Reader *r);
/* Raises the error for these surplus arguments. [-0, +0, v] */
int nl_too_many_arguments(Reader *r);

#endif
