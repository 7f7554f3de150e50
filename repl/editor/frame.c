/* SPDX-License-Identifier: MIT */
/*
** frame.c - rows of cells.
*/

#define _XOPEN_SOURCE 700 /* wcwidth */

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "repl/editor/frame.h"

void sh_frame_clear(Frame *f, int columns) {
  if (columns != f->columns) f->room = 0; /* rows have another length now */
  f->columns = columns;
  f->rows = f->row = f->column = 0;
}

void sh_frame_free(Frame *f) {
  free(f->cell);
  free(f->used);
  memset(f, 0, sizeof *f);
}

static int grow(Frame *f, int rows) {
  const size_t room = (size_t)rows + (size_t)rows / 2 + 16;
  Cell *cell;
  int *used;
  if (rows <= f->room) return 1;
  cell = realloc(f->cell, sizeof *cell * room * (size_t)f->columns);
  if (cell != NULL) f->cell = cell;
  used = realloc(f->used, sizeof *used * room);
  if (used != NULL) f->used = used;
  if (cell == NULL || used == NULL) return 0;
  f->room = (int)room;
  return 1;
}

int sh_frame_rows(Frame *f, int rows) {
  if (f->columns < 1 || !grow(f, rows)) return 0;
  for (; f->rows < rows; f->rows++) f->used[f->rows] = 0;
  return 1;
}

static Cell *at(const Frame *f, int row, int column) {
  return f->cell + (size_t)row * (size_t)f->columns + column;
}

/* Adds a mark to the character before the column. */
static void combine(Frame *f, int row, int column, const char *s, int n) {
  Cell *cell;
  if (column < 1 || column > f->used[row]) return;
  cell = at(f, row, column - 1);
  if (cell->width == 0 && column > 1) cell--;
  if (cell->n + n > CELL_TEXT) return;
  memcpy(cell->text + cell->n, s, (size_t)n);
  cell->n = (unsigned char)(cell->n + n);
}

void sh_frame_put(Frame *f, int row, int column, const char *s, int n,
                  int width, int role) {
  static const Cell blank = { 1, 1, ROLE_PLAIN, " " };
  Cell *cell;
  if (column + width > f->columns || n > CELL_TEXT) return;
  if (!sh_frame_rows(f, row + 1)) return;
  if (width == 0) {
    combine(f, row, column, s, n);
    return;
  }
  while (f->used[row] < column) *at(f, row, f->used[row]++) = blank;
  cell = at(f, row, column);
  memset(cell, 0, sizeof *cell * (size_t)width);
  cell->n = (unsigned char)n;
  cell->width = (unsigned char)width;
  cell->role = (unsigned char)role;
  if (width > 1) cell[1].role = cell->role;
  memcpy(cell->text, s, (size_t)n);
  if (f->used[row] < column + width) f->used[row] = column + width;
}

void sh_frame_cut(Frame *f, int row, int column) {
  if (row < f->rows && f->used[row] > column) f->used[row] = column;
}

/* Does the rest of a line, which may have blanks at its end, fit? */
static int fits(const char *s, const char *end, int room) {
  int width;
  while (s < end && *s != '\n' && room >= 0) {
    s += sh_nextchar(s, end, &width);
    if (width > 0) room -= width;
  }
  return room >= 0;
}

int sh_frame_text(Frame *f, int row, int column, const char *s, int role,
                  int limit) {
  const char *end = s + strlen(s);
  int width, n, whole, stop;
  if (limit > f->columns) limit = f->columns;
  whole = fits(s, end, limit - column);
  stop = whole ? limit : limit - 3;
  for (; s < end && *s != '\n'; s += n) {
    n = sh_nextchar(s, end, &width);
    if (width < 0) continue; /* control characters are left out */
    if (column + width > stop) break;
    sh_frame_put(f, row, column, s, n, width, role);
    column += width;
  }
  for (n = whole ? 3 : 0; n < 3 && column < limit; n++)
    sh_frame_put(f, row, column++, ".", 1, 1, role);
  return column;
}

/*
** Characters
*/
int sh_nextchar(const char *s, const char *end, int *width) {
  const unsigned char c = (unsigned char)*s;
  mbstate_t state;
  wchar_t w;
  size_t n;
  if (c >= ' ' && c < 127) return *width = 1, 1;
  if (c == '\t') return *width = WIDTH_TAB, 1;
  if (c < ' ' || c == 127) return *width = WIDTH_CONTROL, 1;
  memset(&state, 0, sizeof state);
  n = mbrtowc(&w, s, (size_t)(end - s), &state);
  *width = n > 0 && n <= CELL_TEXT ? wcwidth(w) : WIDTH_INVALID;
  if (*width < 0) return *width = WIDTH_INVALID, 1;
  return (int)n;
}

int sh_textwidth(const char *s, size_t n) {
  const char *end = s + n;
  int width, sum = 0;
  while (s < end) {
    s += sh_nextchar(s, end, &width);
    if (width > 0) sum += width;
  }
  return sum;
}

/*
** Styles of others: those in a prompt
*/
static struct { char sgr[32]; } styles[ROLE_STYLES - ROLE_COUNT];
static int nstyles;

int sh_frame_style(const char *sgr, size_t n) {
  int i;
  if (n == 0 || n >= sizeof styles->sgr) return ROLE_PLAIN;
  for (i = 0; i < nstyles; i++)
    if (strlen(styles[i].sgr) == n && memcmp(styles[i].sgr, sgr, n) == 0)
      return ROLE_COUNT + i;
  if (nstyles == ROLE_STYLES - ROLE_COUNT) return ROLE_PLAIN;
  memcpy(styles[nstyles].sgr, sgr, n);
  return ROLE_COUNT + nstyles++;
}

const char *sh_frame_sgr(int role) {
  return role - ROLE_COUNT < nstyles ? styles[role - ROLE_COUNT].sgr : "";
}
