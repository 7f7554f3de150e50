/* SPDX-License-Identifier: MIT */
/*
** menu.c - a list of candidates: a row each with its note where they fit, else
** a grid by rows.
*/

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/editor/menu.h"

void sh_freecandidates(Candidates *c) {
  int i;
  for (i = 0; i < c->n; i++) {
    free(c->item[i].text);
    free(c->item[i].note);
  }
  free(c->item);
  free(c->head);
  memset(c, 0, sizeof *c);
}

enum { MARGIN = 2 }; /* columns before each candidate */

static int widthof(const Candidate *c) {
  return sh_textwidth(c->text, strlen(c->text));
}

static void measure(Menu *m) {
  int i;
  m->width = m->notes = 0;
  for (i = 0; i < m->c.n; i++) {
    const int width = widthof(&m->c.item[i]);
    if (width > m->width) m->width = width;
    m->notes |= m->c.item[i].note != NULL;
  }
}

void sh_menu_open(Menu *m, const Candidates *c) {
  sh_menu_close(m);
  m->c = *c;
  m->chosen = -1;
  measure(m);
}

void sh_menu_close(Menu *m) {
  sh_freecandidates(&m->c);
  memset(m, 0, sizeof *m);
  m->chosen = -1;
}

int sh_menu_isopen(const Menu *m) {
  return m->c.n > 0;
}

void sh_menu_filter(Menu *m, const char *word, size_t n) {
  int i, kept = 0;
  for (i = 0; i < m->c.n; i++) {
    Candidate *c = &m->c.item[i];
    if (strncmp(c->text, word, n) == 0) m->c.item[kept++] = *c;
    else {
      free(c->text);
      free(c->note);
    }
  }
  m->c.n = kept;
  m->chosen = -1;
  m->top = 0;
  measure(m);
}

size_t sh_menu_common(const Menu *m) {
  const char *first = m->c.item[0].text;
  size_t n = strlen(first);
  int i;
  for (i = 1; i < m->c.n; i++) {
    size_t k = 0;
    while (k < n && m->c.item[i].text[k] == first[k]) k++;
    n = k;
  }
  /* not a part of a character */
  while (n > 0 && (first[n] & 0xC0) == 0x80) n--;
  return n;
}

void sh_menu_step(Menu *m, int by) {
  int to = m->chosen + by;
  if (m->chosen < 0 && by < 0) to = m->c.n - 1;
  m->chosen = to < m->c.n && to >= 0 ? to : -1;
}

/* The rows of the list that are seen; a last row tells of the choice. */
static void scroll(Menu *m, int list) {
  const int at = m->chosen < 0 ? 0 : m->chosen / m->across;
  m->list = list;
  if (m->top > m->rows - list) m->top = m->rows - list;
  if (m->top > at) m->top = at;
  if (m->top < at - list + 1) m->top = at - list + 1;
}

int sh_menu_layout(Menu *m, int most, int columns) {
  if (!sh_menu_isopen(m)) return 0;
  if (most < 2) most = 2;
  m->across = columns / (m->width + MARGIN);
  if (m->across < 1 || (m->notes && m->c.n <= most)) m->across = 1;
  m->rows = (m->c.n + m->across - 1) / m->across;
  if (m->rows <= most - (m->across > 1 && m->notes)) {
    scroll(m, m->rows);
    return m->rows + (m->across > 1 && m->notes);
  }
  scroll(m, most - 1);
  return most;
}

/* A note that begins with the candidate, as signatures do, stands for it. */
static int includes(const Candidate *c) {
  const size_t n = strcspn(c->text, "( ");
  return c->note != NULL && strncmp(c->note, c->text, n) == 0;
}

/* One candidate with its note in a row. */
static void drawrow(const Menu *m, const Candidate *c, Frame *f, int row,
                    int role) {
  int column = MARGIN;
  const char *note = c->note;
  if (includes(c)) {
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(c->text, "( "), c->text);
    column = sh_frame_text(f, row, column, name, role, f->columns);
    note += strlen(name);
  } else {
    column = sh_frame_text(f, row, column, c->text, role, f->columns);
    if (column < MARGIN + m->width + 2) column = MARGIN + m->width + 2;
  }
  if (note != NULL) sh_frame_text(f, row, column, note, ROLE_NOTE, f->columns);
}

static void drawone(const Menu *m, int i, Frame *f, int row, int column) {
  const Candidate *c = &m->c.item[i];
  const int role = i == m->chosen ? ROLE_CHOSEN : ROLE_MENU;
  if (i == m->chosen) sh_frame_put(f, row, column, ">", 1, 1, ROLE_MENU);
  if (m->across == 1) drawrow(m, c, f, row, role);
  else
    sh_frame_text(f, row, column + MARGIN, c->text, role,
                  column + MARGIN + m->width);
}

/* "41-60 of 20000", and the note of the choice. */
static void drawstatus(const Menu *m, Frame *f, int row) {
  const int first = m->top * m->across + 1;
  int last = (m->top + m->list) * m->across, column = MARGIN;
  char where[64];
  if (last > m->c.n) last = m->c.n;
  sh_frame_rows(f, row + 1);
  if (m->list < m->rows) {
    snprintf(where, sizeof where, "%d-%d of %d", first, last, m->c.n);
    column = sh_frame_text(f, row, column, where, ROLE_MARK, f->columns) + 2;
  }
  if (m->chosen >= 0 && m->across > 1 && m->c.item[m->chosen].note != NULL)
    sh_frame_text(f, row, column, m->c.item[m->chosen].note, ROLE_NOTE,
                  f->columns);
}

void sh_menu_draw(const Menu *m, Frame *f, int row) {
  int r, c;
  for (r = 0; r < m->list; r++)
    for (c = 0; c < m->across; c++) {
      const int i = (m->top + r) * m->across + c;
      if (i < m->c.n) drawone(m, i, f, row + r, c * (m->width + MARGIN));
    }
  if (m->list < m->rows || (m->across > 1 && m->notes))
    drawstatus(m, f, row + m->list);
}
