/* SPDX-License-Identifier: MIT */
/*
** editor_readline.h - between the three files that use readline.
*/
#ifndef editor_readline_h
#define editor_readline_h

#include "editor.h"

void rlkeys(const EditorHooks *hooks);       /* readline_keys.c */
void rlcompletion(const EditorHooks *hooks); /* readline_complete.c */

#endif
