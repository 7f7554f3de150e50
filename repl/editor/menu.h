/* SPDX-License-Identifier: MIT */
/*
** menu.h - the candidates of a word below the block.  Knows neither readline
** nor the terminal.
*/
#ifndef menu_h
#define menu_h

#include "repl/editor/editor.h"
#include "repl/editor/frame.h"

/* Begins as { 0 }, closed. */
typedef struct Menu {
  Candidates c; /* freed by sh_menu_close */
  int chosen;   /* -1: none */
  int top, across, rows, list; /* the layout; list: rows of the list itself */
  int width;                   /* of the widest candidate */
  int notes;                   /* has one a note? */
} Menu;

/* Takes the candidates; it is open if there are some. */
void sh_menu_open(Menu *m, const Candidates *c);
void sh_menu_close(Menu *m);
int sh_menu_isopen(const Menu *m);
/* Keeps what begins with n bytes of a word. */
void sh_menu_filter(Menu *m, const char *word, size_t n);
/* How many bytes all candidates have in common. */
size_t sh_menu_common(const Menu *m);
/* Chooses another; beyond either end lies none. */
void sh_menu_step(Menu *m, int by);
/* Plans at most so many rows; gives how many it takes. */
int sh_menu_layout(Menu *m, int most, int columns);
/* Draws what was planned from a row on. */
void sh_menu_draw(const Menu *m, Frame *f, int row);

#endif
