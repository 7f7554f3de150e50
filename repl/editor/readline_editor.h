/* SPDX-License-Identifier: MIT */
/*
** readline_editor.h - between the three files that use readline.
*/
#ifndef editor_readline_h
#define editor_readline_h

#include "repl/editor/editor.h"

void rlkeys(const EditorHooks *hooks);       /* readline_keys.c */
int rlwaitkey(void); /* before a key is read: -1 no more, 0 Ctrl-C, 1 there */
int rlfetch(void); /* puts in what Ctrl-O asked for; 0: nothing */
void rlcompletion(const EditorHooks *hooks); /* readline_complete.c */

#endif
