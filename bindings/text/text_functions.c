/* SPDX-License-Identifier: MIT */
/*
** text_functions.c - the functions of the folder for Lua (lib/text): patterns,
** composed characters, and the pieces of a text.
*/
#include "bindings/text/text_functions.h"

#include <string.h>

#include "bindings/text/charsmap.h"
#include "bindings/text/pattern.h"
#include "bindings/text/unicode.h"
#include "bindings/text/vocabulary.h"

#define PATTERN "nacre.pattern"

/* pattern(text, literal): the pattern, or nil and why it cannot be compiled. */
static int new_pattern(lua_State *L) {
  size_t n;
  const char *text = luaL_checklstring(L, 1, &n), *why;
  lua_settop(L, 2);
  Pattern *p = lua_newuserdatauv(L, sizeof *p, 0);
  if ((why = nl_compile_pattern(p, text, n, lua_toboolean(L, 2))) != NULL) {
    lua_pushnil(L);
    lua_pushstring(L, why);
    return 2;
  }
  luaL_newmetatable(L, PATTERN);
  lua_setmetatable(L, -2);
  return 1;
}

/*
** Parts of a text
*/
/* How the matches and what is between them become parts. */
typedef enum Behavior {
  REMOVED,
  ISOLATED,
  WITH_PREVIOUS,
  WITH_NEXT,
  CONTIGUOUS
} Behavior;

typedef struct Parts {
  lua_State *L;
  int list;
  lua_Integer n;
  Behavior behavior;
  const char *from, *to; /* the part that is not added yet */
  int matched;           /* was the last piece a match? */
} Parts;

static void end_part(Parts *p) {
  if (p->to > p->from) {
    lua_pushlstring(p->L, p->from, (size_t)(p->to - p->from));
    lua_rawseti(p->L, p->list, ++p->n);
  }
  p->from = p->to;
}

static void add_piece(Parts *p, const char *from, const char *to, int match) {
  int joins = 0;
  if (from == to) return;
  switch (p->behavior) {
    case REMOVED: break;
    case ISOLATED: break;
    case WITH_PREVIOUS: joins = match && !p->matched; break;
    case WITH_NEXT: joins = !match && p->matched; break;
    case CONTIGUOUS: joins = match == p->matched; break;
  }
  if (!joins || p->from == p->to) {
    end_part(p);
    p->from = from;
  }
  p->to = to;
  if (p->behavior == REMOVED && match) p->from = to;
  p->matched = match;
}

/* split(pattern, text, behavior, invert, list): appends the parts. */
static int split(lua_State *L) {
  static const char *const names[] = {
    "Removed",        "Isolated",   "MergedWithPrevious",
    "MergedWithNext", "Contiguous", NULL
  };
  size_t n;
  const Pattern *pattern = luaL_checkudata(L, 1, PATTERN);
  const char *text = luaL_checklstring(L, 2, &n), *from, *to, *at = text;
  const int invert = lua_toboolean(L, 4);
  Parts p = { .L = L, .list = 5, .from = text, .to = text };
  Matcher m;
  p.behavior = (Behavior)luaL_checkoption(L, 3, NULL, names);
  luaL_checktype(L, 5, LUA_TTABLE);
  lua_settop(L, 5);
  p.n = (lua_Integer)lua_rawlen(L, 5);
  nl_start_matcher(&m, L, pattern, text, n);
  for (const char *next = text; nl_find_pattern(&m, next, &from, &to);) {
    add_piece(&p, at, from, invert);
    add_piece(&p, from, to, !invert);
    at = to;
    next = to > from ? to : to + 1;
    if (next > m.end) break;
  }
  add_piece(&p, at, m.end, invert);
  end_part(&p);
  lua_settop(L, 5);
  return 1;
}

/* replace(pattern, text, content): the text with content for each match. */
static int replace(lua_State *L) {
  size_t n, k;
  const Pattern *pattern = luaL_checkudata(L, 1, PATTERN);
  const char *text = luaL_checklstring(L, 2, &n), *from, *to, *at = text;
  const char *content = luaL_checklstring(L, 3, &k);
  Matcher m;
  luaL_Buffer b;
  nl_start_matcher(&m, L, pattern, text, n);
  lua_createtable(L, 0, 0);
  /* the matcher uses the stack, where a buffer must be on top */
  lua_Integer parts = 0;
  const int list = lua_gettop(L);
  for (const char *next = text; nl_find_pattern(&m, next, &from, &to);) {
    lua_pushlstring(L, at, (size_t)(from - at));
    lua_rawseti(L, list, ++parts);
    at = to;
    next = to > from ? to : to + 1;
    if (next > m.end) break;
  }
  luaL_buffinit(L, &b);
  for (lua_Integer i = 1; i <= parts; i++) {
    lua_rawgeti(L, list, i);
    luaL_addvalue(&b);
    luaL_addlstring(&b, content, k);
  }
  luaL_addlstring(&b, at, (size_t)(m.end - at));
  luaL_pushresult(&b);
  return 1;
}

/*
** Composed characters
*/
/* Appends the canonical decomposition of c; returns the new length. */
static size_t decompose(uint32_t *list, size_t n, uint32_t c) {
  uint32_t a, b;
  if (!nl_decomposition(c, &a, &b)) {
    size_t i = n;
    const int k = nl_combining_class(c);
    /* marks are in the order of their classes */
    for (; k && i > 0 && nl_combining_class(list[i - 1]) > k; i--)
      list[i] = list[i - 1];
    list[i] = c;
    return n + 1;
  }
  n = decompose(list, n, a);
  return b ? decompose(list, n, b) : n;
}

static size_t compose(uint32_t *list, size_t n) {
  size_t first = n, used = 0;
  for (size_t i = 0; i < n; i++) {
    const int k = nl_combining_class(list[i]);
    const int before = used > 0 ? nl_combining_class(list[used - 1]) : 0;
    const int free = first < n && (used == first + 1 || (before && before < k));
    const uint32_t c = free ? nl_composition(list[first], list[i]) : 0;
    if (c) {
      list[first] = c;
      continue;
    }
    if (k == 0) first = used;
    list[used++] = list[i];
  }
  return used;
}

/* normalize(text, composed): the text in the form NFC or NFD. */
static int normalize(lua_State *L) {
  enum { MOST = 4 }; /* characters that one decomposes to */
  size_t n, count = 0;
  const char *text = luaL_checklstring(L, 1, &n);
  luaL_Buffer b;
  size_t plain = 0;
  while (plain < n && (unsigned char)text[plain] < 0x80) plain++;
  if (plain == n) return lua_settop(L, 1), 1;
  uint32_t *list = lua_newuserdatauv(L, (MOST * n + 1) * sizeof *list, 0);
  for (size_t i = 0; i < n;) {
    int k;
    const uint32_t c = nl_character(text + i, text + n, &k);
    count = decompose(list, count, c);
    i += (size_t)k;
  }
  if (lua_toboolean(L, 2)) count = compose(list, count);
  luaL_buffinit(L, &b);
  for (size_t i = 0; i < count; i++) {
    char utf8[4];
    luaL_addlstring(&b, utf8, (size_t)nl_to_utf8(utf8, list[i]));
  }
  luaL_pushresult(&b);
  return 1;
}

/*
** Pieces
*/
enum { LONGEST_KEPT = 100 }; /* bytes of a part that the cache keeps */

/* Appends the numbers that the cache has for the part on top; 0 if none. */
static int take_kept(Pieces *to, int cache) {
  size_t n;
  lua_pushvalue(to->L, -1);
  if (lua_rawget(to->L, cache) != LUA_TSTRING) return lua_pop(to->L, 1), 0;
  const char *kept = lua_tolstring(to->L, -1, &n);
  for (size_t i = 0; i < n; i += sizeof(int32_t)) {
    int32_t piece;
    memcpy(&piece, kept + i, sizeof piece);
    nl_add_piece(to, piece);
  }
  lua_pop(to->L, 1);
  return 1;
}

/* Keeps the numbers from `first' on for the part on top. */
static void keep(Pieces *to, int cache, lua_Integer first) {
  int32_t list[LONGEST_KEPT];
  const lua_Integer n = to->n - first;
  if (n > LONGEST_KEPT) return;
  for (lua_Integer i = 0; i < n; i++) {
    lua_rawgeti(to->L, to->list, first + i + 1);
    list[i] = (int32_t)lua_tointeger(to->L, -1);
    lua_pop(to->L, 1);
  }
  lua_pushvalue(to->L, -1);
  lua_pushlstring(to->L, (const char *)list, (size_t)n * sizeof *list);
  lua_rawset(to->L, cache);
}

/* divide(vocabulary, parts, ids, cache, unigram): appends the numbers of the
   parts' pieces; returns how many parts were not in the cache. */
static int divide(lua_State *L) {
  const Vocabulary *v = luaL_checkudata(L, 1, NL_VOCABULARY);
  Pieces to = { .L = L, .list = 3 };
  const int unigram = lua_toboolean(L, 5);
  lua_Integer made = 0;
  for (int i = 2; i <= 4; i++) luaL_checktype(L, i, LUA_TTABLE);
  lua_settop(L, 5);
  to.n = (lua_Integer)lua_rawlen(L, 3);
  for (lua_Integer i = 1; lua_rawgeti(L, 2, i) == LUA_TSTRING; i++) {
    size_t n;
    const char *s = lua_tolstring(L, -1, &n);
    const lua_Integer first = to.n;
    if (!take_kept(&to, 4)) {
      if (unigram) nl_divide_by_scores(&to, v, s, n);
      else nl_divide_by_merges(&to, v, s, n);
      if (n <= LONGEST_KEPT) keep(&to, 4, first), made++;
    }
    lua_pop(L, 1);
  }
  lua_pushinteger(L, made);
  return 1;
}

/* is_word(text): does it begin with a letter, a mark or a digit? */
static int is_word(lua_State *L) {
  size_t n;
  int k;
  const char *s = luaL_checklstring(L, 1, &n);
  const int kind = n ? nl_category(nl_character(s, s + n, &k)) : U_ZS;
  lua_pushboolean(L, kind <= U_ND || kind == U_PC);
  return 1;
}

const luaL_Reg nl_text_functions[] = {
  { "pattern", new_pattern },
  { "split", split },
  { "replace", replace },
  { "normalize", normalize },
  { "charsmap", nl_new_charsmap },
  { "apply_charsmap", nl_apply_charsmap },
  { "vocabulary", nl_new_vocabulary },
  { "divide", divide },
  { "is_word", is_word },
  { NULL, NULL },
};
