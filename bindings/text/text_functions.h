/* SPDX-License-Identifier: MIT */
/* text_functions.h - what tokenizer.lua is made of, all.text. */
#ifndef bindings_text_text_functions_h
#define bindings_text_text_functions_h

#include <lauxlib.h>

extern const luaL_Reg nl_text_functions[];

#endif
