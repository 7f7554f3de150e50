/* SPDX-License-Identifier: MIT */
/* complex_number.h - complex numbers as values of Lua. */
#ifndef bindings_tensors_complex_number_h
#define bindings_tensors_complex_number_h

#include "bindings/lua_library.h"

void nl_open_complex(lua_State *L); /* the metatable of all [-0, +0, m] */
void nl_pushcomplex(lua_State *L, double re, double im); /* [-0, +1, m] */
/* The parts of the complex number at index i; 0: it is none. [-0, +0, -] */
int nl_tocomplex(lua_State *L, int i, double *re, double *im);

#endif
