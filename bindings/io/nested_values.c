/* SPDX-License-Identifier: MIT */
/*
** nested_values.c - the values of a file of PyTorch as Lua values: lists,
** tuples and dicts are tables, None is nil.
**
** First every list and dict gets its table, then each table is filled, so that
** nothing recurses, and what is shared in the file is shared in Lua.
*/
#include <string.h>

#include "bindings/io/tensor_files.h"

typedef struct Values {
  const FileValue *value;
  const FileCell *cell;
  const char *text;
  int64_t n;
  int tensors, tables; /* stack indices */
} Values;

static int is_table(const FileValue *v) {
  return v->kind == NC_V_LIST || v->kind == NC_V_DICT;
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
    case NC_V_DICT: lua_rawgeti(L, all->tables, i + 1); break;
    case NC_V_TENSOR: lua_rawgeti(L, all->tensors, v->i + 1); break;
    case NC_V_DEVICE: push_device(L, all, v); break;
    default: lua_pushnil(L);
  }
}

/* Fills the table of value i. [-0, +0, e] */
static void fill_table(lua_State *L, const Values *all, int64_t i) {
  const FileValue *v = &all->value[i];
  lua_Integer k = 0;
  lua_rawgeti(L, all->tables, i + 1);
  for (int64_t c = v->i; c >= 0; c = all->cell[c].next) {
    if (v->kind == NC_V_LIST) {
      push_value(L, all, all->cell[c].value);
      lua_rawseti(L, -2, ++k);
      continue;
    }
    push_value(L, all, all->cell[c].value);
    c = all->cell[c].next;
    push_value(L, all, all->cell[c].value);
    lua_rawset(L, -3);
  }
  lua_pop(L, 1);
}

void nl_push_values(lua_State *L, const Archive *a, int tensors) {
  Values all = { .cell = nc_archivecells(a),
                 .text = nc_archivetext(a),
                 .tensors = tensors };
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
