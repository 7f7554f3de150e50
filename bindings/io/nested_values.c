/* SPDX-License-Identifier: MIT */
/*
** nested_values.c - the values of a file of PyTorch as Lua values: lists,
** tuples and dicts are tables, None is nil. An object is a table of its
** attributes, the items that it holds, and what it was made from.
**
** First every list and dict gets its table, then each table is filled, so that
** nothing recurses, and what is shared in the file is shared in Lua.
*/
#include <stdio.h>
#include <string.h>

#include "bindings/io/tensor_files.h"

typedef struct Values {
  const FileValue *value;
  const FileCell *cell;
  const char *text;
  int64_t n;
  int tensors, tables; /* stack indices */
  int classes;         /* have objects the name of their class? */
} Values;

static int is_table(const FileValue *v) {
  return v->kind == NC_V_LIST || v->kind == NC_V_DICT || v->kind == NC_V_OTHER;
}

/* Is value i this text? */
static int is_text(const Archive *a, int64_t i, const char *text) {
  int64_t n;
  const FileValue *v = nc_archivevalues(a, &n) + i;
  return v->kind == NC_V_TEXT && v->n == (int32_t)strlen(text) &&
         memcmp(nc_archivetext(a) + v->i, text, (size_t)v->n) == 0;
}

int nl_is_plain_object(const Archive *a, int64_t i) {
  static const char *const known[][2] = { { "argparse", "Namespace" },
                                          { "types", "SimpleNamespace" } };
  int64_t n;
  const FileValue *v = nc_archivevalues(a, &n) + i;
  const FileCell *cell = nc_archivecells(a), *first = &cell[v->i];
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (is_text(a, first->value, known[k][0]) &&
        is_text(a, cell[first->next].value, known[k][1]))
      return first->next >= 0 && cell[first->next].next >= 0; /* no class */
  return 0;
}

/* Pushes the bytes that the characters of a text, all below 256, are.
   [-0, +1, m] */
static void push_bytes(lua_State *L, const char *s, size_t n) {
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (size_t i = 0; i < n; i++) {
    const unsigned char c = (unsigned char)s[i];
    luaL_addchar(&b, c < 0x80 ? s[i] : (char)(c << 6 | (s[++i] & 0x3f)));
  }
  luaL_pushresult(&b);
}

/* Pushes the digits of an integer of n little-endian bytes in two's complement;
   a very long one is only described. [-0, +1, m] */
static void push_long(lua_State *L, const char *s, int64_t n) {
  enum { MOST = 64 };
  unsigned char b[MOST];
  char text[3 * MOST + 8], *p = text + sizeof text;
  const int negative = s[n - 1] < 0;
  int carry = negative, any = 1;
  if (n > MOST) {
    lua_pushfstring(L, "an integer of %I bytes", (lua_Integer)n);
    return;
  }
  for (int64_t i = 0; i < n; i++) { /* the magnitude */
    const int byte = (negative ? ~s[i] & 0xff : s[i] & 0xff) + carry;
    b[i] = (unsigned char)byte;
    carry = byte >> 8;
  }
  for (*--p = '\0'; any;) {
    int rest = any = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
      const int v = rest * 256 + b[i];
      b[i] = (unsigned char)(v / 10);
      rest = v % 10;
      any |= b[i];
    }
    *--p = (char)('0' + rest);
  }
  if (negative) *--p = '-';
  lua_pushstring(L, p);
}

static void push_value(lua_State *L, const Values *all, int64_t i);

/* Pushes "cuda:1", of a name and a number, or the name. [-0, +1, e] */
static void push_device(lua_State *L, const Values *all, const FileValue *v) {
  const FileCell *c = &all->cell[v->i];
  push_value(L, all, c->value);
  if (c->next < 0) return;
  lua_pushliteral(L, ":");
  push_value(L, all, all->cell[c->next].value);
  lua_concat(L, 3);
}

/* Pushes the parts of a path with '/' between them. [-0, +1, e] */
static void push_path(lua_State *L, const Values *all, const FileValue *v) {
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  char last = '/';
  for (int64_t c = v->i; c >= 0; c = all->cell[c].next) {
    const FileValue *part = &all->value[all->cell[c].value];
    const char *text = all->text + part->i;
    if (last != '/' && last != '\\') luaL_addchar(&b, '/');
    luaL_addlstring(&b, text, (size_t)part->n);
    if (part->n > 0) last = text[part->n - 1];
  }
  luaL_pushresult(&b);
}

/* Has the object a name? Keys that no table has, and storages, do not. */
static int has_name(const Values *all, const FileValue *v) {
  const FileCell *first = &all->cell[v->i];
  return all->value[first->value].n ||
         all->value[all->cell[first->next].value].n;
}

/* Pushes "module.name" of an object that has one. [-0, +1, m] */
static void push_class(lua_State *L, const Values *all, const FileValue *v) {
  const FileCell *first = &all->cell[v->i];
  const FileValue *module = &all->value[first->value];
  const FileValue *name = &all->value[all->cell[first->next].value];
  lua_pushlstring(L, all->text + module->i, (size_t)module->n);
  lua_pushstring(L, module->n ? "." : "");
  lua_pushlstring(L, all->text + name->i, (size_t)name->n);
  lua_concat(L, 3);
}

static void push_value(lua_State *L, const Values *all, int64_t i) {
  const FileValue *v = &all->value[i];
  switch (v->kind) {
    case NC_V_BOOL: lua_pushboolean(L, v->i != 0); break;
    case NC_V_INT: lua_pushinteger(L, v->i); break;
    case NC_V_LONG: push_long(L, all->text + v->i, v->n); break;
    case NC_V_FLOAT: lua_pushnumber(L, v->f); break;
    case NC_V_TEXT: lua_pushlstring(L, all->text + v->i, (size_t)v->n); break;
    case NC_V_BYTES: push_bytes(L, all->text + v->i, (size_t)v->n); break;
    case NC_V_LIST:
    case NC_V_OTHER:
    case NC_V_DICT: lua_rawgeti(L, all->tables, i + 1); break;
    case NC_V_TENSOR: lua_rawgeti(L, all->tensors, v->i + 1); break;
    case NC_V_DEVICE: push_device(L, all, v); break;
    case NC_V_PATH: push_path(L, all, v); break;
    default: lua_pushnil(L);
  }
}

/* Adds a value as Python writes it, as far as a key needs it. [-0, +0, m] */
static void add_written(luaL_Buffer *b, const Values *all, int64_t i) {
  const FileValue *v = &all->value[i];
  char text[40];
  switch (v->kind) {
    case NC_V_TEXT:
      luaL_addchar(b, '\'');
      luaL_addlstring(b, all->text + v->i, (size_t)v->n);
      luaL_addchar(b, '\'');
      return;
    case NC_V_INT: snprintf(text, sizeof text, "%lld", (long long)v->i); break;
    case NC_V_FLOAT: nc_format(text, sizeof text, "%.17g", v->f); break;
    case NC_V_BOOL: strcpy(text, v->i ? "True" : "False"); break;
    case NC_V_NONE: strcpy(text, "None"); break;
    default: strcpy(text, "?");
  }
  luaL_addstring(b, text);
}

/* Pushes the text of a key that no table has: "None", "(1, 2)"; v holds it.
   [-0, +1, m] */
static void push_written(lua_State *L, const Values *all, const FileValue *v) {
  const FileCell *name = &all->cell[all->cell[v->i].next];
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  const int64_t held = name->next < 0 ? -1 : all->cell[name->next].value;
  if (held < 0) luaL_addchar(&b, '?');
  else if (all->value[held].kind != NC_V_LIST) add_written(&b, all, held);
  else {
    luaL_addchar(&b, '(');
    for (int64_t c = all->value[held].i; c >= 0; c = all->cell[c].next) {
      add_written(&b, all, all->cell[c].value);
      if (all->cell[c].next >= 0) luaL_addstring(&b, ", ");
    }
    luaL_addchar(&b, ')');
  }
  luaL_pushresult(&b);
}

/* Pushes a key of a dict; a text of what no table has as a key. [-0, +1, e] */
static void push_key(lua_State *L, const Values *all, int64_t i) {
  const FileValue *v = &all->value[i];
  if (v->kind != NC_V_OTHER) {
    push_value(L, all, i);
    return;
  }
  if (has_name(all, v)) push_class(L, all, v);
  else push_written(L, all, v);
}

/* Puts the elements of a list or the entries of a dict into the table on top,
   the elements from number *k on. [-0, +0, e] */
static void put_items(lua_State *L, const Values *all, const FileValue *v,
                      lua_Integer *k) {
  for (int64_t c = v->i; c >= 0; c = all->cell[c].next) {
    if (v->kind == NC_V_LIST) {
      push_value(L, all, all->cell[c].value);
      lua_rawseti(L, -2, ++*k);
      continue;
    }
    push_key(L, all, all->cell[c].value);
    c = all->cell[c].next;
    push_value(L, all, all->cell[c].value);
    lua_rawset(L, -3);
  }
}

/* Puts what an object holds after its two names: the lists and dicts there are
   its own. [-0, +0, e] */
static void put_object(lua_State *L, const Values *all, const FileValue *v) {
  const int64_t name = all->cell[v->i].next;
  lua_Integer k = 0;
  for (int64_t c = all->cell[name].next; c >= 0; c = all->cell[c].next) {
    const FileValue *held = &all->value[all->cell[c].value];
    if (held->kind == NC_V_LIST || held->kind == NC_V_DICT) {
      put_items(L, all, held, &k);
      continue;
    }
    push_value(L, all, all->cell[c].value);
    lua_rawseti(L, -2, ++k);
  }
  if (!all->classes || !has_name(all, v)) return;
  push_class(L, all, v);
  lua_setfield(L, -2, "__class");
}

/* Fills the table of value i. [-0, +0, e] */
static void fill_table(lua_State *L, const Values *all, int64_t i) {
  const FileValue *v = &all->value[i];
  lua_Integer k = 0;
  lua_rawgeti(L, all->tables, i + 1);
  if (v->kind == NC_V_OTHER) put_object(L, all, v);
  else put_items(L, all, v, &k);
  lua_pop(L, 1);
}

void nl_push_values(lua_State *L, const Archive *a, int tensors, int classes) {
  Values all = { .cell = nc_archivecells(a),
                 .text = nc_archivetext(a),
                 .tensors = tensors,
                 .classes = classes };
  all.value = nc_archivevalues(a, &all.n);
  lua_newtable(L);
  all.tables = lua_gettop(L);
  for (int64_t i = 0; i < all.n; i++) {
    if (!is_table(&all.value[i])) continue;
    lua_newtable(L);
    lua_rawseti(L, all.tables, i + 1);
  }
  for (int64_t i = 0; i < all.n; i++)
    if (is_table(&all.value[i])) fill_table(L, &all, i);
  push_value(L, &all, nc_archiveroot(a));
  lua_replace(L, all.tables);
}
