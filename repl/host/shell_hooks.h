/* SPDX-License-Identifier: MIT */
/*
** shell_hooks.h - calls of the Lua module "nacre.editor_hooks" from C. None
** of them jumps: an error inside is a return value too.
*/

#ifndef hooks_h
#define hooks_h

#include <lua.h>

#include "repl/editor/editor.h"

extern const EditorHooks shellhooks;

/* Loads the module; on failure leaves a message on the stack and gives 0. */
int sh_openshell(lua_State *L, int transcript);

void sh_findshell(lua_State *L); /* one that runs already; pushes it, raises */

void sh_startup(const char *rc); /* the start-up file; NULL: the usual one */
char *sh_prompt(int which);      /* malloced */
int sh_ended(void); /* the input ended: does something else take lines now? */
void sh_left(void); /* the session ends */
int sh_submit(const char *text); /* runs a block; 0 to leave the shell */

#endif
