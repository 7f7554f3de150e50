/* SPDX-License-Identifier: MIT */
/*
** charsmap.c - the normalization that a model of SentencePiece has compiled: a
** double array of the texts that are replaced, and what replaces them.
**
** A unit of the array has the label of the byte that leads to it, a distance to
** the units that follow, and whether a text ends there; the unit of its value
** is then at that distance. It comes from a file: each place is checked.
*/
#include "bindings/text/charsmap.h"

#include <lauxlib.h>
#include <string.h>

#include "bindings/text/pattern.h"
#include "bindings/text/unicode.h"
#include "bindings/text/vocabulary.h"

#define CHARSMAP "nacre.charsmap"

enum { LONGEST_CLUSTER = 5 }; /* bytes of a cluster that is replaced whole */

typedef struct Charsmap {
  size_t units, bytes;
  const char *text;     /* after the units, `bytes' of them */
  unsigned char unit[]; /* four bytes each, the lowest first */
} Charsmap;

static uint32_t unit_at(const Charsmap *m, size_t i) {
  const unsigned char *p = m->unit + 4 * i;
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
         (uint32_t)p[3] << 24;
}

int nl_new_charsmap(lua_State *L) {
  size_t n, size = 0;
  const char *s = luaL_checklstring(L, 1, &n);
  for (size_t i = 0; i < 4 && n >= 4; i++)
    size |= (size_t)(unsigned char)s[i] << 8 * i;
  if (n < 8 || size < 4 || size % 4 || size > n - 4)
    return nl_refuse_text(L, "the map of characters is damaged");
  Charsmap *m = lua_newuserdatauv(L, sizeof *m + n, 0);
  memcpy(m->unit, s + 4, n - 4);
  m->units = size / 4;
  m->text = (const char *)m->unit + size;
  m->bytes = n - 4 - size;
  luaL_newmetatable(L, CHARSMAP);
  lua_setmetatable(L, -2);
  return 1;
}

static size_t distance(uint32_t unit) {
  return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* Where the replacement of the shortest text that s, of n bytes, begins with is
   among the texts; -1 if there is none. */
static int64_t find(const Charsmap *m, const char *s, size_t n) {
  size_t at = distance(unit_at(m, 0));
  for (size_t i = 0; i < n && s[i]; i++) {
    const unsigned char c = (unsigned char)s[i];
    at ^= c;
    if (at >= m->units) return -1;
    const uint32_t unit = unit_at(m, at);
    if ((unit & (1u << 31 | 0xFF)) != c) return -1;
    at ^= distance(unit);
    if (!(unit >> 8 & 1)) continue;
    const size_t value = at < m->units ? unit_at(m, at) & 0x7FFFFFFF : m->bytes;
    return value < m->bytes ? (int64_t)value : -1;
  }
  return -1;
}

/* Adds what replaces s; 0 if nothing does. */
static int replace(luaL_Buffer *b, const Charsmap *m, const char *s, size_t n) {
  const int64_t at = find(m, s, n);
  if (at < 0) return 0;
  size_t k = 0;
  while ((size_t)at + k < m->bytes && m->text[(size_t)at + k]) k++;
  luaL_addlstring(b, m->text + at, k);
  return 1;
}

/* Does the character belong to the one before it? */
static int extends(uint32_t c) {
  const int kind = nl_category(c);
  return (kind >= U_MN && kind <= U_ME) || c == 0x200C || c == 0x200D ||
         c == 0xFF9E || c == 0xFF9F || (c >= 0x1F3FB && c <= 0x1F3FF);
}

/* The end of the cluster of characters that begins at s: one and what extends
   it. Longer ones are not replaced whole, so no other rule matters. */
static const char *end_of_cluster(const char *s, const char *end) {
  int n;
  const uint32_t first = nl_character(s, end, &n);
  const int kind = nl_category(first);
  s += n;
  if (first == '\r') return s < end && *s == '\n' ? s + 1 : s;
  if (kind == U_CC || kind == U_CF || kind == U_ZL || kind == U_ZP) return s;
  while (s < end && extends(nl_character(s, end, &n))) s += n;
  return s;
}

int nl_apply_charsmap(lua_State *L) {
  size_t n;
  const Charsmap *m = luaL_checkudata(L, 1, CHARSMAP);
  const char *s = luaL_checklstring(L, 2, &n), *end = s + n;
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  while (s < end) {
    const char *next = end_of_cluster(s, end);
    const size_t whole = (size_t)(next - s);
    if (whole <= LONGEST_CLUSTER && replace(&b, m, s, whole)) s = next;
    for (int k; s < next; s += k) {
      nl_character(s, end, &k);
      if (!replace(&b, m, s, (size_t)k)) luaL_addlstring(&b, s, (size_t)k);
    }
  }
  luaL_pushresult(&b);
  return 1;
}
