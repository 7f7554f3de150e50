/* SPDX-License-Identifier: MIT */
/*
** load.c - nacre.load and nacre.deserialize.
**
** A file holds one tensor (.npy, .csv, .tsv, .txt), several with names (.npz,
** .safetensors), or nested values (.pt, .pth). The format follows from the
** first bytes, the extension or {format=}.
*/

#include <string.h>
#include <stdio.h>

#include "bindings/io/tensor_files.h"

static const char *const text_options[] = { "delimiter", "skip",    "header",
                                            "missing",   "usecols", "columns",
                                            "dtypes",    NULL };
enum {
  PATH,
  DEVICE,
  DTYPE,
  NAMES,
  DELIMITER,
  SKIP,
  HEADER,
  MISSING,
  USECOLS,
  COLUMNS,
  DTYPES,
  FORMAT,
  MMAP
};

static const char *const slice_option[] = { "slice", NULL };

typedef struct Load {
  const char *op;
  Source from;
  FileFormat format;
  const char *name; /* extension or {format=} */
  const Device *device;
  DType dtype; /* DT_NONE: as in the file */
  int slice;   /* stack index of the option, or 0 */
  int require;
} Load;

/* Reads the bounds of dimension d, of n elements, from the entry of the slice
   on top: a number, {first, last} or {first, last, step}, or nil for all.
   [-0, +0, e] */
static void read_bounds(lua_State *L, const Load *o, TensorSlice *s, int d,
                        int64_t n) {
  int64_t v[3] = { 1, n, 1 };
  const int table = lua_istable(L, -1);
  const int64_t given = table ? (int64_t)lua_rawlen(L, -1) : 0;
  int whole = table || lua_isnil(L, -1);
  if (!whole) v[0] = v[1] = lua_tointegerx(L, -1, &whole);
  for (int i = 0; i < given && i < 3; i++) {
    int integer;
    lua_rawgeti(L, -1, i + 1);
    v[i] = lua_tointegerx(L, -1, &integer);
    lua_pop(L, 1);
    whole &= integer;
  }
  if (!whole || given == 1 || given > 3)
    nl_error(L, o->op,
             "slice: dimension %d is a number, {first, last}, "
             "{first, last, step} or {}",
             d + 1);
  for (int i = 0; i < 2; i++)
    if (v[i] < 0) v[i] += n + 1;
  if (v[2] < 1 || v[0] < 1 || v[1] > n || v[0] > v[1] + 1)
    nl_error(L, o->op, "slice: dimension %d has the indices 1 to %lld", d + 1,
             (long long)n);
  s->first[d] = v[0] - 1;
  s->step[d] = v[2];
  s->count[d] = v[1] < v[0] ? 0 : (v[1] - v[0]) / v[2] + 1;
}

/* Fills s from the option slice, for a tensor of this shape. Returns the
   dimensions that numbers remove, as bits. [-0, +0, e] */
static unsigned read_slice(lua_State *L, const Load *o, TensorSlice *s,
                           const TensorInfo *t) {
  unsigned removed = 0;
  if (!lua_istable(L, o->slice))
    nl_error(L, o->op, "slice must be a list, such as {{1,100}, 3}");
  if ((int64_t)lua_rawlen(L, o->slice) > t->nd)
    nl_error(L, o->op, "slice has %d entries, the tensor %d dimensions",
             (int)lua_rawlen(L, o->slice), t->nd);
  for (int d = 0; d < t->nd; d++) {
    const int type = lua_rawgeti(L, o->slice, d + 1);
    if (type == LUA_TNUMBER) removed |= 1u << d;
    read_bounds(L, o, s, d, t->size[d]);
    lua_pop(L, 1);
  }
  return removed;
}

/* Removes dimensions of size 1 from a new tensor. */
static void remove_dimensions(Tensor *t, unsigned removed) {
  int k = 0;
  for (int d = 0; d < t->nd; d++) {
    if (removed & 1u << d) continue;
    t->size[k] = t->size[d];
    t->step[k++] = t->step[d];
  }
  t->nd = k;
}

/* Reads the slice of entry i into *x. [-0, +0, e] */
static void read_sliced(lua_State *L, const Load *o, Archive *a, int64_t i,
                        Tensor **x) {
  TensorInfo info;
  TensorSlice s = { 0 };
  int r, attempt = 0;
  nl_check_as(L, nc_archiveinfo(&info, a, i), o->op);
  const unsigned removed = read_slice(L, o, &s, &info);
  do r = nc_archiveslice(x, a, i, &s);
  while (nl_retry(L, r, attempt++));
  nl_check_as(L, r, o->op);
  remove_dimensions(*x, removed);
}

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

/* Adds a hint to an error: the names of the tensors that can be read instead of
   entry i. */
static void hint_other_names(const Archive *a, int64_t i) {
  char list[120] = "";
  size_t n = 0;
  for (int64_t k = 0; k < nc_archivesize(a) && n < 80; k++)
    if (k != i)
      n += (size_t)snprintf(list + n, sizeof list - n, "%s\"%.30s\"",
                            n ? "," : "", nc_archivename(a, k));
  if (n > 0 && !nc_lasterror()->hint[0])
    nc_hint("{names={%s}} reads %s", list, n < 80 ? "the others" : "some");
}

/* Pushes the tensor; *x is the tensor as read from the file, or NULL if it is
   still to be read. [-0, +1, e] */
static void push_loaded(lua_State *L, const Load *o, Archive *a, int64_t i,
                        Tensor **x) {
  Tensor **y = nl_newbox(L), **z = nl_newbox(L);
  int r, attempt = 0;
  do r = fetch(x, y, z, o, a, i);
  while (nl_retry(L, r, attempt++));
  if (r == NC_EDTYPE && a) hint_other_names(a, i);
  nl_check_as(L, r, o->op);
  lua_remove(L, -2); /* *y */
  nl_pace(L);
}

/* Pushes the tensor, or the list of those that follow each other in the file.
   [-0, +1, e] */
static int load_npy(lua_State *L, const Load *o) {
  Archive **a = nl_new_archive(L);
  lua_toclose(L, -1);
  nl_check_as(L, nc_openarchive(a, &o->from, NC_NPY), o->op);
  const int64_t n = nc_archivesize(*a);
  if (n > 1) lua_createtable(L, 0, 0);
  for (int64_t i = 0; i < n; i++) {
    push_loaded(L, o, *a, i, nl_newbox(L));
    if (n == 1) return 1;
    lua_rawseti(L, -3, i + 1);
    lua_pop(L, 1); /* *x */
  }
  return 1;
}

/* Pushes the list of the n zero-terminated strings in t. [-0, +1, m] */
static void push_names(lua_State *L, const Tensor *t, int64_t n) {
  const char *p = nc_data(t);
  lua_newtable(L);
  for (int64_t i = 1; i <= n; i++) {
    lua_pushstring(L, p);
    lua_rawseti(L, -2, i);
    p += strlen(p) + 1;
  }
}

static int bad_columns(lua_State *L, const char *op) {
  return nl_error(L, op,
                  "usecols must be a list of columns' numbers, "
                  "from 1, or names");
}

/* Reads the option usecols: a column number or name, or a list of them. The
   list and the arrays made of it stay on the stack. [-0, +n, e] */
static void read_usecols(lua_State *L, const Load *o, TextFormat *f,
                         int options) {
  int64_t *numbers;
  const char **names;
  if (nl_option(L, options, "usecols") == LUA_TNIL) return;
  if (!lua_istable(L, -1)) {
    lua_createtable(L, 1, 0);
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
  }
  const int list = lua_gettop(L);
  const int64_t n = (int64_t)lua_rawlen(L, list);
  if (n == 0) bad_columns(L, o->op);
  numbers = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *numbers, 0);
  names = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *names, 0);
  for (int64_t i = 0; i < n; i++) {
    int whole, type = lua_rawgeti(L, list, i + 1);
    numbers[i] = lua_tointegerx(L, -1, &whole);
    names[i] = type == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    if (names[i] == NULL && (type != LUA_TNUMBER || !whole))
      bad_columns(L, o->op);
    lua_pop(L, 1);
  }
  f->ncolumns = n;
  f->numbers = numbers;
  f->names = names;
}

/* Pushes the tensor and, if the file has a header, the list of column names.
   [-0, +(1|2), e] */
static int load_text(lua_State *L, const Load *o, const TextFormat *f) {
  Tensor **x = nl_newbox(L), **names = nl_newbox(L);
  int r, attempt = 0;
  do r = nc_loadtext(x, names, &o->from, f, o->dtype);
  while (nl_retry(L, r, attempt++));
  nl_check_as(L, r, o->op);
  push_loaded(L, o, NULL, 0, x);
  if (!f->header) return 1;
  push_names(L, *names, nl_checktensor(L, -1)->size[1]);
  return 2;
}

/* Reads the option dtypes, the types of columns by numbers or names. The table
   and the array made of it stay on the stack. [-0, +n, e] */
static void read_column_types(lua_State *L, const Load *o, TextFormat *f,
                              int options) {
  struct ColumnType *types;
  int64_t n = 0;
  if (nl_option(L, options, "dtypes") == LUA_TNIL) return;
  const int table = lua_gettop(L);
  if (!lua_istable(L, table))
    nl_error(L, o->op, "dtypes must be a table, not a %s",
             nl_typename(L, table));
  if (o->dtype != DT_NONE)
    nl_error(L, o->op,
             "dtype is for all columns, dtypes for single ones: give "
             "one of them");
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) n++;
  f->types = types = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *types, 0);
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
    struct ColumnType *c = &types[f->ntypes++];
    int whole;
    c->number = lua_tointegerx(L, -2, &whole);
    c->name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
    if (lua_type(L, -1) != LUA_TSTRING ||
        (c->name == NULL && (lua_type(L, -2) != LUA_TNUMBER || !whole)))
      nl_error(L, o->op,
               "dtypes has the names of dtypes by columns' numbers, from 1, or "
               "names");
    c->type = nl_dtype_named(L, o->op, lua_tostring(L, -1));
  }
}

static int free_columns(lua_State *L) {
  nc_freecolumns(lua_touserdata(L, 1));
  return 0;
}

/* A new userdata on top that frees its columns when it is closed or collected.
   [-0, +1, m] */
static TextColumns *push_columns(lua_State *L) {
  static const luaL_Reg functions[] = { { "__gc", free_columns },
                                        { "__close", free_columns },
                                        { NULL, NULL } };
  TextColumns *columns = lua_newuserdatauv(L, sizeof *columns, 0);
  memset(columns, 0, sizeof *columns);
  if (luaL_newmetatable(L, "nacre.textcolumns")) luaL_setfuncs(L, functions, 0);
  lua_setmetatable(L, -2);
  return columns;
}

/* Fails if two columns have one name: the list of names is on top.
   [-0, +0, e] */
static void check_column_names(lua_State *L, const Load *o, int64_t n) {
  lua_createtable(L, 0, (int)n);
  for (int64_t i = 1; i <= n; i++) {
    lua_rawgeti(L, -2, i);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) != LUA_TNIL) {
      char shown[80];
      size_t length;
      const char *name = lua_tolstring(L, -2, &length);
      nc_fail(NC_EFILE, "two columns are called '%s'",
              nc_printable(shown, sizeof shown, name, length));
      nc_hint("usecols chooses columns; {skip=1} instead of header=true gives "
              "a list");
      nl_check_as(L, NC_EFILE, o->op);
    }
    lua_pop(L, 1);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
  }
  lua_pop(L, 1);
}

/* Pushes the columns as vectors: a list, or, if the file has a header, a table
   by name and the list of names. [-0, +(1|2), e] */
static int load_columns(lua_State *L, const Load *o, TextFormat *f) {
  TextColumns *columns;
  int r, attempt = 0;
  columns = push_columns(L);
  lua_toclose(L, -1);
  do r = nc_loadcolumns(columns, &o->from, f, o->dtype);
  while (nl_retry(L, r, attempt++));
  nl_check_as(L, r, o->op);
  lua_createtable(L, f->header ? 0 : (int)columns->n, 0);
  const int result = lua_gettop(L);
  if (f->header) {
    push_names(L, columns->names, columns->n);
    check_column_names(L, o, columns->n);
  }
  for (int64_t i = 0; i < columns->n; i++) {
    Tensor **x = nl_newbox(L);
    *x = columns->column[i];
    columns->column[i] = NULL;
    push_loaded(L, o, NULL, 0, x);
    if (f->header) {
      lua_rawgeti(L, result + 1, i + 1);
      lua_insert(L, -2);
      lua_rawset(L, result);
    } else lua_rawseti(L, result, i + 1);
    lua_pop(L, 1); /* *x */
  }
  return f->header ? 2 : 1;
}

/* The number of entries called arr_0, arr_1, ... if they have no gap; they are
   the list part of the result. Otherwise 0. */
static int64_t list_length(const Archive *a) {
  const int64_t n = nc_archivesize(a);
  int64_t found = 0, most = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t k = nl_listplace(nc_archivename(a, i));
    found += k > 0;
    if (k > most) most = k;
  }
  return found == most ? most : 0;
}

/* True if the list on top contains the name. [-0, +0, m] */
static int is_requested(lua_State *L, const char *name) {
  int found = 0;
  for (lua_Integer k = 1; !found && lua_rawgeti(L, -1, k) != LUA_TNIL; k++) {
    found = lua_type(L, -1) == LUA_TSTRING &&
            strcmp(lua_tostring(L, -1), name) == 0;
    lua_pop(L, 1);
  }
  if (!found) lua_pop(L, 1);
  return found;
}

static int unknown_name(lua_State *L, const Load *o, const Archive *a,
                        const char *name) {
  const int64_t n = nc_archivesize(a);
  const char **names = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *names, 0);
  const char *near;
  for (int64_t i = 0; i < n; i++) names[i] = nc_archivename(a, i);
  names[n] = NULL;
  near = nl_nearest(name, names);
  return nl_error(
      L, o->op, near ? "no tensor '%s', did you mean '%s'?" : "no tensor '%s'",
      name, near);
}

/* Checks that the archive has every name of the list on top. [-0, +0, e] */
static void check_names(lua_State *L, const Load *o, const Archive *a) {
  const int64_t n = nc_archivesize(a);
  for (lua_Integer k = 1; lua_rawgeti(L, -1, k) != LUA_TNIL; k++) {
    const char *name;
    int64_t i = 0;
    if (lua_type(L, -1) != LUA_TSTRING)
      nl_error(L, o->op, "names must be a list of strings, not of %ss",
               nl_typename(L, -1));
    name = lua_tostring(L, -1);
    while (i < n && strcmp(nc_archivename(a, i), name) != 0) i++;
    if (i == n) unknown_name(L, o, a, name);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* Pushes the table of metadata, if there is any; returns how many values it
   pushed. [-0, +(0|1), m] */
static int push_metadata(lua_State *L, const Archive *a) {
  const char *name;
  if (nc_archivemeta(a, 0) == NULL) return 0;
  lua_newtable(L);
  for (int64_t i = 0; (name = nc_archivemeta(a, i)) != NULL; i += 2) {
    lua_pushstring(L, name);
    lua_pushstring(L, nc_archivemeta(a, i + 1));
    lua_rawset(L, -3);
  }
  return 1;
}

/* Replaces the tensors below the metadata on top by the nested tables that were
   saved, if the metadata describes any. Returns the number of values.
   [-2, +(1|2), e] */
static int nest(lua_State *L) {
  const int meta = lua_gettop(L);
  if (lua_getfield(L, meta, "nacre") != LUA_TSTRING) {
    lua_settop(L, meta);
    return 2;
  }
  nl_push_module_function(L, "from_flat");
  lua_pushvalue(L, meta - 1);
  lua_pushvalue(L, meta + 1);
  lua_call(L, 2, 1);
  lua_pushnil(L); /* the metadata without the structure */
  lua_setfield(L, meta, "nacre");
  lua_replace(L, meta - 1);
  lua_settop(L, meta);
  lua_pushnil(L);
  if (lua_next(L, meta)) {
    lua_settop(L, meta);
    return 2;
  }
  lua_settop(L, meta - 1);
  return 1;
}

/* Pushes the value of an attribute: a number, a boolean, a string, a list of
   strings, or a tensor. [-0, +1, e] */
static void push_attribute(lua_State *L, const Attribute *x) {
  if (x->texts >= 0) {
    push_names(L, x->value, x->texts);
    if (x->scalar) lua_rawgeti(L, -1, 1), lua_remove(L, -2);
    return;
  }
  nl_pushtensor(L, x->value);
  if (!x->scalar) return;
  lua_getfield(L, -1, "item");
  lua_insert(L, -2);
  lua_call(L, 1, 1);
}

/* Pushes a table of the attributes by the path of their object and by name, if
   there are any; returns how many values it pushed. [-0, +(0|1), e] */
static int push_attributes(lua_State *L, const Load *o, Archive *a) {
  const Attribute *list;
  int64_t n;
  nl_check_as(L, nc_archiveattributes(a, &list, &n), o->op);
  if (n == 0) return 0;
  lua_newtable(L);
  for (int64_t i = 0; i < n; i++) {
    if (lua_getfield(L, -1, list[i].object) != LUA_TTABLE) {
      lua_pop(L, 1);
      lua_newtable(L);
      lua_pushvalue(L, -1);
      lua_setfield(L, -3, list[i].object);
    }
    lua_pushstring(L, list[i].name);
    push_attribute(L, &list[i]);
    lua_rawset(L, -3);
    lua_pop(L, 1);
  }
  return 1;
}

/* Replaces the tensors by path on top by nested tables, and pushes the
   attributes. [-1, +(1|2), e] */
static int nest_groups(lua_State *L, const Load *o, Archive *a) {
  nl_push_module_function(L, "from_paths");
  lua_insert(L, -2);
  lua_call(L, 1, 1);
  return 1 + push_attributes(L, o, a);
}

/* Pushes what a file of nested values holds. [-0, +1, e] */
static int load_values(lua_State *L, const Load *o, Archive *a) {
  int64_t n;
  const FileValue *v = nc_archivevalues(a, &n);
  lua_newtable(L);
  const int tensors = lua_gettop(L);
  for (const FileValue *end = v + n; v < end; v++) {
    if (v->kind != NC_V_TENSOR) continue;
    push_loaded(L, o, a, v->i, nl_newbox(L));
    lua_rawseti(L, tensors, v->i + 1);
    lua_settop(L, tensors);
  }
  nl_push_values(L, a, tensors);
  return 1;
}

/* Pushes the table of tensors and the metadata; the list of requested names, or
   nil, is at index `names'. [-0, +(1|2), e] */
static int load_archive(lua_State *L, const Load *o, int names) {
  Archive **a = nl_new_archive(L);
  lua_toclose(L, -1);
  int64_t n, list;
  int result;
  nl_check_as(L, nc_openarchive(a, &o->from, o->format), o->op);
  if (o->slice && !nc_canslice(*a))
    nl_error(L, o->op, "slice is for .h5 files");
  if (o->format == NC_PT && lua_isnil(L, names)) return load_values(L, o, *a);
  n = nc_archivesize(*a);
  list = o->format == NC_HDF5 ? 0 : list_length(*a);
  lua_newtable(L);
  result = lua_gettop(L);
  lua_pushvalue(L, names);
  if (lua_istable(L, -1)) {
    nl_plain_table(L, -1, 0);
    nl_checklist(L, o->op, -1);
  }
  if (!lua_isnil(L, -1)) check_names(L, o, *a);
  for (int64_t i = 0; i < n; i++) {
    const char *name = nc_archivename(*a, i);
    const int64_t k = list ? nl_listplace(name) : 0;
    if (!lua_isnil(L, -1) && !is_requested(L, name)) continue;
    Tensor **x = nl_newbox(L);
    if (o->slice) read_sliced(L, o, *a, i, x);
    push_loaded(L, o, *a, i, x);
    if (k) lua_rawseti(L, result, k);
    else lua_setfield(L, result, name);
    lua_pop(L, 1); /* *x */
  }
  const int whole = lua_isnil(L, result + 1);
  lua_settop(L, result);
  if (o->format == NC_HDF5) return nest_groups(L, o, *a);
  n = 1 + push_metadata(L, *a);
  return n == 2 && whole ? nest(L) : (int)n;
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
  o->name = given ? given : nc_extension(o->from.path);
  if (given == NULL) nl_check_as(L, nc_formatof(&o->format, &o->from), o->op);
  else if ((o->format = nc_formatnamed(given)) == NC_UNKNOWN)
    nl_error(
        L, o->op,
        "format must be npy, npz, safetensors, pt, h5, csv, tsv or txt, not "
        "'%s'",
        given);
}

/* Reads the arguments; argument 1 is the data. [-0, +n, e] */
static void read_arguments(lua_State *L, Load *o, Args *a, Signature *s,
                           const char *text) {
  adapt_options(L, o->op);
  nl_args(L, s, o->op, text, a);
  o->device =
      a->arg[DEVICE].device ? a->arg[DEVICE].device : nc_default_device();
  o->dtype = a->arg[DTYPE].dtype;
  o->require = a->require;
  if (a->pin)
    nl_error(L, o->op,
             "files are not read into pinned memory: call t:pin_memory() "
             "afterwards");
}

/* Reads the options for text files. [-0, +n, e] */
static void read_text_format(lua_State *L, const Load *o, TextFormat *f,
                             const Args *a, int options) {
  f->delimiter = nl_delimiter(L, o->op, a->arg[DELIMITER].text, o->name);
  f->header = (int)a->arg[HEADER].s.i;
  f->skip = a->arg[SKIP].s.i;
  f->missing = a->arg[MISSING].present ? &a->arg[MISSING].s : NULL;
  read_usecols(L, o, f, options);
  if (f->skip < 0)
    nl_error(L, o->op, "skip is %lld, but must not be negative",
             (long long)f->skip);
}

/* Pushes what o->from holds; the options are at index `options'.
   [-0, +(1|2), e] */
static int load_from(lua_State *L, Load *o, const Args *a, int options) {
  TextFormat f = { 0 };
  set_format(L, o, a->arg[FORMAT].text);
  o->from.map = (int)a->arg[MMAP].s.i;
  if (o->from.map && (o->from.bytes || o->format == NC_CSV))
    nl_error(L, o->op, "mmap is for files of elements in binary form");
  if (o->format != NC_CSV)
    nl_checkoptions(L, o->op, options, text_options, TEXTFILES);
  if (nl_onetensor(o->format))
    nl_checkoptions(L, o->op, options, slice_option, ".h5 files");
  else if (nl_option(L, options, "slice") != LUA_TNIL) o->slice = lua_gettop(L);
  if (nl_option(L, options, "names") != LUA_TNIL) {
    if (nl_onetensor(o->format))
      nl_error(L, o->op, "names is for files of several tensors");
    if (!lua_istable(L, -1))
      nl_error(L, o->op, "names must be a list, not a %s", nl_typename(L, -1));
  }
  if (!nl_onetensor(o->format)) return load_archive(L, o, lua_gettop(L));
  if (o->format != NC_CSV) return load_npy(L, o);
  read_text_format(L, o, &f, a, options);
  read_column_types(L, o, &f, options);
  if (a->arg[COLUMNS].s.i || f.types) return load_columns(L, o, &f);
  return load_text(L, o, &f);
}

int nl_load(lua_State *L) {
  static Signature s;
  Load o = { .op = "load" };
  Args a;
  if (lua_gettop(L) == 2 && lua_isnil(L, 2)) lua_settop(L, 1);
  const int options = lua_gettop(L);
  read_arguments(L, &o, &a, &s, LOAD);
  nl_read_source(L, "load", 1, &o.from);
  return load_from(L, &o, &a, options);
}

int nl_deserialize(lua_State *L) {
  static Signature s;
  Load o = { .op = "deserialize" };
  size_t n;
  Args a;
  if (lua_gettop(L) == 2 && lua_isnil(L, 2)) lua_settop(L, 1);
  const int options = lua_gettop(L);
  if (lua_type(L, 1) != LUA_TSTRING)
    return nl_error(L, o.op, "data must be a string, not a %s",
                    nl_typename(L, 1));
  read_arguments(L, &o, &a, &s, DESERIALIZE);
  o.from.bytes = lua_tolstring(L, 1, &n);
  o.from.n = (int64_t)n;
  o.from.path = "data";
  return load_from(L, &o, &a, options);
}
