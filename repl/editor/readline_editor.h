/* SPDX-License-Identifier: MIT */
/*
** readline_editor.h - what the files that use readline share.
**
** readline edits; what is seen of it is ours (readline_draw.c), except with
** --plain and on terminals that cannot move their cursor up: there readline
** draws, and the functions of readline_draw.c do nothing.
*/
#ifndef editor_readline_h
#define editor_readline_h

#include <readline/readline.h>

#include "repl/editor/editor.h"
#include "repl/editor/menu.h"

/* readline_editor.c */
int rlwaitkey(void); /* before a key is read: -1 no more, 0 Ctrl-C, 1 there */

/* readline_keys.c */
void rlkeys(const EditorHooks *hooks);
int rlend(int count, int key); /* to the end of the line, then of the block */
/* An incremental search, which knows Backspace only as rl_rubout, gets it so.
   To be called before a key is read. */
void rlsearchkeys(void);
int rlfetch(void); /* puts in what Ctrl-O asked for; 0: nothing */
/* Binds keys unless the user has given them another meaning. */
void rlbind(const char *keys, rl_command_func_t *f, Keymap map);

/* readline_user_keys.c */
void rluserkeys(const EditorHooks *hooks);
int rlbinduser(const char *keys, int on, const char **why); /* Editor.bind */

/* readline_complete.c: Tab where readline draws, and its own commands */
void rlcompletion(const EditorHooks *hooks);

/* readline_draw.c */
void rldrawopen(const EditorHooks *hooks); /* before rl_initialize */
void rldrawinit(void);                     /* after it */
int rldraws(void);                         /* do we draw? */
ScreenColor rldrawcolor(void);             /* with what? */
void rldrawprep(void); /* behind what prepares or restores the terminal */
void rldrawbegin(const char *prompt); /* a block begins in a free row */
void rldrawagain(void); /* the same block, after others used the terminal */
int rldrawstale(void);  /* is something not drawn? 2: for long */
void rldrawnow(void);   /* draws it */
void rldrawidle(void);  /* nothing was pressed for a while */
/* The last picture of the block, and a text behind it. */
void rldrawfinish(const char *behind);
void rldrawabove(const char *text);
void rldrawhome(void); /* the block is erased from the screen */
void rldrawresize(void);
void rldrawclose(void);

/* readline_menu.c */
void rlmenuopen(const EditorHooks *hooks); /* names its keys for .inputrc */
void rlmenukeys(Keymap map);
Menu *rlmenu(void); /* that of the text as it is */
void rlmenuclose(void);
int rlmenutab(void);
/* Another candidate, if one is chosen, or in any case; 0: there is none. */
int rlmenustep(int by, int inanycase);
int rlmenuaccept(void); /* keeps what is chosen; 0: nothing is */
/* readline's own lists go there. */
void rlmenulist(char **matches, int n, int width);

/* readline_suggest.c */
const char *rlsuggestion(void); /* what follows the text, or NULL */
/* What a row below the suggestion says of it, until it was once taken. */
const char *rlsuggestnote(void);
void rlsuggestopen(void); /* names its keys for .inputrc */
void rlsuggestbegin(const EditorHooks *hooks); /* a block begins */
void rlsuggestclose(void);
void rlsuggestkeys(Keymap map);

#endif
