/* SPDX-License-Identifier: MIT */
/*
** paste.c - text copied from a session: lines behind "> " or ">> " are its
** input, the others what it printed.  No Lua statement starts with ">".
*/
#include <string.h>

#include "editor.h"

static size_t promptsize(const char *line) {
  if (strncmp(line, ">> ", 3) == 0) return 3;
  if (strncmp(line, "> ", 2) == 0) return 2;
  return 0;
}

void stripprompts(char *text) {
  char *to = text;
  const char *from = text + strspn(text, "\n");
  if (promptsize(from) == 0) return;
  while (*from != '\0') {
    size_t n = strcspn(from, "\n"), skip = promptsize(from);
    if (skip > 0) {
      memmove(to, from + skip, n - skip);
      to += n - skip;
      *to++ = '\n';
    }
    from += n + (from[n] == '\n');
  }
  to[-1] = '\0'; /* there was at least the first line */
}
