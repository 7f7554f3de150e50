/* SPDX-License-Identifier: MIT */
/*
** rank_options.c - --ranks and --launch: what of the command line is for the
** prompt, and what for each rank.
*/
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "repl/host/repl.h"

/* Pushes the command that starts the ranks. [-0, +1, m] */
static void push_launch(lua_State *L, const Options *o) {
  if (o->launch != NULL) lua_pushstring(L, o->launch);
  else lua_pushfstring(L, "mpirun -n %d", o->ranks);
}

static void append(lua_State *L, const char *word) {
  lua_pushstring(L, word);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* Is the option for each rank?  If there is a prompt, it sends what is to be
   run. */
static int is_for_ranks(int id, int prompt) {
  if (id == 'M' || id == 'G') return 0;
  return !prompt ||
         (id != 'e' && id != 'l' && id != 'p' && id != 'i' && id != 'q' &&
          id != 'v' && id != 'r' && id != 'R' && id != 'H');
}

/* Pushes the list of the words of the command line that each rank takes.
   [-0, +1, m] */
static void push_words(lua_State *L, const Options *o, int prompt) {
  int i = o->argv[0] != NULL, from = i;
  Option x;
  lua_newtable(L);
  for (; sh_nextoption(o->argv, &i, &x) > 0; from = i)
    for (int k = from; k < i && is_for_ranks(x.id, prompt); k++)
      append(L, o->argv[k]);
  if (!prompt && o->script && i > from) append(L, "--");
  for (i = prompt ? o->files : o->script; i && o->argv[i] != NULL; i++)
    append(L, o->argv[i]);
}

/* Pushes the lists {option, value, ...} of -e, -l and -p, and of the script and
   its arguments. [-0, +2, m] */
static void push_code(lua_State *L, const Options *o) {
  int i = o->argv[0] != NULL;
  Option x;
  lua_newtable(L);
  while (sh_nextoption(o->argv, &i, &x) > 0) {
    const char name[] = { (char)x.id, '\0' };
    if (x.id != 'e' && x.id != 'l' && x.id != 'p') continue;
    append(L, name);
    append(L, x.value);
  }
  lua_newtable(L);
  for (i = o->script; i && o->argv[i] != NULL; i++) append(L, o->argv[i]);
}

int sh_start_ranks(lua_State *L, const Options *o) {
  int status;
  sh_pushmember(L, "nacre.rank_prompt", "start");
  push_launch(L, o);
  push_words(L, o, 1);
  status = sh_call(L, 2, 1);
  if (status != 0) return status;
  status = lua_toboolean(L, -1) ? 0 : EXIT_FAILURE;
  lua_pop(L, 1);
  if (status != 0 || !(o->code || o->script)) return status;
  sh_pushmember(L, "nacre.rank_prompt", "run");
  push_code(L, o);
  status = sh_call(L, 2, 1);
  if (status != 0) return status;
  status = lua_toboolean(L, -1) || o->interactive ? 0 : EXIT_FAILURE;
  lua_pop(L, 1);
  return status;
}

int sh_run_on_ranks(lua_State *L, const Options *o) {
  sh_pushmember(L, "nacre.rank_prompt", "become");
  push_launch(L, o);
  push_words(L, o, 0);
  return sh_call(L, 2, 0);
}
