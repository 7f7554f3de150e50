/* SPDX-License-Identifier: MIT */
/*
** readline_complete.c - Tab: a hook of the shell finds the candidates,
** readline inserts them, and a second Tab lists them with their signatures.
*/

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "repl/editor/readline_editor.h"

enum { LONGLIST = 24 }; /* up to here a line each */

static const EditorHooks *hooks;
static Candidates found;

static char *next(const char *text, int state) {
  static int i;
  (void)text;
  if (state == 0) i = 0;
  if (i >= found.n) return NULL;
  return strdup(found.item[i++].text);
}

/* Where the word begins depends on what is completed; so the candidates are
   found first, and what stands before the word is what ends one. */
static char *wordbreaks(void) {
  static char end[2];
  sh_freecandidates(&found);
  hooks->complete(rl_line_buffer, (size_t)rl_point, &found);
  end[0] = found.start > 0 ? rl_line_buffer[found.start - 1] : '\0';
  return end;
}

static void show(char **m, int n, int width);

/* Where an argument begins: shows the call and what fits there.  Inserts
   nothing unless there is only one candidate. */
static int showfits(void) {
  char *m[LONGLIST + 1] = { NULL };
  int i;
  if (found.n == 1 || found.n > LONGLIST) return 0;
  for (i = 0; i < found.n; i++) m[i + 1] = found.item[i].text;
  show(m, found.n, 0);
  return 1;
}

/* The matches, of which the first is what they have in common. It takes the
   place of the word, so it must not be less. */
static char **matches(const char *text) {
  char **m = rl_completion_matches(text, next);
  if (m != NULL && m[1] != NULL && strncmp(m[0], text, strlen(text)) != 0) {
    free(m[0]);
    m[0] = strdup(text);
  }
  return m;
}

static char **attempt(const char *text, int start, int end) {
  (void)end;
  rl_attempted_completion_over = 1;
  if (found.head != NULL && start == rl_point && showfits()) return NULL;
  rl_completion_suppress_append = 1;
  if (found.n == 0 || (size_t)start != found.start) return NULL;
  return matches(text);
}

static const char *note(const char *text) {
  int i;
  for (i = 0; i < found.n; i++)
    if (strcmp(found.item[i].text, text) == 0) return found.item[i].note;
  return NULL;
}

/* Writes at most room columns of s, not cutting a character. */
static int put(const char *s, int room) {
  int n = 0;
  for (; *s; s++) {
    n += (*s & 0xC0) != 0x80;
    if (n > room) return room;
    fputc(*s, rl_outstream);
  }
  return n;
}

static void one(const char *text, int columns) {
  const char *more = note(text);
  put("  ", columns);
  put(more != NULL ? more : text, columns - 3);
  fputc('\n', rl_outstream);
}

static void grid(char **m, int n, int width, int columns) {
  int across = columns / (width + 2), rows, i, j;
  if (across < 1) across = 1;
  rows = (n + across - 1) / across;
  for (i = 0; i < rows; i++) {
    for (j = i; j < n; j += rows) {
      int used = put("  ", columns) + put(m[j], columns - 3);
      while (j + rows < n && used++ < width + 2) fputc(' ', rl_outstream);
    }
    fputc('\n', rl_outstream);
  }
}

static void show(char **m, int n, int width) {
  int columns = hooks->columns(), at = rl_point, i;
  rl_point = rl_end; /* below the whole block */
  rl_redisplay();
  rl_point = at;
  fputc('\n', rl_outstream);
  if (found.head != NULL) {
    put("  ", columns);
    put(found.head, columns - 3);
    fputc('\n', rl_outstream);
  }
  if (n <= LONGLIST)
    for (i = 1; i <= n; i++) one(m[i], columns);
  else grid(m + 1, n, width, columns);
  rl_forced_update_display();
}

void rlcompletion(const EditorHooks *h) {
  hooks = h;
  rl_attempted_completion_function = attempt;
  rl_completion_display_matches_hook = show;
  rl_completion_word_break_hook = wordbreaks;
  rl_completion_query_items = 0;
  rl_basic_quote_characters = ""; /* the candidates close quotes */
  rl_sort_completion_matches = 0; /* the best are first */
}
