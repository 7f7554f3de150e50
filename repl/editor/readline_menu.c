/* SPDX-License-Identifier: MIT */
/*
** readline_menu.c - the menu of candidates and its keys.
**
** The menu belongs to a text and a place in it.  No keymap of its own is
** needed: who asks for the menu after another key gets it filtered by what was
** typed, or closed.  A choice is put in as an undo group, which the next choice
** takes back.
*/

#include <stdlib.h>
#include <string.h>

#include "repl/editor/readline_editor.h"

static const EditorHooks *hooks;
static Menu menu = { .chosen = -1 };
static char *text; /* that the menu belongs to */
static int point;
static int filtered; /* was something typed since it was opened? */

void rlmenuclose(void) {
  sh_menu_close(&menu);
  free(text);
  text = NULL;
}

/* The menu belongs to the text as it is now. */
static void keep(void) {
  free(text);
  text = strdup(rl_line_buffer);
  point = rl_point;
}

static int belongs(void) {
  return text != NULL && point == rl_point && strcmp(text, rl_line_buffer) == 0;
}

static void fill(void) {
  Candidates found = { 0 };
  hooks->complete(rl_line_buffer, (size_t)rl_point, &found);
  sh_menu_open(&menu, &found);
}

/* Letters were typed at the end of the word: fewer candidates are left.  Notes
   come with a list that is short enough for them. */
static void follow(void) {
  const size_t start = menu.c.start;
  const int grown = menu.chosen < 0 && rl_point > point && text != NULL &&
                    strncmp(text, rl_line_buffer, (size_t)point) == 0 &&
                    strcmp(text + point, rl_line_buffer + rl_point) == 0 &&
                    !RL_ISSTATE(RL_STATE_SEARCH);
  if (!grown) {
    rlmenuclose();
    return;
  }
  sh_menu_filter(&menu, rl_line_buffer + start, (size_t)rl_point - start);
  if (menu.c.n < 30) fill();
  if (!sh_menu_isopen(&menu) || menu.c.start != start) rlmenuclose();
  else keep();
  filtered = 1;
}

Menu *rlmenu(void) {
  if (sh_menu_isopen(&menu) && !belongs()) follow();
  return &menu;
}

static void replaceword(const char *s, size_t n) {
  char *word = strndup(s, n);
  if (word == NULL) return;
  rl_begin_undo_group();
  rl_delete_text((int)menu.c.start, rl_point);
  rl_point = (int)menu.c.start;
  rl_insert_text(word);
  rl_end_undo_group();
  free(word);
}

int rlmenustep(int by, int inanycase) {
  if (!sh_menu_isopen(rlmenu()) || (menu.chosen < 0 && !inanycase)) return 0;
  if (menu.chosen >= 0) rl_do_undo();
  sh_menu_step(&menu, by);
  if (menu.chosen >= 0) {
    const char *s = menu.c.item[menu.chosen].text;
    replaceword(s, strlen(s));
  }
  keep();
  return 1;
}

int rlmenuaccept(void) {
  if (!sh_menu_isopen(rlmenu()) || menu.chosen < 0) return 0;
  rlmenuclose();
  return 1;
}

/* How much of what the candidates have in common can be put in: the whole of
   a single one, else what begins with the word. */
static size_t common(void) {
  const size_t typed = (size_t)rl_point - menu.c.start;
  const char *first = menu.c.item[0].text;
  size_t n;
  if (menu.c.n == 1) return strlen(first);
  if (typed == 0 && menu.c.head != NULL) return 0; /* arguments that fit */
  n = sh_menu_common(&menu);
  if (n <= typed || strncmp(first, rl_line_buffer + menu.c.start, typed) != 0)
    return 0;
  return n;
}

int rlmenutab(void) {
  const int open = sh_menu_isopen(rlmenu());
  size_t n;
  if (open && (!filtered || menu.chosen >= 0)) return rlmenustep(1, 1);
  fill();
  filtered = 0;
  if (!sh_menu_isopen(&menu)) {
    rlmenuclose();
    return 0;
  }
  n = common();
  if (n > 0) replaceword(menu.c.item[0].text, n);
  if (menu.c.n == 1) rlmenuclose();
  else keep();
  return open && n == 0 ? rlmenustep(1, 1) : 1;
}

/* From the end of what matches to the start of the word. */
void rlmenulist(char **matches, int n, int width) {
  Candidates found = { .item = calloc((size_t)n, sizeof *found.item) };
  size_t k = strlen(matches[1]);
  int i;
  (void)width;
  if (found.item == NULL) return;
  for (i = 1; i <= n; i++) {
    found.item[found.n].text = strdup(matches[i]);
    if (found.item[found.n].text != NULL) found.n++;
  }
  while (k > 0 && (k > (size_t)rl_point ||
                   memcmp(rl_line_buffer + rl_point - k, matches[1], k) != 0))
    k--;
  found.start = (size_t)rl_point - k;
  sh_menu_open(&menu, &found);
  filtered = 0;
  keep();
}

static int backtab(int count, int key) {
  (void)count, (void)key;
  rlmenustep(-1, 1);
  return 0;
}

static int backward(int count, int key) {
  return rlmenustep(-1, 0) ? 0 : rl_backward_char(count, key);
}

static int quit(int count, int key) {
  if (!sh_menu_isopen(rlmenu())) return rl_abort(count, key);
  if (menu.chosen >= 0) rl_do_undo();
  rlmenuclose();
  return 0;
}

void rlmenuopen(const EditorHooks *h) {
  hooks = h;
  rl_add_defun("nacre-complete-back", backtab, -1);
}

void rlmenukeys(Keymap map) {
  rlbind("\\e[Z", backtab, map);
  rlbind("\\C-g", quit, map);
  rlbind("\\e[D", backward, map);
  rlbind("\\eOD", backward, map);
}
