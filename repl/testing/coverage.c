/* SPDX-License-Identifier: MIT */
/*
** coverage.c - counts how often the lines of Lua files run, for `nacre --test
** --cover`: two functions of the module "nacre.process".
*/

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "repl/host/repl.h"

typedef struct File {
  struct File *next;
  char *name;
  unsigned *hits; /* by line */
  int size;
} File;

static File *files;

/* The file of a chunk; NULL if there is no memory for it. */
static File *fileof(const char *source) {
  File **at = &files, *f;
  for (; (f = *at) != NULL; at = &f->next)
    if (strcmp(f->name, source) == 0) {
      *at = f->next; /* to the front: the next line is likely its own */
      f->next = files;
      return files = f;
    }
  if ((f = calloc(1, sizeof *f)) == NULL) return NULL;
  if ((f->name = strdup(source)) == NULL) return free(f), NULL;
  f->next = files;
  return files = f;
}

static int room(File *f, int line) {
  int size = line < 256 ? 512 : line * 2;
  unsigned *hits = realloc(f->hits, (size_t)size * sizeof *hits);
  if (hits == NULL) return 0;
  memset(hits + f->size, 0, (size_t)(size - f->size) * sizeof *hits);
  f->hits = hits;
  f->size = size;
  return 1;
}

static void count(lua_State *L, lua_Debug *ar) {
  int line = ar->currentline;
  File *f;
  if (!lua_getinfo(L, "S", ar) || ar->source[0] != '@') return;
  f = fileof(ar->source + 1);
  if (f != NULL && line >= 0 && (line < f->size || room(f, line)))
    f->hits[line]++;
}

/* start_coverage(f): counts from now on; f is called when the program exits */
int sh_start_coverage(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, "nacre.finish");
  sh_set_idle_hook(L, count, LUA_MASKLINE);
  return 0;
}

/* take_coverage(): the counts since the last call, {file = "line:times ..."} */
int sh_take_coverage(lua_State *L) {
  luaL_Buffer b;
  File *f;
  int line;
  lua_newtable(L);
  for (f = files; f != NULL; f = f->next) {
    luaL_buffinit(L, &b);
    for (line = 0; line < f->size; line++) {
      if (f->hits[line] == 0) continue;
      lua_pushfstring(L, "%d:%I ", line, (LUAI_UACINT)f->hits[line]);
      luaL_addvalue(&b);
      f->hits[line] = 0;
    }
    luaL_pushresult(&b);
    lua_setfield(L, -2, f->name);
  }
  return 1;
}
