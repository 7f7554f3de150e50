/* SPDX-License-Identifier: MIT */
/*
** output_capture.c - records what a line of the session prints, for :save
** --transcript and --record: print and the write method of files work as
** always and also note what went to stdout and stderr. Output of child
** processes and of C code is not seen. Also discards stdout while code is
** timed, and diverts it into a file whose text is the output of a command.
*/

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "repl/host/repl.h"

enum { ROOM = 1 << 16 }; /* of one line of the session; the rest is cut */

static char kept[ROOM];
static size_t used;
static int cut;
static int aside = -1;    /* what stdout was, while it leads nowhere */
static int diverted = -1; /* what stdout was, while it leads into a file */

static void keep(const char *text, size_t n) {
  if (aside >= 0 || diverted >= 0) return;
  if (n > ROOM - used) {
    n = ROOM - used;
    cut = 1;
  }
  memcpy(kept + used, text, n);
  used += n;
}

static int print(lua_State *L) {
  int i, n = lua_gettop(L);
  for (i = 1; i <= n; i++) {
    size_t size;
    const char *text = luaL_tolstring(L, i, &size);
    if (i > 1) {
      putchar('\t');
      keep("\t", 1);
    }
    fwrite(text, 1, size, stdout);
    keep(text, size);
    lua_pop(L, 1);
  }
  putchar('\n');
  keep("\n", 1);
  /* nobody may be there to end a loop; an interrupt is reported as such */
  if (fflush(stdout) != 0 && errno != EINTR)
    return luaL_error(L, "print: %s", strerror(errno));
  return 0;
}

/* The arguments from i on, as write writes them. */
static void keepall(lua_State *L, int i) {
  for (; i <= lua_gettop(L); i++) {
    size_t size;
    if (!lua_isstring(L, i)) return; /* write fails there, too */
    const char *text = luaL_tolstring(L, i, &size);
    keep(text, size);
    lua_pop(L, 1);
  }
}

static int isours(const luaL_Stream *s) {
  return s != NULL && s->closef != NULL && (s->f == stdout || s->f == stderr);
}

static int filewrite(lua_State *L) {
  if (isours(luaL_testudata(L, 1, LUA_FILEHANDLE))) keepall(L, 2);
  return sh_callwrapped(L);
}

static int iowrite(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "_IO_output"); /* io.output() */
  if (isours(luaL_testudata(L, -1, LUA_FILEHANDLE))) {
    lua_pop(L, 1);
    keepall(L, 1);
  } else lua_pop(L, 1);
  return sh_callwrapped(L);
}

/* captured(): what was printed since the last call, and whether that is not
   all of it */
static int captured(lua_State *L) {
  lua_pushlstring(L, kept, used);
  lua_pushboolean(L, cut);
  used = 0;
  cut = 0;
  return 2;
}

/* keep_output(text): as if it had been printed */
static int keepoutput(lua_State *L) {
  size_t n;
  const char *text = luaL_checklstring(L, 1, &n);
  keep(text, n);
  return 0;
}

/* Opens what stdout leads to meanwhile: a file without a name, or /dev/null,
   which is opened once. */
static int open_sink(int look) {
  static int null = -1;
  FILE *f = look ? tmpfile() : NULL;
  if (f != NULL) {
    int fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 0);
    fclose(f);
    return fd;
  }
  if (null < 0) null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  return null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, 0);
}

/* Makes stdout lead where fd does, which is closed; what it was, or -1. */
static int replace_stdout(int fd) {
  fflush(stdout);
  int was = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (was >= 0) dup2(fd, STDOUT_FILENO);
  close(fd);
  return was;
}

/* mute(look): what goes to stdout is counted, if `look', and lost; false if
   that is so already, or cannot be */
int sh_mute_stdout(lua_State *L) {
  int look = lua_toboolean(L, 1), fd;
  if (aside >= 0 || (fd = open_sink(look)) < 0) return lua_pushboolean(L, 0), 1;
  aside = replace_stdout(fd);
  return lua_pushboolean(L, aside >= 0), 1;
}

static void restore(int *was) {
  dup2(*was, STDOUT_FILENO);
  close(*was);
  *was = -1;
}

/* unmute(): how many bytes were counted */
int sh_unmute_stdout(lua_State *L) {
  off_t n;
  if (aside < 0) return lua_pushinteger(L, 0), 1;
  fflush(stdout);
  n = lseek(STDOUT_FILENO, 0, SEEK_END);
  restore(&aside);
  lua_pushinteger(L, n > 0 ? (lua_Integer)n : 0);
  return 1;
}

/* divert_stdout(shown): keeps what goes to stdout; false if that is so already,
   or cannot be. If it will be `shown', stdout still seems to be what it was. */
int sh_divert_stdout(lua_State *L) {
  const int later = lua_toboolean(L, 1);
  int fd;
  FILE *f = diverted < 0 && aside < 0 ? tmpfile() : NULL;
  if (f == NULL) return lua_pushboolean(L, 0), 1;
  fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 0);
  fclose(f);
  if (fd >= 0) diverted = replace_stdout(fd);
  if (later) sh_divert(diverted);
  return lua_pushboolean(L, diverted >= 0), 1;
}

/* diverted_text(): restores stdout; what was kept */
int sh_diverted_text(lua_State *L) {
  luaL_Buffer text;
  ssize_t n = 1;
  int from;
  luaL_buffinit(L, &text);
  if (diverted < 0) return luaL_pushresult(&text), 1;
  fflush(stdout);
  from = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  restore(&diverted);
  sh_divert(-1);
  for (off_t at = 0; from >= 0 && n > 0; at += n) {
    n = pread(from, luaL_prepbuffer(&text), LUAL_BUFFERSIZE, at);
    if (n > 0) luaL_addsize(&text, (size_t)n);
  }
  if (from >= 0) close(from);
  return luaL_pushresult(&text), 1;
}

enum { MUTED = 1, DIVERTED = 2 };

int sh_stdout_state(void) {
  return (aside >= 0 ? MUTED : 0) | (diverted >= 0 ? DIVERTED : 0);
}

void sh_restore_stdout(int state) {
  const int more = sh_stdout_state() & ~state;
  if (more) fflush(stdout);
  if (more & MUTED) restore(&aside);
  if (!(more & DIVERTED)) return;
  restore(&diverted);
  sh_divert(-1);
}

void sh_open_output_capture(lua_State *L) {
  lua_pushglobaltable(L);
  sh_wrapfield(L, "print", print);
  lua_getfield(L, -1, "io");
  sh_wrapfield(L, "write", iowrite);
  luaL_getmetatable(L, LUA_FILEHANDLE);
  lua_getfield(L, -1, "__index");
  sh_wrapfield(L, "write", filewrite);
  lua_pop(L, 4);
  luaL_requiref(L, "nacre.host", sh_openhost, 0);
  lua_pushcfunction(L, captured);
  lua_setfield(L, -2, "captured");
  lua_pushcfunction(L, keepoutput);
  lua_setfield(L, -2, "keep_output");
  lua_pop(L, 1);
}
