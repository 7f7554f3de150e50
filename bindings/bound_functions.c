/* SPDX-License-Identifier: MIT */
/*
** bound_functions.c - the C functions of the binding as Lua functions.
**
** Most of them read their arguments by position. The wrapper refuses extra
** arguments and those of a wrong type, and moves named arguments to their
** positions, so that the functions need not.
*/
#include <limits.h>
#include <string.h>

#include "bindings/arguments/argument_reader.h"

static int is_rest(const Param *p) {
  return strcmp(p->name, "...") == 0;
}

/* The maximum number of positional arguments without the options, INT_MAX for
   any number; -1 if the function parses its signature itself. */
static int max_positional(const Signature *s) {
  for (int i = 0; i < s->n; i++)
    if (s->param[i].byname || s->param[i].type == P_SIZE ||
        s->param[i].type == P_TENSORS)
      return -1;
  return s->n > 0 && is_rest(&s->param[s->n - 1]) ? INT_MAX : s->n;
}

/* What the wrapper checks of an argument, and whether it may be missing: four
   bits of the closure's mask for each parameter. */
enum { IS_ANY, IS_TENSOR, IS_TEXT, IS_FN, IS_NUM, IS_INT, IS_BOOL };
enum { KIND = 7, OPTIONAL = 8 };
#define CHECKED 15 /* parameters; an operation has fewer */

static int kind_of(const Param *p) {
  switch (p->type) {
    case P_TENSOR: return IS_TENSOR;
    case P_TEXT:
    case P_CHOICE:
    case P_DTYPE: return IS_TEXT;
    case P_NUM: return IS_NUM;
    case P_INT: return IS_INT;
    case P_BOOL: return IS_BOOL;
    default: return strcmp(p->type_name, "fn") == 0 ? IS_FN : IS_ANY;
  }
}

static lua_Integer kinds_of(const Signature *s) {
  lua_Integer kinds = 0;
  for (int i = 0; i < s->n && i < CHECKED && !is_rest(&s->param[i]); i++) {
    const int optional = s->param[i].optional ? OPTIONAL : 0;
    kinds |= (lua_Integer)(kind_of(&s->param[i]) | optional) << 4 * i;
  }
  return kinds;
}

/* Reads a number of a 0-d tensor in its place. */
static int is_number(lua_State *L, int i, int whole) {
  const Tensor *t = nl_totensor(L, i);
  int is;
  if (t && t->nd == 0) {
    Scalar v;
    nl_check(L, nc_read(&v, t, 0));
    nl_pushscalar(L, v);
    lua_replace(L, i);
  }
  if (lua_type(L, i) != LUA_TNUMBER) return 0;
  if (!whole) return 1;
  lua_tointegerx(L, i, &is);
  return is;
}

static int fits(lua_State *L, int i, int kind) {
  switch (kind) {
    case IS_TENSOR: return nl_totensor(L, i) != NULL;
    case IS_TEXT: return lua_type(L, i) == LUA_TSTRING;
    case IS_NUM:
    case IS_INT: return is_number(L, i, kind == IS_INT);
    case IS_BOOL: return lua_isboolean(L, i);
    case IS_FN:
      return lua_isfunction(L, i) ||
             (!nl_totensor(L, i) &&
              luaL_getmetafield(L, i, "__call") != LUA_TNIL);
    default: return 1;
  }
}

/* Raises an error if the text that parameter 1 is, a path, comes second, behind
   the tensor of parameter 2. */
static void check_order(lua_State *L, const Signature *s) {
  const Param *p = s->param;
  if (s->n < 2 || p[0].type != P_TEXT || p[1].type != P_TENSOR ||
      lua_type(L, 2) != LUA_TSTRING || nl_totensor(L, 1) == NULL)
    return;
  nc_fail(NC_EVALUE, "the %s comes first, then the %s", p[0].name, p[1].name);
  nc_hint("nacre.%s(\"%s\", %s)", s->name, lua_tostring(L, 2), p[1].name);
  nl_check_op(L, NC_EVALUE, s->name);
}

/* Raises the error that argument i is missing or of a wrong type. */
static int refuse_argument(lua_State *L, const Bound *b, int i) {
  Signature s = { .n = 0 };
  Reader r = { L, &s, NULL, i, lua_gettop(L), NULL };
  nc_parse_signature(&s, b->name, b->signature);
  check_order(L, &s);
  const Param *p = &s.param[i - 1];
  if (i <= r.top || strcmp(p->name, "self") == 0)
    return nl_wrong_type(&r, p, i);
  return nl_refuse(L, b->name, NL_MISSING(p->name),
                   "%s is missing: %s expected", p->name,
                   kind_of(p) == IS_FN ? "a function" : nl_type_names[p->type]);
}

static void check_types(lua_State *L, const Bound *b, lua_Integer kinds) {
  const int top = lua_gettop(L);
  for (int i = 1; kinds; i++, kinds = (lua_Integer)((uint64_t)kinds >> 4)) {
    const int kind = kinds & KIND, optional = (kinds & OPTIONAL) != 0;
    if (kind == IS_ANY || (optional && lua_isnoneornil(L, i))) continue;
    if (lua_isnone(L, i) || !fits(L, i, kind)) refuse_argument(L, b, i);
    lua_settop(L, top);
  }
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
  s.no_out = 1;
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
   maximum number of arguments, upvalue 3 what is checked of them. */
static int call_bound(lua_State *L) {
  const Bound *b = lua_touserdata(L, lua_upvalueindex(1));
  const int limit = (int)lua_tointeger(L, lua_upvalueindex(2));
  int top = lua_gettop(L);
  while (top > limit && lua_isnil(L, top)) lua_settop(L, --top);
  if (top > limit || (limit < INT_MAX && top > 0 && lua_istable(L, top)))
    fit_arguments(L, b, limit);
  nl_select(L);
  check_types(L, b, lua_tointeger(L, lua_upvalueindex(3)));
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
  lua_pushinteger(L, kinds_of(&s));
  lua_pushcclosure(L, call_bound, 3);
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
