/* SPDX-License-Identifier: MIT */
/*
** plain_editor.c - reads lines without editing: for TERM=dumb, for builds
** without readline, and for transcripts (nacre -i < file), where prompts and
** input are echoed so that the output reads as a session.
*/

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/types.h>
#include <unistd.h>

#include "repl/editor/editor.h"
#include "repl/host/repl.h"
#include "repl/language/lex.h"

static const EditorHooks *hooks;
static int tty; /* stdin is a terminal, which echoes and edits */

static const char *name(void) {
  return "plain lines";
}

static int begin(const EditorHooks *h) {
  hooks = h;
  tty = isatty(STDIN_FILENO);
  return 1;
}

/* Waits for a line; -1 after Ctrl-C, also if both came. */
static int waitline(void) {
  sigset_t blocked, old;
  fd_set set;
  int n, cancelled;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  do {
    sigprocmask(SIG_BLOCK, &blocked, &old);
    FD_ZERO(&set);
    FD_SET(STDIN_FILENO, &set);
    n = pselect(STDIN_FILENO + 1, &set, NULL, NULL, NULL, &old);
    sigprocmask(SIG_SETMASK, &old, NULL);
    cancelled = sh_takeinterrupt();
  } while (n < 0 && errno == EINTR && !cancelled);
  return cancelled ? -1 : n;
}

/* \1 and \2 are for readline: between them nothing has a width. */
static void putprompt(const char *s, FILE *out) {
  for (; *s; s++)
    if (*s != '\1' && *s != '\2') fputc(*s, out);
  fflush(out);
}

static EditResult readaline(const char *prompt, char **line) {
  FILE *out = tty && !isatty(STDOUT_FILENO) ? stderr : stdout;
  size_t size = 0;
  ssize_t n;
  *line = NULL;
  if (tty) putprompt(prompt, out);
  if (tty && waitline() < 0) {
    fputc('\n', out);
    return EDIT_CANCEL;
  }
  if (tty) clearerr(stdin); /* of an io.read that Ctrl-C or Ctrl-D ended */
  n = getline(line, &size, stdin);
  if (n <= 0) {
    free(*line);
    *line = NULL;
    if (tty) fputc('\n', out);
    return EDIT_END;
  }
  if ((*line)[n - 1] == '\n') (*line)[n - 1] = '\0';
  if (tty) return EDIT_LINE;
  putprompt(prompt, out);
  sh_putprintable(*line, stdout);
  putchar('\n');
  return EDIT_LINE;
}

/* The line that waits behind the first of several inputs, which was shown when
   it was read, or the next one. */
static EditResult getaline(const char *prompt, char **line) {
  *line = hooks->next();
  return *line != NULL ? EDIT_LINE : readaline(prompt, line);
}

/* Takes the prompt off a line that was copied from a session; no statement of
   Lua starts with ">". */
static void dropprompt(char *line) {
  const size_t n = strncmp(line, ">>> ", 4) == 0  ? 4
                   : strncmp(line, ">> ", 3) == 0 ? 3
                   : strncmp(line, "> ", 2) == 0  ? 2
                                                  : 0;
  memmove(line, line + n, strlen(line + n) + 1);
}

/* The block so far. */
typedef struct Block {
  char *text;
  size_t n, asked; /* its length, now and when it was last compiled */
  Nested nested;   /* what has been read of it */
} Block;

/* Adds line, which it frees or becomes. */
static int add(Block *b, char *line) {
  const size_t n = strlen(line);
  char *both = b->text == NULL ? line : realloc(b->text, b->n + n + 2);
  if (b->text == NULL) b->n = n;
  else if (both != NULL) {
    both[b->n] = '\n';
    memcpy(both + b->n + 1, line, n + 1);
    b->n += n + 1;
  } else free(b->text);
  if (both != line) free(line);
  b->text = both;
  return both != NULL;
}

enum { LONG = 1 << 14 };

/* May the block be complete, or wrong?  One that is long is not compiled after
   each line, which would take the square of its length: only where no bracket
   is open, and now and then. */
static int worth_asking(Block *b) {
  Nested before = b->nested;
  b->nested.l.text = b->text;
  b->nested.l.size = b->n;
  while (before.l.at < b->n && sh_nextnested(&b->nested) && b->nested.t.closed)
    before = b->nested;
  b->nested = before; /* a token that is not closed is read again */
  return b->n < LONG || b->nested.inside == 0 || b->n - b->asked > b->n / 8;
}

static int complete(Block *b) {
  if (!worth_asking(b)) return 0;
  b->asked = b->n;
  return hooks->ready(b->text);
}

/* Of several inputs the first; the others wait. */
static EditResult complete_block(char **text) {
  char *first = hooks->split(*text);
  if (first != NULL) {
    free(*text);
    *text = first;
  }
  return EDIT_LINE;
}

static EditResult getblock(const char *prompt, const char *prompt2,
                           char **text) {
  EditResult result;
  Block block = { .nested.l.line = 1 };
  char *line;
  for (*text = NULL;; *text = block.text) {
    result = getaline(*text != NULL ? prompt2 : prompt, &line);
    if (result != EDIT_LINE) break;
    if (*text == NULL) dropprompt(line);
    if (!add(&block, line)) return *text = NULL, EDIT_END;
    if (complete(&block)) return *text = block.text, complete_block(text);
  }
  if (result == EDIT_END && *text != NULL)
    return EDIT_LINE; /* the end comes again; first say what is missing */
  free(*text);
  *text = NULL;
  return result;
}

static void remember(const char *text) {
  (void)text;
}

static int prefill(const char *text) {
  (void)text;
  return 0;
}

static int bind(const char *keys, int on, const char **why) {
  (void)keys, (void)on;
  *why = NULL;
  return 0;
}

static void end(void) {}

const Editor editor_plain = { name,    begin, getblock, remember,
                              prefill, bind,  end };
