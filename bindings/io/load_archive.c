/* SPDX-License-Identifier: MIT */
/*
** load_archive.c - nacre.load of a file of several tensors: the table of them,
** slices, metadata and attributes.
*/
#include <stdio.h>
#include <string.h>

#include "bindings/io/load.h"
#include "bindings/arguments/arguments.h"
#include "bindings/lua_library.h"
#include "bindings/state.h"
#include "core/suggest.h"

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
  nl_check_as(L, nc_archiveinfo(&info, a, i), o->op);
  const unsigned removed = read_slice(L, o, &s, &info);
  nl_try_as(L, o->op, nc_archiveslice(x, a, i, &s));
  remove_dimensions(*x, removed);
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
  near = nc_nearest(name, names);
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
    nl_push_names(L, x->value, x->texts);
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

/* The outermost value for which Lua has no type, or -1. [-0, +0, m] */
static int64_t find_other(lua_State *L, const Archive *a) {
  int64_t n, first = 0, last = 0;
  const FileValue *v = nc_archivevalues(a, &n);
  const FileCell *cell = nc_archivecells(a);
  int64_t *queue = lua_newuserdatauv(L, (size_t)n * sizeof *queue, 0);
  char *seen = memset(lua_newuserdatauv(L, (size_t)n, 0), 0, (size_t)n);
  seen[queue[last++] = nc_archiveroot(a)] = 1;
  while (first < last && (v[queue[first]].kind != NC_V_OTHER ||
                          nl_is_plain_object(a, queue[first]))) {
    const FileValue *x = &v[queue[first++]];
    if (x->kind != NC_V_LIST && x->kind != NC_V_DICT && x->kind != NC_V_OTHER)
      continue;
    for (int64_t c = x->i; c >= 0; c = cell[c].next) {
      const int64_t inner = cell[c].value;
      if (!seen[inner]) queue[last++] = inner;
      seen[inner] = 1;
    }
  }
  const int64_t found = first < last ? queue[first] : -1;
  lua_pop(L, 2);
  return found;
}

/* Adds to the hint the option that reads objects as tables. [-0, +0, m] */
static void hint_unknown(lua_State *L, const Load *o) {
  char before[sizeof nc_lasterror()->hint];
  snprintf(before, sizeof before, "%s", nc_lasterror()->hint);
  nc_hint("{unknown=\"table\"} reads it as a table");
  nl_keep_options(L, o->options);
  if (before[0]) {
    char unknown[sizeof before];
    snprintf(unknown, sizeof unknown, "%s", nc_lasterror()->hint);
    if (strlen(before) + strlen(unknown) + 3 < sizeof before)
      nc_hint("%s, %s", before, unknown);
  }
}

/* Raises an error if the file holds what no value of ours is. [-0, +0, e] */
static void check_values(lua_State *L, const Load *o, Archive *a) {
  int64_t n;
  const FileValue *v = nc_archivevalues(a, &n);
  const FileCell *cell = nc_archivecells(a);
  const int64_t i = find_other(L, a);
  char shown[2][80];
  if (i < 0) return;
  const FileCell *first = &cell[v[i].i];
  const FileValue *part[] = { &v[first->value], &v[cell[first->next].value] };
  for (int k = 0; k < 2; k++)
    nc_printable(shown[k], sizeof shown[k], nc_archivetext(a) + part[k]->i,
                 (size_t)part[k]->n);
  if (*shown[0] || *shown[1])
    nc_fail(NC_EFILE,
            "%s: refuses \"%s%s%s\": tensors, numbers, texts, lists and dicts "
            "are read, and nothing in a file is executed",
            o->from.path, shown[0], *shown[0] ? "." : "", shown[1]);
  else
    nc_fail(NC_EFILE,
            "%s: a key of a dict is not a string, number or bool, or it has a "
            "storage without a tensor",
            o->from.path);
  nl_hint_names(L, o, a, -1);
  hint_unknown(L, o);
  nl_check_as(L, NC_EFILE, o->op);
}

/* Pushes a table in place of tensor i, if it is none of ours, and returns 1;
   else 0. [-0, +(0|1), m] */
static int push_foreign(lua_State *L, Archive *a, int64_t i) {
  TensorInfo t;
  const int known = nc_archiveinfo(&t, a, i) == NC_OK;
  if (known && t.dtype != DT_NONE) return 0;
  lua_newtable(L);
  lua_pushliteral(L, "torch.Tensor");
  lua_setfield(L, -2, "__class");
  if (!known) return 1; /* it has too many dimensions */
  lua_pushstring(L, t.foreign);
  lua_setfield(L, -2, "dtype");
  lua_createtable(L, t.nd, 0);
  for (int d = 0; d < t.nd; d++) {
    lua_pushinteger(L, t.size[d]);
    lua_rawseti(L, -2, d + 1);
  }
  lua_setfield(L, -2, "shape");
  return 1;
}

/* Pushes what a file of nested values holds. [-0, +1, e] */
static int load_values(lua_State *L, const Load *o, Archive *a) {
  int64_t n;
  if (!o->unknown) check_values(L, o, a);
  const FileValue *v = nc_archivevalues(a, &n);
  lua_newtable(L);
  const int tensors = lua_gettop(L);
  for (const FileValue *end = v + n; v < end; v++) {
    if (v->kind != NC_V_TENSOR) continue;
    if (!o->unknown || !push_foreign(L, a, v->i))
      nl_push_loaded(L, o, a, v->i, nl_newbox(L));
    lua_rawseti(L, tensors, v->i + 1);
    lua_settop(L, tensors);
  }
  nl_push_values(L, a, tensors, o->unknown);
  return 1;
}

int nl_load_archive(lua_State *L, const Load *o, int names) {
  Archive **a = nl_new_archive(L);
  lua_toclose(L, -1);
  int64_t n, list;
  int result;
  nl_check_as(L, nc_openarchive(a, &o->from, o->format), o->op);
  if (o->slice && !nc_canslice(*a))
    nl_wrong_option(L, o->op, "slice", NC_SLICE);
  if (nc_formatcan(o->format, NC_AS_VALUES) && lua_isnil(L, names) &&
      (o->unknown || !nc_archiveisprogram(*a)))
    return load_values(L, o, *a);
  const int paths = nc_formatcan(o->format, NC_AS_PATHS);
  n = nc_archivesize(*a);
  list = paths ? 0 : list_length(*a);
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
    nl_push_loaded(L, o, *a, i, x);
    if (k) lua_rawseti(L, result, k);
    else lua_setfield(L, result, name);
    lua_pop(L, 1); /* *x */
  }
  const int whole = lua_isnil(L, result + 1);
  lua_settop(L, result);
  if (paths) return nest_groups(L, o, *a);
  n = 1 + push_metadata(L, *a);
  return n == 2 && whole ? nest(L) : (int)n;
}
