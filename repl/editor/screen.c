/* SPDX-License-Identifier: MIT */
/*
** screen.c - shows frames on a terminal, from one to the next with the fewest
** bytes.
*/

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "repl/editor/frame.h"

/* What makes each role with colours, and with attributes alone. */
static const char *const colored[ROLE_COUNT] = {
  [ROLE_KEYWORD] = "35",   [ROLE_STRING] = "32",   [ROLE_NUMBER] = "36",
  [ROLE_COMMENT] = "2",    [ROLE_UNKNOWN] = "4",   [ROLE_TENSOR] = "1",
  [ROLE_COMMAND] = "36",   [ROLE_WRONG] = "31;4",  [ROLE_FAULT] = "31;4",
  [ROLE_SUGGESTION] = "2", [ROLE_HINT] = "2",      [ROLE_ARGUMENT] = "4",
  [ROLE_ERROR] = "31",     [ROLE_CHOSEN] = "7",    [ROLE_NOTE] = "2",
  [ROLE_FOUND] = "30;43",  [ROLE_CONTROL] = "2;7", [ROLE_MARK] = "2",
};
static const char *const attributes[ROLE_COUNT] = {
  [ROLE_COMMENT] = "2",  [ROLE_UNKNOWN] = "4",    [ROLE_WRONG] = "7",
  [ROLE_FAULT] = "4",    [ROLE_SUGGESTION] = "2", [ROLE_HINT] = "2",
  [ROLE_ARGUMENT] = "4", [ROLE_CHOSEN] = "7",     [ROLE_NOTE] = "2",
  [ROLE_FOUND] = "7",    [ROLE_CONTROL] = "7",    [ROLE_MARK] = "2",
};

/* The parameters of the SGR that makes a role; "" for plain text. */
static const char *style(const Screen *s, int role) {
  const char *sgr = NULL;
  role &= ~ROLE_MATCH;
  if (role >= ROLE_COUNT) return sh_frame_sgr(role);
  if (s->color == SCREEN_COLORS) sgr = colored[role];
  if (s->color == SCREEN_ATTRIBUTES) sgr = attributes[role];
  return sgr != NULL ? sgr : "";
}

static int matched(const Screen *s, int role) {
  return (role & ROLE_MATCH) && s->color != SCREEN_TEXT;
}

static Cell *at(const Frame *f, int row, int column) {
  return f->cell + (size_t)row * (size_t)f->columns + column;
}

/*
** Bytes
*/
void sh_screen_add(Screen *s, const char *text, size_t n) {
  if (s->n + n > s->size) {
    const size_t size = 2 * s->size + n + 256;
    char *more = realloc(s->out, size);
    if (more == NULL) return;
    s->out = more;
    s->size = size;
  }
  memcpy(s->out + s->n, text, n);
  s->n += n;
}

void sh_screen_print(Screen *s, const char *text) {
  sh_screen_add(s, text, strlen(text));
}

void sh_screen_flush(Screen *s) {
  struct pollfd room = { s->fd, POLLOUT, 0 };
  size_t from = 0;
  while (from < s->n) {
    const ssize_t k = write(s->fd, s->out + from, s->n - from);
    if (k > 0) from += (size_t)k;
    else if (errno == EAGAIN) poll(&room, 1, -1);
    else if (errno != EINTR) break;
  }
  s->n = 0;
}

static void csi(Screen *s, int n, char what) {
  char text[16];
  snprintf(text, sizeof text, "\033[%d%c", n, what);
  if (n == 1) snprintf(text, sizeof text, "\033[%c", what);
  sh_screen_print(s, text);
}

/* Moves to a row; one that is not there yet is made. */
static void gorow(Screen *s, int row) {
  Frame *f = &s->shown;
  const int there = row < f->rows ? row : f->rows - 1;
  if (there > f->row) csi(s, there - f->row, 'B');
  if (there < f->row) csi(s, f->row - there, 'A');
  for (f->row = there; f->row < row; f->row++) {
    sh_screen_print(s, "\r\n");
    f->column = 0;
  }
  sh_frame_rows(f, row + 1);
}

static void go(Screen *s, int row, int column) {
  Frame *f = &s->shown;
  if (row != f->row || row >= f->rows) gorow(s, row);
  if (column == f->column) return;
  if (column == 0) sh_screen_print(s, "\r");
  else if (column == f->column - 1) sh_screen_print(s, "\b");
  else if (column == f->column + 1) csi(s, 1, 'C');
  else csi(s, column + 1, 'G');
  f->column = column;
}

/* Makes what follows look like a role; *now is what it looks like. */
static void setrole(Screen *s, int *now, int role) {
  char text[80];
  const char *sgr = style(s, role);
  const int match = matched(s, role);
  if (*sgr == '\0' && !match) role = ROLE_PLAIN;
  if (*now == role) return;
  if (role == ROLE_PLAIN) sh_screen_print(s, "\033[m");
  else {
    snprintf(text, sizeof text, "\033[%s%s%s%sm",
             *now == ROLE_PLAIN ? "" : "0;", sgr, *sgr && match ? ";" : "",
             !match                      ? ""
             : s->color == SCREEN_COLORS ? "1;4"
                                         : "4");
    sh_screen_print(s, text);
  }
  *now = role;
}

static void put(Screen *s, int *now, const Cell *cell) {
  setrole(s, now, cell->role);
  sh_screen_add(s, cell->text, cell->n);
}

/*
** Differences
*/
enum { GAP = 6 }; /* so many equal cells are cheaper to write than to skip */

static int same(const Screen *s, const Cell *a, const Cell *b) {
  if (a->n != b->n || a->width != b->width || memcmp(a->text, b->text, a->n))
    return 0;
  return a->role == b->role ||
         (matched(s, a->role) == matched(s, b->role) &&
          strcmp(style(s, a->role), style(s, b->role)) == 0);
}

/* If a row only gained or lost cells at one place, lets the terminal move the
   rest.  Not beside wide characters, which some terminals cut in half. */
static int shift(Screen *s, int row, const Cell *new, int had, int have) {
  const Cell *old = at(&s->shown, row, 0);
  const int by = have - had, least = by < 0 ? have : had;
  int c = 0, i, now = ROLE_PLAIN;
  while (c < least && same(s, &old[c], &new[c])) c++;
  if (!s->shifts || by == 0 || least - c < 2 * GAP) return 0;
  for (i = c; i < least; i++) {
    const Cell *from = &old[by < 0 ? i - by : i];
    const Cell *to = &new[by < 0 ? i : i + by];
    if (from->width != 1 || old[i].width != 1 || new[i].width != 1 ||
        !same(s, from, to))
      return 0;
  }
  go(s, row, c);
  csi(s, by < 0 ? -by : by, by < 0 ? 'P' : '@');
  for (i = 0; i < by; i++) put(s, &now, &new[c + i]);
  if (by > 0) s->shown.column += by;
  setrole(s, &now, ROLE_PLAIN);
  return 1;
}

/* The end of the cells from c on that are written in one go. */
static int runend(const Screen *s, const Cell *old, int had, const Cell *new,
                  int have, int c) {
  int end, equal = 0;
  for (end = c; end < have && equal < GAP; end++)
    equal = end < had && same(s, &old[end], &new[end]) ? equal + 1 : 0;
  if (equal == GAP || end == have) end -= equal;
  while (end < have &&
         (new[end].width == 0 || (end < had && old[end].width == 0)))
    end++;
  return end;
}

/* Writes the cells of a row that differ. */
static void rewrite(Screen *s, int row, const Cell *new, int had, int have) {
  const Cell *old = at(&s->shown, row, 0);
  int c = 0, now = ROLE_PLAIN;
  while (c < have) {
    int end;
    while (c < have && c < had && same(s, &old[c], &new[c])) c++;
    if (c == have) break;
    end = runend(s, old, had, new, have, c);
    go(s, row, c);
    for (; c < end; c++)
      if (new[c].width > 0) put(s, &now, &new[c]);
    setrole(s, &now, ROLE_PLAIN);
    s->shown.column = c;
  }
}

static void showrow(Screen *s, const Frame *want, int row) {
  Frame *f = &s->shown;
  const int have = want->used[row];
  const Cell *new = at(want, row, 0);
  int had = row < f->rows ? f->used[row] : 0;
  if (row >= f->rows) go(s, row, 0);
  if (row >= f->rows) return; /* no memory */
  if (shift(s, row, new, had, have)) had = have;
  else rewrite(s, row, new, had, have);
  if (have < had) {
    go(s, row, have);
    sh_screen_print(s, "\033[K");
  }
  memcpy(at(f, row, 0), new, sizeof *new *(size_t)have);
  f->used[row] = have;
}

static int differs(const Screen *s, const Frame *want, int row) {
  const Frame *f = &s->shown;
  return row >= f->rows || f->used[row] != want->used[row] ||
         memcmp(at(f, row, 0), at(want, row, 0),
                sizeof(Cell) * (size_t)want->used[row]) != 0;
}

void sh_screen_show(Screen *s, const Frame *want) {
  Frame *f = &s->shown;
  int row, changed = 0;
  if (f->columns != want->columns) {
    sh_frame_clear(f, want->columns);
    sh_frame_rows(f, 1);
  }
  for (row = 0; row < want->rows && changed < 2; row++)
    changed += differs(s, want, row);
  if (changed > 1) sh_screen_print(s, "\033[?2026h\033[?25l");
  for (row = 0; row < want->rows; row++) showrow(s, want, row);
  if (f->rows > want->rows) {
    go(s, want->rows, 0);
    sh_screen_print(s, "\033[J");
    f->rows = want->rows;
  }
  go(s, want->row, want->column);
  if (changed > 1) sh_screen_print(s, "\033[?25h\033[?2026l");
  sh_screen_flush(s);
}

/*
** Beginning and end of a frame
*/
int sh_screen_resize(Screen *s) {
  const int rows = s->rows, columns = s->columns;
  struct winsize w;
  s->rows = 24;
  s->columns = 80;
  if (ioctl(s->fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 && w.ws_row > 0) {
    s->rows = w.ws_row;
    s->columns = w.ws_col;
  }
  return rows != s->rows || columns != s->columns;
}

void sh_screen_end(Screen *s, int row, int column) {
  go(s, row, column);
  sh_screen_print(s, "\033[J");
}

void sh_screen_forget(Screen *s) {
  sh_frame_clear(&s->shown, s->shown.columns);
  if (s->shown.columns > 0) sh_frame_rows(&s->shown, 1);
}

void sh_screen_home(Screen *s) {
  sh_screen_end(s, 0, 0);
  sh_screen_forget(s);
}

void sh_screen_free(Screen *s) {
  sh_frame_free(&s->shown);
  free(s->out);
  memset(s, 0, sizeof *s);
}
