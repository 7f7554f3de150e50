/* SPDX-License-Identifier: MIT */
/* vocabulary.c - makes a vocabulary of tables of Lua, and finds pieces. */
#include "bindings/text/vocabulary.h"

#include <lauxlib.h>
#include <string.h>

/* What the tables hold, before there is memory for it. */
typedef struct Sizes {
  int64_t pieces, bytes, merges;
  uint32_t slots, mergeslots;
} Sizes;

int nl_refuse_text(lua_State *L, const char *text) {
  lua_pushstring(L, text);
  return lua_error(L);
}

static uint32_t hash_bytes(const char *s, size_t n) {
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
  return h ^ h >> 15;
}

int32_t nl_find_piece(const Vocabulary *v, const char *s, size_t n) {
  uint32_t i = hash_bytes(s, n) & (v->slots - 1);
  for (int32_t k; (k = v->slot[i]) >= 0; i = (i + 1) & (v->slots - 1))
    if (v->piece[k].n == n && memcmp(v->bytes + v->piece[k].at, s, n) == 0)
      return k;
  return -1;
}

/* The least power of two with room for n. */
static uint32_t slots_for(lua_State *L, int64_t n) {
  uint32_t slots = 16;
  if (n > 1 << 26) nl_refuse_text(L, "the vocabulary is too large");
  while (slots < 2 * n) slots *= 2;
  return slots;
}

/* The length of the list in a field of the table at index 1, 0 without it; the
   list stays on the stack. */
static int64_t field_length(lua_State *L, const char *name) {
  if (lua_getfield(L, 1, name) != LUA_TTABLE) return 0;
  return (int64_t)lua_rawlen(L, -1);
}

static Sizes find_sizes(lua_State *L, int pieces) {
  Sizes z = { .pieces = (int64_t)lua_rawlen(L, pieces) };
  for (int64_t i = 1; i <= z.pieces; i++, lua_pop(L, 1)) {
    size_t n = 0;
    if (lua_rawgeti(L, pieces, i) == LUA_TSTRING) lua_tolstring(L, -1, &n);
    z.bytes += (int64_t)n;
  }
  z.merges = field_length(L, "merged");
  lua_pop(L, 1);
  z.slots = slots_for(L, z.pieces);
  if (z.merges) z.mergeslots = slots_for(L, z.merges);
  if (z.bytes > INT32_MAX) nl_refuse_text(L, "the vocabulary is too large");
  return z;
}

/* Pushes the userdata, whose arrays follow the struct, empty. */
static Vocabulary *new_memory(lua_State *L, const Sizes *z) {
  const size_t pieces = (size_t)z->pieces * sizeof(Piece);
  const size_t merges = (size_t)z->mergeslots * sizeof(Merge);
  const size_t slots = (size_t)z->slots * sizeof(int32_t);
  Vocabulary *v = lua_newuserdatauv(
      L, sizeof *v + pieces + merges + slots + (size_t)z->bytes + 1, 0);
  memset(v, 0, sizeof *v);
  v->n = (int32_t)z->pieces;
  v->slots = z->slots;
  v->mergeslots = z->mergeslots;
  v->piece = (Piece *)(v + 1);
  v->merge = (Merge *)(v->piece + z->pieces);
  v->slot = (int32_t *)(v->merge + z->mergeslots);
  v->bytes = (char *)(v->slot + z->slots);
  memset(v->slot, -1, slots);
  memset(v->merge, -1, merges);
  memset(v->byte, -1, sizeof v->byte);
  return v;
}

/* A piece that is there twice keeps its first number. */
static void add_pieces(lua_State *L, Vocabulary *v, int pieces) {
  uint32_t used = 0;
  for (int32_t k = 0; k < v->n; k++, lua_pop(L, 1)) {
    size_t n = 0;
    const char *s = NULL;
    v->piece[k] = (Piece){ used, 0, 0 };
    if (lua_rawgeti(L, pieces, k + 1) == LUA_TSTRING)
      s = lua_tolstring(L, -1, &n);
    if (n == 0 || nl_find_piece(v, s, n) >= 0) continue;
    memcpy(v->bytes + used, s, n);
    v->piece[k].n = (uint32_t)n;
    used += (uint32_t)n;
    if (n > v->longest) v->longest = (uint32_t)n;
    uint32_t i = hash_bytes(s, n) & (v->slots - 1);
    while (v->slot[i] >= 0) i = (i + 1) & (v->slots - 1);
    v->slot[i] = k;
  }
}

static void add_scores(lua_State *L, Vocabulary *v) {
  if (field_length(L, "scores") > 0)
    for (int32_t k = 0; k < v->n; k++, lua_pop(L, 1)) {
      lua_rawgeti(L, -1, k + 1);
      v->piece[k].score = lua_tonumber(L, -1);
      if (k == 0 || v->piece[k].score < v->least) v->least = v->piece[k].score;
    }
  lua_pop(L, 1);
}

/* Element i of the list in a field of the table at index 1. */
static int32_t integer_at(lua_State *L, int list, int64_t i) {
  lua_rawgeti(L, list, i);
  const int32_t x = (int32_t)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return x;
}

/* The merge with the lowest rank is stored last. */
static void add_merges(lua_State *L, Vocabulary *v, int64_t n) {
  const int top = lua_gettop(L);
  field_length(L, "left");
  field_length(L, "right");
  field_length(L, "merged");
  for (int64_t i = n; i > 0; i--) {
    const Merge x = { integer_at(L, top + 1, i), integer_at(L, top + 2, i),
                      (int32_t)i, integer_at(L, top + 3, i) };
    if (x.a < 0 || x.b < 0 || x.piece < 0 || x.a >= v->n || x.b >= v->n ||
        x.piece >= v->n)
      nl_refuse_text(L, "a merge has pieces that are not there");
    nl_add_merge(v, x);
  }
  lua_settop(L, top);
}

static int flag(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  const int on = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return on;
}

int nl_new_vocabulary(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_getfield(L, 1, "pieces");
  luaL_checktype(L, 2, LUA_TTABLE);
  const Sizes z = find_sizes(L, 2);
  Vocabulary *v = new_memory(L, &z);
  add_pieces(L, v, 2);
  add_scores(L, v);
  if (z.merges > 0) add_merges(L, v, z.merges);
  if (field_length(L, "bytes") == 256)
    for (int i = 0; i < 256; i++)
      v->byte[i] = integer_at(L, lua_gettop(L), i + 1);
  lua_pop(L, 1);
  lua_getfield(L, 1, "unknown");
  v->unknown = (int32_t)luaL_optinteger(L, -1, -1);
  lua_pop(L, 1);
  v->fuse_unknown = flag(L, "fuse_unknown");
  v->ignore_merges = flag(L, "ignore_merges");
  v->by_bytes = flag(L, "by_bytes");
  luaL_newmetatable(L, NL_VOCABULARY);
  lua_setmetatable(L, -2);
  return 1;
}

void nl_add_piece(Pieces *to, int32_t piece) {
  lua_pushinteger(to->L, piece);
  lua_rawseti(to->L, to->list, ++to->n);
}

int nl_add_unknown(Pieces *to, const Vocabulary *v, const char *s, size_t n,
                   int before) {
  size_t known = 0;
  while (!v->by_bytes && known < n && v->byte[(unsigned char)s[known]] >= 0)
    known++;
  if (known == n) {
    for (size_t i = 0; i < n; i++)
      nl_add_piece(to, v->byte[(unsigned char)s[i]]);
    return 0;
  }
  if (v->unknown >= 0 && !(before && v->fuse_unknown))
    nl_add_piece(to, v->unknown);
  return 1;
}
