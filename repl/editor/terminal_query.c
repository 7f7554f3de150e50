/* SPDX-License-Identifier: MIT */
/*
** terminal_query.c - sends a question to the terminal and reads the answer,
** which arrives through the keyboard.
*/

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <lauxlib.h>

#include "repl/host/repl.h"

static long now(void) {
  return (long)(nc_now() / 1000000);
}

/* Is there something to read within so many ms? */
static int ready(long ms) {
  struct pollfd p = { STDIN_FILENO, POLLIN, 0 };
  return ms >= 0 && poll(&p, 1, (int)ms) > 0 && (p.revents & POLLIN);
}

/* Is the answer complete?  Every terminal ends it with what it answers to
   "ESC [ c", which is "ESC [ ? ... c". */
static int complete(const char *s, size_t n) {
  const char *at = memchr(s, '\033', n), *end = s + n;
  for (; at != NULL; at = memchr(at + 1, '\033', (size_t)(end - at - 1))) {
    const char *p = at + 1;
    if (end - p < 2 || p[0] != '[' || p[1] != '?') continue;
    for (p += 2; p < end && ((*p >= '0' && *p <= '9') || *p == ';');) p++;
    if (p < end && *p == 'c') return 1;
  }
  return 0;
}

static size_t listen(char *buf, size_t room, long ms) {
  const long until = now() + ms;
  size_t n = 0;
  while (n < room && ready(until - now())) {
    ssize_t k = read(STDIN_FILENO, buf + n, room - n);
    if (k <= 0) break;
    n += (size_t)k;
    if (complete(buf, n)) break;
  }
  return n;
}

/* query_terminal(text, ms): what the terminal answers to text within ms; nil if
   there is no terminal, or if keys wait to be read, which must not be lost. */
int sh_query_terminal(lua_State *L) {
  size_t n;
  const char *text = luaL_checklstring(L, 1, &n);
  const long ms = (long)luaL_checkinteger(L, 2);
  struct termios old, raw;
  char buf[512];
  if (!sh_interactive() || ready(0) || tcgetattr(STDIN_FILENO, &old) != 0 ||
      tcgetpgrp(STDIN_FILENO) != getpgrp())
    return lua_pushnil(L), 1;
  raw = old;
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) return lua_pushnil(L), 1;
  n = write(STDOUT_FILENO, text, n) == (ssize_t)n ? listen(buf, sizeof buf, ms)
                                                  : 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &old);
  lua_pushlstring(L, buf, n);
  return 1;
}
