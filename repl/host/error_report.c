/* SPDX-License-Identifier: MIT */
/*
** error_report.c - protected calls of user programs, and the report of their
** errors and warnings.
*/

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "core/transport.h"
#include "repl/host/repl.h"

static const char skipkey; /* its address is the name of skip's metatable */

/*
** skip("reason"): the program cannot do its work here; exit status 77
*/
static int skip(lua_State *L) {
  const char *reason = luaL_optstring(L, 1, "no reason given");
  lua_createtable(L, 0, 1);
  lua_pushstring(L, reason);
  lua_setfield(L, -2, "message");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &skipkey);
  lua_setmetatable(L, -2);
  return lua_error(L);
}

static int skiptext(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_getfield(L, 1, "message");
  lua_pushfstring(L, "skip: %s", lua_tostring(L, -1));
  return 1;
}

static int isskip(lua_State *L, int i) {
  int same;
  if (!lua_getmetatable(L, i)) return 0;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &skipkey);
  same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same;
}

void sh_skipfunction(lua_State *L) {
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, skiptext);
  lua_setfield(L, -2, "__tostring");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &skipkey);
  lua_register(L, "skip", skip);
}

/*
** warn: on from the start, "@off" and "@on" switch it
*/
static void warnon(void *ud, const char *text, int more);

static void warnoff(void *ud, const char *text, int more) {
  if (!more && strcmp(text, "@on") == 0) lua_setwarnf(ud, warnon, ud);
}

void sh_putprintable(const char *text, FILE *out) {
  while (*text) {
    const size_t n = strcspn(text, "\n\t\\"), room = 4 * n + 16;
    char *part = malloc(room);
    if (part != NULL) fputs(nc_printable(part, room, text, n), out);
    free(part);
    text += n;
    if (*text) fputc(*text++, out);
  }
}

static void warnrest(void *ud, const char *text, int more) {
  sh_putprintable(text, stderr);
  if (more) return;
  fputc('\n', stderr);
  lua_setwarnf(ud, warnon, ud);
}

static void warnon(void *ud, const char *text, int more) {
  if (!more && text[0] == '@') {
    if (strcmp(text, "@off") == 0) lua_setwarnf(ud, warnoff, ud);
    return;
  }
  fflush(stdout);
  fputs("warning: ", stderr);
  lua_setwarnf(ud, warnrest, ud);
  warnrest(ud, text, more);
}

void sh_warnings(lua_State *L) {
  lua_setwarnf(L, warnon, L);
}

/*
** Calls and their errors
*/

/* Pushes FUNCTION of module nacre.errors; 0 and nothing pushed if that
   cannot be.  The module is loaded on a stack of its own: this one may have
   just overflowed. */
static int errorsfunction(lua_State *L, const char *function) {
  lua_State *other = lua_newthread(L);
  int ok;
  lua_getglobal(other, "require");
  lua_pushliteral(other, "nacre.errors");
  ok = lua_pcall(other, 1, 1, 0) == LUA_OK && lua_istable(other, -1) &&
       lua_getfield(other, -1, function) == LUA_TFUNCTION;
  if (ok) lua_xmove(other, L, 1);
  lua_remove(L, ok ? -2 : -1); /* the thread */
  return ok;
}

static int traceback(lua_State *L) {
  const char *text;
  if (isskip(L, 1)) return 1;
  sh_pause_interrupts(1);
  if (errorsfunction(L, "capture")) {
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 2);
    if (lua_pcall(L, 2, 1, 0) == LUA_OK) return 1;
  }
  lua_settop(L, 1);
  text = luaL_tolstring(L, 1, NULL);
  luaL_traceback(L, L, text, 1);
  return 1;
}

/* Pushes the text of the error at the top, as nacre.errors renders it. */
static void rendered(lua_State *L) {
  int error = lua_gettop(L);
  if (errorsfunction(L, "render")) {
    lua_pushvalue(L, error);
    lua_createtable(L, 0, 3);
    lua_pushboolean(L, sh_color(STDERR_FILENO));
    lua_setfield(L, -2, "color");
    lua_pushinteger(L, sh_columns());
    lua_setfield(L, -2, "width");
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "script");
    if (lua_pcall(L, 2, 1, 0) == LUA_OK && lua_isstring(L, -1)) return;
  }
  luaL_tolstring(L, error, NULL);
}

/* Pushes what tells the ranks of several processes apart. [-0, +1, m] */
static void push_rank(lua_State *L) {
  const Transport *t = nc_open_transport();
  if (t == NULL || t->size == 1) lua_pushliteral(L, "");
  else
    lua_pushfstring(L, "[rank %d of %d, %s] ", t->rank, t->size,
                    t->host(t->rank));
}

static int reporter(lua_State *L) {
  const char *text;
  size_t n;
  push_rank(L);
  lua_insert(L, 1);
  rendered(L);
  lua_remove(L, 2);
  text = lua_tolstring(L, 2, &n);
  if (n == 0 || text[n - 1] != '\n') lua_pushliteral(L, "\n");
  lua_concat(L, lua_gettop(L));
  text = lua_tolstring(L, 1, &n);
  fwrite(text, 1, n, stderr); /* at once: others write there, too */
  return 0;
}

/* Prints the error on top of the stack and pops it. */
int sh_report(lua_State *L) {
  int skipped = isskip(L, -1);
  fflush(stdout);
  lua_pushcfunction(L, reporter);
  lua_insert(L, -2);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
    fputs(SH_NAME ": error while an error was shown\n", stderr);
    lua_pop(L, 1);
  }
  return skipped ? EXIT_SKIP : EXIT_FAILURE;
}

/* Calls the function under its nargs arguments; with nresults not 0 the
   results stay on the stack if it gives 0.  Ends the program on Ctrl-C. */
int sh_call(lua_State *L, int nargs, int nresults) {
  int base = lua_gettop(L) - nargs, status;
  lua_pushcfunction(L, traceback);
  lua_insert(L, base);
  status = sh_guard(L, nargs, nresults, base);
  lua_remove(L, base);
  if (status == LUA_OK) return 0;
  status = sh_report(L);
  sh_die_if_interrupted();
  return status;
}
