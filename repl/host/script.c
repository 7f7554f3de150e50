/* SPDX-License-Identifier: MIT */
/*
** script.c - runs programs without a prompt: LUA_INIT, -e, -l, -p, a script,
** stdin; and ends the program. Every function returns an exit status.
*/

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "bindings/nacre.h"
#include "core/accelerator.h"
#include "core/transport.h"
#include "repl/host/repl.h"

static int checkonly; /* --check: what compiles is not run */

/* Runs what luaL_load* gave: a function, or a message and a status. */
static int runloaded(lua_State *L, int loaded, int nargs, int nresults) {
  char text[4096];
  const char *message;
  if (loaded == LUA_OK && checkonly) return lua_pop(L, nargs + 1), 0;
  if (loaded == LUA_OK) {
    lua_insert(L, -(nargs + 1));
    return sh_call(L, nargs, nresults);
  }
  if (loaded != LUA_ERRFILE) return sh_report(L);
  message = lua_tostring(L, -1);
  fprintf(stderr, SH_NAME ": %s\n",
          nc_printable(text, sizeof text, message, strlen(message)));
  return EXIT_USAGE;
}

static int runtext(lua_State *L, const char *text, const char *name) {
  int loaded = luaL_loadbufferx(L, text, strlen(text), name, "t");
  return runloaded(L, loaded, 0, 0);
}

/* Prints the values above base, of the expression `text', as the shell would:
   if no device has an error to tell of how they came about. */
static int printvalues(lua_State *L, int base, const char *text) {
  int n = lua_gettop(L) - base, status = sh_synchronize(L);
  if (status != 0 || n == 0) return status;
  sh_pushmember(L, "nacre.styled_output", "print");
  lua_insert(L, base + 1);
  lua_pushstring(L, text);
  lua_insert(L, base + 2);
  return sh_call(L, n + 1, 0);
}

static int runexpression(lua_State *L, const char *text) {
  int base = lua_gettop(L), status;
  const char *chunk = lua_pushfstring(L, "return %s", text);
  status = luaL_loadbufferx(L, chunk, strlen(chunk), "=(command line)", "t");
  lua_remove(L, base + 1);
  status = runloaded(L, status, 0, LUA_MULTRET);
  return status == 0 ? printvalues(L, base, text) : status;
}

/* -l MOD and -l g=MOD */
static int runlibrary(lua_State *L, const char *word) {
  const char *module = strchr(word, '='), *name = word;
  int status;
  if (checkonly) return 0;
  lua_getglobal(L, "require");
  lua_pushstring(L, module != NULL ? module + 1 : word);
  status = sh_call(L, 1, 1);
  if (status != 0) return status;
  if (module != NULL) name = lua_pushlstring(L, word, (size_t)(module - word));
  lua_pushvalue(L, module != NULL ? -2 : -1);
  lua_setglobal(L, name);
  lua_settop(L, 1);
  return 0;
}

int sh_runinit(lua_State *L) {
  const char *name = "=LUA_INIT_5_4", *init = getenv(name + 1);
  if (init == NULL) init = getenv((name = "=LUA_INIT") + 1);
  if (init == NULL) return 0;
  if (init[0] == '@')
    return runloaded(L, luaL_loadfilex(L, init + 1, "t"), 0, 0);
  return runtext(L, init, name);
}

int sh_runoptions(lua_State *L, const Options *o) {
  int i = o->argv[0] != NULL, status = 0;
  Option x;
  checkonly = o->check;
  while (status == 0 && sh_nextoption(o->argv, &i, &x) > 0) {
    if (x.id == 'e') status = runtext(L, x.value, "=(command line)");
    if (x.id == 'p') status = runexpression(L, x.value);
    if (x.id == 'l') status = runlibrary(L, x.value);
  }
  return status;
}

/* Modules of a script are looked for where the script is. */
static void scriptpath(lua_State *L, const char *script) {
  const char *end = strrchr(script, '/');
  lua_getglobal(L, "package");
  if (end != NULL) lua_pushlstring(L, script, (size_t)(end - script));
  else lua_pushliteral(L, ".");
  const char *folder = lua_tostring(L, -1);
  lua_getfield(L, -2, "path");
  const char *own =
      lua_pushfstring(L, "%s/?.lua;%s/?/init.lua", folder, folder);
  const size_t n = strlen(own), all = lua_rawlen(L, -2);
  const char *path = lua_tostring(L, -2), *last = path + all - n;
  if (all > n && strcmp(last, own) == 0 && last[-1] == ';')
    lua_pushlstring(L, path, all - n - 1); /* it comes first now */
  else lua_pushvalue(L, -2);
  lua_pushfstring(L, "%s;%s", own, lua_tostring(L, -1));
  lua_setfield(L, -6, "path");
  lua_pop(L, 5);
}

void sh_argtable(lua_State *L, const Options *o) {
  int i;
  lua_newtable(L);
  for (i = 0; o->argv[i] != NULL; i++) {
    lua_pushstring(L, o->argv[i]);
    lua_rawseti(L, -2, i - o->script);
  }
  lua_setglobal(L, "arg");
}

/* Pushes the arguments of the script, which code of options may have changed;
   returns how many. */
static int push_arguments(lua_State *L) {
  if (lua_getglobal(L, "arg") != LUA_TTABLE)
    luaL_error(L, "'arg' is not a table");
  const int table = lua_gettop(L), n = (int)luaL_len(L, table);
  luaL_checkstack(L, n + 3, "too many arguments");
  for (int i = 1; i <= n; i++) lua_rawgeti(L, table, i);
  lua_remove(L, table);
  return n;
}

int sh_runscript(lua_State *L, const Options *o) {
  const char *name = o->argv[o->script];
  int n;
  if (strcmp(name, "-") == 0 && strcmp(o->argv[o->script - 1], "--") != 0)
    name = NULL;
  else scriptpath(L, name);
  n = push_arguments(L);
  return runloaded(L, luaL_loadfilex(L, name, "t"), n, 0);
}

/*
** stdin is one chunk; if that does not compile but "return <chunk>" does,
** its values are printed
*/
static void readstdin(lua_State *L) {
  luaL_Buffer b;
  size_t n;
  luaL_buffinit(L, &b);
  do {
    char *space = luaL_prepbuffer(&b);
    n = fread(space, 1, LUAL_BUFFERSIZE, stdin);
    luaL_addsize(&b, n);
  } while (n > 0);
  if (ferror(stdin)) luaL_error(L, "cannot read stdin: %s", strerror(errno));
  luaL_pushresult(&b);
}

int sh_runstdin(lua_State *L) {
  int base = lua_gettop(L), status;
  const char *text;
  size_t n;
  readstdin(L);
  text = lua_tolstring(L, -1, &n);
  if (text[0] == '#') { /* "#!/usr/bin/env nacre"; its newline stays */
    size_t line = strcspn(text, "\n");
    text += line;
    n -= line;
  }
  status = luaL_loadbufferx(L, text, n, "=stdin", "t");
  if (status == LUA_ERRSYNTAX && !checkonly) {
    lua_pushliteral(L, "return ");
    lua_pushlstring(L, text, n);
    lua_concat(L, 2);
    lua_insert(L, base + 1); /* where it stays as long as its text is used */
    text = lua_tolstring(L, base + 1, &n);
    if (luaL_loadbufferx(L, text, n, "=stdin", "t") == LUA_OK) {
      lua_replace(L, base + 2);
      lua_settop(L, base + 2);
      status = sh_call(L, 0, LUA_MULTRET);
      return status == 0 ? printvalues(L, base + 1, text) : status;
    }
    lua_settop(L, base + 3);
    lua_pushliteral(L, "\n  hint: nacre -i takes its input line by line, as a "
                       "session");
    lua_concat(L, 2);
  }
  return runloaded(L, status, 0, 0);
}

/*
** The end of a program: waits for the devices, so that none of their errors is
** lost.  A device that failed for good is reported once.
*/
int sh_synchronize(lua_State *L) {
  const Accelerator *a = nc_open_accelerator();
  static int failure_reported;
  int status;
  if (a == NULL) return 0;
  lua_pushcfunction(L,
                    failure_reported ? nl_synchronize_working : nl_synchronize);
  status = sh_call(L, 0, 0);
  failure_reported |= a->failed(-1);
  return status == 0 && failure_reported ? EXIT_FAILURE : status;
}

/*
** --strict, --nan, --time, --profile: the module "nacre.run_modes" does what
** they say, before the program and after it
*/
int sh_begin(lua_State *L, const Options *o) {
  if (!o->strict && !o->time && !o->nan && !o->profile) return 0;
  sh_pushmember(L, "nacre.run_modes", "finish");
  lua_setfield(L, LUA_REGISTRYINDEX, "nacre.finish");
  sh_pushmember(L, "nacre.run_modes", "begin");
  lua_createtable(L, 0, 4);
  lua_pushboolean(L, o->strict);
  lua_setfield(L, -2, "strict");
  lua_pushboolean(L, o->time);
  lua_setfield(L, -2, "time");
  lua_pushstring(L, o->nan);
  lua_setfield(L, -2, "nan");
  lua_pushstring(L, o->profile);
  lua_setfield(L, -2, "profile");
  return sh_call(L, 1, 0);
}

/* Only the first call does anything. */
int sh_finish(lua_State *L) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, "nacre.finish") == LUA_TNIL)
    return lua_pop(L, 1), 0;
  lua_pushnil(L);
  lua_setfield(L, LUA_REGISTRYINDEX, "nacre.finish");
  return sh_call(L, 0, 0);
}

/* The exit status that the first argument of os.exit means. */
static int exit_status(lua_State *L) {
  if (lua_isnoneornil(L, 1)) return 0;
  if (lua_isboolean(L, 1))
    return lua_toboolean(L, 1) ? EXIT_SUCCESS : EXIT_FAILURE;
  return (int)lua_tointeger(L, 1);
}

/* os.exit: the function it replaces is the upvalue. */
static int leave(lua_State *L) {
  if (exit_status(L) == 0 && sh_synchronize(L) != 0) {
    lua_settop(L, 2);
    lua_pushboolean(L, 0);
    lua_replace(L, 1);
  }
  sh_finish(L);
  nl_end_python(L);
  nl_end_device_threads();
  nl_end_rank_output();
  nc_leave_transport(exit_status(L));
  return sh_callwrapped(L);
}

void sh_openexit(lua_State *L) {
  lua_getglobal(L, "os");
  sh_wrapfield(L, "exit", leave);
  lua_pop(L, 1);
}
