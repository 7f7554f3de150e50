/* SPDX-License-Identifier: MIT */
/*
** tensor_arguments.c - files of tensors on the command line: nacre FILE...,
** --ls, --diff and --convert.
*/
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "core/files.h"

/* By its name or its first bytes. A .txt file may be a script. */
int sh_istensorfile(const char *path) {
  const char *extension = nc_extension(path);
  Source from = { .path = path };
  Tensor *unpacked;
  FileFormat f;
  if (strcmp(path, "-") == 0 || strcmp(extension, "lua") == 0 ||
      strcasecmp(extension, "txt") == 0 || nc_isstream(path))
    return 0;
  const int status = nc_unpack(&unpacked, &from);
  const int found = status == NC_OK && nc_formatof(&f, &from) == NC_OK;
  nc_release(unpacked);
  return found && f < FORMAT_COUNT;
}

/* Pushes the list of the words from argv[i] on. [-0, +1, e] */
static void push_words(lua_State *L, const Options *o, int i) {
  lua_newtable(L);
  for (int k = 1; o->argv[i] != NULL; i++, k++) {
    lua_pushstring(L, o->argv[i]);
    lua_rawseti(L, -2, k);
  }
}

int sh_openfiles(lua_State *L, const Options *o, int aloud) {
  int status;
  sh_pushmember(L, "nacre.tensor_file", "bring");
  push_words(L, o, o->files);
  status = sh_call(L, 1, 1);
  if (status != 0) return EXIT_USAGE; /* as after a script that is not there */
  if (aloud) printf("%s\n", lua_tostring(L, -1));
  lua_pop(L, 1);
  return 0;
}

int sh_runtool(lua_State *L, const Options *o) {
  int status;
  sh_pushmember(L, "nacre.file_tools", "run");
  lua_pushstring(L, o->argv[o->tool - 1] + strlen("--"));
  push_words(L, o, o->tool);
  status = sh_call(L, 2, 1);
  return status == 0 ? (int)lua_tointeger(L, -1) : status;
}
