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

static EditResult getaline(const char *prompt, char **line) {
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
  puts(*line);
  return EDIT_LINE;
}

/* Takes the prompt off a line that was copied from a session; no statement of
   Lua starts with ">". */
static void dropprompt(char *line) {
  const size_t n = strncmp(line, ">> ", 3) == 0  ? 3
                   : strncmp(line, "> ", 2) == 0 ? 2
                                                 : 0;
  memmove(line, line + n, strlen(line + n) + 1);
}

/* Adds line to the block, which it frees or becomes. */
static char *joined(char *block, char *line) {
  if (block == NULL) return line;
  size_t n = strlen(block);
  char *both = realloc(block, n + strlen(line) + 2);
  if (both != NULL) {
    both[n] = '\n';
    strcpy(both + n + 1, line);
  } else free(block);
  free(line);
  return both;
}

static EditResult getblock(const char *prompt, const char *prompt2,
                           char **text) {
  EditResult result;
  char *line;
  *text = NULL;
  for (;;) {
    result = getaline(*text != NULL ? prompt2 : prompt, &line);
    if (result != EDIT_LINE) break;
    if (*text == NULL) dropprompt(line);
    if ((*text = joined(*text, line)) == NULL) return EDIT_END;
    if (hooks->ready(*text)) return EDIT_LINE;
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

static void end(void) {}

const Editor editor_plain = { name, begin, getblock, remember, prefill, end };
