/* SPDX-License-Identifier: MIT */
/*
** fused_programs.h - the programs of a fused function, for fused_functions.c.
*/
#ifndef bindings_fused_programs_h
#define bindings_fused_programs_h

#include "bindings/binding.h"
#include "bindings/fusion/fused_numbers.h"
#include "core/fusion.h"

#define NL_FUSED_ARGS 32

enum {
  NL_FUSED_KEYS = 1,
  NL_FUSED_WATCHES,
  NL_FUSED_RESULTS,
  NL_FUSED_WHY,
  NL_FUSED_SPECIAL
};

/* A trace of a function, a userdata. Its user values: the arguments that it is
   for, unless it fits others, too; what the function reads (watches, see
   lib/fused_trace.lua); its results; why it is not fused; numbers that the
   function may treat in a way of their own. */
typedef struct Program {
  Fusion *fusion; /* NULL: the function runs as it is */
  int narg, ntensor, nresult;
  char kind[NL_FUSED_ARGS];
  int like[NL_FUSED_ARGS]; /* the first argument that is the same tensor */
  Numbers numbers;
} Program;

/* Kinds of arguments: a value is as it was. */
enum { NL_FUSED_TENSOR = 't', NL_FUSED_NUMBER = 'n', NL_FUSED_VALUE = 'v' };

/* Can the number at index i stand for others like it? [-0, +0, -] */
int nl_is_variable(lua_State *L, int i);
/* _fuse_variable(v) */
int nl_fused_variable(lua_State *L);

/* _fuse_begin(special, ...): begins a trace with these arguments; gives the
   program, and what the function is to be called with. special: numbers that do
   not stand for others, in a table; nil: none does. */
int nl_begin_trace(lua_State *L);
/* _fuse_end(program, watches, why or nil, ...): ends a trace of these
   results. Returns whether the function is fused. */
int nl_end_trace(lua_State *L);
/* _fuse_unchanged(watches) */
int nl_all_unchanged(lua_State *L);

/* Does the program at index `at' fit the n arguments from index first on, whose
   tensors are t[]? [-0, +0, e] */
int nl_fused_fits(lua_State *L, int at, int first, int n, Tensor *const t[],
                  int nt);

#endif
