/* SPDX-License-Identifier: MIT */
/*
** test_frame.c - frames on a screen: whatever was shown before, the terminal
** shows the last one.  The terminal is a small emulator.
*/
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "repl/editor/frame.h"

enum { ROWS = 40, COLUMNS = 24, SEQUENCE = 32 };

typedef struct Glyph {
  char text[CELL_TEXT + 1], look[SEQUENCE]; /* a blank has no text */
  int right;                                /* half of a wide character */
} Glyph;

static Glyph grid[ROWS][COLUMNS + 1];
static int row, column;
static char look[SEQUENCE];
static int ends[2];
static size_t written;

static void blank(int r, int from, int to) {
  memset(&grid[r][from], 0, sizeof(Glyph) * (size_t)(to - from));
}

static void shiftcells(int n, int insert) {
  Glyph *at = &grid[row][column];
  const size_t kept = (size_t)(COLUMNS - column - n) * sizeof *at;
  memmove(insert ? at + n : at, insert ? at : at + n, kept);
  blank(row, insert ? column : COLUMNS - n, insert ? column + n : COLUMNS);
}

static void sequence(const char *p, char last) {
  const int n = *p >= '0' && *p <= '9' ? atoi(p) : 1;
  switch (last) {
    case 'A': row -= n; break;
    case 'B': row += n; break;
    case 'C': column += n; break;
    case 'G': column = n - 1; break;
    case '@': shiftcells(n, 1); break;
    case 'P': shiftcells(n, 0); break;
    case 'K': blank(row, column, COLUMNS); break;
    case 'J':
      blank(row, column, COLUMNS);
      for (int r = row + 1; r < ROWS; r++) blank(r, 0, COLUMNS);
      break;
    case 'm': {
      const char *from = strncmp(p, "0;", 2) == 0 ? p + 2 : p;
      snprintf(look, sizeof look, "%.*s", (int)strcspn(from, "m"), from);
      break;
    }
    case 'h':
    case 'l': break;
    default: fail_msg("sequence %s", p);
  }
  assert_in_range(row, 0, ROWS - 1);
  assert_in_range(column, 0, COLUMNS - 1);
}

static const char *character(const char *s, const char *end) {
  int width, n = sh_nextchar(s, end, &width);
  Glyph *g = &grid[row][column];
  if (*s == '\r') column = 0;
  else if (*s == '\n') assert_in_range(++row, 0, ROWS - 1);
  else if (*s == '\b') column--;
  else if (width == 0) {
    g -= g[-1].right ? 2 : 1;
    strncat(g->text, s, (size_t)n);
  } else {
    assert_in_range(column + width, 1, COLUMNS - 1); /* the last stays free */
    /* half of a wide character goes with the other half */
    if (g->right) blank(row, column - 1, column);
    if (g[width].right) blank(row, column + width, column + width + 1);
    blank(row, column, column + width);
    if (*s != ' ' || *look != '\0') {
      memcpy(g->text, s, (size_t)n);
      strcpy(g->look, look);
    }
    if (width == 2) g[1].right = 1;
    column += width;
  }
  return s + n;
}

static void feed(void) {
  static char bytes[1 << 16];
  const ssize_t n = read(ends[0], bytes, sizeof bytes - 1);
  const char *s = bytes, *end = bytes + (n > 0 ? n : 0);
  bytes[n > 0 ? n : 0] = '\0';
  written += (size_t)(end - s);
  while (s < end) {
    if (*s != '\033') {
      s = character(s, end);
      continue;
    }
    const char *p = s + 2;
    s = p + strcspn(p, "ABCGJKPhlm@");
    sequence(p, *s++);
  }
}

/* Is what the terminal shows the frame? */
static void check(const Frame *f) {
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < COLUMNS - 1; c++) {
      const Cell *cell = &f->cell[r * f->columns + c];
      const int there = r < f->rows && c < f->used[r] && cell->width > 0 &&
                        !(cell->n == 1 && *cell->text == ' ');
      const char *want = there ? cell->text : "";
      const size_t n = there ? cell->n : 0;
      if (strlen(grid[r][c].text) != n || memcmp(grid[r][c].text, want, n) != 0)
        fail_msg("row %d column %d: '%s' and not '%.*s'", r, c, grid[r][c].text,
                 (int)n, want);
      if (there)
        assert_string_equal(grid[r][c].look,
                            cell->role == ROLE_STRING ? "32" : "");
    }
  assert_int_equal(row, f->row);
  assert_int_equal(column, f->column);
}

static void show(Screen *s, const Frame *f) {
  sh_screen_show(s, f);
  feed();
  check(f);
}

static void begin(Screen *s) {
  *s = (Screen){ .fd = ends[1], .color = SCREEN_COLORS, .shifts = 1 };
  memset(grid, 0, sizeof grid);
  row = column = 0;
  written = 0;
}

static void text(Frame *f, int r, const char *words, int role) {
  f->column = sh_frame_text(f, r, 0, words, role, COLUMNS - 1);
  f->row = r;
}

/* A frame of up to so many rows, whose cells are few different ones. */
static void make(Frame *f, int rows) {
  static const char *const letters[] = { "a",      "b",      " ",      "\u00e9",
                                         "\u65e5", "\u672c", "e\u0301" };
  static const int widths[] = { 1, 1, 1, 1, 2, 2, 1 };
  sh_frame_clear(f, COLUMNS - 1);
  sh_frame_rows(f, 1 + rand() % rows);
  for (int r = 0; r < f->rows; r++)
    for (int c = 0, n = rand() % COLUMNS; c < n;) {
      const int i = rand() % (rand() % 3 ? 2 : 7);
      sh_frame_put(f, r, c, letters[i], (int)strlen(letters[i]), widths[i],
                   rand() % 9 || i == 2 ? ROLE_PLAIN : ROLE_STRING);
      c += widths[i];
    }
  f->row = rand() % f->rows;
  f->column = rand() % (COLUMNS - 1);
}

/* Changes a frame a little: a row loses or gains cells, rows are put in. */
static void change(Frame *f) {
  const int r = rand() % f->rows, had = f->used[r];
  Cell *cells = &f->cell[r * f->columns];
  const int at = had > 0 ? rand() % had : 0;
  for (int c = 0; c < had; c++)
    if (cells[c].width != 1) return;
  if (rand() % 2 && had + 3 < f->columns) {
    memmove(cells + at + 3, cells + at, sizeof *cells * (size_t)(had - at));
    f->used[r] = at;
    for (int c = 0; c < 3; c++)
      sh_frame_put(f, r, at + c, "x", 1, 1, ROLE_PLAIN);
    f->used[r] = had + 3;
  } else if (had - at > 2) {
    memmove(cells + at, cells + at + 2, sizeof *cells * (size_t)(had - at - 2));
    f->used[r] = had - 2;
  }
}

static void random_frames(void **state) {
  Screen s;
  Frame f = { 0 };
  (void)state;
  begin(&s);
  srand(7);
  for (int i = 0; i < 3000; i++) {
    if (i % 3 == 0) make(&f, i % 2 ? ROWS - 1 : 3);
    else change(&f);
    show(&s, &f);
  }
  sh_frame_free(&f);
  sh_screen_free(&s);
}

static void few_bytes(void **state) {
  Screen s;
  Frame f = { 0 };
  (void)state;
  begin(&s);
  sh_frame_clear(&f, COLUMNS - 1);
  text(&f, 0, "local abcdefghijkl", ROLE_PLAIN);
  show(&s, &f);
  assert_int_equal(written, 18);
  text(&f, 0, "local abcdefghijklm", ROLE_PLAIN);
  show(&s, &f);
  assert_int_equal(written, 19); /* what is typed at the end alone */
  show(&s, &f);
  assert_int_equal(written, 19);
  text(&f, 0, "loc   al abcdefghijklm", ROLE_PLAIN);
  show(&s, &f);
  assert_in_range(written, 19, 19 + 20); /* the terminal moves the rest */
  sh_frame_free(&f);
  sh_screen_free(&s);
}

static void beginning_and_end(void **state) {
  Screen s;
  Frame f = { 0 }, none = { 0 };
  (void)state;
  begin(&s);
  sh_frame_clear(&f, COLUMNS - 1);
  for (int r = 0; r < 3; r++) text(&f, r, "text", ROLE_PLAIN);
  show(&s, &f);
  sh_screen_end(&s, 1, 2); /* keeps what stands before */
  sh_screen_flush(&s);
  feed();
  sh_frame_cut(&f, 1, 2);
  sh_frame_cut(&f, 2, 0);
  f.row = 1, f.column = 2;
  check(&f);
  sh_screen_home(&s);
  sh_screen_flush(&s);
  feed();
  sh_frame_clear(&none, COLUMNS - 1);
  sh_frame_rows(&none, 1);
  check(&none);
  sh_frame_free(&f);
  sh_frame_free(&none);
  sh_screen_free(&s);
}

static void cut_text(void **state) {
  static const struct {
    const char *text, *want;
    int limit;
  } cases[] = { { "abcdef", "abcdef", 6 },
                { "abcdefg", "abc...", 6 },
                { "abcdef\nx", "abcdef", 6 },
                { "abcdef", "...", 3 },
                { "abcdef", "..", 2 },
                { "a\tb\033c", "abc", 6 },
                { "\u65e5\u672c\u8a9e", "\u65e5...", 5 } };
  Frame f = { 0 };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char got[64] = "";
    sh_frame_clear(&f, 20);
    sh_frame_text(&f, 0, 0, cases[i].text, ROLE_PLAIN, cases[i].limit);
    for (int c = 0; c < f.used[0]; c++)
      strncat(got, f.cell[c].text, f.cell[c].n);
    assert_string_equal(got, cases[i].want);
  }
  sh_frame_free(&f);
}

static void styles(void **state) {
  const int red = sh_frame_style("31", 2);
  (void)state;
  assert_int_equal(sh_frame_style("31", 2), red);
  assert_int_not_equal(sh_frame_style("1;31", 4), red);
  assert_string_equal(sh_frame_sgr(red), "31");
  assert_int_equal(sh_frame_style("", 0), ROLE_PLAIN);
  for (int i = 0; i < 300; i++) {
    char sgr[8];
    const int n = snprintf(sgr, sizeof sgr, "%d", i);
    assert_in_range(sh_frame_style(sgr, (size_t)n), 0, ROLE_STYLES - 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_frames),
    cmocka_unit_test(few_bytes),
    cmocka_unit_test(beginning_and_end),
    cmocka_unit_test(cut_text),
    cmocka_unit_test(styles),
  };
  if (setlocale(LC_ALL, "C.UTF-8") == NULL || pipe(ends) != 0) return 77;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
