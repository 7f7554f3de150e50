/* SPDX-License-Identifier: MIT */
/*
** libnacre.h - what the files of libnacre share. nacre/tensors.h is what others
** see: its functions are wrappers of core/tensor.h, which may change with every
** version.
*/
#ifndef library_libnacre_h
#define library_libnacre_h

#include "core/signature.h"
#include "library/nacre/tensors.h"

/* Every function that returns a status returns it through this one: an
   interruption ends one call, not those after it. */
int lib_settle(int status);

/* Fails, in the name of the operation op. */
int lib_refuse(const char *op, const char *fmt, ...) NC_PRINTF(2, 3);

/* Reads the arguments of a call by the signature s. one[] holds what those that
   are one integer point to. */
typedef struct Arguments {
  Arg arg[NC_MAXPARAM];
  int64_t one[NC_MAXPARAM];
} Arguments;
int lib_read_arguments(Arguments *a, const Signature *s, const nacre_arg *given,
                       int n);

/* Makes a tensor of a number or a boolean that an operation gives. */
int lib_tensor_of(Tensor **t, Scalar v);
/* Fails: an operation gives more results than there is room for. */
int lib_refuse_results(const char *op, int there, int room);

/*
** Operations of the binding, which run in a Lua state of the library's own
** (lua_call.c).
*/
/* As nacre_call. */
int lib_call_lua(const char *op, nacre_tensor *result[], int n,
                 const nacre_arg arg[], int narg);
int lib_uses_lua(void);         /* is there such a state? */
int lib_open_lua_library(void); /* lua_functions.c */

#endif
