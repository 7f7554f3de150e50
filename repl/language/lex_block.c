/* SPDX-License-Identifier: MIT */
/*
** lex_block.c - what input_block.lua asks about the tokens of a whole block:
** where its value ends, which locals it has, where its last statements begin.
** A table for each token takes a hundred times the memory of the text, so none
** is made.
*/

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "repl/language/lex.h"

/* The last `keep` positions of those that were added. */
typedef struct Latest {
  size_t keep, n, from[200];
} Latest;

static void add(Latest *latest, const Token *t) {
  latest->from[latest->n++ % latest->keep] = t->from;
}

static Nested nested(lua_State *L) {
  size_t size;
  const char *text = luaL_checklstring(L, 1, &size);
  return (Nested){ .l = sh_lexer(text, size) };
}

static int is(const Nested *n, const Token *t, const char *word) {
  return sh_tokenis(&n->l, t, word);
}

/* ending(text): the end of the last token that is neither a comment nor one of
   the semicolons at the end, 0 if all are; and whether there are such
   semicolons. Nil if there is no token. */
static int ending(lua_State *L) {
  Nested n = nested(L);
  size_t to = 0;
  int some = 0, hidden = 0;
  for (; sh_nexttoken(&n.l, &n.t); some = 1) {
    if (n.t.kind == TOKEN_COMMENT) continue;
    hidden = is(&n, &n.t, ";");
    if (!hidden) to = n.t.to;
  }
  if (!some) return 0;
  lua_pushinteger(L, (lua_Integer)to);
  lua_pushboolean(L, hidden);
  return 2;
}

static void push_text(lua_State *L, const Nested *n, const Token *t) {
  lua_pushlstring(L, n->l.text + t->from, t->to - t->from);
}

/* locals(text): the set of the names of the block's own locals, without those
   of blocks inside it. */
static int locals(lua_State *L) {
  Nested n = nested(L);
  enum { NOTHING, NAMES, FUNCTION } expected = NOTHING;
  lua_newtable(L);
  while (sh_nextnested(&n)) {
    const int inside = n.depth > 0 && expected != FUNCTION;
    if (n.t.kind == TOKEN_COMMENT || inside) continue;
    if (n.t.kind == TOKEN_NAME && expected != NOTHING) {
      push_text(L, &n, &n.t);
      lua_pushboolean(L, 1);
      lua_rawset(L, -3);
      if (expected == FUNCTION) expected = NOTHING;
    } else if (expected == NAMES && is(&n, &n.t, "function")) {
      expected = FUNCTION;
    } else if (!is(&n, &n.t, ",")) {
      expected = is(&n, &n.t, "local") ? NAMES : NOTHING;
    }
  }
  return 1;
}

/* attributes(text): {{from, to, name, attribute}, ...}, the attributes of the
   same locals, with their < and >. */
static int attributes(lua_State *L) {
  Nested n = nested(L);
  Token name = { 0 }, open = { 0 }, word = { 0 };
  lua_Integer count = 0;
  enum { OUTSIDE, LIST, ATTRIBUTE } state = OUTSIDE;
  lua_newtable(L);
  while (sh_nextnested(&n)) {
    if (n.t.kind == TOKEN_COMMENT || n.depth > 0) continue;
    if (is(&n, &n.t, "local")) {
      state = LIST;
    } else if (state == LIST && is(&n, &n.t, "<")) {
      state = ATTRIBUTE, open = n.t;
    } else if (state == ATTRIBUTE && is(&n, &n.t, ">")) {
      lua_createtable(L, 4, 0);
      lua_pushinteger(L, (lua_Integer)open.from + 1);
      lua_rawseti(L, -2, 1);
      lua_pushinteger(L, (lua_Integer)n.t.to);
      lua_rawseti(L, -2, 2);
      push_text(L, &n, &name);
      lua_rawseti(L, -2, 3);
      push_text(L, &n, &word);
      lua_rawseti(L, -2, 4);
      lua_rawseti(L, -2, ++count);
      state = LIST;
    } else if (state != OUTSIDE && n.t.kind == TOKEN_NAME) {
      *(state == LIST ? &name : &word) = n.t;
    } else if (state != LIST || !is(&n, &n.t, ",")) {
      state = OUTSIDE;
    }
  }
  return 1;
}

static int push_positions(lua_State *L, const Latest *latest) {
  const size_t keep = latest->keep;
  const size_t first = latest->n > keep ? latest->n - keep : 0;
  lua_newtable(L);
  for (size_t i = first; i < latest->n; i++) {
    lua_pushinteger(L, (lua_Integer)latest->from[i % keep] + 1);
    lua_rawseti(L, -2, (lua_Integer)(i - first) + 1);
  }
  return 1;
}

/* statements(text): where the last statements of the block may begin with a
   name or a parenthesis: on a line of their own, or after a semicolon. A line
   that begins with `(' continues the one before. */
static int statements(lua_State *L) {
  Nested n = nested(L);
  Latest found = { .keep = 20 };
  Token before = { 0 };
  for (int some = 0; sh_nextnested(&n);) {
    const int behind = some && n.depth == 0 && is(&n, &before, ";");
    if (n.t.kind == TOKEN_COMMENT) continue;
    if ((behind && (n.t.kind == TOKEN_NAME || is(&n, &n.t, "("))) ||
        (some && n.depth == 0 && n.t.kind == TOKEN_NAME &&
         n.t.line > before.line))
      add(&found, &n.t);
    before = n.t;
    some = 1;
  }
  return push_positions(L, &found);
}

/* values(text, anywhere): where the last expression may begin: at a line, after
   a semicolon, after `return'; or `anywhere'. */
static int values(lua_State *L) {
  Nested n = nested(L);
  const int anywhere = lua_toboolean(L, 2);
  Latest found = { .keep = 200 };
  Token before = { 0 };
  for (int some = 0; sh_nexttoken(&n.l, &n.t); some = 1) {
    if (some && (anywhere || n.t.line > before.line || is(&n, &before, ";") ||
                 is(&n, &before, "return")))
      add(&found, &n.t);
    before = n.t;
  }
  return push_positions(L, &found);
}

void sh_lexblocks(lua_State *L) {
  static const luaL_Reg list[] = {
    { "ending", ending },         { "locals", locals },
    { "attributes", attributes }, { "statements", statements },
    { "values", values },         { NULL, NULL }
  };
  luaL_setfuncs(L, list, 0);
}
