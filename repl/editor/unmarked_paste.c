/* SPDX-License-Identifier: MIT */
/*
** unmarked_paste.c - pasted text that the terminal did not mark: a blank line
** inside an open block does not end it.
*/

#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

#include "repl/editor/editor.h"

/* Is there more to read from the terminal?  A paste may come in pieces. */
static int more(void) {
  struct timeval wait = { 0, 20000 };
  fd_set set;
  FD_ZERO(&set);
  FD_SET(STDIN_FILENO, &set);
  return select(STDIN_FILENO + 1, &set, NULL, NULL, &wait) > 0;
}

/* A blank line that is typed submits an open block as it is.  If more lines
   follow at once, it belongs to a paste that the terminal did not mark, and
   submits nothing; nor does one that is not typed. */
int openpaste(const char *text, int (*ready)(const char *text), int typed) {
  size_t n = strlen(text);
  char *whole;
  int open;
  while (n > 0 && strchr(" \t", text[n - 1])) n--;
  if (n == 0 || text[n - 1] != '\n' || (typed && !more())) return 0;
  while (n > 0 && strchr(" \t\n", text[n - 1])) n--;
  whole = malloc(n + 1);
  if (whole == NULL) return 0;
  memcpy(whole, text, n);
  whole[n] = '\0';
  open = !ready(whole);
  free(whole);
  return open;
}
