/* SPDX-License-Identifier: MIT */
/* signature_table.c - parsed signatures as tables of Lua. */
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"

/* Adds "dim=nil". */
static void addparam(luaL_Buffer *b, const Param *p) {
  luaL_addstring(b, p->name);
  if (p->type == P_SIZE) luaL_addstring(b, "...");
  if (!p->optional) return;
  luaL_addstring(b, p->quoted ? "=\"" : "=");
  luaL_addlstring(b, p->written, (size_t)p->nwritten);
  if (p->quoted) luaL_addchar(b, '"');
}

static void pushparams(lua_State *L, const Signature *s) {
  lua_createtable(L, s->n, 0);
  for (int i = 0; i < s->n; i++) {
    const Param *p = &s->param[i];
    luaL_Buffer b;
    lua_createtable(L, 0, 10);
    luaL_buffinit(L, &b);
    addparam(&b, p);
    luaL_pushresult(&b);
    lua_setfield(L, -2, "text");
    nl_set_string(L, "name", p->name);
    nl_set_string(L, "type", p->type_name);
    nl_set_boolean(L, "optional", p->optional);
    nl_set_boolean(L, "byname", p->byname);
    if (p->optional) {
      nl_push_default(L, p);
      lua_setfield(L, -2, "default");
    }
    if (p->choices) {
      lua_pushlstring(L, p->choices, strcspn(p->choices, "=, "));
      lua_setfield(L, -2, "choices");
      nl_set_boolean(L, "open", p->type != P_CHOICE);
    }
    lua_rawseti(L, -2, i + 1);
  }
}

static void addresults(luaL_Buffer *b, const Signature *s) {
  for (const char *c = s->results; *c; c++)
    if (*c != '!') luaL_addchar(b, *c);
}

/* Pushes "sum(self, dim=nil, ...) -> tensor". [-0, +1, m] */
static void pushtext(lua_State *L, const Signature *s) {
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  luaL_addstring(&b, s->name);
  luaL_addchar(&b, '(');
  for (int i = 0; i < s->n; i++) {
    if (i) luaL_addstring(&b, ", ");
    if (s->param[i].byname && i == s->positional) luaL_addstring(&b, "*, ");
    addparam(&b, &s->param[i]);
  }
  luaL_addchar(&b, ')');
  if (s->results[0]) luaL_addstring(&b, " -> ");
  addresults(&b, s);
  luaL_pushresult(&b);
}

void nl_set_signature(lua_State *L, const Signature *s) {
  luaL_Buffer b;
  pushtext(L, s);
  lua_setfield(L, -2, "signature");
  pushparams(L, s);
  lua_setfield(L, -2, "params");
  luaL_buffinit(L, &b);
  addresults(&b, s);
  luaL_pushresult(&b);
  lua_setfield(L, -2, "results");
}
