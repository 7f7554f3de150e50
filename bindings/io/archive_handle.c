/* SPDX-License-Identifier: MIT */
/*
** archive_handle.c - archives as userdata, and the functions with which the
** program lists the tensors of a file and reads them one at a time.
*/
#include <string.h>

#include "bindings/io/tensor_files.h"

#define ARCHIVE "nacre.archive"

static int close_archive(lua_State *L) {
  Archive **a = luaL_checkudata(L, 1, ARCHIVE);
  nc_closearchive(*a);
  *a = NULL;
  return 0;
}

Archive **nl_new_archive(lua_State *L) {
  static const luaL_Reg events[] = { { "__gc", close_archive },
                                     { "__close", close_archive },
                                     { NULL, NULL } };
  Archive **a = lua_newuserdatauv(L, sizeof *a, 0);
  *a = NULL;
  nl_set_metatable(L, ARCHIVE, events);
  return a;
}

/* archive(path): the archive, and the names of its tensors; nil if the tensors
   of such a file can only be read all at once. */
static int open_archive(lua_State *L) {
  const Source from = { .path = luaL_checkstring(L, 1) };
  FileFormat f;
  Archive **a;
  if (strcmp(from.path, "-") == 0 || nc_isstream(from.path)) return 0;
  nl_check_as(L, nc_formatof(&f, &from), "load");
  if (f != NC_NPY && nl_onetensor(f)) return 0;
  a = nl_new_archive(L);
  nl_check_as(L, nc_openarchive(a, &from, f), "load");
  const int64_t n = nc_archivesize(*a);
  lua_createtable(L, n < 1 << 20 ? (int)n : 0, 0);
  for (int64_t i = 0; i < n; i++) {
    lua_pushstring(L, nc_archivename(*a, i));
    lua_rawseti(L, -2, i + 1);
  }
  return 2;
}

/* The archive at index 1, and in *i the number of the tensor that argument 2
   names, from 0. */
static Archive *check_entry(lua_State *L, int64_t *i) {
  Archive *a = *(Archive **)luaL_checkudata(L, 1, ARCHIVE);
  *i = luaL_checkinteger(L, 2) - 1;
  luaL_argcheck(L, a != NULL, 1, "the archive is closed");
  luaL_argcheck(L, *i >= 0 && *i < nc_archivesize(a), 2, "no such tensor");
  return a;
}

/* archive_info(a, i): dtype and shape of the i-th tensor, which is not read;
   is the dtype the file's name of one that no tensor has? */
static int archive_info(lua_State *L) {
  int64_t i;
  Archive *a = check_entry(L, &i);
  TensorInfo t;
  nl_check_as(L, nc_archiveinfo(&t, a, i), "load");
  if (t.foreign[0]) lua_pushstring(L, t.foreign);
  else lua_pushstring(L, nc_dtypename(t.dtype));
  lua_createtable(L, t.nd, 0);
  for (int d = 0; d < t.nd; d++) {
    lua_pushinteger(L, t.size[d]);
    lua_rawseti(L, -2, d + 1);
  }
  lua_pushboolean(L, t.foreign[0] != '\0');
  return 3;
}

/* archive_load(a, i): the i-th tensor, on the CPU */
static int archive_load(lua_State *L) {
  int64_t i;
  Archive *a = check_entry(L, &i);
  Tensor **t = nl_newbox(L);
  int r, attempt = 0;
  do r = nc_archiveload(t, a, i);
  while (nl_retry(L, r, attempt++));
  nl_check_as(L, r, "load");
  nl_pace(L);
  return 1;
}

const Bound nl_archives[] = {
  { "_archive", open_archive, "path:text -> userdata, list", "", 1 },
  { "_archive_info", archive_info, "a:any, i:int -> string, list, bool", "",
    1 },
  { "_archive_load", archive_load, "a:any, i:int -> tensor", "", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
