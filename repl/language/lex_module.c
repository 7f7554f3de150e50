/* SPDX-License-Identifier: MIT */
/*
** lex_module.c - the module "nacre.lex": lex.c for Lua.
*/

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "repl/language/lex.h"

static void push_token(lua_State *L, const char *text, const Token *t) {
  static const char *const kinds[] = { "name",   "keyword", "number",
                                       "string", "comment", "op" };
  lua_createtable(L, 0, 6);
  lua_pushstring(L, kinds[t->kind]);
  lua_setfield(L, -2, "kind");
  lua_pushlstring(L, text + t->from, t->to - t->from);
  lua_setfield(L, -2, "text");
  lua_pushinteger(L, (lua_Integer)t->from + 1);
  lua_setfield(L, -2, "from");
  lua_pushinteger(L, (lua_Integer)t->to);
  lua_setfield(L, -2, "to");
  lua_pushinteger(L, t->line);
  lua_setfield(L, -2, "line");
  lua_pushboolean(L, t->closed);
  lua_setfield(L, -2, "closed");
}

/* tokens(text[, line]): {{kind, text, from, to, line, closed}, ...} by these
   names; those that begin on a line, if it is given. */
static int tokens(lua_State *L) {
  size_t size;
  const char *text = luaL_checklstring(L, 1, &size);
  Lexer l = sh_lexer(text, size);
  const lua_Integer line = luaL_optinteger(L, 2, 0);
  lua_Integer n = 0;
  Token t;
  lua_newtable(L);
  while (sh_nexttoken(&l, &t)) {
    if (line > 0 && t.line > line) break;
    if (line > 0 && t.line < line) continue;
    push_token(L, text, &t);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* indent(text, rest): the column of a line that begins with rest after text */
static int indent(lua_State *L) {
  size_t size, n;
  const char *text = luaL_checklstring(L, 1, &size);
  const char *rest = luaL_checklstring(L, 2, &n);
  lua_pushinteger(L, sh_indent(text, size, rest, n));
  return 1;
}

int sh_openlex(lua_State *L) {
  static const luaL_Reg list[] = { { "tokens", tokens },
                                   { "indent", indent },
                                   { NULL, NULL } };
  int i;
  luaL_newlib(L, list);
  lua_newtable(L);
  for (i = 0; sh_keywords[i] != NULL; i++) {
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, sh_keywords[i]);
  }
  lua_setfield(L, -2, "keywords");
  sh_lexblocks(L);
  return 1;
}
