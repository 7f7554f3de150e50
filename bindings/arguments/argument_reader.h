/* SPDX-License-Identifier: MIT */
/* argument_reader.h - what arguments.c, argument_values.c and bound_functions.c
   share. */
#ifndef argument_reader_h
#define argument_reader_h

#include "bindings/binding.h"

typedef struct Reader {
  lua_State *L;
  const Signature *s;
  Args *a;
  int next, top;              /* stack indices of the next, the last argument */
  const Param *refused;       /* the first optional parameter that did not
                                 accept the argument at `next' */
} Reader;

extern const char *const nl_type_names[]; /* "a tensor", by ParamType */

/* Reads the value at index i for parameter p into arg[slot]. Returns 0 if the
   type does not fit; raises an error if the type fits and the value does not.
   [-0, +n, e] */
int nl_read_value(Reader *r, const Param *p, int slot, int i);
/* zeros(2, 3): reads as many numbers as possible. [-0, +(0|1), e] */
void nl_read_sizes(Reader *r, int slot);
/* stack(a, b): reads two tensors or more without braces. [-0, +(0|1), e] */
void nl_read_several(Reader *r, int slot);
/* Raises the error that the value at index i does not fit parameter p.
   [-0, +0, v] */
int nl_wrong_type(Reader *r, const Param *p, int i);
/* Raises the error for an unknown named argument. [-0, +0, v] */
int nl_unknown_argument(Reader *r, const char *name);
/* f(t, {}): skips an empty table after the last parameter, which is neither a
   list nor options. Returns 1 if it did. [-0, +0, e] */
int nl_skip_empty_options(Reader *r);

#endif
