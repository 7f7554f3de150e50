/* SPDX-License-Identifier: MIT */
/*
** bound_functions.c - the C functions of the binding as Lua functions.
**
** Most of them read their arguments by position. The wrapper passes a plain
** call on, and reads the arguments of any other by the signature: it refuses
** those of a wrong type and surplus ones, and places named ones.
*/
#include <limits.h>
#include <string.h>

#include "bindings/arguments/argument_reader.h"
#include "bindings/arguments/arguments.h"
#include "bindings/calls/functions.h"
#include "bindings/state.h"
#include "core/fusion.h"

/* Upvalue 1 of the wrapper. */
typedef struct Wrapped {
  const Bound *b;
  int limit;   /* the maximum number of arguments, INT_MAX for
                                 any number: the last parameter was "..." */
  Signature s; /* without "..." */
} Wrapped;

/* True if the function parses its signature itself. */
static int reads_itself(const Signature *s) {
  for (int i = 0; i < s->n; i++)
    if (s->param[i].byname || s->param[i].type == P_SIZE ||
        s->param[i].type == P_TENSORS)
      return 1;
  return 0;
}

/* Does the value at index i fit as it is? Types that are not here are left to
   the reader. [-0, +0, e] */
static int fits(lua_State *L, int i, const Param *p) {
  int is;
  switch (p->type) {
    case P_TENSOR: return nl_totensor(L, i) != NULL;
    case P_TEXT:
    case P_DTYPE: return lua_type(L, i) == LUA_TSTRING;
    case P_NUM: return lua_type(L, i) == LUA_TNUMBER;
    case P_DIM:
    case P_INDEX:
    case P_INT:
      if (lua_type(L, i) != LUA_TNUMBER) return 0;
      lua_tointegerx(L, i, &is);
      return is;
    case P_BOOL: return lua_isboolean(L, i);
    case P_CHOICE:
      return lua_type(L, i) == LUA_TSTRING &&
             nc_find_choice(p, lua_tostring(L, i)) >= 0;
    case P_FUNCTION: return nl_is_callable(L, i);
    case P_ANY: return 1;
    default: return 0;
  }
}

/* True if all arguments fit by position. [-0, +0, e] */
static int is_plain(lua_State *L, const Wrapped *w, int top) {
  if (top > w->limit || (w->limit < INT_MAX && lua_istable(L, top))) return 0;
  for (int i = 1; i <= w->s.n; i++) {
    const Param *p = &w->s.param[i - 1];
    if (p->optional && lua_isnoneornil(L, i)) continue;
    if (!fits(L, i, p)) return 0;
  }
  return 1;
}

/* Reads the arguments by the signature and puts the values in the order of the
   parameters, before those of "...". [-?, +?, e] */
static void place_arguments(lua_State *L, const Wrapped *w, int top) {
  Args a;
  int at[NC_MAXPARAM] = { 0 }, n = 0;
  Reader r = { L, &w->s, w->b->name, &a, 1, top, NULL, at };
  if (w->limit == INT_MAX && top > w->s.n) r.top = w->s.n;
  luaL_checkstack(L, 3 * NC_MAXPARAM, NULL);
  nl_read_all(&r);
  for (int i = 0; i < w->s.n; i++)
    if (at[i] || i < r.next - 1) n = i + 1;
  const int from = lua_gettop(L);
  for (int i = 0; i < n; i++)
    if (at[i]) lua_pushvalue(L, at[i]);
    else lua_pushnil(L);
  for (int i = 1; i <= n; i++) lua_copy(L, from + i, i);
  lua_settop(L, w->limit == INT_MAX && top > n ? top : n);
}

static int call_bound(lua_State *L) {
  const Wrapped *w = lua_touserdata(L, lua_upvalueindex(1));
  int top = lua_gettop(L);
  while (top > w->limit && lua_isnil(L, top)) lua_settop(L, --top);
  nl_select(L);
  if (!is_plain(L, w, top)) place_arguments(L, w, top);
  nc_fusion_note_sizes();
  return w->b->f(L);
}

void nl_args(lua_State *L, Args *a) {
  const Wrapped *w = lua_touserdata(L, lua_upvalueindex(1));
  nl_readargs(L, &w->s, a);
}

void nl_pushbound(lua_State *L, const Bound *b) {
  Signature s;
  nc_parse_signature(&s, b->name, b->signature);
  const int raw = reads_itself(&s);
  const int any = !raw && s.n > 0 && strcmp(s.param[s.n - 1].name, "...") == 0;
  s.no_out = 1; /* only dispatch.c and lua_values.c write to it */
  s.n -= any;
  s.positional -= any;
  Wrapped *w =
      lua_newuserdatauv(L, offsetof(Wrapped, s) + NC_SIGNATURE_BYTES(&s), 0);
  w->b = b;
  w->limit = any ? INT_MAX : s.n;
  memcpy(&w->s, &s, NC_SIGNATURE_BYTES(&s));
  lua_pushcclosure(L, raw ? b->f : call_bound, 1);
}

int nl_isbound(lua_State *L, int i, const Bound *b) {
  const lua_CFunction f = lua_tocfunction(L, i);
  if (f != call_bound) return f != NULL && f == b->f;
  lua_getupvalue(L, i, 1);
  const int is = ((Wrapped *)lua_touserdata(L, -1))->b == b;
  lua_pop(L, 1);
  return is;
}
