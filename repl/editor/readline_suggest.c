/* SPDX-License-Identifier: MIT */
/*
** readline_suggest.c - suggests the rest of what is typed, from the corrected
** line of the last error or from the history; and the keys that accept it.
*/

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <readline/history.h>

#include "repl/editor/readline_editor.h"
#include "repl/host/repl.h"

static char *corrected; /* NULL: there was no error, or it has no such line */
static int was_taken;   /* was a corrected line once accepted? */

/* Not where it would look as if it were typed, nor while readline searches,
   repeats or walks through the history, nor among vi's commands. */
static int wanted(void) {
  return sh_suggestions(-1) && rldrawcolor() != SCREEN_TEXT &&
         rl_point == rl_end &&
         !RL_ISSTATE(RL_STATE_SEARCH | RL_STATE_NUMERICARG) &&
         !sh_menu_isopen(rlmenu()) && rl_get_keymap() != vi_movement_keymap &&
         where_history() >= history_length;
}

/* The rest of a text that begins with the whole block; NULL: it does not. */
static const char *rest(const char *text) {
  const size_t n = (size_t)rl_end;
  return strncmp(text, rl_line_buffer, n) == 0 && text[n] ? text + n : NULL;
}

/* The rest of the corrected line or of the newest entry. */
const char *rlsuggestion(void) {
  const History *h = &sh_history;
  const char *s = NULL;
  int i;
  if (!wanted()) return NULL;
  if (corrected != NULL) s = rest(corrected);
  if (rl_end == 0) return s;
  for (i = h->n - 1; i >= 0 && s == NULL; i--) s = rest(h->entry[i].text);
  return s;
}

const char *rlsuggestnote(void) {
  return was_taken || rl_end > 0 || rlsuggestion() == NULL
             ? NULL
             : "Right takes the corrected line";
}

static void insert(const char *s, size_t n) {
  char *text = strndup(s, n);
  if (text != NULL) rl_insert_text(text);
  free(text);
}

static int isword(char c) {
  return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

/* Accepts all of a suggestion or its next word; without one does f. */
static int accept(rl_command_func_t *f, int word, int count, int key) {
  const char *s = rlsuggestion();
  size_t n = 0;
  if (s == NULL) return f(count, key);
  was_taken |= rl_end == 0;
  while (word && s[n] != '\0' && !isword(s[n])) n++;
  while (word && isword(s[n])) n++;
  insert(s, word ? n : strlen(s));
  return 0;
}

static int forward(int count, int key) {
  return rlmenustep(1, 0) ? 0 : accept(rl_forward_char, 0, count, key);
}

static int lineend(int count, int key) {
  return accept(rlend, 0, count, key);
}

static int forwardword(int count, int key) {
  return accept(rl_forward_word, 1, count, key);
}

void rlsuggestopen(void) {
  rl_add_defun("nacre-accept", forward, -1);
  rl_add_defun("nacre-accept-word", forwardword, -1);
}

void rlsuggestbegin(const EditorHooks *hooks) {
  free(corrected);
  corrected = hooks->correction();
}

void rlsuggestclose(void) {
  free(corrected);
  corrected = NULL;
}

void rlsuggestkeys(Keymap map) {
  rlbind("\\e[C", forward, map);
  rlbind("\\eOC", forward, map);
  rlbind("\\e[F", lineend, map);
  rlbind("\\eOF", lineend, map);
  rlbind("\\e[4~", lineend, map);
  rlbind("\\C-f", forward, map);
  rlbind("\\C-e", lineend, map);
  rlbind("\\e[1;5C", forwardword, map);
  rlbind("\\ef", forwardword, map);
}
