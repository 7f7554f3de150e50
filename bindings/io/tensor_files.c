/* SPDX-License-Identifier: MIT */
/*
** tensor_files.c - helper functions of load.c and save.c, and the table of the
** functions of nacre for files.
*/

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "bindings/io/tensor_files.h"

int nl_onetensor(FileFormat f) {
  return f != NC_NPZ && f != NC_SAFETENSORS && f != NC_SHARDS && f != NC_PT;
}

int nl_option(lua_State *L, int i, const char *name) {
  if (i == 0 || !lua_istable(L, i)) return lua_pushnil(L), LUA_TNIL;
  lua_pushstring(L, name);
  return lua_rawget(L, i);
}

void nl_checkoptions(lua_State *L, const char *op, int options,
                     const char *const names[], const char *are) {
  for (; *names; names++)
    if (nl_option(L, options, *names) != LUA_TNIL)
      nl_error(L, op, "%s is for %s", *names, are);
    else lua_pop(L, 1);
}

char nl_delimiter(lua_State *L, const char *op, const char *given,
                  const char *extension) {
  if (given == NULL)
    return extension[0] == 'c' || extension[0] == 'C'   ? ','
           : extension[1] == 's' || extension[1] == 'S' ? '\t'
                                                        : ' ';
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

const Bound nl_files[] = {
  { "load", nl_load, LOAD,
    "reads the tensor in a .npy, .csv, .tsv or .txt file, or the table of "
    "tensors in a .npz, .safetensors or .pt file; path may be a file of Lua's, "
    "\"-\" is io.stdin; map_location is an alias of device, weights_only "
    "changes nothing",
    1 },
  { "save", nl_save, SAVE,
    "writes a tensor, or a table of tensors, in the format that the name of "
    "the file ends in; an old file is replaced at once or stays",
    1 },
  { "serialize", nl_serialize, SERIALIZE,
    "the bytes that save would write, as a string: .npy of a tensor, "
    ".safetensors of a table of tensors, or what format says",
    1 },
  { "deserialize", nl_deserialize, DESERIALIZE,
    "reads from a string what load reads from a file", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
