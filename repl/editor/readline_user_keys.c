/* SPDX-License-Identifier: MIT */
/*
** readline_user_keys.c - keys that call functions of the user's. A key of ours
** and one that only begins others cannot be taken.
*/

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "repl/editor/readline_editor.h"

enum { KEYS = 64, LENGTH = 16, MAPS = 2 };

/* A key, its bytes, and what it did before. */
typedef struct UserKey {
  char name[LENGTH], bytes[LENGTH];
  int n;
  rl_command_func_t *before[MAPS];
} UserKey;

static UserKey keys[KEYS];
static int nkeys;
static const EditorHooks *hooks;

void rluserkeys(const EditorHooks *h) {
  hooks = h;
}

static Keymap map_of(int i) {
  return i == 0 ? emacs_standard_keymap : vi_insertion_keymap;
}

static int find(const char *bytes, int n) {
  for (int i = 0; i < nkeys; i++)
    if (keys[i].n == n && memcmp(keys[i].bytes, bytes, (size_t)n) == 0)
      return i;
  return -1;
}

/* The line becomes what the function of the key that was pressed gives. */
static int run(int count, int key) {
  const int i = find(rl_executing_keyseq, rl_key_sequence_length);
  char *left = rl_copy_text(0, rl_point), *text;
  size_t point = 0;
  (void)count, (void)key;
  text =
      i < 0 ? NULL : hooks->key(i + 1, left, rl_line_buffer + rl_point, &point);
  free(left);
  if (text == NULL) return 0;
  rl_begin_undo_group();
  rl_delete_text(0, rl_end);
  rl_point = 0;
  rl_insert_text(text);
  rl_end_undo_group();
  rl_point = point < (size_t)rl_end ? (int)point : rl_end;
  free(text);
  return 0;
}

/* The name of a function of ours, "" if it has none; NULL: of readline's. */
static const char *own_name(rl_command_func_t *f) {
  for (int i = 0; funmap[i] != NULL; i++)
    if (funmap[i]->function == f)
      return strncmp(funmap[i]->name, "nacre-", 6) == 0 ? funmap[i]->name
                                                        : NULL;
  return "";
}

/* Why a key cannot be bound; NULL if it can. */
static const char *refusal(const char *bytes, int n, Keymap map) {
  static char text[80];
  const unsigned char first = (unsigned char)bytes[0];
  rl_command_func_t *now;
  const char *name;
  int type = ISFUNC;
  if (n == 1 && (first == 3 || first == 4 || first == 26 || first == 28))
    return "it interrupts, leaves or stops the shell";
  if (n == 1 && first == 7) return "it takes back what was begun";
  if (first >= ' ' && first != 127) return "it is text that is typed";
  now = rl_function_of_keyseq_len(bytes, (size_t)n, map, &type);
  if (type == ISKMAP && now != NULL) return "other keys begin with it";
  if (type == ISMACR) return "~/.inputrc gives it a text";
  if (now == NULL || now == run || (name = own_name(now)) == NULL) return NULL;
  snprintf(text, sizeof text, "the shell itself uses it%s%s",
           *name != '\0' ? ": " : "", name);
  return text;
}

static int bind(UserKey *key, int on) {
  for (int i = 0; i < MAPS; i++)
    if (rl_bind_keyseq_in_map(key->name, on ? run : key->before[i],
                              map_of(i)) != 0)
      return 0;
  return 1;
}

int rlbinduser(const char *name, int on, const char **why) {
  UserKey key = { .n = 0 };
  char bytes[2 * LENGTH + 1];
  int i, type;
  *why = "it is no key: \"\\\\C-t\", \"\\\\et\" and \"\\\\e[15~\" are some";
  if (*name == '\0' || strlen(name) >= LENGTH ||
      rl_translate_keyseq(name, bytes, &key.n) != 0 || key.n < 1 ||
      key.n > LENGTH)
    return 0;
  if ((i = find(bytes, key.n)) >= 0) return bind(&keys[i], on) ? i + 1 : 0;
  *why = nkeys == KEYS ? "there are 64 keys already" : NULL;
  for (i = 0; i < MAPS && *why == NULL; i++)
    *why = refusal(bytes, key.n, map_of(i));
  if (*why != NULL) return 0;
  strcpy(key.name, name);
  memcpy(key.bytes, bytes, (size_t)key.n);
  for (i = 0; i < MAPS; i++)
    key.before[i] =
        rl_function_of_keyseq_len(bytes, (size_t)key.n, map_of(i), &type);
  keys[nkeys] = key;
  return bind(&keys[nkeys], on) ? ++nkeys : 0;
}
