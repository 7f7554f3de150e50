/* SPDX-License-Identifier: MIT */
/*
** archive_handle.c - archives as userdata, and the functions with which the
** program lists the tensors of a file and reads them one at a time.
*/
#include <string.h>

#include "bindings/io/tensor_files.h"
#include "bindings/calls/functions.h"
#include "bindings/state.h"

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
  Archive **a = lua_newuserdatauv(L, sizeof *a, 1);
  *a = NULL;
  nl_set_metatable(L, ARCHIVE, events);
  return a;
}

/* archive(path): the archive, and the names of its tensors; nil if the tensors
   of such a file can only be read all at once. */
static int open_archive(lua_State *L) {
  Source from = { .path = luaL_checkstring(L, 1) };
  FileFormat f;
  Archive **a;
  if (strcmp(from.path, "-") == 0 || nc_isstream(from.path)) return 0;
  a = nl_new_archive(L);
  nl_check_as(L, nc_unpack(nl_newbox(L), &from), "load");
  nl_check_as(L, nc_formatof(&f, &from), "load");
  if (f >= FORMAT_COUNT || nc_formatcan(f, NC_AS_TEXT)) return 0;
  nl_check_as(L, nc_openarchive(a, &from, f), "load");
  lua_setiuservalue(L, -2, 1); /* the unpacked bytes */
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
  lua_pushstring(L, t.dtype == DT_NONE ? t.foreign : nc_dtypename(t.dtype));
  lua_createtable(L, t.nd, 0);
  for (int d = 0; d < t.nd; d++) {
    lua_pushinteger(L, t.size[d]);
    lua_rawseti(L, -2, d + 1);
  }
  lua_pushboolean(L, t.dtype == DT_NONE);
  return 3;
}

/* archive_load(a, i): the i-th tensor, on the CPU */
static int archive_load(lua_State *L) {
  int64_t i;
  Archive *a = check_entry(L, &i);
  Tensor **t = nl_newbox(L);
  nl_try_as(L, "load", nc_archiveload(t, a, i));
  nl_pace(L);
  return 1;
}

/* formats(): the formats of files, a row for each extension. */
static int formats(lua_State *L) {
  const char *name;
  FileFormat f;
  lua_newtable(L);
  for (int i = 0; (name = nc_formatextension(i, &f)) != NULL; i++) {
    lua_newtable(L);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "extension");
    lua_pushstring(L, nc_formatinfo(f)->name);
    lua_setfield(L, -2, "name");
    nl_set_boolean(L, "one", nc_formatcan(f, NC_ONE));
    nl_set_boolean(L, "text", nc_formatcan(f, NC_AS_TEXT));
    nl_set_boolean(L, "image", nc_formatcan(f, NC_IMAGE));
    nl_set_boolean(L, "metadata", nc_formatcan(f, NC_METADATA));
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

const Bound nl_archives[] = {
  { "_formats", formats, " -> list", "", 1 },
  { "_archive", open_archive, "path:text -> userdata, list", "", 1 },
  { "_archive_info", archive_info, "a:any, i:int -> string, list, bool", "",
    1 },
  { "_archive_load", archive_load, "a:any, i:int -> tensor", "", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
