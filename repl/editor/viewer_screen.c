/* SPDX-License-Identifier: MIT */
/*
** viewer_screen.c - the whole window for the pager and :view: frames on the
** terminal's other screen, and keys by name.  The Lua module full_screen.lua
** calls it.
**
** Keys arrive one by one and make no signal.  A signal that ends the program
** first restores the terminal; Ctrl-Z does so until the program goes on.
*/

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

#include <lauxlib.h>

#include "repl/editor/frame.h"
#include "repl/host/repl.h"

enum { ESCAPE = 27, WAIT = 50 /* ms for the rest of a sequence */ };
static const char enter_text[] = "\033[?1049h\033[H\033[J";
static const char leave_text[] = "\033[m\033[?25h\033[?1049l";

static const int caught[] = { SIGWINCH, SIGTERM, SIGHUP, SIGQUIT };
enum { NCAUGHT = sizeof caught / sizeof *caught };

static Screen screen;
static Frame frame;
static struct termios cooked;
static struct sigaction before[NCAUGHT];
static int open_now;
static volatile sig_atomic_t resized;

/* Called by a signal handler, too. */
static void restore(void) {
  const ssize_t ignored = write(screen.fd, leave_text, sizeof leave_text - 1);
  (void)ignored;
  tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
}

static void onsignal(int sig) {
  int i = 0;
  while (caught[i] != sig) i++;
  if (sig == SIGWINCH) {
    resized = 1;
    if (before[i].sa_handler != SIG_IGN && before[i].sa_handler != SIG_DFL)
      before[i].sa_handler(sig); /* the line editor wants to know, too */
    return;
  }
  restore();
  sigaction(sig, &before[i], NULL);
  raise(sig);
}

static void catchsignals(void) {
  struct sigaction action = { .sa_handler = onsignal };
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < NCAUGHT; i++) sigaction(caught[i], &action, &before[i]);
}

static void releasesignals(void) {
  for (int i = 0; i < NCAUGHT; i++) sigaction(caught[i], &before[i], NULL);
}

/* The other screen, empty, and keys one by one. */
static int prepare(void) {
  struct termios raw = cooked;
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
  raw.c_oflag &= ~(tcflag_t)OPOST;
  raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0) return 0;
  sh_screen_forget(&screen);
  sh_screen_print(&screen, enter_text);
  sh_screen_flush(&screen);
  return 1;
}

/* viewer_open(): takes the window; false if it cannot be had. */
int sh_viewer_open(lua_State *L) {
  int ok = !open_now && sh_interactive() && !sh_dumb() &&
           tcgetattr(STDIN_FILENO, &cooked) == 0 &&
           tcgetpgrp(STDIN_FILENO) == getpgrp();
  if (ok) {
    fflush(stdout);
    screen.fd = STDOUT_FILENO;
    screen.color = sh_color(STDOUT_FILENO) ? SCREEN_COLORS : SCREEN_ATTRIBUTES;
    sh_screen_resize(&screen);
    catchsignals();
    open_now = 1;
    if (!(ok = prepare())) {
      releasesignals();
      open_now = 0;
    }
  }
  lua_pushboolean(L, ok);
  return 1;
}

/* viewer_close(): gives the window back; may be called twice. */
int sh_viewer_close(lua_State *L) {
  (void)L;
  if (!open_now) return 0;
  open_now = 0;
  restore();
  releasesignals();
  sh_screen_free(&screen);
  sh_frame_free(&frame);
  return 0;
}

/* viewer_size(): its rows and columns */
int sh_viewer_size(lua_State *L) {
  if (!open_now) {
    screen.fd = STDOUT_FILENO;
    sh_screen_resize(&screen);
  }
  lua_pushinteger(L, screen.rows);
  lua_pushinteger(L, screen.columns);
  return 2;
}

/*
** Drawing
*/

/* The role that the escape sequence at s makes; *end is behind it. */
static int escape(const char *s, const char *stop, const char **end, int role) {
  const char *p = s + 1;
  if (p < stop && *p == '[')
    for (p++; p < stop && (*p < '@' || *p > '~');) p++;
  *end = p < stop ? p + 1 : stop;
  if (p >= stop || *p != 'm') return role;
  if (p - s == 2 || (p - s == 3 && s[2] == '0')) return ROLE_PLAIN;
  return sh_frame_style(s + 2, (size_t)(p - s - 2));
}

/* One character at a column, of which `skip' are left of the window; returns
   the column behind it. */
static int character(int row, int column, int skip, const char *s, int n,
                     int width, int role) {
  char name[8];
  if (width == WIDTH_TAB) return (column / 4 + 1) * 4;
  if (width < 0) { /* a control character, or no character */
    n = snprintf(name, sizeof name, width == WIDTH_CONTROL ? "^%c" : "\\x%02X",
                 width == WIDTH_CONTROL ? (*s ^ 64) & 127 : *s & 255);
    for (int i = 0; i < n; i++)
      column = character(row, column, skip, name + i, 1, 1, ROLE_CONTROL);
    return column;
  }
  if (column >= skip && column - skip + width < screen.columns)
    sh_frame_put(&frame, row, column - skip, s, n, width, role);
  return column + width;
}

/* Puts a line with escape sequences into a row. */
static void put(int row, const char *s, size_t size, int skip) {
  const char *end = s + size;
  int column = 0, role = ROLE_PLAIN;
  while (s < end && column - skip < screen.columns) {
    int width, n;
    if (*s == ESCAPE) {
      role = escape(s, end, &s, role);
      continue;
    }
    n = sh_nextchar(s, end, &width);
    column = character(row, column, skip, s, n, width, role);
    s += n;
  }
}

/* viewer_show(lines, skip, row, column): lines as rows of the window, without
   their first `skip' columns; the last line, which tells where one is, is
   shown whole.  The cursor goes to row and column, from 1. */
int sh_viewer_show(lua_State *L) {
  const int skip = (int)luaL_checkinteger(L, 2);
  luaL_checktype(L, 1, LUA_TTABLE);
  sh_frame_clear(&frame, screen.columns);
  if (!sh_frame_rows(&frame, screen.rows)) return 0;
  for (int i = 0; i < screen.rows; i++) {
    size_t n;
    const char *s;
    if (lua_rawgeti(L, 1, i + 1) == LUA_TSTRING) {
      s = lua_tolstring(L, -1, &n);
      put(i, s, n, i + 1 < screen.rows ? skip : 0);
    }
    lua_pop(L, 1);
  }
  frame.row = (int)luaL_checkinteger(L, 3) - 1;
  frame.column = (int)luaL_checkinteger(L, 4) - 1;
  luaL_argcheck(L, frame.row >= 0 && frame.row < screen.rows, 3, "no such row");
  luaL_argcheck(L, frame.column >= 0 && frame.column < screen.columns, 4,
                "no such column");
  sh_screen_show(&screen, &frame);
  return 0;
}

/*
** Keys
*/

/* Is there a byte within so many ms, or at all? -1: a signal came. */
static int ready(int ms) {
  struct timespec time = { 0, ms * 1000000L };
  fd_set set;
  FD_ZERO(&set);
  FD_SET(STDIN_FILENO, &set);
  return pselect(STDIN_FILENO + 1, &set, NULL, NULL, ms < 0 ? NULL : &time,
                 NULL);
}

static int byte(void) {
  unsigned char c;
  return read(STDIN_FILENO, &c, 1) == 1 ? c : -1;
}

typedef struct Key {
  const char *sequence, *name;
} Key;

/* What follows ESC. */
static const Key keys[] = {
  { "[A", "up" },     { "OA", "up" },        { "[B", "down" },
  { "OB", "down" },   { "[C", "right" },     { "OC", "right" },
  { "[D", "left" },   { "OD", "left" },      { "[H", "home" },
  { "OH", "home" },   { "[1~", "home" },     { "[7~", "home" },
  { "[F", "end" },    { "OF", "end" },       { "[4~", "end" },
  { "[8~", "end" },   { "[5~", "pageup" },   { "[6~", "pagedown" },
  { "[1;5H", "top" }, { "[1;5F", "bottom" }, { "", "escape" },
};

/* The name of a sequence, whose ESC was read; "" if it is unknown. */
static const char *sequence(void) {
  char text[16];
  size_t n = 0;
  while (n < sizeof text - 1 && ready(WAIT) > 0) {
    const int c = byte();
    if (c < 0) break;
    text[n++] = (char)c;
    if (n > 1 && c >= '@' && c <= '~') break;
  }
  text[n] = '\0';
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (strcmp(keys[i].sequence, text) == 0) return keys[i].name;
  return "";
}

/* Ctrl-Z: the program stops, and takes the window again when it goes on. */
static void suspend(void) {
  restore();
  raise(SIGTSTP);
  prepare();
  sh_screen_resize(&screen);
}

static const char *control(int c) {
  switch (c) {
    case 2: return "pageup";    /* Ctrl-B, as in less */
    case 3: return "interrupt"; /* Ctrl-C */
    case 4: return "interrupt";
    case 6: return "pagedown";
    case 8:
    case 127: return "rubout";
    case 12: return "redraw";
    case '\n':
    case '\r': return "enter";
    case ESCAPE: return sequence();
    default: return "";
  }
}

/* The bytes of a character that begins with c. */
static void pushcharacter(lua_State *L, int c) {
  char text[4] = { (char)c };
  int n = 1, all = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
  while (n < all && ready(WAIT) > 0 && (c = byte()) >= 0) text[n++] = (char)c;
  lua_pushlstring(L, text, (size_t)n);
}

/* viewer_key(): waits for a key; a character, or the name of another key, or
   "resize"; "interrupt" is also the end of the input, "" an unknown key */
int sh_viewer_key(lua_State *L) {
  int c;
  if (nc_interrupted) return lua_pushliteral(L, "interrupt"), 1;
  if (!resized && ready(-1) < 0 && errno != EINTR)
    return lua_pushliteral(L, "interrupt"), 1;
  if (resized) {
    resized = 0;
    sh_screen_resize(&screen);
    sh_screen_home(&screen);
    return lua_pushliteral(L, "resize"), 1;
  }
  if (ready(0) <= 0) return lua_pushliteral(L, ""), 1;
  if ((c = byte()) < 0) return lua_pushliteral(L, "interrupt"), 1;
  if (c == 26) {
    suspend();
    return lua_pushliteral(L, "resize"), 1;
  }
  if (c == 12) sh_screen_home(&screen);
  if (c >= ' ' && c != 127) pushcharacter(L, c);
  else lua_pushstring(L, control(c));
  return 1;
}
