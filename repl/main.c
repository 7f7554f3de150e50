/* SPDX-License-Identifier: MIT */
/*
** main.c - the program: options, then init, -e/-l/-p, script, prompt.
*/
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "../bindings/nacre.h"
#include "repl.h"

/* Output that could not be written is a failure, however the program ends. */
static void closestdout(void) {
  int bad = ferror(stdout);
  if (fflush(stdout) == 0 && !bad) return;
  if (errno == EBADF) return; /* started with stdout closed: nobody listens */
  fprintf(stderr, SH_NAME ": write error: %s\n", strerror(errno));
  _exit(EXIT_FAILURE);
}

static void version(void) {
  printf(SH_NAME " " SH_VERSION "  " LUA_RELEASE "\n");
}

static void longversion(void) {
  version();
  printf("editor    %s\n", sh_editorname());
  printf("threads   %d\n", nc_threads());
  printf("loops     %s\n", nc_cpulevel());
  printf("products  %s\n", nc_blasname());
#ifdef __VERSION__
  printf("compiler  " __VERSION__ "\n");
#endif
}

/* Calls nacre.NAME(n); may raise. */
static void setting(lua_State *L, const char *name, long long n) {
  lua_getglobal(L, "nacre");
  lua_getfield(L, -1, name);
  lua_pushinteger(L, (lua_Integer)n);
  lua_call(L, 1, 0);
  lua_pop(L, 1);
}

/* tostring of a tensor; the module that shows it is loaded when needed. */
static int tensortext(lua_State *L) {
  lua_settop(L, 1);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "nacre.display");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "tostring");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

static void openlibs(lua_State *L, const Options *o) {
  if (o->noenv) {
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  luaL_openlibs(L);
  sh_opentextonly(L);
  sh_opencoroutines(L);
  sh_openmodules(L);
  sh_skipfunction(L);
  luaL_requiref(L, "nacre", luaopen_nacre, 1);
  lua_pushcfunction(L, tensortext);
  lua_setfield(L, -2, "_tostring");
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "torch");
  lua_pop(L, 1);
  lua_setglobal(L, "torch");
  sh_argtable(L, o);
  if (o->threads) setting(L, "set_num_threads", o->threads);
  if (o->seeded) setting(L, "manual_seed", o->seed);
}

/* What is to be run, in order; stops at the first failure. */
static int run(lua_State *L, const Options *o) {
  int status;
  sh_interrupts(o->interactive ? GUARD_SHELL : GUARD_SCRIPT);
  status = o->noenv ? 0 : sh_runinit(L);
  if (status == 0) status = sh_runoptions(L, o);
  if (status == 0 && o->script) status = sh_runscript(L, o);
  if (o->interactive) {
    if (status != 0 && o->script)
      fputs("the script stopped; its globals are here\n", stderr);
    return sh_loop(L, o);
  }
  if (status != 0 || o->script || o->code || o->version) return status;
  return isatty(STDIN_FILENO) ? sh_loop(L, o) : sh_runstdin(L);
}

static int protected(lua_State *L) {
  const Options *o = lua_touserdata(L, 1);
  lua_gc(L, LUA_GCSTOP); /* nothing to collect while the libraries open */
  openlibs(L, o);
  lua_gc(L, LUA_GCRESTART);
  lua_pushinteger(L, run(L, o));
  return 1;
}

static int session(const Options *o) {
  lua_State *L = lua_newstate(nacre_alloc, NULL);
  int status = EXIT_FAILURE;
  if (L == NULL) {
    fputs(SH_NAME ": not enough memory\n", stderr);
    return status;
  }
  sh_warnings(L);
  lua_pushcfunction(L, protected);
  lua_pushlightuserdata(L, (void *)o);
  if (lua_pcall(L, 1, 1, 0) == LUA_OK)
    status = (int)lua_tointeger(L, -1);
  else
    status = sh_report(L);
  lua_close(L);
  return status;
}

int main(int argc, char **argv) {
  Options o;
  (void)argc;
  atexit(closestdout);
  /* Only the characters: Lua's numbers and the order of strings stay C's. */
  setlocale(LC_CTYPE, "");
  signal(SIGPIPE, SIG_DFL);
  if (sh_options(&o, argv) != 0) return EXIT_USAGE;
  sh_terminal(&o);
  if (o.help) return sh_help(), EXIT_SUCCESS;
  if (o.longversion) return longversion(), EXIT_SUCCESS;
  if (o.version && !o.interactive) version();
  return session(&o);
}
