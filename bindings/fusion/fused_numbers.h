/* SPDX-License-Identifier: MIT */
/* fused_numbers.h - the numbers of a traced function (fused_numbers.c). */
#ifndef bindings_fused_numbers_h
#define bindings_fused_numbers_h

#include "bindings/binding.h"

#define NL_FUSED_NUMBERS 64

/* The numbers of a trace, each an argument, a constant, or an operation of Lua
   on two others. */
typedef struct Numbers {
  int n;
  struct {
    int op;                   /* LUA_OPADD ..., or one of these */
    int a, b;                 /* the argument; the numbers, from 1 */
    Scalar value;             /* of a constant */
  } number[NL_FUSED_NUMBERS];
} Numbers;
enum { NL_NUMBER_ARGUMENT = -1, NL_NUMBER_CONSTANT = -2 };

/* Pushes what stands for number `index' of the arguments, v, in a trace. The
   value at index `owner' holds *k. [-0, +1, e] */
void nl_push_symbol(lua_State *L, Numbers *k, int owner, int index, Scalar v);
/* Reads such a number as an operand; returns 0 for another value.
   [-0, +0, -] */
int nl_tosymbol(lua_State *L, int i, Scalar *v);
/* v[] = the numbers for the arguments at index first and following.
   [-0, +0, e] */
void nl_set_numbers(lua_State *L, const Numbers *k, int first, Scalar v[]);

#endif
