/* SPDX-License-Identifier: MIT */
/*
** terminal.c - properties of stdout and stderr: colour, UTF-8, width.
*/

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "repl/host/repl.h"

static enum Color color;
static int width, utf8, plain, suggestions = 1;

static const char *variable(const char *name) {
  const char *value = getenv(name);
  return value != NULL && *value != '\0' ? value : NULL;
}

static const char *locale; /* the LC_CTYPE locale that replaced C, or NULL */

/* Replaces the C locale of characters: what is typed may be UTF-8, which
   readline would drop.  Only after sh_setascii, which asks for the user's
   locale to decide whether anything but ASCII is written. */
static void select_ctype_locale(void) {
  const char *name = setlocale(LC_CTYPE, NULL);
  if (strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0)
    locale = setlocale(LC_CTYPE, "C.UTF-8") ? "C.UTF-8" : NULL;
}

void sh_terminal(const Options *o) {
  color = o->color;
  width = o->width;
  plain = o->plain;
  sh_setascii(o->ascii);
  select_ctype_locale();
}

const char *sh_locale(void) {
  return locale;
}

enum Color sh_setcolor(enum Color c) {
  enum Color was = color;
  color = c;
  return was;
}

void sh_setascii(int on) {
  utf8 = !on && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static int shown = STDOUT_FILENO; /* where what goes to stdout is shown */

void sh_divert(int fd) {
  shown = fd >= 0 ? fd : STDOUT_FILENO;
}

int sh_terminal_at(int fd) {
  return isatty(fd == STDOUT_FILENO ? shown : fd);
}

void sh_setwidth(int n) {
  width = n;
}

int sh_dumb(void) {
  const char *term = variable("TERM");
  return term == NULL || strcmp(term, "dumb") == 0;
}

int sh_plaindisplay(void) {
  return plain;
}

int sh_suggestions(int on) {
  if (on >= 0) suggestions = on;
  return suggestions;
}

int sh_color(int fd) {
  const char *force = variable("CLICOLOR_FORCE");
  if (color != COLOR_AUTO) return color == COLOR_ALWAYS;
  if (variable("NO_COLOR")) return 0;
  if (force != NULL && strcmp(force, "0") != 0) return 1;
  return !sh_dumb() && sh_terminal_at(fd);
}

int sh_columns(void) {
  struct winsize w;
  const char *columns = variable("COLUMNS");
  int n;
  if (width > 0) return width;
  /* COLUMNS is of when the shell started: the terminal knows better */
  if (ioctl(shown, TIOCGWINSZ, &w) == 0 && w.ws_col > 1)
    return w.ws_col - (shown != STDOUT_FILENO); /* the pager keeps one free */
  n = columns != NULL ? atoi(columns) : 0;
  return n > 0 && n < 100000 ? n : 80;
}

int sh_utf8(void) {
  return utf8;
}

int sh_interactive(void) {
  return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}
