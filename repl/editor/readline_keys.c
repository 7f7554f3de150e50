/* SPDX-License-Identifier: MIT */
/*
** readline_keys.c - the functions of keys in a block: Enter, Tab, Up, Down,
** letters that dedent, paste, help. Each has a name for ~/.inputrc; a key that
** the user bound otherwise is left alone.
*/

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "repl/editor/readline_editor.h"
#include "repl/host/repl.h"

static const EditorHooks *hooks;

static int linestart(int at) {
  while (at > 0 && rl_line_buffer[at - 1] != '\n') at--;
  return at;
}

static int lineend(int at) {
  while (at < rl_end && rl_line_buffer[at] != '\n') at++;
  return at;
}

/* To the start of the line; from there to that of the block. */
static int home(int count, int key) {
  const int start = linestart(rl_point);
  (void)count, (void)key;
  rl_point = rl_point > start ? start : 0;
  return 0;
}

int rlend(int count, int key) {
  const int end = lineend(rl_point);
  (void)count, (void)key;
  rl_point = rl_point < end ? end : rl_end;
  return 0;
}

/* Where a line that starts at start and begins with rest should begin. */
static int indent(int start, const char *rest) {
  char *text = rl_copy_text(0, start);
  int n = hooks->indent(text, rest);
  free(text);
  return n;
}

/*
** Enter and indentation
*/
static void spaces(int n) {
  while (n-- > 0) rl_insert_text(" ");
}

/* The blanks around the cursor go: so a blank line has none. */
static int newline(int count, int key) {
  const int start = linestart(rl_point);
  int from = rl_point, at = rl_point, n;
  (void)count, (void)key;
  while (at < rl_end && rl_line_buffer[at] == ' ') at++;
  while (from > start && rl_line_buffer[from - 1] == ' ') from--;
  rl_begin_undo_group();
  rl_delete_text(from, at);
  rl_point = from;
  n = indent(rl_point, rl_line_buffer + rl_point);
  rl_insert_text("\n");
  spaces(n);
  rl_end_undo_group();
  return 0;
}

/* Of several inputs the first stays on the screen; the others follow it. */
static int submit(int count, int key) {
  char *first = hooks->split(rl_line_buffer);
  (void)count, (void)key;
  if (first != NULL) {
    rl_delete_text(0, rl_end);
    rl_point = 0;
    rl_insert_text(first);
    (*rl_redisplay_function)();
    free(first);
  }
  rl_point = rl_end;
  rldrawfinish("");
  return rl_newline(1, '\n');
}

static int enter(int count, int key) {
  if (rldraws() && rlmenuaccept()) return 0;
  return hooks->ready(rl_line_buffer) ? submit(1, key) : newline(count, key);
}

static int wordsize(const char *s) {
  int n = 0;
  while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
  return n > 0 ? n : *s != '\0' && strchr(")}]", *s) != NULL;
}

/* If the line to the cursor is one word that stands where it should: its
   column, else -1.  The block's first line is never moved. */
static int column(int start) {
  const char *s = rl_line_buffer + start;
  int n = (int)strspn(s, " ");
  if (start == 0 || rl_point != lineend(rl_point)) return -1;
  if (start + n + wordsize(s + n) != rl_point) return -1;
  return indent(start - 1, s + n) == n ? n : -1;
}

/* Edits the line's first word; what makes "end", or "endless" of it, moves
   the line. */
static int edit(rl_command_func_t *f, int count, int key) {
  int start = linestart(rl_point), have = column(start), want;
  if (have < 0 || (f == rl_rubout && rl_point == start + have))
    return f(count, key);
  rl_begin_undo_group();
  f(count, key);
  want = indent(start - 1, rl_line_buffer + start + have);
  if (want < have) {
    rl_delete_text(start, start + have - want);
    rl_point -= have - want;
  } else if (want > have) {
    int at = rl_point + want - have;
    rl_point = start;
    spaces(want - have);
    rl_point = at;
  }
  rl_end_undo_group();
  return 0;
}

/* rl_insert itself goes on reading while there are keys, and a Ctrl-C after
   them would have to wait. */
static int insert(int count, int key) {
  char text[2] = { (char)key, '\0' };
  if (rl_insert_mode == 0) return rl_insert(count, key);
  while (count-- > 0) rl_insert_text(text);
  return 0;
}

/* Who indents a block of Python by hand begins at the margin: the first blank
   behind Enter takes the place of those that stand there. */
static void own_indent(void) {
  const int start = linestart(rl_point);
  int head = lineend(0);
  while (head > 0 && rl_line_buffer[head - 1] == ' ') head--;
  if (rl_last_func != enter || start == 0 || head == 0) return;
  if (rl_line_buffer[head - 1] != ':' && rl_line_buffer[0] != '@') return;
  if ((int)strspn(rl_line_buffer + start, " ") < rl_point - start) return;
  rl_delete_text(start, rl_point);
  rl_point = start;
}

static int letter(int count, int key) {
  if (key == ' ') own_indent();
  return edit(insert, count, key);
}

static int rubout(int count, int key) {
  return edit(rl_rubout, count, key);
}

static int tab(int count, int key) {
  int at = linestart(rl_point);
  while (at < rl_point && isspace((unsigned char)rl_line_buffer[at])) at++;
  if (at == rl_point) return rl_insert_text("  "), 0;
  if (rldraws()) return rlmenutab(), 0;
  /* rl_complete lists when it was called twice in a row */
  if (rl_last_func == tab) rl_last_func = rl_complete;
  return rl_complete(count, key);
}

/*
** Up and down: by line in a block, then through the history, only to what
** begins as the line did when the walk began
*/
static char *prefix;
static int up(int count, int key);
static int down(int count, int key);

static void startwalk(void) {
  if (rl_last_func == up || rl_last_func == down) return;
  free(prefix);
  prefix = rl_copy_text(0, strchr(rl_line_buffer, '\n') ? 0 : rl_point);
}

static int begins(int i) {
  HIST_ENTRY *e = history_get(history_base + i);
  return e != NULL && strncmp(e->line, prefix, strlen(prefix)) == 0 &&
         strcmp(e->line, rl_line_buffer) != 0;
}

/* Moves to the same column of the line that starts at start. */
static int moveline(int start) {
  int from = linestart(rl_point), to = start, stop = lineend(start);
  int width = 0;
  for (; from < rl_point; from++)
    width += (rl_line_buffer[from] & 0xC0) != 0x80;
  for (; to < stop; to++)
    if ((rl_line_buffer[to] & 0xC0) != 0x80 && width-- == 0) break;
  rl_point = to;
  return 0;
}

/* At the end of what was found; among vi's commands on its last letter. */
static int found(void) {
  rl_point = rl_end;
  if (rl_get_keymap() == vi_movement_keymap) rl_vi_check();
  return 0;
}

static int up(int count, int key) {
  int start = linestart(rl_point), i = where_history();
  (void)count;
  if (rldraws() && rlmenustep(-rlmenu()->across, 1)) return 0;
  startwalk();
  if (start > 0) return moveline(linestart(start - 1));
  while (--i >= 0 && !begins(i)) continue;
  if (i < 0) return 0;
  rl_get_previous_history(where_history() - i, key);
  return found();
}

static int down(int count, int key) {
  int end = lineend(rl_point), i = where_history();
  (void)count;
  if (rldraws() && rlmenustep(rlmenu()->across, 1)) return 0;
  startwalk();
  if (end < rl_end) return moveline(end + 1);
  if (i >= history_length) return 0;
  while (++i < history_length && !begins(i)) continue;
  rl_get_next_history(i - where_history(), key);
  return found();
}

/*
** Paste and help
*/
static const char pasteend[] = "\033[201~";
enum { PASTEEND = sizeof pasteend - 1 };

/* What is pasted, malloced; NULL if Ctrl-C or the end of input comes first.
   readline's own reader would not heed them.  A line ends with CR, as Enter is
   sent, with LF or with both.  A zero byte would end the text. */
static char *readpaste(void) {
  char *text = NULL;
  size_t n = 0, size = 0;
  int before = 0, c = 0;
  while (rlwaitkey() > 0) {
    before = c;
    c = rl_getc_function(rl_instream);
    if (c == EOF) break;
    if (c == '\0' || (before == '\r' && c == '\n')) continue;
    if (n + 1 >= size) {
      char *more = realloc(text, size = size ? 2 * size : 256);
      if (more == NULL) break;
      text = more;
    }
    text[n++] = (char)(c == '\r' ? '\n' : c);
    text[n] = '\0';
    if (n < PASTEEND || strcmp(text + n - PASTEEND, pasteend) != 0) continue;
    text[n - PASTEEND] = '\0';
    return text;
  }
  free(text);
  return NULL;
}

static int paste(int count, int key) {
  char *text = readpaste(), *inputs;
  size_t n;
  (void)count, (void)key;
  if (text == NULL) return 0;
  inputs = rl_point == 0 ? hooks->pasted(text) : NULL;
  if (inputs != NULL) {
    free(text);
    text = inputs;
  }
  n = strlen(text);
  while (n > 0 && text[n - 1] == '\n') text[--n] = '\0';
  rl_insert_text(text);
  free(text);
  return 0;
}

/*
** Ctrl-X Ctrl-E: the block in the user's own editor
*/
static int editblock(int count, int key) {
  char *text;
  (void)count, (void)key;
  rldrawhome();
  if (!rldraws()) rl_clear_visible_line();
  fflush(rl_outstream);
  (*rl_deprep_term_function)();
  text = sh_edittext(rl_line_buffer);
  (*rl_prep_term_function)(1);
  rldrawagain();
  if (text != NULL) {
    rl_begin_undo_group();
    rl_delete_text(0, rl_end);
    rl_point = 0;
    rl_insert_text(text);
    rl_end_undo_group();
    free(text);
  } else rl_ding();
  if (!rldraws()) rl_forced_update_display();
  return 0;
}

/*
** Ctrl-O: submits, then fetches what follows in the history
*/
static int next_entry = -1; /* counted from the oldest entry; -1: nothing */

static int submitfetch(int count, int key) {
  int here = where_history();
  if (!hooks->ready(rl_line_buffer)) return newline(count, key);
  next_entry = here < history_length ? here + 1 : -1;
  return submit(1, key);
}

int rlfetch(void) {
  int i = next_entry;
  next_entry = -1;
  if (i < 0 || i >= history_length) return 0;
  rl_get_previous_history(history_length - i, 0);
  rl_point = rl_end;
  return 1;
}

static int help(int count, int key) {
  char *text = hooks->help(rl_line_buffer, (size_t)rl_point);
  (void)count, (void)key;
  if (text == NULL) return 0;
  rldrawabove(text);
  if (!rldraws()) {
    rl_clear_visible_line();
    fputs(text, rl_outstream);
    rl_forced_update_display();
  }
  free(text);
  return 0;
}

/*
** Bindings
*/

/* What a key does by default, or in the customary inputrc for Up and Down. */
static int replaceable(rl_command_func_t *f) {
  return f == NULL || f == rl_newline || f == rl_insert || f == rl_rubout ||
         f == rl_complete || f == rl_get_previous_history ||
         f == rl_get_next_history || f == rl_history_search_backward ||
         f == rl_history_search_forward || f == rl_bracketed_paste_begin ||
         f == rl_vi_editing_mode || f == rl_operate_and_get_next ||
         f == rl_abort || f == rl_forward_char || f == rl_backward_char ||
#if RL_READLINE_VERSION >= 0x0801
         f == rl_clear_display ||
#endif
         f == rl_beg_of_line || f == rl_end_of_line || f == rl_forward_word ||
         f == rl_clear_screen;
}

void rlbind(const char *keys, rl_command_func_t *f, Keymap map) {
  char bytes[16]; /* a key sequence of ours is shorter than its name */
  int type = ISFUNC, n = 0;
  rl_command_func_t *now = NULL;
  if (rl_translate_keyseq(keys, bytes, &n) == 0)
    now = rl_function_of_keyseq_len(bytes, (size_t)n, map, &type);
  if (now == NULL || (type == ISFUNC && replaceable(now)))
    rl_bind_keyseq_in_map(keys, f, map);
}

static void bindall(Keymap map) {
  static const struct {
    const char *keys;
    rl_command_func_t *f;
  } keys[] = {
    { "\\C-m", enter },       { "\\C-j", enter },
    { "\\C-i", tab },         { "\\e\\C-m", newline },
    { "\\e\\C-j", newline },  { "\\C-x\\C-s", submit },
    { "\\e[A", up },          { "\\eOA", up },
    { "\\e[B", down },        { "\\eOB", down },
    { "\\e[H", home },        { "\\eOH", home },
    { "\\e[1~", home },       { "\\e[200~", paste },
    { "\\eh", help },         { "\\eOP", help },
    { "\\e[11~", help },      { "\\C-?", rubout },
    { "\\C-h", rubout },      { "\\C-x\\C-e", editblock },
    { "\\C-o", submitfetch },
  };
  size_t i;
  int c;
  for (i = 0; i < sizeof keys / sizeof *keys; i++)
    rlbind(keys[i].keys, keys[i].f, map);
  for (c = ' '; c <= '~'; c++)
    if (map[c].type == ISFUNC && map[c].function == rl_insert)
      rl_bind_key_in_map(c, letter, map);
}

/* vi's commands that go up and down. */
static void bindcommands(Keymap map) {
  static const char *const ups[] = { "k", "-", "\\e[A", "\\eOA" },
                           *const downs[] = { "j", "+", "\\e[B", "\\eOB" };
  size_t i;
  for (i = 0; i < sizeof ups / sizeof *ups; i++) {
    rlbind(ups[i], up, map);
    rlbind(downs[i], down, map);
  }
  rl_bind_key_in_map('\r', enter, map);
}

void rlsearchkeys(void) {
  const int searching = RL_ISSTATE(RL_STATE_ISEARCH) != 0;
  rl_command_func_t *from = searching ? rubout : rl_rubout;
  Keymap map = rl_get_keymap();
  for (int i = 0; i < 2; i++) {
    KEYMAP_ENTRY *key = &map[i == 0 ? '\b' : 127];
    if (key->type == ISFUNC && key->function == from)
      key->function = searching ? rl_rubout : rubout;
  }
}

void rlkeys(const EditorHooks *h) {
  hooks = h;
  rl_add_defun("nacre-enter", enter, -1);
  rl_add_defun("nacre-newline", newline, -1);
  rl_add_defun("nacre-submit", submit, -1);
  rl_add_defun("nacre-complete", tab, -1);
  rl_add_defun("nacre-up", up, -1);
  rl_add_defun("nacre-down", down, -1);
  rl_add_defun("nacre-help", help, -1);
  rl_add_defun("nacre-edit", editblock, -1);
  rl_add_defun("nacre-submit-and-fetch", submitfetch, -1);
  rl_initialize(); /* reads inputrc, which may use these names */
  /* else the erase key is bound anew at every prompt */
  rl_variable_bind("bind-tty-special-chars", "off");
  /* we mark brackets; this also gives ) ] } the function of letters again */
  if (rldraws()) rl_variable_bind("blink-matching-paren", "off");
  bindall(emacs_standard_keymap);
  rlbind("\\C-a", home, emacs_standard_keymap);
  bindall(vi_insertion_keymap);
  bindcommands(vi_movement_keymap);
}
