/* SPDX-License-Identifier: MIT */
/*
** save.c - nacre.save and nacre.serialize: write one tensor, several with
** names, or nested values. The format, a row of core/file_formats.h, follows
** from the extension or {format=}.
*/

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "bindings/io/tensor_files.h"
#include "bindings/arguments/arguments.h"
#include "bindings/lua_library.h"
#include "bindings/state.h"

typedef struct Save {
  const char *op;
  Sink to;
  FileFormat format;
  const char *name; /* extension or {format=} */
  int self;         /* stack index of the tensor or table to save */
  int options;      /* stack index of the options, or 0 */
  int compressed;
  int quality;
  const char *delimiter;
} Save;

/* Raises the current error with a hint. [-0, +0, v] */
static int fail_with_hint(lua_State *L, const Save *o, const char *hint) {
  nc_hint("%s", hint);
  return nl_check_op(L, NC_EVALUE, o->op);
}

/* Raises the error for an unknown extension, with a hint for well-known ones.
   [-0, +0, v] */
static int unknown_format(lua_State *L, const Save *o) {
  const char *extension = o->name;
  nc_fail(NC_EVALUE, "there is no format .%s", extension);
  if (strcmp(extension, "bin") == 0)
    return fail_with_hint(L, o, "PyTorch reads .pt and .safetensors");
  char one[NL_FORMATS], many[NL_FORMATS];
  nc_hint("%s hold one tensor, %s several",
          nc_formatlist(one, sizeof one, NC_ONE, ".", "and"),
          nc_formatlist(many, sizeof many, NC_MANY, ".", "and"));
  return nl_check_op(L, NC_EVALUE, o->op);
}

/* The hint for save(t, "x.pt"), PyTorch's order of arguments: the correct call,
   with an extension that exists. */
static void hint_path_first(lua_State *L, const char *path) {
  const int several = lua_istable(L, 1);
  const FileFormat f = nc_formatbyname(path);
  const char *dot = strrchr(path, '.');
  const int n =
      (int)(f == FORMAT_UNKNOWN && dot ? dot - path : (long)strlen(path));
  const char *extension = f != FORMAT_UNKNOWN ? ""
                          : several           ? ".safetensors"
                                              : ".npy";
  nc_hint("nacre.save(\"%.*s%s\", t)", n, path, extension);
}

/* Pushes an array with the n strings of the list at index i. [-0, +1, e] */
static const char **text_array(lua_State *L, const Save *o, int i, int64_t n) {
  const char **list = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *list, 0);
  for (int64_t k = 0; k < n; k++) {
    if (lua_rawgeti(L, i, k + 1) != LUA_TSTRING)
      nl_error(L, o->op, "header must be a list of texts");
    list[k] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  return list;
}

static void save_text(lua_State *L, const Save *o) {
  NamedTensor t = { "", nl_checktensor(L, o->self) };
  FileContents c = { .list = &t, .n = 1 };
  c.delimiter = nl_delimiter(L, o->op, o->delimiter, o->format);
  if (nl_option(L, o->options, "header") != LUA_TNIL) {
    const int64_t columns = t.t->nd > 1 ? t.t->size[1] : 1;
    if (!lua_istable(L, -1))
      nl_error(L, o->op, "header must be a list of texts, not a %s",
               nl_typename(L, -1));
    nl_plain_table(L, -1, 0);
    if ((int64_t)lua_rawlen(L, -1) != columns)
      nl_error(L, o->op, "header has %d names, the matrix %lld columns",
               (int)lua_rawlen(L, -1), (long long)columns);
    c.columns = text_array(L, o, lua_gettop(L), columns);
  }
  nl_try_as(L, o->op, nc_savefile(&o->to, o->format, &c));
}

/* The string at index i; raises an error if a file cannot hold it.
   [-0, +0, e] */
static const char *check_text(lua_State *L, const Save *o, int i,
                              const char *what) {
  size_t n;
  const char *s = lua_tolstring(L, i, &n);
  nl_check_as(L, nc_checktext(s, n, what), o->op);
  return s;
}

/* Pushes the name under which the entry with the key at index i is saved; the
   list part of the table has n elements. [-0, +1, e] */
static void pushname(lua_State *L, const Save *o, int i, lua_Integer n) {
  if (lua_type(L, i) == LUA_TSTRING) {
    const size_t length = strlen(check_text(L, o, i, "a name"));
    if (length == 0 || length > NC_MAXNAME)
      nl_error(L, o->op, "a name has 1 to %d bytes, not %d", NC_MAXNAME,
               (int)length);
    lua_pushvalue(L, i);
  } else if (lua_isinteger(L, i) && lua_tointeger(L, i) >= 1 &&
             lua_tointeger(L, i) <= n) {
    lua_pushfstring(L, "arr_%I", (LUAI_UACINT)(lua_tointeger(L, i) - 1));
  } else
    nl_error(L, o->op,
             "tensors must have names or form a list, the key %s is neither a "
             "name nor a position",
             luaL_tolstring(L, i, NULL));
}

/* Raises the error for a value that is not a tensor. [-0, +0, v] */
static int not_a_tensor(lua_State *L, const Save *o, const char *name, int i) {
  nc_fail(NC_EVALUE, "%s must be a tensor, not a %s", name, nl_typename(L, i));
  nc_cause((Cause){ NC_CAUSE_tensor, name, nl_typename(L, i) });
  if (lua_istable(L, i)) {
    char list[NL_FORMATS];
    nc_hint("%s files hold nested tables",
            nc_formatlist(list, sizeof list, NC_NESTED, ".", "and"));
    return nl_check_op(L, NC_EVALUE, o->op);
  }
  return fail_with_hint(
      L, o,
      lua_pushfstring(L, "nacre.tensor(%s) makes one of a number or a table",
                      lua_type(L, i) == LUA_TNUMBER ? luaL_tolstring(L, i, NULL)
                                                    : "x"));
}

/* The first element that the list at index i lacks, or 0. [-0, +0, -] */
static lua_Integer hole_in(lua_State *L, int i) {
  const lua_Integer n = (lua_Integer)lua_rawlen(L, i);
  for (lua_Integer k = 1; k <= n; k++) {
    const int type = lua_rawgeti(L, i, k);
    lua_pop(L, 1);
    if (type == LUA_TNIL) return k;
  }
  return 0;
}

/* Pushes an array of the tensors of the table, in the order of lua_next, and a
   table that keeps their names alive. [-0, +2, e] */
static NamedTensor *tensors(lua_State *L, const Save *o, int64_t *count) {
  nl_plain_table(L, o->self, 0);
  const lua_Integer listed = (lua_Integer)lua_rawlen(L, o->self);
  const lua_Integer hole = hole_in(L, o->self);
  NamedTensor *list;
  int64_t n = 0;
  if (hole)
    nl_error(L, o->op, "element %lld of a list is nil: a list has no holes",
             (long long)hole);
  for (lua_pushnil(L); lua_next(L, o->self); lua_pop(L, 1)) n++;
  list = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *list, 0);
  lua_newtable(L);
  const int kept = lua_gettop(L);
  n = 0;
  for (lua_pushnil(L); lua_next(L, o->self); lua_pop(L, 1)) {
    if (listed > 0 && nl_ispacked(L, listed)) continue;
    pushname(L, o, kept + 1, listed);
    list[n].name = lua_tostring(L, -1);
    if (!nl_totensor(L, kept + 2)) not_a_tensor(L, o, list[n].name, kept + 2);
    list[n++].t = nl_checktensor(L, kept + 2);
    if (lua_rawget(L, kept) != LUA_TNIL)
      nl_error(L, o->op, "two tensors have the name %s", list[n - 1].name);
    lua_pop(L, 1);
    lua_pushstring(L, list[n - 1].name);
    lua_pushboolean(L, 1);
    lua_rawset(L, kept);
  }
  if (n == 0) nl_error(L, o->op, "the table has no tensors");
  *count = n;
  return list;
}

static int by_name(const void *a, const void *b) {
  const char *x = ((const NamedTensor *)a)->name;
  const char *y = ((const NamedTensor *)b)->name;
  const int64_t i = nl_listplace(x), j = nl_listplace(y);
  return i && j ? (i > j) - (i < j) : strcmp(x, y);
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Pushes an array of the strings in the table on top: name, value, name, value,
   ..., sorted by name. Returns NULL, with nothing pushed, if nil is on top.
   [-0, +(0|1), e] */
static const char **metadata(lua_State *L, const Save *o, int64_t *n) {
  const int t = lua_gettop(L);
  const char **list;
  *n = 0;
  if (lua_isnil(L, t)) return NULL;
  if (!lua_istable(L, t))
    nl_error(L, o->op, "metadata must be a table of texts, not a %s",
             nl_typename(L, t));
  nl_plain_table(L, t, 0);
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
      nl_error(L, o->op, "metadata must be a table of texts by name");
    ++*n;
  }
  list = lua_newuserdatauv(L, (size_t)(2 * *n + 1) * sizeof *list, 0);
  *n = 0;
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    list[2 * *n] = check_text(L, o, -2, "metadata");
    list[2 * (*n)++ + 1] = check_text(L, o, -1, "metadata");
  }
  qsort(list, (size_t)*n, 2 * sizeof *list, by_text);
  return list;
}

/* Is the table at index i anything else than a plain table of tensors?
   [-0, +0, m] */
static int is_nested(lua_State *L, int i) {
  if (lua_getmetatable(L, i)) {
    lua_pop(L, 1);
    return 1;
  }
  if (hole_in(L, i)) return 1;
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1))
    if (!nl_totensor(L, -1) && !nl_ispacked(L, (int64_t)lua_rawlen(L, i))) {
      lua_pop(L, 2);
      return 1;
    }
  return 0;
}

/* Replaces nested tables and modules by their tensors, and adds their structure
   to the metadata on top (nested_safetensors.lua). [-0, +0, e] */
static void flatten(lua_State *L, const Save *o) {
  const int meta = lua_gettop(L);
  if (!is_nested(L, o->self)) return;
  nl_push_module_function(L, "to_flat");
  lua_pushvalue(L, o->self);
  lua_call(L, 1, 2);
  if (!lua_isnil(L, -1)) {
    lua_newtable(L);
    for (lua_pushnil(L); lua_istable(L, meta) && lua_next(L, meta);) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_rawset(L, meta + 3);
    }
    lua_settop(L, meta + 3);
    lua_pushvalue(L, meta + 2);
    lua_setfield(L, meta + 3, "nacre");
    lua_replace(L, meta);
  }
  lua_pushvalue(L, meta + 1);
  lua_replace(L, o->self);
  lua_settop(L, meta);
}

/* Replaces nested tables by a table of their tensors by path
   (nested_groups.lua). [-0, +0, e] */
static void flatten_groups(lua_State *L, const Save *o) {
  if (!is_nested(L, o->self)) return;
  nl_push_module_function(L, "to_paths");
  lua_pushvalue(L, o->self);
  lua_call(L, 1, 1);
  lua_replace(L, o->self);
}

/* [-0, +n, e] */
static void save_archive(lua_State *L, const Save *o) {
  FileContents c = { .compressed = o->compressed };
  nl_option(L, o->options, "metadata");
  if (nc_formatcan(o->format, NC_AS_METADATA)) flatten(L, o);
  if (nc_formatcan(o->format, NC_AS_PATHS)) flatten_groups(L, o);
  c.meta = metadata(L, o, &c.nmeta);
  c.list = tensors(L, o, &c.n);
  qsort(c.list, (size_t)c.n, sizeof *c.list, by_name);
  nl_try_as(L, o->op, nc_savefile(&o->to, o->format, &c));
}

/* Writes what pickle.lua makes of the value. [-?, +?, e] */
static void save_pickle(lua_State *L, const Save *o) {
  FileContents c = { 0 };
  size_t bytes;
  nl_push_module_function(L, "to_pickle");
  lua_pushvalue(L, o->self);
  lua_call(L, 1, 2);
  const int storages = lua_gettop(L);
  c.n = (int64_t)lua_rawlen(L, storages);
  c.pickle = lua_tolstring(L, storages - 1, &bytes);
  c.picklebytes = (int64_t)bytes;
  c.list = lua_newuserdatauv(L, (size_t)(c.n + 1) * sizeof *c.list, 0);
  for (int64_t i = 0; i < c.n; i++) {
    lua_rawgeti(L, storages, i + 1);
    c.list[i] = (NamedTensor){ "", nl_checktensor(L, -1) };
    lua_pop(L, 1); /* the list keeps it alive */
  }
  nl_try_as(L, o->op, nc_savefile(&o->to, o->format, &c));
}

/* Raises an error unless the value to save is what the format holds: one
   tensor, or a table of tensors. [-0, +0, e] */
static void check_self(lua_State *L, const Save *o) {
  const int i = o->self, one = nc_formatcan(o->format, NC_ONE);
  const int table = lua_istable(L, i) && !nl_totensor(L, i);
  if (nl_totensor(L, i) && nc_formatcan(o->format, NC_AS_VALUES)) return;
  if (nl_totensor(L, i) && !one) {
    nc_fail(NC_EVALUE, "such a file holds tensors by name");
    fail_with_hint(L, o, "{x = t}, or {t, u} without names");
  }
  if (nl_totensor(L, i) || (table && !one)) return;
  nc_fail(NC_EVALUE, "t must be a tensor, not %s%s",
          lua_isnone(L, i) ? "" : "a ",
          lua_isnone(L, i) ? "nothing" : nl_typename(L, i));
  nc_cause((Cause){ NC_CAUSE_tensor, "t", nl_typename(L, i) });
  if (table) {
    char list[NL_FORMATS];
    if (o->to.bytes)
      nc_hint("%s hold several",
              nc_formatlist(list, sizeof list, NC_MANY, "", "and"));
    else
      nc_hint("a %s file holds several: nacre.save(\"w.npz\", {w = w})",
              nc_formatlist(list, sizeof list, NC_MANY, ".", "or"));
  }
  nl_check_op(L, NC_EVALUE, o->op);
}

/* Raises an error for an option of another format. [-0, +0, e] */
static void check_options(lua_State *L, const Save *o) {
  static const struct {
    unsigned ability;
    const char *names[3];
  } some[] = { { NC_AS_TEXT, { "delimiter", "header", NULL } },
               { NC_COMPRESS, { "compressed", NULL } },
               { NC_QUALITY, { "quality", NULL } },
               { NC_METADATA, { "metadata", NULL } } };
  for (int i = 0; i < 4; i++)
    if (!nc_formatcan(o->format, some[i].ability))
      nl_checkoptions(L, o->op, o->options, some[i].names, some[i].ability);
}

/* Reads the options, which follow the value to save; that value may itself be a
   table. `first' is the position of `compressed' in the signature.
   [-?, +n, e] */
static void read_options(lua_State *L, Save *o, int first) {
  const int at = o->self + 1;
  const int given = lua_gettop(L) > at || !lua_isnoneornil(L, at);
  Args a;
  /* add {compressed=false}, the default, so that nl_args does not take the
     value to save for options */
  if (!given) {
    lua_settop(L, o->self);
    lua_createtable(L, 0, 1);
    nl_set_boolean(L, "compressed", 0);
  }
  nl_args(L, &a);
  o->options = given ? at : 0;
  o->compressed = (int)a.arg[first].s.i;
  o->delimiter = a.arg[first + 2].text;
  if (a.arg[first + 5].s.i < 1 || a.arg[first + 5].s.i > 100)
    nl_error(L, o->op, "quality is 1 to 100, not %lld",
             (long long)a.arg[first + 5].s.i);
  o->quality = (int)a.arg[first + 5].s.i;
  o->to.atomic = first == 3 ? (int)a.arg[2].s.i : 1;
  if (given) check_options(L, o);
}

static const char *format_option(lua_State *L, int options) {
  const char *format;
  nl_option(L, options, "format");
  format = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  lua_pop(L, 1); /* the table keeps the string alive */
  return format;
}

/* Replaces a module or another object by its state_dict. [-0, +0, e] */
static void take_state(lua_State *L, const Save *o) {
  if (nc_formatcan(o->format, NC_ONE) || !lua_getmetatable(L, o->self)) return;
  lua_pop(L, 1);
  if (nl_totensor(L, o->self)) return;
  nl_push_module_function(L, "state_of");
  lua_pushvalue(L, o->self);
  lua_call(L, 1, 1);
  lua_replace(L, o->self);
}

static void save_tensor(lua_State *L, const Save *o) {
  NamedTensor t = { "", nl_checktensor(L, o->self) };
  const FileContents c = { &t, .n = 1, .quality = o->quality };
  nl_try_as(L, o->op, nc_savefile(&o->to, o->format, &c));
}

static void write_value(lua_State *L, Save *o) {
  if (nc_formatcan(o->format, NC_AS_VALUES)) save_pickle(L, o);
  else if (nc_formatcan(o->format, NC_MANY)) save_archive(L, o);
  else if (nc_formatcan(o->format, NC_AS_TEXT)) save_text(L, o);
  else save_tensor(L, o);
}

int nl_save(lua_State *L) {
  Save o = { .op = "save", .self = 2 };
  if ((nl_totensor(L, 1) || lua_istable(L, 1)) &&
      lua_type(L, 2) == LUA_TSTRING) {
    nc_fail(NC_EVALUE, "the path comes first, then the tensor");
    hint_path_first(L, lua_tostring(L, 2));
    return nl_check_op(L, NC_EVALUE, "save");
  }
  if (lua_type(L, 1) != LUA_TSTRING)
    return nl_error(L, "save", "path must be a string, not a %s",
                    nl_typename(L, 1));
  o.to.path = lua_tostring(L, 1);
  o.name = format_option(L, 3);
  o.format = o.name ? nc_formatnamed(o.name) : nc_formatbyname(o.to.path);
  if (o.name == NULL) o.name = nc_extension(o.to.path);
  if (o.format == FORMAT_UNKNOWN) return unknown_format(L, &o);
  take_state(L, &o);
  check_self(L, &o);
  read_options(L, &o, 3);
  write_value(L, &o);
  return 0;
}

/* serialize(self, options): the bytes that save would write, as a string */
int nl_serialize(lua_State *L) {
  Save o = { .op = "serialize", .self = 1 };
  Tensor **bytes;
  const int table = lua_istable(L, 1) && !nl_totensor(L, 1);
  Tensor *none = NULL;
  o.to.path = "data";
  o.to.bytes = &none; /* replaced by a userdata below */
  o.name = format_option(L, 2);
  if (o.name == NULL) o.name = table ? "safetensors" : "npy";
  o.format = nc_formatnamed(o.name);
  if (o.format == FORMAT_UNKNOWN) return unknown_format(L, &o);
  take_state(L, &o);
  check_self(L, &o);
  read_options(L, &o, 1);
  bytes = nl_newbox(L);
  o.to.bytes = bytes;
  write_value(L, &o);
  lua_pushlstring(L, nc_data(*bytes), (size_t)nc_numel(*bytes));
  nc_release(*bytes); /* free it now: it is as large as the string */
  *bytes = NULL;
  return 1;
}
