/* SPDX-License-Identifier: MIT */
/*
** arguments.c - reads the arguments of a call by the signature of the function:
** positional and named ones. dispatch.c calls nl_readargs for the core's
** operations, C functions of the binding call nl_args; lua_values.c and
** bound_functions.c read for functions that get values of Lua.
** argument_values.c reads the values.
*/
#include <string.h>

#include "bindings/arguments/argument_reader.h"
#include "bindings/arguments/arguments.h"
#include "bindings/state.h"

/* f(t, {}): skips an empty table after the last parameter, which is neither a
   list nor options. [-0, +0, e] */
static int skip_empty_options(Reader *r) {
  const int i = r->top;
  if (r->next != i || !lua_istable(r->L, i) || lua_rawlen(r->L, i) > 0)
    return 0;
  luaL_checkstack(r->L, 3, NULL);
  lua_pushnil(r->L);
  if (lua_next(r->L, i)) {
    lua_pop(r->L, 2);
    return 0;
  }
  r->next++;
  return 1;
}

/* Raises the error for an argument that no parameter accepts. It names the
   first parameter that refused it: for sum("1") that is dim, not keepdim, which
   comes next. [-0, +0, v] */
static void raise_refused(Reader *r, const Param *p) {
  lua_State *L = r->L;
  const Param *dims = NULL;
  for (int i = 1; i < r->s->positional; i++)
    if (p == &r->s->param[i] && p[-1].type == P_DIMS &&
        r->a->arg[i - 1].present)
      dims = p - 1;
  if (dims && lua_isinteger(L, r->next) && lua_isinteger(L, r->next - 1)) {
    nc_fail(NC_EVALUE, "pass several dimensions as a list");
    nc_error_op(r->name);
    if (nl_totensor(L, 1)) nc_error_operandat(0, "self", nl_totensor(L, 1));
    nc_hint("{0}:%s({%lld, %lld})", r->name,
            (long long)lua_tointeger(L, r->next - 1),
            (long long)lua_tointeger(L, r->next));
    nl_check(L, NC_EVALUE);
  }
  nl_wrong_type(r, r->refused ? r->refused : p, r->next);
}

/* Skips a nil in place of the options at the end, which a caller passes on.
   Behind sizes it is not skipped: zeros(3, n) with an undefined n.
   [-0, +0, -] */
static void skip_nil_options(Reader *r) {
  if (r->next != r->top || !lua_isnil(r->L, r->next)) return;
  for (int i = 0; i < r->s->positional; i++)
    if (r->s->param[i].type == P_SIZE && !r->a->arg[i].islist) return;
  r->next++;
}

/* Notes that the value at index i was read for the parameter.
   [-0, +(0|1), e] */
static void note_value(Reader *r, int slot, int i) {
  r->a->arg[slot].present = 1;
  if (r->at) r->at[slot] = nl_lua_value(r, &r->s->param[slot], slot, i);
}

/* Reads the argument at r->next for a parameter; one that an optional
   parameter does not accept stays for the next parameter, unless that is the
   last one. [-0, +n, e] */
static void read_one(Reader *r, int slot) {
  const Param *p = &r->s->param[slot];
  Arg *a = &r->a->arg[slot];
  if (lua_isnil(r->L, r->next)) {
    if (p->type == P_SIZE && !p->optional)
      nl_refuse(r->L, r->name, NL_TYPE(r->L, p->name, r->next), "%s is nil",
                p->name);
  } else if (nl_read_value(r, p, slot, r->next)) {
    note_value(r, slot, r->next);
  } else {
    if (!p->optional) nl_wrong_type(r, p, r->next);
    *a = p->fallback;
    a->list = &p->one;
    if (skip_empty_options(r)) return;
    if (r->at || slot + 1 >= r->s->positional) raise_refused(r, p);
    if (!r->refused) r->refused = p;
    return;
  }
  r->next++;
  r->refused = NULL;
}

/* Raises the error for arguments behind those of all parameters.
   [-0, +0, e] */
static void refuse_rest(Reader *r) {
  const Signature *s = r->s;
  for (int i = 0; i < s->positional; i++) /* zeros(2, 1.5) */
    if (s->param[i].type == P_SIZE && !r->a->arg[i].islist &&
        lua_type(r->L, r->next) == LUA_TNUMBER)
      nl_wrong_type(r, &s->param[i], r->next);
  for (int i = s->positional - 1; r->refused && i >= 0; i--)
    if (!r->a->arg[i].present && s->param[i].optional)
      /* an optional parameter refused it */
      nl_wrong_type(r, &s->param[i], r->next);
  nl_too_many_arguments(r);
}

/* Matches the arguments to the positional parameters in order. An optional
   parameter that does not accept a value keeps its default, and the value goes
   to the next one. [-0, +n, e] */
static void read_positional(Reader *r) {
  for (int i = 0; i < r->s->positional && r->next <= r->top; i++) {
    const ParamType type = r->s->param[i].type;
    if (type == P_SIZE && lua_type(r->L, r->next) == LUA_TNUMBER)
      nl_read_sizes(r, i);
    if (type == P_TENSORS && !r->at) nl_read_several(r, i);
    if (!r->a->arg[i].present) read_one(r, i);
  }
  skip_nil_options(r);
  if (r->next <= r->top && !skip_empty_options(r)) refuse_rest(r);
}

/* Is out= an argument? Not of fill_, which writes to self. */
static int takes_out(const Reader *r) {
  return !r->s->no_out && strncmp(r->s->results, "tensor", 6) == 0 &&
         r->name[strlen(r->name) - 1] != '_';
}

/* Raises an error unless the value at index i is a tensor or, for an operator
   with several results, a list of tensors. [-0, +0, e] */
static void check_out(Reader *r, int i) {
  nl_plain_table(r->L, i, 0);
  const int several = r->s->nresults > 1 && !r->at;
  const int list = lua_istable(r->L, i) && several;
  int ok = nl_totensor(r->L, i) != NULL || (list && lua_rawlen(r->L, i) > 0);
  for (int k = 1; list && ok && k <= (int)lua_rawlen(r->L, i); k++) {
    lua_rawgeti(r->L, i, k);
    ok = nl_totensor(r->L, -1) != NULL;
    lua_pop(r->L, 1);
  }
  if (!ok)
    nl_error(r->L, r->name,
             several ? "out must be a tensor, or a list of them"
                     : "out must be a tensor");
}

/* Reads the named argument whose key and value are on top, above what must stay
   alive: moves such values below the key. [-0, +n, e] */
static void read_option(Reader *r) {
  lua_State *L = r->L;
  const int value = lua_gettop(L);
  if (lua_type(L, -2) != LUA_TSTRING)
    nl_error(L, r->name,
             "a table holds either a list or named arguments, not both");
  const char *name = lua_tostring(L, -2);
  if (strcmp(name, "out") == 0 && takes_out(r)) {
    check_out(r, value);
    lua_pushvalue(L, value);
    lua_insert(L, value - 1);
    r->a->out = value - 1;
    return;
  }
  const int i = nc_findparam(r->s, name);
  if (i < 0)
    nl_check(L, nc_unknown_argument(r->s, r->name, name, takes_out(r)));
  if (r->a->arg[i].present)
    nl_check(L, nc_repeated_argument(r->name, &r->s->param[i]));
  if (!nl_read_value(r, &r->s->param[i], i, value))
    nl_wrong_type(r, &r->s->param[i], value);
  note_value(r, i, value);
  if (r->at && r->at[i]) {
    lua_pushvalue(L, r->at[i]);
    r->at[i] = value - 1;
  }
  if (lua_gettop(L) > value) {
    lua_insert(L, value - 1);
    lua_settop(L, value + 1);
  }
}

/* Reads the named arguments in the table at index t. [-0, +n, e] */
static void read_named(Reader *r, int t) {
  luaL_checkstack(r->L, 6, NULL);
  for (lua_pushnil(r->L); lua_next(r->L, t); lua_pop(r->L, 1)) read_option(r);
}

/* Is the table at r->top the value of its parameter, not named arguments? So it
   is where the parameter takes tables with names; a table with a metatable may
   be an object. [-0, +0, e] */
static int is_value(Reader *r) {
  const int i = r->top;
  const Param *p = i <= r->s->positional ? &r->s->param[i - 1] : NULL;
  if (nl_is_callable(r->L, i)) return 1;
  switch (p ? p->type : P_TENSOR) {
    case P_TABLE: return 1;
    case P_MODULE: return nl_has_field(r->L, i, "_fields");
    case P_OPTIMIZER: return nl_has_field(r->L, i, "param_groups");
    case P_ANY: return r->s->n == 1 || nl_has_metamethods(r->L, i);
    default: return 0;
  }
}

/* The index of the table of named arguments, the last argument, or 0. It is not
   one of the others then. [-0, +0, e] */
static int take_options(Reader *r) {
  if (r->top == 0 || !lua_istable(r->L, r->top) || is_value(r)) return 0;
  nl_plain_options(r->L, r->top, r->s);
  return nl_isoptions(r->L, r->top, r->s) ? r->top-- : 0;
}

/* Raises an error if a mandatory parameter has no argument; one of the core may
   have no sizes. [-0, +0, e] */
static void check_given(Reader *r) {
  const Signature *s = r->s;
  const int status = nc_check_given(s, r->name, r->a->arg, r->at != NULL);
  if (status != NC_OK && s->method && !r->a->arg[0].present)
    nc_hint("%s is a method: t:%s(...)", r->name, r->name);
  nl_check(r->L, status);
}

void nl_read_all(Reader *r) {
  const int options = take_options(r);
  r->a->out = 0;
  nc_set_defaults(r->a->arg, r->s);
  read_positional(r);
  if (options) read_named(r, options);
  check_given(r);
}

void nl_readargs(lua_State *L, const Signature *s, Args *a) {
  Reader r = { L, s, s->name, a, 1, lua_gettop(L), NULL, NULL };
  nl_select(L);
  nl_read_all(&r);
  a->require = s->creates && a->arg[s->n - 2].s.i;
  a->pin = s->creates && a->arg[s->n - 1].s.i;
}
