/* SPDX-License-Identifier: MIT */
/*
** bound_functions.c - the C functions of the binding as Lua functions.
**
** Most of them read their arguments by position. The wrapper refuses extra
** arguments and moves named arguments to their positions, so that the functions
** need not.
*/
#include <string.h>

#include "bindings/arguments/argument_reader.h"

/* The maximum number of positional arguments without the options; -1 if the
   function parses its signature itself or takes any number. */
static int max_positional(const Signature *s) {
  for (int i = 0; i < s->n; i++)
    if (s->param[i].byname || s->param[i].type == P_SIZE ||
        s->param[i].type == P_TENSORS || strcmp(s->param[i].name, "...") == 0)
      return -1;
  return s->n;
}

/* Replaces the table of options on top by positional arguments. [-1, +n, e] */
static void place_named(Reader *r) {
  lua_State *L = r->L;
  int last = r->top - 1;
  luaL_checkstack(L, NC_MAXPARAM + 6, NULL);
  lua_insert(L, 1); /* below the arguments */
  lua_settop(L, 1 + r->s->n);
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
    int i = -1;
    if (lua_type(L, -2) == LUA_TSTRING &&
        (i = nc_findparam(r->s, lua_tostring(L, -2))) < 0)
      nl_unknown_argument(r, lua_tostring(L, -2));
    if (i < 0)
      nl_error(L, r->s->name,
               "a table holds either a list or named arguments, not both");
    if (!lua_isnil(L, i + 2))
      nl_error(L, r->s->name, "%s is given twice", r->s->param[i].name);
    if (i >= last) last = i + 1;
    lua_pushvalue(L, -1);
    lua_replace(L, i + 2);
  }
  lua_settop(L, 1 + last);
  lua_remove(L, 1);
}

/* True if a table at index i is the value of the parameter at that position,
   not options: P_ANY is a parameter of any type. */
static int takes_table(const Signature *s, int i) {
  const Param *p = &s->param[i - 1];
  return i <= s->positional && !p->optional &&
         (p->type == P_TENSOR || p->type == P_ANY);
}

/* Handles a call with a table as its last argument or with more than `limit'
   arguments: places named arguments, or raises. [-(0|1), +n, e] */
static void fit_arguments(lua_State *L, const Bound *b, int limit) {
  Signature s = { .n = 0 };
  Reader r = { L, &s, NULL, limit + 1, lua_gettop(L), NULL };
  nc_parse_signature(&s, b->name, b->signature);
  if (r.top - 1 > limit || !takes_table(&s, r.top))
    nl_plain_options(L, r.top, &s);
  if (nl_isoptions(L, r.top, &s) && r.top - 1 <= limit &&
      !takes_table(&s, r.top))
    place_named(&r);
  else if (r.top > limit) {
    if (nl_skip_empty_options(&r)) lua_pop(L, 1);
    else nl_too_many_arguments(L, &s, r.next, r.top);
  }
}

/* The wrapper that nl_pushbound pushes; upvalue 1 is the Bound, upvalue 2 the
   maximum number of arguments. */
static int call_bound(lua_State *L) {
  const Bound *b = lua_touserdata(L, lua_upvalueindex(1));
  const int limit = (int)lua_tointeger(L, lua_upvalueindex(2));
  int top = lua_gettop(L);
  while (top > limit && lua_isnil(L, top)) lua_settop(L, --top);
  if (top > limit || (top > 0 && lua_istable(L, top)))
    fit_arguments(L, b, limit);
  nl_select(L);
  nc_fusion_note_sizes();
  return b->f(L);
}

void nl_pushbound(lua_State *L, const Bound *b) {
  Signature s;
  nc_parse_signature(&s, b->name, b->signature);
  const int limit = max_positional(&s);
  if (limit < 0) {
    lua_pushcfunction(L, b->f);
    return;
  }
  lua_pushlightuserdata(L, (void *)(uintptr_t)b);
  lua_pushinteger(L, limit);
  lua_pushcclosure(L, call_bound, 2);
}

int nl_isbound(lua_State *L, int i, const Bound *b) {
  const lua_CFunction f = lua_tocfunction(L, i);
  int is;
  if (f != call_bound) return f != NULL && f == b->f;
  lua_getupvalue(L, i, 1);
  is = lua_touserdata(L, -1) == b;
  lua_pop(L, 1);
  return is;
}
