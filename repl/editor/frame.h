/* SPDX-License-Identifier: MIT */
/*
** frame.h - pictures made of cells, and a screen that shows one after the
** other with few bytes.
**
** A Frame holds rows of cells, and where the cursor is.  Row 0 is where the
** frame begins on the screen; what stands above belongs to others, and the
** terminal is never asked where that is.  A Screen is a terminal and the frame
** that it shows: sh_screen_show writes only what differs.  Neither knows
** readline or what the cells mean.
*/
#ifndef frame_h
#define frame_h

#include <stddef.h>

/* What a cell is, which decides its colour. */
typedef enum Role {
  ROLE_PLAIN,
  ROLE_KEYWORD,
  ROLE_STRING,
  ROLE_NUMBER,
  ROLE_COMMENT,
  ROLE_KNOWN,      /* a global of the program */
  ROLE_UNKNOWN,    /* a name that has no value */
  ROLE_TENSOR,
  ROLE_COMMAND,
  ROLE_WRONG,      /* a bracket without its other half */
  ROLE_FAULT,      /* where the first error is */
  ROLE_SUGGESTION, /* what the history would go on with */
  ROLE_HINT,
  ROLE_ARGUMENT,   /* of a hint: what is being written */
  ROLE_ERROR,
  ROLE_MENU,
  ROLE_CHOSEN,
  ROLE_NOTE,
  ROLE_FOUND,      /* what a search looks for */
  ROLE_CONTROL,    /* stands for a byte that cannot be shown */
  ROLE_MARK,       /* "... 12 more above" */
  ROLE_COUNT,      /* from here on: sh_frame_style */
  ROLE_STYLES = 0x80,
  ROLE_MATCH = 0x80 /* a bit: the bracket at the cursor */
} Role;

enum { CELL_TEXT = 13 }; /* bytes: a character with its combining marks */

typedef struct Cell {
  unsigned char n;     /* bytes of the text */
  unsigned char width; /* 1, 2; 0: the right half of the cell before */
  unsigned char role;
  char text[CELL_TEXT];
} Cell;

/* Begins as { 0 }. Without memory cells are left out. */
typedef struct Frame {
  int rows, columns;
  int row, column; /* the cursor */
  Cell *cell;
  int *used; /* the cells of each row; blanks follow */
  int room;  /* rows that have memory */
} Frame;

void sh_frame_clear(Frame *f, int columns);
void sh_frame_free(Frame *f);
/* There are at least so many rows. */
int sh_frame_rows(Frame *f, int rows); /* 0: no memory */
/* Puts a character of so many bytes and columns into a row; one of width 0
   joins the cell before, as far as it fits. */
void sh_frame_put(Frame *f, int row, int column, const char *s, int n,
                  int width, int role);
/* Puts the first line of a text; where it would pass the limit, a column, it
   ends in "...".  Gives the column behind it. */
int sh_frame_text(Frame *f, int row, int column, const char *s, int role,
                  int limit);
/* Drops what a row has from a column on. */
void sh_frame_cut(Frame *f, int row, int column);
/* The role of what the SGR sequence with these parameters ("1;31") makes; it is
   plain for the 70th and on. */
int sh_frame_style(const char *sgr, size_t n);
const char *sh_frame_sgr(int role); /* of such a role */

/* What may stand in place of a width: */
enum { WIDTH_CONTROL = -1, WIDTH_TAB = -2, WIDTH_INVALID = -3 };
/* The bytes of the character at s, and its columns. */
int sh_nextchar(const char *s, const char *end, int *width);
int sh_textwidth(const char *s, size_t n);

/* What a screen can show. */
typedef enum ScreenColor {
  SCREEN_TEXT,
  SCREEN_ATTRIBUTES,
  SCREEN_COLORS
} ScreenColor;

typedef struct Screen {
  int fd;
  int rows, columns; /* of the window */
  ScreenColor color;
  int shifts;  /* can it insert and delete cells of a row? */
  Frame shown;
  char *out;   /* what is not written yet */
  size_t n, size;
} Screen;

/* Asks for the window's size; did it change? */
int sh_screen_resize(Screen *s);
void sh_screen_add(Screen *s, const char *text, size_t n);
void sh_screen_print(Screen *s, const char *text);
void sh_screen_flush(Screen *s);
/* Shows a frame in place of the last one, and flushes. */
void sh_screen_show(Screen *s, const Frame *want);
/* The cursor goes to a cell; what follows it is erased. */
void sh_screen_end(Screen *s, int row, int column);
void sh_screen_home(Screen *s); /* erases the frame, to draw it afresh there */
/* The frame is left as it is: the cursor is at the start of a free row. */
void sh_screen_forget(Screen *s);
void sh_screen_free(Screen *s);

#endif
