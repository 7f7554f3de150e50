/* SPDX-License-Identifier: MIT */
/*
** load.c - nacre.load and nacre.deserialize.
**
** A file holds one tensor, several with names, or nested values. The format,
** a row of core/file_formats.h, follows from the first bytes, the extension or
** {format=}.
*/

#include <string.h>

#include "bindings/io/load.h"
#include "bindings/arguments/arguments.h"
#include "bindings/state.h"
#include "core/autograd.h"

static const char *const text_options[] = { "delimiter", "decimal", "skip",
                                            "header",    "missing", "na_values",
                                            "usecols",   "columns", "dtypes",
                                            NULL };
static const char *const values_option[] = { "unknown", NULL };
static const char *const slice_option[] = { "slice", NULL };

/* Reads entry i of a into *x, unless it is there, converts it to the requested
   dtype in *y, and copies it to the device in *z. Skips what an earlier attempt
   did. Returns a status. */
static int fetch(Tensor **x, Tensor **y, Tensor **z, const Load *o, Archive *a,
                 int64_t i) {
  if (*x == NULL) TRY(nc_archiveload(x, a, i));
  if (*y == NULL)
    TRY(nc_cast(y, *x, o->dtype == DT_NONE ? (*x)->dtype : o->dtype));
  TRY(nc_todevice(z, *y, o->device));
  return o->require || (a && nc_archiverequires(a, i))
             ? nc_set_requires_grad(*z, 1)
             : NC_OK;
}

void nl_push_loaded(lua_State *L, const Load *o, Archive *a, int64_t i,
                    Tensor **x) {
  Tensor **y = nl_newbox(L), **z = nl_newbox(L);
  int r;
  nl_try(L, r, fetch(x, y, z, o, a, i));
  if (a && (r == NC_EDTYPE || r == NC_EFILE)) nl_hint_names(L, o, a, i);
  nl_check_as(L, r, o->op);
  lua_remove(L, -2); /* *y */
  nl_pace(L);
}

void nl_push_names(lua_State *L, const Tensor *t, int64_t n) {
  const char *p = nc_data(t);
  lua_newtable(L);
  for (int64_t i = 1; i <= n; i++) {
    lua_pushstring(L, p);
    lua_rawseti(L, -2, i);
    p += strlen(p) + 1;
  }
}

/* Pushes the tensor, or the list of those that follow each other in the file.
   [-0, +1, e] */
static int load_one(lua_State *L, const Load *o) {
  Archive **a = nl_new_archive(L);
  lua_toclose(L, -1);
  nl_check_as(L, nc_openarchive(a, &o->from, o->format), o->op);
  const int64_t n = nc_archivesize(*a);
  if (n > 1) lua_createtable(L, 0, 0);
  for (int64_t i = 0; i < n; i++) {
    nl_push_loaded(L, o, *a, i, nl_newbox(L));
    if (n == 1) return 1;
    lua_rawseti(L, -3, i + 1);
    lua_pop(L, 1); /* *x */
  }
  return 1;
}

/* Renames options in a copy of those on top: map_location, PyTorch's name for
   device; a table in dtype, which is that of dtypes. Drops weights_only: a file
   has nothing but tensors and texts. [-0, +0, e] */
static void adapt_options(lua_State *L, const char *op) {
  static const char *const renamed[][2] = { { "map_location", "device" },
                                            { "dtype", "dtypes" } };
  const int given = lua_gettop(L), copy = given + 1;
  if (!lua_istable(L, given)) return;
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, given);) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, copy);
  }
  lua_pushnil(L);
  lua_setfield(L, copy, "weights_only");
  for (int i = 0; i < 2; i++) {
    const char *from = renamed[i][0], *to = renamed[i][1];
    const int type = nl_option(L, given, from);
    if (type == LUA_TNIL || (i == 1 && type != LUA_TTABLE)) continue;
    if (nl_option(L, given, to) != LUA_TNIL)
      nl_error(L, op, "%s and %s mean the same: give one of them", to, from);
    lua_pop(L, 1);
    lua_setfield(L, copy, to);
    lua_pushnil(L);
    lua_setfield(L, copy, from);
  }
  lua_settop(L, copy);
  lua_replace(L, given);
}

/* Sets the format: the requested one, or that of the file. [-0, +0, e] */
static void set_format(lua_State *L, Load *o, const char *given) {
  char names[NL_FORMATS];
  if (given == NULL) nl_check_as(L, nc_formatof(&o->format, &o->from), o->op);
  else if ((o->format = nc_formatnamed(given)) == FORMAT_UNKNOWN)
    nl_error(L, o->op, "format must be %s, not '%s'",
             nc_formatlist(names, sizeof names, NC_ONE | NC_MANY | NC_READ_ONLY,
                           "", "or"),
             given);
}

/* Reads the arguments; argument 1 is the data. [-0, +n, e] */
static void read_arguments(lua_State *L, Load *o, Args *a) {
  adapt_options(L, o->op);
  nl_args(L, a);
  o->device =
      a->arg[DEVICE].device ? a->arg[DEVICE].device : nc_default_device();
  o->dtype = a->arg[DTYPE].dtype;
  o->require = a->require;
  if (a->pin)
    nl_error(L, o->op,
             "files are not read into pinned memory: call t:pin_memory() "
             "afterwards");
}

/* Pushes what o->from holds; the options are at index `options'.
   [-0, +(1|2), e] */
static int load_from(lua_State *L, Load *o, const Args *a, int options) {
  o->options = lua_istable(L, options) ? options : 0;
  nl_check_as(L, nc_unpack(nl_newbox(L), &o->from), o->op);
  set_format(L, o, a->arg[FORMAT].text);
  const int text = nc_formatcan(o->format, NC_AS_TEXT);
  const int one = nc_formatcan(o->format, NC_ONE);
  o->from.map = (int)a->arg[MMAP].s.i;
  if (o->from.map && (o->from.bytes || text))
    nl_error(L, o->op, "mmap is for files of elements in binary form");
  if (!text) nl_checkoptions(L, o->op, options, text_options, NC_AS_TEXT);
  if (!nc_formatcan(o->format, NC_AS_VALUES))
    nl_checkoptions(L, o->op, options, values_option, NC_AS_VALUES);
  const char *unknown = a->arg[UNKNOWN].text;
  o->unknown = unknown && strcmp(unknown, "table") == 0;
  if (unknown && !o->unknown && strcmp(unknown, "error") != 0)
    nl_error(L, o->op, "unknown must be error or table, not '%s'", unknown);
  if (one) nl_checkoptions(L, o->op, options, slice_option, NC_SLICE);
  else if (nl_option(L, options, "slice") != LUA_TNIL) o->slice = lua_gettop(L);
  if (nl_option(L, options, "names") != LUA_TNIL) {
    if (one) nl_error(L, o->op, "names is for files of several tensors");
    o->names = lua_gettop(L);
    if (!lua_istable(L, -1))
      nl_error(L, o->op, "names must be a list, not a %s", nl_typename(L, -1));
  }
  if (!one) return nl_load_archive(L, o, lua_gettop(L));
  return text ? nl_load_text(L, o, a, options) : load_one(L, o);
}

int nl_load(lua_State *L) {
  Load o = { .op = "load" };
  Args a;
  if (lua_gettop(L) == 2 && lua_isnil(L, 2)) lua_settop(L, 1);
  const int options = lua_gettop(L);
  read_arguments(L, &o, &a);
  nl_read_source(L, "load", 1, &o.from);
  return load_from(L, &o, &a, options);
}

int nl_deserialize(lua_State *L) {
  Load o = { .op = "deserialize" };
  size_t n;
  Args a;
  if (lua_gettop(L) == 2 && lua_isnil(L, 2)) lua_settop(L, 1);
  const int options = lua_gettop(L);
  if (lua_type(L, 1) != LUA_TSTRING)
    return nl_error(L, o.op, "data must be a string, not a %s",
                    nl_typename(L, 1));
  read_arguments(L, &o, &a);
  o.from.bytes = lua_tolstring(L, 1, &n);
  o.from.n = (int64_t)n;
  o.from.path = "data";
  return load_from(L, &o, &a, options);
}
