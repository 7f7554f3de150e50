/* SPDX-License-Identifier: MIT */
/*
** lua_values.c - reads the arguments of functions written in Lua, and gives
** them as values of Lua, with defaults. composed.lua and autograd.lua get the
** functions nl_argument_functions.
*/
#include <string.h>

#include "bindings/arguments/argument_reader.h"
#include "bindings/arguments/arguments.h"
#include "bindings/state.h"
#include "core/suggest.h"

/* The stack index of a number for a parameter that takes it whole, or of any
   kind. [-0, +(0|1), m] */
static int number_value(lua_State *L, const Arg *a, int i, int whole) {
  if (whole ? lua_isinteger(L, i) : lua_type(L, i) == LUA_TNUMBER) return i;
  nl_pushscalar(L, a->s);
  return lua_gettop(L);
}

/* Are these integers of Lua, one or a list? [-0, +0, -] */
static int are_integers(lua_State *L, int i) {
  int are = 1;
  if (!lua_istable(L, i)) return lua_isinteger(L, i);
  for (int k = 1, n = (int)lua_rawlen(L, i); are && k <= n; k++) {
    lua_rawgeti(L, i, k);
    are = lua_isinteger(L, -1);
    lua_pop(L, 1);
  }
  return are;
}

/* See number_value. */
static int integers_value(lua_State *L, const Arg *a, int i) {
  if (are_integers(L, i)) return i;
  if (a->islist) nl_push_integers(L, a);
  else lua_pushinteger(L, a->list[0]);
  return lua_gettop(L);
}

int nl_lua_value(Reader *r, const Param *p, int slot, int i) {
  const Arg *a = &r->a->arg[slot];
  switch (p->type) {
    case P_TENSOR: return a->t ? i : 0;
    case P_DIMORTENSOR: return a->t ? i : number_value(r->L, a, i, 1);
    case P_DIM:
    case P_INDEX:
    case P_INT: return number_value(r->L, a, i, 1);
    case P_NUM: return number_value(r->L, a, i, 0);
    case P_SIZE:
    case P_INTS:
    case P_DIMS: return integers_value(r->L, a, i);
    default: return i;
  }
}

void nl_push_default(lua_State *L, const Param *p) {
  if (!p->optional || strncmp(p->written, "nil", (size_t)p->nwritten) == 0)
    lua_pushnil(L);
  else if (p->quoted) lua_pushlstring(L, p->written, (size_t)p->nwritten);
  else nl_pushscalar(L, p->fallback.s);
}

/* read(name, s, ...): the table of the arguments of the function `name', in the
   order of the parameters of s, with defaults; and the tensor given as out. */
static int read(lua_State *L) {
  Args a;
  int at[NC_MAXPARAM] = { 0 };
  Reader r = { .L = L, .a = &a, .next = 1, .top = lua_gettop(L) - 2, .at = at };
  lua_rotate(L, 1, -2); /* name and s stay, behind the arguments */
  luaL_checkstack(L, 3 * NC_MAXPARAM, NULL);
  r.name = lua_tostring(L, -2);
  lua_rawgeti(L, -1, 1);
  r.s = lua_touserdata(L, -1);
  nl_select(L);
  nl_read_all(&r);
  lua_createtable(L, r.s->n, 0);
  for (int i = 0; i < r.s->n; i++) {
    if (at[i]) lua_pushvalue(L, at[i]);
    else nl_push_default(L, &r.s->param[i]);
    lua_rawseti(L, -2, i + 1);
  }
  if (a.out == 0) return 1;
  lua_pushvalue(L, a.out);
  return 2;
}

/* check(name, s, i, v): fails if v does not fit parameter i of s. */
static int check(lua_State *L) {
  Args a;
  int at[NC_MAXPARAM] = { 0 };
  Reader r = { .L = L, .name = lua_tostring(L, 1), .a = &a, .at = at };
  const int slot = (int)lua_tointeger(L, 3) - 1;
  lua_rawgeti(L, 2, 1);
  r.s = lua_touserdata(L, -1);
  if (!nl_read_value(&r, &r.s->param[slot], slot, 4))
    nl_wrong_type(&r, &r.s->param[slot], 4);
  return 0;
}

/* nearest(word, list): the text of the list that is nearest to the word; nil if
   none is near. */
static int nearest(lua_State *L) {
  const char *word = luaL_checkstring(L, 1), **list;
  luaL_checktype(L, 2, LUA_TTABLE);
  const lua_Unsigned n = lua_rawlen(L, 2);
  lua_settop(L, 2);
  luaL_checkstack(L, (int)n + 2, "names");
  list = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *list, 0);
  for (lua_Unsigned i = 0; i < n; i++) {
    lua_rawgeti(L, 2, (lua_Integer)i + 1);
    list[i] = luaL_checkstring(L, -1);
  }
  list[n] = NULL;
  lua_pushstring(L, nc_nearest(word, list));
  return 1;
}

/* parse(name, text, takes_out): the signature as nl_set_signature gives it, and
   positional, method, inplace. [1] is what read needs; it borrows from the
   strings name and text, which are its user values. */
int nl_parse_signature(lua_State *L) {
  Signature s;
  nc_parse_signature(&s, luaL_checkstring(L, 1), luaL_checkstring(L, 2));
  s.no_out = !lua_toboolean(L, 3);
  lua_createtable(L, 1, 8);
  memcpy(lua_newuserdatauv(L, NC_SIGNATURE_BYTES(&s), 2), &s,
         NC_SIGNATURE_BYTES(&s));
  for (int i = 1; i <= 2; i++) {
    lua_pushvalue(L, i);
    lua_setiuservalue(L, -2, i);
  }
  lua_rawseti(L, -2, 1);
  nl_set_signature(L, &s);
  nl_set_integer(L, "positional", s.positional);
  nl_set_boolean(L, "method", s.method);
  nl_set_boolean(L, "inplace", s.inplace);
  return 1;
}

const luaL_Reg nl_argument_functions[] = {
  { "parse", nl_parse_signature },
  { "read", read },
  { "check_argument", check },
  { "nearest", nearest },
  { NULL, NULL },
};
