/* SPDX-License-Identifier: MIT */
/*
** paint.h - the role of each byte of a block: tokens, names, brackets; and the
** call around the cursor.  Knows neither readline nor the terminal.
*/
#ifndef paint_h
#define paint_h

#include <stddef.h>

#include "repl/editor/frame.h"

typedef struct Block {
  const char *text;
  size_t size;
  size_t point; /* the cursor */
  size_t code;  /* where Lua begins; size if there is none */
  int marks;    /* mark what belongs to the cursor, and what is wrong? */
  /* the role of a global: known, unknown, a tensor */
  int (*global)(const char *name, size_t n);
} Block;

/* Begins as { 0 }. */
typedef struct Painting {
  unsigned char *role; /* one a byte; NULL without memory */
  size_t room;
  int incall;      /* is a call open at the cursor? */
  size_t callfrom; /* where its function's name begins */
} Painting;

void sh_paint(Painting *p, const Block *b);
/* What is known about globals is asked anew: code was run. */
void sh_paint_forget(void);
void sh_paint_free(Painting *p);

#endif
