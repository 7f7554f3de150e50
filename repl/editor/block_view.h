/* SPDX-License-Identifier: MIT */
/*
** block_view.h - the picture of a block that is being edited: prompt, wrapped
** lines, as many as fit, and what stands below.  Knows neither readline nor the
** terminal.
*/
#ifndef block_view_h
#define block_view_h

#include "repl/editor/menu.h"

typedef struct View {
  const char *text;
  size_t size, point;
  const unsigned char *role; /* of each byte; NULL: plain */
  const char *prompt;        /* one row; between \1 and \2 it has no width */
  const char *suggestion;    /* dim, behind the end; NULL */
  const char *hint;          /* a row below; NULL */
  int hintrole;
  int from, to;              /* these bytes of the hint are the argument */
  const char *found;         /* what a search looks for, at point; NULL */
  size_t nfound;
  Menu *menu;
  int whole; /* the last picture: all of the text and nothing else */
  int columns, rows; /* of the window */
  int top;   /* kept between pictures: the first row of the text that is seen */
} View;

void sh_view_draw(View *v, Frame *f);

#endif
