/* SPDX-License-Identifier: MIT */
/*
** extra_arguments.c - the error for more positional arguments than a function
** takes: it says how many it takes, or which arguments must be given by name.
** arguments.c calls these functions.
*/

#include <stdio.h>
#include <string.h>

#include "bindings/arguments/argument_reader.h"

int nl_is_device_name(const char *text) {
  return strncmp(text, "cuda", 4) == 0 || strcmp(text, "auto") == 0 ||
         strcmp(text, nc_host()->name) == 0 || strcmp(text, NC_METANAME) == 0;
}

/* True if the value at index i has the type of parameter p. */
static int has_type_of(lua_State *L, int i, const Param *p) {
  switch (lua_type(L, i)) {
    case LUA_TNUMBER:
      return p->type == P_NUM || (p->type == P_INT && lua_isinteger(L, i));
    case LUA_TBOOLEAN: return p->type == P_BOOL;
    case LUA_TSTRING:
      return (p->type == P_DTYPE &&
              nc_dtypefrom(lua_tostring(L, i)) != DT_NONE) ||
             (p->type == P_DEVICE && nl_is_device_name(lua_tostring(L, i))) ||
             (p->type == P_CHOICE &&
              nc_find_choice(p, lua_tostring(L, i)) >= 0);
    default: return 0;
  }
}

/* The first named-only parameter that the value at index i suits. Parameters
   whose bit is set in *used are skipped; the bit of the result is set. */
static const Param *find_named_only(lua_State *L, int i, const Signature *s,
                                    unsigned *used) {
  for (int k = s->positional; k < s->n; k++)
    if (!(*used >> k & 1) && has_type_of(L, i, &s->param[k])) {
      *used |= 1u << k;
      return &s->param[k];
    }
  return NULL;
}

/* Pushes "alpha=0.1" for the value at index i. [-0, +1, e] */
static void push_pair(lua_State *L, int i, const char *name) {
  const char *text = luaL_tolstring(L, i, NULL);
  if (lua_type(L, i) == LUA_TSTRING)
    lua_pushfstring(L, "%s=\"%s\"", name, text);
  else lua_pushfstring(L, "%s=%s", name, text);
  lua_remove(L, -2);
}

/* The hint is f(..., {alpha=0.1}). */
int nl_hint_named_arguments(Reader *r) {
  lua_State *L = r->L;
  char names[NC_TEXT] = "";
  unsigned used = 0;
  luaL_Buffer b;
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  luaL_buffinit(L, &b);
  for (int i = r->next; i <= r->top; i++) {
    const Param *p = find_named_only(L, i, r->s, &used);
    const size_t n = strlen(names);
    if (p == NULL) return 0;
    snprintf(names + n, sizeof names - n, "%s%s", n ? " and " : "", p->name);
    if (n) luaL_addstring(&b, ", ");
    push_pair(L, i, p->name);
    luaL_addvalue(&b);
  }
  luaL_pushresult(&b);
  nc_fail(NC_EVALUE, "%s %s given by name", names,
          r->next == r->top ? "is" : "are");
  nc_error_op(r->name);
  nc_hint("%s(..., {%s})", r->name, lua_tostring(L, -1));
  return 1;
}

int nl_too_many_arguments(Reader *r) {
  lua_State *L = r->L;
  const Signature *s = r->s;
  const int next = r->next;
  int sizes = 0;
  for (int i = 0; i < s->positional; i++) sizes |= s->param[i].type == P_SIZE;
  if (lua_isnil(L, next) && (sizes || s->creates)) /* zeros(3, n), no n */
    return nl_refuse(L, r->name, NL_TYPE(L, NULL, next), "arg %d is nil", next);
  if (nl_hint_named_arguments(r)) return nl_check(L, NC_EVALUE);
  if (sizes && lua_type(L, next) == LUA_TNUMBER &&
      lua_istable(L, next - 1)) { /* view(t, 2) */
    nc_fail(NC_EVALUE, "a size must be a number, not a table");
    nc_cause(NL_TYPE(L, NULL, next - 1));
  } else if (sizes) {
    nc_fail(NC_EVALUE, "argument %d must be a size, not a %s", next,
            nl_typename(L, next));
    nc_cause(NL_TYPE(L, NULL, next));
  } else nc_surplus_arguments(s, r->name, r->top);
  nc_error_op(r->name);
  if (s->n > 0 && s->param[0].type == P_ANY && lua_type(L, 1) == LUA_TNUMBER)
    nc_hint("%s{1, 2, 3} makes one of a list", r->name);
  return nl_check(L, NC_EVALUE);
}
