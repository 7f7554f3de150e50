/* SPDX-License-Identifier: MIT */
/*
** load_text.c - nacre.load of text: a matrix, or columns by themselves, and the
** options that only text has.
*/
#include <math.h>
#include <string.h>

#include "bindings/io/load.h"
#include "bindings/arguments/arguments.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/state.h"

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

/* Reads the option na_values: a text or a list of them. What they point to
   stays on the stack. [-0, +n, e] */
static void read_na_values(lua_State *L, const Load *o, TextFormat *f,
                           int options) {
  const int type = nl_option(L, options, "na_values");
  if (type == LUA_TNIL) return;
  const int list = lua_gettop(L);
  const int64_t n = type == LUA_TTABLE ? (int64_t)lua_rawlen(L, list) : 1;
  const char **text = lua_newuserdatauv(L, (size_t)n * sizeof *text + 1, 0);
  luaL_checkstack(L, (int)n + 8, "na_values");
  for (int64_t i = 0; i < n; i++) {
    if (type == LUA_TTABLE) lua_rawgeti(L, list, i + 1);
    else lua_pushvalue(L, list);
    if (lua_type(L, -1) != LUA_TSTRING)
      nl_error(L, o->op,
               "na_values must be a list of strings, such as {\"NA\"}");
    text[i] = lua_tostring(L, -1);
  }
  f->nna = n;
  f->na = text;
}

/* Pushes the tensor and, if the file has a header, the list of column names.
   [-0, +(1|2), e] */
static int load_matrix(lua_State *L, const Load *o, const TextFormat *f) {
  Tensor **x = nl_newbox(L), **names = nl_newbox(L);
  int r;
  nl_try(L, r, nc_loadtext(x, names, &o->from, f, o->dtype));
  if (r != NC_OK) nl_keep_options(L, o->options);
  nl_check_as(L, r, o->op);
  nl_push_loaded(L, o, NULL, 0, x);
  if (!f->header) return 1;
  nl_push_names(L, *names, nl_checktensor(L, -1)->size[1]);
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
  int r;
  columns = push_columns(L);
  lua_toclose(L, -1);
  nl_try(L, r, nc_loadcolumns(columns, &o->from, f, o->dtype));
  if (r != NC_OK) nl_keep_options(L, o->options);
  nl_check_as(L, r, o->op);
  lua_createtable(L, f->header ? 0 : (int)columns->n, 0);
  const int result = lua_gettop(L);
  if (f->header) {
    nl_push_names(L, columns->names, columns->n);
    check_column_names(L, o, columns->n);
  }
  for (int64_t i = 0; i < columns->n; i++) {
    Tensor **x = nl_newbox(L);
    *x = columns->column[i];
    columns->column[i] = NULL;
    nl_push_loaded(L, o, NULL, 0, x);
    if (f->header) {
      lua_rawgeti(L, result + 1, i + 1);
      lua_insert(L, -2);
      lua_rawset(L, result);
    } else lua_rawseti(L, result, i + 1);
    lua_pop(L, 1); /* *x */
  }
  return f->header ? 2 : 1;
}

/* Reads the option decimal. [-0, +0, e] */
static void read_decimal(lua_State *L, const Load *o, TextFormat *f,
                         const char *given) {
  f->comma = given && strcmp(given, ",") == 0;
  if (given && !f->comma && strcmp(given, ".") != 0)
    nl_error(L, o->op, "decimal must be \".\" or \",\"");
  if (!f->comma || f->delimiter != ',') return;
  nc_fail(NC_EVALUE, "decimal and delimiter are the same");
  nc_hint("{delimiter=\";\", decimal=\",\"}");
  nl_check_as(L, NC_EVALUE, o->op);
}

/* Reads the options for text files. [-0, +n, e] */
static void read_text_format(lua_State *L, const Load *o, TextFormat *f,
                             const Args *a, int options) {
  f->delimiter = nl_delimiter(L, o->op, a->arg[DELIMITER].text, o->format);
  f->header = (int)a->arg[HEADER].s.i;
  f->skip = a->arg[SKIP].s.i;
  static const Scalar nan = { .kind = NC_FLOAT, .f = NAN };
  read_decimal(L, o, f, a->arg[DECIMAL].text);
  read_na_values(L, o, f, options);
  f->missing = a->arg[MISSING].present ? &a->arg[MISSING].s
               : f->nna > 0            ? &nan
                                       : NULL;
  read_usecols(L, o, f, options);
  if (f->skip < 0)
    nl_error(L, o->op, "skip is %lld, but must not be negative",
             (long long)f->skip);
}

int nl_load_text(lua_State *L, const Load *o, const Args *a, int options) {
  TextFormat f = { 0 };
  read_text_format(L, o, &f, a, options);
  read_column_types(L, o, &f, options);
  if (a->arg[COLUMNS].s.i || f.types) return load_columns(L, o, &f);
  return load_matrix(L, o, &f);
}
