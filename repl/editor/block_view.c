/* SPDX-License-Identifier: MIT */
/*
** block_view.c - lays out a block and what stands below it.
**
** The last column of the window stays empty: terminals differ in what happens
** behind it.  All rows of the text begin where the prompt ends.
*/

#include <stdio.h>
#include <string.h>

#include "repl/editor/block_view.h"

enum { TABSTOP = 4, INDENT = 2 };

typedef struct Layout {
  const View *v;
  Frame *f; /* NULL: rows are only counted */
  int margin, columns;
  int first, last; /* the rows of the text that are drawn */
  int row, column; /* where the next cell goes */
  int pointrow, pointcolumn;
} Layout;

static void put(Layout *l, const char *s, int n, int width, int role) {
  if (width > 0 && l->column + width > l->columns) {
    l->row++;
    l->column = l->margin;
  }
  if (l->f != NULL && l->row >= l->first && l->row < l->last)
    sh_frame_put(l->f, l->row - l->first, l->column, s, n, width, role);
  l->column += width;
}

/* Shows a byte that is not a visible character: ^A, \xE9. */
static void putbyte(Layout *l, unsigned char c, int width) {
  char shown[8];
  int i, n;
  if (width == WIDTH_CONTROL)
    n = snprintf(shown, sizeof shown, "^%c", c == 127 ? '?' : c + 64);
  else n = snprintf(shown, sizeof shown, "\\x%02X", c);
  for (i = 0; i < n; i++) put(l, shown + i, 1, 1, ROLE_CONTROL);
}

static void puttab(Layout *l, int role) {
  do put(l, " ", 1, 1, role);
  while ((l->column - l->margin) % TABSTOP != 0 && l->column < l->columns);
}

/* The cursor stands where the next character of this width goes. */
static void setpoint(Layout *l, int width) {
  if (l->column + width > l->columns) {
    l->row++;
    l->column = l->margin;
  }
  l->pointrow = l->row;
  l->pointcolumn = l->column;
}

/* Lays out a line, the bytes from ... to, from where l is. */
static void layline(Layout *l, size_t from, size_t to) {
  const View *v = l->v;
  const char *end = v->text + to;
  size_t i = from;
  int width, n;
  l->column = l->margin;
  for (; i < to; i += (size_t)n) {
    const int role = v->role != NULL ? v->role[i] : ROLE_PLAIN;
    n = sh_nextchar(v->text + i, end, &width);
    if (v->point >= i && v->point < i + (size_t)n)
      setpoint(l, width > 0 ? width : width != 0);
    if (width >= 0) put(l, v->text + i, n, width, role);
    else if (width == WIDTH_TAB) puttab(l, role);
    else putbyte(l, (unsigned char)v->text[i], width);
  }
  if (v->point == to) setpoint(l, 1);
}

static size_t lineend(const View *v, size_t i) {
  const char *newline = memchr(v->text + i, '\n', v->size - i);
  return newline != NULL ? (size_t)(newline - v->text) : v->size;
}

/* How many rows a line takes.  ASCII that fits needs no look at widths. */
static int countrows(Layout *l, size_t from, size_t to) {
  const View *v = l->v;
  l->row = 0;
  if (to - from < (size_t)(l->columns - l->margin) &&
      (v->point < from || v->point > to)) {
    size_t i = from;
    while (i < to && v->text[i] >= ' ' && v->text[i] < 127) i++;
    if (i == to) return 1;
  }
  layline(l, from, to);
  return l->row + 1;
}

/* Counts the rows of the text and finds the cursor among them. */
static int measure(Layout *l, int *cursor) {
  const View *v = l->v;
  size_t from = 0, to;
  int total = 0;
  for (;; from = to + 1) {
    int rows;
    to = lineend(v, from);
    rows = countrows(l, from, to);
    if (v->point >= from && v->point <= to) *cursor = total + l->pointrow;
    total += rows;
    if (to == v->size) return total;
  }
}

/*
** The prompt
*/

/* The escape sequence at s: where it ends; an SGR sets *role. */
static const char *escape(const char *s, int *role) {
  const char *from = s + 2, *end;
  if (s[1] != '[') { /* of the terminal's window and such */
    while (*s != '\0' && *s != '\a' && *s != '\2') s++;
    return *s == '\a' ? s + 1 : s;
  }
  end = from + strspn(from, "0123456789;:?");
  if (*end == 'm') *role = sh_frame_style(from, (size_t)(end - from));
  if (*end == 'm' && end == from + 1 && *from == '0') *role = ROLE_PLAIN;
  return *end != '\0' ? end + 1 : end;
}

/* Draws the prompt up to a column, or only measures it; gives its width. */
static int prompt(const View *v, Frame *f, int limit) {
  const char *s = v->prompt, *end = s + strlen(s);
  int column = 0, role = ROLE_PLAIN, hidden = 0, width, n;
  for (; s < end; s += n) {
    n = 1;
    if (*s == '\1' || *s == '\2') hidden = *s == '\1';
    else if (*s == '\033') n = (int)(escape(s, &role) - s);
    else {
      n = sh_nextchar(s, end, &width);
      if (hidden || width < 0) continue;
      if (column + width > limit) return limit;
      if (f != NULL) sh_frame_put(f, 0, column, s, n, width, role);
      column += width;
    }
  }
  return column;
}

/*
** The window
*/

/* Which rows of the text are seen: as before, but the cursor's is among them,
   and no mark stands on it. */
static void clamp(View *v, int total, int room, int cursor) {
  if (room < 3) { /* there is no place for marks */
    v->top = cursor;
    return;
  }
  if (v->top > total - room) v->top = total - room;
  if (cursor < v->top + 1) v->top = cursor > 1 ? cursor - 1 : 0;
  if (cursor > v->top + room - 2) {
    v->top = cursor - room + 2;
    if (v->top > total - room) v->top = total - room;
  }
}

static void drawtext(Layout *l) {
  const View *v = l->v;
  Frame *f = l->f;
  size_t from = 0, to;
  int row = 0;
  for (; row < l->last; from = to + 1) {
    int rows;
    to = lineend(v, from);
    l->f = NULL;
    rows = countrows(l, from, to);
    l->f = f;
    if (row + rows > l->first) {
      l->row = row;
      if (row == 0 && l->first == 0) prompt(v, f, l->margin);
      layline(l, from, to);
    }
    row += rows;
    if (to == v->size) break;
  }
  sh_frame_rows(f, l->last - l->first);
}

static void mark(Frame *f, int row, int n, const char *where) {
  char text[48];
  snprintf(text, sizeof text, "... %d more %s", n, where);
  sh_frame_cut(f, row, 0);
  sh_frame_text(f, row, 0, text, ROLE_MARK, f->columns);
}

/* The first line of what is suggested. */
static void drawsuggestion(const View *v, Frame *f) {
  const int column = sh_frame_text(f, f->row, f->column, v->suggestion,
                                   ROLE_SUGGESTION, f->columns);
  if (strchr(v->suggestion, '\n') != NULL && column + 4 <= f->columns)
    sh_frame_text(f, f->row, column, " ...", ROLE_SUGGESTION, f->columns);
}

static void drawfound(const View *v, Frame *f) {
  int n = v->found != NULL ? sh_textwidth(v->found, v->nfound) : 0;
  int c = f->column;
  for (; n > 0 && c < f->used[f->row]; n--, c++)
    f->cell[f->row * f->columns + c].role = ROLE_FOUND;
}

/* A hint whose argument would not be seen begins with it. */
static void drawhint(const View *v, Frame *f, int row) {
  const char *text = v->hint;
  const int argument = sh_textwidth(text + v->from, (size_t)(v->to - v->from));
  int column = INDENT, first = column + sh_textwidth(text, (size_t)v->from), c;
  sh_frame_rows(f, row + 1);
  if (argument > 0 && first + argument + 3 > f->columns) {
    column = sh_frame_text(f, row, column, "... ", v->hintrole, f->columns);
    first = column;
    text += v->from;
  }
  sh_frame_text(f, row, column, text, v->hintrole, f->columns);
  for (c = first; c < first + argument && c < f->used[row]; c++)
    f->cell[row * f->columns + c].role = ROLE_ARGUMENT;
}

void sh_view_draw(View *v, Frame *f) {
  Layout l = { .v = v, .columns = v->columns - 1 };
  int total, cursor = 0, room, menu, hint;
  sh_frame_clear(f, l.columns);
  l.margin = prompt(v, NULL, l.columns / 2);
  total = measure(&l, &cursor);
  menu = v->whole ? 0 : sh_menu_layout(v->menu, v->rows / 3, l.columns);
  hint = !v->whole && v->hint != NULL;
  room = v->rows - menu - hint;
  if (room < 3) {
    room = v->rows;
    menu = hint = 0;
  }
  if (v->whole || total <= room) {
    v->top = 0;
    room = total;
  } else clamp(v, total, room, cursor);
  l.first = v->top;
  l.last = v->top + room < total ? v->top + room : total;
  l.f = f;
  drawtext(&l);
  f->row = cursor - v->top;
  f->column = l.pointcolumn;
  if (f->row >= f->rows) return; /* no memory */
  if (v->suggestion != NULL && !v->whole && l.columns - f->column > 2)
    drawsuggestion(v, f);
  drawfound(v, f);
  if (room > 2 && v->top > 0) mark(f, 0, v->top + 1, "above");
  if (room > 2 && v->top + room < total)
    mark(f, room - 1, total - v->top - room + 1, "below");
  if (hint) drawhint(v, f, room);
  if (menu) sh_menu_draw(v->menu, f, room + hint);
}
