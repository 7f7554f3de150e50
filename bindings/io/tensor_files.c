/* SPDX-License-Identifier: MIT */
/*
** tensor_files.c - helper functions of load.c and save.c, and the table of the
** functions of nacre for files.
*/

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "bindings/io/tensor_files.h"
#include "bindings/calls/functions.h"

int nl_option(lua_State *L, int i, const char *name) {
  if (i == 0 || !lua_istable(L, i)) return lua_pushnil(L), LUA_TNIL;
  lua_pushstring(L, name);
  return lua_rawget(L, i);
}

int nl_wrong_option(lua_State *L, const char *op, const char *name,
                    unsigned ability) {
  char list[NL_FORMATS];
  if (ability == NC_AS_TEXT)
    return nl_error(L, op, "%s is for texts: %s, or {format=\"csv\"}", name,
                    nc_formatlist(list, sizeof list, ability, ".", "and"));
  return nl_error(L, op, "%s is for %s files", name,
                  nc_formatlist(list, sizeof list, ability, ".", "and"));
}

void nl_checkoptions(lua_State *L, const char *op, int options,
                     const char *const names[], unsigned ability) {
  for (; *names; names++)
    if (nl_option(L, options, *names) != LUA_TNIL)
      nl_wrong_option(L, op, *names, ability);
    else lua_pop(L, 1);
}

char nl_delimiter(lua_State *L, const char *op, const char *given,
                  FileFormat f) {
  if (given == NULL) return nc_formatinfo(f)->delimiter;
  if (strlen(given) != 1 || strchr("\n\r\"#.+-0123456789", *given))
    nl_error(
        L, op,
        "'%s' cannot be a delimiter: use a character that no number contains",
        given);
  return *given;
}

int64_t nl_listplace(const char *name) {
  char again[40];
  long long k;
  if (sscanf(name, "arr_%lld", &k) != 1 || k < 0 || k == LLONG_MAX) return 0;
  snprintf(again, sizeof again, "arr_%lld", k);
  return strcmp(name, again) == 0 ? k + 1 : 0;
}

static int torch_storage(lua_State *L) {
  lua_pushstring(L, nc_torchstorage(nl_checktensor(L, 1)->dtype));
  return 1;
}

const Bound nl_files[] = {
  { "load", nl_load, "path:any|file, *, " LOAD_OPTIONS,
    "reads the tensor in a file (one of" FORMATS_OF_ONE ") or the table of "
    "tensors (one of" FORMATS_OF_MANY "); path may be a file of Lua's, "
    "\"-\" is io.stdin; map_location is an alias of device, weights_only "
    "changes nothing",
    1 },
  { "save", nl_save, "path:file, self:any, *, atomic:bool=true, " SAVE_OPTIONS,
    "writes a tensor, or a table of tensors, in the format of the file's "
    "extension; an old file is replaced completely or stays unchanged",
    1 },
  { "serialize", nl_serialize, "self:any, *, " SAVE_OPTIONS " -> string",
    "the bytes that save would write, as a string: .npy of a tensor, "
    ".safetensors of a table of tensors, or the given format",
    1 },
  { "deserialize", nl_deserialize, "data:text, *, " LOAD_OPTIONS,
    "like load, but from a string instead of a file", 1 },
  { "_torch_storage", torch_storage, "self -> string",
    "PyTorch's class of storages of this dtype, if it has one", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
