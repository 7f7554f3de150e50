/* SPDX-License-Identifier: MIT */
/* arguments.h - the arguments of a call, read by the signature of the function
   (arguments.c), and tables as lists and as named arguments. */
#ifndef bindings_arguments_h
#define bindings_arguments_h

#include "bindings/binding.h"
#include "core/signature.h"

typedef struct Source Source; /* core/files.h */

/* Sets fields of the table on top: signature = "sum(self, dim=nil) -> tensor",
   results = "tensor", and params, a list of {name=, type=, optional=, byname=,
   default=, choices="a|b"} (signature_table.c).
   [-0, +0, m] */
void nl_set_signature(lua_State *L, const Signature *s);
/* Pushes the default of a parameter, nil if it has none. [-0, +1, m] */
void nl_push_default(lua_State *L, const Param *p);

typedef struct Args {
  Arg arg[NC_MAXPARAM];
  int out;                    /* stack index of {out=...}, or 0 */
  int require;                /* {requires_grad=true} */
  int pin;                    /* {pin_memory=true} */
  int64_t list[NC_MAXPARAM][NC_MAXDIM]; /* storage for arg[].list */
} Args;

/* Sets *from to the input at index i: a path, or an open Lua file, which is
   read to its end; its bytes are pushed (io/input_source.c). [-0, +(0|1), e] */
void nl_read_source(lua_State *L, const char *op, int i, Source *from);

/* Reads all arguments on the stack by a signature. Lists that do not fit into
   Args are pushed; *a borrows from the stack and from itself, so it must not
   be moved. [-0, +n, e] */
void nl_readargs(lua_State *L, const Signature *s, Args *a);
/* The same for the C function of the binding that runs, by the signature of its
   row in a table of Bound. [-0, +n, e] */
void nl_args(lua_State *L, Args *a);
/* manual_seed(seed): seeds the generator of all devices and math.random. */
#define NL_SEED "seed:int"
int nl_manual_seed(lua_State *L);

/* Functions that read the arguments of functions written in Lua by a
   signature; nl_parse_signature, one of them, is nacre._signature, too
   (lua_values.c). */
extern const luaL_Reg nl_argument_functions[];
int nl_parse_signature(lua_State *L);

/*
** Tables (table_arguments.c)
*/

/* True if Lua would read the table at index i through metamethods.
   [-0, +0, m] */
int nl_has_metamethods(lua_State *L, int i);
/* Replaces the table at index i, if it has metamethods that affect reading, by
   a plain copy made through them: its elements, its pairs, and, if it is not
   a list, the fields named in the list at index `names' (0: none). Returns 0
   for any other value, which stays. [-0, +0, e] */
int nl_plain_table(lua_State *L, int i, int names);
/* The same for a table of named arguments. [-0, +0, e] */
void nl_plain_options(lua_State *L, int i, const Signature *s);
/* True if the pair on top is the field n of table.pack, in a table of n
   elements. [-0, +0, -] */
int nl_ispacked(lua_State *L, int64_t n);
/* True if the value at index i is a table with names and without elements.
   [-0, +0, e] */
int nl_isoptions(lua_State *L, int i, const Signature *s);
/* What is wrong with the keys of the list at index i, or NULL.  *name is the
   key if it is a string, else NULL. The strings stay on the stack.
   [-0, +n, e] */
const char *nl_find_bad_key(lua_State *L, int i, const char **name);
/* Raises an error if there is something wrong with the keys. [-0, +0, e] */
void nl_checklist(lua_State *L, const char *op, int i);
/* Sets the metatable of the list of results on top: using the list as a tensor
   raises an error that explains it. [-0, +0, m] */
void nl_setlist(lua_State *L);

#endif
